"""Quotients and remainders of integers: vectors of them divide as floating-point numbers."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax

DTYPES = ("int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def truncated(x: np.ndarray, y: np.ndarray, low: int, high: int) -> tuple[list[int], list[int]]:
    """XLA's quotient and remainder: rounded towards zero; by zero all ones and the dividend; what overflows wraps."""
    quotients, remainders = [], []
    for a, b in zip(map(int, x), map(int, y), strict=True):
        q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1
        remainders.append(a - q * b if b else a)
        quotients.append((q - low) % (high - low + 1) + low)
    return quotients, remainders


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of up to eight bits; of more the extremes, dividends beside multiples, and any."""
    info = jnp.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    if info.bits <= 8:
        every = np.arange(low, high + 1)
        x, y = np.meshgrid(every, every)
        return x.ravel(), y.ravel()
    rng = np.random.default_rng(0)
    edges = [low, low + 1, -1 % (high + 1), 0, 1, 2, 3, 7, high // 2, high // 2 + 1, high - 1, high] + [-1] * (low < 0)
    x, y = np.meshgrid(np.array(edges, object), np.array(edges, object))
    sizes = [2 ** int(k) for k in rng.integers(1, info.bits, 3000)]
    divisors = np.array([int(rng.integers(0, 2**62)) % n + 1 for n in sizes], object)
    multiples = np.array([d * (int(rng.integers(0, 2**62)) % (high // d)) if d < high else 0 for d in divisors], object)
    beside = multiples + rng.integers(-1, 2, 3000)
    signs = np.where(rng.random(3000) < 0.5, -1, 1) if low < 0 else 1
    divisors = np.minimum(divisors, high)
    return np.concatenate([x.ravel(), np.clip(beside, low, high)]), np.concatenate([y.ravel(), divisors * signs])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_form(dtype: str) -> None:
    x, y = pairs(dtype)
    info = jnp.iinfo(dtype)
    wanted_q, wanted_r = truncated(x, y, int(info.min), int(info.max))
    with jax.enable_x64(True):
        a, b = (jnp.asarray(np.array(v.tolist(), info.dtype)) for v in (x, y))
        for forms in (lambda x, y: (lax.div(x, y), lax.rem(x, y)),
                      jax.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))):
            q, r = forms(a, b)
            assert [int(v) for v in np.asarray(q)] == wanted_q
            assert [int(v) for v in np.asarray(r)] == wanted_r


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("bits", [8, 31, 32, 50, 51, 52])
def test_long_integers_that_are_short(dtype: str, bits: int) -> None:
    """Vectors of 64-bit integers whose values have up to so many bits, the extremes among them."""
    rng = np.random.default_rng(bits)
    top, low = 2**bits, 0 if dtype == "uint64" else -(2**bits)
    edges = [v for v in (low, low + 1, -1, 0, 1, 2, 3, top // 2, top - 1) if v >= low]
    x, y = (v.ravel() for v in np.meshgrid(np.array(edges, object), np.array(edges, object)))
    divisors = np.array([int(rng.integers(1, 2 ** int(k))) for k in rng.integers(1, bits + 1, 2000)], object)
    multiples = np.array([d * int(rng.integers(0, max((top - 1) // d, 1))) for d in divisors], object)
    x = np.concatenate([x, np.clip(multiples + rng.integers(-1, 2, 2000), low, top - 1)])
    y = np.concatenate([y, divisors * (np.where(rng.random(2000) < 0.5, -1, 1) if low else 1)])
    info = jnp.iinfo(dtype)
    wanted_q, wanted_r = truncated(x, y, int(info.min), int(info.max))
    with jax.enable_x64(True):
        a, b = (jnp.asarray(np.array(v.tolist(), dtype)) for v in (x, y))
        for size in (len(x), 1, 3, 17):
            q, r = jax.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))(a[:size], b[:size])
            assert [int(v) for v in np.asarray(q)] == wanted_q[:size]
            assert [int(v) for v in np.asarray(r)] == wanted_r[:size]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("divisor", [1, 3, 7])
def test_one_divisor_for_all(dtype: str, divisor: int) -> None:
    """As a constant, and as a value of a loop."""
    x, _ = pairs(dtype)
    info = jnp.iinfo(dtype)
    wanted_q, wanted_r = truncated(x, np.full(len(x), divisor), int(info.min), int(info.max))
    with jax.enable_x64(True):
        a = jnp.asarray(np.array(x.tolist(), info.dtype))
        d = jnp.asarray(np.array(divisor, info.dtype))
        constant = jax.jit(lambda x: (lax.div(x, jnp.full_like(x, d)), lax.rem(x, jnp.full_like(x, d))))
        carried = jax.jit(lambda x, d: lax.fori_loop(0, 1, lambda i, c: (
            lax.div(x, jnp.broadcast_to(d + i.astype(d.dtype), x.shape)),
            lax.rem(x, jnp.broadcast_to(d + i.astype(d.dtype), x.shape))), (x, x)))
        for q, r in (constant(a), carried(a, d)):
            assert [int(v) for v in np.asarray(q)] == wanted_q
            assert [int(v) for v in np.asarray(r)] == wanted_r


@pytest.mark.parametrize("name", ["div", "rem"])
def test_long_integers_that_are_known_to_be_short(name):
    """Counted numbers in 64 bits, divided by others, 0 and negative ones too."""
    f = getattr(lax, name)
    with jax.enable_x64(True):
        x, divisors = np.arange(-50, 50), np.arange(-7, 8)

        @jax.jit
        def counted():
            return f(lax.iota(np.int64, 100)[:, None] - 50, (lax.iota(np.int64, 15) - 7)[None, :])

        @jax.jit
        def turns():
            def turn(i, y):
                return y.at[:, i].set(f(lax.iota(np.int64, 100) - 50, i - 7))

            return lax.fori_loop(0, 15, turn, jnp.zeros((100, 15), np.int64))

        @jax.jit
        def given(x):  # of which nothing is known
            return f(x[:, None], divisors[None, :].astype(np.int64))

        safe = np.where(divisors == 0, 1, divisors)
        quotient = np.trunc(x[:, None] / safe).astype(np.int64)
        want = np.where(divisors == 0, -1, quotient) if name == "div" else np.where(
            divisors == 0, x[:, None], x[:, None] - quotient * divisors)
        for found in (counted(), turns(), given(x)):
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, want)
        small = jax.jit(lambda: f(lax.iota(np.uint64, 100)[:, None], lax.iota(np.uint64, 15)[None, :]))()
        quotients, remainders = truncated(np.repeat(np.arange(100), 15), np.tile(np.arange(15), 100), 0, 2**64 - 1)
        np.testing.assert_array_equal(np.ravel(small), np.array(quotients if name == "div" else remainders, np.uint64))
        least = np.array([np.iinfo(np.int32).min, np.iinfo(np.int64).min], np.int64)
        np.testing.assert_array_equal(jax.jit(lambda x: f(x, np.int64(-1)))(least),
                                      [2**31, least[1]] if name == "div" else [0, 0])
