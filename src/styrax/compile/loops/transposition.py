"""Transposition in registers: square tiles of the vector loop and of a loop in which some load is contiguous.

Where the vector loop strides through a load, iterations of the other loop run side by side, as many as there are
lanes: `unroll_and_jam` loads such a tile row by row and turns it. Before, and after:

    nest[i0, i1; ] i1 vector(16):
      outer -1: point[i0, i1] out0[(64*i0 + i1)] = arg0[(i0 + 48*i1)]

    nest[i0, i1; ] i1 vector(16), i0 jam(16):
      outer -1: point[i0, i1] out0[(64*i0 + i1)] = arg0[(i0 + 48*i1)]

What is only copied needs no code of its own: the scheduler asks `copied` for statements that turn some rows each, by
functions that are compiled once. What takes long to compute, and is stored across the lanes, is stored along them first
and then copied.
"""

from __future__ import annotations

from ..costs import computing
from ..ir.expr import COSTS, Expr, coefficient
from ..ir.loopir import Loop, Statement, Transpose
from ..ir.values import Point, row_major
from ..program import Program
from .fuse import Member, Unit
from .nest import Nest, planned, rewrite_units

STRIP = 16  # bytes of a row that such a function takes at a time
SIZES = (2, 4, 8)  # of elements in bytes, of which matrices are turned by functions
LONG = 128  # estimated instructions of all rows of a tile, from which they are no code of their own
LARGE = 1 << 14  # elements from which a tile pays for its code where each row makes choices of its own


def transposed(nest: Nest) -> list[Nest]:
    """The nest with the rows of its tiles; or one that computes, and one that copies in tiles."""
    rows = None if nest.inner else _rows(nest)
    if rows is None:
        return [nest]
    ops = [m.op for m in nest.members]
    if len(ops) == 1 and isinstance(ops[0], Point) and nest.width * computing([ops[0].value]) > LONG:
        apart = _computed_first(nest, ops[0], rows)
        if apart is not None:
            return apart
    return [nest.with_rows(rows, nest.width, nest.width)]


def _computed_first(nest: Nest, op: Point, rows: Expr) -> list[Nest] | None:
    """A nest that stores results side by side as its lanes compute them, and one that puts them into their places."""
    b, vector = nest.b, nest.vector
    assert vector is not None
    step = coefficient(b.arena, op.place, vector)
    if step is None or step.op == "const" and step.attr == 1:
        return None
    order = [*(v for v in nest.outer if v is not rows and v is not vector), rows, vector]
    extents = tuple(b.extents[v] for v in order)
    phase, inner = nest.members[0].phase, nest.members[0].inner
    waiting = b.buffer(op.buffer.dtype, b.product(extents), once=True)
    place = b.arena.affine(0, order, row_major(b, extents))
    computed = nest.replace(members=[Member(Point(order, waiting, place, op.value), phase, inner)])
    new = [b.loop_var(e) for e in extents]
    mapping = dict(zip(order, new, strict=True))
    copy = Point(new, op.buffer, b.arena.substitute(op.place, mapping, dict(mapping)),
                 b.load(waiting, b.arena.substitute(place, mapping, dict(mapping))))
    copying, lanes = planned(Nest(b, [Member(copy, phase, inner)], nest.dead, new, ()), b.vector_bytes), mapping[rows]
    copying = copying.replace(vector=lanes, width=nest.width, outer=copying.ordered(new, lanes))
    return [computed, *transposed(copying)]


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


def copied(nest: Nest) -> list[Statement] | None:
    """The statements of a nest in tiles that copies elements and does nothing else, if it is one."""
    u, v, lanes, b = nest.rows, nest.vector, nest.abreast, nest.b
    op = nest.members[0].op
    if u is None or v is None or nest.inner or len(nest.members) > 1 or not isinstance(op, Point):
        return None
    load, rows, columns = op.value, b.extents[v], b.extents[u]
    if load.op != "load" or load.attr[1] is not None or load.attr[0].dtype != op.buffer.dtype or lanes != nest.width:
        return None
    if not isinstance(rows, int) or not isinstance(columns, int):
        return None
    size = op.buffer.dtype.itemsize
    if size not in SIZES or min(lanes, columns) * size < STRIP:
        return None
    (place,) = load.args
    steps = [coefficient(b.arena, e, w) for e, w in ((op.place, v), (op.place, u), (place, u), (place, v))]
    if not all(s is not None and s.op == "const" for s in steps):
        return None
    across, apart, along, stride = (s.attr for s in steps if s is not None)
    if across != 1 or along != 1 or apart < 1 or stride < 1:
        return None
    count = -(-rows // lanes)
    block = b.loop_var(count)
    first = b.imul(block, lanes) if count > 1 else b.int(0)
    if rows % lanes:  # the last rows are turned with some of those before, which become the same again
        first = b.min(first, b.int(rows - lanes))
    at = {v: first, u: b.int(0)}
    target, source = (b.arena.substitute(e, at, dict(at)) for e in (op.place, place))
    turned: Statement = Transpose(op.buffer, target, apart, load.attr[0], source, stride, lanes, columns)
    loops = [w for w in (*nest.outer, block) if w is not u and w is not v and b.extents[w] != 1]
    for w in sorted(loops, key=nest.size):  # the longest outside, for threads
        turned = Loop(w, b.extents[w], [turned])
    return [turned]


def run(program: Program) -> Program:
    """Gives nests with a vector loop the rows of their tiles."""
    def of_unit(unit: Unit) -> list[Unit]:
        return [*transposed(unit)] if isinstance(unit, Nest) and unit.vector is not None else [unit]

    return program.replace(units=rewrite_units(program.units or (), of_unit))
