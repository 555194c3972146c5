"""diffrax: explicit, implicit and split solvers, steps by error, dense output, events, adjoints, SDEs, CDEs."""

from __future__ import annotations

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx
import pytest

START = jnp.array([1.0, 2.0])
BY_ERROR = dfx.PIDController(rtol=1e-5, atol=1e-6)


def close(x, y, tolerance=1e-3):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def decay(t, y, args):
    return -0.5 * y


def solve(solver, field=decay, t1=1.0, dt=0.01, y0=START, **options):
    return dfx.diffeqsolve(dfx.ODETerm(field), solver, 0.0, t1, dt, y0, **options)


@pytest.mark.parametrize("name, tolerance", [("Euler", 1e-2), ("Heun", 1e-4), ("Midpoint", 1e-4), ("Ralston", 1e-4),
                                             ("Bosh3", 1e-5), ("Tsit5", 1e-5), ("Dopri5", 1e-5), ("Dopri8", 1e-5),
                                             ("ReversibleHeun", 1e-4)])
def test_explicit_solvers(name, tolerance):
    ts = jnp.linspace(0, 1, 5)
    found = solve(getattr(dfx, name)(), saveat=dfx.SaveAt(ts=ts)).ys
    close(found, np.exp(-0.5 * np.asarray(ts))[:, None] * np.asarray(START), tolerance)


@pytest.mark.parametrize("name", ["Kvaerno3", "Kvaerno4", "Kvaerno5"])
def test_implicit_solvers(name):
    def stiff(t, y, args):
        return -100.0 * (y - jnp.cos(t))

    found = solve(getattr(dfx, name)(), stiff, dt=0.001, y0=jnp.array(0.0), stepsize_controller=BY_ERROR).ys
    close(found, [(100**2 * np.cos(1) + 100 * np.sin(1)) / (100**2 + 1)])


def test_a_split_solver():
    terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, _: jnp.ones(2)), dfx.ODETerm(lambda t, y, _: -5 * y))
    found = dfx.diffeqsolve(terms, dfx.KenCarp4(), 0.0, 1.0, 0.05, START, stepsize_controller=BY_ERROR).ys
    close(found[0], 0.2 + (np.asarray(START) - 0.2) * np.exp(-5))


def test_a_symplectic_solver_keeps_energy():
    terms = dfx.ODETerm(lambda t, p, _: p), dfx.ODETerm(lambda t, q, _: -q)
    q, p = dfx.diffeqsolve(terms, dfx.SemiImplicitEuler(), 0.0, 10.0, 0.01, (jnp.array(1.0), jnp.array(0.0)),
                           max_steps=None).ys
    close(q**2 + p**2, [1.0], 2e-2)


def test_dense_output():
    found = solve(dfx.Tsit5(), t1=3.0, dt=0.1, saveat=dfx.SaveAt(dense=True, t1=True), stepsize_controller=BY_ERROR,
                  max_steps=64)
    close(found.evaluate(1.3), np.asarray(START) * np.exp(-0.65))
    assert found.stats["num_steps"] == found.stats["num_accepted_steps"] + found.stats["num_rejected_steps"]


@pytest.mark.parametrize("adjoint", [dfx.RecursiveCheckpointAdjoint(), dfx.BacksolveAdjoint(), dfx.DirectAdjoint()])
def test_adjoints(adjoint):
    @jax.value_and_grad
    def loss(rate):
        return solve(dfx.Tsit5(), lambda t, y, rate: -rate * y, args=rate, adjoint=adjoint, dt=0.1,
                     stepsize_controller=BY_ERROR, max_steps=64).ys.sum()

    close(loss(0.5), (3 * np.exp(-0.5), -3 * np.exp(-0.5)))


def test_forward_mode():
    def loss(rate):
        return solve(dfx.Tsit5(), lambda t, y, rate: -rate * y, args=rate, adjoint=dfx.ForwardMode()).ys.sum()

    close(jax.jvp(loss, (0.5,), (1.0,)), (3 * np.exp(-0.5), -3 * np.exp(-0.5)))


def test_an_event_ends_a_solution():
    def ball(t, y, args):
        return jnp.stack([y[1], jnp.array(-9.8)])

    event = dfx.Event(lambda t, y, args, **_: y[0], optx.Newton(1e-5, 1e-5))
    found = solve(dfx.Tsit5(), ball, t1=jnp.inf, dt=0.1, y0=jnp.array([10.0, 0.0]), event=event)
    close(found.ts, [np.sqrt(20 / 9.8)])
    close(found.ys[0], [0.0, -np.sqrt(20 * 9.8)])


def test_a_steady_state_ends_a_solution():
    found = solve(dfx.Tsit5(), lambda t, y, _: 1 - y, t1=100.0, dt=0.1, y0=jnp.array(0.0), stepsize_controller=BY_ERROR,
                  event=dfx.Event(dfx.steady_state_event(1e-3, 1e-3)))
    close(found.ys, [1.0], 1e-2)
    assert found.ts[0] < 100


def test_brownian_motion():
    path = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(2,), key=jax.random.key(0))
    close(path.evaluate(0.2, 0.5) + path.evaluate(0.5, 0.7), path.evaluate(0.2, 0.7), 1e-5)
    ends = jax.vmap(lambda key: dfx.VirtualBrownianTree(0.0, 1.0, 1e-2, (), key).evaluate(0.0, 1.0))(
        jax.random.split(jax.random.key(1), 2000))
    close(ends.var(), 1.0, 0.1)


def test_stochastic_equations():
    """Geometric Brownian motion, whose solution is known for its path."""
    path = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-4, shape=(2,), key=jax.random.key(0))
    noise = dfx.ControlTerm(lambda t, y, _: lx.DiagonalLinearOperator(0.2 * y), path)
    terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, _: -y), noise)
    found = dfx.diffeqsolve(terms, dfx.ItoMilstein(), 0.0, 1.0, 0.002, START, max_steps=None).ys[0]
    close(found, np.asarray(START) * np.exp(-1.02 + 0.2 * np.asarray(path.evaluate(0.0, 1.0))), 1e-2)


def test_controlled_equations():
    ts = jnp.linspace(0, 1, 6)
    xs = jnp.stack([ts, ts**2], 1)
    control = dfx.CubicInterpolation(ts, dfx.backward_hermite_coefficients(ts, xs))
    term = dfx.ControlTerm(lambda t, y, _: jnp.array([[0.0, 1.0]]), control).to_ode()
    found = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, 0.01, jnp.array([2.0])).ys
    close(found, [[3.0]])
    close(dfx.LinearInterpolation(ts, xs).evaluate(0.5), [0.5, 0.26])


def test_a_neural_equation_is_trained():
    model = eqx.nn.MLP(2, 2, 8, 1, activation=jax.nn.softplus, key=jax.random.key(0))
    starts = jax.random.normal(jax.random.key(1), (4, 2))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model):
        def end(y):
            return solve(dfx.Tsit5(), lambda t, y, _: model(y), y0=y, dt=0.1, stepsize_controller=BY_ERROR).ys[-1]

        return jnp.mean(jax.vmap(end)(starts) ** 2)

    values = []
    for _ in range(8):
        value, gradient = loss(model)
        model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradient))
        values.append(float(value))
    assert values[-1] < values[0]
