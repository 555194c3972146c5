"""Sums of BCOO arrays along dimensions, elementwise products, and elements of dense arrays at their positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike

from .array import BCOO
from .ordering import batched
from .shaping import without_outsiders
from .sparse_products import pairs
from .storage import _bcoo_extract, beside, layout_of, positions, whole_batches


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the positions of a sparse one.

    Args:
      sparr: a BCOO array.
      arr: a dense array of the same shape.
      assume_unique: whether elements are taken for each of equal positions, so that they count several times; if not,
        they stand at the first one. By default False unless the positions are known to be unique.

    Raises:
      TypeError: `sparr` is no BCOO array.
      ValueError: the shapes differ.
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"First argument to bcoo_extract should be a BCOO array. Got type(sparr)={type(sparr)}")
    a = jnp.asarray(arr)
    if a.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} a.shape={a.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    data = _bcoo_extract(sparr.indices, a, assume_unique=unique)
    return BCOO((data, sparr.indices), shape=sparr.shape, indices_sorted=sparr.indices_sorted,
                unique_indices=sparr.unique_indices)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum of a BCOO array along dimensions: elements that fall together are stored side by side.

    Raises:
      ValueError: a dimension is out of bounds or occurs twice.
    """
    summed = [int(a) + mat.ndim if a < 0 else int(a) for a in np.atleast_1d(np.asarray(axes, int))]
    if len(set(summed)) < len(summed) or not all(0 <= a < mat.ndim for a in summed):
        raise ValueError(f"bcoo_reduce_sum: invalid {axes=} for shape {mat.shape}")
    n_batch, n_sparse, _, nse = layout_of(*mat._bufs, mat.shape)
    kept = [d - n_batch for d in range(n_batch, n_batch + n_sparse) if d not in summed]
    data = without_outsiders(mat) if len(kept) < n_sparse else mat.data
    data, indices = whole_batches(data, mat.indices, mat.shape)
    dense = tuple(a - n_sparse + 1 for a in summed if a >= n_batch + n_sparse)
    data = data.sum(dense, dtype=data.dtype) if dense else data
    if len(kept) < n_sparse:
        indices = indices[..., np.array(kept, int)]
    batch = [d for d in range(n_batch) if d not in summed]
    joined = [d for d in range(n_batch) if d in summed]
    if joined:
        sizes = tuple(mat.shape[d] for d in batch)
        rest = data.shape[n_batch + 1:]
        data = data.transpose(*batch, *joined, *range(n_batch, data.ndim))
        indices = indices.transpose(*batch, *joined, n_batch, n_batch + 1)
        count = nse * int(np.prod([mat.shape[d] for d in joined]))
        data = data.reshape(*sizes, count, *rest)
        indices = indices.reshape(*sizes, count, len(kept))
    return BCOO((data, indices), shape=tuple(n for d, n in enumerate(mat.shape) if d not in summed))


def at_positions(mat: BCOO, v: ArrayLike, fill_value: int = 0) -> Array:
    """The elements of a dense array, broadcast to the shape of a BCOO array, at its positions: data for it.

    Args:
      mat: a BCOO array.
      v: a dense array that broadcasts to its shape.
      fill_value: what is taken where a position lies beyond the shape.

    Raises:
      NotImplementedError: `v` would broadcast to another shape.
    """
    v = jnp.asarray(v)
    shape = mat.shape
    extra = mat.ndim - v.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(v.shape, shape[extra:], strict=True)):
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the output shape matches the "
            f"sparse matrix shape. Got {shape=}, v.shape={v.shape}")
    if not v.ndim:
        return v
    n_batch, n_sparse, n_dense, nse = layout_of(*mat._bufs, shape)
    v = v.reshape((1,) * extra + v.shape)
    where = positions(jnp.broadcast_to(mat.indices, (*shape[:n_batch], nse, n_sparse)))
    at = tuple(jnp.zeros_like(x) if v.shape[d] == 1 else x for d, x in enumerate(where))
    found = v.at[at].get(mode="fill", fill_value=fill_value, wrap_negative_indices=False) if at else v[None]
    return jnp.broadcast_to(found, (*shape[:n_batch], nse, *found.shape[found.ndim - n_dense:]))


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """The data of the elementwise product of a BCOO array and a dense one that broadcasts to its shape.

    Raises:
      NotImplementedError: it does not, or the product would have more elements.
    """
    return sp_mat.data * at_positions(sp_mat, v)


def _multiplied(lhs_data: Array, lhs_indices: Array, rhs_data: Array, rhs_indices: Array, *,
                sparse: tuple[int, ...]) -> tuple[Array, Array]:
    all_of_them = tuple(range(len(sparse)))
    if lhs_data.ndim > 1:  # dense dimensions are multiplied element by element
        ones = jnp.ones(lhs_data.shape[0], lhs_data.dtype), jnp.ones(rhs_data.shape[0], rhs_data.dtype)
        _, meet = pairs((ones[0], lhs_indices), (ones[1], rhs_indices), (sparse, sparse), (all_of_them, all_of_them))
        spread = jnp.expand_dims(meet, tuple(range(2, lhs_data.ndim + 1)))
        products = lhs_data[:, None] * rhs_data[None, :]
        products = jnp.where(spread, products, jnp.zeros((), products.dtype))
    else:
        products, meet = pairs((lhs_data, lhs_indices), (rhs_data, rhs_indices), (sparse, sparse),
                               (all_of_them, all_of_them))
    n, m = meet.shape
    order = jnp.argsort(~meet.reshape(-1), stable=True)  # those that meet come first
    indices = lhs_indices[:, None]
    indices = jnp.where(meet[..., None], indices, beside(sparse, indices)).reshape(n * m, len(sparse))
    return products.reshape(n * m, *products.shape[2:])[order], indices[order]


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two BCOO arrays of one shape. Every pair of stored elements is looked at, and stored.

    Raises:
      NotImplementedError: shapes or layouts differ.
    """
    if lhs.shape != rhs.shape:
        raise NotImplementedError("Multiplication between sparse matrices of different shapes: "
                                  f"got {lhs.shape} and {rhs.shape}")
    if (lhs.n_dense, lhs.n_batch) != (rhs.n_dense, rhs.n_batch):
        raise NotImplementedError("Multiplication between sparse matrices with different batch/dense dimensions: "
                                  f"got n_batch={(lhs.n_batch, rhs.n_batch)}, n_dense={(lhs.n_dense, rhs.n_dense)}")
    layout = layout_of(*lhs._bufs, lhs.shape)
    multiply = batched(partial(_multiplied, sparse=layout.split(lhs.shape)[1]), layout.n_batch)
    buffers = multiply(*whole_batches(*lhs._bufs, lhs.shape), *whole_batches(*rhs._bufs, rhs.shape))
    return BCOO(buffers, shape=lhs.shape)
