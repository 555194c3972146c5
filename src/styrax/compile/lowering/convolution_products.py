"""Convolutions as implicit products of matrices, by the kernels of `cpu.microkernels` and `cpu.tiles`.

The input is laid out in rows of 64 bytes of channels, one for each place, in the order of the places: an image for each
slice of the channels, and for each phase of a strided dimension (every so-manyth place). There a tap of the kernel
finds the rows for all places of the result side by side, and where they begin is all that tells it from another tap:
the offsets of a product's steps. Rows at a border may be computed too, and left out, where that makes better blocks.
Of few channels several taps share a step: some inner dimensions are folded into the channels, each place having all
that it meets there (im2col). Zhang, Franchetti and Low, High Performance Zero-Memory Overhead Direct Convolutions, ICML
2018; Dukhan, The Indirect Convolution Algorithm, 2019.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from itertools import product as every
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.expr import Expr
from ..ir.values import Stored, Value
from . import panel_products, panels, tile_products

if TYPE_CHECKING:
    from .builder import Builder, Nest

SMALLEST, LARGE = panel_products.SMALLEST, panel_products.LARGE  # from which a product pays
PACKED = 16  # multiplications that take as long as laying out an element,
GATHERED = 128  # and one that has no neighbours of its own
LANES = 16  # of which loops over features fill some
LOW = 4  # blocks of fewer rows wait for their sums
ROW = 64  # bytes


class Dimension:
    """A dimension of the space: its size in the result and in the input, the taps, and the padding before the input."""

    __slots__ = ("dilation", "low", "out", "size", "stride", "taps")

    def __init__(self, out: int, size: int, taps: int, stride: int, dilation: int, low: int = 0):
        self.out, self.size, self.taps = out, size, taps
        self.stride, self.dilation, self.low = stride, dilation, low

    @property
    def phases(self) -> int:
        """How many the taps meet."""
        return min(self.taps, self.stride // math.gcd(self.stride, self.dilation))

    @property
    def padded(self) -> Dimension:
        """Of the input with as much padding as the taps meet."""
        size = (self.out - 1) * self.stride + (self.taps - 1) * self.dilation + 1
        return Dimension(self.out, size, self.taps, self.stride, self.dilation)

    def phase(self, b: Builder, number: Expr) -> Expr:
        """The first place of a phase: that of a tap of this number."""
        return b.floormod(b.imul(number, self.dilation), self.stride)

    def step(self, tap: int) -> tuple[int, int]:
        """The phase that a tap meets, by number, and how many places further on."""
        place = tap * self.dilation
        return next(p for p in range(self.taps) if (p * self.dilation - place) % self.stride == 0), place // self.stride


class Kernel:
    """A kernel of products: what its symbol begins with, its kind, and what the symbol ends in; a block's rows and
    columns, blocks in a call, dtypes."""

    __slots__ = ("blocks", "columns", "kind", "name", "result", "rows", "speed", "suffix", "tiles", "word")

    def __init__(self, name: str, kind: str, suffix: str, rows: int, columns: int, blocks: int, word: np.dtype,
                 result: np.dtype, speed: int, tiles: bool):
        self.name, self.kind, self.suffix = f"{name}_{kind}", kind, suffix
        self.rows, self.columns, self.blocks = rows, columns, blocks
        self.word, self.result = word, result  # of operands, and of what is stored
        self.speed = speed  # multiplications while loops do one
        self.tiles = tiles  # whether it reads all rows of a block, and all of a step


def kernel(b: Builder, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> Kernel | None:
    """What multiplies faster than loops do; None where nothing does."""
    if b.kernels.tiles and (tile := tile_products.kind(lhs, rhs, out)):
        edge, suffix = tile_products.EDGE, f"{tile_products.result(out)}_indirect"
        return Kernel("tiles", tile, suffix, edge, edge, tile_products.BLOCKS, lhs, out, 8, True)
    kind = panel_products.kind(b, lhs, rhs, out)
    if kind is None or kind == "f32":  # which loops multiply as fast
        return None
    sizes = b.kernels.panels[kind]
    suffix, result = panel_products.result(sizes, kind, out)
    return Kernel("panels", kind, f"{suffix}_indirect", sizes.rows, sizes.columns, sizes.blocks,
                  panel_products.WORDS[kind], result, 4 if kind in panel_products.BYTES.values() else 2, False)


class Layout:
    """How the input is laid out and multiplied, and what that costs.

    Args:
      space: the dimensions, that of the batch before those of the space.
      folded: how many of the last ones are folded into the channels.
      apart: how many of the first ones have rows of their own. The rows of the others go on over the borders between.
    """

    def __init__(self, kernel: Kernel, groups: int, space: Sequence[Dimension], channels: int, features: int,
                 folded: int, apart: int, contiguous: bool):
        self.space, self.channels = space, channels
        self.kept, self.folded = space[: len(space) - folded], space[len(space) - folded :]
        self.terms = channels * math.prod(d.taps for d in self.folded)
        self.lanes = ROW // kernel.word.itemsize
        self.slices = -(-self.terms // self.lanes)
        word = 4 // kernel.word.itemsize
        self.used = self.lanes if kernel.tiles else -(-self.terms // (self.slices * word)) * word  # of a row
        self.steps = self.slices * math.prod(d.taps for d in self.kept)
        self.phases = [d.phases for d in self.kept]
        self.places = [d.out + (d.taps - 1) * d.dilation // d.stride for d in self.kept] + [d.out for d in self.folded]
        self.strides = [math.prod(self.places[k + 1 :]) for k in range(len(space))]
        self.apart = space[:apart]
        self.rows = sum((d.out - 1) * stride for d, stride in list(zip(space, self.strides, strict=True))[apart:]) + 1
        self.blocks = -(-self.rows // kernel.rows)
        self.height = kernel.rows if kernel.tiles else -(-self.rows // self.blocks)
        # a call computes blocks of one line, or of a few
        self.lines = self.apart[-1].out if apart else 1
        self.pieces = -(-self.blocks // kernel.blocks)
        self.together = -(-self.blocks // self.pieces)
        self.calls = -(-self.lines // max(1, kernel.blocks // self.blocks)) if self.pieces == 1 else self.lines
        self.each = -(-self.lines // self.calls)
        self.image = math.prod(self.phases) * self.slices * math.prod(self.places)  # in rows
        width = -(-features // kernel.columns) * kernel.columns
        # what a place has of one folded dimension, and its channels, may lie side by side
        self.joined = contiguous and groups == folded == 1 and self.folded[0].dilation == 1
        side_by_side = contiguous and not folded or self.joined
        computed = math.prod(d.out for d in self.apart) * self.blocks * max(self.height, LOW)
        self.cost = groups * (computed * width * self.steps * self.used
                              + self.image * self.lanes * (PACKED if side_by_side else GATHERED))

    def offsets(self) -> Iterator[int]:
        """Of the steps: the row that the first place of the result meets."""
        whole = math.prod(self.places)
        for taps in every(*[range(d.taps) for d in self.kept]):
            number = place = 0
            for d, tap, phases, stride in zip(self.kept, taps, self.phases, self.strides, strict=False):
                phase, further = d.step(tap)
                number, place = number * phases + phase, place + further * stride
            for part in range(self.slices):
                yield (number * self.slices + part) * whole + place

    def term(self, b: Builder, number: Expr) -> tuple[Expr, list[Expr]]:
        """The channel and the folded dimensions' taps of a term of a place."""
        taps: list[Expr] = []
        rest = b.floordiv(number, self.channels) if self.folded else number
        for d in reversed(self.folded):
            taps.insert(0, b.floormod(rest, d.taps))
            rest = b.floordiv(rest, d.taps)
        return b.floormod(number, self.channels) if self.folded else number, taps


