"""Iterative solvers of linear systems, beside SciPy's, NumPy's and JAX's."""

from __future__ import annotations

import jax as their_jax
import jax.scipy.sparse.linalg as theirs
import numpy as np
import pytest
import scipy.sparse.linalg

import styrax as jax
import styrax.numpy as jnp
from styrax.scipy.sparse import linalg
from styrax.test_util import check_grads

rng = np.random.default_rng(0)
SOLVERS = ["cg", "bicgstab", "gmres", "gmres incremental"]


def solver(module, name, **kwargs):
    if name == "gmres incremental":
        kwargs["solve_method"] = "incremental"
    return lambda *args, **more: getattr(module, name.split()[0])(*args, **kwargs, **more)


def system(n, dtype, positive):
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else 0)
    a = a @ a.T.conj() + n * np.eye(n) if positive else a + n * np.eye(n)
    return a.astype(dtype), (rng.standard_normal(n) * (1 + (1j if np.dtype(dtype).kind == "c" else 0))).astype(dtype)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("preconditioner", [None, "diagonal", "exact"])
def test_solutions(name, dtype, preconditioner):
    a, b = system(7, dtype, name == "cg")
    M = {None: None, "diagonal": np.diag(1 / np.diag(a)), "exact": np.linalg.inv(a)}[preconditioner]
    solve = lambda a, b: solver(linalg, name)(a, b, M=M, tol=1e-6)[0]
    for run in (solve, jax.jit(solve)):
        np.testing.assert_allclose(run(a, b), np.linalg.solve(a, b), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_steps_are_those_of_scipy(name, dtype):
    with jax.enable_x64(True):
        a, b = system(5, dtype, name == "cg")
        for steps in (2,) if "gmres" in name else (1, 3):
            extra = {"restart": 1} if "gmres" in name else {}
            got = solver(linalg, name)(a, b, maxiter=steps, tol=0.0, **extra)[0]
            wanted = getattr(scipy.sparse.linalg, name.split()[0])(a, b, maxiter=steps, rtol=0.0, **extra)[0]
            np.testing.assert_allclose(got, wanted, rtol=1e-9)
        space = {"restart": 3, "maxiter": 1, "tol": 0.0}
        if "gmres" in name:
            np.testing.assert_allclose(solver(linalg, name)(a, b, **space)[0],
                                       theirs_in_x64(name, a, b, **space), rtol=1e-9)


def theirs_in_x64(name, a, b, **kwargs):
    with their_jax.enable_x64(True):
        return np.asarray(solver(theirs, name)(a, b, **kwargs)[0])


@pytest.mark.parametrize("name", SOLVERS)
def test_trees_functions_and_operators(name):
    run = solver(linalg, name)
    A = lambda x: {"a": x["a"] + 0.5 * x["b"], "b": 0.5 * x["a"] + x["b"]}
    x, info = run(A, {"a": 1.0, "b": -4.0})
    np.testing.assert_allclose([x["a"], x["b"]], [4, -6], rtol=1e-4)
    assert (int(info) == 0) if "gmres" in name else info is None
    b = np.arange(9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_allclose(run(lambda x: 2 * x, b)[0], b / 2, rtol=1e-5)

    class Twice:
        shape = (3, 3)

        def __matmul__(self, x):
            return 2 * x

    np.testing.assert_allclose(run(Twice(), b)[0], b / 2, rtol=1e-5)
    assert run(lambda x: x, 1.0)[0].weak_type
    np.testing.assert_array_equal(run(lambda x: 2 * x, np.zeros(3, np.float32))[0], np.zeros(3))
    start = np.ones(3, np.float32)
    np.testing.assert_array_equal(run(lambda x: 2 * x, 2 * start, start)[0], start)


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_and_batches(name):
    a, b = system(4, np.float32, name == "cg")
    make = (lambda a: a @ a.T) if name == "cg" else (lambda a: a)
    solve = lambda a, b: solver(linalg, name)(make(a), b, tol=1e-7)[0]
    check_grads(solve, (a / 4, b), 1, rtol=0.05, atol=0.05)
    loss = lambda a, b: jnp.sum(solve(a, b) ** 2)
    wanted = their_jax.grad(lambda a, b: (their_jax.numpy.linalg.solve(make(a), b) ** 2).sum(), (0, 1))(a, b)
    for x, y in zip(jax.jit(jax.grad(loss, (0, 1)))(a, b), wanted):
        np.testing.assert_allclose(x, y, rtol=1e-2, atol=1e-4)
    many = rng.standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_allclose(jax.jit(jax.vmap(lambda b: solve(a, b)))(many),
                               np.stack([np.linalg.solve(make(a), b) for b in many]), rtol=1e-3, atol=1e-5)
    slopes = jax.vmap(jax.grad(loss, 1), (None, 0))(a, many)
    np.testing.assert_allclose(slopes, np.stack([jax.grad(loss, 1)(a, b) for b in many]), rtol=1e-2, atol=1e-4)


def test_what_is_refused():
    b = jnp.zeros(2)
    for args, kind, message in [
        ((lambda x: x, {"x": b}, {"y": b}), ValueError, "matching tree structure"),
        ((lambda x: x, b, b[:, None]), ValueError, "matching shape"),
        ((jnp.zeros((3, 2)), b), ValueError, "must be a square matrix"),
        (([[1]], jnp.zeros(1)), TypeError, "must be either a function or ndarray"),
    ]:
        for name in ("cg", "bicgstab", "gmres"):
            with pytest.raises(kind, match=message):
                getattr(linalg, name)(*args)
    with pytest.raises(ValueError, match="solve_method"):
        linalg.gmres(lambda x: x, b, solve_method="other")
