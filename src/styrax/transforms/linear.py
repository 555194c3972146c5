"""Reverse mode: linearization, and transposition of linear programs.

`linearize_flat` runs a function under a `JVPTrace` whose tangents go to a tape. The tape is a linear
program over known residuals; `backward_pass` runs it backwards, equation by equation, with the
primitives' transpose rules. Cotangents that nothing contributed to stay symbolic zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from ..core.programs.dead_code import without_dead_code
from ..core.programs.equation_mesh import in_its_mesh
from ..core.programs.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr, no_debug_info
from ..core.programs.name_stack import transform_name_stack
from ..core.programs.primitive import Primitive
from ..core.programs.rules import jvps, transposes
from ..core.tracing import source
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import get_aval, set_current_trace, state
from ..core.types import avals, dtypes
from ..core.types.avals import AbstractRef, AbstractValue
from ..core.types.effects import AccumEffect, WriteEffect
from ..core.types.typing import Function, PyTree
from .jvp import JVPTrace, custom_lin_p, defjvp, linear_jvp
from .memo import per_jaxpr
from .partial import PartialTrace, PartialTracer, close_record, unknown_refs
from .zeros import SymbolicZero, Zero, add_tangents, instantiate_zeros, zeros_like_aval


class UndefinedPrimal:
    """Stands for a linear argument in a transpose rule: only its abstract value is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(x: PyTree) -> bool:
    """Whether an argument of a transpose rule is one whose cotangent is asked for."""
    return type(x) is UndefinedPrimal


# Linearization


class Linearized:
    """A linear map as it was recorded: equations from `invars` to `outs` (variables, literals, zeros)."""

    __slots__ = ("eqns", "invars", "outs")

    def __init__(self, eqns: list[JaxprEqn], invars: list[Var | None], outs: list[Any]):
        self.eqns = eqns
        self.invars = invars  # None for inputs without tangents
        self.outs = outs


def linearize_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any],
                   nonzero_in: Sequence[bool] | None = None, name: str = "") -> tuple[list[Any], Linearized]:
    """Runs a flat function and records its derivative at `primals`.

    Without `nonzero_in`, the inputs that have tangents (those not of integer or boolean type) are
    perturbed. With a name, the function's scopes get it as the name of a transformation.
    """
    tape = PartialTrace(state.trace)
    trace = JVPTrace(state.trace, tape)
    args: list[Any] = []
    invars: list[Var | None] = []
    try:
        for i, p in enumerate(primals):
            aval = get_aval(p).to_tangent_aval() if nonzero_in is None or nonzero_in[i] else None
            if aval is None or getattr(aval, "dtype", None) == dtypes.float0:
                args.append(p)
                invars.append(None)
            else:
                tangent = tape.new_arg(aval)
                args.append(trace.tracer_type(trace, p, tangent))
                invars.append(tangent.var)
        with set_current_trace(trace), transform_name_stack(name) if name else nullcontext():
            results = fun(*args)
        outs: list[Any] = []
        tangents: list[Any] = []
        for x in results:
            primal, tangent = trace.to_pair(x)
            if type(primal) is PartialTracer and primal._trace is tape:
                raise ValueError("Linearization failed to produce known values for all output primals. This is "
                                 "typically caused by attempting to differentiate a function that uses an operation "
                                 "that does not support reverse-mode autodiff: its JVP rule computes results and "
                                 "tangents together.")
            outs.append(primal)
            tangents.append(tangent if type(tangent) is Zero else tape.to_atom(tangent))
        return outs, Linearized(tape.finish(), invars, tangents)
    finally:
        trace.invalidate()
        tape.invalidate()


def linearize_jaxpr(closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool] = False,
                    ) -> tuple[ClosedJaxpr, list[bool], ClosedJaxpr, list[AbstractValue]]:
    """Splits the derivative of a program in what primal values suffice for and a linear program.

    Returns:
      `(primal, nonzero_out, linear, residual_avals)`: `primal` takes the inputs and gives the results
      and then the residuals; `linear` takes the residuals and then the tangents of the inputs that
      `nonzeros` marks, and gives the tangents of the results that `nonzero_out` marks.
    """
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(closed.jaxpr.outvars)
    primal, nonzero_out, linear = _linearize_jaxpr(
        closed, tuple(map(bool, nonzeros)), tuple(map(bool, instantiate)))
    num_residuals = len(linear.in_avals) - sum(map(bool, nonzeros))
    return primal, list(nonzero_out), linear, linear.in_avals[:num_residuals]


