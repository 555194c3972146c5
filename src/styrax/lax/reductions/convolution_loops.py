"""Convolutions as loops: reductions over the taps of a kernel and the channels of the input.

What is multiplied is arranged first. Where there are many features, input and kernel are laid out with channels and
features last, so that vectors run along features, whatever the layout and the strides. Holes in the input (dilation,
which transposed convolutions and gradients of strided ones ask for) are not multiplied: the result falls into phases,
each a convolution without holes over every so-manyth tap (polyphase decomposition).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.types import dtypes

from .convolution_layouts import ConvDimensionNumbers, Convolution, accumulation_dtype, inside, ordered, spatial_sizes
from .convolution_matrices import of_places, of_windows

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value

MANY = 16  # features that are worth vectors of their own
SEVERAL = 5  # the same where places are no vectors: few, or such as do not meet neighbours in the input
USES = 16  # of an element, from which it is worth widening apart
PHASES = 16  # at most: each has loops of its own


def convolution_loops(b: Builder, lhs: Any, rhs: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any,
                      rhs_dilation: Any, dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
                      batch_group_count: int, precision: Any, preferred_element_type: Any,
                      out_sharding: Any = None) -> Value:
    """The rule of `conv_general_dilated` for the compiler of loops."""
    out = b.avals_out[0]
    if 0 in (*lhs.shape, *rhs.shape):
        return b.value(out.shape, out.dtype, lambda _: b.const(0, out.dtype))
    conv = Convolution(window_strides, tuple(low for low, _ in padding), lhs_dilation, rhs_dilation, dimension_numbers,
                       feature_group_count, batch_group_count)
    for as_product in (of_windows, of_places):
        if (found := as_product(b, lhs, rhs, out.shape, out.dtype, conv)) is not None:
            return found
    orders = [_last(dimension_numbers.lhs_spec, 1), _last(dimension_numbers.rhs_spec, 1, 0),
              _last(dimension_numbers.out_spec, 1)]
    features = rhs.shape[dimension_numbers.rhs_spec[0]] // (feature_group_count * batch_group_count)
    last = dimension_numbers.out_spec[1] == len(out.shape) - 1
    length = out.shape[dimension_numbers.out_spec[-1]]
    side_by_side = not conv.strides or conv.strides[-1] == 1 and not (isinstance(length, int) and length < MANY // 2)
    by_features = last or features >= (MANY if side_by_side else SEVERAL)
    if not last and by_features:
        lhs = b.materialize(ordered(b, lhs, orders[0]))
    elif last:
        orders[0], orders[2] = (tuple(range(len(out.shape))),) * 2
    else:
        orders = [tuple(range(len(out.shape)))] * 3
    if orders[1] != tuple(range(len(out.shape))):
        rhs = b.materialize(ordered(b, rhs, orders[1]))
    elif by_features:
        rhs = b.in_rows(rhs)
    found = _phases(b, lhs, rhs, tuple(out.shape[d] for d in orders[2]), out.dtype, conv.moved(*orders))
    places = [orders[2].index(d) for d in range(len(out.shape))]
    return found if places == sorted(places) else ordered(b, b.materialize(found), places)


def _last(spec: Sequence[int], *behind: int) -> tuple[int, ...]:
    """The dimensions with some parts of a specification behind all others."""
    moved = [spec[k] for k in behind]
    first = [spec[0]] * (0 not in behind)
    return (*first, *spec[2:], *moved)


def _phases(b: Builder, lhs: Any, rhs: Any, shape: tuple[int, ...], dtype: Any, conv: Convolution) -> Value:
    """The convolution, in phases where the input has holes."""
    periods = [dilation // math.gcd(stride, dilation)
               for dilation, stride in zip(conv.lhs_dilation, conv.strides, strict=True)]
    if not conv.has_holes or math.prod(periods) > PHASES:
        return _direct(b, lhs, rhs, shape, dtype, conv)
    parts = []
    for phase in product(*map(range, periods)):
        starts, steps = [0] * len(shape), [1] * len(shape)
        for k, d in enumerate(conv.dims.out_spec[2:]):
            starts[d], steps[d] = phase[k], periods[k]
        part_shape = tuple(-(-(n - start) // step) for n, start, step in zip(shape, starts, steps, strict=True))
        if min(part_shape) <= 0:
            continue
        taps = list(_taps(conv, spatial_sizes(rhs.shape, conv.dims.rhs_spec), phase))
        if None in taps:  # no tap meets an element
            value = b.value(part_shape, dtype, lambda _: b.const(0, dtype))
        else:
            kernel = b.materialize(_every(b, rhs, conv.dims.rhs_spec[2:], [(t.first, t.step, t.number) for t in taps]))
            value = _direct(b, lhs, kernel, part_shape, dtype, Convolution(
                tuple(t.stride for t in taps), tuple(t.padding for t in taps), (1,) * len(taps),
                tuple(t.dilation for t in taps), conv.dims, conv.feature_groups, conv.batch_groups))
        parts.append((starts, steps, value))
    return b.interleaved(shape, dtype, parts)


class _Taps:
    """The taps of a dimension that a phase meets, and how its convolution goes along it."""

    __slots__ = ("dilation", "first", "number", "padding", "step", "stride")

    def __init__(self, first: int, step: int, number: int, stride: int, padding: int, dilation: int):
        self.first, self.step, self.number = first, step, number
        self.stride, self.padding, self.dilation = stride, padding, dilation


def _taps(conv: Convolution, kernel: Sequence[int], phase: Sequence[int]) -> Iterator[Any]:
    """Of each dimension; None where there are none.

    Place o = period·j + phase of the result and tap t meet at o·stride + t·dilation - padding of the input with holes,
    where an element stands at each multiple of the input's dilation.
    """
    for k, size in enumerate(kernel):
        holes, stride, dilation, low = conv.lhs_dilation[k], conv.strides[k], conv.rhs_dilation[k], conv.padding[k]
        step = holes // math.gcd(dilation, holes)
        start = phase[k] * stride - low
        first = next((t for t in range(min(step, size)) if (start + t * dilation) % holes == 0), None)
        yield None if first is None else _Taps(
            first, step, -(-(size - first) // step), stride // math.gcd(stride, holes),
            -((start + first * dilation) // holes), dilation // math.gcd(dilation, holes))


def _every(b: Builder, x: Value, dims: Sequence[int], parts: Sequence[tuple[int, int, int]]) -> Value:
    """Elements of some dimensions: from the first, in steps, so many."""
    shape, chosen = list(x.shape), dict(zip(dims, parts, strict=True))
    for d, (_, _, count) in chosen.items():
        shape[d] = count

    def at(index: Sequence[Any]) -> Any:
        return x.at([b.add(b.mul(i, b.index(chosen[d][1])), b.index(chosen[d][0])) if d in chosen else i
                     for d, i in enumerate(index)])

    return b.value(shape, x.dtype, at)


def _direct(b: Builder, lhs: Any, rhs: Any, shape: tuple[int, ...], dtype: Any, conv: Convolution) -> Value:
    """One reduction for all elements."""
    dims = conv.dims
    boolean = dtype == np.bool_
    total = accumulation_dtype(dtype)
    kernel, sizes, outs = (spatial_sizes(s, spec) for s, spec in zip((rhs.shape, lhs.shape, shape), (
        dims.rhs_spec, dims.lhs_spec, dims.out_spec), strict=True))
    group_features = rhs.shape[dims.rhs_spec[1]]
    out_features = rhs.shape[dims.rhs_spec[0]]
    group_batch = lhs.shape[dims.lhs_spec[0]] // conv.batch_groups
    if (found := _by_kernel(b, lhs, rhs, shape, dtype, conv)) is not None:
        return found
    uses = b.product((*kernel, out_features // conv.feature_groups))
    widened = total != dtype and isinstance(uses, int) and uses >= USES and out_features > conv.feature_groups
    if widened:  # once, not wherever an element meets a tap and a feature
        lhs, rhs = _widened(b, lhs, total), _widened(b, rhs, total)
    padding = conv.padding
    ends = [(o - 1) * s + (k - 1) * d - low
            for o, s, k, d, low in zip(outs, conv.strides, kernel, conv.rhs_dilation, padding, strict=True)]
    ranges = [*kernel, group_features]
    sparse = conv.has_holes and all(math.gcd(h, d) == 1 for h, d in zip(
        conv.lhs_dilation, conv.rhs_dilation, strict=True))
    if sparse:
        ranges = [*(-(-k // h) for k, h in zip(kernel, conv.lhs_dilation, strict=True)), group_features]
    elif (any(low > 0 for low in padding) or conv.has_holes
          or any(end >= n for end, n in zip(ends, sizes, strict=True))):
        lhs = _padded(b, lhs, conv, sizes, kernel, outs)
        padding = (0,) * len(sizes)
    if widened:
        lhs, rhs = b.materialize(lhs), b.materialize(rhs)
    lhs = b.materialize_if_reused(lhs, b.product((*kernel, out_features)))
    rhs = b.materialize_if_reused(rhs, b.product([shape[d] for d in (dims.out_spec[0], *dims.out_spec[2:])]))

    def body(index: Sequence[Any], r: Sequence[Any]) -> tuple[Any]:
        *taps, channel = r
        feature = index[dims.out_spec[1]]
        rhs_index: list[Any] = [None] * len(rhs.shape)
        rhs_index[dims.rhs_spec[0]] = feature
        rhs_index[dims.rhs_spec[1]] = channel
        batch = index[dims.out_spec[0]]
        if conv.batch_groups > 1:
            group = b.floordiv(feature, b.index(out_features // conv.batch_groups))
            batch = b.add(b.mul(group, b.index(group_batch)), batch)
        if conv.feature_groups > 1:
            group = b.floordiv(feature, b.index(out_features // conv.feature_groups))
            channel = b.add(b.mul(group, b.index(group_features)), channel)
        lhs_index: list[Any] = [None] * len(lhs.shape)
        lhs_index[dims.lhs_spec[0]] = batch
        lhs_index[dims.lhs_spec[1]] = channel
        conditions = []
        for k, tap in enumerate(taps):
            if sparse:
                t, place = conv.meeting(b, k, index[dims.out_spec[2 + k]], tap)
                rhs_index[dims.rhs_spec[2 + k]], lhs_index[dims.lhs_spec[2 + k]] = t, place
                conditions += inside(b, t, kernel[k], place, sizes[k])
                continue
            rhs_index[dims.rhs_spec[2 + k]] = tap
            lhs_index[dims.lhs_spec[2 + k]] = b.add(
                b.mul(index[dims.out_spec[2 + k]], b.index(conv.strides[k])),
                b.sub(b.mul(tap, b.index(conv.rhs_dilation[k])), b.index(padding[k])))
        if conditions:
            x, y = (b.load_if(functools.reduce(b.and_, conditions), v, i, b.const(0, v.dtype))
                    for v, i in ((lhs, lhs_index), (rhs, rhs_index)))
        else:
            x, y = lhs.at(lhs_index), rhs.at(rhs_index)
        if boolean:
            return (b.and_(x, y),)
        return (b.mul(b.cast(x, total), b.cast(y, total)),)

    (summed,) = b.reduce(shape, ranges, [total], "or" if boolean else "add", (b.const(0, total),), body)
    if total == dtype:
        return summed
    return b.value(shape, dtype, lambda index: b.cast(summed.at(index), dtype))


def _widened(b: Builder, x: Value, dtype: Any) -> Value:
    return b.value(x.shape, dtype, lambda index: b.cast(x.at(index), dtype))


def _by_kernel(b: Builder, lhs: Any, rhs: Any, shape: tuple[int, ...], dtype: Any, conv: Convolution) -> Value | None:
    """The convolution as an implicit product; None where loops are the better way."""
    dims = conv.dims
    if conv.batch_groups > 1 or conv.has_holes or dtypes.kind(dtype) not in "fiu":
        return None
    outs, sizes, taps = conv.spaces(lhs, rhs, shape)
    space = list(zip(outs, sizes, taps, conv.strides, conv.rhs_dilation, conv.padding, strict=True))
    found = b.convolve(ordered(b, lhs, dims.lhs_spec), ordered(b, rhs, dims.rhs_spec), space, conv.feature_groups,
                       dtype, dims.lhs_spec[1] == len(shape) - 1)
    return found and ordered(b, found, [(dims.out_spec[0], *dims.out_spec[2:], dims.out_spec[1]).index(d)
                                         for d in range(len(shape))])


def _padded(b: Builder, lhs: Any, conv: Convolution, sizes: Sequence[Any], kernel: Sequence[Any],
            outs: Sequence[Any]) -> Value:
    """The part of the padded and dilated input that the windows touch, in memory: the loops over it need no tests."""
    shape = list(lhs.shape)
    dims = conv.dims.lhs_spec[2:]
    for k, d in enumerate(dims):
        shape[d] = (outs[k] - 1) * conv.strides[k] + (kernel[k] - 1) * conv.rhs_dilation[k] + 1
    zero = b.const(0, lhs.dtype)

    def at(index: Sequence[Any]) -> Any:
        inside: Any = None
        index = list(index)
        for k, d in enumerate(dims):
            position = b.sub(index[d], b.index(conv.padding[k]))
            conditions = [b.ge(position, b.index(0))]
            if conv.lhs_dilation[k] > 1:
                conditions.append(b.eq(b.floormod(position, b.index(conv.lhs_dilation[k])), b.index(0)))
                position = b.floordiv(position, b.index(conv.lhs_dilation[k]))
            conditions.append(b.lt(position, b.index(sizes[k])))
            index[d] = position
            for condition in conditions:
                inside = condition if inside is None else b.and_(inside, condition)
        return b.load_if(inside, lhs, index, zero)

    return b.materialize(b.value(shape, lhs.dtype, at))
