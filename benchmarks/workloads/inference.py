"""Filters, samplers, transport and prices: what statisticians run."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .catalog import Workload, between, floats


@jax.jit
def kalman(a, h, zs):
    q, r = 0.1 * jnp.eye(a.shape[0]), jnp.eye(h.shape[0])

    def step(c, z):
        m, p = c
        m, p = a @ m, a @ p @ a.T + q
        gain = jnp.linalg.solve(h @ p @ h.T + r, h @ p).T
        m, p = m + gain @ (z - h @ m), p - gain @ h @ p
        return (m, p), m

    return lax.scan(step, (jnp.zeros(a.shape[0]), jnp.eye(a.shape[0])), zs)[1]


def kalman_arguments(shape, rng):
    steps, states, seen = shape
    a, h, zs = floats((states, states), (seen, states), (steps, seen), rng=rng)
    return [np.eye(states, dtype=np.float32) * np.float32(0.9) + np.float32(0.01) * a, h, zs]


@jax.jit
@jax.value_and_grad
def gaussian_process(scale, x, y):
    k = jnp.exp(-0.5 * (x[:, None] - x[None]) ** 2 / scale**2) + 0.1 * jnp.eye(len(x))
    factor = jnp.linalg.cholesky(k)
    weights = jax.scipy.linalg.cho_solve((factor, True), y)
    return 0.5 * y @ weights + jnp.log(jnp.diag(factor)).sum()


@jax.jit
def hamiltonian(precision, start):
    log_density = lambda q: -0.5 * q @ precision @ q
    slope = jax.grad(log_density)

    def iteration(q, key):
        draw, accept = jax.random.split(key)
        p = jax.random.normal(draw, q.shape)

        def leapfrog(i, s):
            q, p = s
            p = p + 0.05 * slope(q)
            q = q + 0.1 * p
            return q, p + 0.05 * slope(q)

        q2, p2 = lax.fori_loop(0, 10, leapfrog, (q, p))
        gain = log_density(q2) - log_density(q) - 0.5 * (p2 @ p2 - p @ p)
        q = jnp.where(jnp.log(jax.random.uniform(accept)) < gain, q2, q)
        return q, q

    return lax.scan(iteration, start, jax.random.split(jax.random.key(0), 50))[1]


def hamiltonian_arguments(shape, rng):
    (dims,) = shape
    a, start = floats((dims, dims), (dims,), rng=rng)
    return [a @ a.T / dims + np.eye(dims, dtype=np.float32), start]


def transport(cost):
    def step(c, _):
        u, v = c
        u = -jax.nn.logsumexp(cost + v[None], 1)
        return (u, -jax.nn.logsumexp(cost + u[:, None], 0)), None

    (u, v), _ = lax.scan(step, (jnp.zeros(cost.shape[0]), jnp.zeros(cost.shape[1])), None, length=20)
    return (u**2).sum() + v.sum()


@jax.jit
def black_scholes(spot, strike, time):
    rate, volatility = 0.02, 0.3
    spread = volatility * jnp.sqrt(time)
    d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * time) / spread
    normal = lambda x: 0.5 * (1 + lax.erf(x / np.sqrt(2)))
    return spot * normal(d1) - strike * jnp.exp(-rate * time) * normal(d1 - spread)


@jax.jit
def many_systems(a, b):
    square = a @ a.swapaxes(-1, -2) + a.shape[-1] * jnp.eye(a.shape[-1])
    return jnp.linalg.solve(a + 4 * jnp.eye(a.shape[-1]), b), jnp.linalg.cholesky(square)


KALMAN = Workload(
    "Kalman filter", kalman, kalman_arguments, [(500, 6, 3)],
    lambda rng: (rng.integers(50, 800), rng.integers(2, 12), rng.integers(1, 6)), tolerance=1e-2,
)  # fmt: skip
PROCESS = Workload(
    "Gaussian process likelihood", gaussian_process,
    lambda shape, rng: [np.float32(1.0), *floats(shape, shape, rng=rng)], [(500,), (20,)], between(10, 600),
    tolerance=1e-2,
)  # fmt: skip
HAMILTONIAN = Workload(
    "Hamiltonian Monte Carlo", hamiltonian, hamiltonian_arguments, [(100,), (5,)], between(2, 200), tolerance=1e-2
)
TRANSPORT = Workload(
    "optimal transport", jax.jit(transport), lambda shape, rng: floats(shape, rng=rng), [(200, 200)],
    between(20, 400, 2), tolerance=1e-3,
)  # fmt: skip
TRANSPORT_GRADIENT = Workload(
    "gradient of optimal transport", jax.jit(jax.grad(transport)), lambda shape, rng: floats(shape, rng=rng),
    [(200, 200)], between(20, 400, 2), tolerance=1e-3,
)  # fmt: skip
SYSTEMS = Workload(
    "many small systems", many_systems,
    lambda shape, rng: floats(shape, (*shape[:-1], 2), rng=rng), [(200, 6, 6), (100, 16, 16)],
    lambda rng: (rng.integers(4, 500), *(int(rng.integers(2, 30)),) * 2), tolerance=1e-2,
)  # fmt: skip
PRICES = Workload(
    "Black-Scholes prices", black_scholes,
    lambda shape, rng: [np.abs(x) + np.float32(0.5) for x in floats(shape, shape, shape, rng=rng)],
    [(1_000_000,), (1000,)], between(100, 2_000_000), tolerance=1e-3,
)  # fmt: skip
