"""Which right-hand sides `jax.scipy.linalg`'s solvers take for vectors, which for matrices, and which they refuse."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.scipy.linalg
import numpy as np
import pytest

import styrax
import styrax.numpy
import styrax.scipy.linalg

SOLVERS: dict[str, Any] = {
    "solve_triangular": lambda linalg, a, b: linalg.solve_triangular(a, b),
    "cho_solve": lambda linalg, a, b: linalg.cho_solve((a, False), b),
    "lu_solve": lambda linalg, a, b: linalg.lu_solve((a, np.tile(np.arange(a.shape[-1], dtype=np.int32),
                                                                 (*a.shape[:-2], 1))), b),
}
ENTIRE = {"solve_triangular": lambda a: a, "cho_solve": lambda a: np.swapaxes(a, -1, -2) @ a, "lu_solve": lambda a: a}


def factors(shape: tuple[int, ...]) -> np.ndarray:
    n = shape[-1]
    return (np.triu(np.ones(shape)) + np.arange(1, n + 1) * np.eye(n)).astype(np.float32)


def right(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)


def seen(package: Any, solver: str, a: np.ndarray, b: np.ndarray) -> tuple[Any, list[tuple[str, str]]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            out = package.eval_shape(lambda a, b: SOLVERS[solver](package.scipy.linalg, a, b), a, b).shape
        except Exception as error:
            out = type(error)
    return out, [(w.category.__name__, str(w.message)) for w in found]


@pytest.mark.parametrize("solver", SOLVERS)
def test_right_hand_sides_are_vectors_or_matrices_as_in_jax(solver: str) -> None:
    for package in (styrax, jax):
        package.clear_caches()  # warnings come with tracing
    for left in [(3, 3), (1, 3, 3), (2, 3, 3), (3, 3, 3), (2, 1, 3, 3)]:
        for b in [(), (3,), (1,), (3, 1), (2, 3), (3, 3), (3, 4), (1, 4, 3), (2, 3, 1)]:
            ours, theirs = (seen(package, solver, factors(left), right(b)) for package in (styrax, jax))
            assert ours == theirs, (left, b)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("left,b", [((2, 3, 3), (3, 1)), ((1, 3, 3), (3, 2)), ((4, 3, 3), (3, 4)), ((3, 3), (2, 3, 2)),
                                    ((2, 1, 3, 3), (5, 3, 2))])
def test_matrices_of_right_hand_sides_are_broadcast(solver: str, left: Any, b: Any) -> None:
    a, b = factors(left), right(b)
    found = SOLVERS[solver](styrax.scipy.linalg, a, b)
    np.testing.assert_allclose(found, np.linalg.solve(ENTIRE[solver](a), b), rtol=1e-4, atol=1e-4)


def test_pivots_may_have_batches_of_their_own() -> None:
    a, b = factors((3, 3)), right((3,))
    pivots = np.array([[0, 1, 2], [2, 1, 2]], np.int32)
    found = styrax.scipy.linalg.lu_solve((a, pivots), b)
    expected = [np.linalg.solve(np.triu(a), b[[0, 1, 2]]), np.linalg.solve(np.triu(a), b[[2, 1, 0]])]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("left,b", [((2, 3, 3), (3,)), ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 1)), ((3, 3), ()),
                                    ((3, 3), (4,)), ((3, 2), (3,))])
def test_positive_definite_systems_have_no_batches_of_one_side(left: Any, b: Any) -> None:
    for package in (styrax, jax):
        with pytest.raises(ValueError, match="The arguments to solve must have shapes"):
            package.scipy.linalg.solve(np.ones(left, np.float32), np.ones(b, np.float32), assume_a="pos")


def test_vectors_of_former_versions_are_explained() -> None:
    for package in (styrax, jax):
        with pytest.raises(ValueError, match="Invalid shapes for solve: .* Prior to JAX v0.5.0"):
            package.numpy.linalg.solve(np.ones((2, 3, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("left,b", [((3, 3), (5, 3, 1)), ((1, 3, 3), (4, 3, 2)), ((4, 1, 3, 3), (1, 5, 3, 2)),
                                    ((12, 12), (20, 12, 1)), ((2, 12, 12), (12, 3)), ((2, 12, 12), (12,)),
                                    ((3, 3), (0, 3, 2))])
def test_each_matrix_is_factorised_once(left: Any, b: Any) -> None:
    """For how many right-hand sides ever; derivatives add up over these."""
    a, b = factors(left) + np.tri(left[-1], dtype=np.float32), right(b) / 10

    def loss(package: Any) -> Any:
        return lambda a, b: (package.numpy.linalg.solve(a, b) ** 2).sum()

    found = styrax.numpy.linalg.solve(a, b)
    np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(styrax.jit(styrax.numpy.linalg.solve)(a, b), found, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(*(package.grad(loss(package), (0, 1))(a, b) for package in (styrax, jax)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max(initial=1))
    (call,) = styrax.make_jaxpr(styrax.numpy.linalg.solve)(a, b).eqns
    (lu,) = (eqn for eqn in call.params["jaxpr"].eqns if eqn.primitive.name == "lu")
    assert lu.invars[0].aval.shape == left
