"""What a checkpoint's policy keeps of a conditional or a loop: it is asked about the equations inside.

Each branch or step is cut in two: a first part that gives the results and what is kept besides, and a second part that
computes the rest again. A loop keeps a value of each step, stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from styrax.core.programs import dead_code, rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from styrax.core.types.avals import AbstractRef, stacked
from styrax.transforms.partial import partial_eval_jaxpr_custom

from .bodies import either, select_where, split_list
from .branches import join_residuals
from .conditionals import cond_p
from .scans import scan_p

Policy = Callable[..., Any]
Split = tuple[JaxprEqn | None, JaxprEqn | None, list[bool], list[bool], list[Var]]


def _cut(closed: ClosedJaxpr, saveable: Policy) -> tuple[ClosedJaxpr, ClosedJaxpr, int]:
    """`known`, which gives results and then residuals; `again`, which takes residuals and then all arguments of the
    program and gives the results; and how many residuals there are."""
    jaxpr, n = closed.jaxpr, len(closed.consts)
    opened = Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, None, jaxpr.debug_info)
    known, again, _, _, count = partial_eval_jaxpr_custom(
        opened, [False] * len(opened.invars), True, False, True, saveable)
    known = known.replace(constvars=known.invars[:n], invars=known.invars[n:])
    again = again.replace(constvars=again.invars[count:count + n],
                          invars=again.invars[:count] + again.invars[count + n:])
    return ClosedJaxpr(known, closed.consts), ClosedJaxpr(again, closed.consts), count


def _whole(eqn: JaxprEqn, unknown_in: Sequence[bool]) -> Split | None:
    """The split of an equation that is not cut: it waits for an argument, or references are written once."""
    n = len(eqn.outvars)
    if any(unknown_in):
        return None, eqn, [True] * n, [True] * n, []
    if any(isinstance(v.aval, AbstractRef) for v in eqn.invars):
        return eqn, None, [False] * n, [False] * n, []
    return None


def _made(again: ClosedJaxpr, count: int) -> list[str]:
    """Where the results of the second part come from: a residual, what is given anyway, or computed again."""
    arguments = again.jaxpr.invars
    places = dict.fromkeys(arguments[:count], "residual") | dict.fromkeys(arguments[count:], "given")
    return ["given" if type(v) is Literal else places.get(v, "computed") for v in again.jaxpr.outvars]


def _split_cond(saveable: Policy, unknown_in: Sequence[bool], staged_in: Sequence[bool], eqn: JaxprEqn) -> Split:
    whole = _whole(eqn, unknown_in)
    if whole is not None:
        return whole
    parts = [_cut(b, saveable) for b in eqn.params["branches"]]
    n = len(eqn.outvars)
    if not any(count for _, _, count in parts):
        return eqn, eqn, [False] * n, [True] * n, []
    made = [_made(again, count) for _, again, count in parts]
    wanted = ["computed" in places or "residual" not in places for places in zip(*made, strict=True)]
    pruned = []
    for known, again, count in parts:
        body, used = dead_code.dce_jaxpr(again.jaxpr, wanted, [False] * count + [True] * (len(eqn.invars) - 1))
        outvars = known.jaxpr.outvars
        first = known.jaxpr.replace(outvars=[*outvars[:n], *select_where(outvars[n:], used[:count])])
        pruned.append((ClosedJaxpr(first, known.consts), ClosedJaxpr(body, again.consts)))
    firsts, seconds, _ = join_residuals(pruned, n)
    residuals = [Var(a) for a in firsts[0].out_avals[n:]]
    known_eqn = eqn.replace(outvars=[*eqn.outvars, *residuals], params=dict(branches=firsts))
    index, *operands = eqn.invars
    again_eqn = _pruned(eqn.replace(invars=[index, *residuals, *operands], outvars=select_where(eqn.outvars, wanted),
                                    params=dict(branches=seconds)))
    return known_eqn, again_eqn, [False] * n, wanted, residuals


def _pruned(eqn: JaxprEqn) -> JaxprEqn | None:
    """The equation without arguments that it does not use; None where it has no results."""
    return rules.dces[eqn.primitive]([True] * len(eqn.outvars), eqn)[1] if eqn.outvars else None


def _split_scan(saveable: Policy, unknown_in: Sequence[bool], staged_in: Sequence[bool], eqn: JaxprEqn) -> Split:
    whole = _whole(eqn, unknown_in)
    if whole is not None:
        return whole
    params, n = eqn.params, len(eqn.outvars)
    num_consts, num_carry, length = params["num_consts"], params["num_carry"], params["length"]
    known, again, count = _cut(params["jaxpr"], saveable)
    if not count:
        return eqn, eqn, [False] * n, [True] * n, []
    wanted_carry, wanted_ys = split_list([m != "residual" for m in _made(again, count)], [num_carry])
    while True:  # a carry that a step reads has to be computed
        body, used = dead_code.dce_jaxpr(again.jaxpr, wanted_carry + wanted_ys, [
            *[False] * (count + num_consts), *wanted_carry, *[False] * (len(eqn.invars) - num_consts - num_carry)])
        joined = either(wanted_carry, used[count + num_consts:count + num_consts + num_carry])
        if joined == wanted_carry:
            break
        wanted_carry = joined
    of_residuals, of_args = used[:count], used[count:]
    given = select_where(known.jaxpr.outvars[n:], of_residuals)
    ys = {v: eqn.outvars[i] for i, v in enumerate(known.jaxpr.outvars[:n]) if i >= num_carry and type(v) is not Literal}
    new = {v: Var(stacked(v.aval, length)) for v in given if v not in ys}
    first = known.jaxpr.replace(outvars=[*known.jaxpr.outvars[:n], *new])
    known_eqn = eqn.replace(outvars=[*eqn.outvars, *new.values()],
                            params=dict(params, jaxpr=ClosedJaxpr(first, known.consts)))
    residuals = [ys.get(v) or new[v] for v in given]
    stacks, arguments = split_list(body.invars, [len(given)])
    second = body.replace(invars=[*arguments, *stacks])
    wanted = wanted_carry + wanted_ys
    again_eqn = eqn.replace(
        invars=[*select_where(eqn.invars, of_args), *residuals], outvars=select_where(eqn.outvars, wanted),
        params=dict(params, jaxpr=ClosedJaxpr(second, again.consts), num_consts=sum(of_args[:num_consts]),
                    num_carry=sum(wanted_carry)))
    return known_eqn, again_eqn if again_eqn.outvars else None, [False] * n, wanted, residuals


rules.partial_eval_jaxpr_customs[cond_p] = _split_cond
rules.partial_eval_jaxpr_customs[scan_p] = _split_scan
