"""Batched arrays by compressed rows: in each batch a matrix, whose elements may be dense arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.trees.tree import register_pytree_node_class
from styrax.core.types.typing import ArrayLike, DTypeLike, Object, PyTree, Shape, ShardingLike

from .arrays import JAXSparse, SparseInfo
from .bcoo.array import BCOO, bcoo_eliminate_zeros, bcoo_sum_duplicates
from .bcoo.ordering import batched
from .bcoo.products import DimensionNumbers, normalized, product_shape
from .bcoo.products import _dot_general as _bcoo_product
from .bcoo.shaping import bcoo_broadcast_in_dim, bcoo_concatenate
from .bcoo.storage import _extract, _fromdense, _todense
from .counting import rows_of, stored_elements
from .csr import compressed
from .examples import map_over_batches
from .primitives import traceable


# -- positions in both formats ------------------------------------------------------------------------
def _bcsr_to_bcoo(indices: Array, indptr: Array, *, shape: Sequence[int]) -> Array:
    """The positions `(*batch, nse, 2)` of a BCOO array, of columns `(*batch, nse)` and ends of rows."""
    n_batch = indices.ndim - 1
    batch = np.broadcast_shapes(indices.shape[:-1], indptr.shape[:-1])
    indices = jnp.broadcast_to(indices, (*batch, indices.shape[-1]))
    indptr = jnp.broadcast_to(indptr, (*batch, indptr.shape[-1]))
    row = batched(partial(rows_of, nse=indices.shape[-1]), n_batch)(indptr)
    return jnp.stack([row.astype(indices.dtype), indices], axis=-1)


def _bcoo_to_bcsr(indices: Array, *, shape: Sequence[int], index_dtype: DTypeLike) -> tuple[Array, Array]:
    """Columns and ends of rows, of positions `(*batch, nse, 2)` of a BCOO array in order of their rows."""
    n_batch = indices.ndim - 2
    compress = partial(compressed, rows=shape[n_batch], index_dtype=index_dtype)
    return indices[..., 1].astype(index_dtype), batched(compress, n_batch)(indices[..., 0])


# -- functions of buffers -----------------------------------------------------------------------------
def _todense_of(data: Array, indices: Array, indptr: Array, *, spinfo: SparseInfo) -> Array:
    return _todense(data, _bcsr_to_bcoo(indices, indptr, shape=spinfo.shape), spinfo=spinfo)


def _fromdense_of(mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DTypeLike) -> list[Array]:
    data, indices = _fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return [data, *_bcoo_to_bcsr(indices, shape=mat.shape, index_dtype=index_dtype)]


def _extract_of(indices: Array, indptr: Array, mat: Array) -> Array:
    return _extract(_bcsr_to_bcoo(indices, indptr, shape=mat.shape), mat, assume_unique=True)


def _product_of(lhs_data: Array, lhs_indices: Array, lhs_indptr: Array, rhs: Array, *,
                dimension_numbers: DimensionNumbers, preferred_element_type: DTypeLike | None,
                lhs_spinfo: SparseInfo) -> Array:
    indices = _bcsr_to_bcoo(lhs_indices, lhs_indptr, shape=lhs_spinfo.shape)
    return _bcoo_product(lhs_data, indices, rhs, dimension_numbers=dimension_numbers, lhs_spinfo=lhs_spinfo,
                         preferred_element_type=preferred_element_type)


bcsr_todense_p = traceable("bcsr_todense", _todense_of, linear=[0])
bcsr_fromdense_p = traceable("bcsr_fromdense", _fromdense_of, multiple_results=True)
bcsr_extract_p = traceable("bcsr_extract", _extract_of, linear=[2])
bcsr_dot_general_p = traceable("bcsr_dot_general", _product_of, linear=[0, 3])


def _bcsr_todense(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, *, spinfo: SparseInfo) -> Array:
    return bcsr_todense_p.bind(jnp.asarray(data), jnp.asarray(indices), jnp.asarray(indptr), spinfo=spinfo)


def _bcsr_fromdense(mat: ArrayLike, *, nse: int, n_batch: int = 0, n_dense: int = 0,
                    index_dtype: DTypeLike = jnp.int32) -> tuple[Array, Array, Array]:
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    return tuple(bcsr_fromdense_p.bind(mat, nse=operator.index(nse), n_batch=n_batch, n_dense=n_dense,
                                       index_dtype=index_dtype))  # type: ignore[return-value]


def _bcsr_dot_general(lhs_data: Array, lhs_indices: Array, lhs_indptr: Array, rhs: ArrayLike, *,
                      dimension_numbers: DimensionNumbers, preferred_element_type: DTypeLike | None = None,
                      lhs_spinfo: SparseInfo) -> Array:
    return bcsr_dot_general_p.bind(
        lhs_data, lhs_indices, lhs_indptr, jnp.asarray(rhs), dimension_numbers=normalized(dimension_numbers),
        preferred_element_type=preferred_element_type, lhs_spinfo=lhs_spinfo)


# -- the array ----------------------------------------------------------------------------------------
@register_pytree_node_class
class BCSR(JAXSparse):
    """A batched array by compressed rows. Its operators are installed by `experimental.sparse.methods`.

    Attributes:
      data: `(*batch, nse, *dense)`, the stored elements, row by row.
      indices: `(*batch, nse)`, their columns.
      indptr: `(*batch, rows + 1)`, where the elements of each row begin and end.
      shape: `(*batch, rows, columns, *dense)`.
      indices_sorted: whether columns are known to ascend in each row.
      unique_indices: whether no position is known to be stored twice.
    """

    indices: Array
    indptr: Array
    indices_sorted: bool
    unique_indices: bool
    _names = ("data", "indices", "indptr")

    def __init__(self, args: tuple[Array, Array, Array], *, shape: Sequence[int], indices_sorted: bool = False,
                 unique_indices: bool = False):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices

    @property
    def nse(self) -> int:
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions, which come first."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions, which follow: 2."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions, which come last."""
        return self.data.ndim - self.indices.ndim

    @property
    def _sparse_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch:self.n_batch + 2]

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:  # type: ignore[override]
        return self.data, self.indices, self.indptr

    def _layout(self) -> dict[str, int]:
        assert len(self.shape) == self.n_batch + 2 + self.n_dense and self.indptr.ndim == self.indices.ndim
        return {"nse": self.nse} | ({"n_batch": self.n_batch} if self.n_batch else {}) | (
            {"n_dense": self.n_dense} if self.n_dense else {})

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[PyTree]) -> BCSR:
        self = super().tree_unflatten(aux_data, children)
        assert isinstance(self, BCSR)
        self.shape = aux_data["shape"]
        self.indices_sorted = aux_data["indices_sorted"]
        self.unique_indices = aux_data["unique_indices"]
        return self

    @classmethod
    def _empty(cls, shape: Shape, *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
               n_dense: int = 0, n_batch: int = 0, nse: int = 0) -> BCSR:
        sizes = tuple(map(int, shape))
        if n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        if len(sizes) - n_dense - n_batch != 2:
            raise ValueError(f"BCSR sparse.empty: must have 2 sparse dimensions; got {shape=}, {n_dense=}, {n_batch=}")
        batch, (rows, columns), dense = sizes[:n_batch], sizes[n_batch:n_batch + 2], sizes[n_batch + 2:]
        return cls((jnp.zeros((*batch, nse, *dense), dtype), jnp.full((*batch, nse), columns, index_dtype),
                    jnp.zeros((*batch, rows + 1), index_dtype)), shape=sizes)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The BCSR array of a dense one; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The BCSR array of a BCOO array with two sparse dimensions.

        Raises:
          NotImplementedError: it has another number of them.
        """
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; got arr.n_sparse={arr.n_sparse}")
        if not arr.indices_sorted:
            arr = arr.sort_indices()
        indices, indptr = _bcoo_to_bcsr(arr.indices, shape=arr.shape, index_dtype=arr.indices.dtype)
        return cls((arr.data, indices, indptr), shape=arr.shape)

    @classmethod
    def from_scipy_sparse(cls, mat: Object, *, index_dtype: DTypeLike | None = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCSR:
        """The BCSR array of a matrix of `scipy.sparse`, of any format.

        Raises:
          NotImplementedError: batch or dense dimensions are asked for.
        """
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        mat = mat.tocsr()
        dtype = index_dtype or jnp.int32
        return cls((jnp.asarray(mat.data), jnp.asarray(mat.indices).astype(dtype),
                    jnp.asarray(mat.indptr).astype(dtype)), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The same array by coordinates."""
        indices = _bcsr_to_bcoo(self.indices, self.indptr, shape=self.shape)
        return BCOO((self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    def todense(self) -> Array:
        """The dense array: elements of equal positions are summed."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same array with each position stored once, in order; as `BCOO.sum_duplicates`."""
        return bcsr_eliminate_zeros(self, nse) if remove_zeros else bcsr_sum_duplicates(self, nse)

    def transpose(self, axes: Sequence[int] | None = None) -> BCSR:
        raise NotImplementedError("Transpose is not implemented.")


map_over_batches(BCSR)


# -- functions of arrays ------------------------------------------------------------------------------
def bcsr_todense(mat: BCSR) -> Array:
    """The dense array of a BCSR array: elements of equal positions are summed."""
    return _bcsr_todense(*mat._bufs, spinfo=mat._info)


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = jnp.int32) -> BCSR:
    """The BCSR array of a dense one.

    Args:
      mat: a dense array.
      nse: how many elements to store in each batch. By default as many as the fullest one needs, which has to be known.
      n_batch: how many leading dimensions are batches.
      n_dense: how many last dimensions are stored whole; two have to remain.
      index_dtype: of the indices.

    Raises:
      ValueError: there are not two sparse dimensions.
      ConcretizationTypeError: there is no `nse`, and the elements are not known.
    """
    mat = jnp.asarray(mat)
    wanted = stored_elements(mat, n_batch, n_dense) if nse is None else nse
    count = concrete_or_error(operator.index, wanted, _NSE)
    buffers = _bcsr_fromdense(mat, nse=count, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCSR(buffers, shape=mat.shape)


_NSE = """
The error arose for the nse argument of bcsr_fromdense. In order for
BCSR.fromdense() to be used in traced/compiled code, you must pass a concrete
value to the nse (number of stored elements) argument."""


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of a dense array at the positions of a BCSR array: `(*batch, nse, *dense)`."""
    return bcsr_extract_p.bind(jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """A BCSR array without stored zeros, each position stored once; `nse` as for `bcsr_sum_duplicates`."""
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse=nse))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """A BCSR array with each position stored once, in order.

    Args:
      mat: a BCSR array.
      nse: how many elements to store: missing ones are filled up, superfluous ones dropped. By default as many as there
        are, which has to be known.

    Raises:
      ValueError: there is no `nse`, and the positions are not known.
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


def bcsr_dot_general(lhs: BCSR | ArrayLike, rhs: ArrayLike, *, dimension_numbers: DimensionNumbers,
                     precision: None = None, preferred_element_type: DTypeLike | None = None,
                     out_sharding: ShardingLike | None = None) -> Array:
    """The product of a BCSR array and a dense one, as `lax.dot_general` of dense ones.

    Args:
      lhs: a BCSR array.
      rhs: a dense array.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: not used.
      preferred_element_type: the dtype of the result.
      out_sharding: must be None.

    Raises:
      TypeError: the shapes do not fit.
      NotImplementedError: the operands are others, or dimensions of the wrong kinds are contracted.
    """
    if out_sharding is not None:
        raise NotImplementedError("bcsr_dot_general with out_sharding")
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs.")
    product_shape(lhs.shape, jnp.shape(rhs), dimension_numbers)
    return _bcsr_dot_general(*lhs._bufs, rhs, dimension_numbers=dimension_numbers, lhs_spinfo=lhs._info,
                             preferred_element_type=preferred_element_type)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Shape, broadcast_dimensions: Sequence[int],
                          sharding: ShardingLike | None = None) -> BCSR:
    """A BCSR array with more dimensions; as `bcoo_broadcast_in_dim`."""
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions,
                                                sharding=sharding))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """BCSR arrays one after the other along a batch or sparse dimension; as `bcoo_concatenate`."""
    return BCSR.from_bcoo(bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension))
