"""Eigenvalues of large operators, and sparse systems of equations solved directly."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike, Function
from styrax.interpreters import ad, mlir
from styrax.transforms.callbacks import pure_callback
from styrax.transforms.jit import jit

from .counting import csr_to_coo
from .csr import compressed, csr_matvec_p

HIGHEST = lax.Precision.HIGHEST


# -- eigenvalues --------------------------------------------------------------------------------------
def lobpcg_standard(A: ArrayLike | Function, X: ArrayLike, m: int = 100,
                    tol: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a Hermitian operator and their eigenvectors, by LOBPCG.

    Knyazev (2001), with an orthonormal basis of the approximations, residuals and last directions in each step
    (Duersch et al., 2018).

    Args:
      A: an `(n, n)` matrix, or a function of `(n, k)` matrices.
      X: `(n, k)`, where to start: linearly independent columns, `0 < 5 * k < n`.
      m: how many steps at most.
      tol: an eigenpair is good where the norm of its residual is below `tol * 10 * n * (eigenvalue + norm(A v))`; by
        default the precision of the dtype.

    Returns:
      `(k,)` eigenvalues in descending order, `(n, k)` eigenvectors, and the number of steps.

    Raises:
      ValueError: shapes or dtypes do not fit.
    """
    X = jnp.asarray(X)
    if callable(A):
        return _lobpcg(A, X, m, tol)
    matrix = jnp.asarray(A)
    if matrix.shape != (X.shape[0],) * 2 and X.ndim == 2:
        raise ValueError(f"A, X must have same matrix dimension (got {matrix.shape}, {X.shape[0]})")
    return _lobpcg_matrix(matrix, X, m, tol)


@partial(jit, static_argnames=("m",))
def _lobpcg_matrix(A: Array, X: Array, m: int, tol: ArrayLike | None) -> tuple[Array, Array, Array]:
    return _lobpcg(partial(jnp.matmul, A, precision=HIGHEST), X, m, tol)


def _check(A: Any, X: Array) -> None:
    if X.ndim != 2:
        raise ValueError(f"expected X to be 2-dimensional, got shape {X.shape}")
    n, k = X.shape
    image = A(X[:, :1])
    if k == 0:
        raise ValueError(f"must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    if image.shape[0] != n or image.shape != (n, 1):
        raise ValueError(f"A, X must have same matrix dimension (got {image.shape[0]}, {n})")
    if image.dtype != X.dtype:
        raise ValueError(f"A, X must have same dtypes (got {image.dtype}, {X.dtype})")


def _times(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision=HIGHEST)


def _orthonormal(X: Array) -> Array:
    """An orthonormal basis, with zero columns for those that depend on the others."""
    norms = jnp.linalg.norm(X, axis=0, keepdims=True)
    X = X / jnp.where(norms == 0, 1, norms)
    for _ in range(2):
        w, V = jnp.linalg.eigh(_times(X.T.conj(), X))
        least = jnp.finfo(X.dtype).eps * jnp.maximum(w[-1], 0) * X.shape[1]
        kept = w > least
        X = _times(X, V * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, w, 1)), 0))
    return X


def _without(X: Array, basis: Array) -> Array:
    """An orthonormal basis of what a space has besides another one."""
    for _ in range(2):
        X = X - _times(basis, _times(basis.T.conj(), X))
        X = _orthonormal(X)
    X = X - _times(basis, _times(basis.T.conj(), X))
    norms = jnp.linalg.norm(X, axis=0, keepdims=True)
    return jnp.where(norms >= 0.99, X, 0)


