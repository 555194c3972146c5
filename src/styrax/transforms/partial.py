"""Partial evaluation: what is known is computed now, the rest is written down.

A `PartialTrace` lets primitives on known values run on the trace outside and records the others as
equations that read known values directly. `PartialTrace.to_jaxpr` closes the record over the known
values that it really needs, its residuals. On jaxprs, `partial_eval_jaxpr` splits one program in two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.arrays import mesh
from ..core.programs import metadata
from ..core.programs.check import maybe_check
from ..core.programs.dead_code import has_effects
from ..core.programs.equation_mesh import in_its_mesh
from ..core.programs.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr, no_debug_info
from ..core.programs.name_stack import current_name_stack
from ..core.programs.primitive import Primitive
from ..core.programs.rules import partial_eval_jaxpr_customs, partial_evals
from ..core.tracing import source
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import Trace, Tracer, get_aval, set_current_trace, state
from ..core.types import avals
from ..core.types.avals import AbstractRef, AbstractValue
from ..core.types.effects import AccumEffect, WriteEffect, remat_allowed_effects
from .memo import per_jaxpr


class PartialTracer(Tracer):
    """An unknown value: a variable of the recorded program."""

    __slots__ = ("recipe", "var")
    recipe: JaxprEqn  # set by rules of libraries alone

    def __init__(self, trace: Trace, var: Var):
        self._trace = trace
        self.var = var

    @property
    def aval(self) -> Any:
        return self.var.aval

    def __repr__(self) -> str:
        return f"Traced<{self.var.aval.str_short(short_dtypes=True)}:PartialTrace>"


class PartialTrace(Trace):
    """Runs what is known on `parent` and records the rest in `eqns`.

    The recorded equations read known values as `Literal`s that hold them, arrays and tracers of
    outer traces alike.
    """

    __slots__ = ("parent", "eqns", "scopes_outside", "_has_references", "_invalidated")

    def __init__(self, parent: Trace):
        self.parent = parent
        self.eqns: list[JaxprEqn] = []
        self._has_references = False
        self.scopes_outside = len(current_name_stack())  # they are open again where the record is run
        self._invalidated = False

    def new_arg(self, aval: AbstractValue) -> PartialTracer:
        return PartialTracer(self, Var(aval))

    def instantiate_const(self, x: Any) -> Any:
        """A value as one of the trace; it reads known ones as they are."""
        return x

    def is_unknown(self, x: Any) -> bool:
        return type(x) is PartialTracer and x._trace is self

    def depends(self, x: Any) -> bool:
        """Whether a value hangs on arguments of the record. One that is read from references which nothing of that kind
        was written to is unknown and does not."""
        if not self.is_unknown(x):
            return False
        if not self._has_references:
            return True
        made: set[Var] = set()
        reached: set[Var] = set()
        for eqn in self.eqns:
            operands = [a for a in eqn.invars if type(a) is Var]
            if any(a in reached or a not in made for a in operands):
                reached.update(eqn.outvars)
                reached.update(a for a in operands if type(a.aval) is AbstractRef)
            made.update(eqn.outvars)
        return x.var in reached or x.var not in made

    def to_atom(self, x: Any) -> Any:
        if type(x) is PartialTracer and x._trace is self:
            return x.var
        return Literal(x, get_aval(x))

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        for x in args:
            if type(x) is PartialTracer and x._trace is self:
                break
        else:
            previous = state.trace
            state.trace = self.parent
            try:
                return self.parent.process_primitive(primitive, args, params)
            finally:
                state.trace = previous
        rule = partial_evals.get(primitive)
        if rule is not None:
            return rule(self, *args, **params)
        return self.record(primitive, args, params)

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Appends an equation whose results are unknown and gives their tracers."""
        atoms = [self.to_atom(x) for x in args]
        many = primitive.multiple_results
        if self.parent.is_eval:
            out_avals, effects = _known_abstract_eval(primitive, atoms, params)
            place = context = None
        else:
            out_avals, effects = primitive.abstract_eval(*[a.aval for a in atoms], **params)
            place = source.current(current_name_stack()[self.scopes_outside:])
            context = metadata.current()
        outvars = [Var(a) for a in out_avals] if many else [Var(out_avals)]
        self.eqns.append(JaxprEqn(atoms, outvars, primitive, params, effects, place, context))
        self._has_references |= primitive.ref_primitive
        outs = [PartialTracer(self, v) for v in outvars]
        return outs if many else outs[0]

    def run_known(self, fun: Callable, *args: Any, **params: Any) -> Any:
        """Runs `fun` on the trace outside; for partial evaluation rules."""
        with set_current_trace(self.parent):
            return fun(*args, **params)

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        if any(map(self.is_unknown, args)):
            return fun(*args)  # what is recorded is linear: it will be transposed, not differentiated
        with set_current_trace(self.parent):
            return self.parent.process_custom_jvp_call(primitive, fun, jvp, args, symbolic_zeros=symbolic_zeros)

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        if any(map(self.is_unknown, args)):
            return fun(*args)
        with set_current_trace(self.parent):
            return self.parent.process_custom_vjp_call(
                primitive, fun, fwd, bwd, args, out_trees=out_trees, symbolic_zeros=symbolic_zeros)

    def finish(self) -> list[JaxprEqn]:
        """Ends the trace and gives its record, which it lets go of: tracers point back at it."""
        eqns, self.eqns = self.eqns, []
        self.invalidate()
        return eqns

    def __repr__(self) -> str:
        return "PartialTrace"


