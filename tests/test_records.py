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


def strided(x, start, step):
    """The slope of the squares of every so many elements, by NumPy."""
    out = np.zeros_like(x)
    out[..., start::step] = 2 * x[..., start::step]
    return out


@pytest.mark.parametrize("start", [0, 1, 2, 3, 7, 40])
@pytest.mark.parametrize("step", [2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("size", [1, 41, 96, 145, 1000])
def test_slopes_of_every_so_many(size, step, start):
    x = np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)
    x[0, ::7] = np.nan
    x[1, ::5] = np.inf
    slope = styrax.grad(lambda x: (x[..., start::step] ** 2).sum())
    np.testing.assert_array_equal(styrax.jit(slope)(x[2]), strided(x[2], start, step))
    np.testing.assert_array_equal(styrax.jit(styrax.vmap(slope))(x), strided(x, start, step))
    np.testing.assert_array_equal(styrax.jit(slope)(x.T[:, 2].copy()), strided(x[2], start, step))
    turned = styrax.jit(lambda x: styrax.lax.fori_loop(0, 3, lambda _, x: slope(x) + x, x))(x[2])
    want = x[2]
    for _ in range(3):
        want = strided(want, start, step) + want
    np.testing.assert_array_equal(turned, want)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int8", "bool", "complex64"])
@pytest.mark.parametrize("low", [-40, -3, -1, 0, 1, 2, 5, 17])
@pytest.mark.parametrize("high", [-2, 0, 4])
@pytest.mark.parametrize("interior", [1, 2, 6])
def test_elements_between(low, high, interior, dtype):
    rng = np.random.default_rng(low + 50)
    with styrax.enable_x64(True), real.enable_x64(True):
        x = jnp.asarray(rng.integers(0, 2, (4, 97)) if dtype == "bool" else rng.integers(-9, 9, (4, 97)), dtype)
        fill = jnp.asarray(1, dtype)
        for config in ([(0, 0, 0), (low, high, interior)], [(high, low + 40, interior), (low, high, interior)]):
            if 4 + 3 * config[0][2] + config[0][0] + config[0][1] < 0:
                continue
            want = real.lax.pad(np.asarray(x), np.asarray(fill), config)
            np.testing.assert_array_equal(styrax.jit(lambda x, f, c=config: styrax.lax.pad(x, f, c))(x, fill), want)
            np.testing.assert_array_equal(styrax.lax.pad(x, fill, config), want)


@pytest.mark.parametrize("size", [66, 97, 100])
def test_members_that_depend_on_what_is_left_over(size):
    """Records of which the last is not whole, beside others that share their loops."""
    def program(j, x):
        i = j.numpy.arange(size)
        a = j.numpy.where(i % 3 == 1, x[i // 3], x * 2)
        b = j.numpy.where(i % 5 == 0, a + 1, x[i // 5])
        return a, b, a * b, (a - b).sum()

    x = np.random.default_rng(size).normal(size=size).astype(np.float32)
    for found, want in zip(styrax.jit(lambda x: program(styrax, x))(x), real.jit(lambda x: program(real, x))(x),
                           strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-5)
