"""The buffers of BCOO arrays, and how they are made of dense arrays and become such."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.transforms.api import vmap

from ..arrays import SparseInfo
from ..counting import stored_mask, summable
from ..primitives import traceable

T = TypeVar("T")


class Layout(NamedTuple):
    """How many dimensions of each kind there are, in their order, and how many elements are stored in each batch."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int

    def split(self, shape: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...], tuple[T, ...]]:
        """The batch, sparse and dense parts of a shape, or of anything that has an entry for each dimension."""
        end = self.n_batch + self.n_sparse
        return tuple(shape[:self.n_batch]), tuple(shape[self.n_batch:end]), tuple(shape[end:])


def layout_of(data: Array, indices: Array, shape: Sequence[int]) -> Layout:
    """The layout of buffers.

    Args:
      data: `(*batch, nse, *dense)`.
      indices: `(*batch, nse, n_sparse)` integers. Batch dimensions of either may be 1.
      shape: of the array.

    Raises:
      AssertionError: they do not fit.
    """
    assert jnp.issubdtype(indices.dtype, jnp.integer)
    nse, n_sparse = indices.shape[-2:]
    n_batch = indices.ndim - 2
    layout = Layout(n_batch, n_sparse, len(shape) - n_batch - n_sparse, nse)
    batch, _, dense = layout.split(shape)
    assert layout.n_dense >= 0 and data.ndim == n_batch + 1 + layout.n_dense
    for sizes in (data.shape[:n_batch], indices.shape[:n_batch]):
        assert all(size in (1, whole) for size, whole in zip(sizes, batch, strict=True))
    assert data.shape[n_batch + 1:] == dense
    assert data.shape[n_batch] in (1, nse)
    return layout


def whole_batches(data: Array, indices: Array, shape: Sequence[int]) -> tuple[Array, Array]:
    """The buffers with all batches written out."""
    n_batch, n_sparse, n_dense, nse = layout_of(data, indices, shape)
    batch = tuple(shape[:n_batch])
    return (jnp.broadcast_to(data, (*batch, nse, *data.shape[data.ndim - n_dense:])),
            jnp.broadcast_to(indices, (*batch, nse, n_sparse)))


def positions(indices: Array) -> tuple[Array, ...]:
    """What to index a dense array with: for each batch dimension its own indices, then those of the sparse ones.

    They broadcast to `(*batch, nse)`; without any there is one element, which is stored `nse` times.
    """
    *batch, _, n_sparse = indices.shape
    n_batch = len(batch)
    own = [lax.broadcasted_iota(indices.dtype, (*(size if j == i else 1 for j, size in enumerate(batch)), 1), i)
           for i in range(n_batch)]
    return (*own, *(indices[..., i] for i in range(n_sparse)))


def beside(row: Sequence[int] | Array, x: Array) -> Array:
    """A vector, of the dtype and with the rank of an array whose last dimension it belongs to."""
    return jnp.asarray(row, x.dtype).reshape((1,) * (x.ndim - 1) + (-1,))


def in_bounds(indices: Array, sparse: Sequence[int]) -> Array:
    """Which of the positions lie within the sparse shape: `(*batch, nse)` of booleans."""
    if not len(sparse):
        return jnp.ones(indices.shape[:-1], bool)
    return jnp.all((indices >= 0) & (indices < beside(sparse, indices)), axis=-1)


# -- dense arrays of buffers --------------------------------------------------------------------------
def _todense(data: Array, indices: Array, *, spinfo: SparseInfo) -> Array:
    n_batch, n_sparse, _, _ = layout_of(data, indices, spinfo.shape)
    data, indices = whole_batches(summable(data), indices, spinfo.shape)
    if not n_sparse:
        return data.sum(n_batch, dtype=data.dtype)
    zeros = jnp.zeros(spinfo.shape, data.dtype)
    return zeros.at[positions(indices)].add(data, mode="drop", wrap_negative_indices=False)


bcoo_todense_p = traceable("bcoo_todense", _todense, linear=[0])


def _bcoo_todense(data: Array, indices: Array, *, spinfo: SparseInfo) -> Array:
    return bcoo_todense_p.bind(jnp.asarray(data), jnp.asarray(indices), spinfo=spinfo)


