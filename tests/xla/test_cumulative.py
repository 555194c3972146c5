"""Cumulative operations in StableHLO: few operations whatever the size, and the results of the CPU's compiler."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
from styrax import lax
from styrax.xla.stablehlo import module_text
from tests import xla_cpu

RNG = np.random.default_rng(0)
NAMES = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]
SPECIAL = np.array([1, -np.inf, 2, np.inf, 3, np.nan, 4], np.float32)


def on_both(name, x, **params):
    f = lambda x: getattr(lax, name)(x, **params)
    return xla_cpu.run(styrax.make_jaxpr(f)(x), x)[0], np.asarray(styrax.jit(f)(x))


def assert_same(found, wanted, rtol=2e-5):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if found.dtype.kind == "i":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=2e-5)


@pytest.mark.parametrize("shape, axis, reverse", [((100,), 0, False), ((3, 300), 1, True), ((300, 2), 0, False)])
@pytest.mark.parametrize("name", NAMES)
def test_values(name, shape, axis, reverse):
    x = RNG.normal(size=shape).astype(np.float32) + (name == "cumprod")
    assert_same(*on_both(name, x, axis=axis, reverse=reverse))


@pytest.mark.parametrize("name", NAMES)
def test_long_rows(name):
    """Blocks of blocks."""
    x = (1 + 1e-5 * RNG.normal(size=20_000)).astype(np.float32)
    assert_same(*on_both(name, x), rtol=1e-4)


@pytest.mark.parametrize("name, dtype", [
    *((name, dtype) for name in NAMES[:4] for dtype in (np.int8, np.int32, np.complex64)),
    ("cumlogsumexp", np.complex64)])  # the logarithm of an empty sum is no integer
def test_dtypes(name, dtype):
    x = RNG.integers(-3, 4, (2, 9)).astype(dtype)
    assert_same(*on_both(name, x * (1 - 2j) if dtype == np.complex64 else x, axis=1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [7, 200])
def test_special_values(name, size):
    """At the place of each, alone and behind others; in blocks, too."""
    x = np.ones((len(SPECIAL), size), np.float32)
    x[range(len(SPECIAL)), range(len(SPECIAL))] = SPECIAL
    x[0, :len(SPECIAL)] = SPECIAL
    assert_same(*on_both(name, x, axis=1))


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 200), (200, 0)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_few_elements(name, shape):
    assert_same(*on_both(name, np.full(shape, 2, np.float32), axis=len(shape) - 1))


@pytest.mark.parametrize("name", NAMES)
def test_text_does_not_grow(name):
    def lines(n):
        x = styrax.ShapeDtypeStruct((n,), np.float32)
        return len(module_text(styrax.make_jaxpr(getattr(lax, name))(x)).splitlines())

    assert lines(100) < 25 and lines(10**6) < 150
