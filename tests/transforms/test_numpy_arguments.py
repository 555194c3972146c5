"""NumPy arrays and scalars as arguments of compiled functions: copied as they lie, whatever their layout."""

from __future__ import annotations

import jax as real
import ml_dtypes
import numpy as np
import pytest

import styrax

RNG = np.random.default_rng(3)
BASE = RNG.integers(0, 100, (6, 8)).astype(np.float32)


class Marked(np.ndarray):
    """A subclass, as libraries have them."""


ARRAYS = {
    "contiguous": BASE, "turned": BASE.T, "strided": BASE[::2, 1::3], "backwards": BASE[::-1, ::-1],
    "Fortran order": np.asfortranarray(BASE), "of no dimension": np.array(3.5, np.float32),
    "empty": np.zeros((0, 3), np.float32), "one element": BASE[:1, :1], "read only": BASE.copy(),
    "subclass": BASE.view(Marked), "broadcast": np.broadcast_to(BASE[0], (5, 8)),
    "unaligned": np.frombuffer(b"\0" + BASE.tobytes(), np.uint8)[1:].view(np.float32),
    "in a record": np.zeros(4, [("a", "i1"), ("b", "f4")])["b"],
    **{np.dtype(d).name: RNG.integers(0, 2, (3, 5)).astype(d) for d in (
        bool, np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float64, np.complex64, np.complex128,
        ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)},
}
ARRAYS["read only"].flags.writeable = False
SCALARS = [np.float32(2), np.int32(-3), np.bool_(True), np.uint8(7), np.float64(0.5), np.int64(2**40), np.complex64(1j),
           np.float16(1.5), ml_dtypes.bfloat16(3), np.float32("nan"), np.float32("-inf")]


def same(found, wanted):
    assert found.dtype == wanted.dtype and found.weak_type == wanted.weak_type and found.shape == wanted.shape
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays(kind, wide):
    x = ARRAYS[kind]
    with real.enable_x64(wide), styrax.enable_x64(wide):
        for wrap in (lambda x: x, lambda x: {"a": [x, 1.0]}, lambda x: (x, x)):
            wanted = real.jit(lambda t: real.tree.map(lambda v: v + v, t))(wrap(x))
            g = styrax.jit(lambda t: styrax.tree.map(lambda v: v + v, t))
            for _ in range(2):  # (a second call takes another way)
                found = g(wrap(x))
                for have, want in zip(styrax.tree.leaves(found), real.tree.leaves(wanted), strict=True):
                    same(have, want)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("number", range(len(SCALARS)))
def test_scalars(number, wide):
    x = SCALARS[number]
    with real.enable_x64(wide), styrax.enable_x64(wide):
        if isinstance(x, np.int64) and not wide:
            x = np.int64(5)
        wanted = real.jit(lambda x: x + x)(x)
        g = styrax.jit(lambda x: x + x)
        for _ in range(2):
            same(g(x), wanted)


def test_arrays_change_afterwards():
    x = np.arange(2000.0, dtype=np.float32)
    keep, add = styrax.jit(lambda x: x), styrax.jit(lambda x: x + 1)
    kept, added = keep(x), add(x)
    x[:] = -1
    np.testing.assert_array_equal(kept, np.arange(2000.0))
    np.testing.assert_array_equal(added, np.arange(2000.0) + 1)
    x[:] = 5
    np.testing.assert_array_equal(keep(x), np.full(2000, 5))


def test_precision_changes_between_calls():
    f = styrax.jit(lambda x: x + 1)
    for x in (np.arange(3), np.arange(3.0), np.arange(3, dtype=np.int32)):
        for wide in (False, True, False):
            with styrax.enable_x64(wide), real.enable_x64(wide):
                same(f(x), real.jit(lambda x: x + 1)(x))


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([None]), np.array(["2020"], "M8[D]"), BASE.astype(">f4")])
def test_no_numbers(bad):
    for wrap in (lambda x: x, lambda x: [x]):
        with pytest.raises(TypeError, match="as an abstract array"):
            styrax.jit(lambda t: t)(wrap(bad))


def test_other_byte_order():
    x = BASE.astype(">f4")
    for j in (styrax, real):
        for convert in (j.numpy.asarray, j.numpy.array, j.numpy.sin, j.device_put):
            with pytest.raises(TypeError):
                convert(x)
        np.testing.assert_array_equal(j.numpy.asarray(x, np.float32), BASE)


def test_donated_and_static():
    x = np.ones(5, np.float32)
    same(styrax.jit(lambda x: x + 1, donate_argnums=0)(x), real.jit(lambda x: x + 1)(x))
    same(styrax.jit(lambda x, n: x * n, static_argnums=1)(x, 3), real.jit(lambda x, n: x * n, static_argnums=1)(x, 3))
    np.testing.assert_array_equal(x, np.ones(5))
    same(styrax.jit(styrax.vmap(styrax.grad(lambda v: v ** 2)))(x), real.jit(real.vmap(real.grad(lambda v: v ** 2)))(x))
