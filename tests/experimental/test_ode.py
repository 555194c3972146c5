"""`odeint` against JAX's, and against solutions that are known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.experimental.oracle import assert_same, jax, module, styrax


def ode(package):
    return module(package, "experimental.ode")


@pytest.fixture
def x64():
    with jax.enable_x64(True), styrax.enable_x64(True):
        yield


PARTS = {
    "initial": lambda jax, ode, f, y, t: [ode.initial_step_size(f, t, y, 4, r, r, f(y, t)) for r in (1e-8, 1e-2)],
    "still": lambda jax, ode, f, y, t: ode.initial_step_size(lambda y, t: 0 * y, t, y, 4, 1e-6, 1e-7, 0 * y),
    "step": lambda jax, ode, f, y, t: ode.runge_kutta_step(f, y, f(y, t), t, 2 * t),
    "dense": lambda jax, ode, f, y, t: ode.interp_fit_dopri(y, 2 * y, jax.numpy.arange(14.).reshape(7, 2), t),
    "quartic": lambda jax, ode, f, y, t: ode.fit_4th_order_polynomial(y, 2 * y, y**2, y / 3, y / 5, t),
    "next": lambda jax, ode, f, y, t: [
        ode.optimal_step_size(t, jax.numpy.array(r)) for r in (0., .5, 1e-9, 1., 1.5, 1e5, np.nan)],
    "error": lambda jax, ode, f, y, t: ode.mean_error_ratio(y / 10, 1e-2, 1e-3, y, -2 * y),
    "squares": lambda jax, ode, f, y, t: [ode.abs2(y), ode.abs2(y * 1j + 2)],
}


@pytest.mark.parametrize("part", PARTS)
def test_parts(part, x64):
    def program(jax):
        jnp = jax.numpy
        f = lambda y, t: -y * t + jnp.sin(y)
        return PARTS[part](jax, ode(jax), f, jnp.array([1.0, 2.0]), jnp.array(0.3))

    assert_same(program, rtol=1e-11, atol=1e-13)


def decay(y, t, *rates):
    for r in rates:
        y = y * r
    return -y * t


SOLVED = {
    "scalar": lambda jax, solve, ts: solve(decay, 1.0, ts),
    "vector": lambda jax, solve, ts: solve(decay, jax.numpy.ones(2), ts, 2.0),
    "complex": lambda jax, solve, ts: solve(lambda y, t: 1j * y, 1.0 + 0j, ts),
    "few steps": lambda jax, solve, ts: solve(decay, 1.0, ts + 1, mxstep=2, rtol=1e-3, atol=1e-3),
    "short steps": lambda jax, solve, ts: solve(decay, 1.0, ts, hmax=0.01, rtol=1e-2, atol=1e-2),
    "loose": lambda jax, solve, ts: solve(decay, 1.0, ts, rtol=1e-1, atol=1e-1),
    "empty": lambda jax, solve, ts: solve(decay, jax.numpy.ones(0), ts),
    "one time": lambda jax, solve, ts: solve(decay, 1.0, ts[:1]),
    "grad": lambda jax, solve, ts: jax.grad(lambda y, t, r: solve(decay, y, t, r).sum(), (0, 1, 2))(1.0, ts, 2.0),
    "closure": lambda jax, solve, ts: jax.grad(lambda r: solve(lambda y, t: decay(y, t, r), 1.0, ts)[-1])(2.0),
    "second": lambda jax, solve, ts: jax.jacrev(jax.grad(lambda r: solve(decay, 1.0, ts, r).sum()))(2.0),
    "mapped": lambda jax, solve, ts: jax.vmap(lambda y, r: solve(decay, y, ts, r))(ts, ts),
    "mapped grad": lambda jax, solve, ts: jax.vmap(jax.grad(lambda y: solve(decay, y, ts).sum()))(ts),
    "jit": lambda jax, solve, ts: jax.jit(lambda y: solve(decay, y, ts))(1.0),
    "grad of one time": lambda jax, solve, ts: jax.grad(lambda y: solve(decay, y, ts[:1]).sum())(1.0),
}


@pytest.mark.parametrize("name", SOLVED)
def test_solutions(name, x64):
    assert_same(lambda jax: SOLVED[name](jax, ode(jax).odeint, jax.numpy.linspace(0.0, 2.0, 4)), rtol=1e-7, atol=1e-9)


def test_trees_and_single_precision():
    def program(jax):
        y0 = {"a": jax.numpy.ones(2), "b": (jax.numpy.zeros((1, 2)),)}
        return ode(jax).odeint(lambda y, t, c: jax.tree.map(lambda x: c["k"] * (1 - x), y), y0,
                               jax.numpy.array([0.0, 0.5]), {"k": 2.0}, rtol=1e-4, atol=1e-4)

    assert_same(program, rtol=1e-4)


def test_orbit_comes_back(x64):
    """A circle of circumference 2 pi, and the derivative of the end by its length: minus the velocity there."""
    jnp = styrax.numpy
    turn = lambda y, t: jnp.array([-y[1], y[0]])
    end = lambda t: ode(styrax).odeint(turn, jnp.array([1.0, 0.0]), jnp.array([0.0, t]), rtol=1e-10, atol=1e-10)[-1]
    np.testing.assert_allclose(end(2 * np.pi), [1, 0], atol=1e-7)
    np.testing.assert_allclose(styrax.jacrev(end)(2 * np.pi), [0, 1], atol=1e-7)


def test_arguments_that_are_no_arrays():
    with pytest.raises(TypeError, match="odeint"):
        ode(styrax).odeint(decay, 1.0, styrax.numpy.array([0.0, 1.0]), "rate")


def test_times_that_are_no_floats():
    for package in (jax, styrax):
        with pytest.raises(TypeError, match="t must be an array of floats"):
            ode(package).odeint(decay, 1.0, package.numpy.arange(3))


def test_vectors_of_first_arguments():
    jnp = styrax.numpy
    _, unravel = module(styrax, "flatten_util").ravel_pytree((jnp.zeros(2), jnp.zeros(3)))
    raveled = ode(styrax).ravel_first_arg(lambda tree, k: {"x": tree[1] * k, "y": tree[0]}, unravel, None)
    np.testing.assert_array_equal(raveled(jnp.arange(5.0), 2.0), [4, 6, 8, 0, 1])
