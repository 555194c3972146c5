"""Functions for sparse arrays of all formats: `todense`, `empty` and `eye`."""

from __future__ import annotations

from typing import Any

from styrax.core.arrays.array import Array
from styrax.core.trees import tree as trees
from styrax.core.types.typing import ArrayLike, DTypeLike, Shape

from .arrays import JAXSparse
from .bcoo.array import BCOO
from .bcsr import BCSR
from .coo import COO
from .csr import CSC, CSR
from .primitives import traceable


def _todense_of(*bufs: Array, tree: trees.PyTreeDef) -> Array:
    mat = trees.tree_unflatten(tree, bufs)
    return mat.todense() if isinstance(mat, JAXSparse) else mat


todense_p = traceable("todense", _todense_of, linear=[0])


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """The dense array of a sparse one; dense ones are returned as they are."""
    bufs, tree = trees.tree_flatten(arr)
    return todense_p.bind(*bufs, tree=tree)


_FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def empty(shape: Shape, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo",
          **kwds: int) -> JAXSparse:
    """A sparse array of zeros.

    Args:
      shape: its shape.
      dtype: of the elements.
      index_dtype: of the indices.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      **kwds: what else the format takes: `nse`, `n_batch`, `n_dense`.

    Raises:
      ValueError: there is no such format.
    """
    if sparse_format not in _FORMATS:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be one of {list(_FORMATS)}")
    return _FORMATS[sparse_format]._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
        sparse_format: str = "bcoo", **kwds: int) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
      N: the number of rows.
      M: the number of columns, by default `N`.
      k: which diagonal: 0 is the main one, positive ones lie above it.
      dtype: of the elements.
      index_dtype: of the indices.
      sparse_format: "bcoo", "coo", "csr" or "csc".
      **kwds: what else the format takes: `n_batch`, `n_dense`.

    Raises:
      ValueError: there is no such format.
    """
    formats = [name for name in _FORMATS if name != "bcsr"]
    if sparse_format not in formats:
        raise KeyError(sparse_format)
    return _FORMATS[sparse_format]._eye(N, N if M is None else M, k, dtype=dtype, index_dtype=index_dtype, **kwds)
