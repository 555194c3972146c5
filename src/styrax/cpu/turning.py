"""Matrices turned in registers, as LLVM IR compiled when a program first asks.

What generated code calls, for elements of SIZE bytes, and LANES rows or tiles of so many in scratch memory::

    declare void @turn_in_SIZE_LANES(ptr target, i64 apart, ptr source, i64 stride, i64 length)
        target[apart·c + r] = source[stride·r + c] for r < LANES and c < length
    declare void @turn_out_SIZE_LANES(ptr target, i64 stride, ptr tile, i64 apart, i64 length)
        target[stride·r + c] = tile[apart·c + r] for r < LANES and c < length

LANES fit into a vector register: wider tiles are turned part by part. Both go by strips of as many columns as 16 bytes
hold, of which `length` is one at least; the last strip may overlap the one before. Vectors of the pieces of several
rows are transposed within each 16 bytes, which costs processors and LLVM little.

Where rows lie a power of two apart, their lines of memory meet in few sets of the nearest cache, which then forgets
them from one strip to the next. `turn_in_SIZE_LANES_whole` and `turn_out_SIZE_LANES_whole` go by strips of LANES
columns, whose pieces are exchanged between vectors: they touch each line once. That is three times the work for LLVM:
code that is made quickly calls those of the short strips in their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from . import llvm
from .on_demand import Family

if TYPE_CHECKING:  # programs from the disk need no compiler
    from ..compile.ir.loopir import Transpose

TYPES = {2: "i16", 4: "float", 8: "double"}
MEETING = 1 << 11  # bytes: lines of memory so far apart meet in so few sets of the nearest cache that it forgets them
ROWS = 16  # up to which that pays: functions for more take LLVM 30 ms, and gained nothing
_NAME = re.compile(r"turn_(in|out)_(2|4|8)_(\d+)(_whole)?")


def turned(parts: Sequence[str], v: str, op: Callable[[str], str], unit: int = 1) -> list[str]:
    """n vectors of n lanes, of type `v`, as the columns of what they were the rows of: log2(n) rounds of exchanges.
    Lanes are `unit` elements each."""
    n, parts = len(parts), list(parts)
    distance = 1
    while distance < n:
        out = list(parts)
        for i in range(n):
            if i & distance:
                continue
            a, b = parts[i], parts[i + distance]
            low = _order([p if not p & distance else n + p - distance for p in range(n)], unit)
            high = _order([p + distance if not p & distance else n + p for p in range(n)], unit)
            out[i] = op(f"shufflevector {v} {a}, {v} {b}, {low}")
            out[i + distance] = op(f"shufflevector {v} {a}, {v} {b}, {high}")
        parts = out
        distance *= 2
    return parts


def tile(rows: Sequence[str], v: str, size: int, op: Callable[[str], str]) -> list[str]:
    """n vectors of n elements of `size` bytes, of type `v`, as the columns of what they were the rows of: blocks of 16
    bytes change places, and are transposed within."""
    group = min(16 // size, len(rows))
    blocks = [turned(rows[i::group], v, op, group) for i in range(group)]
    return [column for vectors in zip(*blocks, strict=True) for column in _columns(vectors, v, len(rows), op)]


def _columns(vectors: Sequence[str], v: str, lanes: int, op: Callable[[str], str]) -> list[str]:
    """Blocks of as many lanes as there are vectors, each transposed within: neighbours are interleaved, then pairs of
    them, and so on."""
    groups, unit, group = [[x] for x in vectors], 1, len(vectors)
    while len(groups) > 1:
        orders = [_interleaving(lanes, group, unit, half) for half in (0, 1)]
        groups = [[op(f"shufflevector {v} {a}, {v} {b}, {order}") for a, b in zip(x, y, strict=True)
                   for order in orders] for x, y in zip(groups[::2], groups[1::2], strict=True)]
        unit *= 2
    return groups[0]


def _interleaving(lanes: int, group: int, unit: int, half: int) -> str:
    """The mask of a shuffle that takes units of half of each group of lanes of two vectors, in turn."""
    order = []
    for block in range(0, lanes, group):
        for start in range(block + half * (group // 2), block + (half + 1) * (group // 2), unit):
            order += [*range(start, start + unit), *range(lanes + start, lanes + start + unit)]
    return _order(order, 1)


def _order(places: Sequence[int], unit: int) -> str:
    """The mask of a shuffle of lanes of `unit` elements each."""
    elements = [f"i32 {unit * p + i}" for p in places for i in range(unit)]
    return f"<{len(elements)} x i32> <{', '.join(elements)}>"


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
    into, size, lanes = goes_in(s), s.source.dtype.itemsize, at_once(s, vector_bytes)
    length, stride = (s.columns, s.source_stride) if into else (s.rows, s.target_stride)
    whole = (lanes * size == vector_bytes > 16 and lanes <= ROWS and length >= lanes
             and stride * size % MEETING == 0)
    return f"turn_{'in' if into else 'out'}_{size}_{lanes}{'_whole' if whole else ''}"


def source(symbol: str) -> str | None:
    """The text of a function."""
    found = _NAME.fullmatch(symbol)
    if found is None:
        return None
    way, size, lanes, whole = found.groups()
    return _Text(symbol, int(size), int(lanes), bool(whole)).function(way == "in")


class _Text:
    """The lines of a function."""

    def __init__(self, symbol: str, size: int, lanes: int, whole: bool):
        self.symbol, self.size, self.lanes, self.whole = symbol, size, lanes, whole
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
        strip = self.lanes if self.whole else self.group
        self.lines += ["entry:", f"  %last = sub i64 %length, {strip}", "  br label %strip", "strip:",
                       "  %at = phi i64 [ 0, %entry ], [ %next, %strip ]",
                       "  %c = call i64 @llvm.smin.i64(i64 %at, i64 %last)"]
        self.lines.append(f"  %far0 = getelementptr {self.t}, ptr %far, i64 %c")
        self._strip_in() if into else self._strip_out()
        self.lines += [f"  %next = add i64 %at, {strip}", "  %again = icmp slt i64 %next, %length",
                       "  br i1 %again, label %strip, label %end", "end:", "  ret void"]
        return "\n".join(["declare i64 @llvm.smin.i64(i64, i64)",
                          f"define void @{self.symbol}({parameters}, i64 %length) nounwind {{", *self.lines, "}"])

    def _strip_in(self) -> None:
        group = self.group
        if self.whole:
            rows = [self.op(f"load {self.vector}, ptr {at}, align {self.size}") for at in self._rows()]
            columns = tile(rows, self.vector, self.size, self.op)
        else:
            pieces = [self.op(f"load {self.piece}, ptr {at}, align {self.size}") for at in self._rows()]
            columns = self._columns([self._joined(pieces[i::group]) for i in range(group)])
        for k, vector in enumerate(columns):
            self.lines.append(f"  store {self.vector} {vector}, ptr {self._of_tile(k)}, align {self.size}")

    def _strip_out(self) -> None:
        group = self.group
        columns = [self.op(f"load {self.vector}, ptr {self._of_tile(k)}, align {self.size}")
                   for k in range(self.lanes if self.whole else group)]
        blocks = [self._columns(columns[i:i + group]) for i in range(0, len(columns), group)]
        if self.whole:
            rows = [turned(vectors, self.vector, self.op, group) for vectors in zip(*blocks, strict=True)]
        for row, at in enumerate(self._rows()):
            block, k = divmod(row, group)
            if self.whole:
                self.lines.append(f"  store {self.vector} {rows[k][block]}, ptr {at}, align {self.size}")
                continue
            vector = blocks[0][k]
            piece = self.op(f"shufflevector {self.vector} {vector}, {self.vector} poison, {_order([block], group)}")
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

    def _columns(self, vectors: Sequence[str]) -> list[str]:
        """The pieces of rows as pieces of columns."""
        return _columns(vectors, self.vector, self.lanes, self.op)

    def _joined(self, pieces: Sequence[str]) -> str:
        width = self.group
        pieces = list(pieces)
        while len(pieces) > 1:
            v, width = f"<{width} x {self.t}>", 2 * width
            pieces = [self.op(f"shufflevector {v} {a}, {v} {b}, {_order(range(width), 1)}")
                      for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
        return pieces[0]


family = Family("turn", source, llvm.BRIEFEST, lambda symbol: symbol.removesuffix("_whole"))
