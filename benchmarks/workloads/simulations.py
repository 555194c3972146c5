"""Equations in time, particles and grids: states that turn after turn are made of the last."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .catalog import Workload, between, floats, one_array


def lorenz(s):
    x, y, z = s
    return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def runge_kutta(s, _):
    h = 0.01
    k1 = lorenz(s)
    k2 = lorenz(s + h / 2 * k1)
    k3 = lorenz(s + h / 2 * k2)
    k4 = lorenz(s + h * k3)
    s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return s, s


@jax.jit
def fields(ez, hx, hy):
    """Maxwell's equations in two dimensions on a staggered grid (Yee, 1966)."""
    def step(state, t):
        ez, hx, hy = state
        hx = hx.at[:, :-1].add(-0.5 * (ez[:, 1:] - ez[:, :-1]))
        hy = hy.at[:-1].add(0.5 * (ez[1:] - ez[:-1]))
        curl = hy[1:-1, 1:-1] - hy[:-2, 1:-1] - hx[1:-1, 1:-1] + hx[1:-1, :-2]
        ez = ez.at[1:-1, 1:-1].add(0.5 * curl).at[2, 3].set(jnp.sin(0.1 * t))
        return (ez, hx, hy), ez[3, 2]

    return lax.scan(step, (ez, hx, hy), jnp.arange(200.0))


@jax.jit
def trajectory(start):
    return lax.scan(runge_kutta, start, None, length=500)[1]


def van_der_pol(y):
    def field(y):
        return jnp.stack([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

    def step(y, _):
        k1 = field(y)
        return y + 0.025 * (k1 + field(y + 0.05 * k1)), None

    return lax.scan(step, y, None, length=200)[0]


oscillators = jax.jit(jax.vmap(van_der_pol))


@jax.jit
def gravity(x, v):
    def acceleration(x):
        d = x[:, None] - x[None]
        return -(d / ((d**2).sum(-1) + 0.01)[..., None] ** 1.5).sum(1)

    return lax.fori_loop(0, 5, lambda i, c: (c[0] + 0.01 * c[1], c[1] + 0.01 * acceleration(c[0])), (x, v))


@jax.jit
def heat(u):
    def step(i, u):
        flow = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(0.1 * flow)

    return lax.fori_loop(0, 50, step, u)


@jax.jit
def wave(u):
    def step(i, c):
        u, before = c
        flow = sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u
        return 2 * u - before + 0.1 * flow, u

    return lax.fori_loop(0, 20, step, (u, u))[0]


@jax.jit
def reaction(u, v):
    """Gray and Scott's model of two substances that spread and react."""
    def spread(x):
        return sum(jnp.roll(x, s, a) for s in (1, -1) for a in (0, 1)) - 4 * x

    def step(i, c):
        u, v = c
        made = u * v * v
        return u + 0.16 * spread(u) - made + 0.035 * (1 - u), v + 0.08 * spread(v) + made - 0.1 * v

    return lax.fori_loop(0, 50, step, (u, v))


@jax.jit
def while_ten_times(x):
    return lax.while_loop(lambda c: c[0] < c[2], lambda c: (c[0] + 1, c[1] * 1.01 + 0.1, c[2]), (0, x, 10))[1]


@jax.jit
@jax.vmap
def newton(a):
    def step(c):
        x, i = c
        return x - (x * x - a) / (2 * x), i + 1

    return lax.while_loop(lambda c: (jnp.abs(c[0] ** 2 - a) > 1e-5) & (c[1] < 50), step, (a, 0))[0]


@jax.jit
def chain_of_products(a, xs):
    return lax.scan(lambda c, x: (c @ x * 0.5, c.sum()), a, xs)


@jax.jit
def warp(x, y):
    distance = jnp.abs(x[:, None] - y[None])

    def row(above, d):
        def cell(left, t):
            diagonal, up, here = t
            value = here + jnp.minimum(jnp.minimum(left, up), diagonal)
            return value, value

        return lax.scan(cell, jnp.inf, (jnp.concatenate([jnp.array([jnp.inf]), above[:-1]]), above, d))[1], None

    return lax.scan(row, jnp.cumsum(distance[0]), distance[1:])[0][-1]


@jax.jit
def clusters(centres, x):
    def step(i, c):
        nearest = jnp.argmin(((x[:, None] - c[None]) ** 2).sum(-1), 1)
        member = jax.nn.one_hot(nearest, c.shape[0])
        return (member.T @ x) / (member.sum(0)[:, None] + 1e-6)

    return lax.fori_loop(0, 5, step, centres)


def cluster_arguments(shape, rng):
    points, dims, centres = shape
    return floats((centres, dims), (points, dims), rng=rng)


@jax.jit
def many_attractors(start):
    def right(y):
        a, b, c = y
        return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])

    def step(y, _):
        k1 = right(y)
        k2 = right(y + 0.0025 * k1)
        k3 = right(y + 0.0025 * k2)
        k4 = right(y + 0.005 * k3)
        return y + 0.005 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y[0].mean()

    return lax.scan(step, start, None, length=100)[1]


