"""Multi-row reduction: rows that a reduction along the vector folds side by side.

They share what does not depend on the row, and keep several streams of memory busy. So do the results of each row,
where these are few: all of them stay in registers. Before, and after:

    nest[i0; r0] r0 vector(16):
      inner 0: reduce[i0; r0] a0 add= mul(arg0[(100*i0 + r0)], arg1[r0]) from 0.0:float32
      inner 0:   t0[i0] = a0
    copy out0[0] <- t0[0] x 24

    nest[i0; r0] r0 vector(16), i0 jam(4):
      inner 0: reduce[i0; r0] a0 add= mul(arg0[(100*i0 + r0)], arg1[r0]) from 0.0:float32
      inner 0:   t0[i0] = a0
    copy out0[0] <- t0[0] x 24
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.expr import INDEX, Expr, coefficient
from ..ir.loads import loads_of
from ..ir.values import Reduce
from ..registers import is_avx512
from .nest import Nest, choosing

ROWS_AT_ONCE = 4  # rows that a reduction along the vector folds side by side
SUMS = 8  # vectors of sums in registers, of which the processor has 16 or (twice as many sums) 32
FAR = 1 << 18  # elements that the nearest caches do not hold
CHEAP_ELEMENT = 6  # estimated instructions of one element up to which that pays


def several_rows(nest: Nest) -> Nest:
    """The nest with an outer loop several of whose iterations are folded side by side."""
    vector, width = nest.vector, nest.width
    assert vector is not None
    loops = _rows(nest, vector) if vector in nest.inner else []
    rows = next((u for u in loops if nest.size(u) >= 2 * ROWS_AT_ONCE), None)
    if rows is None:
        return nest
    columns = _columns(nest, loops, rows)
    if columns is None:
        return nest.with_rows(rows, ROWS_AT_ONCE, width * (2 if nest.size(vector) >= 8 * width else 1))
    abreast = min(ROWS_AT_ONCE, _sums(nest) // nest.size(columns))
    if abreast == 1:
        return nest.with_rows(columns, nest.size(columns), width)
    twice = 2 * abreast * nest.size(columns) <= _sums(nest) and nest.size(vector) >= 8 * width
    return nest.with_rows(rows, abreast, width * (2 if twice else 1), columns)


def _sums(nest: Nest) -> int:
    return SUMS * (2 if is_avx512(nest.b.vector_bytes) else 1)


def _columns(nest: Nest, loops: Sequence[Expr], rows: Expr) -> Expr | None:
    """A loop of few iterations, for each of which a large operand would be read again."""
    if nest.size(rows) * nest.count(nest.inner) < FAR:
        return None
    return next((u for u in loops if u is not rows and isinstance(nest.b.extents[u], int)
                 and 1 < nest.size(u) <= _sums(nest)), None)


def _rows(nest: Nest, vector: Expr) -> list[Expr]:
    """The outer loops whose iterations share some of what they read, all of it side by side or alike in the lanes."""
    exprs = nest.exprs()
    if any(not m.inner or m.phase or not isinstance(m.op, Reduce) for m in nest.members):
        return []
    if any(n.op not in ("load", "poly") and any(a.dtype is INDEX for a in n.args) for n in nest.nodes()):
        return []
    loads = [n for n in loads_of(exprs) if n.op == "load"]
    if len(loads) < 2 or any(n.attr[1] is not None for n in loads) or nest.work() > CHEAP_ELEMENT:
        return []
    steps = [coefficient(nest.b.arena, n.args[0], vector) for n in loads]
    if any(c is None or c.op != "const" or c.attr not in (0, 1) for c in steps):
        return []
    return [u for u in reversed(nest.alike()) if any(u not in n.args[0].deps for n in loads) and all(
        coefficient(nest.b.arena, n.args[0], u) is not None for n in loads)]


run = choosing(several_rows)
