"""Loops inside a compiled program, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .catalog import Workload, floats


def oscillators(initial, drive):
    """A ring of scalars, each pulled towards its neighbour, as separate carries of one scan."""

    def step(carry, x):
        neighbours = carry[1:] + carry[:1]
        new = tuple(c + 0.05 * (jnp.sin(n) * x - c) for c, n in zip(carry, neighbours))
        return new, None

    last, _ = lax.scan(step, tuple(initial), drive)
    return sum(c * c for c in last)


scan_gradient = jax.jit(jax.grad(oscillators))


def oscillator_arguments(shape, rng):
    steps, carries = shape
    return [tuple(np.float32(v) for v in rng.standard_normal(carries)), *floats((steps,), rng=rng)]


@jax.jit
def products_in_a_loop(x):
    return lax.fori_loop(0, 1000, lambda i, y: y @ x, x)


def rotation(shape, rng):
    q, _ = np.linalg.qr(rng.standard_normal(shape))
    return [q.astype(np.float32)]


@jax.jit
def rnn(params, xs):
    def step(h, x):
        h = jnp.tanh(x @ params["wx"] + h @ params["wh"] + params["b"])
        return h, h

    h, hs = lax.scan(step, jnp.zeros((xs.shape[1], params["wh"].shape[0])), xs)
    return h, hs.mean(axis=0)


rnn_gradient = jax.jit(jax.grad(lambda params, xs: jnp.sum(rnn(params, xs)[1] ** 2)))


@jax.jit
def linear_recurrence(x):
    def join(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    return lax.associative_scan(join, (jnp.full_like(x, 0.9), x))[1]


@jax.jit
def driven(x, forces):
    """Many elements, each on its own, pulled by what each turn brings."""
    return lax.scan(lambda c, force: (0.9 * c + 0.1 * jnp.tanh(c + force), c), x, forces)


def driven_arguments(shape, rng):
    return floats(shape[1:], shape, rng=rng)


@jax.jit
@jax.grad
def fitted_rates(rates, x):
    """How the ends of many trajectories depend on the parameters that they share."""
    turn = lambda x, _: (x + 0.05 * (rates[0] * jnp.sin(x) - rates[1] * x**3), None)
    return jnp.mean(lax.scan(turn, x, None, length=50)[0] ** 2)


@jax.jit
def summed_gradients(params, xs, ys):
    """Gradients of small batches, added up one after the other."""

    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params[0]) @ params[1] - y) ** 2)

    add = lambda total, batch: (jax.tree_util.tree_map(jnp.add, total, jax.grad(loss)(params, *batch)), None)
    return lax.scan(add, jax.tree_util.tree_map(jnp.zeros_like, params), (xs, ys))[0]


def batches(shape, rng):
    number, size, inputs, hidden = shape
    first, second, xs, ys = floats((inputs, hidden), (hidden, 10), (number, size, inputs), (number, size, 10), rng=rng)
    return [(first / np.float32(np.sqrt(inputs)), second), xs, ys]


def rnn_arguments(shape, rng):
    steps, batch, hidden = shape
    wx, wh, b, xs = floats((hidden, hidden), (hidden, hidden), (hidden,), (steps, batch, hidden), rng=rng)
    scale = np.float32(0.5 / np.sqrt(hidden))
    return [{"wx": wx * scale, "wh": wh * scale, "b": b}, xs]


def draw_rnn(rng):
    return rng.integers(20, 150), rng.integers(1, 64), rng.integers(16, 200)


SCAN_GRADIENT = Workload(
    "scan gradient, scalar carries", scan_gradient, oscillator_arguments, [(614, 4), (614, 60)],
    lambda rng: (rng.integers(200, 900), rng.integers(6, 40)), tolerance=1e-3,
)  # fmt: skip
PRODUCTS = Workload(
    "fori_loop of small products", products_in_a_loop, rotation, [(10, 10), (4, 4)],
    lambda rng: (rng.integers(3, 24),) * 2, tolerance=1e-3,
)  # fmt: skip
RNN = Workload("rnn", rnn, rnn_arguments, [(100, 32, 128), (100, 1, 16)], draw_rnn, tolerance=1e-3)
RNN_GRADIENT = Workload(
    "rnn gradient", rnn_gradient, rnn_arguments, [(100, 32, 128), (100, 1, 16)], draw_rnn, tolerance=1e-3
)
LINEAR_RECURRENCE = Workload(
    "linear recurrence", linear_recurrence, lambda shape, rng: floats(shape, rng=rng), [(100_000,), (1000,)],
    lambda rng: (rng.integers(100, 300_000),),
)  # fmt: skip
WIDE_SCAN = Workload(
    "scan over wide rows", driven, driven_arguments, [(8, 100_000), (100, 5000)],
    lambda rng: (rng.integers(3, 200), rng.integers(1500, 30_000)),
)  # fmt: skip
FITTED_RATES = Workload(
    "gradient of shared rates", fitted_rates, lambda shape, rng: floats((2,), shape, rng=rng), [(20_000,), (300,)],
    lambda rng: (rng.integers(100, 50_000),), tolerance=1e-3,
)  # fmt: skip
SUMMED_GRADIENTS = Workload(
    "gradients of small batches, added up", summed_gradients, batches, [(16, 32, 64, 128)],
    lambda rng: (rng.integers(3, 40), rng.integers(4, 80), *rng.integers(10, 200, 2)), tolerance=1e-3,
)  # fmt: skip
