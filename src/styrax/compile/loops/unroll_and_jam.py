"""Unroll-and-jam: iterations of a loop side by side, inside the loops that stand in it.

This is register blocking: the rows of a tile share what does not depend on the row, and their accumulators are
registers of their own. The iterations that are left at the end run one by one (`rest`). Before, and after:

    for i0 < 65 jam(2):
      for i1 < 48 vector(16):
        open a0 = 0.0:float32
        for r0 < 32:
          a0 add= mul(arg0[(32*i0 + r0)], arg1[(i1 + 48*r0)])
        close a0
        out0[(48*i0 + i1)] = a0

    for i0 < 65 jammed(2):
      for i1 < 48 vector(16):
        open a0.0 = 0.0:float32
        open a0.1 = 0.0:float32
        for r0 < 32:
          together:
            a0.0 add= mul(arg0[(32*i0 + r0)], arg1[(i1 + 48*r0)])
            a0.1 add= mul(arg0[(32 + 32*i0 + r0)], arg1[(i1 + 48*r0)])
        close a0.0
        close a0.1
        together:
          out0[(48*i0 + i1)] = a0.0
          out0[(48 + 48*i0 + i1)] = a0.1
    rest:
      for i1 < 48 vector(16):
        open a0 = 0.0:float32
        for r0 < 32:
          a0 add= mul(arg0[(32*i0 + r0)], arg1[(i1 + 48*r0)])
        close a0
        out0[(48*i0 + i1)] = a0

What follows the accumulators' loops is not repeated where it is long (an activation, say): the rows' results wait in
scratch memory, a tile of `rows x i1`, for a loop over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..costs import computing, size
from ..ir.expr import Arena, Expr, coefficient
from ..ir.loopir import (
    Accumulator,
    Buffer,
    BufferKind,
    Close,
    Fold,
    Loop,
    LoopKind,
    Open,
    Scratch,
    Statement,
    Store,
    Together,
    rewrite,
    statements,
)
from ..lowering.builder import Builder
from ..program import Program
from .index_set_splitting import decided
from .parallelize import trips

LONG = 48  # estimated instructions of all rows' copies, from which a loop over the rows takes their place
TILE_BYTES = 1 << 14  # what waits for that loop stays in the first cache


def run(program: Program) -> Program:
    """Jams the loops that the scheduler marks."""
    def jammed(s: Statement) -> list[Statement]:
        if not isinstance(s, Loop) or s.kind is not LoopKind.JAM:
            return [s]
        body = Jam(program.builder, s.var, s.width, s.extent == s.width).body(s.body)
        if s.extent == s.width:
            return [_in_place_of(s, x) if isinstance(x, Loop) else x for x in body]
        even = isinstance(s.extent, int) and s.extent % s.width == 0
        return [s.replace(kind=LoopKind.JAMMED, body=body, rest=[] if even else s.body)]

    return program.with_statements(rewrite(program.statements, jammed))


def _in_place_of(rows: Loop, s: Loop) -> Loop:
    """A loop from one over rows that are all side by side now. Threads can share its vectors in place of the rows."""
    opened = {x.accumulator for x in statements(s.body) if isinstance(x, Open)}
    folded = {x.accumulator for x in statements(s.body) if isinstance(x, Fold)}
    if s.kind is not LoopKind.VECTOR or not folded <= opened:
        return s.replace(work=rows.work)
    if not folded:  # of their choices each row has made its own
        work = int(size(s.body))
        return s.replace(work=work, divisible=2 * work * trips(s.extent) // s.width)
    return s.replace(work=rows.work * rows.width // max(trips(s.extent), 1), divisible=rows.divisible)


class Row:
    """One of the iterations: what stands in it for the loop's variable and for the accumulators."""

    __slots__ = ("accumulators", "mapping", "memo", "number")

    def __init__(self, arena: Arena, var: Expr, number: int, first: Expr):
        self.number = number
        self.mapping = {var: arena.iadd(first, number)}
        self.memo: dict[Expr, Expr] = {}
        self.accumulators: dict[Accumulator, Accumulator] = {}


