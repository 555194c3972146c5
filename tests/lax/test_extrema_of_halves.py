"""Extrema of float16 and bfloat16, which are compared as integers: of all bit patterns, against NumPy in float32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

HALVES = [np.float16, ml_dtypes.bfloat16]


def same(got: Any, x: np.ndarray, kind: str, axis: int | None) -> None:
    expected = getattr(np, kind)(x.astype(np.float32), axis=axis)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(got).astype(np.float32), expected)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", HALVES)
def test_all_bit_patterns(dtype: Any, kind: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    rng = np.random.default_rng(0)
    finite = every[np.isfinite(every.astype(np.float32))]
    for values, others in ((every, 11), (finite, 40), (finite, 9)):
        x = np.stack([values, *(rng.choice(values, len(values)) for _ in range(others))])
        same(jax.jit(lambda x: getattr(jnp, kind)(x, axis=0))(x), x, kind, 0)
        same(jax.jit(lambda x: getattr(jnp, kind)(x, axis=1))(x.T[::5]), x.T[::5], kind, 1)
    same(jax.jit(getattr(jnp, kind))(finite), finite, kind, None)
    same(jax.jit(getattr(jnp, kind))(every), every, kind, None)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0])
def test_one_value(dtype: Any, kind: str, value: float) -> None:
    for n in (1, 7, 9, 33, 300):
        x = np.full((3, n), value, dtype)
        same(jax.jit(lambda x: getattr(jnp, kind)(x, axis=1))(x), x, kind, 1)
        x[1, n // 2] = 1
        same(jax.jit(lambda x: getattr(jnp, kind)(x, axis=1))(x), x, kind, 1)


@pytest.mark.parametrize("dtype", HALVES)
def test_initial_values_gradients_and_loops(dtype: Any) -> None:
    x = np.random.default_rng(1).normal(size=(5, 40, 30)).astype(dtype)
    wide = x.astype(np.float32)
    got = jax.jit(jax.vmap(lambda x: jnp.max(x, axis=0, initial=1.5)))(x)
    np.testing.assert_array_equal(np.asarray(got, np.float32), wide.max(1, initial=1.5))
    got = jax.jit(lambda x: jnp.max(x, axis=2, where=x < 0, initial=-jnp.inf))(x)
    np.testing.assert_array_equal(np.asarray(got, np.float32), np.where(wide < 0, wide, -np.inf).max(2))
    last, all_ = jax.jit(lambda x: jax.lax.scan(lambda c, m: (jnp.maximum(c, m.max()), m.min(0)), x[0, 0, 0], x))(x)
    assert np.float32(last) == wide.max()
    np.testing.assert_array_equal(np.asarray(all_, np.float32), wide.min(1))
    slope = jax.jit(jax.grad(lambda x: jnp.max(x, axis=2).astype("float32").sum()))(x)
    among = wide == wide.max(2, keepdims=True)
    np.testing.assert_allclose(np.asarray(slope, np.float32), among / among.sum(2, keepdims=True), rtol=1e-2)
    assert jax.jit(lambda x: x.max(1))(np.zeros((0, 3), dtype)).shape == (0,)