@jax.jit
def slopes_on_grid(x):
    return jnp.stack(jnp.gradient(x))


TRAJECTORY = Workload("Lorenz by Runge-Kutta", trajectory, one_array, [(3,)], tolerance=1.0)
OSCILLATORS = Workload(
    "many oscillators", oscillators, lambda shape, rng: [0.1 * x for x in one_array(shape, rng)],
    [(1000, 2), (20, 2)], lambda rng: (rng.integers(10, 3000), 2), tolerance=1e-3,
)  # fmt: skip
GRAVITY = Workload(
    "n-body", gravity, lambda shape, rng: floats(shape, shape, rng=rng), [(512, 3), (30, 3)],
    lambda rng: (rng.integers(20, 700), 3), tolerance=1e-3,
)  # fmt: skip
HEAT = Workload("heat on a grid", heat, one_array, [(512, 512), (30, 30)], between(20, 600, 2), tolerance=1e-3)
FIELDS = Workload(
    "electromagnetic waves", fields, lambda shape, rng: floats(shape, shape, shape, rng=rng), [(128, 128)],
    between(10, 300, 2), tolerance=1e-3,
)  # fmt: skip
WAVE = Workload("wave on a torus", wave, one_array, [(512, 512), (30, 30)], between(20, 600, 2), tolerance=1e-3)
REACTION = Workload(
    "reaction and diffusion", reaction,
    lambda shape, rng: [np.float32(0.2) * np.abs(x) for x in floats(shape, shape, rng=rng)], [(200, 200), (30, 30)],
    between(20, 600, 2), tolerance=1e-3,
)  # fmt: skip
WHILE = Workload("while of ten turns", while_ten_times, one_array, [(100,)], between(2, 1000))
NEWTON = Workload(
    "Newton for each element", newton, lambda shape, rng: [np.abs(x) + 1 for x in one_array(shape, rng)],
    [(10_000,), (10,)], between(5, 30_000), tolerance=1e-3,
)  # fmt: skip
CHAIN = Workload(
    "scan of 3x3 products", chain_of_products, lambda shape, rng: floats(shape[1:], shape, rng=rng),
    [(2000, 3, 3)], lambda rng: (rng.integers(100, 3000), *(int(rng.integers(2, 7)),) * 2), tolerance=1e-2,
)  # fmt: skip
WARP = Workload(
    "dynamic time warping", warp, lambda shape, rng: floats(*[(n,) for n in shape], rng=rng), [(200, 200)],
    between(20, 300, 2), tolerance=1e-3,
)  # fmt: skip
CLUSTERS = Workload(
    "k-means", clusters, cluster_arguments, [(10_000, 16, 32), (100, 2, 3)],
    lambda rng: (rng.integers(100, 12_000), rng.integers(2, 32), rng.integers(2, 40)),
    tolerance=1e-1,  # a point that is as near to two centres goes to either
)  # fmt: skip
ATTRACTORS = Workload(
    "many Lorenz attractors", many_attractors, one_array, [(3, 1000), (3, 10)], lambda rng: (3, rng.integers(5, 3000)),
    tolerance=1e-2,
)  # fmt: skip
SLOPES = Workload(
    "slopes on a grid", slopes_on_grid, one_array, [(500, 500), (30, 30)], between(10, 600, 2),
    numpy=lambda x: np.stack(np.gradient(x)),
)  # fmt: skip