# -- elements of dense arrays -------------------------------------------------------------------------
def _extract(indices: Array, mat: Array, *, assume_unique: bool) -> Array:
    *_, nse, n_sparse = indices.shape
    n_batch = indices.ndim - 2
    batch = mat.shape[:n_batch]
    indices = jnp.broadcast_to(indices, (*batch, nse, n_sparse))
    first = None if assume_unique else first_occurrences(indices, mat.shape[n_batch:n_batch + n_sparse])
    if n_sparse:
        out = mat.at[positions(indices)].get(mode="fill", fill_value=0, wrap_negative_indices=False)
    else:
        out = jnp.broadcast_to(jnp.expand_dims(mat, n_batch), (*batch, nse, *mat.shape[n_batch:]))
    if first is None:
        return out
    return jnp.where(jnp.expand_dims(first, tuple(range(first.ndim, out.ndim))), out, jnp.zeros((), out.dtype))


bcoo_extract_p = traceable("bcoo_extract", _extract, linear=[1])


def _bcoo_extract(indices: Array, mat: ArrayLike, *, assume_unique: bool = True) -> Array:
    return bcoo_extract_p.bind(jnp.asarray(indices), jnp.asarray(mat), assume_unique=assume_unique)


def _first_occurrences(indices: Array) -> Array:
    order = lexicographic_order(indices)
    rows = indices[order]
    new = jnp.concatenate([jnp.ones(1, bool), jnp.any(rows[1:] != rows[:-1], axis=-1)])[:len(rows)]
    return jnp.zeros(len(rows), bool).at[order].set(new)


def first_occurrences(indices: Array, sparse: Sequence[int]) -> Array:
    """Which positions are within the shape and stored nowhere before: `(*batch, nse)` of booleans."""
    find = _first_occurrences
    for _ in range(indices.ndim - 2):
        find = vmap(find)
    return find(indices) & in_bounds(indices, sparse)


def lexicographic_order(rows: Array) -> Array:
    """The stable permutation that sorts the rows of a matrix of integers by their first, then second, … entries."""
    count, width = rows.shape
    counter = lax.iota(np.int32, count)
    if not width:
        return counter
    return lax.sort((*(rows[:, i] for i in range(width)), counter), num_keys=width, is_stable=True)[-1]


# -- buffers of dense arrays --------------------------------------------------------------------------
def _fromdense(mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DTypeLike) -> list[Array]:
    n_sparse = mat.ndim - n_batch - n_dense
    batch, sparse = mat.shape[:n_batch], mat.shape[n_batch:n_batch + n_sparse]
    if n_sparse:
        find: Any = partial(jnp.nonzero, size=nse, fill_value=sparse)
        for _ in range(n_batch):
            find = vmap(find)
        indices = jnp.stack(find(stored_mask(mat, n_dense)), axis=-1).astype(index_dtype)
        return [bcoo_extract_p.bind(indices, mat, assume_unique=True), indices]
    data = jnp.expand_dims(mat, n_batch)
    indices = jnp.zeros((*batch, nse, 0), index_dtype)
    if nse != 1:  # what is stored several times is summed: it stands once, and zeros follow
        kept = (*batch, min(nse, 1), *mat.shape[n_batch:])
        data = jnp.concatenate([jnp.broadcast_to(data, (*batch, 1, *mat.shape[n_batch:]))[
            tuple(slice(0, size) for size in kept)], jnp.zeros((*batch, max(nse - 1, 0), *mat.shape[n_batch:]),
                                                               mat.dtype)], axis=n_batch)
    return [data, indices]


bcoo_fromdense_p = traceable("bcoo_fromdense", _fromdense, multiple_results=True)


def _bcoo_fromdense(mat: ArrayLike, *, nse: int, n_batch: int = 0, n_dense: int = 0,
                    index_dtype: DTypeLike = np.int32) -> tuple[Array, Array]:
    data, indices = bcoo_fromdense_p.bind(jnp.asarray(mat), nse=int(nse), n_batch=n_batch, n_dense=n_dense,
                                          index_dtype=index_dtype)
    return data, indices
