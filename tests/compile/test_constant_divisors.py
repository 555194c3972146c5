"""Divisors that are constants: products with reciprocals, as XLA has them; under strict numerics quotients."""

import warnings

import jax as real
import numpy as np
import pytest

import styrax
from styrax import lax
from styrax.core.settings import config

DIVISORS = [3.0, -7.0, 127.5, 1e-3, 1e20, 0.5, 0.0, np.inf, -np.inf, np.nan, 1e-310, 1e-40, 3e38, 2e-38]
VALUES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1e38, -1e-38, 1e-45, *np.random.default_rng(0).normal(size=99) * 100]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients(divisor, dtype):
    with warnings.catch_warnings(), styrax.enable_x64(True), real.enable_x64(True):
        warnings.simplefilter("ignore")
        x, c = np.array(VALUES).astype(dtype), np.array(divisor).astype(dtype)[()]
        info = np.finfo(dtype)
        least = 0 if dtype == "float16" else info.tiny
        zero = lambda v: np.where(np.abs(v) < least, np.copysign(0, v), v).astype(dtype)
        quotients = zero(zero(x) / zero(c))  # subnormal numbers count as zeros
        for f in (lambda x: x / c, lambda x: lax.div(x, lax.full_like(x, c))):
            found = np.asarray(styrax.jit(f)(x))
            np.testing.assert_allclose(found, quotients, rtol=2 * info.eps, atol=info.tiny)
            np.testing.assert_array_equal(styrax.jit(styrax.vmap(f))(x[None])[0], found)
            with config.numerics("strict"):
                np.testing.assert_array_equal(styrax.jit(f)(x), quotients)
        normal = (np.abs(quotients) > info.tiny) & (np.abs(x) > info.tiny)
        if dtype != "float16" and info.tiny <= abs(c) <= 1e30:
            np.testing.assert_array_equal(found[normal], np.asarray(real.jit(lambda x: x / c)(x))[normal])


def test_slopes_and_integers():
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    np.testing.assert_allclose(styrax.jit(styrax.grad(lambda x: (x / 3).sum()))(x), np.full(9, 1 / 3), rtol=1e-6)
    n = np.arange(-9, 9)
    np.testing.assert_array_equal(styrax.jit(lambda n: lax.div(n, 4))(n.astype(np.int32)), np.trunc(n / 4))
