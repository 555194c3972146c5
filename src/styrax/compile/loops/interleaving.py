"""Interleaving: records of a few members each are written whole.

Where a loop of a nest runs over records and another over their members, the records become the lanes; the members are
computed side by side, all of them (`unroll_and_jam`), and their vectors are interleaved in registers. Lanes alone would
scatter what they store, and members are too few to be lanes. Before, and after:

    nest[i0, i1; ] i1 vector(16):
      outer -1: point[i0, i1] out0[(i0 + 3*i1)] = arg0[(64*i0 + i1)]

    nest[i0, i1; ] i1 vector(16), i0 jam(3):
      outer -1: point[i0, i1] out0[(i0 + 3*i1)] = arg0[(64*i0 + i1)]
"""

from __future__ import annotations

from ..costs import MEMBERS, RECORD, computing
from ..ir.expr import Expr, coefficient
from ..ir.values import Point
from .index_set_splitting import decided
from .nest import Nest, choosing, gathers, vector_width

GATHERED = 16  # estimated instructions around each read at a place read from memory, up to which records are no lanes


def interleaved(nest: Nest) -> Nest:
    """The nest with the members of its records side by side."""
    points = [m.op for m in nest.members if isinstance(m.op, Point)]
    if nest.inner or nest.rows is not None or len(points) < len(nest.members):
        return nest
    opaque = nest.accesses()[1]
    for u in nest.outer:
        count = nest.b.extents[u]
        if not isinstance(count, int) or not 2 <= count <= MEMBERS:
            continue
        work = _work(nest, u, count)
        if work > RECORD:
            continue
        for v in nest.outer:
            if v is u or v in opaque or nest.vector not in (u, v) or work <= GATHERED * count * gathers(nest, v):
                continue
            width = vector_width(nest, v, nest.b.vector_bytes)
            if nest.size(v) >= width > count and all(_writes_records(nest, p, u, v, count) for p in points):
                return nest.replace(vector=v).with_rows(u, count, width)
    return nest


def _work(nest: Nest, member: Expr, count: int) -> float:
    """Estimated instructions of all members, of which each makes its own choices."""
    b = nest.b
    values = [m.op.value for m in nest.members if isinstance(m.op, Point)]
    undecided = computing(values)  # (what is far too much is not written out for each member)
    if undecided * count <= RECORD or undecided > MEMBERS * RECORD / 2:
        return undecided * count
    out: list[Expr] = []
    for turn in range(count):
        memo: dict[Expr, Expr] = {}
        out += [b.arena.substitute(e, {member: b.int(turn)}, memo, lambda e, args: decided(b, e, args)) for e in values]
    return computing(out)


def _writes_records(nest: Nest, op: Point, member: Expr, record: Expr, count: int) -> bool:
    steps = [coefficient(nest.b.arena, op.place, v) for v in (member, record)]
    return all(s is not None and s.op == "const" and s.attr == n for s, n in zip(steps, (1, count), strict=True))


run = choosing(interleaved)