@per_jaxpr
def _linearize_jaxpr(closed: ClosedJaxpr, nonzeros: tuple[bool, ...],
                     instantiate: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...], ClosedJaxpr]:
    made: list[Any] = []
    closed = without_dead_code(closed)

    def primal_part(*primals: Any) -> list[Any]:
        outs, record = linearize_flat(partial(eval_jaxpr, closed.jaxpr, closed.consts), primals, nonzeros)
        nonzero_out = tuple(i or type(t) is not Zero for t, i in zip(record.outs, instantiate, strict=True))
        out_atoms = [_instantiated_atom(t) for t, nz in zip(record.outs, nonzero_out, strict=True) if nz]
        avals = iter(closed.in_avals)
        # a tangent that was asked for and does not exist (an integer's) still is an input
        invars = [v if v is not None else Var(a.to_tangent_aval())
                  for v, a, nz in zip(record.invars, avals, nonzeros, strict=True) if nz]
        jaxpr, residuals = close_record(record.eqns, invars, out_atoms, closed.debug_info)
        made.append((ClosedJaxpr(jaxpr, ()), nonzero_out))
        return [*outs, *residuals]

    primal = trace_to_jaxpr(primal_part, closed.in_avals, closed.debug_info)
    (linear, nonzero_out), = made
    return primal, nonzero_out, linear


def _instantiated_atom(tangent: Any) -> Any:
    if type(tangent) is Zero:
        return Literal(instantiate_zeros(tangent), tangent.aval)
    return tangent


def linear_jaxpr(record: Linearized, debug_info: DebugInfo = no_debug_info) -> tuple[Jaxpr, list[Any], list[bool]]:
    """A recorded linear map as a program.

    Returns `(jaxpr, residuals, nonzero_out)`: the program takes the residuals and then the tangents
    of the perturbed inputs, and gives the tangents that are not symbolically zero.
    """
    nonzero_out = [type(t) is not Zero for t in record.outs]
    outs = [t for t in record.outs if type(t) is not Zero]
    jaxpr, residuals = close_record(
        record.eqns, [v for v in record.invars if v is not None], outs, debug_info)
    return jaxpr, residuals, nonzero_out


# Transposition


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], primals_in: Sequence[Any], cotangents_in: Sequence[Any],
                  unwanted: Collection[int] = ()) -> list[Any]:
    """Transposes a linear program.

    Args:
      jaxpr: a program that is linear in the inputs marked below.
      consts: values of its constants.
      primals_in: for each input its value, or `UndefinedPrimal` where the program is linear in it. For a linear
        input that is a reference: the reference that holds its cotangent.
      cotangents_in: cotangents of the results; symbolic zeros are welcome.
      unwanted: the inputs whose cotangents nobody asks for.

    Returns:
      For each input its cotangent, a symbolic zero where nothing contributed or none is wanted, and None for the inputs
      that have a value.
    """
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Var] = set()
    refs: dict[Var, Any] = {}
    for v, p in zip(jaxpr.invars, primals_in, strict=True):
        if type(p) is UndefinedPrimal:
            linear.add(v)
        elif isinstance(p, CotangentRef):
            linear.add(v)
            refs[v] = p.ref
        else:
            env[v] = p
    linear |= unknown_refs(jaxpr, [v in linear for v in jaxpr.invars])
    pending = _run_forward(jaxpr.eqns, env, linear)
    dropped = _unwanted(pending, linear, {jaxpr.invars[i] for i in unwanted}) if unwanted else set()
    cts = _transpose_eqns(pending, env, linear, refs, jaxpr.outvars, cotangents_in, dropped)
    results: list[Any] = []
    for v in jaxpr.invars:
        if v not in linear or v in refs:
            results.append(None)
        else:
            ct = cts.get(v)
            results.append(Zero(v.aval.to_cotangent_aval()) if ct is None else ct)
    return results


