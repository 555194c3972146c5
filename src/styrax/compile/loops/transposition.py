"""Transposition in registers: square tiles of the vector loop and of a loop in which some load is contiguous.

Where the vector loop strides through a load, iterations of the other loop run side by side, as many as there are
lanes: `unroll_and_jam` loads such a tile row by row and turns it. Before, and after:

    nest[i0, i1; ] i1 vector(16):
      outer -1: point[i0, i1] out0[(64*i0 + i1)] = arg0[(i0 + 48*i1)]

    nest[i0, i1; ] i1 vector(16), i0 jam(16):
      outer -1: point[i0, i1] out0[(64*i0 + i1)] = arg0[(i0 + 48*i1)]

What is only copied needs no code of its own: the scheduler asks `by_functions` for statements that turn some rows each,
by functions that are compiled once. What is computed, and stored across the lanes, is stored along them first and then
copied.
"""

from __future__ import annotations

from ..costs import EVEN_SHARES
from ..ir.expr import COSTS, INDEX, Expr, coefficient
from ..ir.loads import copied
from ..ir.loopir import Loop, Statement, Transpose
from ..ir.values import Point
from ..program import Program
from .fuse import Member, Unit, computed_first
from .nest import Nest, planned, rewrite_units

STRIP = 16  # bytes of a row that such a function takes at a time
SIZES = (2, 4, 8)  # of elements in bytes, of which matrices are turned by functions
EDGE = 1 << 11  # elements at an edge from which they are worth parts of their own
LARGE = 1 << 14  # elements from which a tile pays for its code where each row makes choices of its own


def transposed(nest: Nest) -> list[Nest]:
    """The nest with the rows of its tiles; or one that computes, and one that copies in tiles."""
    if nest.inner or nest.vector is None:
        return [nest]
    nest, rows = _rows(nest, nest.width)
    if rows is None:
        return _in_parts(nest) or [_copying_short(nest)]
    ops = [m.op for m in nest.members]
    if len(ops) == 1 and isinstance(ops[0], Point) and copied(ops[0].value) is None:
        apart = _computed_first(nest, ops[0], rows)
        if apart is not None:
            return apart
    return [nest.with_rows(rows, _height(nest), nest.width)]


def _height(nest: Nest) -> int:
    """The rows of a tile: as many as there are lanes; of complex numbers, whose parts are lanes each, half as many."""
    vector = nest.vector
    assert vector is not None
    turned = [n for n in nest.nodes() if n.op == "load" and (step := coefficient(nest.b.arena, n.args[0], vector))
              and not (step.op == "const" and step.attr in (0, 1))]
    return nest.width // 2 if all(n.attr[1] is not None for n in turned) else nest.width


