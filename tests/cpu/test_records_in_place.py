"""Records that are updated where they lie: all members are read before the first is written, however stored."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
from styrax.core.settings.config import states

jnp = jax.numpy


@pytest.mark.parametrize("words", ["verify", "bounds"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8"])
@pytest.mark.parametrize("members", [2, 3, 4])
def test_members_that_read_one_another(members, dtype, words):
    def turned(package, x):
        return package.stack([x[:, (k + 1) % members] + x[:, k] for k in range(members)], 1)

    with states["styrax_debug"](words):
        for count in (1, 2, 15, 17, 100):
            x = (np.arange(count * members).reshape(count, members) % 7).astype(dtype)
            donated = jax.jit(lambda x: turned(jnp, x), donate_argnums=0)(jnp.array(x))
            np.testing.assert_array_equal(donated, turned(np, x))
            looped = jax.jit(lambda x: jax.lax.scan(lambda c, _: (turned(jnp, c), None), x, length=3)[0])(x)
            np.testing.assert_array_equal(looped, turned(np, turned(np, turned(np, x))))


@pytest.mark.parametrize("words", ["verify", "bounds"])
def test_a_gradient_whose_cotangents_are_turned_in_place(words):
    """Each turn reads both members of the cotangent that it overwrites; finite differences are the witness."""
    def loss(y, j):
        total = 0.0
        for _ in range(20):
            total = total + y.sum()
            y = y + j.stack([y[1], -j.sin(y[0])]) * 0.1
        return (y ** 2).sum() + total

    def scanned(y):
        def step(y, _):
            return y + jnp.stack([y[1], -jnp.sin(y[0])]) * 0.1, y.sum()

        y, sums = jax.lax.scan(step, y, None, length=20)
        return (y**2).sum() + sums.sum()

    ys = np.random.default_rng(0).normal(size=(40, 2))
    with states["styrax_debug"](words):
        slopes = np.asarray(jax.jit(jax.vmap(jax.grad(scanned)))(ys.astype(np.float32)))
    for y, slope in zip(ys, slopes, strict=True):
        for k in range(2):
            step = np.eye(2)[k] * 1e-5
            np.testing.assert_allclose(slope[k], (loss(y + step, np) - loss(y - step, np)) / 2e-5, 1e-3, 1e-3)
