"""Batched arrays by coordinates. Their operators are installed by `experimental.sparse.methods`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.trees.tree import register_pytree_node_class
from styrax.core.types.typing import ArrayLike, DTypeLike, Object, PyTree, Shape

from ..arrays import JAXSparse, SparseInfo
from ..counting import stored_elements
from ..examples import map_over_batches
from .ordering import _bcoo_sum_duplicates, _bcoo_transpose, bcoo_sort_indices_p, check_permutation
from .storage import _bcoo_fromdense, _bcoo_todense, beside, layout_of, whole_batches


@register_pytree_node_class
class BCOO(JAXSparse):
    """A batched array by coordinates.

    Attributes:
      data: `(*batch, nse, *dense)`, the stored elements. Those of equal positions are summed.
      indices: `(*batch, nse, n_sparse)`, their positions. What lies beyond the shape does not count.
      shape: `(*batch, *sparse, *dense)`.
      indices_sorted: whether positions are known to be in lexicographical order.
      unique_indices: whether no position is known to be stored twice.

    Example:
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import sparse
      >>> sparse.BCOO.fromdense(jnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]]))
      BCOO(float32[2, 3], nse=3)
    """

    indices: Array
    indices_sorted: bool
    unique_indices: bool
    _names = ("data", "indices")

    def __init__(self, args: tuple[Array, Array], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False):
        self.data, self.indices = map(jnp.asarray, args)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        super().__init__(args, shape=shape)
        layout_of(self.data, self.indices, self.shape)

    @property
    def nse(self) -> int:
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions, which come first."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions, which follow."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions, which come last."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Array, Array]:  # type: ignore[override]
        return self.data, self.indices

    def _layout(self) -> dict[str, int]:
        n_batch, _, n_dense, nse = layout_of(self.data, self.indices, self.shape)
        return {"nse": nse} | ({"n_batch": n_batch} if n_batch else {}) | ({"n_dense": n_dense} if n_dense else {})

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[PyTree]) -> BCOO:
        self = super().tree_unflatten(aux_data, children)
        assert isinstance(self, BCOO)
        self.shape = aux_data["shape"]
        self.indices_sorted = aux_data["indices_sorted"]
        self.unique_indices = aux_data["unique_indices"]
        return self

    @classmethod
    def _empty(cls, shape: Shape, *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
               n_dense: int = 0, n_batch: int = 0, nse: int = 0) -> BCOO:
        sizes = tuple(map(int, shape))
        n_sparse = len(sizes) - n_batch - n_dense
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        batch, sparse, dense = sizes[:n_batch], sizes[n_batch:n_batch + n_sparse], sizes[n_batch + n_sparse:]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.broadcast_to(jnp.array(sparse, index_dtype), (*batch, nse, n_sparse))
        return cls((data, indices), shape=sizes, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
             n_batch: int = 0, n_dense: int = 0) -> BCOO:
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_dense < 0 or n_batch < 0:
            raise ValueError(f"Invalid inputs: shape={(N, M)}, {n_dense=}, {n_batch=}")
        if k >= M or k <= -N or min(N, M) == 0:
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense)
        first = (max(-k, 0), max(k, 0))
        length = min(N - first[0], M - first[1])
        if n_batch or n_dense:
            dense = jnp.eye(N, M, k, dtype)
            return bcoo_fromdense(dense, nse=1 if n_batch or not n_sparse else length, n_batch=n_batch, n_dense=n_dense,
                                  index_dtype=index_dtype)
        along = jnp.arange(length, dtype=index_dtype)
        indices = jnp.stack([along + first[0], along + first[1]], axis=-1).astype(index_dtype)
        return cls((jnp.ones(length, dtype), indices), shape=(N, M), indices_sorted=True, unique_indices=True)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The BCOO array of a dense one; see `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Object, *, index_dtype: DTypeLike | None = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCOO:
        """The BCOO array of a matrix of `scipy.sparse`, of any format.

        Raises:
          NotImplementedError: batch or dense dimensions are asked for.
        """
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.fromscipy with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = jnp.column_stack((mat.row, mat.col)).astype(index_dtype or jnp.int32)
        return cls((jnp.asarray(mat.data), indices), shape=mat.shape)

    def todense(self) -> Array:
        """The dense array: elements of equal positions are summed, those beyond the shape dropped."""
        return bcoo_todense(self)

    def sort_indices(self) -> BCOO:
        """The same array with its elements in lexicographical order of their positions."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array with each position stored once, in order.

        Args:
          nse: how many elements to store, where the positions are not known: missing ones are filled up with positions
            beyond the shape, superfluous ones dropped. By default as many as there are.
          remove_zeros: whether to drop stored zeros first.

        Raises:
          ValueError: there is no `nse`, and the positions are not known.
        """
        return bcoo_eliminate_zeros(self, nse) if remove_zeros else bcoo_sum_duplicates(self, nse)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its dimensions permuted, by default reversed; see `bcoo_transpose`."""
        permutation = range(self.ndim)[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=tuple(permutation))


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array of a BCOO array: elements of equal positions are summed, those beyond the shape dropped."""
    return _bcoo_todense(mat.data, mat.indices, spinfo=mat._info)


def bcoo_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = jnp.int32) -> BCOO:
    """The BCOO array of a dense one.

    Args:
      mat: a dense array.
      nse: how many elements to store in each batch. By default as many as the fullest one needs, which has to be known.
      n_batch: how many leading dimensions are batches.
      n_dense: how many last dimensions are stored whole.
      index_dtype: of the indices.

    Raises:
      ConcretizationTypeError: there is no `nse`, and the elements are not known.
    """
    mat = jnp.asarray(mat)
    wanted = stored_elements(mat, n_batch, n_dense) if nse is None else nse
    count = concrete_or_error(operator.index, wanted, _NSE)
    buffers = _bcoo_fromdense(mat, nse=count, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=True)


_NSE = """
The error arose for the nse argument of bcoo_fromdense. In order for
BCOO.fromdense() to be used in traced/compiled code, you must pass a concrete
value to the nse (number of stored elements) argument."""


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """A BCOO array with its dimensions permuted: batch, sparse and dense dimensions among themselves.

    Raises:
      TypeError: `permutation` is not one of the dimensions.
      NotImplementedError: it mixes dimensions of different kinds.
    """
    check_permutation(mat.data, mat.indices, permutation, mat.shape)
    buffers = _bcoo_transpose(mat.data, mat.indices, permutation=permutation, spinfo=mat._info)
    same = tuple(permutation) == tuple(range(mat.ndim))
    return BCOO(buffers, shape=tuple(mat.shape[p] for p in permutation), unique_indices=mat.unique_indices,
                indices_sorted=same and mat.indices_sorted)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """A BCOO array with its elements in lexicographical order of their positions."""
    data, indices = bcoo_sort_indices_p.bind(*mat._bufs, spinfo=mat._info)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """A BCOO array with each position stored once, in order.

    Args:
      mat: a BCOO array.
      nse: how many elements to store: missing ones are filled up with positions beyond the shape, superfluous ones
        dropped. By default as many as there are, which has to be known.

    Raises:
      ValueError: there is no `nse`, and the positions are not known.
    """
    buffers = _bcoo_sum_duplicates(mat.data, mat.indices, spinfo=mat._info, nse=nse)
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """A BCOO array without stored zeros, each position stored once; `nse` as for `bcoo_sum_duplicates`."""
    n_batch, n_sparse, n_dense, _ = layout = layout_of(*mat._bufs, mat.shape)
    data, indices = whole_batches(*mat._bufs, mat.shape)
    zero = jnp.all(data == 0, axis=tuple(range(n_batch + 1, data.ndim)))
    indices = jnp.where(zero[..., None], beside(layout.split(mat.shape)[1], indices), indices)
    return bcoo_sum_duplicates(BCOO((data, indices), shape=mat.shape), nse)


map_over_batches(BCOO)