def _copying_short(nest: Nest) -> Nest:
    """The nest by functions that turn rows of fewer elements than there are lanes, if it copies and does no more."""
    size = nest.members[0].op.buffer.dtype.itemsize if isinstance(nest.members[0].op, Point) else STRIP
    forwards, rows = _rows(nest, max(STRIP // size, 1))
    if rows is None:
        return nest
    turning = forwards.with_rows(rows, _height(forwards), nest.width)
    return nest if by_functions(turning) is None else turning


def _in_parts(nest: Nest) -> list[Nest] | None:
    """What copies inside of edges and makes choices at them, as nests for the inside, where it only copies, and for the
    edges (index-set splitting of the loops around); None for another nest."""
    b, op = nest.b, nest.members[0].op
    if len(nest.members) > 1 or not isinstance(op, Point) or op.value.op != "select":
        return None
    ends = _insides(nest)
    inside, edges = nest, []
    for u, end in ends.items():
        edges.append(inside.between(u, end, nest.size(u)))
        inside = inside.between(u, 0, end)
    (member,) = inside.members
    if not ends or not isinstance(member.op, Point) or copied(member.op.value) is None:
        return None
    turned = transposed(planned(inside, b.vector_bytes))
    if len(turned) > 1 or turned[0].rows is None:
        return None
    for edge in edges:
        edge = planned(edge, b.vector_bytes)
        turned += transposed(edge) if nest.count(edge.outer) >= EDGE else [edge]
    return turned


def _insides(nest: Nest) -> dict[Expr, int]:
    """Loops with the turn up to which comparisons with edges hold whatever the turns of the other loops are."""
    ends: dict[Expr, int] = {}
    for n in nest.nodes():
        if n.op != "lt" or n.args[0].dtype is not INDEX or n.args[1].op != "const":
            continue
        place, edge = n.args[0], n.args[1].attr
        steps = {v: c.attr for v in nest.outer if v in place.deps and isinstance(nest.b.extents[v], int)
                 and (c := coefficient(nest.b.arena, place, v)) is not None and c.op == "const"}
        u = max(steps, key=lambda v: steps[v], default=None)
        if u is None or steps[u] <= 0:
            continue
        others = place.bounds[1] - steps[u] * (nest.size(u) - 1)
        end = (edge - 1 - others) // steps[u] + 1
        if 0 < end < nest.size(u):
            ends[u] = min(end, ends.get(u, end))
    return ends


def _backwards(nest: Nest, u: Expr) -> tuple[Nest, Expr]:
    """The nest with the turns of a loop in the opposite order, and that loop."""
    b, extent = nest.b, nest.b.extents[u]
    new = b.loop_var(extent)
    return nest.with_loop(u, new, b.isub(b.isub(b.index(extent), 1), new)), new


def _computed_first(nest: Nest, op: Point, rows: Expr) -> list[Nest] | None:
    """A nest that stores results side by side as its lanes compute them, and one that puts them into their places."""
    b, vector = nest.b, nest.vector
    assert vector is not None
    step = coefficient(b.arena, op.place, vector)
    if step is None or step.op == "const" and step.attr == 1:
        return None
    order = [*(v for v in nest.outer if v is not rows and v is not vector), rows, vector]
    first, copy = computed_first(b, op, order, order)
    phase, inner = nest.members[0].phase, nest.members[0].inner
    computed = nest.replace(members=[Member(first, phase, inner)])
    copying = planned(Nest(b, [Member(copy, phase, inner)], nest.dead, copy.vars, ()), b.vector_bytes)
    lanes = copy.vars[order.index(rows)]
    copying = copying.replace(vector=lanes, width=nest.width, outer=copying.ordered(copy.vars, lanes))
    return [computed, *transposed(copying)]


def _rows(nest: Nest, least: int) -> tuple[Nest, Expr | None]:
    """The loop along which some load is contiguous, of at least so many turns; and the nest in which it walks forwards
    there."""
    steps = _contiguous(nest, least)
    forwards = next((u for u, step in steps.items() if step == 1), None)
    if forwards is not None or not steps or len(nest.members) > 1:
        return nest, forwards
    return _backwards(nest, next(iter(steps)))


def _contiguous(nest: Nest, least: int) -> dict[Expr, int]:
    """The loops along which some load is contiguous, with its step: one, or minus one where it walks backwards."""
    found: dict[Expr, int] = {}
    vector, width = nest.vector, nest.width
    assert vector is not None
    if any(COSTS.get(n.op, 1) > 1 or n.op in ("guard", "floordiv", "floormod")
           for n in nest.nodes()) or nest.size(vector) < width:
        return found
    indices, opaque = nest.accesses()
    small = nest.count(nest.outer) < LARGE
    if small and vector in opaque:
        return found
    for u in nest.outer:
        if u is vector or nest.size(u) < least or small and u in opaque:
            continue
        turned = 0
        for e in indices:
            cu, cv = coefficient(nest.b.arena, e, u), coefficient(nest.b.arena, e, vector)
            if cu is None or cv is None:
                break
            along, across = cu.attr if cu.op == "const" else None, cv.attr if cv.op == "const" else None
            if along in (turned or 1, turned or -1) and across not in (0, 1):
                turned = along
            elif across not in (0, 1):
                break
        else:
            if turned:
                found[u] = turned
    return found


def by_functions(nest: Nest) -> list[Statement] | None:
    """The statements of a nest in tiles that copies elements and does nothing else, if it is one."""
    u, v, lanes, b = nest.rows, nest.vector, nest.width, nest.b
    op = nest.members[0].op
    if u is None or v is None or nest.inner or len(nest.members) > 1 or not isinstance(op, Point):
        return None
    load, rows, columns = copied(op.value), b.extents[v], b.extents[u]
    if load is None or load.attr[0].dtype != op.buffer.dtype or nest.abreast != _height(nest):
        return None
    (place,) = load.args
    if not isinstance(rows, int) or not isinstance(columns, int):
        return None
    size = op.buffer.dtype.itemsize
    if size not in SIZES or min(lanes, columns) * size < STRIP:
        return None
    steps = [coefficient(b.arena, e, w) for e, w in ((op.place, v), (op.place, u), (place, u), (place, v))]
    if not all(s is not None and s.op == "const" for s in steps):
        return None
    across, apart, along, stride = (s.attr for s in steps if s is not None)
    if across != 1 or along != 1 or not apart or not stride:
        return None
    count = -(-rows // lanes)
    around = sorted([w for w in nest.outer if w is not u and w is not v and b.extents[w] != 1], key=nest.size)
    # Tiles side by side follow each other: they share lines of memory, and pages. Where threads have nothing else to
    # share, they do so in strips.
    share = around and nest.size(around[-1]) < EVEN_SHARES
    strip = max((n for n in range(1, count // EVEN_SHARES + 1) if count % n == 0), default=count) if share else count
    shared, within = b.loop_var(count // strip), b.loop_var(strip)
    first = b.imul(b.iadd(b.imul(shared, strip) if strip < count else b.int(0), within if strip > 1 else b.int(0)),
                   lanes)
    if rows % lanes:  # the last rows are turned with some of those before, which become the same again
        first = b.min(first, b.int(rows - lanes))
    at = {v: first, u: b.int(0)}
    target, source = (b.arena.substitute(e, at, dict(at)) for e in (op.place, place))
    turned: Statement = Transpose(op.buffer, target, apart, load.attr[0], source, stride, lanes, columns)
    for w in (within, *around, shared):
        if b.extents[w] != 1:
            turned = Loop(w, b.extents[w], [turned])
    return [turned]


def run(program: Program) -> Program:
    """Gives nests with a vector loop the rows of their tiles."""
    def of_unit(unit: Unit) -> list[Unit]:
        return [*transposed(unit)] if isinstance(unit, Nest) else [unit]

    return program.replace(units=rewrite_units(program.units or (), of_unit))
