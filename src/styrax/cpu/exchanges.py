"""Buffers that exchange their memories at the end of each turn of a loop (double buffering): their pointers stand in
slots from turn to turn, which LLVM makes registers of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        """Those that turns of a loop with such a body exchange."""
        return [b for chain in self._rotations(body) for b in chain]

    def _rotations(self, body: Sequence[Statement]) -> list[list[Buffer]]:
        last = next((s for s in reversed(body) if isinstance(s, Exchange)), None)
        return [] if last is None else [[self.root(b) for b in chain] for chain in last.rotations()]

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
        for chain in self._rotations(body):
            self._bring_home(chain, own)
        self.slots = outside

    def _bring_home(self, chain: Sequence[Buffer], own: Mapping[Buffer, str]) -> None:
        """Moves carried elements to their own memory. One memory holds nothing: whose it is moves there, which frees
        another, until the one that holds nothing is that of the last, which is not carried."""
        *carried, last = chain
        held = {b: self.op(f"load ptr, ptr {self.slots[b]}") for b in chain}
        free = held[last]
        for _ in carried:
            source = free
            for b in carried:
                source = self.op(f"select i1 {self.op(f'icmp eq ptr {free}, {own[b]}')}, ptr {held[b]}, ptr {source}")
            size = self.op(f"select i1 {self.op(f'icmp eq ptr {source}, {free}')}, i64 0, i64 {last.nbytes}")
            self.line(f"call void @llvm.memmove.p0.p0.i64(ptr {free}, ptr {source}, i64 {size}, i1 false)")
            free = source

    def turn(self, exchanged: Sequence[Buffer]) -> None:
        """At the start of a turn: where the buffers are now."""
        for b in exchanged:
            self.values.pointers[b] = self.op(f"load ptr, ptr {self.slots[b]}")

    def exchange(self, s: Exchange) -> None:
        """At the end of a turn: each has the next one's memory from now on, the last the first one's."""
        for chain in s.rotations():
            buffers = [self.root(b) for b in chain]
            pointers = [self.values.pointer(b) for b in buffers]
            for b, there in zip(buffers, [*pointers[1:], pointers[0]], strict=True):
                self.line(f"store ptr {there}, ptr {self.slots[b]}")


__all__ = ["Exchanges"]
