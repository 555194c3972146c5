"""Gathers of elements that no instruction gathers, under masks and without, at places of every kind."""

import jax
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

DTYPES = ["bool", "int8", "uint8", "int16", "bfloat16", "float16", "float8_e4m3fn", "float32"]


@pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_jax(dtype, mode):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=300) * 50).astype(jnp.dtype(dtype))
    for n in (0, 1, 15, 16, 1000):
        i = rng.integers(-400, 400, n).astype(np.int32)
        np.testing.assert_array_equal(
            np.asarray(styrax.jit(lambda x, i: jnp.take(x, i, mode=mode))(x, i)).astype(np.float32),
            np.asarray(jax.numpy.take(x, i, mode=mode)).astype(np.float32))
    if mode == "fill":
        m = rng.random(1000) < 0.5
        f = [j.jit(lambda x, i, m, n=j.numpy: n.where(m, x[i], n.zeros((), x.dtype))) for j in (styrax, jax)]
        i = rng.integers(0, 300, 1000).astype(np.int32)
        got, want = (np.asarray(g(x, i, m)).astype(np.float32) for g in f)
        np.testing.assert_array_equal(got, want)
        rows = [j.jit(lambda x, i, n=j.numpy: n.take(x.reshape(20, 15), i, axis=1, mode="fill")) for j in (styrax, jax)]
        got, want = (np.asarray(g(x, i[:40] - 100)).astype(np.float32) for g in rows)
        np.testing.assert_array_equal(got, want)
