"""Arrays put together along their last, short dimension: members of records are computed side by side."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
from styrax import numpy as jnp

X, Y = np.random.default_rng(8).normal(size=(2, 70)).astype(np.float32)
X[:4] = np.nan, np.inf, -np.inf, -0.0


def slow(j, x):
    """What is too long to be computed for each member."""
    for k in range(5):
        x = j.numpy.sin(x) + j.numpy.exp(-x * x) * k
    return x


PROGRAMS = {
    "pair": lambda j, x, y: j.numpy.stack([x * y - x, x + y], -1),
    "pair and what becomes of it": lambda j, x, y: (lambda p: (p, p * 2 + 1, p.sum(-1)))(
        j.numpy.stack([x * y, x - y], -1)),
    "members of several kinds": lambda j, x, y: j.numpy.concatenate(
        [x[:, None] * 2, j.numpy.stack([y, x - y], -1), j.numpy.ones((x.shape[0], 2), x.dtype)], -1),
    "eight members": lambda j, x, y: j.numpy.stack([x + k * y for k in range(8)], -1),
    "nine members": lambda j, x, y: j.numpy.stack([x + k * y for k in range(9)], -1),
    "long members": lambda j, x, y: j.numpy.stack([slow(j, x), slow(j, y), slow(j, x - y)], -1),
    "long members, twice": lambda j, x, y: (
        j.numpy.stack([slow(j, x), slow(j, y)], -1) + j.numpy.stack([slow(j, y * 2), slow(j, x + 1)], -1)).T.copy(),
    "columns": lambda j, x, y: j.numpy.stack([x * y - x, x + y], 0),
    "matrices": lambda j, x, y: j.numpy.stack(
        [j.numpy.stack([j.numpy.cos(x), -j.numpy.sin(y)], -1), j.numpy.stack([j.numpy.sin(x), y], -1)], -2),
    "cross product": lambda j, x, y: j.numpy.cross(
        j.numpy.stack([x, y, x + y], -1), j.numpy.stack([y, x * 2, x - y], -1)),
    "pairs of pairs": lambda j, x, y: j.numpy.stack([x[::2] - y[1::2], x[1::2] * y[::2]], -1).reshape(-1),
}


@pytest.mark.parametrize("name, size", [(name, size) for name in PROGRAMS for size in (0, 1, 2, 16, 70)
                                        if name != "pairs of pairs" or size % 2 == 0])
def test_values(name, size):
    f = PROGRAMS[name]
    x, y = X[:size], Y[:size]
    found, want = styrax.jit(lambda x, y: f(styrax, x, y))(x, y), real.jit(lambda x, y: f(real, x, y))(x, y)
    for a, b in zip(styrax.tree.leaves(found), real.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("name", ["pair", "long members", "cross product", "matrices"])
def test_slopes_and_loops(name):
    f = PROGRAMS[name]
    x, y = X[4:24], Y[4:24]

    def program(j):
        def turn(c, _):
            out = f(j, *c)
            return (c[0] * 0.5 + out.reshape(20, -1).sum(-1) * 0.1, c[1] - 0.1 * c[0]), out

        total = lambda x, y: sum((leaf ** 2).sum() for leaf in j.tree.leaves(j.lax.scan(turn, (x, y), None, length=3)))
        return j.jit(j.grad(total, argnums=(0, 1)))

    for a, b in zip(program(styrax)(x, y), program(real)(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_donated_memory_is_not_overwritten_too_early():
    pair = lambda j, x: j.numpy.stack([slow(j, x[:, 1]), slow(j, x[:, 0])], -1)
    x = np.stack([X[4:], Y[4:]], -1)
    want = real.jit(lambda x: pair(real, x))(x)
    found = styrax.jit(lambda x: pair(styrax, x), donate_argnums=0)(jnp.array(x))
    np.testing.assert_allclose(found, want, rtol=3e-6, atol=3e-6)


def test_one_nest_without_memory_between():
    program = styrax.jit(lambda x, y: jnp.cross(x, y)).lower(
        np.ones((1000, 3), np.float32), np.ones((1000, 3), np.float32)).compile().runtime_executable().program
    assert len(program.statements) == 1 and not program.placement.workspace
