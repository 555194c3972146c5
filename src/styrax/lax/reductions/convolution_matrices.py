"""Convolutions that meet each element of the input, or of the result, once, as products of matrices."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .convolution_layouts import Convolution, inside, ordered

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value


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
        found = b.contract(windows, rhs, ((of_window, of_kernel), ((), ())), dtype)
        made = (dims.out_spec[0], *dims.out_spec[2:], dims.out_spec[1])
    else:  # an image after the other: places lie side by side in the result, and in the input
        kernels = b.value((count, *rhs.shape), rhs.dtype, lambda index: rhs.at(index[1:]))
        found = b.contract(kernels, windows, ((tuple(1 + d for d in of_kernel), of_window), ((0,), (0,))), dtype)
        made = (dims.out_spec[0], dims.out_spec[1], *dims.out_spec[2:])
    return None if found is None else ordered(b, found, [made.index(d) for d in range(len(shape))])


def of_places(b: Builder, lhs: Any, rhs: Any, shape: tuple[int, ...], dtype: Any, conv: Convolution) -> Value | None:
    """A convolution of an input with holes that meets it with one tap at most (transposed ones of patches) as a product
    of matrices: of places of the input and the kernel. None where it is another, or loops are the better way."""
    dims = conv.dims
    outs, sizes, taps = conv.spaces(lhs, rhs, shape)
    if (conv.feature_groups > 1 or conv.batch_groups > 1 or not conv.has_holes
            or any(d > 1 for d in conv.rhs_dilation)
            or any(tap > holes for tap, holes in zip(taps, conv.lhs_dilation, strict=True))):
        return None
    found = b.contract(lhs, rhs, (((dims.lhs_spec[1],), (dims.rhs_spec[1],)), ((), ())), dtype)
    if found is None:
        return None
    made = [("lhs", d) for d in range(len(shape)) if d != dims.lhs_spec[1]]
    made += [("rhs", d) for d in range(len(shape)) if d != dims.rhs_spec[1]]

    def at(index: Sequence[Any]) -> Any:
        image, feature, *place = (index[d] for d in dims.out_spec)
        places = {("lhs", dims.lhs_spec[0]): image, ("rhs", dims.rhs_spec[0]): feature}
        conditions = []
        for k, (size, tap) in enumerate(zip(sizes, taps, strict=True)):
            t, here = conv.meeting(b, k, place[k], 0)
            conditions += inside(b, t, tap, here, size)
            places["lhs", dims.lhs_spec[2 + k]], places["rhs", dims.rhs_spec[2 + k]] = here, t
        return b.load_if(functools.reduce(b.and_, conditions), found, [places[d] for d in made], b.const(0, dtype))

    return b.value(shape, dtype, at)
