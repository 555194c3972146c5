"""Memory that is copied or filled as a block, by the C library: it fetches nothing that it overwrites."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile.ir.expr import BOOL, Arena, Expr, coefficient, const_value
from ..compile.ir.loads import copied
from ..compile.ir.loopir import Buffer, Copy, Loop, Store
from ..compile.lowering.number_types import NARROW_INTS, is_complex
from .expressions import Values
from .instructions import memory_type
from .writer import Writer

SHARED = 1 << 19  # bytes of a copy from which threads share it
FILLED = 1 << 12  # bytes from which a call is worth it
SHORT = 8  # vectors up to which LLVM copies without a call, and without a mask for what is left at the end
WORD = 4  # bytes of the smallest elements of which loops have registers full


def _byte_of(e: Expr) -> int | None:
    """What all bytes of a constant are in memory, if they are the same."""
    parts = e.args if is_complex(e.dtype) else (e,)
    if any(p.op != "const" for p in parts):
        return None
    dtype: Any = np.uint8 if e.dtype == BOOL else parts[0].dtype
    held = {byte for p in parts for byte in np.asarray(const_value(p), dtype).tobytes()}
    return held.pop() if len(held) == 1 else None


def fills(arena: Arena, s: Loop) -> int | None:
    """The byte with which turns of a loop fill memory that lies side by side (loop idiom recognition)."""
    store = s.body[0]
    if len(s.body) > 1 or not isinstance(store, Store):
        return None
    length = s.extent if isinstance(s.extent, int) else 0
    if length * store.buffer.dtype.itemsize < FILLED or coefficient(arena, store.offset, s.var) is not arena.int(1):
        return None
    return _byte_of(store.value)


def copies(arena: Arena, s: Loop, vector_bytes: int) -> tuple[Store, Expr] | None:
    """The store and the load of turns that copy elements from place to place, both side by side, where a block is
    copied faster than by vectors of them: where the elements would be converted, or leave registers empty, and where
    the last vector would be masked."""
    store = s.body[0]
    if len(s.body) > 1 or not isinstance(store, Store):
        return None
    load, dtype, one = copied(store.value), store.buffer.dtype, arena.int(1)
    if load is None or load.attr[0].dtype != dtype or dtype in NARROW_INTS:
        return None
    if any(coefficient(arena, place, s.var) is not one for place in (store.offset, *load.args)):
        return None
    converted = is_complex(dtype) or dtype.itemsize < WORD
    short = isinstance(s.extent, int) and s.extent * dtype.itemsize <= SHORT * vector_bytes
    return (store, load) if converted or short else None


class Blocks:
    """Writes such copies and fills."""

    def __init__(self, writer: Writer, values: Values):
        self.writer, self.values, self.arena = writer, values, writer.arena
        self.op, self.line, self.value = writer.op, writer.line, values.value

    def copy(self, s: Copy) -> None:
        """All elements of a copy, unless they are where they belong."""
        root = self.writer.module.placement.root
        count = self.arena.index(s.count)
        if root(s.target) is root(s.source) and s.target_offset is s.source_offset or count is self.arena.index(0):
            return  # (an empty buffer has no memory)
        with self.writer.scope(statement=True):
            to, source = self._at(s.target, s.target_offset), self._at(s.source, s.source_offset)
            size = self.value(self.arena.imul(count, s.target.dtype.itemsize))
            if isinstance(s.count, int) and s.count * s.target.dtype.itemsize >= SHARED and root(s.target) is not root(
                    s.source):
                self.writer.declare("declare void @styrax_copy(ptr, ptr, i64)")
                self.line(f"call void @styrax_copy(ptr {to}, ptr {source}, i64 {size})")
            else:
                self.writer.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
                self.line(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def copied(self, s: Loop, low: str, high: str) -> bool:
        """Turns of a loop from `low` on, if they are `copies` from one memory to another."""
        module = self.writer.module
        found = None if module.bounds else copies(self.arena, s, module.vector_bytes)
        root = module.placement.root
        if found is None or root(found[0].buffer) is root(found[1].attr[0]):
            return False
        store, load = found
        with self.writer.scope(statement=True):
            start = {s.var: self.arena.int(0)}
            places = [(store.buffer, store.offset), (load.attr[0], load.args[0])]
            to, source = (self.op(f"getelementptr {memory_type(buffer.dtype)}, ptr "
                                  f"{self._at(buffer, self.arena.substitute(place, start, {}))}, i64 {low}")
                          for buffer, place in places)
            size = self._bytes(store.buffer, low, high)
            self.writer.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
            self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")
        return True

    def fill(self, s: Loop, low: str, high: str, byte: int) -> None:
        """Turns of a loop from `low` on that `fills` found a byte for."""
        store = s.body[0]
        assert isinstance(store, Store)
        with self.writer.scope(statement=True):
            start = self.value(self.arena.substitute(store.offset, {s.var: self.arena.int(0)}, {}))
            to = self._at(store.buffer, self.op(f"add i64 {start}, {low}"))
            size = self._bytes(store.buffer, low, high)
            self.writer.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            self.line(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {byte}, i64 {size}, i1 false)")

    def _bytes(self, buffer: Buffer, low: str, high: str) -> str:
        """How many the elements of some turns have, of which there may be none."""
        each = buffer.dtype.itemsize
        if low.isdigit() and high.isdigit():
            return str(max(int(high) - int(low), 0) * each)
        self.writer.declare("declare i64 @llvm.smax.i64(i64, i64)")
        count = self.op(f"call i64 @llvm.smax.i64(i64 {self.op(f'sub i64 {high}, {low}')}, i64 0)")
        return self.op(f"mul i64 {count}, {each}")

    def _at(self, buffer: Buffer, place: Expr | str) -> str:
        """The address of an element."""
        index = place if isinstance(place, str) else self.value(place)
        return self.op(f"getelementptr {memory_type(buffer.dtype)}, ptr {self.values.pointer(buffer)}, i64 {index}")
