"""Indices that move evenly from lane to lane: compared, converted and as masks, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax import lax

DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]
WIDE = ["int64", "uint64", "float64", "complex128"]
COMPARED = ["lt", "le", "gt", "ge", "eq", "ne"]


def numbers(n: int, dtype: str) -> np.ndarray:
    """0, 1, … as the element type has them."""
    with np.errstate(over="ignore"):  # the largest float16 is 65504
        return np.arange(n).astype(jnp.dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES + WIDE)
@pytest.mark.parametrize("n", [1, 7, 16, 300, 70_000])
def test_numbers_of_indices(n, dtype):
    with styrax.enable_x64(dtype in WIDE):
        for jitted in (False, True):
            iota = lambda: lax.broadcasted_iota(jnp.dtype(dtype), (3, n), 1)
            found = np.asarray((styrax.jit(iota) if jitted else iota)())
            assert found.dtype == jnp.dtype(dtype)
            np.testing.assert_array_equal(found, np.broadcast_to(numbers(n, dtype), (3, n)))


@pytest.mark.parametrize("step", [1, -1, 3, -3, 40])
@pytest.mark.parametrize("op", COMPARED)
def test_comparisons_of_indices(op, step):
    """Of the last dimension's index with that of the first one, beyond its ends as well."""
    rows, columns = np.arange(9)[:, None], np.arange(133)
    for dtype in ("float32", "int8", "float64"):
        with styrax.enable_x64(dtype == "float64"):
            def chosen(x, limit, dtype=dtype):
                i, j = (lax.broadcasted_iota("int32", x.shape, d) for d in (0, 1))
                return jnp.where(getattr(lax, op)(step * j, 60 * i - limit), x, jnp.asarray(-1, dtype))

            x = (np.arange(9 * 133) % 100).reshape(9, 133).astype(dtype)
            for limit in (0, 100, -500):
                right = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
                         "eq": np.equal, "ne": np.not_equal}[op](step * columns, 60 * rows - limit)
                expected = np.where(right, x, np.asarray(-1, dtype))
                np.testing.assert_array_equal(styrax.jit(chosen, static_argnums=1)(x, limit), expected)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "complex64", "float64"])
@pytest.mark.parametrize("low, high", [(3, 9), (0, 200), (70, 0), (-5, 11), (-2, -3)])
def test_guarded_rows(low, high, dtype):
    """Reads beyond the ends of rows, whose conditions are comparisons of indices: paddings, triangles, shifts."""
    with styrax.enable_x64(dtype == "float64"):
        x = (np.arange(5 * 83) % 50 + 1).reshape(5, 83).astype(jnp.dtype(dtype))
        found = styrax.jit(lambda x: lax.pad(x, jnp.zeros((), x.dtype), ((1, 1, 0), (low, high, 0))))(x)
        wide = np.pad(x, ((1, 1), (max(low, 0), max(high, 0))))
        end = wide.shape[1] + min(high, 0)
        np.testing.assert_array_equal(np.asarray(found), wide[:, max(-low, 0):end])


def test_triangles():
    x = np.arange(1.0, 45 * 37 + 1, dtype=np.float32).reshape(45, 37)
    for k in (-50, -3, 0, 5, 50):
        for f, g in ((jnp.tril, np.tril), (jnp.triu, np.triu)):
            np.testing.assert_array_equal(styrax.jit(f, static_argnums=1)(x, k), g(x, k))
            slopes = styrax.jit(styrax.vmap(styrax.grad(lambda x, f=f, k=k: (f(x, k) ** 2).sum())))(x[None])
            np.testing.assert_array_equal(slopes[0], 2 * g(x, k))


def test_in_loops():
    """Comparisons with what a loop counts."""
    def steps(x):
        return lax.fori_loop(0, 50, lambda i, a: jnp.where(jnp.arange(41) < i, a + i, a - 1), x)

    expected = np.zeros(41)
    for i in range(50):
        expected = np.where(np.arange(41) < i, expected + i, expected - 1)
    np.testing.assert_array_equal(styrax.jit(steps)(np.zeros(41, np.float32)), expected.astype(np.float32))
