"""Peeling: values whose choices hang on a short outer index are computed turn by turn, each without its choices.

What stacks a few values would compute all of them for each element and choose one; peeled, each is computed where it
belongs, and turns share loops with what made the pieces. Before, and after:

    point[i0, i1] t0[(1000*i0 + i1)] = select(eq(i0, 0), neg(arg0[i1]), sin(arg0[i1]))

    point[i1] t0[i1] = neg(arg0[i1])
    point[i1] t0[(1000 + i1)] = sin(arg0[i1])
"""

from __future__ import annotations

from ..ir.expr import INDEX, Expr, walk
from ..ir.values import Point, rewrite_operations
from ..lowering.builder import Builder
from ..program import Program
from .index_set_splitting import decided

TURNS = 8  # at most: each is a copy of the loops inside
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def run(program: Program) -> Program:
    """operations → operations."""
    b, old = program.builder, program.operations or ()
    new = rewrite_operations(old, lambda op: _peeled(b, op) if isinstance(op, Point) else [op])
    return program if new is old else program.replace(operations=new)


def _peeled(b: Builder, op: Point) -> list[Point]:
    """The operation's turns along the outermost index that choices hang on; itself where there is none."""
    v = _short(b, op)
    if v is None:
        return [op]
    out: list[Point] = []
    rest = [other for other in op.vars if other is not v]
    for turn in range(b.extents[v]):  # type: ignore[arg-type]
        memo: dict[Expr, Expr] = {}
        place, value = (b.arena.substitute(e, {v: b.int(turn)}, memo, lambda e, args: decided(b, e, args))
                        for e in (op.place, op.value))
        out += _peeled(b, Point(rest, op.buffer, place, value, op.whole or op))
    return out


def _short(b: Builder, op: Point) -> Expr | None:
    """An index of few turns that a choice depends on alone. The innermost one stays, along which memory is written,
    where there are others."""
    outer = op.vars[:-1] or op.vars
    short = {v for v in outer if isinstance(size := b.extents[v], int) and size <= TURNS}
    if not short:
        return None
    chosen = {v for e in walk([op.value]) if e.op in COMPARISONS and e.args[0].dtype is INDEX and len(e.deps) == 1
              for v in e.deps}
    return next((v for v in outer if v in short and v in chosen), None)
