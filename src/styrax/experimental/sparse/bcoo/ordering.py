"""BCOO buffers in other orders: transposed, sorted, and with elements of equal positions summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import Tracer
from styrax.transforms.api import vmap

from ..arrays import SparseInfo
from ..counting import summable
from ..primitives import traceable
from .storage import beside, first_occurrences, in_bounds, layout_of, lexicographic_order, whole_batches


def batched(fun: Callable[..., Any], n_batch: int) -> Callable[..., Any]:
    """A function of all batches from one of a single one."""
    for _ in range(n_batch):
        fun = vmap(fun)
    return fun


# -- transposition ------------------------------------------------------------------------------------
def check_permutation(data: Array, indices: Array, permutation: Sequence[int], shape: Sequence[int]) -> None:
    """Raises for what is no permutation (ValueError) or mixes kinds of dimensions (NotImplementedError)."""
    if not isinstance(permutation, (tuple, list, np.ndarray)):
        raise TypeError(f"transpose permutation must be a tuple/list/ndarray, got {type(permutation)}.")
    if sorted(permutation) != list(range(len(shape))):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, "
                        f"got permutation {permutation} for shape {shape}.")
    layout = layout_of(data, indices, shape)
    n_batch, n_sparse, n_dense, _ = layout
    batch, _, dense = layout.split(permutation)
    if n_batch and not all(p < n_batch for p in batch):
        raise NotImplementedError("transpose permutation cannot permute batch axes with non-batch axes; "
                                  f"got permutation {tuple(permutation)}, with {n_batch=}.")
    if n_dense and not all(p >= n_batch + n_sparse for p in dense):
        raise NotImplementedError("transpose permutation cannot permute dense axes with non-dense axes; "
                                  f"got permutation {tuple(permutation)}, with {n_dense=}.")


def _transpose(data: Array, indices: Array, *, permutation: Sequence[int], spinfo: SparseInfo) -> list[Array]:
    layout = layout_of(data, indices, spinfo.shape)
    n_batch, n_sparse, _, _ = layout
    batch, sparse, dense = layout.split(permutation)
    data = data.transpose(*batch, n_batch, *(d - n_sparse + 1 for d in dense))
    indices = indices.transpose(*batch, n_batch, n_batch + 1)
    return [data, indices[..., np.array([d - n_batch for d in sparse], int)]]


bcoo_transpose_p = traceable("bcoo_transpose", _transpose, linear=[0], multiple_results=True)


def _bcoo_transpose(data: Array, indices: Array, *, permutation: Sequence[int],
                    spinfo: SparseInfo) -> tuple[Array, Array]:
    permutation = tuple(permutation)
    if permutation == tuple(range(len(spinfo.shape))):
        return data, indices
    data, indices = bcoo_transpose_p.bind(data, indices, permutation=permutation, spinfo=spinfo)
    return data, indices


# -- sorting ------------------------------------------------------------------------------------------
def _sort_one(data: Array, indices: Array) -> list[Array]:
    order = lexicographic_order(indices)
    return [data[order], indices[order]]


def _sort_indices(data: Array, indices: Array, *, spinfo: SparseInfo) -> list[Array]:
    n_batch = layout_of(data, indices, spinfo.shape).n_batch
    return batched(_sort_one, n_batch)(*whole_batches(data, indices, spinfo.shape))


bcoo_sort_indices_p = traceable("bcoo_sort_indices", _sort_indices, linear=[0], multiple_results=True)


# -- sums of duplicates -------------------------------------------------------------------------------
def _sum_one(data: Array, indices: Array, sparse: tuple[int, ...], nse: int) -> list[Array]:
    bounds = beside(sparse, indices)
    data = summable(data)
    within = in_bounds(indices, sparse)
    indices = jnp.where(within[:, None], indices, bounds)  # these come last, and count as one position
    data = jnp.where(jnp.expand_dims(within, tuple(range(1, data.ndim))), data, jnp.zeros((), data.dtype))
    order = lexicographic_order(indices)
    indices, data = indices[order], data[order]
    new = jnp.any(indices[1:] != indices[:-1], axis=-1)
    group = jnp.concatenate([jnp.zeros(1, np.int32), jnp.cumsum(new, dtype=np.int32)])[:len(indices)]
    summed = jnp.zeros((nse, *data.shape[1:]), data.dtype).at[group].add(data, mode="drop")
    return [summed, jnp.broadcast_to(bounds, (nse, len(sparse))).at[group].set(indices, mode="drop")]


def _sum_duplicates(data: Array, indices: Array, *, spinfo: SparseInfo, nse: int) -> list[Array]:
    layout = layout_of(data, indices, spinfo.shape)
    _, sparse, _ = layout.split(spinfo.shape)
    one = partial(_sum_one, sparse=sparse, nse=nse)
    return batched(one, layout.n_batch)(*whole_batches(data, indices, spinfo.shape))


bcoo_sum_duplicates_p = traceable("bcoo_sum_duplicates", _sum_duplicates, linear=[0], multiple_results=True)


def _bcoo_sum_duplicates(data: Array, indices: Array, *, spinfo: SparseInfo,
                         nse: int | None = None) -> tuple[Array, Array]:
    layout = layout_of(data, indices, spinfo.shape)
    if nse is None and not layout.n_sparse:
        nse = 1
    if nse is None:
        _, sparse, _ = layout.split(spinfo.shape)
        if isinstance(indices, Tracer):
            raise ValueError("bcoo_sum_duplicates: nse must be specified when using the function within jit, vmap, "
                             "and other transformations requiring abstract evaluation.")
        nse = int(first_occurrences(indices, sparse).sum(-1).max(initial=0))
    data, indices = bcoo_sum_duplicates_p.bind(data, indices, spinfo=spinfo, nse=nse)
    return data, indices
