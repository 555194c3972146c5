"""Outer-loop vectorisation: lanes that are rows, where rows are too short to fill vectors well.

A reduction along the vector folds its lanes at the end of each row, and leaves some idle. Of rows hardly longer than a
vector, as many as there are lanes are turned in registers into a tile in scratch memory, whose lanes are rows: their
loops run in all lanes, and no lanes are folded. What they store is turned back. Before, and after:

    for i0 < 1000 cost(10500):
      open a0 = -inf:float32 x 16
      for r0 < 9 vector(16):
        a0 max= arg0[(9*i0 + r0)]
      close a0
      for r0 < 9 vector(16):
        out0[(9*i0 + r0)] = sub(arg0[(9*i0 + r0)], a0)

    for i1 < 62 cost(10500):
      scratch w0: float32[144]
      scratch w1: float32[144]
      transpose w0[0] by 16 <- arg0[(144*i1)] by 9, 16 x 9
      for i2 < 16 vector(16):
        open a1 = -inf:float32
        for r0 < 9:
          a1 max= w0[(i2 + 16*r0)]
        close a1
        for r0 < 9:
          w1[(i2 + 16*r0)] = sub(w0[(i2 + 16*r0)], a1)
      transpose out0[(144*i1)] by 9 <- w1[0] by 16, 9 x 16
    for i3 < 8:
      open a0 = -inf:float32 x 16
      for r0 < 9 vector(16):
        a0 max= arg0[(8928 + 9*i3 + r0)]
      close a0
      for r0 < 9 vector(16):
        out0[(8928 + 9*i3 + r0)] = sub(arg0[(8928 + 9*i3 + r0)], a0)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..costs import size
from ..ir.expr import LOADS, Expr, coefficient, walk
from ..ir.loads import loads_of
from ..ir.loopir import (
    Accumulator,
    Buffer,
    BufferKind,
    Call,
    Close,
    Copy,
    Fold,
    Let,
    Loop,
    LoopKind,
    Open,
    Scratch,
    Statement,
    Store,
    Transpose,
    rewrite,
    statements,
)
from ..lowering.builder import Builder
from ..lowering.folds import UNROLLED
from ..program import Program

VECTORS = 2  # up to how many of them a row is short
TILES = 4  # fewer are not worth the code
PIECE = 16  # bytes by which tiles are turned: of a column at least (`cpu.turning`)
# estimated instructions of a step that folds lanes, for each accumulated scalar
STEPS = {"add": 2, "mul": 2, "max": 3, "min": 3}
COMPARING = 5  # of others


class Rows(NamedTuple):
    """What a nest reads or writes of each of its rows: `length` neighbours in a buffer."""

    buffer: Buffer
    start: Expr  # of row 0
    step: int  # from row to row
    length: int


class _Unfit(Exception):
    """A nest whose rows do not become lanes."""


def run(program: Program) -> Program:
    """Turns nests over short rows."""
    if program.generic:
        return program
    placement = program.placement
    shared = set(placement.aliases.values())  # memory of several buffers
    reads = Counter(_reads(program.statements))

    def turned(s: Statement) -> list[Statement]:
        if not isinstance(s, Loop) or not _over_short_rows(s, program.vector_bytes):
            return [s]
        own = Counter(_reads(s.body))
        if any(placement.root(b) is not b or b in shared for b in (*own, *_written(s.body))):
            return [s]
        try:
            return Turned(program.builder, s, program.vector_bytes).nest(
                {b for b in own if b.kind is BufferKind.TEMP and reads[b] == own[b]})
        except _Unfit:
            return [s]

    return program.with_statements(rewrite(program.statements, turned))


def _reads(body: Sequence[Statement]) -> Iterator[Buffer]:
    """The buffers that statements read, as often as they stand there."""
    for s in statements(body):
        yield from (n.attr[0] for n in loads_of([e for e in s.exprs() if isinstance(e, Expr)]))
        if isinstance(s, Copy | Transpose):
            yield s.source
        elif isinstance(s, Call):
            yield from s.reads


def _over_short_rows(s: Loop, vector_bytes: int) -> bool:
    """Whether a loop has reductions along vectors over rows of not many more elements than these have lanes."""
    loops = [x for x in s.body if isinstance(x, Loop)]
    return (s.kind is LoopKind.SERIAL and isinstance(s.extent, int) and bool(loops)
            and any(isinstance(x, Open) for x in s.body)
            and all(isinstance(x, Open | Close | Store | Let | Loop) for x in s.body)
            and all(x.kind is LoopKind.VECTOR and isinstance(x.extent, int)
                    and UNROLLED < x.extent <= VECTORS * vector_bytes // 4
                    and all(isinstance(y, Fold | Store) for y in x.body) for x in loops))


class Turned:
    """A nest whose rows become lanes."""

    def __init__(self, b: Builder, loop: Loop, vector_bytes: int):
        self.b, self.arena, self.loop = b, b.arena, loop
        wide = any(x.dtype.itemsize == 8 for x in {*_reads(loop.body), *_written(loop.body)})
        self.lanes = vector_bytes // (8 if wide else 4)
        self.tiles: dict[Rows, Buffer] = {}
        self.first: dict[Rows, str] = {}  # whether an access to rows is first a load or a store
        self.stored: dict[Rows, None] = {}

    def nest(self, passing: set[Buffer]) -> list[Statement]:
        """The nest over tiles, and that over the rows that are left. Nobody else reads the buffers `passing`."""
        b, s = self.b, self.loop
        assert isinstance(s.extent, int)
        tiles, left = divmod(s.extent, self.lanes)
        if tiles < TILES or self.lanes < 2:
            raise _Unfit
        tile, self.lane = b.loop_var(tiles), b.loop_var(self.lanes)
        self.row = b.iadd(b.imul(tile, self.lanes), self.lane)
        self.mapping: dict[Expr, Expr] = {}
        self.accumulators: dict[Accumulator, Accumulator] = {}
        body = [self.statement(x, None) for x in s.body]
        self._check_apart(s.body, None)
        if not self._pays(passing):
            raise _Unfit
        start = b.imul(tile, self.lanes)
        before: list[Statement] = [Scratch(w) for w in self.tiles.values()]
        after: list[Statement] = []
        zero, lanes = b.int(0), self.lanes
        for rows, w in self.tiles.items():
            at = b.iadd(rows.start, b.imul(start, rows.step))
            if self.first[rows] == "load":
                before.append(Transpose(w, zero, lanes, rows.buffer, at, rows.step, lanes, rows.length))
            if self._is_kept(rows, passing):
                after.append(Transpose(rows.buffer, at, rows.step, w, zero, lanes, rows.length, lanes))
        inner = Loop(self.lane, lanes, body, LoopKind.VECTOR, lanes)
        out: list[Statement] = [Loop(tile, tiles, [*before, inner, *after], work=s.work * lanes,
                                     divisible=s.divisible)]
        if left:
            var = b.loop_var(left)
            memo: dict[Expr, Expr] = {}
            rest = _substituted(b, s.body, {s.var: b.iadd(var, tiles * lanes)}, memo)
            out.append(Loop(var, left, rest))
        return out

    def _is_kept(self, rows: Rows, passing: set[Buffer]) -> bool:
        """Whether what the nest stores in its rows is read by others, or by itself the next time."""
        return rows in self.stored and (rows.buffer not in passing or self.first[rows] == "load")

    def _pays(self, passing: set[Buffer]) -> bool:
        """Whether a row's share of turning tiles is less than what folding lanes costs, and lanes that are idle."""
        steps = self.lanes.bit_length() - 1
        folded = sum(steps * len(x.accumulator.targets) * STEPS.get(x.accumulator.name, COMPARING)
                     for x in self.loop.body if isinstance(x, Open))
        idle = 0.0
        for x in self.loop.body:
            if isinstance(x, Loop):
                assert isinstance(x.extent, int)
                work = size(x.body)
                idle += work * (-(-x.extent // self.lanes) - x.extent / self.lanes)
        turned = sum((steps + 2) * -(-rows.length // self.lanes) for rows in self.tiles for needed in (
            self.first[rows] == "load", self._is_kept(rows, passing)) if needed)
        return folded + idle > turned

    def statement(self, s: Statement, along: Loop | None) -> Statement:
        if isinstance(s, Loop):
            return Loop(s.var, s.extent, [self.statement(x, s) for x in s.body])
        if isinstance(s, Store):
            value = self.expr(s.value, along)
            if s.buffer.dtype.kind == "c":
                raise _Unfit
            rows = self._rows(s.buffer, s.offset, along)
            if rows is None:
                return Store(s.buffer, self._lanes_place(s.offset), value)
            self.first.setdefault(rows, "store")
            self.stored[rows] = None
            return Store(self._tile(rows), self._place(along), value)
        if isinstance(s, Fold):
            return Fold(self.accumulators[s.accumulator], [self.expr(v, along) for v in s.values])
        if isinstance(s, Open):
            a = s.accumulator
            initial = [self.expr(e, along) for e in a.initial]
            targets = [self.b.mutable(t.dtype, "a") for t in a.targets]
            self.mapping.update(zip(a.targets, targets, strict=True))
            own = self.accumulators[a] = Accumulator(targets, initial, a.combine, a.name)
            return Open(own)
        if isinstance(s, Close):
            return Close(self.accumulators[s.accumulator])
        assert isinstance(s, Let)
        value = self.expr(s.value, along)
        self.mapping[s.target] = target = self.b.mutable(s.target.dtype, "v")
        return Let(target, value)

    def expr(self, e: Expr, along: Loop | None) -> Expr:
        """An expression of a row as one of its lane."""
        return self.arena.substitute(e, {**self.mapping, self.loop.var: self.row}, {},
                                     lambda node, args: self._made(node, args, along))

    def _made(self, e: Expr, args: tuple[Expr, ...], along: Loop | None) -> Expr:
        if e.op in LOADS:
            if e.op != "load" or e.attr[1] is not None or any(n.op == "guard" for n in walk(e.args)):
                raise _Unfit
            rows = self._rows(e.attr[0], e.args[0], along)
            if rows is not None:
                self.first.setdefault(rows, "load")
                return self.arena.node("load", (self._place(along),), e.dtype, (self._tile(rows), None), e.bounds)
            self._lanes_place(e.args[0])
        elif e.op == "guard":
            raise _Unfit
        return self.arena.node(e.op, args, e.dtype, e.attr, e.bounds)

    def _rows(self, buffer: Buffer, place: Expr, along: Loop | None) -> Rows | None:
        """The rows to which a place belongs; None for one that is the same along the row, or in all rows."""
        if along is None or along.var not in place.deps or self.loop.var not in place.deps:
            return None
        across, down = (coefficient(self.arena, place, v) for v in (along.var, self.loop.var))
        if across is None or down is None or across.op != "const" or across.attr != 1 or down.op != "const":
            raise _Unfit
        if buffer.dtype.itemsize * self.lanes < PIECE:
            raise _Unfit
        if down.attr < along.extent or buffer.dtype.itemsize not in (2, 4, 8) or buffer.dtype.kind == "c":
            raise _Unfit  # (rows that overlap are read once where they are)
        zero = self.b.int(0)
        start = self.arena.substitute(place, {along.var: zero, self.loop.var: zero}, {})
        assert isinstance(along.extent, int)
        return Rows(buffer, start, down.attr, along.extent)

    def _lanes_place(self, place: Expr) -> Expr:
        """A place that lanes access one beside the other, or all of them."""
        down = coefficient(self.arena, place, self.loop.var)
        if down is None or down.op != "const" or down.attr not in (0, 1):
            raise _Unfit
        return self.arena.substitute(place, {self.loop.var: self.row}, {})

    def _tile(self, rows: Rows) -> Buffer:
        tile = self.tiles.get(rows)
        if tile is None:
            tile = self.tiles[rows] = self.b.buffer(
                rows.buffer.dtype, rows.length * self.lanes, BufferKind.SCRATCH, stem="w")
        return tile

    def _place(self, along: Loop | None) -> Expr:
        assert along is not None
        return self.b.iadd(self.b.imul(along.var, self.lanes), self.lane)

    def _check_apart(self, body: Sequence[Statement], along: Loop | None) -> None:
        """What is stored by rows is accessed as these rows alone."""
        stored = {rows.buffer for rows in self.stored}
        for s in body:
            if isinstance(s, Loop):
                self._check_apart(s.body, s)
                continue
            places = [(n.attr[0], n.args[0]) for n in loads_of(s.exprs())]
            if isinstance(s, Store):
                places.append((s.buffer, s.offset))
            if any(buffer in stored and self._rows(buffer, place, along) not in self.stored
                   for buffer, place in places):
                raise _Unfit
        if along is None and len(stored) < len(self.stored):
            raise _Unfit


def _written(body: Sequence[Statement]) -> Iterator[Buffer]:
    return (s.buffer for s in statements(body) if isinstance(s, Store))


def _substituted(b: Builder, body: Sequence[Statement], mapping: dict[Expr, Expr], memo: dict[Expr, Expr]
                 ) -> list[Statement]:
    def new(e: Expr) -> Expr:
        return b.arena.substitute(e, mapping, memo)

    out: list[Statement] = []
    for s in body:
        if isinstance(s, Loop):
            out.append(s.replace(body=_substituted(b, s.body, mapping, memo)))
        elif isinstance(s, Store):
            out.append(Store(s.buffer, new(s.offset), new(s.value)))
        elif isinstance(s, Fold):
            out.append(Fold(s.accumulator, [new(v) for v in s.values]))
        elif isinstance(s, Let):
            out.append(Let(s.target, new(s.value)))
        else:
            out.append(s)
    return out
