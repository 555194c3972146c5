"""Convolutions that meet each element of the input, or of the result, once, as products of matrices."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .convolution_layouts import Convolution, accumulation_dtype, inside, ordered

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value

FEW = 8  # features that loops over them would not fill vectors with

def of_windows(b: Builder, lhs: Any, rhs: Any, shape: tuple[int, ...], dtype: Any, conv: Convolution) -> Value | None:
    """A convolution that meets each element of the input once (kernels of one tap, patches, and their gradients) as a
    product of matrices: of windows and the kernel. None where it is another, or loops are the better way."""
    dims = conv.dims
    if conv.feature_groups > 1 or conv.batch_groups > 1 or conv.has_holes or any(conv.padding):
        return None
    outs, sizes, taps = conv.spaces(lhs, rhs, shape)
    for out, size, tap, stride, dilation in zip(outs, sizes, taps, conv.strides, conv.rhs_dilation, strict=True):
        window, places = (tap - 1) * dilation, (out - 1) * stride
        if (window >= stride and places >= dilation) or window + places >= size:
            return None
    count, channels = shape[dims.out_spec[0]], rhs.shape[dims.rhs_spec[1]]
    space = len(outs)

    def window_at(index: Sequence[Any]) -> Any:  # (image, places, taps, channel)
        place: list[Any] = [None] * len(shape)
        place[dims.lhs_spec[0]], place[dims.lhs_spec[1]] = index[0], index[-1]
        for k, d in enumerate(dims.lhs_spec[2:]):
            place[d] = b.add(b.mul(index[1 + k], b.index(conv.strides[k])),
                             b.mul(index[1 + space + k], b.index(conv.rhs_dilation[k])))
        return lhs.at(place)

    windows = b.value((count, *outs, *taps, channels), lhs.dtype, window_at)
    terms = sorted([*zip(dims.rhs_spec[2:], range(1 + space, 1 + 2 * space), strict=True),
                    (dims.rhs_spec[1], 1 + 2 * space)])  # in the order in which they lie in the kernel
    of_kernel, of_window = zip(*terms, strict=True)
    if dims.out_spec[1] == len(shape) - 1:
        found = b.contract(windows, rhs, ((of_window, of_kernel), ((), ())), dtype, loops=False)
        made = (dims.out_spec[0], *dims.out_spec[2:], dims.out_spec[1])
    else:  # an image after the other: places lie side by side in the result, and in the input
        kernels = b.value((count, *rhs.shape), rhs.dtype, lambda index: rhs.at(index[1:]))
        found = b.contract(kernels, windows, ((tuple(1 + d for d in of_kernel), of_window), ((0,), (0,))), dtype,
                           loops=False)
        made = (dims.out_spec[0], dims.out_spec[1], *dims.out_spec[2:])
    return None if found is None else ordered(b, found, [made.index(d) for d in range(len(shape))])


def of_places(b: Builder, lhs: Any, rhs: Any, shape: tuple[int, ...], dtype: Any, conv: Convolution) -> Value | None:
    """A convolution of an input with holes as a product of matrices, of places of the input and the kernel, whose
    elements are summed where taps meet (col2im): where a place of the result meets one tap at most, as in transposed
    ones of patches, or has so few features that they would not fill vectors, as in gradients by images. None where it
    is another, or loops are the better way."""
    dims = conv.dims
    outs, sizes, taps = conv.spaces(lhs, rhs, shape)
    if conv.feature_groups > 1 or conv.batch_groups > 1 or not conv.has_holes or any(d > 1 for d in conv.rhs_dilation):
        return None
    several = [-(-tap // holes) for tap, holes in zip(taps, conv.lhs_dilation, strict=True)]
    if max(several) > 1 and shape[dims.out_spec[1]] >= FEW:
        return None
    total = dtype if max(several) == 1 else accumulation_dtype(dtype)
    found = b.contract(lhs, rhs, (((dims.lhs_spec[1],), (dims.rhs_spec[1],)), ((), ())), total, loops=False)
    if found is None:
        return None
    made = [("lhs", d) for d in range(len(shape)) if d != dims.lhs_spec[1]]
    made += [("rhs", d) for d in range(len(shape)) if d != dims.rhs_spec[1]]

    def met(index: Sequence[Any], numbers: Sequence[Any]) -> Any:
        image, feature, *place = (index[d] for d in dims.out_spec)
        places = {("lhs", dims.lhs_spec[0]): image, ("rhs", dims.rhs_spec[0]): feature}
        conditions = []
        for k, (size, tap, number) in enumerate(zip(sizes, taps, numbers, strict=True)):
            t, here = conv.meeting(b, k, place[k], number)
            conditions += inside(b, t, tap, here, size)
            places["lhs", dims.lhs_spec[2 + k]], places["rhs", dims.rhs_spec[2 + k]] = here, t
        return b.load_if(functools.reduce(b.and_, conditions), found, [places[d] for d in made], b.const(0, total))

    if max(several) == 1:
        return b.value(shape, dtype, lambda index: met(index, [0] * len(outs)))
    (summed,) = b.reduce(shape, several, [total], "add", (b.const(0, total),), lambda index, r: (met(index, r),))
    return summed if total == dtype else b.value(shape, dtype, lambda index: b.cast(summed.at(index), dtype))