_evaluated: dict[Any, Any] = {}


def _known_abstract_eval(primitive: Primitive, atoms: Sequence[Any], params: dict[str, Any]) -> Any:
    """A primitive's abstract evaluation, remembered: eager gradients record the same equations again and again."""
    try:
        # (types that tell that an array is replicated are equal over all meshes)
        key = (primitive, *[a.aval for a in atoms], *params.items(), mesh.state.abstract if avals.explicit else None)
        found = _evaluated.get(key)
    except TypeError:
        return primitive.abstract_eval(*[a.aval for a in atoms], **params)
    if found is None:
        found = primitive.abstract_eval(*[a.aval for a in atoms], **params)
        if not found[1]:  # effects may name axes or references of this very place
            if len(_evaluated) > 4096:
                _evaluated.clear()
            _evaluated[key] = found
    return found


def bind_linear(primitive: Primitive, *args: Any, **params: Any) -> Any:
    """Binds a primitive of residuals and tangents: a tape records it as it is, without splitting it."""
    trace = state.trace
    if isinstance(trace, PartialTrace):
        return trace.record(primitive, args, params)
    return primitive.bind(*args, **params)


def close_record(eqns: Sequence[JaxprEqn], invars: Sequence[Var], outs: Sequence[Any],
                 debug_info: DebugInfo = no_debug_info) -> tuple[Jaxpr, list[Any]]:
    """The recorded equations that `outs` need as a program, and the residuals that it reads.

    `outs` are variables or `Literal`s. The program's inputs are the residuals and then `invars`.
    Known scalars from Python stay literals.
    """
    kept = live_eqns(eqns, outs)
    residuals: list[Any] = []
    residual_vars: dict[int, Var] = {}

    def atom(a: Any) -> Any:
        if type(a) is not Literal or isinstance(a.val, (bool, int, float, complex, np.generic)):
            return a
        var = residual_vars.get(id(a.val))
        if var is None:
            var = residual_vars[id(a.val)] = Var(a.aval)
            residuals.append(a.val)
        return var

    new_eqns = [
        eqn.replace(invars=[atom(a) for a in eqn.invars])
        if any(type(a) is Literal for a in eqn.invars) else eqn
        for eqn in kept
    ]
    outvars = [atom(a) for a in outs]
    return Jaxpr([], [*residual_vars.values(), *invars], outvars, new_eqns, None, debug_info), residuals


def live_eqns(eqns: Sequence[JaxprEqn], outs: Sequence[Any]) -> list[JaxprEqn]:
    """The equations that results or effects depend on, in order."""
    used = {a for a in outs if type(a) is not Literal}
    kept = []
    for eqn in reversed(eqns):
        if any(v in used for v in eqn.outvars) or has_effects(eqn):
            kept.append(eqn)
            used.update(a for a in eqn.invars if type(a) is not Literal)
    kept.reverse()
    return kept


# Splitting jaxprs