class Jam:
    """Puts `count` iterations of the loop over `var` into one; with `whole`, they are all that there are."""

    __slots__ = ("arena", "b", "count", "first", "lane", "rows", "transposed", "var")

    def __init__(self, b: Builder, var: Expr, count: int, whole: bool):
        self.b, self.arena, self.var, self.count = b, b.arena, var, count
        self.first = b.int(0) if whole else var
        self.rows = [Row(self.arena, var, r, self.first) for r in range(count)]
        self.lane: Loop | None = None  # the vector loop around
        self.transposed: dict[Expr, Expr | None] = {}

    def body(self, body: Sequence[Statement]) -> list[Statement]:
        out: list[Statement] = []
        for s in body:
            if isinstance(s, Loop):
                outside = self.lane
                if s.kind is LoopKind.VECTOR:
                    self.lane = s
                tail = self.long_tail(s)
                kept = self.body(s.body[:len(s.body) - len(tail)])
                after = self.by_rows(s, tail, kept, out) if tail else []
                out.append(s.replace(body=kept, work=s.work * self.count))
                out += after
                self.lane = outside
            elif isinstance(s, Together):
                out.append(Together([self.statement(x, row) for row in self.rows for x in s.body]))
            else:
                copies = [self.statement(s, row) for row in self.rows]
                alike = isinstance(s, Store) or isinstance(s, Fold) and s.accumulator in self.rows[0].accumulators
                out += [Together(copies)] if alike else copies
        return out

    def long_tail(self, loop: Loop) -> list[Statement]:
        """What a vector loop stores of its finished sums, where the rows' copies of it are long; else nothing."""
        if loop.kind is not LoopKind.VECTOR or not isinstance(loop.extent, int):
            return []
        last = max((i for i, s in enumerate(loop.body) if isinstance(s, Close)), default=len(loop.body))
        tail = loop.body[last + 1:]
        stores = [s for s in tail if isinstance(s, Store)]
        targets = self.used(loop, stores)
        if len(stores) < len(tail) or not targets or self.count * computing([s.value for s in stores]) < LONG:
            return []
        read = {buffer for s in statements(loop.body) for e in s.exprs() for buffer in e.reads}
        waiting = self.count * loop.extent * sum(t.dtype.itemsize for t in targets)
        return [] if waiting > TILE_BYTES or any(s.buffer in read for s in stores) else tail

    def used(self, loop: Loop, stores: Sequence[Store]) -> list[Expr]:
        """The accumulators' results that are stored."""
        asked = {e for s in stores for e in s.value.deps}
        return [t for s in loop.body if isinstance(s, Close) for t in s.accumulator.targets if t in asked]

    def by_rows(self, loop: Loop, tail: Sequence[Statement], kept: list[Statement],
                before: list[Statement]) -> list[Statement]:
        """A loop over the rows that stores the tail. What it needs is added to `kept`, and to what stands before."""
        b, extent = self.b, loop.extent
        assert isinstance(extent, int)
        number = b.loop_var(self.count, "j")
        mapping = {self.var: b.iadd(self.first, number)}
        stores = [s for s in tail if isinstance(s, Store)]
        for target in self.used(loop, stores):
            tile: Buffer = b.buffer(target.dtype, self.count * extent, BufferKind.SCRATCH, stem="w")
            before.append(Scratch(tile))
            kept.append(Together([Store(tile, b.iadd(loop.var, extent * r.number), r.mapping[target])
                                  for r in self.rows]))
            mapping[target] = b.load(tile, b.iadd(b.imul(number, extent), loop.var))
        memo: dict[Expr, Expr] = {}
        body: list[Statement] = [Store(s.buffer, self.arena.substitute(s.offset, mapping, memo),
                                       self.arena.substitute(s.value, mapping, memo)) for s in stores]
        return [Loop(number, self.count, [loop.replace(body=body, work=0)])]

    def statement(self, s: Statement, row: Row) -> Statement:
        if isinstance(s, Store):
            return Store(s.buffer, self.expr(s.offset, row), self.expr(s.value, row))
        if isinstance(s, Fold):
            into = row.accumulators.get(s.accumulator, s.accumulator)  # (what all rows fold into, they do in turn)
            return Fold(into, [self.expr(v, row) for v in s.values])
        if isinstance(s, Close):
            return Close(row.accumulators[s.accumulator])
        if isinstance(s, Open):
            return Open(self.accumulator(s.accumulator, row), s.width)
        raise TypeError(f"iterations with a {type(s).__name__} do not stand side by side")

    def accumulator(self, a: Accumulator, row: Row) -> Accumulator:
        initial = [self.expr(e, row) for e in a.initial]
        targets = [self.arena.unique("get", t.dtype, f"{t.attr}.{row.number}") for t in a.targets]
        row.mapping.update(zip(a.targets, targets, strict=True))
        own = row.accumulators[a] = Accumulator(targets, initial, a.combine, a.name)
        return own

    def expr(self, e: Expr, row: Row) -> Expr:
        return self.arena.substitute(e, row.mapping, row.memo, lambda node, args: self.make(node, args, row))

    def make(self, e: Expr, args: tuple[Expr, ...], row: Row) -> Expr:
        """A node in a row. A load that strides with the lanes and is contiguous along the rows becomes a row of a
        square tile, which is loaded the other way and turned in registers."""
        if e not in self.transposed:
            self.transposed[e] = self.first_row(e) if e.op == "load" else None
        place = self.transposed[e]
        if place is None:
            return decided(self.b, e, args)
        assert self.lane is not None
        height = self.height(e)
        return self.arena.node("transposed", (self.arena.iadd(place, row.number - row.number % height),), e.dtype,
                               (*e.attr, row.number % height, self.lane.width))

    def height(self, e: Expr) -> int:
        """The rows of a load's tiles: of complex numbers each is two."""
        assert self.lane is not None
        return self.lane.width if e.attr[1] is None else self.lane.width // 2

    def first_row(self, e: Expr) -> Expr | None:
        """The place of the first row of the first tile, if the rows make up tiles."""
        (place,) = e.args
        height = 0 if self.lane is None else self.height(e)
        if self.lane is None or height < 2 or self.count % height or any(
                a.op == "guard" for a in (place, *place.args)):
            return None
        down, along = coefficient(self.arena, place, self.var), coefficient(self.arena, place, self.lane.var)
        if down is None or down.attr != 1 or along is None or along.op == "const" and along.attr in (0, 1):
            return None
        return self.arena.substitute(place, {self.var: self.first}, {})

