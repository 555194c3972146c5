"""Multi-row reduction: rows that a reduction along the vector folds side by side.

They share what does not depend on the row, and keep several streams of memory busy. Before, and after:

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

from ..ir.expr import INDEX, Expr, coefficient
from ..ir.loads import loads_of
from ..ir.values import Reduce
from .nest import Nest, choosing

ROWS_AT_ONCE = 4  # rows that a reduction along the vector folds side by side
CHEAP_ELEMENT = 6  # estimated instructions of one element up to which that pays


def several_rows(nest: Nest) -> Nest:
    """The nest with an outer loop several of whose iterations are folded side by side."""
    vector, width = nest.vector, nest.width
    assert vector is not None
    rows = _rows(nest, vector) if vector in nest.inner else None
    if rows is None:
        return nest
    return nest.with_rows(rows, ROWS_AT_ONCE, width * (2 if nest.size(vector) >= 8 * width else 1))


def _rows(nest: Nest, vector: Expr) -> Expr | None:
    exprs = nest.exprs()
    if any(not m.inner or m.phase or not isinstance(m.op, Reduce) for m in nest.members):
        return None
    if any(n.op not in ("load", "poly") and any(a.dtype is INDEX for a in n.args) for n in nest.nodes()):
        return None
    loads = [n for n in loads_of(exprs) if n.op == "load"]
    if len(loads) < 2 or any(n.attr[1] is not None for n in loads) or nest.work() > CHEAP_ELEMENT:
        return None
    for u in reversed(nest.alike()):
        if nest.size(u) < 2 * ROWS_AT_ONCE:
            continue
        shared = 0
        for n in loads:
            cu, cv = coefficient(nest.b.arena, n.args[0], u), coefficient(nest.b.arena, n.args[0], vector)
            if cu is None or cv is None or cv.op != "const" or cv.attr not in (0, 1):
                break
            shared += u not in n.args[0].deps
        else:
            if shared:
                return u
    return None


run = choosing(several_rows)
