"""Transforms as loops: how the lines of an array come into the lanes of vectors.

- Along an axis that is not the last, neighbours in memory are lines: they are lanes as they stand.
- Along the last axis, several lines are turned in registers, square by square, on their way to lanes and back.
- A line of its own, or a long one, is a matrix of `rows × columns`: its columns are transformed, multiplied with roots
  of unity, and then its rows, which makes columns of the result (D. H. Bailey, FFTs in external or hierarchical
  memory, 1990).
- A length with a prime factor above 127 is a convolution with a chirp, by transforms of a length that has none
  (L. Bluestein, 1970).
- Real data of even length are half as many complex numbers (J. Cooley, P. Lewis, P. Welch, 1970).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..lane_blocks import blocks, covering
from . import lengths
from .passes import Apart, Lines, Pairs, begin, chirps, grid_factors, mul, roots

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Expr, Index, Nest, Value

    from .passes import Pair
    from .transform import FftType

SHORT = 64  # lines up to this length are worth the turning in registers, however few they are
NEAR = 1 << 13  # elements of a line up to which a thread takes it alone, in memory that stays near
SCRATCH = 1 << 15  # bytes that lines side by side may take: several times as much stays near in the cache


def fft_loops(b: Builder, x: Value, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Value:
    """The lowering rule."""
    name, rank = fft_type.name, len(x.shape)
    axes = range(rank - len(fft_lengths), rank)
    out = b.avals_out[0]
    if any(isinstance(d, int) and d == 0 for d in (*x.shape, *out.shape)):
        return b.value(tuple(out.shape), out.dtype, lambda _: b.const(0, out.dtype))
    # Lengths are numbers in programs for any sizes, too.
    half = (fft_lengths[-1] // 2 + 1,) if name == "IRFFT" else fft_lengths[-1:]
    x = b.of_shape(x, (*x.shape[:axes[0]], *fft_lengths[:-1], *half))
    if name == "RFFT":
        x = _real_to_half(b, x, fft_lengths[-1])
        axes = axes[:-1]
    inverse = name in ("IFFT", "IRFFT")
    for axis in reversed(axes[:-1] if name == "IRFFT" else axes):
        x = transform(b, x, axis, inverse, 1 / x.shape[axis] if inverse else 1.0)  # type: ignore[operator]
    return _half_to_real(b, x, fft_lengths[-1]) if name == "IRFFT" else x


def part_of(dtype: Any) -> np.dtype:
    return np.dtype(f"float{dtype.itemsize * 4}")


def transform(b: Builder, x: Value, axis: int, inverse: bool, scale: float) -> Value:
    """The transform of a complex value along an axis, times `scale`."""
    n = x.shape[axis]
    assert isinstance(n, int)
    if n == 1:
        return x
    kind = _Kind(part_of(x.dtype), inverse, scale)
    if axis < len(x.shape) - 1:
        if b.at_least(b.product(x.shape[axis + 1:]), 2):
            return _along_columns(b, x, axis, kind)
        moved = b.value((*x.shape[:axis], n), x.dtype, lambda i: x.at((*i, *[b.int(0)] * (len(x.shape) - 1 - axis))))
        out = transform(b, moved, axis, inverse, scale)
        return b.value(x.shape, x.dtype, lambda i: out.at(i[:axis + 1]))
    lines = b.product(x.shape[:-1])
    lanes = b.vector_bytes // kind.part.itemsize
    smooth = lengths.is_smooth(n)
    inside = n if smooth else lengths.convolution_length(n)
    grid = lengths.split(n) if smooth else (1, n)
    many = b.at_least(lines, 4 * lanes) and 2 * inside * b.vector_bytes <= SCRATCH
    if grid is None or n <= SHORT and b.at_least(lines, lanes) or many:
        return _along_rows(b, x, kind, lines)
    return _along_grid(b, x, kind, lines, *grid) if smooth else _convolution(b, x, kind)


class _Kind(NamedTuple):
    """What is made of lines: a forward transform, or an inverse one, for which parts are exchanged before and after;
    times `scale`."""

    part: np.dtype
    inverse: bool
    scale: float


def _width(b: Builder, size: Index, part: np.dtype, length: int | None = None) -> int:
    """How many of `size` lines to take at once: a power of two of them. Of short lines, whose `length` is given,
    several vectors: so more is read of what lies together."""
    width = b.vector_bytes // part.itemsize
    while width > 1 and not b.at_least(size, width):
        width //= 2
    if length is not None:
        for _ in range(2):
            if 4 * width * length * part.itemsize <= SCRATCH and b.at_least(size, 2 * width):
                width *= 2
    return width


def _along_columns(b: Builder, x: Value, axis: int, kind: _Kind) -> Value:
    """Along an axis after which others stand: lines that are neighbours in memory are lanes."""
    lead, n, inner = x.shape[:axis], x.shape[axis], x.shape[axis + 1:]
    assert isinstance(n, int)
    outer, columns = b.product(lead), b.product(inner)
    if len(lead) != 1 or len(inner) != 1:
        shape = x.shape
        flat = b.reshaped(x, (outer, n, columns))
        return b.reshaped(_along_columns(b, flat, 1, kind), shape)
    width = _width(b, columns, kind.part, n)
    begin(b, n, width, kind.part, "pairs", "pairs")
    x = b.in_memory(x)

    def body(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
        with blocks(b, nest, outer, columns, width) as (line, column):
            at = b.iadd(b.imul(line, b.imul(n, columns)), column)
            Lines(b, nest, n, width, kind.part).run(
                Pairs(x, at, columns, kind.inverse), Pairs(outs[0], at, columns, kind.inverse), kind.scale)

    return b.nest([(x.shape, x.dtype)], body)[0]


def _along_rows(b: Builder, x: Value, kind: _Kind, count: Index) -> Value:
    """Along the last axis: several rows are lanes, turned on their way there and back."""
    shape, n = x.shape, x.shape[-1]
    assert isinstance(n, int)
    width = _width(b, count, kind.part)
    flat = b.reshaped(x, (count, n))
    if width < 4:
        begin(b, n, 1, kind.part, "pairs", "pairs")

        def each(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
            with blocks(b, nest, 1, count, 1) as (_, row):
                at = b.imul(row, n)
                Lines(b, nest, n, 1, kind.part).run(Pairs(flat, at, 1, kind.inverse),
                                                    Pairs(outs[0], at, 1, kind.inverse), kind.scale)

        return b.reshaped(b.nest([((count, n), x.dtype)], each)[0], shape)
    begin(b, n, width, kind.part, "apart", "apart")
    numbers, length = b.numbers(flat), 2 * n

    def body(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
        with blocks(b, nest, 1, count, width) as (_, row):
            lines = Lines(b, nest, n, width, kind.part, beside=True)
            work, result = lines.scratch(), lines.scratch()
            start = b.imul(row, length)
            nest.turn(work, b.int(0), width, numbers, start, length, width, length)
            lines.run(lines.apart(work, kind.inverse), lines.apart(result, kind.inverse), kind.scale, [work])
            nest.turn(outs[0], start, length, result, b.int(0), width, length, width)

    return b.reshaped(b.pairs(b.nest([((count, length), kind.part)], body)[0]), shape)


def _begin_grid(b: Builder, part: np.dtype, rows: int, columns: int) -> tuple[int, int]:
    """How many columns and rows are taken at once. What transforms them is compiled from now on."""
    width, turned = _width(b, columns, part, rows), _width(b, rows, part, columns)
    begin(b, rows, width, part, "pairs", "turned")
    begin(b, columns, turned, part, "apart", "pairs")
    return width, turned


def _along_grid(b: Builder, x: Value, kind: _Kind, count: Index, rows: int, columns: int) -> Value:
    """Along the last axis, each line as a matrix: first its columns, then its rows."""
    lead, part, n = x.shape[:-1], kind.part, rows * columns
    if len(lead) != 1:
        shape = x.shape
        return b.reshaped(_along_grid(b, b.reshaped(x, (count, n)), kind, count, rows, columns), shape)
    width, turned = _begin_grid(b, part, rows, columns)
    x = b.in_memory(x)
    factors = b.constant(grid_factors(rows, columns, part))

    def by_columns(nest: Nest, line: Expr, column: Expr, target: Value, at: Expr) -> None:
        """Transforms columns, into line `at` of `target`."""
        parted = b.imul(target.shape[1], n)
        Lines(b, nest, rows, width, part).run(
            Pairs(x, b.iadd(b.imul(line, n), column), columns, kind.inverse),
            Apart(target, b.iadd(b.imul(at, n), column), columns, parted, Apart(factors, column, columns, n)))

    def by_rows(nest: Nest, line: Expr, row: Expr, source: Value, at: Expr, out: Value) -> None:
        """Transforms rows of line `at` of `source`."""
        lines = Lines(b, nest, columns, turned, part)
        work = lines.scratch()
        for p in (0, 1):
            part_of_line = b.imul(b.iadd(b.imul(b.index(p), source.shape[1]), at), n)
            nest.turn(work, b.int(p * columns * turned), turned, source, b.iadd(part_of_line, b.imul(row, columns)),
                      columns, turned, columns)
        lines.run(lines.apart(work), Pairs(out, b.iadd(b.imul(line, n), row), rows, kind.inverse), kind.scale, [work])

    zero = b.int(0)
    if n <= NEAR:
        def both(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
            with blocks(b, nest, count, 1, 1) as (line, _):
                between = nest.scratch((2, 1, rows, columns), part)
                with covering(b, nest, columns, width) as column:
                    by_columns(nest, line, column, between, zero)
                with covering(b, nest, rows, turned) as row:
                    by_rows(nest, line, row, between, zero, outs[0])

        return b.nest([(x.shape, x.dtype)], both)[0]

    def first(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
        with blocks(b, nest, count, columns, width) as (line, column):
            by_columns(nest, line, column, outs[0], line)

    def second(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
        with blocks(b, nest, count, rows, turned) as (line, row):
            by_rows(nest, line, row, ins[0], line, outs[0])

    between = b.nest([((2, count, rows, columns), part)], first)
    return b.nest([(x.shape, x.dtype)], second, between)[0]


# -- lengths with large prime factors


def _convolution(b: Builder, x: Value, kind: _Kind) -> Value:
    """Along the last axis: `jk = (j² + k² - (k - j)²) / 2` makes the transform a convolution."""
    axis, dtype = len(x.shape) - 1, x.dtype
    n = x.shape[axis]
    assert isinstance(n, int)
    length = lengths.convolution_length(n)
    grid = lengths.split(length)
    assert grid is not None
    _begin_grid(b, kind.part, *grid)
    chirp, kernel = map(b.constant, chirps(n, length, kind.part))
    longer = (*x.shape[:axis], length, *x.shape[axis + 1:])
    zero = b.const(0, dtype)
    last = b.constant(chirps(n, length, kind.part)[0] * kind.part.type(kind.scale))

    def exchanged(value: Pair) -> Pair:
        return value[::-1] if kind.inverse else value

    def padded(index: Sequence[Expr]) -> Expr:
        j = index[axis]
        inside = b.lt(j, b.int(n))
        start = b.load_if(inside, x, index, zero)
        turn = b.load_if(inside, chirp, (b.int(0), j), b.const(0, kind.part)), b.load_if(
            inside, chirp, (b.int(1), j), b.const(0, kind.part))
        return b.complex(*mul(b, exchanged((b.real(start), b.imag(start))), turn))

    spectrum = transform(b, b.value(longer, dtype, padded), axis, False, 1.0)

    def multiplied(index: Sequence[Expr]) -> Expr:
        value, k = spectrum.at(index), index[axis]
        return b.complex(*mul(b, (b.real(value), b.imag(value)), (kernel.at((0, k)), kernel.at((1, k)))))

    filtered = transform(b, b.value(longer, dtype, multiplied), axis, True, 1.0)

    def result(index: Sequence[Expr]) -> Expr:
        value, k = filtered.at(index), index[axis]
        return b.complex(*exchanged(mul(b, (b.real(value), b.imag(value)), (last.at((0, k)), last.at((1, k))))))

    return b.value(x.shape, dtype, result)


# -- real data


@lru_cache(maxsize=16)
def _half_factors(n: int, dtype: np.dtype) -> np.ndarray:
    return roots(np.arange(n // 2 + 1), n, dtype)


def _real_to_half(b: Builder, x: Value, n: int) -> Value:
    """The half spectrum of real lines."""
    part, dtype = x.dtype, np.dtype(f"complex{x.dtype.itemsize * 16}")
    *lead, _ = x.shape
    zero = b.const(0, part)
    m = n // 2
    if n % 2:
        whole = transform(b, b.value(x.shape, dtype, lambda i: b.complex(x.at(i), zero)), len(lead), False, 1.0)
        return b.value((*lead, m + 1), dtype, whole.at)
    count = b.product(tuple(lead))
    pairs = b.pairs(x)
    spectrum = b.reshaped(transform(b, pairs, len(lead), False, 1.0), (count, m))
    factors, half = b.constant(_half_factors(n, part)), b.const(0.5, part)

    def body(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
        out = b.reshaped(outs[0], (count, m + 1))
        with blocks(b, nest, 1, count, 1) as (_, line):
            start = spectrum.at((line, 0))
            re, im = nest.let(b.real(start)), nest.let(b.imag(start))
            nest.store(out, (line, 0), b.complex(b.add(re, im), zero))
            nest.store(out, (line, m), b.complex(b.sub(re, im), zero))
            with nest.loop(m - 1, vector=True, lanes=b.vector_bytes // part.itemsize) as i:
                k = b.iadd(i, 1)
                here, there = spectrum.at((line, k)), spectrum.at((line, b.isub(m, k)))
                even = b.add(b.real(here), b.real(there)), b.sub(b.imag(here), b.imag(there))
                odd = b.add(b.imag(here), b.imag(there)), b.sub(b.real(there), b.real(here))
                re, im = mul(b, odd, (factors.at((0, k)), factors.at((1, k))))
                nest.store(out, (line, k), b.complex(b.mul(half, b.add(even[0], re)), b.mul(half, b.add(even[1], im))))

    return b.nest([((*lead, m + 1), dtype)], body, [spectrum])[0]


def _half_to_real(b: Builder, x: Value, n: int) -> Value:
    """The real lines that have these half spectra."""
    dtype, part = x.dtype, part_of(x.dtype)
    *lead, _ = x.shape
    m, axis = n // 2, len(lead)
    zero = b.const(0, part)
    if n == 1:
        return b.value(tuple([*lead, 1]), part, lambda i: b.real(x.at(i)))
    x = b.materialize_if_reused(x, 2)
    if n % 2:
        def whole(index: Sequence[Expr]) -> Expr:
            *line, k = index
            mirrored = b.gt(k, b.int(m))
            value = x.at((*line, b.min(k, b.isub(n, k))))
            im = b.select(b.eq(k, b.int(0)), zero, b.imag(value))
            return b.complex(b.real(value), b.select(mirrored, b.neg(im), im))

        out = transform(b, b.value((*lead, n), dtype, whole), axis, True, 1 / n)
        return b.value((*lead, n), part, lambda i: b.real(out.at(i)))
    factors = b.constant(_half_factors(n, part))

    def folded(index: Sequence[Expr]) -> Expr:
        *line, k = index
        here, there = x.at((*line, k)), x.at((*line, b.isub(m, k)))
        ends = b.eq(k, b.int(0))  # these two are real
        a = b.real(here), b.select(ends, zero, b.imag(here))
        c = b.real(there), b.select(ends, zero, b.imag(there))
        even = b.add(a[0], c[0]), b.sub(a[1], c[1])
        odd = b.sub(a[0], c[0]), b.add(a[1], c[1])
        re, im = mul(b, odd, (factors.at((0, k)), b.neg(factors.at((1, k)))))
        return b.complex(b.sub(even[0], im), b.add(even[1], re))

    if m == 1:
        both = b.value((*lead, 1), dtype, folded)
        scale = b.const(1 / n, part)
        return b.value((*lead, n), part, lambda i: b.mul(scale, b.select(
            b.eq(i[-1], b.int(0)), b.real(both.at((*i[:-1], b.int(0)))), b.imag(both.at((*i[:-1], b.int(0)))))))
    return b.numbers(transform(b, b.value((*lead, m), dtype, folded), axis, True, 1 / n))
