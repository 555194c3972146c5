"""Loop distribution: what is computed once a row, from its finished sums, gets a loop of its own, where it has lanes.

A nest whose vectors run along its rows computes the rest of a row in one lane. Where that takes a good part of the
time, results are stored, and read again by a loop whose vectors run along them. Before, and after:

    nest[i0; r0] r0 vector(16):
      inner 0: reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      outer 1: point[i0] out0[i0] = tanh(a0)

    nest[i0; r0] r0 vector(16):
      inner 0: reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      inner 0:   t0[i0] = a0
    nest[i0; ] i0 vector(16):
      outer -1: point[i0] out0[i0] = tanh(t0[i0])
"""

from __future__ import annotations

from ..costs import HORIZONTAL, computing
from ..ir.expr import Expr
from ..ir.values import Point, Reduce
from ..program import Program
from .fuse import Member, Unit
from .nest import Nest, collapse, planned, rewrite_units, split_loops
from .uses import loaded_buffers

STORED = 3  # instructions that store an element and read it again
SHARE = 24  # of a row's time, the part from which what follows the row matters: one lane waits for each instruction
ROWS = 8  # fewer are not worth a loop


def run(program: Program) -> Program:
    """nests → nests."""
    def distributed(unit: Unit) -> list[Unit]:
        parts = _distributed(unit, program.vector_bytes) if isinstance(unit, Nest) else None
        return [unit] if parts is None else list(parts)

    return program.replace(units=rewrite_units(program.units or (), distributed))


def _distributed(nest: Nest, vector_bytes: int) -> tuple[Nest, Nest] | None:
    if nest.vector not in nest.inner or nest.count(nest.outer) < ROWS:
        return None
    last = max(m.phase for m in nest.members if m.inner)
    tail = [m for m in nest.members if not m.inner and m.phase > last]
    cost = computing([m.op.value for m in tail if isinstance(m.op, Point)])
    if not tail or not _worth_lanes(nest, cost):
        return None
    known = _stored(nest)
    new = []
    for m in tail:
        assert isinstance(m.op, Point)
        value = nest.b.arena.substitute(m.op.value, {t: t for t in _targets(nest)}, dict(known))
        if not value.deps.isdisjoint(_targets(nest)):
            return None
        new.append(Member(Point(m.op.vars, m.op.buffer, m.op.place, value), -1, False))
    read = {buffer for m in new for buffer in loaded_buffers(m.op.value, {})}  # type: ignore[union-attr]
    rest = nest.replace(members=[m for m in nest.members if m not in tail], dead=nest.dead - read)
    outside = Nest(nest.b, new, nest.dead - read, nest.outer, ())
    return (planned(rest, vector_bytes), planned(collapse(split_loops(outside)), vector_bytes))


def _worth_lanes(nest: Nest, cost: float) -> bool:
    lanes = min(nest.width, nest.count(nest.outer))
    folded = sum(isinstance(m.op, Reduce) for m in nest.members)
    exprs = [e for m in nest.members if m.inner
             for e in (m.op.values if isinstance(m.op, Reduce) else (m.op.value,))]
    row = (computing(exprs) + len(exprs)) * -(-nest.count(nest.inner) // nest.width) + HORIZONTAL * folded
    return cost * (1 - 1 / lanes) > STORED and cost * SHARE >= row


def _targets(nest: Nest) -> set[Expr]:
    return {t for m in nest.members if isinstance(m.op, Reduce) for t in m.op.targets}


def _stored(nest: Nest) -> dict[Expr, Expr]:
    """The values of finished reductions, read from where they are stored."""
    return {value: nest.b.load(buffer, place) for m in nest.members if isinstance(m.op, Reduce)
            for buffer, place, value in m.op.stores}
