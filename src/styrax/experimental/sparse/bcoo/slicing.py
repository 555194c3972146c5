"""Parts of BCOO arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.transforms.api import vmap

from .array import BCOO, bcoo_sum_duplicates
from .shaping import bcoo_squeeze
from .storage import beside, layout_of, whole_batches


def _fitted(mat: BCOO) -> BCOO:
    """The same array, which stores no more than its shape has room for."""
    room = math.prod(mat.shape[mat.n_batch:mat.ndim - mat.n_dense])
    return BCOO(bcoo_sum_duplicates(mat, nse=room)._bufs, shape=mat.shape) if mat.nse > room else mat


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:
    """A part of a BCOO array; see `lax.slice`.

    Raises:
      ValueError: the bounds do not fit the shape.
    """
    start = tuple(map(int, start_indices))
    limit = tuple(map(int, limit_indices))
    step = (1,) * mat.ndim if strides is None else tuple(map(int, strides))
    if not len(start) == len(limit) == len(step) == mat.ndim:
        raise ValueError(f"bcoo_slice: indices must have size mat.ndim={mat.ndim}")
    if any(not 0 <= a <= b <= n for a, b, n in zip(start, limit, mat.shape, strict=True)) or min(step, default=1) < 1:
        raise ValueError(f"bcoo_slice: invalid indices. Got start_indices={start}, limit_indices={limit}, "
                         f"strides={step} and shape={mat.shape}")
    layout = layout_of(*mat._bufs, mat.shape)
    n_batch, n_sparse, _, nse = layout
    data, indices = whole_batches(*mat._bufs, mat.shape)
    starts, limits, steps = (layout.split(x) for x in (start, limit, step))
    data = lax.slice(data, (*starts[0], 0, *starts[2]), (*limits[0], nse, *limits[2]), (*steps[0], 1, *steps[2]))
    indices = lax.slice(indices, (*starts[0], 0, 0), (*limits[0], nse, n_sparse), (*steps[0], 1, 1))
    shape = tuple(-(-(b - a) // c) for a, b, c in zip(start, limit, step, strict=True))
    first, last, by = (beside(x[1], indices) for x in (starts, limits, steps))
    if n_sparse and layout.split(shape)[1] != layout.split(mat.shape)[1]:
        within = jnp.all((indices >= first) & (indices < last) & ((indices - first) % by == 0), axis=-1, keepdims=True)
        indices = jnp.where(within, (indices - first) // by, beside(layout.split(shape)[1], indices))
        spread = jnp.expand_dims(within[..., 0], tuple(range(n_batch + 1, data.ndim)))
        data = jnp.where(spread, data, jnp.zeros((), data.dtype))
    return _fitted(BCOO((data, indices), shape=shape))


def bcoo_dynamic_slice(mat: BCOO, start_indices: ArrayLike | Sequence[ArrayLike], slice_sizes: Sequence[int]) -> BCOO:
    """A part of a BCOO array that begins where arrays say; see `lax.dynamic_slice`.

    Args:
      mat: a BCOO array.
      start_indices: an integer for each dimension. Negative ones count from the end, and those too large are reduced.
      slice_sizes: the shape of the part.

    Raises:
      TypeError: the sizes do not fit the shape.
    """
    sizes = tuple(map(int, slice_sizes))
    starts = [jnp.asarray(start_indices[i]) for i in range(mat.ndim)]  # type: ignore[index]
    if len(sizes) != mat.ndim or any(size > n or size < 0 for size, n in zip(sizes, mat.shape, strict=True)):
        raise TypeError("bcoo_dynamic_slice: slice_sizes must be less than or equal to mat.shape, "
                        f"got slice_sizes={sizes} for shape {mat.shape}")
    starts = [jnp.clip(jnp.where(s < 0, s + n, s), 0, n - size)
              for s, n, size in zip(starts, mat.shape, sizes, strict=True)]
    layout = layout_of(*mat._bufs, mat.shape)
    n_batch, n_sparse, _, nse = layout
    data, indices = whole_batches(*mat._bufs, mat.shape)
    first, last = layout.split(starts), layout.split(sizes)
    zero = jnp.zeros((), starts[0].dtype) if starts else 0
    data = lax.dynamic_slice(data, (*first[0], zero, *first[2]), (*last[0], nse, *last[2]))
    indices = lax.dynamic_slice(indices, (*first[0], zero, zero), (*last[0], nse, n_sparse))
    if n_sparse and last[1] != layout.split(mat.shape)[1]:
        begin, end = beside(jnp.stack(first[1]), indices), beside(last[1], indices)
        moved = indices - begin
        within = jnp.all((moved >= 0) & (moved < end), axis=-1, keepdims=True)
        indices = jnp.where(within, moved, end)
        spread = jnp.expand_dims(within[..., 0], tuple(range(n_batch + 1, data.ndim)))
        data = jnp.where(spread, data, jnp.zeros((), data.dtype))
    return _fitted(BCOO((data, indices), shape=sizes))


def bcoo_gather(operand: BCOO, start_indices: ArrayLike, dimension_numbers: lax.GatherDimensionNumbers,
                slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
                mode: str | lax.GatherScatterMode | None = None, fill_value: ArrayLike | None = None) -> BCOO:
    """Slices of a BCOO array; see `lax.gather`. The dimensions that number the slices are batches of the result.

    Raises:
      NotImplementedError: these would not come first in the result, or something else than zeros is to be put where a
        slice begins outside.
    """
    starts = jnp.asarray(start_indices)
    numbers = dimension_numbers
    kind = lax.GatherScatterMode.from_any(mode)
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather with batching dimensions")
    if fill_value is not None:
        raise NotImplementedError("bcoo_gather with fill_value")
    count = starts.ndim - 1
    if any(d < count for d in numbers.offset_dims):
        raise NotImplementedError("bcoo_gather: offset dimensions must follow the batch dimensions of the indices")
    sizes = tuple(map(int, slice_sizes))
    mapped = list(numbers.start_index_map)
    room = np.array([operand.shape[d] - sizes[d] for d in mapped], starts.dtype)

    def one(start: Array) -> BCOO:
        at = [start[mapped.index(d)] if d in mapped else jnp.zeros((), starts.dtype) for d in range(operand.ndim)]
        at = [jnp.clip(a, 0, operand.shape[d] - sizes[d]) for d, a in enumerate(at)]  # none counts from the end
        part = bcoo_dynamic_slice(operand, at, sizes)
        out = bcoo_squeeze(part, dimensions=numbers.collapsed_slice_dims)
        if kind not in (None, lax.GatherScatterMode.FILL_OR_DROP) or not mapped:
            return out
        inside = jnp.all((start >= 0) & (start <= room))
        return BCOO((jnp.where(inside, out.data, jnp.zeros((), out.dtype)), out.indices), shape=out.shape)

    gather = one
    for _ in range(count):
        gather = vmap(gather)
    return gather(starts)
