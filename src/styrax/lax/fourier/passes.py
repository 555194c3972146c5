"""Transforms in the lanes of vectors: passes of butterflies over lines that lie side by side.

Each lane holds a line of its own, so that every access is contiguous. Passes are functions that are compiled once for
all lengths (`cpu.butterflies`); the first reads complex numbers where they lie, and the last writes them there. What
lies between passes stays in scratch memory, real and imaginary parts apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..lane_blocks import counted, lanes
from .lengths import WRITTEN_OUT, convolution_length, is_smooth, radices

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Expr, Index, Nest, Value

    Pair = tuple[Expr, Expr]  # the parts of a complex number


class Pairs(NamedTuple):
    """Complex numbers in memory, as a first pass reads them or a last one writes them: those of a line `unit` apart,
    those of neighbouring lines side by side. With its parts `exchanged` before and after, a forward transform becomes
    an inverse one."""

    value: Value
    at: Index  # of the first element of the first line
    unit: Index
    exchanged: bool = False


class Apart(NamedTuple):
    """The same with all parts of a kind apart: imaginary ones `part` numbers behind the real ones. Results are
    multiplied with `turns`, which lie in the same way, where there are such."""

    value: Value
    at: Index
    unit: Index
    part: Index
    turns: Apart | None = None


def mul(b: Builder, x: Pair, w: Pair) -> Pair:
    """The product of two complex numbers."""
    return (b.sub(b.mul(x[0], w[0]), b.mul(x[1], w[1])), b.add(b.mul(x[0], w[1]), b.mul(x[1], w[0])))


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
    if dtype == np.float64 or columns < 16:
        return roots(np.outer(np.arange(rows), np.arange(columns)), rows * columns, dtype)
    # products in float64 of a root for the column's number in steps and one for the rest, exact enough for float32
    step = math.isqrt(columns)
    steps = -(-columns // step)
    coarse, fine = (parts[0] + 1j * parts[1] for parts in (
        roots(np.outer(np.arange(rows), numbers), rows * columns, np.dtype(np.float64))
        for numbers in (step * np.arange(steps), np.arange(step))))
    table = (coarse[:, :, None] * fine[:, None, :]).reshape(rows, -1)[:, :columns]
    found = np.empty((2, rows, columns), dtype)
    found[0], found[1] = table.real, table.imag
    return found


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

    def place(self, end: Pairs | Apart, k: Index, lane: Expr) -> Expr:
        return self.b.iadd(end.at, self.b.iadd(self.b.imul(k, end.unit), lane))

    def load(self, source: Pairs | Apart, k: Index, lane: Expr) -> Pair:
        """Element k of a line."""
        b, place = self.b, self.place(source, k, lane)
        flat = b.reshaped(source.value, (b.product(source.value.shape),))
        if isinstance(source, Apart):
            return flat.at((place,)), flat.at((b.iadd(place, source.part),))
        value = flat.at((place,))
        parts = b.real(value), b.imag(value)
        return parts[::-1] if source.exchanged else parts

    def stores(self, target: Pairs | Apart, k: Index, lane: Expr, value: Pair) -> list[tuple[Value, list[Index], Expr]]:
        """What makes it element k of a line."""
        b, place = self.b, self.place(target, k, lane)
        flat = b.reshaped(target.value, (b.product(target.value.shape),))
        if isinstance(target, Pairs):
            return [(flat, [place], b.complex(*(value[::-1] if target.exchanged else value)))]
        if target.turns is not None:
            value = mul(b, value, self.load(target.turns, k, lane))
        return [(flat, [place], value[0]), (flat, [b.iadd(place, target.part)], value[1])]

    def lanes(self) -> AbstractContextManager[Expr]:
        """A loop over the lines."""
        return lanes(self.b, self.nest, self.width, self.vector)

    def factor(self, table: Value, *index: Index) -> Pair:
        """An element of a table that is the same for all lines."""
        return self.nest.let(table.at((0, *index))), self.nest.let(table.at((1, *index)))

    def apart(self, scratch: Value, exchanged: bool = False) -> Apart:
        """Scratch memory as passes see it."""
        if self.beside:
            part, unit = self.width, 2 * self.width
        else:
            size = scratch.shape[1]
            assert isinstance(size, int)
            part, unit = size * self.width, self.width
        return Apart(scratch, part, unit, -part) if exchanged else Apart(scratch, 0, unit, part)

    def run(self, source: Pairs | Apart, target: Pairs | Apart, scale: float = 1.0,
            spare: Sequence[Value] = ()) -> None:
        """The transform of all lines, times `scale`. `spare`: scratch memory that is free once it has been read."""
        if is_smooth(self.length):
            self._passes(self.length, source, target, scale, list(spare))
        else:
            self._convolution(source, target, scale)

    def _convolution(self, source: Pairs | Apart, target: Pairs | Apart, scale: float) -> None:
        b, n, nest = self.b, self.length, self.nest
        length = convolution_length(n)
        chirp, kernel = map(b.constant, chirps(n, length, self.dtype))
        last = b.constant(chirps(n, length, self.dtype)[0] * self.dtype.type(scale))
        ahead, filtered = self.apart(self.scratch(length)), self.apart(self.scratch(length))
        zero = b.const(0, self.dtype)
        with counted(b, nest, n) as j:
            turn = self.factor(chirp, j)
            with self.lanes() as lane:
                nest.together(self.stores(ahead, j, lane, mul(b, self.load(source, j, lane), turn)))
        with counted(b, nest, length - n) as j, self.lanes() as lane:
            nest.together(self.stores(ahead, b.iadd(j, n), lane, (zero, zero)))
        self._passes(length, ahead, filtered, 1.0, [ahead.value])
        with counted(b, nest, length) as j:  # what goes back does so with its parts exchanged
            turn = self.factor(kernel, j)
            with self.lanes() as lane:
                nest.together(self.stores(ahead, j, lane, mul(b, self.load(filtered, j, lane), turn)[::-1]))
        self._passes(length, ahead, filtered, 1.0, [ahead.value])
        with counted(b, nest, n) as k:
            turn = self.factor(last, k)
            with self.lanes() as lane:
                nest.together(self.stores(target, k, lane, mul(b, self.load(filtered, k, lane)[::-1], turn)))

    def _passes(self, length: int, source: Pairs | Apart, target: Pairs | Apart, scale: float,
                spare: list[Value]) -> None:
        """A transform of a smooth length."""
        steps = radices(length)
        stride, size = 1, length
        for radix in steps[:-1]:
            free = next((s for s in spare if s is not source.value), None)
            if free is None:
                free = self.scratch(length)
                spare.append(free)
            between = self.apart(free)
            self._pass(radix, size // radix, stride, source, between, scale)
            source, stride, size = between, stride * radix, size // radix
        self._pass(steps[-1], 1, stride, source, target, scale)

    def _pass(self, radix: int, m: int, stride: int, source: Pairs | Apart, target: Pairs | Apart,
              scale: float) -> None:
        b = self.b
        turns = target.turns if isinstance(target, Apart) else None
        factors = b.constant(_factors(m * radix, radix, self.dtype)) if m > 1 else None
        kinds = ("pairs" if isinstance(source, Pairs) else "apart",
                 "pairs" if isinstance(target, Pairs) else "apart" if turns is None else "turned")
        nowhere = (source.value, 0)
        ends = [[x.unit, 0, int(x.exchanged)] if isinstance(x, Pairs) else [x.unit, x.part, 0]
                for x in (source, target)]
        reads = [x for x in (source.value, factors, None if turns is None else turns.value) if x is not None]
        arguments: list[Any] = [
            (source.value, source.at), (target.value, target.at), nowhere if factors is None else (factors, 0),
            nowhere if turns is None else (turns.value, turns.at), m, stride, self.width, *ends[0], *ends[1],
            *((0, 0) if turns is None else (turns.unit, turns.part)), b.const(scale, self.dtype)]
        self.nest.call(_symbol(radix, *kinds, m == 1, self.dtype, self.vector), arguments, reads, [target.value],
                       work=work_of(radix * m * stride, self.width, self.dtype) / 2)


def _symbol(radix: int, source: str, target: str, last: bool, dtype: np.dtype, lanes: int) -> str:
    """The function of a pass (`cpu.butterflies`)."""
    return f"pass_{radix}_{source}_{target}_{'none' if last else 'some'}_{dtype.itemsize}_{lanes}"


def begin(b: Builder, length: int, width: int, dtype: np.dtype, source: str, target: str) -> None:
    """Has the functions compiled that `Lines` of a length will call, while their tables are being made."""
    if not is_smooth(length):
        length, source, target = convolution_length(length), "apart", "apart"
    steps, lanes = radices(length), min(width, b.vector_bytes // dtype.itemsize)
    ends = [source, *["apart"] * (len(steps) - 1), target]
    for i, radix in enumerate(steps, 1):
        b.begin(_symbol(radix, ends[i - 1], ends[i], i == len(steps), dtype, lanes))


def work_of(length: int, width: int, dtype: np.dtype) -> float:
    """Roughly how many instructions transforms of `width` lines take, with 64 bytes in a vector."""
    each = sum(max(math.log2(r), r / 4 if r > WRITTEN_OUT else 0.0) for r in radices(length))
    return 4.0 * length * max(1.0, each) * max(1, width * dtype.itemsize // 64)
