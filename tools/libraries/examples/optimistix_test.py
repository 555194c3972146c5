"""optimistix: least squares, minimisers, roots and fixed points, and gradients through them, with known solutions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx
import pytest

START = jnp.array([-1.2, 1.0])


def close(x, y, tolerance=1e-3):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def rosenbrock(y, args):
    return jnp.stack([10 * (y[1] - y[0] ** 2), 1 - y[0]])


@pytest.mark.parametrize("name", ["GaussNewton", "LevenbergMarquardt", "IndirectLevenbergMarquardt", "Dogleg"])
def test_least_squares(name):
    close(optx.least_squares(rosenbrock, getattr(optx, name)(1e-6, 1e-6), START).value, [1.0, 1.0])


@pytest.mark.parametrize("name", ["BFGS", "DFP", "LBFGS", "NonlinearCG", "NelderMead"])
def test_minimise(name):
    def bowl(y, args):
        return jnp.sum((y - args) ** 2) + 0.5 * (y[0] - args[0]) * (y[1] - args[1])

    solver = getattr(optx, name)(1e-6, 1e-6)
    found = optx.minimise(bowl, solver, START, args=jnp.array([1.0, 2.0]), max_steps=512, throw=False).value
    close(found, [1.0, 2.0], 1e-2)


def test_minimise_by_optax():
    solver = optx.OptaxMinimiser(optax.sgd(0.1), 1e-5, 1e-5)
    close(optx.minimise(lambda y, _: jnp.sum((y - 1) ** 2), solver, START, max_steps=1000).value, [1.0, 1.0], 2e-2)


def test_golden_search():
    found = optx.minimise(lambda y, _: (y - 0.3) ** 2, optx.GoldenSearch(1e-4, 1e-4), 0.5,
                          options={"lower": 0.0, "upper": 1.0})
    close(found.value, 0.3)


@pytest.mark.parametrize("name", ["Newton", "Chord"])
def test_roots(name):
    expected = np.array([0.5, 1.0])
    root = np.array([0.25, 0.5])
    for _ in range(20):
        root = root - (np.tanh(root) + root - expected) / (2 - np.tanh(root) ** 2)
    found = optx.root_find(lambda y, a: jnp.tanh(y) + y - a, getattr(optx, name)(1e-6, 1e-6),
                           jnp.array([0.1, 0.2]), args=jnp.asarray(expected, jnp.float32)).value
    close(found, root)


def test_bisection():
    found = optx.root_find(lambda y, _: y**2 - 2, optx.Bisection(1e-6, 1e-6), 1.0,
                           options={"lower": 0.0, "upper": 2.0}).value
    close(found, np.sqrt(2))


def test_gradients_through_solutions():
    def root(a):
        return optx.root_find(lambda y, a: y**2 - a, optx.Newton(1e-6, 1e-6), 1.5, args=a).value

    a = jnp.array([2.0, 3.0])
    close(jax.vmap(jax.grad(root))(a), 0.5 / np.sqrt(a))
    close(jax.jit(jax.vmap(jax.value_and_grad(root)))(a)[0], np.sqrt(a))

    def fixed(a):
        return optx.fixed_point(lambda y, a: jnp.cos(a * y), optx.FixedPointIteration(1e-6, 1e-6), 0.5, args=a).value

    value, slope = jax.value_and_grad(fixed)(1.0)
    close(value, 0.739085)
    close(slope, -np.sin(0.739085) * 0.739085 / (1 + np.sin(0.739085)))


def test_what_does_not_end_is_said():
    with pytest.raises(Exception, match="maximum number of"):
        optx.root_find(lambda y, _: y**2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.0), max_steps=8)
    found = optx.root_find(lambda y, _: y**2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.0), max_steps=8, throw=False)
    assert found.result != optx.RESULTS.successful
