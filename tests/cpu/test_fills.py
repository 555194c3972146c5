"""Memory that is filled with one byte: by the C library, of every dtype, alone, in loops, in parts, and by threads."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.cpu import runtime
from styrax.cpu.copies_and_fills import FILLED

DTYPES = ["float32", "complex64", "int8", "bool", "bfloat16", "float16", "int32", "uint16", "int4", "float8_e5m2"]


def text(f, *args):
    return jax.jit(f).lower(*args).compile().as_text("llvm")


@pytest.mark.parametrize("value", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(dtype, value):
    if value < 0 and dtype in ("bool", "uint16"):
        value = 255
    for n in (0, 1, 7, FILLED - 1, FILLED, 5000, 300_001):
        got = jax.jit(lambda n=n: jnp.full((n,), value, dtype), static_argnums=0)(n)
        np.testing.assert_array_equal(np.asarray(got), np.full(n, value, jnp.dtype(dtype)))


def test_which_are_filled():
    assert "llvm.memset" in text(lambda: jnp.zeros(5000))
    assert "llvm.memset" in text(lambda: jnp.full(5000, -1))
    assert "llvm.memset" in text(lambda: jnp.zeros(5000, complex))
    assert "llvm.memset" not in text(lambda: jnp.full(5000, -0.0))
    assert "llvm.memset" not in text(lambda: jnp.full(5000, 0.0 + 1j))
    assert "llvm.memset" not in text(lambda: jnp.zeros(50))


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_and_loops(threads):
    x = np.random.default_rng(0).normal(size=(5, 2000)).astype(np.float32)
    before = runtime.num_threads()
    try:
        runtime.set_num_threads(threads)
        np.testing.assert_array_equal(jax.jit(lambda x: jnp.pad(x, ((3, 300), (2000, 3000))))(x),
                                      np.pad(x, ((3, 300), (2000, 3000))))
        last, all_ = jax.jit(lambda x: jax.lax.scan(lambda c, r: (jnp.zeros(2000), c + r), jnp.ones(2000), x))(x)
        np.testing.assert_array_equal(last, np.zeros(2000))
        np.testing.assert_array_equal(all_, x + (np.arange(5) == 0)[:, None].astype(np.float32))
        np.testing.assert_array_equal(jax.jit(lambda: jnp.zeros((3000, 1000)))(), np.zeros((3000, 1000)))
    finally:
        runtime.set_num_threads(before)
