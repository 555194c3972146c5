"""Eigenvalues of Hermitian matrices, and the Schur and Hessenberg forms of others."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.lax import linalg as lax_linalg
from styrax.numpy.broadcasting import spread
from styrax.numpy.conversion import asarray
from styrax.numpy.patterns import eye, triu
from styrax.numpy.promotion import convert, to_complex
from styrax.transforms.jit import jit_for_all_shapes as jit

from .linalg import _inexact

_DTYPES = tuple(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


@partial(jit, static_argnames=("lower", "eigvals_only", "eigvals", "type"))
def _eigh(a: Any, b: Any, lower: bool, eigvals_only: bool, eigvals: None, type: int) -> Any:
    if b is not None:
        raise NotImplementedError("Only the b=None case of eigh is implemented")
    if type != 1:
        raise NotImplementedError("Only the type=1 case of eigh is implemented.")
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    vectors, values = lax_linalg.eigh(*_inexact(asarray(a)), lower=lower)
    return values if eigvals_only else (values, vectors)


def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1,
         check_finite: bool = True) -> Array | tuple[Array, Array]:
    """Eigenvalues and eigenvectors of Hermitian matrices, a·v[:, i] = w[i]·v[:, i].

    Args:
      a: shape [..., n, n]; what counts is the mean of `a` and its adjoint.
      b: must be None: generalised problems are not supported.
      lower: which triangle of that mean is read.
      eigvals_only: whether to return w alone.
      eigvals: must be None: all eigenvalues are computed.
      type: must be 1.
      overwrite_a, overwrite_b, turbo, check_finite: ignored.

    Returns:
      (w, v): the eigenvalues, real and rising, shape [..., n], and the eigenvectors as columns, shape [..., n, n].
      Integers become floats.

    Raises NotImplementedError for what is not supported, TypeError for matrices that are not square.
    """
    del overwrite_a, overwrite_b, turbo, check_finite
    return _eigh(a, b, lower, eigvals_only, eigvals, type)


@partial(jit, static_argnames=("output",))
def _schur(a: Any, output: str) -> tuple[Array, Array]:
    if output == "complex":
        a = convert(a, to_complex(a.dtype))
    return lax_linalg.schur(a)


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """The Schur decomposition a = Z·T·Zᴴ of square matrices, with Z unitary and T upper triangular.

    Args:
      a: shape [..., n, n]; integers are taken as floats.
      output: "real", where real matrices have blocks of 2 × 2 on the diagonal of T for pairs of complex eigenvalues; or
        "complex", where T and Z are complex, and T a triangle.

    Returns:
      the pair (T, Z), both of the shape of `a`.

    Raises ValueError for other outputs and for matrices that are not square.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got output={output!r}.")
    (a,) = _inexact(asarray(a))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The input to schur must be a square matrix. Got shape {a.shape}.")
    return _schur(a, output)


@partial(jit, static_argnames=("calc_q", "check_finite", "overwrite_a"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Array | tuple[Array, Array]:
    """The Hessenberg form H of square matrices, a = Q·H·Qᴴ: zero below the first subdiagonal, with Q unitary.

    Args:
      a: shape [..., n, n]; integers are taken as floats.
      calc_q: whether to return Q, too.
      overwrite_a, check_finite: ignored.

    Returns:
      H, or (H, Q) with `calc_q`, of the shape of `a`.

    Raises ValueError for matrices that are not square.
    """
    del overwrite_a, check_finite
    (a,) = _inexact(asarray(a))
    n = a.shape[-1]
    if n == 0:
        return (a, a) if calc_q else a
    reduced, taus = lax_linalg.hessenberg(a)
    h = triu(reduced, -1)
    if not calc_q:
        return h
    inner = lax_linalg.householder_product(lax.slice(reduced, (0,) * (a.ndim - 2) + (1, 0),
                                                     (*a.shape[:-2], n, n - 1)), taus)
    batch = a.shape[:-2]
    one = lax.full((*batch, 1, 1), 1, a.dtype)
    row, column = lax.full((*batch, 1, n - 1), 0, a.dtype), lax.full((*batch, n - 1, 1), 0, a.dtype)
    top = lax.concatenate([one, row], a.ndim - 1)
    return h, lax.concatenate([top, lax.concatenate([column, inner], a.ndim - 1)], a.ndim - 2)


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, tol: float | None = None,
                     key: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
      d: the diagonal, shape [n], float32, float64, complex64 or complex128.
      e: the elements above it, shape [n - 1], of the same dtype.
      eigvals_only: whether to return the eigenvalues alone, and not (w, v).
      select: "a" for all eigenvalues, "i" for those with indices from `select_range`, both ends
        included.
      select_range: the pair that `select` needs.
      tol, key: ignored, the dense solver needs neither.

    Returns:
      (w, v): the m eigenvalues that are wanted, real and rising, and the eigenvectors as columns, shape [n, m].

    Raises:
      TypeError: `d` and `e` differ in dtype, or it is another.
      ValueError: for shapes that do not fit, a `select` that is unknown or lacks its range, and an empty range.
      NotImplementedError: for a choice by values ("v").
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