def convolution(b: Builder, lhs: Value, rhs: Value, space: Sequence[Dimension], groups: int, dtype: np.dtype,
                contiguous: bool) -> Value | None:
    """lhs[n, c, …] with rhs[o, c / groups, …] as [n, …, o] by a kernel; None where loops are the better way.

    Args:
      contiguous: whether the input's channels lie side by side.
    """
    sizes = (*lhs.shape, *rhs.shape, *(d.out for d in space))
    assert isinstance(lhs.dtype, np.dtype) and isinstance(rhs.dtype, np.dtype)
    found = kernel(b, lhs.dtype, rhs.dtype, dtype)
    if found is None or not all(isinstance(n, int) for n in sizes):
        return None
    count, (outs, channels, *_) = int(lhs.shape[0]), map(int, rhs.shape)  # type: ignore[call-overload]
    features = outs // groups
    results, terms = math.prod(d.out for d in space) * count, channels * math.prod(d.taps for d in space)
    if min(features, terms, results) < SMALLEST or results * features * terms < LARGE:
        return None
    whole = [Dimension(count, count, 1, 1, 1), *space]
    layouts = [Layout(found, groups, whole, channels, features, folded, apart, contiguous)
               for folded in range(len(whole)) for apart in range(len(whole))]
    best = min(layouts, key=lambda layout: layout.cost)
    if best.cost > results * groups * -(-features // LANES) * LANES * terms * found.speed:
        return None
    return _Implicit(b, found, best, groups, features).product(lhs, rhs, dtype)


class _Implicit:
    """A convolution by a kernel, of an input in a layout."""

    def __init__(self, b: Builder, kernel: Kernel, layout: Layout, groups: int, features: int):
        self.b, self.kernel, self.layout = b, kernel, layout
        self.groups, self.features = groups, features

    def among(self, lane: Expr, number: Expr) -> list[Expr]:
        """What holds for lanes of a row that have a term."""
        b, layout = self.b, self.layout
        found = [b.lt(lane, b.int(layout.used))] if layout.used < layout.lanes else []
        return found + [b.lt(number, b.int(layout.terms))] * (layout.slices * layout.used > layout.terms)

    def where(self, conditions: Sequence[Expr], value: Value, index: Sequence[Expr]) -> Expr:
        """An element as a term, or zero where not all conditions hold."""
        b = self.b
        if not conditions:
            return b.cast(value.at(index), self.kernel.word)
        zero = b.const(0, value.dtype)
        return b.cast(b.load_if(functools.reduce(b.and_, conditions), value, index, zero), self.kernel.word)

    def input(self, lhs: Value) -> Stored:
        """(group, phases, slice, places, term): rows of terms."""
        b, layout = self.b, self.layout
        kept, space = len(layout.kept), layout.space
        if layout.folded and any(d.low or d.padded.size > d.size for d in space):
            lhs, space = self.padded(lhs), [d.padded for d in space]
        joined = _joined(b, lhs) if layout.joined else None

        def at(index: tuple[Expr, ...]) -> Expr:
            group, phase, part = index[0], index[1 : kept + 1], index[kept + 1]
            places, lane = index[kept + 2 : -1], index[-1]
            number = b.iadd(b.imul(part, layout.used), lane)
            channel, taps = layout.term(b, number)
            first = [*(d.phase(b, q) for d, q in zip(layout.kept, phase, strict=True)),
                     *(b.imul(t, d.dilation) for d, t in zip(layout.folded, taps, strict=True))]
            here = [b.iadd(b.imul(p, d.stride), b.isub(f, d.low)) for d, p, f in zip(space, places, first, strict=True)]
            source, memory = [here[0], b.iadd(b.imul(group, layout.channels), channel), *here[1:]], lhs
            if joined is not None:
                memory = joined
                source = [*here[:-1], b.iadd(b.imul(places[-1], space[-1].stride * layout.channels), number)]
            conditions = [c for i, d in zip(here[:kept], space, strict=False) for c in _inside(b, i, d.size)]
            term = self.where([*conditions, *self.among(lane, number)], memory, source)
            return term if self.kernel.tiles else panel_products.left_term(b, self.kernel.kind, term)

        shape = (self.groups, *layout.phases, layout.slices, *layout.places, layout.lanes)
        # the last block reads behind all of it, for rows that nobody asks for
        beyond = (layout.blocks * layout.height - layout.rows) * layout.lanes
        buffer = b.buffer(self.kernel.word, math.prod(shape) + beyond)
        return b.materialize(b.value(shape, self.kernel.word, at), buffer)  # type: ignore[return-value]

    def padded(self, lhs: Value) -> Value:
        """The part of the padded input that the taps meet, in memory, with channels last."""
        b, space = self.b, self.layout.space

        def at(index: tuple[Expr, ...]) -> Expr:
            *places, channel = index
            here = [b.isub(p, d.low) for p, d in zip(places, space, strict=True)]
            inside = [c for i, d in zip(here, space, strict=True) for c in _inside(b, i, d.size)]
            return self.where(inside, lhs, [here[0], channel, *here[1:]])

        shape = [d.padded.size for d in space]
        word = self.kernel.word
        stored = b.in_memory(b.value([*shape, lhs.shape[1]], word, at))
        return b.value([shape[0], lhs.shape[1], *shape[1:]], word, lambda i: stored.at((i[0], *i[2:], i[1])))

    def taps(self, rhs: Value) -> Stored:
        """The kernel packed, its terms in the order of the steps."""
        b, layout = self.b, self.layout

        def at(index: tuple[Expr, ...]) -> Expr:
            group, feature, k = index
            step, lane = b.floordiv(k, layout.lanes), b.floormod(k, layout.lanes)
            tap, part = b.floordiv(step, layout.slices), b.floormod(step, layout.slices)
            number = b.iadd(b.imul(part, layout.used), lane)
            channel, taps = layout.term(b, number)
            for d in reversed(layout.kept):
                taps.insert(0, b.floormod(tap, d.taps))
                tap = b.floordiv(tap, d.taps)
            source = [b.iadd(b.imul(group, self.features), feature), channel, *taps[1:]]
            return self.where(self.among(lane, number), rhs, source)

        terms = b.value((self.groups, self.features, layout.steps * layout.lanes), self.kernel.word, at)
        parts = 2 if self.kernel.tiles else 1
        return panels.panels(b, terms, parts, self.kernel.columns // parts, self.kernel.word)

    def product(self, lhs: Value, rhs: Value, dtype: np.dtype) -> Value:
        b, layout, kernel = self.b, self.layout, self.kernel
        source, packed = self.input(lhs), self.taps(rhs)
        offsets = b.constant(np.fromiter(layout.offsets(), np.int32))
        width = kernel.columns
        columns = -(-self.features // width)
        outer = layout.apart[:-1]
        name = kernel.name + ("" if kernel.tiles else f"_{layout.height}") + kernel.suffix

        def body(nest: Nest, outs: list[Any], _: list[Any]) -> None:
            tasks = self.groups * math.prod(d.out for d in outer) * layout.calls * layout.pieces
            with nest.loop(tasks * columns, parallel=True) as t:
                panel, rest = b.floormod(t, columns), b.floordiv(t, columns)
                block, rest = b.imul(b.floormod(rest, layout.pieces), layout.together), b.floordiv(rest, layout.pieces)
                line, rest = b.imul(b.floormod(rest, layout.calls), layout.each), b.floordiv(rest, layout.calls)
                lines = b.iadd(b.imul(rest, layout.lines), line)
                group = b.floordiv(rest, math.prod(d.out for d in outer))
                first, column = b.imul(block, layout.height), b.imul(panel, width)
                a_line = layout.strides[len(outer)] if layout.apart else 0
                place = b.iadd(b.iadd(b.imul(group, layout.image), b.imul(line, a_line)), first)
                for d, stride in reversed(list(zip(outer, layout.strides, strict=False))):
                    place, rest = b.iadd(place, b.imul(b.floormod(rest, d.out), stride)), b.floordiv(rest, d.out)
                extent = [b.min(b.int(layout.together * layout.height), b.isub(b.int(layout.rows), first)),
                          b.min(b.int(layout.each), b.isub(b.int(layout.lines), line)), b.int(ROW * a_line),
                          *[b.int(layout.used * kernel.word.itemsize)] * (not kernel.tiles),
                          b.min(b.int(width), b.isub(b.int(self.features), column))]
                # (of calls on the average)
                computed = layout.lines * layout.blocks * layout.height * width * layout.steps / (
                    layout.calls * layout.pieces)
                size = layout.steps * width * ROW // packed.dtype.itemsize
                at = b.imul(b.iadd(b.imul(group, columns), panel), size)
                nest.call(name, [
                    (source, b.imul(place, layout.lanes)), (offsets, b.int(0)), (packed, at),
                    *[panel_products.ahead(b, packed, at, layout.steps, width, kernel.word)] * (not kernel.tiles),
                    (outs[0], b.iadd(b.imul(b.iadd(b.imul(lines, layout.rows), first), self.features), column)),
                    b.int(kernel.result.itemsize * self.features), *extent, b.int(layout.steps)],
                    reads=[source, offsets, packed], writes=[outs[0]], work=computed * 2 / kernel.speed,
                    flops=2 * computed * layout.used)

        apart = [d.out for d in layout.apart]
        computed = (self.groups, *apart, layout.rows, self.features)
        (stored,) = b.nest([(computed, kernel.result)], body)
        shape = [*(d.out for d in layout.space), self.groups * self.features]
        if self.groups == 1 and dtype == kernel.result and math.prod(computed) == math.prod(shape):
            return b.reshaped(stored, shape)

        def at(index: tuple[Expr, ...]) -> Expr:
            *place, out = index
            line = b.int(0)
            for p, stride in list(zip(place, layout.strides, strict=True))[len(apart) :]:
                line = b.iadd(line, b.imul(p, stride))
            group, feature = b.floordiv(out, self.features), b.floormod(out, self.features)
            return b.cast(stored.at((group, *place[: len(apart)], line, feature)), dtype)

        return b.value(shape, dtype, at)


def _inside(b: Builder, place: Expr, size: int) -> list[Expr]:
    """What must hold for a place to be one of so many."""
    low, high = place.bounds
    return [b.ge(place, b.int(0))] * (low < 0) + [b.lt(place, b.int(size))] * (high >= size)


def _joined(b: Builder, lhs: Value) -> Stored | None:
    """An input [n, c, …] as [n, …], whose last dimension is that of the space and the channels, if they lie so."""
    stored = b.view(lhs)
    if not (isinstance(stored, Stored) and stored.strides[1] == 1 and stored.strides[-1] == lhs.shape[1]):
        return None
    n, channels, *space = stored.shape
    shape = n, *space[:-1], b.product([space[-1], channels])
    strides = stored.strides[0], *stored.strides[2:-1], 1
    return Stored(b, stored.buffer, shape, stored.dtype, strides, stored.offset)
