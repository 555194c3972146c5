"""Dead code: what nothing needs is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..types.effects import NamedAxisEffect, ReadEffect
from .check import maybe_check
from .jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, no_debug_info
from .rules import dces


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool],
              instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool]]:
    """Drops the results that are not used and everything that only they needed.

    Equations with effects stay. Returns the new program and which inputs it still has; inputs that
    `instantiate` marks are kept.
    """
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(jaxpr.invars)
    key = ("dce", tuple(used_outputs), tuple(instantiate))
    found = jaxpr.cache.get(key)
    if found is None:
        found = jaxpr.cache[key] = _dce_jaxpr(jaxpr, key[1], key[2])
    return found[0], list(found[1])


def _dce_jaxpr(jaxpr: Jaxpr, used_outputs: tuple[bool, ...],
               instantiate: tuple[bool, ...]) -> tuple[Jaxpr, list[bool]]:
    outvars = [v for v, u in zip(jaxpr.outvars, used_outputs, strict=True) if u]
    used: set[Any] = {v for v in outvars if type(v) is not Literal}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        used_outs = [v in used for v in eqn.outvars]
        rule = dces.get(eqn.primitive)
        if rule is not None:
            used_ins, new_eqn = rule(used_outs, eqn)
        elif any(used_outs) or has_effects(eqn):
            used_ins, new_eqn = None, eqn
        else:
            continue
        if new_eqn is not None:
            if not all(v in used for v in new_eqn.outvars):
                new_eqn = new_eqn.replace(outvars=[
                    v if v in used or type(v) is DropVar else DropVar(v.aval) for v in new_eqn.outvars])
            eqns.append(new_eqn)
        if used_ins is None:
            used.update(v for v in eqn.invars if type(v) is not Literal)
        else:
            used.update(v for v, u in zip(eqn.invars, used_ins, strict=True) if u and type(v) is not Literal)
    eqns.reverse()
    used_inputs = [v in used or i for v, i in zip(jaxpr.invars, instantiate, strict=True)]
    invars = [v for v, u in zip(jaxpr.invars, used_inputs, strict=True) if u]
    debug_info = jaxpr.debug_info
    if len(debug_info.arg_names) == len(used_inputs):
        debug_info = debug_info.replace(
            arg_names=[n for n, u in zip(debug_info.arg_names, used_inputs, strict=True) if u])
    if len(debug_info.result_paths) == len(used_outputs):
        debug_info = debug_info.replace(
            result_paths=[n for n, u in zip(debug_info.result_paths, used_outputs, strict=True) if u])
    new = Jaxpr(jaxpr.constvars, invars, outvars, eqns, None, debug_info)
    return maybe_check(new), used_inputs


def has_effects(eqn: JaxprEqn) -> bool:
    """Whether an equation does something besides giving its results: reading a reference is nothing,
    and neither is naming a mapped axis."""
    return any(not isinstance(e, (ReadEffect, NamedAxisEffect)) for e in eqn.effects)


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool],
                     instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`, and drops unused constants too: `(jaxpr, used_consts, used_inputs)`."""
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(jaxpr.invars)
    opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars], debug_info=no_debug_info)
    new, used = dce_jaxpr(opened, used_outputs, [False] * len(jaxpr.constvars) + list(instantiate))
    n = len(jaxpr.constvars)
    num_consts = sum(used[:n])
    closed = new.replace(constvars=new.invars[:num_consts], invars=new.invars[num_consts:],
                         debug_info=jaxpr.debug_info)
    return closed, used[:n], used[n:]


def dce_closed(closed: ClosedJaxpr, used_outputs: Sequence[bool],
               instantiate: bool | Sequence[bool] = False) -> tuple[ClosedJaxpr, list[bool]]:
    """Dead-code elimination of a program with its constants."""
    jaxpr, used_consts, used_inputs = dce_jaxpr_consts(closed.jaxpr, used_outputs, instantiate)
    consts = [c for c, u in zip(closed.consts, used_consts, strict=True) if u]
    return ClosedJaxpr(jaxpr, consts), used_inputs


def without_dead_code(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program of the same inputs and results whose every equation is needed."""
    return dce_closed(closed, [True] * len(closed.jaxpr.outvars), True)[0]


def dce_call(used_outputs: Sequence[bool], eqn: JaxprEqn, prune: Callable[[], tuple[Any, list[bool]]],
             changes: Callable[[Any, list[bool]], dict[str, Any]]) -> tuple[list[bool], JaxprEqn | None]:
    """The rule of an equation that calls a program. `prune` gives the smaller program and which inputs it still
    has, `changes` the parts of the equation that differ."""
    if not any(used_outputs) and not has_effects(eqn):
        return [False] * len(eqn.invars), None
    new, used_inputs = prune()
    return used_inputs, eqn.replace(
        invars=[v for v, u in zip(eqn.invars, used_inputs, strict=True) if u],
        outvars=[v for v, u in zip(eqn.outvars, used_outputs, strict=True) if u],
        **changes(new, used_inputs))
