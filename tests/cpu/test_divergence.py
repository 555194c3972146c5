"""Scalars of loops over lanes that are the same in all of them: results are NumPy's, and nothing is gathered."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
from styrax import lax
from styrax import numpy as jnp

rng = np.random.default_rng(0)
x = rng.normal(size=1000).astype(np.float32)
taps = jnp.asarray(rng.normal(size=50), np.float32)


def shifted(x, n=900):
    return lax.fori_loop(0, 50, lambda k, c: c + lax.dynamic_slice(x, (k,), (n,)), jnp.zeros(n))


def filtered(x, taps):
    return lax.fori_loop(0, 50, lambda k, c: c + taps[k] * lax.dynamic_slice(x, (2 * k,), (900,)), jnp.zeros(900))


def counted_with_a_scalar(x):
    def step(_, carry):
        at, c = carry
        return (at * 3 + 1) % 101, c + lax.dynamic_slice(x, (at,), (900,))

    return lax.fori_loop(0, 50, step, (0, jnp.zeros(900)))


def stopped_by_each(x):
    """The counter of an element stands still when its own turns are over."""
    def one(v):
        return lax.while_loop(lambda s: s[1] < 10, lambda s: (s[0] + 1, s[1] + jnp.abs(v) + 0.5), (0, v))[0]

    return styrax.vmap(one)(x)


@pytest.mark.parametrize("jit", [False, True])
def test_values(jit):
    wrapped = styrax.jit if jit else lambda f: f
    wanted = sum(x[k:k + 900].astype(float) for k in range(50))
    np.testing.assert_allclose(wrapped(shifted)(x), wanted, rtol=1e-4, atol=1e-4)
    wanted = sum(float(taps[k]) * x[2 * k:2 * k + 900].astype(float) for k in range(50))
    np.testing.assert_allclose(wrapped(filtered)(x, taps), wanted, rtol=1e-4, atol=1e-4)
    at, total = 0, np.zeros(900)
    for _ in range(50):
        at, total = (at * 3 + 1) % 101, total + x[min(at, 100):][:900]
    last, found = wrapped(counted_with_a_scalar)(x)
    assert last == at
    np.testing.assert_allclose(found, total, rtol=1e-4, atol=1e-4)
    turns = np.ceil((10 - x) / (np.abs(x) + np.float32(0.5)))
    assert np.abs(np.asarray(wrapped(stopped_by_each)(x)) - np.maximum(turns, 0)).max() <= 1


def test_batches_derivatives_and_lengths():
    batch = np.stack([x, -x])
    np.testing.assert_allclose(styrax.jit(styrax.vmap(shifted))(batch), np.stack([shifted(x), -shifted(x)]), rtol=1e-5)
    slope = styrax.jit(styrax.grad(lambda x: filtered(x, taps).sum()))(x)
    wanted = np.zeros(1000)
    for k in range(50):
        wanted[2 * k:2 * k + 900] += float(taps[k])
    np.testing.assert_allclose(slope, wanted, rtol=1e-4, atol=1e-4)
    for n in (1, 7, 31, 33, 901):
        wanted = sum(x[k:k + n].astype(float) for k in range(50))
        np.testing.assert_allclose(styrax.jit(lambda x, n=n: shifted(x, n))(x), wanted, rtol=1e-4, atol=1e-4)


def test_nothing_is_gathered():
    for f, args in ((shifted, (x,)), (filtered, (x, taps)), (counted_with_a_scalar, (x,))):
        assert "gather" not in styrax.jit(f).lower(*args).compile().as_text("llvm"), f
