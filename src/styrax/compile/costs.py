"""Estimates of a program's work, read off its loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.types.index_type import INDEX
from .ir.expr import COSTS, LOADS, MAX_SIZE, TRANSCENDENTAL, Expr, walk
from .ir.loopir import Call, Copy, Fold, Loop, Statement, Store, While, statements

if TYPE_CHECKING:
    from .ir.placement import Placement
    from .program import Program

# Keep or compute again: estimated instructions of a value
WORTH_KEEPING = 3  # a value of this cost that is read twice, or again and again, is stored
WORTH_REPEATING = 6  # of one that is stored anyway, up to which a later pass over the same loops computes it again

HORIZONTAL = 10  # estimated instructions that fold the lanes of a reduction


def analyse(program: Program) -> dict[str, float]:
    """Counts of arithmetic operations, transcendental ones, and bytes read and written."""
    totals = {"flops": 0.0, "transcendentals": 0.0, "bytes accessed": 0.0}
    _count(program.statements, 1.0, totals, program.placement)
    return totals


def _count(body: Sequence[Statement], times: float, totals: dict[str, float], placement: Placement) -> None:
    for s in body:
        for n in walk([e for e in s.exprs() if isinstance(e, Expr)]):
            if n.op in LOADS:
                totals["bytes accessed"] += times * n.dtype.itemsize
            elif n.dtype is not INDEX and n.dtype.kind in "fiu" and COSTS.get(n.op, 1) and n.op != "select":
                totals["transcendentals" if n.op in TRANSCENDENTAL else "flops"] += times
        if isinstance(s, Store):
            totals["bytes accessed"] += times * s.buffer.dtype.itemsize
        elif isinstance(s, Fold):
            if any(e.op != "get" for e in s.values):  # sums of blocks are put together as the order of sums has it
                totals["flops"] += times
        elif isinstance(s, Copy) and placement.root(s.target) is not placement.root(s.source):
            count = s.count if isinstance(s.count, int) else 1
            totals["bytes accessed"] += times * 2 * count * s.target.dtype.itemsize
        for inner, trips in zip(s.bodies(), turns(s, 1.0, lanes=False), strict=True):
            _count(inner, times * trips, totals, placement)


def size(body: Sequence[Statement]) -> float:
    """Roughly how many instructions stand in the code, whose loops' bodies stand there once."""
    return sum(1 + sum(e.cost for e in s.exprs()) for s in statements(body))


def instructions(body: Sequence[Statement], times: float = 1.0, endless: float = math.inf) -> float:
    """Roughly how many instructions a call executes, if loops that may never end by themselves turn `endless` times;
    infinity where the length of others is not known."""
    total = 0.0
    for s in body:
        if isinstance(s, While):
            if not s.open_ended or endless == math.inf:
                return math.inf
            total += times * endless * (1 + sum(e.cost for e in s.exprs()))
            total += sum(instructions(inner, times * endless, endless) for inner in s.bodies()) if endless else 0.0
            continue
        if isinstance(s, Call):
            total += times * s.work
        total += times * (1 + sum(e.cost for e in s.exprs()))
        if isinstance(s, Copy):
            total += times * (1 + s.count / 32) if isinstance(s.count, int) else math.inf
        for inner, trips in zip(s.bodies(), turns(s, math.inf), strict=True):
            if trips:  # (for ever of nothing is nothing)
                total += instructions(inner, times * trips, endless)
    return total


def turns(s: Statement, unknown: float, lanes: bool = True) -> Sequence[float]:
    """How often each of a statement's bodies is run; of vectors, or without `lanes` of their elements. `unknown` stands
    for an extent that only a call knows."""
    if not isinstance(s, Loop):
        return [1.0] * len(s.bodies())
    most = s.extent if isinstance(s.extent, int) else s.extent.bounds[1]
    if most >= MAX_SIZE:
        return [unknown] * len(s.bodies())
    if s.rest is not None:
        return most // s.width, most % s.width
    return (-(-most // max(s.width, 1)) if lanes else most,)