class CotangentRef:
    """A linear reference in a transpose: wraps the reference that accumulates its cotangent."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref = ref

    @property
    def aval(self) -> Any:
        return get_aval(self.ref)


def is_linear(x: Any) -> bool:
    """Whether an argument of a transpose rule is one that the equation is linear in."""
    return type(x) is UndefinedPrimal or isinstance(x, CotangentRef)


def cotangent_reference(x: CotangentRef) -> Any:
    """The reference that holds a linear reference's cotangent, made if there is none yet."""
    return x.ref


def _run_forward(eqns: Sequence[JaxprEqn], env: dict[Any, Any], linear: set[Var]) -> list[JaxprEqn]:
    """Evaluates the equations that no linear value enters; gives the others back."""
    pending = []
    for eqn in eqns:
        if any(type(a) is not Literal and a in linear for a in eqn.invars) or any(v in linear for v in eqn.outvars):
            linear.update(eqn.outvars)
            pending.append(eqn)
            continue
        if eqn.primitive is custom_lin_p:
            # Tangents that depend on no input of a linear map are zero (those read from a reference that holds none).
            env.update((v, zeros_like_aval(v.aval)) for v in eqn.outvars)
            continue
        params = eqn.primitive.get_bind_params(eqn.params)
        with source.inherit(eqn.source_info), in_its_mesh(eqn):
            out = eqn.primitive.bind(*(a.value if type(a) is Literal else env[a] for a in eqn.invars), **params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return pending


def _unwanted(pending: Sequence[JaxprEqn], linear: set[Var], given: set[Var]) -> set[Var]:
    """The linear variables whose cotangents would reach inputs alone whose cotangents are not wanted."""
    found = set(given)
    for eqn in pending:
        if not eqn.effects and all(a in found for a in eqn.invars if type(a) is not Literal and a in linear):
            found.update(eqn.outvars)
    return found


def _transpose_eqns(pending: Sequence[JaxprEqn], env: dict[Any, Any], linear: set[Var], refs: dict[Var, Any],
                    outs: Sequence[Any], cotangents_in: Sequence[Any], unwanted: Collection[Var] = frozenset()
                    ) -> dict[Var, Any]:
    """Runs linear equations backwards; returns the cotangents of the variables that remain."""
    cts: dict[Var, Any] = {}
    eager = state.trace.is_eval

    def accumulate(a: Any, ct: Any) -> None:
        if ct is None or type(ct) in (Zero, SymbolicZero) or type(a) is Literal or a not in linear or a in unwanted:
            return
        previous = cts.get(a)
        cts[a] = ct if previous is None else add_tangents(previous, ct)

    for a, ct in zip(outs, cotangents_in, strict=True):
        accumulate(a, ct)
    for eqn in reversed(pending):
        primitive = eqn.primitive
        outvars = eqn.outvars
        some = False
        found: list[Any] = []
        for v in outvars:
            ct = cts.pop(v, None)
            if ct is None:
                ct = Zero(v.aval.to_cotangent_aval()) if v not in refs else refs.pop(v)
            some = some or type(ct) is not Zero
            found.append(ct)
        if not some and not _writes(eqn) and not (
                primitive is custom_lin_p and _asked(eqn, pending, outs, cotangents_in)):
            continue
        args: list[Any] = []
        for a in eqn.invars:
            if type(a) is Literal:
                args.append(a.value)
            elif a not in linear:
                args.append(env[a])
            elif isinstance(a.aval, AbstractRef):
                ref = refs.get(a)
                args.append(_MissingRef(refs, a) if ref is None else CotangentRef(ref))
            else:
                args.append(UndefinedPrimal(a.aval))
        rule = transposes.get(primitive)
        if rule is None:
            raise NotImplementedError(
                f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not implemented")
        if eager and not avals.explicit:
            results = rule(found if primitive.multiple_results else found[0], *args, **eqn.params)
        else:
            with (source.inherit(eqn.source_info), in_its_mesh(eqn),
                  nullcontext() if eqn.ctx is None else eqn.ctx.manager()):
                results = rule(found if primitive.multiple_results else found[0], *args, **eqn.params)
        for a, ct in zip(eqn.invars, results, strict=True):
            accumulate(a, ct)
    return cts


def _writes(eqn: JaxprEqn) -> bool:
    return any(isinstance(e, (WriteEffect, AccumEffect)) for e in eqn.effects)


def _asked(eqn: JaxprEqn, pending: Sequence[JaxprEqn], outs: Sequence[Any], cotangents_in: Sequence[Any]) -> bool:
    """Whether the results of an equation enter what has a cotangent. A user's rule is run then, though later rules have
    made nothing of it: it may give what does not depend on it, statistics in place of derivatives."""
    entering = {a for a, ct in zip(outs, cotangents_in, strict=True) if type(ct) is not Zero and type(a) is not Literal}
    for later in reversed(pending):
        if later is eqn:
            break
        if any(v in entering for v in later.outvars):
            entering.update(a for a in later.invars if type(a) is not Literal)
    return any(v in entering for v in eqn.outvars)


class _MissingRef(CotangentRef):
    """The cotangent of a reference that nothing has contributed to yet; made when it is asked for."""

    __slots__ = ("_refs", "_var")

    def __init__(self, refs: dict[Var, Any], var: Var):
        self._refs = refs
        self._var = var

    @property
    def exists(self) -> bool:
        return self._var in self._refs

    @property
    def ref(self) -> Any:  # type: ignore[override]
        if self._var not in self._refs:
            aval = self._var.aval
            assert isinstance(aval, AbstractRef)
            self.start(zeros_like_aval(aval.inner_aval.to_cotangent_aval()))
        return self._refs[self._var]

    def start(self, value: Any) -> None:
        from .references import new_ref

        self._refs[self._var] = new_ref(value)

    @property
    def aval(self) -> Any:
        return self._var.aval.to_cotangent_aval()


def transpose_record(record: Linearized, cotangents: Sequence[Any]) -> list[Any]:
    """Pulls cotangents of the results back through a recorded linear map: one per input.

    The result has symbolic zeros where nothing contributed, and None for inputs without tangents.
    """
    linear = {v for v in record.invars if v is not None}
    for eqn in record.eqns:
        linear.update(eqn.outvars)
    outs = [t for t in record.outs if type(t) is not Zero]
    given = [ct for ct, t in zip(cotangents, record.outs, strict=True) if type(t) is not Zero]
    cts = _transpose_eqns(record.eqns, {}, linear, {}, outs, given)
    results: list[Any] = []
    for v in record.invars:
        if v is None:
            results.append(None)
        else:
            ct = cts.get(v)
            results.append(Zero(v.aval.to_cotangent_aval()) if ct is None else ct)
    return results


def transpose_jaxpr(closed: ClosedJaxpr, linear_in: Sequence[bool],
                    zero_out: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that transposes `closed` with regard to its inputs that `linear_in` marks.

    Returns:
      `(transposed, nonzero_in)`: `transposed` takes the other inputs, then the references that hold
      cotangents of linear references, then the cotangents of the results that `zero_out` does not
      mark; it gives the cotangents that `nonzero_in` marks, of the linear inputs that are no
      references.
    """
    transposed, nonzero_in = _transpose_jaxpr(closed, tuple(map(bool, linear_in)), tuple(map(bool, zero_out)))
    return transposed, list(nonzero_in)


@per_jaxpr
def _transpose_jaxpr(closed: ClosedJaxpr, linear_in: tuple[bool, ...],
                     zero_out: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    avals = closed.in_avals
    out_avals = [a.to_cotangent_aval() for a in closed.out_avals]
    made: list[tuple[bool, ...]] = []
    is_ref = [isinstance(a, AbstractRef) for a in avals]
    num_known = len(avals) - sum(linear_in)
    num_refs = sum(r and n for r, n in zip(is_ref, linear_in, strict=True))

    def transposed(*args: Any) -> list[Any]:
        known = iter(args[:num_known])
        refs = iter(args[num_known:num_known + num_refs])
        given = iter(args[num_known + num_refs:])
        primals = [
            next(known) if not n else CotangentRef(next(refs)) if r else UndefinedPrimal(a)
            for a, n, r in zip(avals, linear_in, is_ref, strict=True)
        ]
        cts = [Zero(a) if z else next(given) for a, z in zip(out_avals, zero_out, strict=True)]
        results = backward_pass(closed.jaxpr, closed.consts, primals, cts)
        wanted = [ct for ct, n, r in zip(results, linear_in, is_ref, strict=True) if n and not r]
        made.append(tuple(type(ct) is not Zero for ct in wanted))
        return [ct for ct in wanted if type(ct) is not Zero]

    in_avals = [
        *(a for a, n in zip(avals, linear_in, strict=True) if not n),
        *(a.to_cotangent_aval() for a, n, r in zip(avals, linear_in, is_ref, strict=True) if n and r),
        *(a for a, z in zip(out_avals, zero_out, strict=True) if not z),
    ]
    new = trace_to_jaxpr(transposed, in_avals, closed.debug_info)
    return new, made[0]


# Rules for the common shapes of primitives


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Sequence[Any]]) -> None:
    """Declares a primitive linear in all its arguments: `transpose_rule(cotangent, **params)` -> list."""
    primitive.declare(linear=True)
    jvps[primitive] = lambda primals, tangents, **params: linear_jvp(primitive, primals, tangents, **params)
    transposes[primitive] = lambda ct, *args, **params: _transpose_linear(
        lambda ct, *_, **params: transpose_rule(ct, **params), ct, args, params)


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Sequence[Any]]) -> None:
    """As `deflinear`, for rules that want the arguments: `transpose_rule(cotangent, *args, **params)`."""
    primitive.declare(linear=True)
    jvps[primitive] = lambda primals, tangents, **params: linear_jvp(primitive, primals, tangents, **params)
    transposes[primitive] = lambda ct, *args, **params: _transpose_linear(transpose_rule, ct, args, params)


def _transpose_linear(rule: Callable, ct: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    if type(ct) is Zero:
        return [Zero(x.aval.to_cotangent_aval()) if type(x) is UndefinedPrimal else None for x in args]
    return rule(ct, *args, **params)


def defbilinear(prim: Primitive, lhs_rule: Function, rhs_rule: Function) -> None:
    """Declares a primitive linear in each of its two arguments.

    `lhs_rule(cotangent, x, y, **params)` gives the cotangent of `x` (then an `UndefinedPrimal`),
    `rhs_rule` that of `y`.
    """
    bind = prim.bind

    def by_lhs(t: Any, x: Any, y: Any, **params: Any) -> Any:
        return bind(t, y, **params)

    def by_rhs(t: Any, x: Any, y: Any, **params: Any) -> Any:
        return bind(x, t, **params)

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        left = type(x) is UndefinedPrimal
        if left == (type(y) is UndefinedPrimal):
            raise TypeError(f"{prim} is linear in one argument at a time, not in both or none")
        if type(ct) is Zero:
            return [Zero(x.aval), None] if left else [None, Zero(y.aval)]
        return [lhs_rule(ct, x, y, **params), None] if left else [None, rhs_rule(ct, x, y, **params)]

    prim.declare(bilinear=True)
    defjvp(prim, by_lhs, by_rhs)
    transposes[prim] = transpose


def _transpose_custom_lin(cts: Sequence[Any], *args: Any, num_res: int, nonzero: tuple[bool, ...], bwd: Callable,
                          symbolic_zeros: bool, out_avals: tuple) -> list[Any]:
    shown = [
        (SymbolicZero(ct.aval) if symbolic_zeros else instantiate_zeros(ct)) if type(ct) is Zero else ct
        for ct in cts
    ]
    pulled = bwd(args[:num_res], shown)
    return [None] * num_res + [ct for ct, nz in zip(pulled, nonzero, strict=True) if nz]


transposes[custom_lin_p] = _transpose_custom_lin
