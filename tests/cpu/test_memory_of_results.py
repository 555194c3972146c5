"""Intermediate values that lie in results' memory until those are written."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp


def step(x, w):
    """Results of several sizes, written at the end and on the way."""
    y = jnp.tanh(x @ w)
    z = y[:, ::-1] @ w.T
    loss = (z * x).sum(1)
    return y.T @ z, loss, jnp.cumsum(z[::-1], axis=0), jnp.sort(y, axis=1)


def expected(x, w):
    y = np.tanh(x @ w)
    z = y[:, ::-1] @ w.T
    return y.T @ z, (z * x).sum(1), np.cumsum(z[::-1], axis=0), np.sort(y, axis=1)


@pytest.mark.parametrize("shape", [(4, 3), (32, 32), (100, 64), (1, 1), (0, 5)])
@pytest.mark.parametrize("donated", [False, True])
def test_values(shape, donated):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=shape), rng.normal(size=(shape[1],) * 2)
    run = jax.jit(step, donate_argnums=(0, 1) if donated else ())
    with jax.enable_x64(True):
        for _ in range(3):
            for found, value in zip(run(jnp.asarray(x), jnp.asarray(w)), expected(x, w), strict=True):
                np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-9)


def test_in_a_loop_and_under_vmap_of_grad():
    rng = np.random.default_rng(1)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((3, 8, 6), (6, 6)))

    def loss(x, w):
        return sum((r ** 2).sum() for r in step(x, w))

    batched = jax.jit(jax.vmap(jax.grad(loss, argnums=(0, 1)), in_axes=(0, None)))(x, w)
    for i in range(3):
        for whole, one in zip(batched, jax.grad(loss, argnums=(0, 1))(x[i], w), strict=True):
            np.testing.assert_allclose(whole[i], one, rtol=2e-4, atol=2e-3)

    def turn(carry, _):
        y, norms, sums, _ = step(carry, w)
        return sums / (1 + jnp.abs(sums).max()), (y, norms)

    last, (ys, norms) = jax.jit(lambda x: jax.lax.scan(turn, x, None, length=5))(x[0])
    carry = x[0]
    for k in range(5):
        y, n, sums, _ = expected(carry, w)
        np.testing.assert_allclose(ys[k], y, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(norms[k], n, rtol=1e-4, atol=1e-4)
        carry = sums / (1 + np.abs(sums).max())
    np.testing.assert_allclose(last, carry, rtol=1e-4, atol=1e-5)


def test_workspaces_shrink():
    """Activations of a step lie where its new parameters will be."""
    def update(w, x):
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

    w, x = jnp.ones((256, 256)), jnp.ones((256, 256))
    told = jax.jit(update).lower(w, x).compile().memory_analysis()
    assert told.temp_size_in_bytes <= 3 * 256 * 256 * 4
