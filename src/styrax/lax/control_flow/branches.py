"""Branches of one conditional brought to the same operands, results and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, eval_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.transforms import ad

from .bodies import Body, forwarded_inputs, rearranged


def join_captured(bodies: Sequence[Body]) -> tuple[tuple[ClosedJaxpr, ...], list[Any]]:
    """Branches that all take everything that any of them captured."""
    position: dict[int, int] = {}
    captured: list[Any] = []
    for body in bodies:
        for c in body.captured:
            if id(c) not in position:
                position[id(c)] = len(captured)
                captured.append(c)
    layout = tuple(tuple(position[id(c)] for c in body.captured) for body in bodies)
    avals = [get_aval(c) for c in captured]
    first = bodies[0].jaxpr.jaxpr
    key = ("cond branches", layout, tuple(b.jaxpr.jaxpr for b in bodies), tuple(avals))
    branches = first.cache.get(key)
    if branches is None:
        branches = first.cache[key] = tuple(
            _take_all(b.jaxpr, at, avals) for b, at in zip(bodies, layout, strict=True)
        )
    return branches, captured


def _take_all(closed: ClosedJaxpr, positions: Sequence[int], avals: Sequence[Any]) -> ClosedJaxpr:
    own, rest = closed.jaxpr.invars[: len(positions)], closed.jaxpr.invars[len(positions) :]
    by_position = dict(zip(positions, own, strict=True))
    invars = [by_position.get(i) or Var(a) for i, a in enumerate(avals)]
    return rearranged(closed, [*invars, *rest], closed.jaxpr.outvars)


def join_residuals(
    parts: Sequence[tuple[ClosedJaxpr, ClosedJaxpr]], num_results: int
) -> tuple[tuple[ClosedJaxpr, ...], tuple[ClosedJaxpr, ...], list[int | None]]:
    """First halves that all leave residuals of the same types, and second halves that take them.

    Residuals of one type share a place, whichever branch they come from; a branch fills the places
    that it has no use for with memory of no particular contents. Operands are no residuals: they are
    passed on. Returns the halves and, for each residual, which operand of the first half it is.
    """
    places: list[tuple[Any, int | None]] = []
    takes: list[list[int]] = []
    for first, _ in parts:
        own = forwarded_inputs(first.jaxpr)[num_results:]
        avals = [v.aval for v in first.jaxpr.outvars[num_results:]]
        used: set[int] = set()
        mine = []
        for aval, operand in zip(avals, own, strict=True):
            wanted = (None if operand is not None else aval, operand)
            for n, place in enumerate(places):
                if place == wanted and (n not in used or operand is not None):
                    break
            else:
                n = len(places)
                places.append(wanted)
            used.add(n)
            mine.append(n)
        takes.append(mine)
    operands = [operand for _, operand in places]
    firsts, seconds = [], []
    num_operands = 0
    for (first, second), mine in zip(parts, takes, strict=True):
        avals = [first.in_avals[o] if o is not None else a for a, o in places]
        firsts.append(_fill_residuals(first, num_results, mine, places))
        num_operands = len(second.in_avals) - len(mine)
        seconds.append(_take_residuals(second, mine, avals, num_operands))
    return tuple(firsts), tuple(seconds), operands


def _fill_residuals(
    closed: ClosedJaxpr, num_results: int, mine: Sequence[int], places: Sequence[tuple[Any, Any]]
) -> ClosedJaxpr:
    from styrax.core.tracing.staging import trace_to_jaxpr

    def run(*args: Any) -> list[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        found = dict(zip(mine, outs[num_results:], strict=True))
        return outs[:num_results] + [
            found[n] if n in found else ad.zeros_like_aval(aval)
            for n, (aval, operand) in enumerate(places)
            if operand is None
        ]

    return trace_to_jaxpr(run, closed.in_avals, closed.debug_info)


def _take_residuals(
    closed: ClosedJaxpr, mine: Sequence[int], avals: Sequence[Any], num_operands: int
) -> ClosedJaxpr:
    own = closed.jaxpr.invars[: len(mine)]
    rest = closed.jaxpr.invars[len(mine) :]
    invars = [Var(a) for a in avals]
    replaced: dict[Var, Var] = {}
    for v, n in zip(own, mine, strict=True):
        replaced[v] = invars[n]
    jaxpr = closed.jaxpr

    def new(v: Any) -> Any:
        return v if type(v) is Literal else replaced.get(v, v)

    eqns = [e.replace(invars=[new(v) for v in e.invars]) for e in jaxpr.eqns]
    outvars = [new(v) for v in jaxpr.outvars]
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, [*invars, *rest], outvars, eqns, None, jaxpr.debug_info), closed.consts
    )
