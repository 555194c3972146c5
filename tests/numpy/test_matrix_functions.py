"""Functions of matrices, tridiagonal systems and eigenvalues at the edges of what they are defined for."""

from __future__ import annotations

from typing import Any

import jax
import jax.scipy.linalg
import numpy as np
import pytest

import styrax
import styrax.lax
import styrax.scipy.linalg
from tests.numpy import oracle


def both(function: Any, *args: Any, tolerance: float = 1e-5) -> None:
    ours, theirs = (oracle.outcome(function, [package, *args]) for package in (styrax, jax))
    oracle.assert_same(ours, theirs, str(function), tolerance, tolerance)


@pytest.mark.parametrize("matrix", [
    np.zeros((3, 3)), np.diag([4.0, 0, 9]), np.eye(3, k=1), [[0, 1], [0, 1]], [[4, 1, 0], [0, 4, 0], [0, 0, 0]], [[2]],
    [[0, 2], [-2, 0]],
])
def test_roots_of_singular_matrices(matrix: Any) -> None:
    both(lambda j, a: j.scipy.linalg.sqrtm(a), np.array(matrix, np.float32))


@pytest.mark.parametrize("size", [0.0, 1e-8, 10.0, 1e5, 1e7, 1e30])
def test_slopes_of_exponentials(size: float) -> None:
    """Where the norm is too large the value is NaN, and depends on nothing."""
    matrix = np.array([[-size, size / 2], [0, -size]], np.float32)
    both(lambda j, a: (j.grad(lambda a: j.scipy.linalg.expm(a).sum())(a), j.scipy.linalg.expm(a)), matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_singular_tridiagonal_systems(dtype: Any) -> None:
    lower = np.array([[0, 0, 0], [0, 1, 1], [0, 1, 1], [0, 1, 1]], dtype)
    middle = np.array([[0, 0, 0], [0, 0, 0], [1, 2, 1], [0, 2, 1]], dtype)
    upper = np.array([[0, 0, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0]], dtype)
    right = np.arange(12, dtype=dtype).reshape(4, 3, 1)
    solve = lambda j, *args: j.lax.linalg.tridiagonal_solve(*args)
    both(solve, lower, middle, upper, right)
    both(lambda j, *args: j.jit(j.vmap(lambda *a: solve(j, *a)))(*args), lower, middle, upper, right)
    both(solve, lower[0, :1], middle[0, :1], upper[0, :1], right[0, :1])


@pytest.mark.parametrize("types", [("float32",) * 2, ("complex64",) * 2, ("float32", "complex64"), ("int32",) * 2,
                                   ("complex64", "float32"), ("float16",) * 2])
def test_eigenvalues_of_tridiagonal_matrices(types: tuple[str, str]) -> None:
    diagonal, beside = np.array([1, 2, -1, 4]), np.array([1, 2j, 1 + 1j])
    with np.errstate(all="ignore"):
        d, e = diagonal.astype(types[0]), (beside if types[1] == "complex64" else beside.real).astype(types[1])
    both(lambda j, d, e: j.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True), d, e)


def test_eigenvalues_of_lists() -> None:
    both(lambda j: j.scipy.linalg.eigh_tridiagonal([1.0, 2.0], [1.0], eigvals_only=True))


FORMS = """
jsp.linalg.hankel(jnp.zeros(0))
jsp.linalg.hankel(jnp.ones((2, 3)), jnp.zeros(0))
jsp.linalg.hankel(jnp.ones((2, 0)), x)
jsp.linalg.circulant(jnp.zeros((2, 0)))
jsp.linalg.fiedler(jnp.zeros((2, 0)))
jsp.linalg.fiedler(u)
jsp.linalg.fiedler(c)
jsp.linalg.fiedler_companion(jnp.zeros((2, 0)))
jsp.linalg.fiedler_companion(jnp.ones(1))
jsp.linalg.convolution_matrix(w, 2)
jsp.linalg.dft(2, dtype=complex)
jsp.linalg.dft(2, dtype=int)
jsp.linalg.dft(2, dtype='float32')
jsp.linalg.rsf2csf(jnp.array([[1., 2], [-3, 1]]) * jnp.ones((3, 1, 1)), jnp.eye(2))
jsp.linalg.rsf2csf(jnp.array([[1., 2], [0, 1]]), jnp.ones((2, 2, 2)))
jsp.linalg.rsf2csf(x, s)
jsp.linalg.sqrtm(jnp.ones((3, 2, 2)))
jsp.linalg.expm_frechet(s, s, method='blockEnlarge')
"""


def test_edges_of_forms() -> None:
    oracle.check_values(FORMS)
