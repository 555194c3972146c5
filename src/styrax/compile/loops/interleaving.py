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

from collections.abc import Sequence

from ..costs import COSTS, MEMBERS, RECORD
from ..ir.expr import Expr, coefficient, walk
from ..ir.values import Point
from .index_set_splitting import decided
from .nest import Nest, choosing, gathers, unguarded, vector_width

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
        for v in nest.outer:
            if v is u or nest.vector not in (u, v, None):
                continue
            width = vector_width(nest, v, nest.b.vector_bytes)
            if not (2 * nest.size(v) > width > count and all(_writes_records(nest, p, u, v, count) for p in points)):
                continue
            work = _work(nest, u, v, count)
            if GATHERED * count * gathers(nest, v) < work <= RECORD and (v not in opaque or _walks(nest, v)):
                return nest.replace(vector=v).with_rows(u, count, width)
    return nest


def _walks(nest: Nest, v: Expr) -> bool:
    """Whether places that are read are linear in a loop's variable, but for conditions under which they are read."""
    b, memo = nest.b, dict[Expr, Expr]()
    places = [b.arena.substitute(n.args[0], {v: v}, memo, unguarded) for n in nest.nodes() if n.op == "load"]
    return all(coefficient(b.arena, place, v) is not None for place in places)


def _work(nest: Nest, member: Expr, record: Expr, count: int) -> float:
    """Estimated instructions of all members, of which each makes its own choices, for each record."""
    b = nest.b
    values = [m.op.value for m in nest.members if isinstance(m.op, Point)]
    undecided = _computing(values, {member, record})  # (what is far too much is not written out for each member)
    if undecided * count <= RECORD or undecided > MEMBERS * RECORD / 2:
        return undecided * count
    out: list[Expr] = []
    for turn in range(count):
        memo: dict[Expr, Expr] = {}
        out += [b.arena.substitute(e, {member: b.int(turn)}, memo, lambda e, args: decided(b, e, args)) for e in values]
    return _computing(out, {record})


def _computing(exprs: Sequence[Expr], loops: set[Expr]) -> float:
    """Roughly how many instructions depend on some loops; the others are computed outside."""
    return sum([COSTS.get(n.op, 1) for n in walk(exprs) if not loops.isdisjoint(n.deps)])


def _writes_records(nest: Nest, op: Point, member: Expr, record: Expr, count: int) -> bool:
    steps = [coefficient(nest.b.arena, op.place, v) for v in (member, record)]
    return all(s is not None and s.op == "const" and s.attr == n for s, n in zip(steps, (1, count), strict=True))


run = choosing(interleaved, scalar=True)
