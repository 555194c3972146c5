"""Products over few terms: added in order with one rounding each, the same bits eagerly, jitted and batched."""

from fractions import Fraction

import jax as real
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp


def in_order(x: np.ndarray, y: np.ndarray) -> np.floating:
    """The sum of products in order, each rounded once with the sum so far."""
    total = x.dtype.type(0)
    for a, b in zip(x, y, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(total))
        total = rounded(exact, x.dtype)
    return total


def rounded(exact: Fraction, dtype: np.dtype) -> np.floating:
    """The nearest number of a dtype; for float32 among the neighbours of what float64 rounds to."""
    near = dtype.type(float(exact))
    if dtype == np.float64:
        return near
    around = [np.nextafter(near, dtype.type(-np.inf)), near, np.nextafter(near, dtype.type(np.inf))]
    return min(around, key=lambda v: abs(Fraction(float(v)) - exact))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_eager_and_jitted_products_add_in_order(k, dtype):
    rng = np.random.default_rng(k)
    with styrax.enable_x64(dtype is np.float64):
        for m, n in [(1, 1), (2, 3), (7, 33)]:
            a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
            wanted = np.array([[in_order(row, column) for column in b.T] for row in a])
            for f, got, expected in [
                (jnp.matmul, (a, b), wanted),
                (jnp.matmul, (a, b[:, 0]), wanted[:, 0]),
                (jnp.dot, (a[0], b[:, 0]), wanted[0, 0]),
                (styrax.vmap(jnp.dot, (0, None)), (a, b[:, 0]), wanted[:, 0]),
                (lambda x, y: jnp.matmul(x[None], y[None])[0], (a, b), wanted),
            ]:
                given = [jnp.asarray(x) for x in got]
                assert np.asarray(f(*given)).tobytes() == expected.tobytes()
                assert np.asarray(styrax.jit(f)(*given)).tobytes() == expected.tobytes()


def test_derivatives_of_short_products():
    a, x = jnp.float32([[2 / 3, 0.5], [0.5, 0.75]]), jnp.float32([1.6226423, 2.0252647])
    pull = lambda f: styrax.grad(lambda a, x: (f(a, x) ** 2).sum(), (0, 1))(a, x)
    for eager, jitted in zip(pull(jnp.matmul), pull(styrax.jit(jnp.matmul)), strict=True):
        np.testing.assert_array_equal(eager, jitted)
    theirs = real.grad(lambda a, x: ((a @ x) ** 2).sum(), (0, 1))(np.asarray(a), np.asarray(x))
    for ours, wanted in zip(pull(jnp.matmul), theirs, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)


@pytest.mark.parametrize("k", [0, 1, 2, 8, 9, 40])
def test_special_values_and_lengths(k):
    """Few terms and many, on either side of where the programs part."""
    a = np.ones((5, k), np.float32)
    x = np.ones(k, np.float32)
    if k:
        a[0, 0], a[1, k - 1], x[0] = np.inf, np.nan, -0.0
    with np.errstate(invalid="ignore"):
        for ours in (jnp.asarray(a) @ jnp.asarray(x), styrax.jit(jnp.matmul)(a, x)):
            np.testing.assert_array_equal(ours, real.numpy.matmul(a, x))
