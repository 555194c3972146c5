"""Products of two BCOO arrays: every pair of stored elements is looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.typing import DTypeLike

from ..arrays import SparseInfo
from ..primitives import traceable
from .ordering import _sum_one, batched
from .storage import in_bounds, layout_of, whole_batches


def pairs(lhs: tuple[Array, Array], rhs: tuple[Array, Array], shapes: tuple[Sequence[int], Sequence[int]],
          common: tuple[Sequence[int], Sequence[int]]) -> tuple[Array, Array]:
    """The products of all pairs of elements of two unbatched arrays, zero where they do not meet.

    Args:
      lhs: data `(n,)` and indices `(n, …)`.
      rhs: data `(m,)` and indices `(m, …)`.
      shapes: the sparse shapes of both.
      common: the sparse dimensions of both in which elements that meet have the same index.

    Returns:
      `(n, m)` products, and which pairs meet.
    """
    (lhs_data, lhs_indices), (rhs_data, rhs_indices) = lhs, rhs
    left = lhs_indices[:, np.array(common[0], int)]
    right = rhs_indices[:, np.array(common[1], int)]
    meet = jnp.all(left[:, None] == right[None, :], axis=-1)
    meet &= in_bounds(lhs_indices, shapes[0])[:, None] & in_bounds(rhs_indices, shapes[1])[None, :]
    products = lhs_data[:, None] * rhs_data[None, :]
    return jnp.where(meet, products, jnp.zeros((), products.dtype)), meet


def _one(lhs_data: Array, lhs_indices: Array, rhs_data: Array, rhs_indices: Array, *,
         shapes: tuple[Sequence[int], Sequence[int]], common: tuple[Sequence[int], Sequence[int]],
         kept: tuple[Sequence[int], Sequence[int]], nse: int) -> list[Array]:
    products, _ = pairs((lhs_data, lhs_indices), (rhs_data, rhs_indices), shapes, common)
    n, m = products.shape
    left = jnp.repeat(lhs_indices[:, np.array(kept[0], int)], m, axis=0, total_repeat_length=n * m)
    right = jnp.tile(rhs_indices[:, np.array(kept[1], int)], (n, 1))
    dtype = jnp.result_type(left, right)
    indices = jnp.concatenate([left.astype(dtype), right.astype(dtype)], axis=1)
    if nse == n * m:
        return [products.reshape(-1), indices]
    bounds = tuple(shapes[0][d] for d in kept[0]) + tuple(shapes[1][d] for d in kept[1])
    return _sum_one(products.reshape(-1), indices, bounds, nse)


def _spdot_general(lhs_data: Array, lhs_indices: Array, rhs_data: Array, rhs_indices: Array, *,
                   lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo,
                   dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]],
                   preferred_element_type: DTypeLike | None) -> list[Array]:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lhs = layout_of(lhs_data, lhs_indices, lhs_spinfo.shape)
    rhs = layout_of(rhs_data, rhs_indices, rhs_spinfo.shape)
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_spdot_general with dense dimensions.")
    if any(d >= lhs.n_batch for d in lhs_batch) or any(d >= rhs.n_batch for d in rhs_batch):
        raise NotImplementedError("bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse "
                                  "representation.")
    if any(d < lhs.n_batch for d in lhs_contracting) or any(d < rhs.n_batch for d in rhs_contracting):
        raise NotImplementedError("bcoo_spdot_general only supports contraction of sparse indices.")
    common = tuple(d - lhs.n_batch for d in lhs_contracting), tuple(d - rhs.n_batch for d in rhs_contracting)
    kept = (tuple(d for d in range(lhs.n_sparse) if d not in common[0]),
            tuple(d for d in range(rhs.n_sparse) if d not in common[1]))
    lhs_free = [d for d in range(lhs.n_batch) if d not in lhs_batch]
    rhs_free = [d for d in range(rhs.n_batch) if d not in rhs_batch]
    if rhs_free and kept[0]:
        raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims on lhs.")

    shapes = lhs.split(lhs_spinfo.shape)[1], rhs.split(rhs_spinfo.shape)[1]
    sizes = [shapes[0][d] for d in kept[0]] + [shapes[1][d] for d in kept[1]]
    nse = min(lhs.nse * rhs.nse, math.prod(sizes))

    # batches: [shared, free ones of lhs, free ones of rhs]
    def arranged(x: Array, batch: Sequence[int], free: Sequence[int], axes: Sequence[int]) -> Array:
        return jnp.expand_dims(x.transpose(*batch, *free, *range(len(batch) + len(free), x.ndim)), tuple(axes))

    n = len(lhs_batch)
    behind, between = range(n + len(lhs_free), n + len(lhs_free) + len(rhs_free)), range(n, n + len(lhs_free))
    left = [arranged(x, lhs_batch, lhs_free, behind) for x in whole_batches(lhs_data, lhs_indices, lhs_spinfo.shape)]
    right = [arranged(x, rhs_batch, rhs_free, between) for x in whole_batches(rhs_data, rhs_indices, rhs_spinfo.shape)]
    n_batch = n + len(lhs_free) + len(rhs_free)
    batch = np.broadcast_shapes(left[0].shape[:n_batch], right[0].shape[:n_batch])
    dtype = jnp.result_type(lhs_data, rhs_data) if preferred_element_type is None else preferred_element_type
    buffers = [jnp.broadcast_to(x, (*batch, *x.shape[n_batch:])) for x in (*left, *right)]
    one = partial(_one, shapes=shapes, common=common, kept=kept, nse=nse)
    data, indices = batched(one, n_batch)(buffers[0].astype(dtype), buffers[1], buffers[2].astype(dtype), buffers[3])
    return [data, indices]


bcoo_spdot_general_p = traceable("bcoo_spdot_general", _spdot_general, linear=[0, 2], multiple_results=True)


def spdot_general(lhs_data: Array, lhs_indices: Array, rhs_data: Array, rhs_indices: Array, *,
                  lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo,
                  dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]],
                  preferred_element_type: DTypeLike | None = None) -> tuple[Array, Array, tuple[int, ...]]:
    """The product of two BCOO arrays given by their buffers: data, indices and shape."""
    data, indices = bcoo_spdot_general_p.bind(
        lhs_data, lhs_indices, rhs_data, rhs_indices, lhs_spinfo=lhs_spinfo, rhs_spinfo=rhs_spinfo,
        dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lhs, rhs = lhs_spinfo.shape, rhs_spinfo.shape
    own = [[n for d, n in enumerate(shape) if d not in taken] for shape, taken in (
        (lhs, {*lhs_contracting, *lhs_batch}), (rhs, {*rhs_contracting, *rhs_batch}))]
    return data, indices, (*(lhs[d] for d in lhs_batch), *own[0], *own[1])
