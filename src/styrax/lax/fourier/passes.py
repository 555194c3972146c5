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
from typing import TYPE_CHECKING

import numpy as np

from ..lane_blocks import counted
from .butterflies import dft, mul
from .lengths import convolution_length, is_smooth, radices

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Expr, Index, Nest, Value

    from .butterflies import Pair

    Read = Callable[[Expr, Expr], Pair]  # (element of the line, lane) -> its parts
    Store = tuple[Value, Sequence[Index], Expr]
    Write = Callable[[Expr, Expr, Pair], list[Store]]  # (element of the result, lane, its parts) -> what stores it


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


@lru_cache(maxsize=16)
def chirps(n: int, length: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """`exp(-πi·j²/n)`, and the transform of its conjugate, cyclic with `length` elements, divided by that."""
    j = np.arange(n)
    chirp = roots(j * j, 2 * n, np.dtype(np.float64))
    kernel = np.zeros(length, np.complex128)
    kernel[:n] = chirp[0] - 1j * chirp[1]
    kernel[length - n + 1:] = kernel[n - 1:0:-1]
    spectrum = np.fft.fft(kernel) / length
    return chirp.astype(dtype), np.stack([spectrum.real, spectrum.imag]).astype(dtype)


class Lines:
    """Transforms of `width` lines side by side, inside a nest: of a power of two of them. In scratch memory the parts
    of an element stand `beside` each other, or all real parts before all imaginary ones."""

    def __init__(self, b: Builder, nest: Nest, length: int, width: int, dtype: np.dtype, beside: bool = False):
        self.b, self.nest, self.length, self.width, self.dtype = b, nest, length, width, dtype
        self.beside = beside
        self.vector = min(width, b.vector_bytes // dtype.itemsize)

    def scratch(self, length: int | None = None) -> Value:
        size = length or self.length
        return self.nest.scratch((size, 2, self.width) if self.beside else (2, size, self.width), self.dtype)

    def place(self, part: int, k: Index, lane: Expr) -> tuple[Index, ...]:
        return (k, part, lane) if self.beside else (part, k, lane)

    @contextmanager
    def lanes(self) -> Iterator[Expr]:
        """A loop over the lines."""
        if self.width == 1:
            yield self.b.int(0)
            return
        with self.nest.loop(self.width, vector=True, lanes=self.vector) as lane:
            yield lane

    def reader(self, source: Value) -> Read:
        def at(part: int, j: Expr, lane: Expr) -> Expr:
            return source.at([self.b.index(i) for i in self.place(part, j, lane)])

        return lambda j, lane: (at(0, j, lane), at(1, j, lane))

    def writer(self, target: Value) -> Write:
        return lambda k, lane, value: [(target, self.place(part, k, lane), value[part]) for part in (0, 1)]

    def factor(self, table: Value, *index: Index) -> Pair:
        """An element of a table that is the same for all lines."""
        return self.nest.let(table.at((0, *index))), self.nest.let(table.at((1, *index)))

    def run(self, read: Read, write: Write, first: Value | None = None) -> None:
        """The transform of all lines. `first`: scratch memory that `read` reads, free after that."""
        if is_smooth(self.length):
            self._passes(self.length, read, write, [] if first is None else [first])
        else:
            self._convolution(read, write)

    def _convolution(self, read: Read, write: Write) -> None:
        b, n, nest = self.b, self.length, self.nest
        length = convolution_length(n)
        chirp, kernel = map(b.constant, chirps(n, length, self.dtype))
        ahead, filtered = self.scratch(length), self.scratch(length)
        zero = b.const(0, self.dtype)
        with counted(b, nest, n) as j:
            turn = self.factor(chirp, j)
            with self.lanes() as lane:
                nest.together(self.writer(ahead)(j, lane, mul(b, read(j, lane), turn)))
        with counted(b, nest, length - n) as j, self.lanes() as lane:
            nest.together(self.writer(ahead)(b.iadd(j, n), lane, (zero, zero)))
        self._passes(length, self.reader(ahead), self.writer(filtered), [ahead])
        with counted(b, nest, length) as j:  # what goes back does so with its parts exchanged
            turn = self.factor(kernel, j)
            with self.lanes() as lane:
                nest.together(self.writer(ahead)(j, lane, mul(b, self.reader(filtered)(j, lane), turn)[::-1]))
        self._passes(length, self.reader(ahead), self.writer(filtered), [ahead])
        with counted(b, nest, n) as k:
            turn = self.factor(chirp, k)
            with self.lanes() as lane:
                nest.together(write(k, lane, mul(b, self.reader(filtered)(k, lane)[::-1], turn)))

    def _passes(self, length: int, read: Read, write: Write, spare: list[Value]) -> None:
        """A transform of a smooth length. `spare`: what `read` reads, free after the first pass."""
        b, nest = self.b, self.nest
        steps = radices(length, 8 if b.vector_bytes >= 64 else 4)
        held = spare[0] if spare else None
        stride, size = 1, length
        for number, radix in enumerate(steps):
            target, free = write, None
            if number != len(steps) - 1:
                free = next((s for s in spare if s is not held), None)
                if free is None:
                    free = self.scratch(length)
                    spare.append(free)
                target = self.writer(free)
            m = size // radix
            factors = b.constant(_factors(size, radix, self.dtype)) if m > 1 else None
            with counted(b, nest, m) as p:
                turns = [] if factors is None else [self.factor(factors, p, k) for k in range(1, radix)]
                with counted(b, nest, stride) as q, self.lanes() as lane:
                    def place(high: Expr, q: Expr = q, stride: int = stride) -> Expr:
                        return b.iadd(q, b.imul(high, stride))

                    values = dft(b, [read(place(b.iadd(p, m * j)), lane) for j in range(radix)])
                    stores = []
                    for k, value in enumerate(values):
                        if turns and k:
                            value = mul(b, value, turns[k - 1])
                        stores += target(place(b.iadd(b.imul(p, radix), k)), lane, value)
                    nest.together(stores)
            if free is not None:
                read, held = self.reader(free), free
            stride, size = stride * radix, m


def work_of(length: int, width: int, dtype: np.dtype) -> float:
    """Roughly how many instructions transforms of `width` lines take, with 64 bytes in a vector."""
    return 4.0 * length * max(1.0, math.log2(length)) * max(1, width * dtype.itemsize // 64)
