"""lineax: each solver, operators, derivatives of solutions, failures; NumPy's solutions beside them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest

GENERATOR = np.random.default_rng(0)
A = GENERATOR.normal(size=(4, 4)).astype(np.float32)
S = A @ A.T + 4 * np.eye(4, dtype=np.float32)
TALL = GENERATOR.normal(size=(6, 3)).astype(np.float32)
B = np.arange(4, dtype=np.float32)


def close(x, y, tolerance=1e-3):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("solver", [lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(well_posed=None)])
def test_direct_solvers(solver):
    close(lx.linear_solve(lx.MatrixLinearOperator(jnp.asarray(A)), B, solver=solver).value, np.linalg.solve(A, B))


@pytest.mark.parametrize("name", ["CG", "NormalCG", "BiCGStab", "GMRES", "LSMR"])
def test_iterative_solvers(name):
    operator = lx.MatrixLinearOperator(jnp.asarray(S), lx.positive_semidefinite_tag)
    close(lx.linear_solve(operator, B, solver=getattr(lx, name)(rtol=1e-6, atol=1e-6)).value, np.linalg.solve(S, B))


def test_solvers_of_structure():
    spd = lx.MatrixLinearOperator(jnp.asarray(S), lx.positive_semidefinite_tag)
    close(lx.linear_solve(spd, B, solver=lx.Cholesky()).value, np.linalg.solve(S, B))
    close(lx.linear_solve(lx.DiagonalLinearOperator(jnp.arange(1.0, 5)), B, solver=lx.Diagonal()).value,
          B / np.arange(1, 5))
    band = np.diag(np.full(4, 4.0)) + np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    operator = lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.ones(3), jnp.ones(3))
    close(lx.linear_solve(operator, B, solver=lx.Tridiagonal()).value, np.linalg.solve(band, B))
    lower = lx.MatrixLinearOperator(jnp.tril(jnp.asarray(S)), lx.lower_triangular_tag)
    close(lx.linear_solve(lower, B, solver=lx.Triangular()).value, np.linalg.solve(np.tril(S), B))


@pytest.mark.parametrize("solver", [lx.QR(), lx.SVD()])
def test_least_squares(solver):
    b = np.arange(6, dtype=np.float32)
    found = lx.linear_solve(lx.MatrixLinearOperator(jnp.asarray(TALL)), b, solver=solver).value
    close(found, np.linalg.lstsq(TALL, b, rcond=None)[0])


def test_derivatives_of_a_solution():
    def f(b):
        return jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(jnp.asarray(A)), b).value)

    close(jax.grad(f)(jnp.asarray(B)), np.linalg.inv(A).sum(0), 1e-2)
    close(jax.jvp(f, (jnp.asarray(B),), (jnp.ones(4),))[1], np.linalg.inv(A).sum(), 1e-2)

    def g(a):
        return jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(a), jnp.asarray(B)).value)

    expected = -np.outer(np.linalg.inv(S).sum(0), np.linalg.solve(S, B))
    close(jax.vmap(jax.grad(g))(jnp.stack([S, S]))[1], expected)


def test_operators():
    jacobian = lx.JacobianLinearOperator(lambda y, args: jnp.sin(y) + 2 * y, jnp.arange(3.0))
    close(lx.linear_solve(jacobian, jnp.ones(3)).value, 1 / (np.cos(np.arange(3)) + 2))
    close((jacobian + jacobian).mv(jnp.ones(3)), 2 * (np.cos(np.arange(3)) + 2))
    close((2 * jacobian @ jacobian).as_matrix(), 2 * np.diag((np.cos(np.arange(3)) + 2) ** 2))
    close(jacobian.T.as_matrix(), np.diag(np.cos(np.arange(3)) + 2))


def test_operators_on_trees():
    structure = {"a": jax.ShapeDtypeStruct((2,), jnp.float32), "b": jax.ShapeDtypeStruct((), jnp.float32)}
    operator = lx.FunctionLinearOperator(lambda x: {"a": 2 * x["a"], "b": 3 * x["b"] + x["a"].sum()}, structure)
    found = lx.linear_solve(operator, {"a": jnp.ones(2), "b": jnp.array(4.0)}).value
    close(found["a"], [0.5, 0.5])
    close(found["b"], 1.0)


def test_a_singular_matrix_fails():
    operator = lx.MatrixLinearOperator(jnp.zeros((2, 2)))
    with pytest.raises(Exception, match="singular"):
        lx.linear_solve(operator, jnp.ones(2))
    assert lx.linear_solve(operator, jnp.ones(2), throw=False).result == lx.RESULTS.singular
