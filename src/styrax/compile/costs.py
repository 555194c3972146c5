"""Estimates of a program's work, read off its loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .expr import FREE, MAX_SIZE, Expr, walk
from .loopir import Call, Copy, Fold, Loop, Statement, Store, While

if TYPE_CHECKING:
    from .pipeline import Program

THREADED = 60_000  # estimated instructions below which a nest is not worth waking a thread for
TRANSCENDENTAL = frozenset(
    "exp exp2 expm1 log log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh pow cbrt erf erfc "
    "erf_inv lgamma digamma logistic".split())


def analyse(program: Program) -> dict[str, float]:
    """Counts of floating-point operations, transcendental ones, and bytes read and written."""
    totals = {"flops": 0.0, "transcendentals": 0.0, "bytes accessed": 0.0}
    _count(program.statements, 1.0, totals)
    return totals


def _count(body: Sequence[Statement], times: float, totals: dict[str, float]) -> None:
    for s in body:
        for n in walk([e for e in s.exprs() if isinstance(e, Expr)]):
            if n.op == "load":
                totals["bytes accessed"] += times * n.dtype.itemsize
            elif n.dtype.kind == "f" and n.op not in FREE and n.op != "select":
                totals["transcendentals" if n.op in TRANSCENDENTAL else "flops"] += times
        if isinstance(s, Store):
            totals["bytes accessed"] += times * s.buffer.dtype.itemsize
        elif isinstance(s, Fold):
            totals["flops"] += times
        elif isinstance(s, Copy) and s.target.root is not s.source.root:
            count = s.count if isinstance(s.count, int) else 1
            totals["bytes accessed"] += times * 2 * count * s.target.dtype.itemsize
        trips = _turns(s) or 1 if isinstance(s, Loop) else 1
        for inner in s.bodies():
            _count(inner, times * trips, totals)


def _turns(s: Loop) -> int | None:
    """How often a loop turns at most; None where only a call knows."""
    turns = s.extent if isinstance(s.extent, int) else s.extent.bounds[1]
    return turns if turns < MAX_SIZE else None


def instructions(body: Sequence[Statement], times: float = 1.0) -> float:
    """Roughly how many instructions a call executes; endless where a loop's length is not known."""
    total = 0.0
    for s in body:
        if isinstance(s, While):
            return math.inf
        if isinstance(s, Call):
            total += times * s.work
        total += times * (1 + sum(e.cost for e in s.exprs()))
        if isinstance(s, Copy):
            total += times * s.count / 32 if isinstance(s.count, int) else math.inf
        trips = 1.0
        if isinstance(s, Loop):
            turns = _turns(s)
            trips = math.inf if turns is None else -(-turns // max(s.width, 1))
        for inner in s.bodies():
            total += instructions(inner, times * trips)
    return total
