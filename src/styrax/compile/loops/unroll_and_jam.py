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
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.expr import Arena, Expr, coefficient
from ..ir.loopir import Accumulator, Close, Fold, Loop, LoopKind, Open, Statement, Store, Together, rewrite
from ..program import Program


def run(program: Program) -> Program:
    """Jams the loops that the scheduler marks."""
    def jammed(s: Statement) -> list[Statement]:
        if not isinstance(s, Loop) or s.kind is not LoopKind.JAM:
            return [s]
        body = Jam(program.builder.arena, s.var, s.width, s.extent == s.width).body(s.body)
        if s.extent == s.width:
            return [x.replace(work=s.work) if isinstance(x, Loop) else x for x in body]
        even = isinstance(s.extent, int) and s.extent % s.width == 0
        return [s.replace(kind=LoopKind.JAMMED, body=body, rest=[] if even else s.body)]

    return program.with_statements(rewrite(program.statements, jammed))


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

    __slots__ = ("arena", "count", "first", "lane", "rows", "transposed", "var")

    def __init__(self, arena: Arena, var: Expr, count: int, whole: bool):
        self.arena, self.var, self.count = arena, var, count
        self.first = arena.int(0) if whole else var
        self.rows = [Row(arena, var, r, self.first) for r in range(count)]
        self.lane: Expr | None = None  # the variable of the vector loop around, where its lanes are as many as the rows
        self.transposed: dict[Expr, Expr | None] = {}

    def body(self, body: Sequence[Statement]) -> list[Statement]:
        out: list[Statement] = []
        for s in body:
            if isinstance(s, Loop):
                outside = self.lane
                if s.kind is LoopKind.VECTOR:
                    self.lane = s.var if s.width == self.count else None
                out.append(s.replace(body=self.body(s.body), work=s.work * self.count))
                self.lane = outside
            else:
                copies = [self.statement(s, row) for row in self.rows]
                out += [Together(copies)] if isinstance(s, Store | Fold) else copies
        return out

    def statement(self, s: Statement, row: Row) -> Statement:
        if isinstance(s, Store):
            return Store(s.buffer, self.expr(s.offset, row), self.expr(s.value, row))
        if isinstance(s, Fold):
            return Fold(row.accumulators[s.accumulator], [self.expr(v, row) for v in s.values])
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
            return self.arena.node(e.op, args, e.dtype, e.attr, e.bounds)
        return self.arena.node("transposed", (place,), e.dtype, (*e.attr, row.number, self.count))

    def first_row(self, e: Expr) -> Expr | None:
        (place,) = e.args
        if self.lane is None or e.attr[1] is not None or any(a.op == "guard" for a in (place, *place.args)):
            return None
        down, along = coefficient(self.arena, place, self.var), coefficient(self.arena, place, self.lane)
        if down is None or down.attr != 1 or along is None or along.op == "const" and along.attr in (0, 1):
            return None
        return self.arena.substitute(place, {self.var: self.first}, {})

