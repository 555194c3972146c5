"""Buffers that exchange their memories at the end of each turn of a loop (double buffering): their pointers stand in
slots from turn to turn, which LLVM makes registers of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..compile.ir.loopir import Buffer, Exchange, Statement
from .expressions import Values
from .writer import Writer


class Exchanges:
    """Those of the loops of one function."""

    def __init__(self, writer: Writer, values: Values):
        self.writer, self.module = writer, writer.module
        self.op, self.line = writer.op, writer.line
        self.values = values
        self.root = writer.module.placement.root
        self.slots: dict[Buffer, str] = {}

    def buffers(self, body: Sequence[Statement]) -> list[Buffer]:
        """Those that turns of a loop with such a body exchange, in pairs."""
        pairs = next((s.pairs for s in reversed(body) if isinstance(s, Exchange)), ())
        return [self.root(b) for pair in pairs for b in pair]

    @contextmanager
    def around(self, body: Sequence[Statement]) -> Iterator[list[Buffer]]:
        """Around a loop with such a body: gives the buffers that change their memories. Behind it those that are
        carried have their own again."""
        exchanged = self.buffers(body)
        if not exchanged:
            yield exchanged
            return
        outside = dict(self.slots)  # of loops around, which exchange the same buffers perhaps
        own = {b: self.values.pointer(b) for b in exchanged}
        homes = {b: self.module.homes.pop(b) for b in exchanged if b in self.module.homes}
        for b in exchanged:
            slot = self.slots[b] = self.writer.fresh()
            self.writer.entry.append(f"  {slot} = alloca ptr")
            self.line(f"store ptr {own[b]}, ptr {slot}")
        yield exchanged
        self.values.pointers.update(own)
        self.module.homes.update(homes)
        self.writer.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        for b in exchanged[::2]:
            held = self.op(f"load ptr, ptr {self.slots[b]}")
            size = self.op(f"select i1 {self.op(f'icmp eq ptr {held}, {own[b]}')}, i64 0, i64 {b.nbytes}")
            self.line(f"call void @llvm.memmove.p0.p0.i64(ptr {own[b]}, ptr {held}, i64 {size}, i1 false)")
        self.slots = outside

    def turn(self, exchanged: Sequence[Buffer]) -> None:
        """At the start of a turn: where the buffers are now."""
        for b in exchanged:
            self.values.pointers[b] = self.op(f"load ptr, ptr {self.slots[b]}")

    def exchange(self, s: Exchange) -> None:
        """At the end of a turn: of each pair one has the other's memory from now on."""
        for pair in s.pairs:
            a, b = (self.root(x) for x in pair)
            here, there = self.values.pointer(a), self.values.pointer(b)
            self.line(f"store ptr {there}, ptr {self.slots[a]}")
            self.line(f"store ptr {here}, ptr {self.slots[b]}")


__all__ = ["Exchanges"]
