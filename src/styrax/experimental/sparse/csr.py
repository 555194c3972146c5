"""Matrices by compressed rows or columns."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

import styrax.numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.trees.tree import register_pytree_node_class
from styrax.core.types.typing import ArrayLike, DTypeLike, Object, PyTree, Shape

from .arrays import JAXSparse
from .coo import dense_operand, product
from .counting import csr_to_coo, stored_elements, summable
from .primitives import traceable

Self = TypeVar("Self", bound="Compressed")


# -- functions of buffers -----------------------------------------------------------------------------
def compressed(row: Array, rows: int, index_dtype: DTypeLike) -> Array:
    """Where the elements of each row begin and end, given their rows in ascending order: `(rows + 1,)` integers."""
    counts = jnp.zeros(rows + 1, index_dtype).at[row + 1].add(1, mode="drop", wrap_negative_indices=False)
    return jnp.cumsum(counts, dtype=counts.dtype)


def _todense_of(data: Array, indices: Array, indptr: Array, *, shape: tuple[int, ...]) -> Array:
    data = summable(data)
    zeros = jnp.zeros(shape, data.dtype)
    return zeros.at[csr_to_coo(indices, indptr)].add(data, mode="drop", wrap_negative_indices=False)


def _fromdense_of(mat: Array, *, nse: int, index_dtype: DTypeLike) -> list[Array]:
    row, col = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
    data = mat.at[row, col].get(mode="fill", fill_value=0, wrap_negative_indices=False)
    return [data, col.astype(index_dtype), compressed(row, mat.shape[0], index_dtype)]


def _product_of(data: Array, indices: Array, indptr: Array, B: Array, *, shape: tuple[int, ...],
                transpose: bool) -> Array:
    return product(data, *csr_to_coo(indices, indptr), B, shape, transpose)


csr_todense_p = traceable("csr_todense", _todense_of, linear=[0])
csr_fromdense_p = traceable("csr_fromdense", _fromdense_of, multiple_results=True)
csr_matvec_p = traceable("csr_matvec", _product_of, linear=[0, 3])
csr_matmat_p = traceable("csr_matmat", _product_of, linear=[0, 3])


def _csr_todense(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, *, shape: Shape) -> Array:
    return csr_todense_p.bind(data, indices, indptr, shape=tuple(shape))


def _csr_fromdense(mat: ArrayLike, *, nse: int, index_dtype: DTypeLike = np.int32) -> tuple[Array, Array, Array]:
    return tuple(csr_fromdense_p.bind(jnp.asarray(mat), nse=operator.index(nse),
                                      index_dtype=np.dtype(index_dtype)))  # type: ignore[return-value]


def _csr_matvec(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, v: ArrayLike, *, shape: Shape,
                transpose: bool = False) -> Array:
    return csr_matvec_p.bind(data, indices, indptr, v, shape=tuple(shape), transpose=transpose)


def _csr_matmat(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, B: ArrayLike, *, shape: Shape,
                transpose: bool = False) -> Array:
    return csr_matmat_p.bind(data, indices, indptr, B, shape=tuple(shape), transpose=transpose)


# -- the matrices -------------------------------------------------------------------------------------
class Compressed(JAXSparse):
    """What matrices by compressed rows and by compressed columns share."""

    indices: Array
    indptr: Array
    _names = ("data", "indices", "indptr")
    _major: ClassVar[int]  # the dimension that is compressed

    def __init__(self, args: tuple[Array, Array, Array], *, shape: Shape):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)  # type: ignore[arg-type]

    @property
    def nse(self) -> int:
        return self.data.size

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:  # type: ignore[override]
        return self.data, self.indices, self.indptr

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        return self._bufs, {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls: type[Self], aux_data: dict[str, Any], children: Sequence[PyTree]) -> Self:
        self = super().tree_unflatten(aux_data, children)  # type: ignore[misc]
        self.shape = aux_data["shape"]
        return self  # type: ignore[return-value]

    @classmethod
    def _empty(cls: type[Self], shape: Sequence[int], *, dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32") -> Self:
        sizes = tuple(shape)
        if len(sizes) != 2:
            raise ValueError(f"{cls.__name__} must have ndim=2; got shape={sizes}")
        return cls((jnp.empty(0, dtype), jnp.empty(0, index_dtype), jnp.zeros(sizes[cls._major] + 1, index_dtype)),
                   shape=sizes)

    @classmethod
    def _eye(cls: type[Self], N: int, M: int, k: int, *, dtype: DTypeLike | None = None,
             index_dtype: DTypeLike = "int32") -> Self:
        first = max(-k, 0), max(k, 0)
        length = min(N - first[0], M - first[1])
        if length <= 0:
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype)
        major, minor = first[cls._major], first[1 - cls._major]
        along = jnp.arange(length, dtype=index_dtype)
        indptr = jnp.clip(jnp.arange((N, M)[cls._major] + 1, dtype=index_dtype) - major, 0, length)
        buffers = jnp.ones(length, dtype), (along + minor).astype(index_dtype), indptr.astype(index_dtype)
        return cls(buffers, shape=(N, M))


@register_pytree_node_class
class CSR(Compressed):
    """A matrix by compressed rows. BCSR can do more, and is treated better by transformations.

    Attributes:
      data: `(nse,)`, the stored elements, row by row.
      indices: `(nse,)`, their columns.
      indptr: `(rows + 1,)`, where the elements of each row begin and end.
    """

    _major = 0

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
        """The CSR matrix of a dense one; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def todense(self) -> Array:
        return csr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"axes={axes} of a CSR matrix")
        return CSC(self._bufs, shape=self.shape[::-1])

    def __matmul__(self, other: Object) -> Array:
        data, other = dense_operand(self.data, other)
        multiply = _csr_matvec if other.ndim == 1 else _csr_matmat
        return multiply(data, self.indices, self.indptr, other, shape=self.shape)


