"""Linear systems solved with nothing but products: conjugate gradients, BiCGSTAB and GMRES.

The operator and the solution may be trees of arrays. Derivatives are those of the exact solution
(`lax.custom_linear_solve`): they solve a system with the same operator or its transpose.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import Tracer
from styrax.core.trees import tree
from styrax.core.types.typing import ArrayLike, Function, PyTree
from styrax.lax.casting import _convert_element_type

from .krylov import bicgstab_solve, cg_solve, gmres_solve, identity

Operator: TypeAlias = Function | ArrayLike
"""A linear function of a tree of arrays, a square matrix, or anything that has `@`."""


def _as_function(f: Any) -> Callable[[Any], Any]:
    if callable(f):
        return f
    if isinstance(f, (np.ndarray, Array, Tracer)):
        if f.ndim != 2 or f.shape[0] != f.shape[1]:
            raise ValueError(f"linear operator must be a square matrix, but has shape: {f.shape}")
        return partial(jnp.matmul, jnp.asarray(f), precision=lax.Precision.HIGHEST)
    if hasattr(f, "__matmul__"):
        if hasattr(f, "shape") and (len(f.shape) != 2 or f.shape[0] != f.shape[1]):
            raise ValueError(f"linear operator must be a square matrix, but has shape: {f.shape}")
        return partial(operator.matmul, f)
    raise TypeError(f"linear operator must be either a function or ndarray: {f}")


def _start(b: PyTree, x0: PyTree) -> tuple[PyTree, PyTree]:
    """The right-hand side and the first approximation as arrays.

    Raises:
      ValueError: they differ in structure or shapes.
    """
    b = tree.tree_map(jnp.asarray, b)
    if x0 is None:
        return b, tree.tree_map(jnp.zeros_like, b)
    x0 = tree.tree_map(jnp.asarray, x0)
    if tree.tree_structure(x0) != tree.tree_structure(b):
        raise ValueError("x0 and b must have matching tree structure: "
                         f"{tree.tree_structure(x0)} vs {tree.tree_structure(b)}")
    shapes = [[x.shape for x in tree.tree_leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}")
    return b, x0


def _size(b: PyTree) -> int:
    return sum(x.size for x in tree.tree_leaves(b))


def _typed_like(x: PyTree, b: PyTree) -> PyTree:
    """The solution with the types of the right-hand side, which may be weak."""
    return tree.tree_map(lambda value, like: _convert_element_type(value, like.dtype, weak_type=like.weak_type), x, b)


def _solve(method: Callable[..., Any], A: Operator, b: PyTree, x0: PyTree, tol: ArrayLike, atol: ArrayLike,
           maxiter: int | None, M: Operator | None, hermitian: bool) -> tuple[PyTree, None]:
    b, x0 = _start(b, x0)
    apply, precondition = _as_function(A), identity if M is None else _as_function(M)
    count = 10 * _size(b) if maxiter is None else maxiter
    real = not any(jnp.issubdtype(x.dtype, np.complexfloating) for x in tree.tree_leaves(b))

    def solve(matvec: Callable[[Any], Any], rhs: Any) -> Any:
        return method(matvec, rhs, x0, tol=tol, atol=atol, maxiter=count, M=precondition)

    return _typed_like(lax.custom_linear_solve(apply, b, solve, solve, symmetric=hermitian and real), b), None


def cg(A: Operator, b: PyTree, x0: PyTree | None = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0,
       maxiter: int | None = None, M: Operator | None = None) -> tuple[PyTree, None]:
    """Solves `A x = b` for a Hermitian positive definite operator by conjugate gradients.

    Args:
      A: the operator: a linear function of trees like `b`, a matrix, or anything that has `@`.
      b: the right-hand side, a tree of arrays.
      x0: where to start, by default at zero.
      tol: ends where the norm of the residual is at most `max(tol * norm(b), atol)`.
      atol: see `tol`.
      maxiter: how many steps at most, by default 10 for each unknown.
      M: an approximation of the inverse of `A`, of the same kinds.

    Returns:
      The solution, a tree like `b`, and None.

    Raises:
      ValueError: `x0` and `b` do not fit, or a matrix is not square.
      TypeError: an operator is none of these.

    Example:
      >>> import styrax.numpy as jnp
      >>> from styrax.scipy.sparse.linalg import cg
      >>> cg(lambda x: 2 * x, jnp.ones(2))[0]
      Array([0.5, 0.5], dtype=float32)
    """
    return _solve(cg_solve, A, b, x0, tol, atol, maxiter, M, True)


def bicgstab(A: Operator, b: PyTree, x0: PyTree | None = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0,
             maxiter: int | None = None, M: Operator | None = None) -> tuple[PyTree, None]:
    """Solves `A x = b` by stabilized biconjugate gradients (van der Vorst 1992).

    Args:
      A: the operator: a linear function of trees like `b`, a matrix, or anything that has `@`.
      b: the right-hand side, a tree of arrays.
      x0: where to start, by default at zero.
      tol, atol: ends where the norm of the residual is at most `max(tol * norm(b), atol)`.
      maxiter: how many steps at most, by default 10 for each unknown.
      M: an approximation of the inverse of `A`, of the same kinds.

    Returns:
      The solution, a tree like `b`, and None.

    Raises:
      ValueError: `x0` and `b` do not fit, or a matrix is not square.
      TypeError: an operator is none of these.
    """
    return _solve(bicgstab_solve, A, b, x0, tol, atol, maxiter, M, False)


def gmres(A: Operator, b: PyTree, x0: PyTree | None = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0,
          restart: int = 20, maxiter: int | None = None, M: Operator | None = None,
          solve_method: str = "batched") -> tuple[PyTree, Array]:
    """Solves `A x = b` by generalized minimal residuals (Saad and Schultz 1986).

    Args:
      A: the operator: a linear function of trees like `b`, a matrix, or anything that has `@`.
      b: the right-hand side, a tree of arrays.
      x0: where to start, by default at zero.
      tol, atol: ends where the norm of the residual is at most `max(tol * norm(b), atol)`.
      M: an approximation of the inverse of `A`, of the same kinds.
      restart: the largest dimension of the Krylov space, whose basis is kept.
      maxiter: how many times at most to start anew, by default 10 for each unknown.
      solve_method: "incremental" looks at the residual after each dimension, "batched" builds each space whole.

    Returns:
      The solution, a tree like `b`, and an integer: 0, or -1 where it has NaNs.

    Raises:
      ValueError: there is no such method, `x0` and `b` do not fit, or a matrix is not square.
      TypeError: an operator is none of these.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")
    b, x0 = _start(b, x0)
    apply, precondition = _as_function(A), identity if M is None else _as_function(M)
    size = _size(b)
    count = 10 * size if maxiter is None else maxiter

    def solve(matvec: Callable[[Any], Any], rhs: Any) -> Any:
        return gmres_solve(matvec, rhs, x0, tol=tol, atol=atol, restart=min(restart, size), maxiter=count,
                           M=precondition, incremental=solve_method == "incremental")

    x = _typed_like(lax.custom_linear_solve(apply, b, solve, solve), b)
    failed = jnp.array([jnp.isnan(leaf).any() for leaf in tree.tree_leaves(x)]).any()
    return x, jnp.where(failed, -1, 0)
