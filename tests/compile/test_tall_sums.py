"""Sums over the rows of tall matrices are cut in parts, which threads share: values, bits by threads, and kinds."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

SHAPES = [(11_000, 100), (1_100, 1_000), (4_200, 255), (10_501, 101), (2_000_000, 1), (1_100, 3, 400)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "mean", "var", "argmax"])
def test_values(shape, name):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    x[3] = np.round(x[3])
    found = jax.jit(lambda x: getattr(jnp, name)(x, axis=0))(x)
    expected = getattr(np, name)(x.astype(np.float64), axis=0)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-4 if name == "sum" else 2e-6)


def test_infinities_and_nan_reach_their_columns():
    x = np.zeros((11_000, 100), np.float32)
    x[10_999, 7], x[0, 9], x[5_000, 99] = np.nan, np.inf, -np.inf
    expected = np.zeros(100, np.float32)
    expected[[7, 9, 99]] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(jax.jit(lambda x: x.sum(0))(x), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "int32", "complex64"])
def test_dtypes(dtype):
    x = np.random.default_rng(1).integers(-3, 4, (11_000, 100))
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x.sum(0))(jnp.asarray(x, dtype))).astype(complex),
                                  np.asarray(jnp.asarray(x.sum(0), dtype if dtype != "int8" else "int32"), complex))


def test_in_a_gradient_and_a_loop():
    x = np.random.default_rng(2).normal(size=(11_000, 100)).astype(np.float32)
    loss = lambda x: (x.sum(0) ** 2).sum()
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), np.broadcast_to(2 * x.sum(0, dtype=np.float64), x.shape),
                               rtol=1e-4, atol=1e-3)
    total = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + (x * i).sum(0), jnp.zeros(100)))(x)
    np.testing.assert_allclose(total, 3 * x.sum(0, dtype=np.float64), rtol=1e-4, atol=1e-3)


def test_bits_do_not_depend_on_threads():
    code = ("import styrax as jax, numpy as np; x = np.random.default_rng(0).normal(size=(11000, 100)).astype('f');"
            "print(np.asarray(jax.jit(lambda x: (x * x).sum(0))(x)).tobytes().hex())")
    found = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                            env={**__import__("os").environ, "STYRAX_NUM_THREADS": n}).stdout for n in ("1", "2")}
    assert len(found) == 1 and found != {""}
