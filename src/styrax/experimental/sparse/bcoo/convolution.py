"""Convolutions of BCOO arrays along one dimension: each stored element meets each element of the window."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.shape_struct import ShapeDtypeStruct
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.transforms.api import eval_shape

from ..arrays import JAXSparse
from .array import BCOO
from .shaping import bcoo_update_layout, without_outsiders
from .storage import beside, whole_batches


def bcoo_conv_general_dilated(lhs: BCOO, rhs: BCOO | ArrayLike, *, window_strides: Sequence[int],
                              padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
                              rhs_dilation: Sequence[int] | None = None,
                              dimension_numbers: lax.ConvDimensionNumbers | tuple[str, str, str] | None = None,
                              feature_group_count: int = 1, batch_group_count: int = 1, precision: None = None,
                              preferred_element_type: DTypeLike | None = None,
                              out_sharding: ShardingLike | None = None) -> BCOO:
    """The convolution of a BCOO array along one dimension; parameters as of `lax.conv_general_dilated`.

    Args:
      lhs: `(batch, features, length)`, whose first two dimensions are batches, or could be without storing more.
      rhs: the windows, `(features of the result, features, width)`; a sparse array is made dense.

    Returns:
      A BCOO array with two batch dimensions.

    Raises:
      NotImplementedError: there are more spatial dimensions, groups, or other orders of dimensions.
      SparseEfficiencyError: `lhs` would have to be stored with many zeros.
    """
    window = rhs.todense() if isinstance(rhs, JAXSparse) else jnp.asarray(rhs)
    if lhs.ndim != 3:
        raise NotImplementedError("bcoo convolution with more than one spatial dimension")
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError("bcoo convolution with feature_group_count or batch_group_count")
    numbers = lax.conv_dimension_numbers(lhs.shape, window.shape, dimension_numbers)
    if tuple(numbers.lhs_spec) != (0, 1, 2) or tuple(numbers.out_spec) != (0, 1, 2):
        raise NotImplementedError("bcoo convolution with other orders of dimensions")
    out = eval_shape(
        partial(lax.conv_general_dilated, window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation,
                rhs_dilation=rhs_dilation, dimension_numbers=dimension_numbers),
        ShapeDtypeStruct(lhs.shape, np.dtype(np.float32)), ShapeDtypeStruct(window.shape, np.dtype(np.float32)))
    window = window.transpose(*numbers.rhs_spec)
    (stride,), (spread,), (apart,) = window_strides, lhs_dilation or (1,), rhs_dilation or (1,)
    dilated = [0 if n == 0 else (n - 1) * step + 1
               for n, step in ((lhs.shape[2], spread), (window.shape[2], apart))]
    pads = lax.padtype_to_pads(dilated[:1], dilated[1:], [stride], padding) if isinstance(padding, str) else padding

    lhs = bcoo_update_layout(lhs, n_batch=2, n_dense=0)
    data, indices = whole_batches(without_outsiders(lhs), lhs.indices, lhs.shape)
    batch, length, width = lhs.shape[0], out.shape[2], window.shape[2]
    dtype = jnp.result_type(data, window) if preferred_element_type is None else preferred_element_type
    # [batch, features of the result, features, stored elements, window]
    terms = data[:, None, :, :, None].astype(dtype) * window[None, :, :, None, :].astype(dtype)
    at = indices[:, None, :, :, :] * spread + pads[0][0]
    at = at - beside(apart * jnp.arange(width), at)
    within = (at >= 0) & (at % stride == 0) & (at // stride < length)
    at = jnp.broadcast_to(jnp.where(within, at // stride, length), terms.shape)
    terms = jnp.where(within, terms, jnp.zeros((), terms.dtype))
    nse = terms.shape[2] * terms.shape[3] * terms.shape[4]
    return BCOO((terms.reshape(batch, window.shape[0], nse), at.reshape(batch, window.shape[0], nse, 1)),
                shape=out.shape)