@register_pytree_node_class
class CSC(Compressed):
    """A matrix by compressed columns.

    Attributes:
      data: `(nse,)`, the stored elements, column by column.
      indices: `(nse,)`, their rows.
      indptr: `(columns + 1,)`, where the elements of each column begin and end.
    """

    _major = 1

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
        """The CSC matrix of a dense one; `nse` and `index_dtype` as for `csr_fromdense`."""
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).transpose()

    def todense(self) -> Array:
        return self.transpose().todense().T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"axes={axes} of a CSC matrix")
        return CSR(self._bufs, shape=self.shape[::-1])

    def __matmul__(self, other: Object) -> Array:
        data, other = dense_operand(self.data, other)
        multiply = _csr_matvec if other.ndim == 1 else _csr_matmat
        return multiply(data, self.indices, self.indptr, other, shape=self.shape[::-1], transpose=True)


# -- functions of matrices ----------------------------------------------------------------------------
def csr_todense(mat: CSR) -> Array:
    """The dense matrix of a CSR matrix."""
    return _csr_todense(*mat._bufs, shape=mat.shape)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The CSR matrix of a dense one.

    Args:
      mat: a dense matrix.
      nse: how many elements to store. By default as many as there are, which has to be known.
      index_dtype: of the indices.
    """
    mat = jnp.asarray(mat)
    count = int(stored_elements(mat)) if nse is None else nse
    return CSR(_csr_fromdense(mat, nse=count, index_dtype=index_dtype), shape=mat.shape)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a CSR matrix, or with `transpose` of its transpose, and a dense vector."""
    return _csr_matvec(*mat._bufs, v, shape=mat.shape, transpose=transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a CSR matrix, or with `transpose` of its transpose, and a dense matrix."""
    return _csr_matmat(*mat._bufs, B, shape=mat.shape, transpose=transpose)
