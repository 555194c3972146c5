"""Matrices turned in registers, as LLVM IR compiled when a program first asks.

What generated code calls, for elements of SIZE bytes, and LANES rows or tiles of so many in scratch memory::

    declare void @turn_in_SIZE_LANES(ptr target, i64 apart, ptr source, i64 stride, i64 length)
        target[apart·c + r] = source[stride·r + c] for r < LANES and c < length
    declare void @turn_out_SIZE_LANES(ptr target, i64 stride, ptr tile, i64 apart, i64 length)
        target[stride·r + c] = tile[apart·c + r] for r < LANES and c < length

LANES fit into a vector register: wider tiles are turned part by part. Both go by strips of as many columns as 16 bytes
hold, of which `length` is one at least; the last strip may overlap the one before. Vectors of the pieces of several
rows are transposed within each 16 bytes, which costs processors and LLVM little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from . import llvm
from .on_demand import Family

if TYPE_CHECKING:  # programs from the disk need no compiler
    from ..compile.ir.loopir import Transpose

TYPES = {2: "i16", 4: "float", 8: "double"}


def turned(parts: Sequence[str], v: str, op: Callable[[str], str]) -> list[str]:
    """n vectors of n lanes, of type `v`, as the columns of what they were the rows of: log2(n) rounds of exchanges."""
    n, parts = len(parts), list(parts)
    distance = 1
    while distance < n:
        out = list(parts)
        for i in range(n):
            if i & distance:
                continue
            a, b = parts[i], parts[i + distance]
            low = ", ".join(f"i32 {p if not p & distance else n + p - distance}" for p in range(n))
            high = ", ".join(f"i32 {p + distance if not p & distance else n + p}" for p in range(n))
            out[i] = op(f"shufflevector {v} {a}, {v} {b}, <{n} x i32> <{low}>")
            out[i + distance] = op(f"shufflevector {v} {a}, {v} {b}, <{n} x i32> <{high}>")
        parts = out
        distance *= 2
    return parts


def goes_in(s: Transpose) -> bool:
    """Whether rows become columns; else a tile in scratch memory becomes rows again."""
    from ..compile.ir.loopir import BufferKind

    return s.target.kind is BufferKind.SCRATCH or s.source.kind is not BufferKind.SCRATCH


def at_once(s: Transpose, vector_bytes: int) -> int:
    """The rows or columns that a call turns."""
    count, most = s.rows if goes_in(s) else s.columns, vector_bytes // s.source.dtype.itemsize
    return most if count % most == 0 else count


def called(s: Transpose, vector_bytes: int) -> str:
    """The function that a transposition calls."""
    return f"turn_{'in' if goes_in(s) else 'out'}_{s.source.dtype.itemsize}_{at_once(s, vector_bytes)}"


def source(symbol: str) -> str | None:
    """The text of a function."""
    _, way, size, lanes = f"{symbol}___".split("_")[:4]
    if way not in ("in", "out") or not size.isdigit() or int(size) not in TYPES or not lanes.isdigit():
        return None
    return _Text(symbol, int(size), int(lanes)).function(way == "in")


class _Text:
    """The lines of a function."""

    def __init__(self, symbol: str, size: int, lanes: int):
        self.symbol, self.size, self.lanes = symbol, size, lanes
        self.t = TYPES[size]
        self.group = 16 // size
        self.piece, self.vector = f"<{self.group} x {self.t}>", f"<{lanes} x {self.t}>"
        self.lines: list[str] = []

    def op(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def function(self, into: bool) -> str:
        tile, far = "ptr %tile, i64 %apart", "ptr %far, i64 %stride"
        parameters = f"{tile}, {far}" if into else f"{far}, {tile}"
        self.lines += ["entry:", f"  %last = sub i64 %length, {self.group}", "  br label %strip", "strip:",
                       "  %at = phi i64 [ 0, %entry ], [ %next, %strip ]",
                       "  %c = call i64 @llvm.smin.i64(i64 %at, i64 %last)"]
        self.lines.append(f"  %far0 = getelementptr {self.t}, ptr %far, i64 %c")
        self._strip_in() if into else self._strip_out()
        self.lines += [f"  %next = add i64 %at, {self.group}", "  %again = icmp slt i64 %next, %length",
                       "  br i1 %again, label %strip, label %end", "end:", "  ret void"]
        return "\n".join(["declare i64 @llvm.smin.i64(i64, i64)",
                          f"define void @{self.symbol}({parameters}, i64 %length) nounwind {{", *self.lines, "}"])

    def _strip_in(self) -> None:
        pieces = [self.op(f"load {self.piece}, ptr {at}, align {self.size}") for at in self._rows()]
        vectors = [self._joined(pieces[i::self.group]) for i in range(self.group)]
        for k, vector in enumerate(self._columns(vectors)):
            self.lines.append(f"  store {self.vector} {vector}, ptr {self._of_tile(k)}, align {self.size}")

    def _strip_out(self) -> None:
        columns = self._columns([self.op(f"load {self.vector}, ptr {self._of_tile(k)}, align {self.size}")
                                 for k in range(self.group)])
        for row, at in enumerate(self._rows()):
            block, k = divmod(row, self.group)
            order = ", ".join(f"i32 {block * self.group + i}" for i in range(self.group))
            piece = self.op(f"shufflevector {self.vector} {columns[k]}, {self.vector} poison, "
                            f"<{self.group} x i32> <{order}>")
            self.lines.append(f"  store {self.piece} {piece}, ptr {at}, align {self.size}")

    def _rows(self) -> list[str]:
        """The addresses of the strip in each row."""
        out = ["%far0"]
        while len(out) < self.lanes:
            out.append(self.op(f"getelementptr {self.t}, ptr {out[-1]}, i64 %stride"))
        return out

    def _of_tile(self, k: int) -> str:
        column = self.op(f"add i64 %c, {k}")
        index = self.op(f"mul i64 {column}, %apart")
        return self.op(f"getelementptr {self.t}, ptr %tile, i64 {index}")

    def _joined(self, pieces: Sequence[str]) -> str:
        width = self.group
        pieces = list(pieces)
        while len(pieces) > 1:
            v, width = f"<{width} x {self.t}>", 2 * width
            order = ", ".join(f"i32 {i}" for i in range(width))
            pieces = [self.op(f"shufflevector {v} {a}, {v} {b}, <{width} x i32> <{order}>")
                      for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
        return pieces[0]

    def _columns(self, vectors: Sequence[str]) -> list[str]:
        """The pieces of rows as pieces of columns: neighbours are interleaved, then pairs of them, and so on."""
        groups, unit = [[v] for v in vectors], 1
        while len(groups) > 1:
            groups = [[self._interleaved(a, b, unit, half) for a, b in zip(x, y, strict=True) for half in (0, 1)]
                      for x, y in zip(groups[::2], groups[1::2], strict=True)]
            unit *= 2
        return groups[0]

    def _interleaved(self, a: str, b: str, unit: int, half: int) -> str:
        """Units of half of each 16 bytes of two vectors, in turn."""
        order = []
        for block in range(self.lanes // self.group):
            for i in range(self.group // unit // 2):
                start = block * self.group + half * (self.group // 2) + i * unit
                order += [*range(start, start + unit), *range(self.lanes + start, self.lanes + start + unit)]
        text = ", ".join(f"i32 {i}" for i in order)
        return self.op(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> <{text}>")


family = Family("turn", source, llvm.BRIEFEST)
