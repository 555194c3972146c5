"""Eigenvalues of Hermitian tridiagonal matrices."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.lax import linalg as lax_linalg
from styrax.numpy.broadcasting import spread
from styrax.numpy.conversion import asarray
from styrax.numpy.patterns import eye

_DTYPES = tuple(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, tol: float | None = None,
                     key: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """Eigenvalues, rising, and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
      d: the diagonal, shape [n], real.
      e: the elements above it, shape [n - 1].
      eigvals_only: whether to return the eigenvalues alone, and not (w, v).
      select: "a" for all eigenvalues, "i" for those with indices from `select_range`, both ends
        included.
      select_range: the pair that `select` needs.
      tol, key: ignored, the dense solver needs neither.

    Raises TypeError for a complex diagonal, ValueError for a `select` that is unknown or lacks its range,
    NotImplementedError for a choice by values ("v").
    """
    del tol, key
    d, e = asarray(d), asarray(e)
    if d.dtype != e.dtype:
        raise TypeError(f"diagonal and off-diagonal values must have same dtype, got {d.dtype} and {e.dtype}")
    if d.dtype not in _DTYPES:
        raise TypeError("Only float32, float64, complex64 and complex128 inputs are supported as inputs to "
                        f"jax.scipy.linalg.eigh_tridiagonal, got {d.dtype} and {e.dtype}")
    if d.ndim != 1 or e.ndim != 1 or e.shape[0] != max(d.shape[0] - 1, 0):
        raise ValueError(f"d and e must have shapes [n] and [n - 1], got {d.shape} and {e.shape}")
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select != "a" and select_range is None:
        raise ValueError("for select='v' or select='i', select_range must be specified.")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    n = d.shape[0]
    below = lax.conj(e) if dtypes.issubdtype(e.dtype, np.complexfloating) else e
    lower = lax.pad(below, lax.full((), 0, e.dtype), ((0, 1, 0),))
    matrix = lax.mul(eye(n, dtype=d.dtype), lax.broadcast_in_dim(d, (n, n), (1,)))
    matrix = lax.add(matrix, lax.mul(eye(n, k=-1, dtype=d.dtype), spread(lax.expand_dims(lower, (0,)), (n, n))))
    v, w = lax_linalg.eigh(matrix, lower=True, symmetrize_input=False)
    if select == "i":
        lo, hi = (int(x) for x in select_range or ())
        if lo > hi:
            raise ValueError(f"Got empty index range in select_range: ({lo}, {hi}).")
        w, v = lax.slice_in_dim(w, lo, hi + 1), lax.slice_in_dim(v, lo, hi + 1, axis=1)
    return w if eigvals_only else (w, v)
