"""How many elements of a dense array there are to store, and compressed rows as coordinates."""

from __future__ import annotations

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike

from .arrays import SparseInfo as SparseInfo  # JAX has these beside each other, in `util`
from .errors import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from .errors import SparseEfficiencyError as SparseEfficiencyError
from .errors import SparseEfficiencyWarning as SparseEfficiencyWarning


def summable(data: Array) -> Array:
    """Elements of which equal positions are summed: booleans are counted."""
    return data.astype(jnp.int32) if data.dtype == bool else data


def stored_mask(mat: ArrayLike, n_dense: int = 0) -> Array:
    """Where a dense array has something to store: booleans with its batch and sparse dimensions."""
    mat = jnp.asarray(mat)
    return jnp.any(mat != 0, axis=tuple(range(mat.ndim - n_dense, mat.ndim)))


def stored_elements_per_batch(mat: ArrayLike, n_batch: int = 0, n_dense: int = 0) -> Array:
    """How many elements each batch of a dense array has to store: integers with the batch dimensions.

    Raises:
      ValueError: there are less dimensions than `n_batch + n_dense`.
    """
    mask = stored_mask(mat, n_dense)
    if n_batch < 0 or mask.ndim < n_batch:
        raise ValueError(f"n_batch, n_dense must be non-negative and sum to at most {jnp.ndim(mat)}; "
                         f"got {n_batch=}, {n_dense=}")
    return mask.sum(tuple(range(n_batch, mask.ndim)), dtype=jnp.int32)


def stored_elements(mat: ArrayLike, n_batch: int = 0, n_dense: int = 0) -> Array:
    """How many elements the fullest batch of a dense array has to store: a scalar."""
    return stored_elements_per_batch(mat, n_batch, n_dense).max(initial=0)


def rows_of(indptr: ArrayLike, nse: int) -> Array:
    """The row of each of `nse` elements, given where the elements of each row begin and end.

    Args:
      indptr: `(rows + 1,)` integers.
      nse: the number of elements; those after the last row get the number of rows.

    Returns:
      `(nse,)` integers of the same dtype.
    """
    indptr = jnp.asarray(indptr)
    starts = jnp.zeros(nse, indptr.dtype).at[indptr[1:]].add(1, mode="drop")
    return jnp.cumsum(starts, dtype=indptr.dtype)


def csr_to_coo(indices: ArrayLike, indptr: ArrayLike) -> tuple[Array, Array]:
    """Rows and columns of the elements of compressed rows."""
    indices = jnp.asarray(indices)
    return rows_of(indptr, indices.shape[-1]).astype(indices.dtype), indices


_count_stored_elements, _count_stored_elements_per_batch = stored_elements, stored_elements_per_batch
_csr_to_coo = csr_to_coo
