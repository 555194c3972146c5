"""Transposition in registers: square tiles of the vector loop and of a loop in which some load is contiguous.

Where the vector loop strides through a load, iterations of the other loop run side by side, as many as there are
lanes: `unroll_and_jam` loads such a tile row by row and turns it. Before, and after:

    nest[i0, i1; ] i1 vector(16):
      outer -1: point[i0, i1] out0[(64*i0 + i1)] = arg0[(i0 + 48*i1)]

    nest[i0, i1; ] i1 vector(16), i0 jam(16):
      outer -1: point[i0, i1] out0[(64*i0 + i1)] = arg0[(i0 + 48*i1)]
"""

from __future__ import annotations

from ..ir.expr import COSTS, Expr, coefficient
from .nest import Nest, choosing

LARGE = 1 << 14  # elements from which a tile pays for its code where each row makes choices of its own


def transposed(nest: Nest) -> Nest:
    """The nest with the rows of its tiles."""
    rows = None if nest.inner else _rows(nest)
    return nest if rows is None else nest.with_rows(rows, nest.width, nest.width)


def _rows(nest: Nest) -> Expr | None:
    vector, width = nest.vector, nest.width
    assert vector is not None
    if any(COSTS.get(n.op, 1) > 1 or n.op in ("guard", "floordiv", "floormod") or n.op == "load"
           and n.attr[1] is not None
           for n in nest.nodes()) or nest.size(vector) < width:
        return None
    indices, opaque = nest.accesses()
    small = nest.count(nest.outer) < LARGE
    if small and vector in opaque:
        return None
    for u in nest.outer:
        if u is vector or nest.size(u) < width or small and u in opaque:
            continue
        turned = False
        for e in indices:
            cu, cv = coefficient(nest.b.arena, e, u), coefficient(nest.b.arena, e, vector)
            if cu is None or cv is None:
                break
            along, across = cu.attr if cu.op == "const" else None, cv.attr if cv.op == "const" else None
            if along == 1 and across not in (0, 1):
                turned = True
            elif across not in (0, 1):
                break
        else:
            if turned:
                return u
    return None


run = choosing(transposed)
