"""The functions that turn tiles in registers: every size, tile and length, and no element besides."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import styrax
from styrax import numpy as jnp
from styrax.cpu import llvm, turning

rng = np.random.default_rng(0)


@pytest.mark.parametrize("size, lanes", [(size, lanes) for size in (2, 4, 8) for lanes in (4, 8, 16)
                                         if lanes >= 16 // size])  # tiles have a strip of rows at least
@pytest.mark.parametrize("strip", ["", "_whole"])
def test_there_and_back(size, lanes, strip):
    group = 16 // size
    dtype = np.dtype(f"u{size}")
    given = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    names = [f"turn_{way}_{size}_{lanes}{strip}" for way in ("in", "out")]
    libraries = [llvm.load(turning.source(name)) for name in names]  # (which keep the code)
    addresses = [library.address(name) for library, name in zip(libraries, names, strict=True)]
    into = ctypes.CFUNCTYPE(None, given[0], given[2], given[1], given[2], given[3])(addresses[0])
    out = ctypes.CFUNCTYPE(None, given[0], given[2], given[1], given[2], given[3])(addresses[1])
    for length in (group, group + 1, 9, 16, 17, 31):
        if length < (lanes if strip else group):
            continue
        for stride in (length, length + 3):
            matrix = rng.integers(0, 1 << 16, (lanes, stride)).astype(dtype)
            tile = np.full(length * lanes + 2, 7, dtype)
            into(tile.ctypes.data + size, lanes, matrix.ctypes.data, stride, length)
            np.testing.assert_array_equal(tile[1:-1].reshape(length, lanes), matrix[:, :length].T)
            assert tile[0] == tile[-1] == 7
            wide = np.full((length, lanes + 5), 7, dtype)
            into(wide.ctypes.data + 2 * size, lanes + 5, matrix.ctypes.data, stride, length)
            np.testing.assert_array_equal(wide[:, 2:-3], matrix[:, :length].T)
            assert (wide[:, :2] == 7).all() and (wide[:, -3:] == 7).all()
            back = np.full((lanes, stride), 9, dtype)
            out(back.ctypes.data, stride, tile.ctypes.data + size, lanes, length)
            np.testing.assert_array_equal(back[:, :length], matrix[:, :length])
            assert (back[:, length:] == 9).all()
            again = np.full((lanes, stride), 9, dtype)
            out(again.ctypes.data, stride, wide.ctypes.data + 2 * size, lanes + 5, length)
            np.testing.assert_array_equal(again, back)


SHAPES = [(0, 3), (1, 70), (3, 5), (16, 16), (17, 33), (40, 300), (300, 40), (5, 20, 40), (3, 50, 17), (2, 3, 64, 48)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int32", "uint64", "bool",
                                   "complex64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transposed_arrays(shape, dtype):
    with styrax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(1).integers(0, 99, shape)).astype(dtype)
        want = np.swapaxes(np.asarray(x), -1, -2)
        np.testing.assert_array_equal(styrax.jit(lambda x: jnp.swapaxes(x, -1, -2))(x), want)
        np.testing.assert_array_equal(jnp.swapaxes(x, -1, -2), want)
        batched = styrax.jit(styrax.vmap(lambda x: jnp.swapaxes(x, -1, -2)))(jnp.stack([x, x]))
        np.testing.assert_array_equal(batched, np.stack([want, want]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "uint8"])
@pytest.mark.parametrize("shape", [(512, 512), (32, 1024), (1024, 33), (17, 2048), (2, 256, 512), (16, 16, 512)],
                         ids=str)
def test_rows_a_power_of_two_apart(shape, dtype):
    x = jnp.asarray(np.random.default_rng(1).integers(0, 99, shape)).astype(dtype)
    want = np.swapaxes(np.asarray(x), -1, -2)
    np.testing.assert_array_equal(styrax.jit(lambda x: jnp.swapaxes(x, -1, -2))(x), want)
    scaled = styrax.jit(lambda x: jnp.swapaxes(x * x, -1, -2))(x)
    np.testing.assert_array_equal(scaled, np.swapaxes(np.asarray(x * x), -1, -2))
    np.testing.assert_array_equal(styrax.jit(lambda x: jnp.swapaxes(x[..., 16:], -1, -2))(x), want[..., 16:, :])


def test_transposed_in_loops_and_in_place():
    def turn(_, x):
        return jnp.roll(x.T, 1, 0)

    x = np.arange(2500, dtype=np.float32).reshape(50, 50)
    want = x
    for _ in range(5):
        want = np.roll(want.T, 1, 0)
    np.testing.assert_array_equal(styrax.jit(lambda x: styrax.lax.fori_loop(0, 5, turn, x), donate_argnums=0)(
        jnp.array(x)), want)
    np.testing.assert_array_equal(styrax.jit(lambda x: x.T, donate_argnums=0)(jnp.array(x)), x.T)
    slope = styrax.jit(styrax.grad(lambda x, w: (x.T * w).sum()))(x, want)
    np.testing.assert_array_equal(slope, want.T)


@pytest.mark.parametrize("symbol", ["turn_in_1_16", "turn_in_4_16_", "turn_up_4_16", "turn_in_4", "turn_in_4_x",
                                    "turn_"])
def test_other_names_are_none_of_the_family(symbol):
    assert turning.source(symbol) is None
