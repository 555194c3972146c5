"""Register blocking: a second outer loop tiled with the vector loop, one that lets what is read be used several times.

Before, and after:

    nest[i0, i1; r0] i1 vector(16):
      inner 0: reduce[i0, i1; r0] a0 add= mul(arg0[(20*i0 + r0)], arg1[(i1 + 32*r0)]) from 0.0:float32
      inner 0:   t0[(32*i0 + i1)] = a0
    copy out0[0] <- t0[0] x 768

    nest[i0, i1; r0] i1 vector(32), i0 jam(8):
      inner 0: reduce[i0, i1; r0] a0 add= mul(arg0[(20*i0 + r0)], arg1[(i1 + 32*r0)]) from 0.0:float32
      inner 0:   t0[(32*i0 + i1)] = a0
    copy out0[0] <- t0[0] x 768
"""

from __future__ import annotations

from ..ir.expr import INDEX, Expr, coefficient
from ..ir.loads import loads_of
from ..ir.values import Reduce
from ..registers import is_avx512
from .nest import Nest, choosing

SUMS = 12, 24  # vectors of sums in a tile, where the processor has 16 registers or 32
LARGEST = 8  # rows in a tile that is not all there is


def blocked(nest: Nest) -> Nest:
    """The nest with a tile whose rows are accumulators of their own."""
    vector, width = nest.vector, nest.width
    assert vector is not None
    rows = _rows(nest, vector) if nest.inner and vector not in nest.inner else None
    if rows is None:
        return nest
    tile = _tile(nest, nest.size(rows), nest.size(vector))
    return nest if tile is None else nest.with_rows(rows, tile[0], width * tile[1])


def _tile(nest: Nest, size: int, lanes: int) -> tuple[int, int] | None:
    """Rows and vectors of a tile, whose sums fit into registers: those with the fewest loads, rows that are left over
    included. What the rows share comes from farther away, a pass for each tile: it counts twice. Rows that are left
    over need code of their own, for which an eighth more is taken."""
    sums = sum(len(m.op.targets) for m in nest.members if isinstance(m.op, Reduce))
    room = SUMS[is_avx512(nest.b.vector_bytes)] // sums
    wide = lanes % (2 * nest.width) == 0 or lanes >= 8 * nest.width
    tiles = [(rows, vectors) for rows in {*range(2, LARGEST + 1), *((size,) if 2 * size <= room else ())}
             for vectors in ((1, 2) if wide else (1,)) if rows <= size and rows * vectors <= room]

    def loads(tile: tuple[int, int]) -> tuple[float, int]:
        rows, vectors = tile
        passes, left = divmod(size, rows)
        return (size / vectors + 2 * (passes + left)) * (9 / 8 if left else 1), -rows

    return min(tiles, key=loads, default=None)


def _rows(nest: Nest, vector: Expr) -> Expr | None:
    if nest.size(vector) < 2 or any(not isinstance(m.op, Reduce) and m.inner for m in nest.members):
        return None
    exprs = nest.exprs()
    loads = [n for n in loads_of(exprs) if n.op == "load"]
    if len(loads) < 2 or any(n.attr[1] is not None for n in loads):
        return None
    if any(n.op not in ("load", "poly") and any(a.dtype is INDEX for a in n.args) for n in nest.nodes()):
        return None  # indices used as values, guards: not worth a tile
    best, best_score = None, (0, 0)
    for u in nest.alike():
        if u is vector or nest.size(u) < 2:
            continue
        reuse = reach = 0
        for n in loads:
            place = n.args[0]
            cu, cv = coefficient(nest.b.arena, place, u), coefficient(nest.b.arena, place, vector)
            if cu is None or cv is None or cv.op != "const" or cv.attr not in (0, 1):
                break
            reuse += u not in place.deps
            reach += abs(cu.attr) if cu.op == "const" else 1 << 20
        else:
            if reuse and (reuse, -reach) > best_score or best is None and reuse:
                best, best_score = u, (reuse, -reach)
    return best


run = choosing(blocked)
