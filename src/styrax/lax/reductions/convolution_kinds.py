"""Functions made of `conv_general_dilated`: plain, transposed and local convolutions, patches, shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import get_aval
from styrax.core.types.typing import ArrayLike, DTypeLike

from ..indexing.dimension_numbers import shape_of
from ..shaping.padding import PaddingType, dilated, padtype_to_pads, window_count
from ..shaping.reshaping import reshape, rev, transpose
from .contractions import PrecisionLike
from .convolution import conv_general_dilated
from .convolution_layouts import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_permutations,
    spatial_sizes,
)


def _explicit_pads(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any
                   ) -> Sequence[tuple[int, int]]:
    if isinstance(pads, (str, PaddingType)):
        return padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(lhs_shape) - 2}, got "
                        f"{len(pads)}.")
    return pads


def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int],
                     pads: str | Sequence[tuple[int, int]], batch_group_count: int = 1) -> tuple[int, ...]:
    """The shape of a convolution of shapes in (batch, feature, spatial) order.

    Args:
      lhs_shape, rhs_shape: shapes of input and kernel.
      strides: of the window, one for each spatial dimension.
      pads: as for `conv_general_dilated`.
      batch_group_count: how many groups the batch is divided into.

    Returns:
      the shape in the same order.

    Raises:
      ValueError: for a number of groups that does not divide the batch.
    """
    pads = _explicit_pads(lhs_shape, rhs_shape, strides, pads)
    sizes = [n + low + high for n, (low, high) in zip(lhs_shape[2:], pads, strict=True)]
    counts = [window_count(n, k, s) for n, k, s in zip(sizes, rhs_shape[2:], strides, strict=True)]
    if batch_group_count > 1 and lhs_shape[0] % batch_group_count:
        raise ValueError("batch_group_count must divide the batch size")
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *counts)


def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int],
                             padding: str | Sequence[tuple[int, int]],
                             dimension_numbers: tuple[str, str, str]) -> tuple[int, ...]:
    """The shape of a convolution without dilation.

    Args:
      lhs_shape, rhs_shape: shapes of input and kernel.
      window_strides, padding: as for `conv_general_dilated`.
      dimension_numbers: three strings, as for `conv_dimension_numbers`.

    Returns:
      the shape in the layout of the result.
    """
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    sizes = conv_shape_tuple([lhs_shape[d] for d in lhs_spec], [rhs_shape[d] for d in rhs_spec], window_strides,
                             padding)
    return tuple(sizes[out_spec.index(d)] for d in range(len(sizes)))


def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int],
                               padding: str | Sequence[tuple[int, int]],
                               dimension_numbers: tuple[str, str, str]) -> tuple[int, ...]:
    """The shape of a transposed convolution.

    Args:
      lhs_shape, rhs_shape: shapes of input and kernel.
      window_strides: of the convolution that is transposed.
      padding: as for `conv_transpose`.
      dimension_numbers: three strings, as for `conv_dimension_numbers`.

    Returns:
      the shape in the layout of the result.
    """
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    lhs, rhs = [lhs_shape[d] for d in lhs_spec], [rhs_shape[d] for d in rhs_spec]
    if isinstance(padding, str):
        padding = [_conv_transpose_padding(k, s, padding) for k, s in zip(rhs[2:], window_strides, strict=True)]
    counts = [window_count(dilated(n, s) + low + high, k, 1)
              for n, k, s, (low, high) in zip(lhs[2:], rhs[2:], window_strides, padding, strict=True)]
    sizes = (lhs[0], rhs[0], *counts)
    return tuple(sizes[out_spec.index(d)] for d in range(len(sizes)))


def conv(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str, precision: PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """A convolution with strides and named padding, in (batch, feature, spatial) layout.

    Args:
      lhs: input, `[batch, features, *spatial]`.
      rhs: kernel, `[outputs, features, *window]`.
      window_strides, precision, preferred_element_type: as for `conv_general_dilated`.
      padding: "SAME", "SAME_LOWER" or "VALID".

    Returns:
      an array `[batch, outputs, *spatial]`.
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                              padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: PrecisionLike = None,
                              preferred_element_type: DTypeLike | None = None) -> Array:
    """A convolution with explicit padding and dilation, in (batch, feature, spatial) layout.

    Args:
      lhs: input, `[batch, features, *spatial]`.
      rhs: kernel, `[outputs, features, *window]`.
      window_strides, padding, lhs_dilation, rhs_dilation, precision, preferred_element_type: as for
        `conv_general_dilated`.

    Returns:
      an array `[batch, outputs, *spatial]`.
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=lhs_dilation,
                                rhs_dilation=rhs_dilation, precision=precision,
                                preferred_element_type=preferred_element_type)


def _conv_transpose_padding(k: int, s: int, padding: str) -> tuple[int, int]:
    """The padding of a transposed convolution that undoes the shape change of a convolution.

    `k` is the size of the window, dilation included, and `s` the stride of that convolution.
    """
    if padding == "SAME":
        total = k + s - 2
        low = k - 1 if s > k - 1 else -(-total // 2)
    elif padding == "VALID":
        total = k + s - 2 + max(k - s, 0)
        low = k - 1
    else:
        raise ValueError("Padding mode must be `SAME` or `VALID`.")
    return low, total - low


_TRANSPOSE_LAYOUTS = {
    2: ("NC", "IO", "NC"), 3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
                   rhs_dilation: Sequence[int] | None = None,
                   dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, transpose_kernel: bool = False,
                   precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
                   use_consistent_padding: bool = False) -> Array:
    """The transposed convolution ("deconvolution"): the input is spread by the strides.

    Args:
      lhs, rhs: input and kernel.
      strides: for each spatial dimension, the stride of the convolution that this one transposes.
      padding: "SAME" (sizes are multiplied by the strides), "VALID", or pairs (low, high).
      rhs_dilation: dilation of the kernel.
      dimension_numbers: see `conv_dimension_numbers`; features come last by default.
      transpose_kernel: whether to flip the kernel and exchange its features, which makes this the
        gradient of a convolution.
      precision, preferred_element_type: as for `conv_general_dilated`.
      use_consistent_padding: whether pairs in `padding` mean the padding of the transposed convolution
        instead of that of its dilated input.

    Returns:
      an array in the layout of the result that `dimension_numbers` names.

    Raises:
      ValueError: for more than three spatial dimensions without `dimension_numbers`.
    """
    rank = len(shape_of(lhs))
    if dimension_numbers is None:
        if rank not in _TRANSPOSE_LAYOUTS:
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        dimension_numbers = _TRANSPOSE_LAYOUTS[rank]
    dn = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    window = spatial_sizes(shape_of(rhs), dn.rhs_spec)
    dilation = (1,) * (rank - 2) if rhs_dilation is None else rhs_dilation
    window = [dilated(k, d) for k, d in zip(window, dilation, strict=True)]
    if isinstance(padding, str):
        pads = [_conv_transpose_padding(k, s, padding) for k, s in zip(window, strides, strict=True)]
    elif use_consistent_padding:
        pads = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, padding, strict=True)]
    else:
        pads = list(padding)
    if transpose_kernel:
        rhs = rev(rhs, dn.rhs_spec[2:])
        order = list(range(rank))
        o, i = dn.rhs_spec[:2]
        order[o], order[i] = i, o
        rhs = transpose(rhs, tuple(order))
    return conv_general_dilated(lhs, rhs, (1,) * (rank - 2), pads, strides, dilation, dn, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_general_dilated_patches(lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int],
                                 padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
                                 rhs_dilation: Sequence[int] | None = None,
                                 dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                                 precision: PrecisionLike = None,
                                 preferred_element_type: DTypeLike | None = None) -> Array:
    """The windows of an array, laid out along its feature dimension.

    Args:
      lhs: array of `n + 2` dimensions.
      filter_shape: `n` sizes of the window.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as for
        `conv_general_dilated`.
      precision, preferred_element_type: as for `conv_general_dilated`.

    Returns:
      an array whose feature dimension has size `features * prod(filter_shape)`, the input's features
      major.
    """
    from ..shaping.broadcasting import broadcast_in_dim

    filter_shape = tuple(int(n) for n in filter_shape)
    layout = dimension_numbers
    if layout is None:
        plain = tuple(range(len(filter_shape) + 2))
        dn = ConvDimensionNumbers(plain, plain, plain)
    elif isinstance(layout, ConvDimensionNumbers):
        dn = layout
    else:
        dn = ConvDimensionNumbers(*conv_general_permutations(layout))
    features = shape_of(lhs)[dn.lhs_spec[1]]
    taps = math.prod(filter_shape)
    identity = np.eye(taps, dtype=get_aval(lhs).dtype)
    kernel = reshape(broadcast_in_dim(identity, (features, taps, taps), (1, 2)), (features * taps, 1, *filter_shape))
    order = [dn.rhs_spec.index(d) for d in range(len(dn.rhs_spec))]
    if order != sorted(order):
        kernel = transpose(kernel, tuple(order))
    return conv_general_dilated(
        lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation, dn, feature_group_count=features,
        precision=precision, preferred_element_type=preferred_element_type)


def conv_general_dilated_local(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                               padding: str | Sequence[tuple[int, int]], filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                               precision: PrecisionLike = None) -> Array:
    """A convolution with a kernel of its own at every position.

    Args:
      lhs: array of `n + 2` dimensions.
      rhs: kernels, of `n + 2` dimensions: the spatial ones are those of the result, the input feature
        one has size `features * prod(filter_shape)`.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
        `conv_general_dilated`.
      filter_shape: `n` sizes of the window.

    Returns:
      an array of `n + 2` dimensions.
    """
    from .contractions import dot_general

    dn = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    paired = isinstance(precision, tuple) and len(precision) == 2  # an algorithm is a longer tuple
    pair = cast("tuple[PrecisionLike, PrecisionLike]", precision if paired else (precision, precision))
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation,
        ConvDimensionNumbers(dn.lhs_spec, dn.rhs_spec, dn.out_spec), precision=pair[0])
    contracted = ((dn.out_spec[1],), (dn.rhs_spec[1],))
    out = dot_general(patches, rhs, (contracted, (dn.out_spec[2:], dn.rhs_spec[2:])),
                      precision=cast(PrecisionLike, pair))
    # spatial dimensions come first, then batch and feature
    spatial = len(dn.out_spec) - 2
    place = {dn.out_spec[0]: spatial, dn.out_spec[1]: spatial + 1,
             **{d: k for k, d in enumerate(dn.out_spec[2:])}}
    return transpose(out, tuple(place[d] for d in range(spatial + 2)))
