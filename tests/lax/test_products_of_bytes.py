"""Products of 8-bit and 16-bit integers of all values against NumPy's: sums wrap around as their dtype does."""

import itertools

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax import lax

SHAPES = [(512, 300, 200), (100, 300, 130), (16, 16, 600), (17, 33, 1025), (129, 31, 4000), (40, 64, 64), (1, 70, 90),
          (64, 64, 3), (15, 0, 20), (0, 5, 7), (30, 40, 1)]
KINDS = [("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"), ("uint8", "int8"), ("int16", "int8")]


def drawn(shape, dtype, seed=0):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_layouts(shape, kinds):
    m, k, n = shape
    for turned_left, turned_right in itertools.product((False, True), repeat=2):
        x = drawn((k, m) if turned_left else (m, k), kinds[0])
        y = drawn((n, k) if turned_right else (k, n), kinds[1], 1)
        dimensions = (((int(not turned_left),), (int(turned_right),)), ((), ()))
        want = (x.T if turned_left else x).astype(np.int64) @ (y.T if turned_right else y).astype(np.int64)
        for out in ("int32", "int16") if kinds[0] == kinds[1] else ("int32",):
            found = styrax.jit(lambda x, y, d=dimensions, out=out: lax.dot_general(
                x, y, d, preferred_element_type=out))(x, y)
            np.testing.assert_array_equal(found, want.astype(out))


@pytest.mark.parametrize("kinds", KINDS[:4], ids="-".join)
def test_in_batches_and_loops(kinds):
    x, y = drawn((3, 40, 70), kinds[0]), drawn((3, 70, 50), kinds[1], 1)
    want = np.einsum("bij,bjk->bik", x.astype(np.int64), y.astype(np.int64)).astype(np.int32)

    def product(x, y):
        return jnp.matmul(x, y, preferred_element_type="int32")

    np.testing.assert_array_equal(styrax.jit(product)(x, y), want)
    np.testing.assert_array_equal(styrax.vmap(product)(x, y), want)
    np.testing.assert_array_equal(styrax.jit(lambda x, y: lax.map(lambda a: product(*a), (x, y)))(x, y), want)
    total = styrax.jit(lambda x, y: lax.fori_loop(0, 3, lambda i, c: c + product(x[i], y[i]) * (i + 1),
                                                  jnp.zeros((40, 50), "int32")))(x, y)
    np.testing.assert_array_equal(total, sum(want[i] * (i + 1) for i in range(3)))


def test_with_what_is_around():
    """Quantised layers: what makes the bytes and what becomes of the sums."""
    x, w = np.random.default_rng(0).normal(size=(100, 300)).astype("f4"), drawn((300, 80), "int8")
    scale = np.float32(np.abs(x).max() / 127)

    def layer(x, w):
        q = jnp.clip(jnp.round(x / scale), -127, 127).astype("int8")
        return jnp.maximum(lax.dot(q, w, preferred_element_type=jnp.int32).astype("f4") * (scale * 0.01) - 1, 0)

    q = np.clip(np.round(x / scale), -127, 127).astype(np.int64)
    want = np.maximum((q @ w.astype(np.int64)).astype("f4") * (scale * np.float32(0.01)) - 1, 0)
    np.testing.assert_allclose(styrax.jit(layer)(x, w), want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(layer(x, w), want, rtol=1e-6, atol=1e-6)
