"""Programs with references as programs without: their contents are threaded through as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs import rules
from ..core.programs.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    Literal,
    Var,
    close_jaxpr,
    eval_jaxpr,
    jaxprs_in_params,
)
from ..core.tracing import source
from ..core.tracing.staging import trace_to_jaxpr
from ..core.types.avals import AbstractRef
from .aliasing import check_arguments
from .custom_calls import CustomJVPCall, CustomVJPCall, custom_jvp_call_p, custom_vjp_call_p
from .jit_rules import jit_p
from .memo import per_jaxpr
from .ref_indexing import read, write
from .references import addupdate_p, freeze_p, get_p, new_ref_p, swap_p


def _discharge_get(in_avals: Any, out_avals: Any, x: Any, *idx: Any, tree: Any) -> Any:
    return [None] * (1 + len(idx)), read(x, tree.unflatten(idx))


def _discharge_swap(in_avals: Any, out_avals: Any, x: Any, value: Any, *idx: Any, tree: Any) -> Any:
    transforms = tree.unflatten(idx)
    return [write(x, transforms, value), None, *(None,) * len(idx)], read(x, transforms)


def _discharge_addupdate(in_avals: Any, out_avals: Any, x: Any, value: Any, *idx: Any, tree: Any) -> Any:
    return [write(x, tree.unflatten(idx), value, add=True), None, *(None,) * len(idx)], []


def _discharge_jit(in_avals: Any, out_avals: Any, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    new = discharge_closed(jaxpr)
    n = len(jaxpr.jaxpr.outvars)
    changed = [i for i, a in enumerate(jaxpr.in_avals) if isinstance(a, AbstractRef)]
    params = {
        **params,
        "out_shardings": params["out_shardings"] + tuple(params["in_shardings"][i] for i in changed),
        "out_layouts": params["out_layouts"] + tuple(params["in_layouts"][i] for i in changed),
    }
    outs = jit_p.bind(*args, jaxpr=new, **params)
    contents: list[Any] = [None] * len(args)
    for i, x in zip(changed, outs[n:], strict=True):
        contents[i] = x
    return contents, outs[:n]


def _discharge_custom(primitive: CustomJVPCall | CustomVJPCall, in_avals: Any, args: Sequence[Any],
                      call_jaxpr: ClosedJaxpr, params: dict[str, Any]) -> Any:
    """A call keeps its rule, but for one that changes its arguments: that is run as it is written."""
    new = discharge_closed(call_jaxpr)
    changed = [i for i, a in enumerate(in_avals) if isinstance(a, AbstractRef)]
    contents: list[Any] = [None] * len(args)
    if not changed:
        return contents, primitive.bind(*args, **primitive.get_bind_params({**params, "call_jaxpr": new}))
    outs = eval_jaxpr(new.jaxpr, new.consts, *args)
    n = len(call_jaxpr.jaxpr.outvars)
    for i, x in zip(changed, outs[n:], strict=True):
        contents[i] = x
    return contents, outs[:n]


rules.discharges.update({
    get_p: _discharge_get, swap_p: _discharge_swap, addupdate_p: _discharge_addupdate, jit_p: _discharge_jit,
    custom_jvp_call_p: lambda in_avals, _, *args, call_jaxpr, **params: _discharge_custom(
        custom_jvp_call_p, in_avals, args, call_jaxpr, params),
    custom_vjp_call_p: lambda in_avals, _, *args, call_jaxpr, **params: _discharge_custom(
        custom_vjp_call_p, in_avals, args, call_jaxpr, params),
})


@per_jaxpr
def discharge_closed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program without references.

    Each input that is a reference becomes its contents; after the results come the final contents of
    the inputs that are references, in order.
    """
    avals = [a.inner_aval if isinstance(a, AbstractRef) else a for a in closed.in_avals]
    if not has_refs(closed.jaxpr):
        return closed
    is_ref = [isinstance(a, AbstractRef) for a in closed.in_avals]

    def discharged(*args: Any) -> list[Any]:
        outs, contents = eval_discharged(closed.jaxpr, closed.consts, args)
        return [*outs, *(c for c, r in zip(contents, is_ref, strict=True) if r)]

    return trace_to_jaxpr(discharged, avals, closed.debug_info)


