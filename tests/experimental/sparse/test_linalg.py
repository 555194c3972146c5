"""Eigenvalues beside NumPy's, and direct solutions beside SciPy's and JAX's."""

from __future__ import annotations

import jax as their_jax
import numpy as np
import pytest
from jax.experimental.sparse.linalg import spsolve as their_spsolve

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import sparse
from styrax.experimental.sparse.linalg import lobpcg_standard, spsolve
from styrax.test_util import check_grads

rng = np.random.default_rng(0)


@pytest.mark.parametrize("n, k", [(40, 3), (30, 1), (100, 8)])
def test_largest_eigenvalues(n, k):
    a = rng.standard_normal((n, n)).astype(np.float32)
    a = a @ a.T
    start = rng.standard_normal((n, k)).astype(np.float32)
    wanted = np.linalg.eigvalsh(a.astype(np.float64))[::-1][:k]
    for operator in (a, lambda x: jnp.asarray(a) @ x):
        values, vectors, steps = lobpcg_standard(operator, start, m=200)
        np.testing.assert_allclose(values, wanted, rtol=1e-4)
        np.testing.assert_allclose(np.asarray(vectors).T @ vectors, np.eye(k), atol=1e-4)
        np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-3 * wanted[0])
        assert 0 < steps < 200


def test_of_sparse_operators_and_degenerate_ones():
    start = rng.standard_normal((32, 3)).astype(np.float32)
    few = np.diag(np.r_[10.0, 5.0, np.zeros(30)]).astype(np.float32)
    mat = sparse.BCOO.fromdense(few)
    np.testing.assert_allclose(lobpcg_standard(lambda x: mat @ x, start)[0], [10, 5, 0], atol=1e-4)
    np.testing.assert_allclose(lobpcg_standard(np.eye(32, dtype=np.float32), start)[0], [1, 1, 1], rtol=1e-5)


@pytest.mark.parametrize("a, shape", [((10, 10), (10, 2)), ((10, 10), (10, 0)), ((12, 12), (10, 1)), ((10, 10), (10,))])
def test_what_eigenvalues_refuse(a, shape):
    with pytest.raises(ValueError):
        lobpcg_standard(np.ones(a, np.float32), np.ones(shape, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_direct_solutions(dtype):
    a = (rng.standard_normal((9, 9)) * (rng.random((9, 9)) < 0.4) + 4 * np.eye(9)).astype(dtype)
    b = rng.standard_normal(9).astype(dtype)
    data, indices, indptr = sparse.CSR.fromdense(a)._bufs
    solve = lambda d, b: spsolve(d, indices, indptr, b)
    for run in (solve, jax.jit(solve)):
        np.testing.assert_allclose(run(data, b), np.linalg.solve(a, b), rtol=1e-3, atol=1e-5)
    check_grads(solve, (data, b), 1, rtol=0.05, atol=0.05)
    if dtype == np.float32:
        theirs = lambda d, b: their_spsolve(d, np.asarray(indices), np.asarray(indptr), b)
        loss = lambda f: lambda d, b: (f(d, b) ** 2).sum()
        got = jax.jit(jax.grad(loss(solve), (0, 1)))(data, b)
        wanted = their_jax.grad(loss(theirs), (0, 1))(np.asarray(data), b)
        for x, y in zip(got, wanted):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)
