"""Memory that is filled with one byte, or copied as a block: of every dtype, alone, in loops, in parts, by threads."""

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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 3, 8, 37, 200, 1000])
def test_rows_that_are_copied(width, dtype):
    x = np.arange(20 * width).reshape(20, width) % 5
    x = np.asarray(jnp.asarray(x > 2 if dtype == "bool" else x, dtype))
    i = np.array([3, 0, 19, -1, 7])
    for f in (lambda np, x: x[i], lambda np, x: x[:, 1:-1], lambda np, x: np.concatenate([x[5:], x, x[:3]]),
              lambda np, x: np.concatenate([x, x[:, :2]], 1), lambda np, x: np.roll(x, 2, 1),
              lambda np, x: np.stack([x, x[::-1]])):
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda x, f=f: f(jnp, x))(x)), f(np, x))
        batch = np.asarray(jax.jit(jax.vmap(lambda x, f=f: f(jnp, x)))(np.stack([x, x[::-1]])))
        np.testing.assert_array_equal(batch[1], f(np, x[::-1]))


def test_which_are_copied():
    x = {dtype: np.zeros((20, 1000), jnp.dtype(dtype)) for dtype in ("float32", "complex64", "int8", "bool", "int4")}
    copies = {dtype: "llvm.memcpy" in text(lambda x: x[:, 1:], a) for dtype, a in x.items()}
    assert copies == {"float32": False, "complex64": True, "int8": True, "bool": True, "int4": False}
    assert "llvm.memcpy" in text(lambda x: x[:, 1:10], x["float32"])
    assert "llvm.memcpy" not in text(lambda x: x[:, ::-1], x["int8"])


def test_what_moves_within_its_own_memory():
    x = np.arange(100, dtype=np.int8)
    last, _ = jax.jit(lambda x: jax.lax.scan(lambda c, _: (c.at[1:].set(c[:-1]), None), x, None, length=3))(x)
    np.testing.assert_array_equal(last, [0, 0, 0, *x[:-3]])
    got = jax.jit(lambda x: x.at[2:].set(x[:-2]), donate_argnums=0)(jnp.asarray(x))
    np.testing.assert_array_equal(got, [0, 1, *x[:-2]])