def partial_eval_jaxpr(closed: ClosedJaxpr, unknown_in: Sequence[bool],
                       instantiate: bool | Sequence[bool] = False,
                       ) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[Any]]:
    """Splits a program in the part that known inputs suffice for and the rest.

    Args:
      closed: the program.
      unknown_in: for each input, whether it is unknown.
      instantiate: for each result (or all), whether to compute it in the unknown part in any case.

    Returns:
      `(known, unknown, unknown_out, residual_avals)`: `known` takes the known inputs and gives the
      known results and then the residuals; `unknown` takes the residuals and then the unknown inputs
      and gives the results that `unknown_out` marks.
    """
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(closed.jaxpr.outvars)
    known, unknown, unknown_out = _partial_eval_jaxpr(
        closed, tuple(map(bool, unknown_in)), tuple(map(bool, instantiate)))
    num_residuals = len(unknown.in_avals) - sum(map(bool, unknown_in))
    return known, unknown, list(unknown_out), unknown.in_avals[:num_residuals]


@per_jaxpr
def _partial_eval_jaxpr(closed: ClosedJaxpr, unknown_in: tuple[bool, ...],
                        instantiate: tuple[bool, ...]) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple[bool, ...]]:
    avals = closed.in_avals
    made: list[Any] = []

    def known_part(*known: Any) -> list[Any]:
        trace = PartialTrace(state.trace)
        given = iter(known)
        args = [trace.new_arg(a) if u else next(given) for a, u in zip(avals, unknown_in, strict=True)]
        with set_current_trace(trace):
            outs = _eval_partially(closed, args, trace, unknown_in)
        unknown_out = tuple(trace.is_unknown(x) or i for x, i in zip(outs, instantiate, strict=True))
        invars = [x.var for x, u in zip(args, unknown_in, strict=True) if u]
        out_atoms = [trace.to_atom(x) for x, u in zip(outs, unknown_out, strict=True) if u]
        jaxpr, residuals = close_record(trace.finish(), invars, out_atoms, closed.debug_info)
        made.append((jaxpr, unknown_out))
        return [*(x for x, u in zip(outs, unknown_out, strict=True) if not u), *residuals]

    known_avals = [a for a, u in zip(avals, unknown_in, strict=True) if not u]
    known = trace_to_jaxpr(known_part, known_avals, closed.debug_info)
    (unknown, unknown_out), = made
    return known, ClosedJaxpr(unknown, ()), unknown_out


def _eval_partially(closed: ClosedJaxpr, args: Sequence[Any], trace: PartialTrace,
                    unknown_in: Sequence[bool]) -> list[Any]:
    """Runs a program on a partial trace. References that unknown values are written to are unknown."""
    forced = unknown_refs(closed.jaxpr, unknown_in)
    if not forced:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    env: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(closed.jaxpr.invars, args, strict=True))
    for eqn in closed.jaxpr.eqns:
        ins = [a.value if type(a) is Literal else env[a] for a in eqn.invars]
        if eqn.outvars and eqn.outvars[0] in forced:
            env[eqn.outvars[0]] = trace.record(eqn.primitive, ins, eqn.params)
            continue
        with source.inherit(eqn.source_info), in_its_mesh(eqn):
            out = eqn.primitive.bind(*ins, **eqn.primitive.get_bind_params(eqn.params))
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return [a.value if type(a) is Literal else env[a] for a in closed.jaxpr.outvars]


def unknown_refs(jaxpr: Jaxpr, unknown_in: Sequence[bool]) -> set[Var]:
    """The references that a program makes and that unknown values are written to."""
    made = {v for e in jaxpr.eqns for v in e.outvars if isinstance(v.aval, AbstractRef)}
    if not made:
        return set()
    forced: set[Var] = set()
    while True:
        unknown: set[Any] = {v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if u} | forced
        before = len(forced)
        for eqn in jaxpr.eqns:
            if any(type(a) is not Literal and a in unknown for a in eqn.invars):
                unknown.update(eqn.outvars)
                forced.update(eqn.invars[e.input_index] for e in eqn.effects
                              if isinstance(e, (WriteEffect, AccumEffect)) and eqn.invars[e.input_index] in made)
        if len(forced) == before:
            return forced


# Splitting with a choice of what to keep


class Recompute:
    """A policy's answer: compute the value again where it is needed."""


class Saveable:
    """A policy's answer: keep the value."""


class Offloadable:
    """A policy's answer: keep the value in another memory."""

    __slots__ = ("src", "dst")

    def __init__(self, src: str, dst: str):
        self.src = src
        self.dst = dst