def has_refs(jaxpr: Jaxpr) -> bool:
    """Whether a program uses references at its own level or makes some, or passes some on.

    References inside of what has no rule here (`pallas_call`) are its own affair.
    """
    found = jaxpr.cache.get("has_refs")
    if found is None:
        found = jaxpr.cache["has_refs"] = any(
            isinstance(v.aval, AbstractRef)
            for v in [*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)])
        if not found:
            found = jaxpr.cache["has_refs"] = any(
                has_refs(inner) for e in jaxpr.eqns if e.primitive in rules.discharges
                for inner in jaxprs_in_params(e.params))
    return found


def eval_discharged(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Runs a program on contents in place of references: its results, and every input's final contents."""
    env: dict[Var, Any] = {}
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def value(a: Any) -> Any:
        return a.value if type(a) is Literal else env[a]

    for eqn in jaxpr.eqns:
        primitive = eqn.primitive
        ins = [value(a) for a in eqn.invars]
        if primitive is new_ref_p or primitive is freeze_p:
            env[eqn.outvars[0]] = ins[0]
            continue
        touches = any(isinstance(a.aval, AbstractRef) for a in eqn.invars)
        if touches or (primitive in rules.discharges and any(
                map(has_refs, jaxprs_in_params(eqn.params)))):
            rule = rules.discharges.get(primitive)
            if rule is None:
                raise NotImplementedError(f"No state discharge rule implemented for primitive: {primitive}")
            with source.inherit(eqn.source_info):
                contents, out = rule([a.aval for a in eqn.invars], [v.aval for v in eqn.outvars], *ins, **eqn.params)
            for a, x in zip(eqn.invars, contents, strict=True):
                if x is not None:
                    env[a] = x
        else:
            with source.inherit(eqn.source_info):
                out = primitive.bind(*ins, **primitive.get_bind_params(eqn.params))
        if primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return [value(a) for a in jaxpr.outvars], [env[v] for v in jaxpr.invars]


def discharge_state(jaxpr: Jaxpr, consts: Sequence[Any], *,
                    should_discharge: bool | Sequence[bool] = True) -> tuple[Jaxpr, list[Any]]:
    """`discharge_closed` of a program and its constants, which may be abstract: `(new jaxpr, constants)`."""
    closed = discharge_closed(ClosedJaxpr(jaxpr, consts) if consts or jaxpr.constvars else close_jaxpr(jaxpr))
    return closed.jaxpr, closed.consts


# Compiled programs


class OnContents:
    """A compiled program that takes references: it runs on their contents and puts new ones back.

    An operation called at once may have one reference in several places, as a loop whose condition and body both know
    it has: then it is a program of its own, in which these places are one.
    """

    __slots__ = ("closed", "code", "compile_program", "is_ref", "merged")

    def __init__(self, closed: ClosedJaxpr, compile_program: Callable[[ClosedJaxpr], Callable]):
        self.closed = closed
        self.compile_program = compile_program
        self.code = compile_program(discharge_closed(closed))
        self.merged: dict[tuple[int, ...], OnContents] = {}
        self.is_ref = [isinstance(a, AbstractRef) for a in closed.in_avals]

    def __call__(self, *args: Any) -> list[Any]:
        closed, is_ref = self.closed, self.is_ref
        given = [x for x, r in zip(args, is_ref, strict=True) if r]
        if len({id(x) for x in given}) != len(given):
            count = len(closed.debug_info.arg_names)  # what was captured comes before the arguments
            check_arguments(args[len(args) - count:], args[:len(args) - count], "jit", closed.debug_info)
            return self._with_places_merged(args)
        outs = self.code(*(x._contents() if r else x for x, r in zip(args, is_ref, strict=True)))
        count = len(closed.jaxpr.outvars)
        for ref, value in zip(given, outs[count:], strict=True):
            ref._hold(value)
        return outs[:count]

    def _with_places_merged(self, args: Sequence[Any]) -> list[Any]:
        first = {id(x): i for i, (x, r) in reversed(list(enumerate(zip(args, self.is_ref, strict=True)))) if r}
        places = tuple(first[id(x)] if r else i for i, (x, r) in enumerate(zip(args, self.is_ref, strict=True)))
        kept = sorted(set(places))
        if places not in self.merged:
            closed = self.closed

            def program(*given: Any) -> list[Any]:
                return eval_jaxpr(closed.jaxpr, closed.consts, *(given[kept.index(i)] for i in places))

            avals = [closed.in_avals[i] for i in kept]
            self.merged[places] = OnContents(trace_to_jaxpr(program, avals, closed.debug_info), self.compile_program)
        return self.merged[places](*(args[i] for i in kept))
