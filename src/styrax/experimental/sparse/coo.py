"""Matrices by coordinates: data, rows and columns."""

from __future__ import annotations

import operator
import typing
from collections.abc import Sequence
from typing import Any

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.trees.tree import register_pytree_node_class
from styrax.core.types.typing import ArrayLike, DTypeLike, Object, PyTree, Shape

from .arrays import JAXSparse
from .counting import stored_elements, summable
from .primitives import traceable


class COOInfo(typing.NamedTuple):
    """What is known of a COO matrix besides its buffers: its shape, and whether rows or columns ascend."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


# -- functions of buffers -----------------------------------------------------------------------------
def _todense_of(data: Array, row: Array, col: Array, *, spinfo: COOInfo) -> Array:
    data = summable(data)
    return jnp.zeros(spinfo.shape, data.dtype).at[row, col].add(data, mode="drop", wrap_negative_indices=False)


def _fromdense_of(mat: Array, *, nse: int, index_dtype: DTypeLike) -> list[Array]:
    row, col = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
    data = mat.at[row, col].get(mode="fill", fill_value=0, wrap_negative_indices=False)
    return [data, row.astype(index_dtype), col.astype(index_dtype)]


def product(data: Array, row: Array, col: Array, B: Array, shape: Sequence[int], transpose: bool) -> Array:
    """The product of a matrix given by coordinates, or of its transpose, and a vector or matrix."""
    if transpose:
        row, col, shape = col, row, shape[::-1]
    dtype = jnp.result_type(data, B)
    met = B.at[col].get(mode="fill", fill_value=0, wrap_negative_indices=False).astype(dtype)
    terms = jnp.expand_dims(data.astype(dtype), tuple(range(1, B.ndim))) * met
    return jnp.zeros((shape[0], *B.shape[1:]), dtype).at[row].add(terms, mode="drop", wrap_negative_indices=False)


def _product_of(data: Array, row: Array, col: Array, B: Array, *, spinfo: COOInfo, transpose: bool) -> Array:
    return product(data, row, col, B, spinfo.shape, transpose)


coo_todense_p = traceable("coo_todense", _todense_of, linear=[0])
coo_fromdense_p = traceable("coo_fromdense", _fromdense_of, multiple_results=True)
coo_matvec_p = traceable("coo_matvec", _product_of, linear=[0, 3])
coo_matmat_p = traceable("coo_matmat", _product_of, linear=[0, 3])


def _coo_todense(data: ArrayLike, row: ArrayLike, col: ArrayLike, *, spinfo: COOInfo) -> Array:
    return coo_todense_p.bind(data, row, col, spinfo=spinfo)


def _coo_fromdense(mat: ArrayLike, *, nse: int, index_dtype: DTypeLike = jnp.int32) -> tuple[Array, Array, Array]:
    return tuple(coo_fromdense_p.bind(jnp.asarray(mat), nse=operator.index(nse),
                                      index_dtype=index_dtype))  # type: ignore[return-value]


def _coo_matvec(data: ArrayLike, row: ArrayLike, col: ArrayLike, v: ArrayLike, *, spinfo: COOInfo,
                transpose: bool = False) -> Array:
    return coo_matvec_p.bind(data, row, col, v, spinfo=spinfo, transpose=transpose)


def _coo_matmat(data: ArrayLike, row: ArrayLike, col: ArrayLike, B: ArrayLike, *, spinfo: COOInfo,
                transpose: bool = False) -> Array:
    return coo_matmat_p.bind(data, row, col, B, spinfo=spinfo, transpose=transpose)


# -- the matrix ---------------------------------------------------------------------------------------
@register_pytree_node_class
class COO(JAXSparse):
    """A matrix by coordinates. BCOO can do more, and is treated better by transformations.

    Attributes:
      data: `(nse,)`, the stored elements.
      row: `(nse,)`, their rows.
      col: `(nse,)`, their columns.
    """

    row: Array
    col: Array
    _rows_sorted: bool
    _cols_sorted: bool
    _names = ("data", "row", "col")

    def __init__(self, args: tuple[Array, Array, Array], *, shape: Shape, rows_sorted: bool = False,
                 cols_sorted: bool = False):
        self.data, self.row, self.col = map(jnp.asarray, args)
        self._rows_sorted = rows_sorted
        self._cols_sorted = cols_sorted
        super().__init__(args, shape=shape)  # type: ignore[arg-type]

    @property
    def nse(self) -> int:
        return self.data.size

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:  # type: ignore[override]
        return self.data, self.row, self.col

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[PyTree]) -> COO:
        self = super().tree_unflatten(aux_data, children)
        assert isinstance(self, COO)
        self.shape = aux_data["shape"]
        self._rows_sorted, self._cols_sorted = aux_data["rows_sorted"], aux_data["cols_sorted"]
        return self

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
        """The COO matrix of a dense one; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _sort_indices(self) -> COO:
        """The same matrix with its rows in order."""
        row, col, order = lax.sort((self.row, self.col, lax.iota(np.int32, self.nse)), num_keys=2)
        return COO((self.data[order], row, col), shape=self.shape, rows_sorted=True)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32") -> COO:
        sizes = tuple(shape)
        if len(sizes) != 2:
            raise ValueError(f"COO must have ndim=2; got shape={sizes}")
        none = jnp.empty(0, index_dtype)
        return cls((jnp.empty(0, dtype), none, none), shape=sizes, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32") -> COO:
        row, col = max(-k, 0), max(k, 0)
        length = min(N - row, M - col)
        if length <= 0:
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype)
        along = jnp.arange(length, dtype=index_dtype)
        moved = (along + row).astype(index_dtype), (along + col).astype(index_dtype)
        return cls((jnp.ones(length, dtype), *moved), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def todense(self) -> Array:
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"axes={axes} of a COO matrix")
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], rows_sorted=self._cols_sorted,
                   cols_sorted=self._rows_sorted)

    def __matmul__(self, other: Object) -> Array:
        data, other = dense_operand(self.data, other)
        multiply = _coo_matvec if other.ndim == 1 else _coo_matmat
        return multiply(data, self.row, self.col, other, spinfo=self._info)


def dense_operand(data: Array, other: Object) -> tuple[Array, Array]:
    """The data of a matrix and the dense array that it is multiplied with, of one dtype.

    Raises:
      NotImplementedError: it is sparse, or neither a vector nor a matrix.
    """
    if isinstance(other, JAXSparse):
        raise NotImplementedError("matmul between two sparse objects.")
    other = jnp.asarray(other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}")
    dtype = jnp.promote_types(data.dtype, other.dtype)
    return data.astype(dtype), other.astype(dtype)


# -- functions of matrices ----------------------------------------------------------------------------
def coo_todense(mat: COO) -> Array:
    """The dense matrix of a COO matrix."""
    return _coo_todense(*mat._bufs, spinfo=mat._info)


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32) -> COO:
    """The COO matrix of a dense one.

    Args:
      mat: a dense matrix.
      nse: how many elements to store. By default as many as there are, which has to be known.
      index_dtype: of rows and columns.
    """
    mat = jnp.asarray(mat)
    count = int(stored_elements(mat)) if nse is None else nse
    return COO(_coo_fromdense(mat, nse=count, index_dtype=index_dtype), shape=mat.shape, rows_sorted=True)


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a COO matrix, or with `transpose` of its transpose, and a dense vector."""
    return _coo_matvec(*mat._bufs, v, spinfo=mat._info, transpose=transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a COO matrix, or with `transpose` of its transpose, and a dense matrix."""
    return _coo_matmat(*mat._bufs, B, spinfo=mat._info, transpose=transpose)