def partial_eval_jaxpr_custom(
    jaxpr: Jaxpr, unknown_in: Sequence[bool], instantiated_in: bool | Sequence[bool],
    ensure_unknown_out: bool | Sequence[bool], ensure_instantiated_out: bool | Sequence[bool],
    saveable: Callable[..., Any],
) -> tuple[Jaxpr, Jaxpr, list[bool], list[bool], int]:
    """Splits a program where the second part may compute known values again.

    Args:
      jaxpr: the program, without constants.
      unknown_in: which inputs are unknown to the first part.
      instantiated_in: which inputs the second part is given.
      ensure_unknown_out, ensure_instantiated_out: which results the second part gives in any case.
      saveable: `saveable(primitive, *avals, **params)`: whether known results of an equation are kept
        for the second part (True or `Saveable`) or computed again there (False or `Recompute`).

    Returns:
      `(known, staged, unknown_out, instantiated_out, num_residuals)`: `known` takes the known inputs
      and gives the known results and then the residuals; `staged` takes the residuals and then the
      instantiated inputs and gives the instantiated results.
    """
    spread = lambda x, n: [x] * n if isinstance(x, bool) else list(x)
    instantiated_in = spread(instantiated_in, len(jaxpr.invars))
    ensure_unknown_out = spread(ensure_unknown_out, len(jaxpr.outvars))
    ensure_instantiated_out = spread(ensure_instantiated_out, len(jaxpr.outvars))
    unknown = {v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if u}
    staged_vars = {v for v, i, u in zip(jaxpr.invars, instantiated_in, unknown_in, strict=True) if i or u}
    residuals: dict[Var, None] = {}

    def need(atoms: Sequence[Any]) -> None:
        for a in atoms:
            if type(a) is not Literal and a not in staged_vars:
                residuals[a] = None

    known_eqns: list[JaxprEqn] = []
    staged_eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        unknown_here = [type(a) is not Literal and a in unknown for a in eqn.invars]
        rule = partial_eval_jaxpr_customs.get(eqn.primitive)
        if rule is not None:
            staged_here = [type(a) is Literal or a in staged_vars for a in eqn.invars]
            known_eqn, staged_eqn, unknown_outs, staged_outs, new = rule(
                saveable, unknown_here, staged_here, eqn)
            if known_eqn is not None:
                known_eqns.append(known_eqn)
            residuals.update(dict.fromkeys(new))
            if staged_eqn is not None:
                need([a for a in staged_eqn.invars if a not in residuals])
                staged_eqns.append(staged_eqn)
            unknown.update(v for v, u in zip(eqn.outvars, unknown_outs, strict=True) if u)
            staged_vars.update(v for v, i in zip(eqn.outvars, staged_outs, strict=True) if i)
        elif any(unknown_here):
            need(eqn.invars)
            staged_eqns.append(eqn)
            unknown.update(eqn.outvars)
            staged_vars.update(eqn.outvars)
        else:
            known_eqns.append(eqn)
            answer = saveable(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)
            if not is_saved(answer) and not remat_allowed_effects.filter_not_in(eqn.effects) and (
                    not _touches_refs(eqn)):
                need(eqn.invars)
                staged_eqns.append(eqn)
                staged_vars.update(eqn.outvars)
    unknown_out = [e or (type(v) is not Literal and v in unknown)
                   for v, e in zip(jaxpr.outvars, ensure_unknown_out, strict=True)]
    instantiated_out = [e or u for u, e in zip(unknown_out, ensure_instantiated_out, strict=True)]
    staged_outs = [v for v, i in zip(jaxpr.outvars, instantiated_out, strict=True) if i]
    need(staged_outs)
    res = list(residuals)
    known_ins = [v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if not u]
    known_outs = [v for v, u in zip(jaxpr.outvars, unknown_out, strict=True) if not u]
    known = Jaxpr([], known_ins, known_outs + res, known_eqns, None, jaxpr.debug_info)
    staged_ins = [v for v, i, u in zip(jaxpr.invars, instantiated_in, unknown_in, strict=True) if i or u]
    staged = Jaxpr([], res + staged_ins, staged_outs, staged_eqns, None, jaxpr.debug_info)
    return maybe_check(known), maybe_check(staged), unknown_out, instantiated_out, len(res)


def _touches_refs(eqn: JaxprEqn) -> bool:
    """What a reference holds cannot be computed again by reading it again."""
    return any(isinstance(v.aval, AbstractRef) for v in (*eqn.invars, *eqn.outvars))


def is_saved(answer: Any) -> bool:
    """Whether a policy's answer (a boolean or one of the classes above) keeps the value."""
    if answer is Recompute or isinstance(answer, Recompute):
        return False
    return answer is Saveable or isinstance(answer, Saveable | Offloadable) or bool(answer)
