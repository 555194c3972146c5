"""Transforms in the lanes of vectors: passes of butterflies over lines that lie side by side.

A pass of radix r over a line of n elements, of which stretches of `stride` are done already, is Stockham's (see
C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7): with m = n / stride / r, for
all p < m and q < stride,

    y[q + stride·(r·p + k)] = exp(-2πi·p·k/(m·r)) · Σ x[q + stride·(p + m·j)] exp(-2πi·j·k/r)

After the passes of all radices the elements stand in order. Each lane holds a line of its own, so that every access
is contiguous; what lies between passes stays in scratch memory, real and imaginary parts apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.compile.ir.expr import unwrap
from styrax.compile.ir.loopir import Store

from .butterflies import dft, mul
from .lengths import radices

if TYPE_CHECKING:
    from styrax.compile.ir.expr import Expr, Index
    from styrax.compile.ir.values import Stored
    from styrax.core.programs.lowering import Builder, Nest

    from .butterflies import Pair

    Read = Callable[[Expr, Expr], Pair]  # (element of the line, lane) -> its parts
    Write = Callable[[Expr, Expr, Pair], Sequence[Any]]  # -> the statements that store it

WORTH_THREADS = 60_000  # estimated instructions from which lines are shared by threads


def roots(numerators: np.ndarray, denominator: int, dtype: np.dtype) -> np.ndarray:
    """`exp(-2πi·numerators/denominator)`; real and imaginary parts apart, along a new first axis."""
    angles = -2 * np.pi * (numerators % denominator) / denominator
    return np.stack([np.cos(angles), np.sin(angles)]).astype(dtype)


@lru_cache(maxsize=64)
def _factors(size: int, radix: int, dtype: np.dtype) -> np.ndarray:
    """What a pass multiplies with: shape [2, size // radix, radix]."""
    return roots(np.outer(np.arange(size // radix), np.arange(radix)), size, dtype)


@lru_cache(maxsize=16)
def grid_factors(rows: int, columns: int, dtype: np.dtype) -> np.ndarray:
    """What stands between the two steps of a transform of length `rows·columns`: shape [2, rows, columns]."""
    return roots(np.outer(np.arange(rows), np.arange(columns)), rows * columns, dtype)


class Lines:
    """Transforms of `width` lines side by side, inside a nest."""

    def __init__(self, b: Builder, nest: Nest, length: int, width: int, dtype: np.dtype):
        self.b, self.nest, self.length, self.width, self.dtype = b, nest, length, width, dtype
        self.radices = radices(length, 8 if b.vector_bytes >= 64 else 4)

    def scratch(self) -> Stored:
        return self.nest.scratch((2, self.length, self.width), self.dtype)

    @contextmanager
    def lanes(self) -> Iterator[Expr]:
        """A loop over the lanes; all that stands in it is stores, which share what they compute."""
        if self.width == 1:
            yield self.b.int(0)
            return
        with self.nest.loop(self.width, vector=True) as lane:
            yield lane

    def reader(self, source: Stored) -> Read:
        return lambda j, lane: (source.at((0, j, lane)), source.at((1, j, lane)))

    def writer(self, target: Stored) -> Write:
        return lambda k, lane, value: [stored(self.b, target, (part, k, lane), value[part]) for part in (0, 1)]

    def run(self, read: Read, write: Write, first: Stored | None = None) -> None:
        """The transform of all lines. `first`: scratch memory that `read` reads, free after the first pass."""
        b = self.b
        spare: list[Stored] = [] if first is None else [first]
        stride, size, last = 1, self.length, len(self.radices) - 1
        source, held = read, first
        for number, radix in enumerate(self.radices):
            target = write
            free = None
            if number != last:
                free = next((s for s in spare if s is not held), None)
                if free is None:
                    free = self.scratch()
                    spare.append(free)
                target = self.writer(free)
            m = size // radix
            factors = b.constant(_factors(size, radix, self.dtype)) if m > 1 else None
            with self.counted(m) as p:
                turns = [] if factors is None else [
                    tuple(self.nest.let(factors.at((part, p, b.int(k)))) for part in (0, 1)) for k in range(1, radix)]
                with self.counted(stride) as q, self.lanes() as lane:
                    place = lambda high: b.iadd(q, b.imul(high, stride))
                    values = dft(b, [source(place(b.iadd(p, m * j)), lane) for j in range(radix)])
                    stores = []
                    for k, value in enumerate(values):
                        if turns and k:
                            value = mul(b, value, turns[k - 1])
                        stores += target(place(b.iadd(b.imul(p, radix), k)), lane, value)
                    self.nest.together(stores)
            source, held = self.reader(free) if free is not None else source, free
            stride, size = stride * radix, m

    @contextmanager
    def counted(self, extent: Index) -> Iterator[Expr]:
        if isinstance(extent, int) and extent == 1:
            yield self.b.int(0)
            return
        with self.nest.loop(extent) as i:
            yield i

    def tiles(self, size: int) -> int:
        """How many squares of `width` cover `size` elements: the last one is moved back to end with them."""
        return -(-size // self.width)

    def start(self, tile: Expr, size: int, step: int | None = None) -> Expr:
        step = step or self.width
        return self.b.min(self.b.imul(tile, step), self.b.int(size - step)) if size % step else self.b.imul(tile, step)


def stored(b: Builder, target: Stored, index: Sequence[Index], value: Expr) -> Any:
    return Store(target.buffer, target.place([b.index(i) for i in index]), value)


@contextmanager
def blocks(b: Builder, nest: Nest, lines: Index, columns: Index, width: int, work: float) -> Iterator[tuple[Expr, Expr]]:
    """A loop over blocks of `width` columns of each line, shared by threads; gives line and first column. Columns that
    are no multiple of `width` end with a block that begins within the one before: what both compute is the same."""
    count = b.floordiv(b.iadd(columns, width - 1), b.int(width))
    total = unwrap(b.imul(lines, count))
    whole = isinstance(columns, int) and columns % width == 0

    def at(block: Expr) -> tuple[Expr, Expr]:
        line, column = b.floordiv(block, b.index(count)), b.floormod(block, b.index(count))
        first = b.imul(column, width)
        if not whole:
            first = b.min(first, b.isub(columns, width))
        return nest.let(line), nest.let(first)

    if isinstance(total, int) and total == 1:
        yield b.int(0), b.int(0)
        return
    parallel = not isinstance(total, int) or total * work >= WORTH_THREADS
    with nest.loop(total, parallel=parallel) as block:
        yield at(block)


def work_of(length: int) -> float:
    """Roughly how many instructions the transform of one vector of lines takes."""
    return 4.0 * length * max(1.0, math.log2(length))