def _lobpcg(A: Any, X: Array, m: int, tol: Any) -> tuple[Array, Array, Array]:
    _check(A, X)
    n, k = X.shape
    dtype = X.dtype
    precision = jnp.finfo(dtype).eps if tol is None else tol

    def ritz(S: Array) -> tuple[Array, Array]:
        """The largest Ritz values in a space with an orthonormal basis, and their coordinates."""
        projected = _times(S.T.conj(), A(S))
        empty = jnp.linalg.norm(S, axis=0) == 0  # columns that are zero must not win
        worst = jnp.abs(projected).sum() + 1
        projected = projected - jnp.diag(jnp.where(empty, worst, 0).astype(dtype))
        w, Q = jnp.linalg.eigh((projected + projected.T.conj()) / 2)
        return w[::-1], Q[:, ::-1]

    def measure(X: Array, theta: Array) -> tuple[Array, Array]:
        AX = A(X)
        R = AX - theta[None, :].astype(dtype) * X
        norms = jnp.linalg.norm(R, axis=0)
        reach = 10 * n * (theta + jnp.linalg.norm(AX, axis=0)) * precision
        return R, (norms < reach).sum()

    def unfinished(state: Any) -> Array:
        i, *_, converged = state
        return (i < m) & (converged < k)

    def step(state: Any) -> Any:
        i, X, P, R, _, _ = state
        W = _without(jnp.concatenate([P, R], axis=1), X)
        S = jnp.concatenate([X, W], axis=1)
        w, Q = ritz(S)
        theta, Q = w[:k], Q[:, :k]
        new = _times(S, Q)
        norms = jnp.linalg.norm(new, axis=0, keepdims=True)
        new = new / norms
        # the directions of the step, orthogonal to the new approximations (Duersch et al., equation 4.3)
        inner = Q[:k]
        P = _times(S, jnp.concatenate([jnp.zeros_like(inner), Q[k:]], axis=0))
        P = _without(P, new)
        R, converged = measure(new, theta)
        return i + 1, new, P, R, theta, converged

    X = _orthonormal(X)
    w, Q = ritz(X)
    X = _times(X, Q)
    R, converged = measure(X, w)
    i, X, _, _, theta, _ = lax.while_loop(unfinished, step, (0, X, jnp.zeros_like(X), R, w, converged))
    return theta, X, jnp.asarray(i)


# -- systems of equations -----------------------------------------------------------------------------
def _factorize_and_solve(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """SuperLU's solution, by SciPy."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import spsolve as solve

    matrix = csr_matrix((np.asarray(data), np.asarray(indices), np.asarray(indptr)), shape=(b.size, b.size))
    return np.asarray(solve(matrix, np.asarray(b)), b.dtype)


def _spsolve(data: Array, indices: Array, indptr: Array, b: Array, *, tol: float, reorder: int) -> Array:
    return pure_callback(_factorize_and_solve, ShapedArray(b.shape, b.dtype), data, indices, indptr, b)


spsolve_p = Primitive("spsolve")
spsolve_p.def_impl(_spsolve)
spsolve_p.def_abstract_eval(lambda data, indices, indptr, b, *, tol, reorder: ShapedArray(b.shape, b.dtype))
mlir.register_lowering(spsolve_p, mlir.lower_fun(_spsolve, multiple_results=False))


def _by_data(tangent: Any, data: Any, indices: Any, indptr: Any, b: Any, **params: Any) -> Any:
    x = spsolve_p.bind(data, indices, indptr, b, **params)
    product = csr_matvec_p.bind(tangent, indices, indptr, x, shape=(b.size, b.size), transpose=False)
    return spsolve_p.bind(data, indices, indptr, -product, **params)


def _by_b(tangent: Any, data: Any, indices: Any, indptr: Any, b: Any, **params: Any) -> Any:
    return spsolve_p.bind(data, indices, indptr, tangent, **params)


ad.defjvp(spsolve_p, _by_data, None, None, _by_b)


def _transposed(data: Array, indices: Array, indptr: Array) -> tuple[Array, Array, Array]:
    """The compressed rows of the transpose of a square matrix."""
    row, col = csr_to_coo(indices, indptr)
    col, row, order = lax.sort((col, row, lax.iota(np.int32, data.shape[0])), num_keys=2)
    return data[order], row, compressed(col, indptr.shape[0] - 1, indptr.dtype)


def _transpose(ct: Any, data: Any, indices: Any, indptr: Any, b: Any, **params: Any) -> list[Any]:
    if not ad.is_undefined_primal(b) or ad.is_undefined_primal(data):
        raise NotImplementedError("spsolve is linear in its right-hand side only")
    if isinstance(ct, ad.Zero):
        return [None, None, None, ad.Zero(b.aval)]
    return [None, None, None, spsolve_p.bind(*_transposed(data, indices, indptr), ct, **params)]


rules.transposes[spsolve_p] = _transpose


def spsolve(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6,
            reorder: int = 1) -> Array:
    """Solves a sparse system of equations directly, by SciPy. It cannot be batched.

    Args:
      data: `(nse,)`, the elements of the matrix by compressed rows.
      indices: `(nse,)`, their columns.
      indptr: `(n + 1,)`, where the elements of each row begin and end.
      b: `(n,)`, the right-hand side.
      tol: not used on CPUs.
      reorder: not used on CPUs.

    Returns:
      `(n,)`, the solution.
    """
    data, indices, indptr, b = (jnp.asarray(x) for x in (data, indices, indptr, b))
    return spsolve_p.bind(data, indices, indptr, b, tol=tol, reorder=reorder)
