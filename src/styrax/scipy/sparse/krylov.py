"""Iterations in Krylov spaces, on trees of arrays.

Conjugate gradients: Hestenes and Stiefel (1952); BiCGSTAB: van der Vorst (1992); GMRES: Saad and Schultz (1986). All as
in Saad, Iterative Methods for Sparse Linear Systems, 2nd edition: algorithms 9.1, 7.7 and 6.9, with preconditioners.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.trees import tree
from styrax.core.types.typing import ArrayLike, PyTree

Linear: TypeAlias = Callable[[PyTree], PyTree]


def identity(x: PyTree) -> PyTree:
    return x


# -- vectors ------------------------------------------------------------------------------------------
def dot(x: PyTree, y: PyTree) -> Array:
    """The inner product of trees, conjugate in the first."""
    parts = tree.tree_map(lambda a, b: jnp.vdot(a, b, precision=lax.Precision.HIGHEST), x, y)
    return reduce(jnp.add, tree.tree_leaves(parts))


def squared_norm(x: PyTree) -> Array:
    return dot(x, x).real


def plus(x: PyTree, scale: ArrayLike, y: PyTree) -> PyTree:
    """`x + scale * y`."""
    return tree.tree_map(lambda a, b: a + scale * b, x, y)


def scaled(scale: ArrayLike, x: PyTree) -> PyTree:
    return tree.tree_map(lambda a: scale * a, x)


def choose(condition: Array, x: PyTree, y: PyTree) -> PyTree:
    return tree.tree_map(lambda a, b: jnp.where(condition, a, b), x, y)


def minus(x: PyTree, y: PyTree) -> PyTree:
    return tree.tree_map(jnp.subtract, x, y)


def _bound(b: PyTree, tol: ArrayLike, atol: ArrayLike) -> Array:
    """The square of the norm at which a residual is small enough."""
    return jnp.maximum(jnp.square(tol) * squared_norm(b), jnp.square(atol))


# -- conjugate gradients ------------------------------------------------------------------------------
def cg_solve(A: Linear, b: PyTree, x0: PyTree, *, tol: ArrayLike, atol: ArrayLike, maxiter: int, M: Linear) -> PyTree:
    """The solution of `A x = b` for a Hermitian positive definite operator."""
    bound = _bound(b, tol, atol)

    def unfinished(state: Any) -> Array:
        _, r, gamma, _, k = state
        error = gamma.real if M is identity else squared_norm(r)
        return (error > bound) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, gamma, p, k = state
        Ap = A(p)
        alpha = gamma / dot(p, Ap)
        x = plus(x, alpha, p)
        r = plus(r, -alpha, Ap)
        z = M(r)
        new = dot(r, z)
        return x, r, new, plus(z, new / gamma, p), k + 1

    r = minus(b, A(x0))
    z = M(r)
    return lax.while_loop(unfinished, step, (x0, r, dot(r, z), z, 0))[0]


# -- stabilized biconjugate gradients -----------------------------------------------------------------
def bicgstab_solve(A: Linear, b: PyTree, x0: PyTree, *, tol: ArrayLike, atol: ArrayLike, maxiter: int,
                   M: Linear) -> PyTree:
    """The solution of `A x = b`; ends early where the recurrence breaks down."""
    bound = _bound(b, tol, atol)

    def unfinished(state: Any) -> Array:
        _, r, *_, k = state
        return (squared_norm(r) > bound) & (k < maxiter) & (k >= 0)

    def step(state: Any) -> Any:
        x, r, shadow, alpha, omega, rho, p, q, k = state
        new_rho = dot(shadow, r)
        p = plus(r, new_rho / rho * alpha / omega, plus(p, -omega, q))
        p_hat = M(p)
        q = A(p_hat)
        alpha = new_rho / dot(shadow, q)
        s = plus(r, -alpha, q)
        enough = squared_norm(s) < bound
        s_hat = M(s)
        t = A(s_hat)
        omega = dot(t, s) / dot(t, t)  # NaN where s is zero, which is enough
        half = plus(x, alpha, p_hat)
        x = choose(enough, half, plus(half, omega, s_hat))
        r = choose(enough, s, plus(s, -omega, t))
        broken = (omega == 0) | (alpha == 0) | (new_rho == 0)
        return x, r, shadow, alpha, omega, new_rho, p, q, jnp.where(broken, -1, k + 1)

    r = minus(b, A(x0))
    one = jnp.ones_like(dot(r, r))
    return lax.while_loop(unfinished, step, (x0, r, r, one, one, one, r, r, 0))[0]


# -- generalized minimal residuals --------------------------------------------------------------------
def _along(V: PyTree, coefficients: Array) -> PyTree:
    """The linear combination of the columns of a basis."""
    return tree.tree_map(lambda X: jnp.tensordot(X, coefficients.astype(X.dtype), axes=1,
                                                 precision=lax.Precision.HIGHEST), V)


def _components(V: PyTree, v: PyTree) -> Array:
    """The inner products of the columns of a basis and a vector."""
    parts = tree.tree_map(lambda X, x: jnp.einsum("...n,...->n", X.conj(), x, precision=lax.Precision.HIGHEST), V, v)
    return reduce(jnp.add, tree.tree_leaves(parts))


def _normalized(x: PyTree, least: ArrayLike = 0.0) -> tuple[PyTree, Array]:
    """A vector of norm 1 and the norm, both zero where it is not above `least`."""
    norm = jnp.sqrt(squared_norm(x))
    large = norm > least
    safe = jnp.where(large, norm, 1)
    unit = tree.tree_map(lambda a: jnp.where(large, a / safe.astype(a.dtype), jnp.zeros((), a.dtype)), x)
    return unit, jnp.where(large, norm, 0)


def kth_arnoldi_iteration(k: ArrayLike, A: Linear, M: Linear, V: PyTree, H: Array) -> tuple[PyTree, Array, Array]:
    """One more vector of an orthonormal basis of a Krylov space.

    Args:
      k: how many columns of the basis there are, less one.
      A: the operator.
      M: the preconditioner, applied from the left.
      V: the basis: trees of arrays with the columns along the last dimension; those to come are zero.
      H: `(n, n + 1)`, whose row `k` becomes the components of `M A v_k`.

    Returns:
      The basis, the matrix, and whether the space is exhausted.
    """
    v = M(A(tree.tree_map(lambda X: lax.dynamic_index_in_dim(X, k, X.ndim - 1, keepdims=False), V)))
    eps = jnp.finfo(H.dtype).eps
    least = eps * jnp.sqrt(squared_norm(v))
    h = jnp.zeros(H.shape[1], H.dtype)
    for _ in range(2):  # twice is enough (Kahan, Parlett)
        part = _components(V, v).astype(H.dtype)
        v = minus(v, _along(V, part))
        h = h + part
    unit, norm = _normalized(v, least)
    V = tree.tree_map(lambda X, x: lax.dynamic_update_index_in_dim(X, x[..., None], k + 1, X.ndim - 1), V, unit)
    h = h.at[k + 1].set(norm.astype(h.dtype))
    return V, H.at[k, :].set(h), norm == 0


def _first_of_basis(unit: PyTree, columns: int) -> PyTree:
    return tree.tree_map(lambda x: jnp.zeros((*x.shape, columns), x.dtype).at[..., 0].set(x), unit)


def _batched(A: Linear, M: Linear, unit: PyTree, beta: Array, restart: int, dtype: Any, bound: Array) -> PyTree:
    """The correction with the smallest residual in the whole space, by least squares."""
    def step(state: Any) -> Any:
        V, H, _, k = state
        V, H, exhausted = kth_arnoldi_iteration(k, A, M, V, H)
        return V, H, exhausted, k + 1

    start = _first_of_basis(unit, restart + 1), jnp.eye(restart, restart + 1, dtype=dtype), np.False_, 0
    V, H, _, _ = lax.while_loop(lambda state: (state[3] < restart) & ~jnp.asarray(state[2]), step, start)
    Q, R = jnp.linalg.qr(H.T)
    target = Q[0].conj() * beta.astype(dtype)  # Q^H times the first unit vector
    y = lax.linalg.triangular_solve(R, target[:, None], left_side=True, lower=False)[:, 0]
    return _along(tree.tree_map(lambda X: X[..., :-1], V), y)


def _incremental(A: Linear, M: Linear, unit: PyTree, beta: Array, restart: int, dtype: Any, bound: Array) -> PyTree:
    """The same, with the matrix made triangular by rotations as it grows, until the residual is small enough."""
    def rotate(i: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        row, rotations = state
        c, s = rotations[i, 0], rotations[i, 1]
        a, b = row[i], row[i + 1]
        return row.at[i].set(c.conj() * a + s.conj() * b).at[i + 1].set(c * b - s * a), rotations

    def step(state: Any) -> Any:
        V, H, rotations, rhs, _, _, k = state
        V, H, exhausted = kth_arnoldi_iteration(k, A, M, V, H)
        row, _ = lax.fori_loop(0, k, rotate, (H[k], rotations))
        a, b = row[k], row[k + 1]
        r = jnp.sqrt(jnp.square(abs(a)) + jnp.square(abs(b)))
        safe = jnp.where(r > 0, r, 1).astype(dtype)
        c, s = jnp.where(r > 0, a / safe, 1), jnp.where(r > 0, b / safe, 0)
        rotations = rotations.at[k].set(jnp.stack([c, s]))
        row, _ = rotate(k, (row, rotations))
        rhs, _ = rotate(k, (rhs, rotations))
        return V, H.at[k, :].set(row), rotations, rhs, abs(rhs[k + 1]), exhausted, k + 1

    def unfinished(state: Any) -> Array:
        *_, error, exhausted, k = state
        return (k < restart) & (error > bound) & ~jnp.asarray(exhausted)

    rhs = jnp.zeros(restart + 1, dtype).at[0].set(beta.astype(dtype))
    start = (_first_of_basis(unit, restart + 1), jnp.eye(restart, restart + 1, dtype=dtype),
             jnp.zeros((restart, 2), dtype), rhs, beta, np.False_, 0)
    V, H, _, rhs, _, _, k = lax.while_loop(unfinished, step, start)
    reached = jnp.where(jnp.arange(restart) < k, rhs[:-1], jnp.zeros((), dtype))
    y = lax.linalg.triangular_solve(H[:, :-1].T, reached[:, None], left_side=True, lower=False)[:, 0]
    return _along(tree.tree_map(lambda X: X[..., :-1], V), y)


def gmres_solve(A: Linear, b: PyTree, x0: PyTree, *, tol: ArrayLike, atol: ArrayLike, restart: int, maxiter: int,
                M: Linear, incremental: bool) -> PyTree:
    """The solution of `A x = b`, preconditioned from the left."""
    norm = jnp.sqrt(squared_norm(b))
    bound = jnp.maximum(tol * norm, atol)
    inner = jnp.sqrt(squared_norm(M(b))) * jnp.minimum(1.0, bound / jnp.where(norm > 0, norm, 1))
    dtype = jnp.result_type(*tree.tree_leaves(b))
    correct = _incremental if incremental else _batched

    def residual(x: PyTree) -> tuple[PyTree, Array]:
        return _normalized(M(minus(b, A(x))))

    def step(state: Any) -> Any:
        x, k, unit, beta = state
        x = tree.tree_map(jnp.add, x, correct(A, M, unit, beta, restart, dtype, inner))
        return (x, k + 1, *residual(x))

    return lax.while_loop(lambda state: (state[1] < maxiter) & (state[3] > inner), step, (x0, 0, *residual(x0)))[0]
