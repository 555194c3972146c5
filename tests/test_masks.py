"""What is chosen, carried and gathered under masks, in rows of all lengths, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax import lax

SIZES = [1, 3, 8, 17, 64, 131, 1000]
DTYPES = ["float32", "float64", "bfloat16", "int8", "int32", "bool"]
FOLDS = {"any": (jnp.any, np.any), "all": (jnp.all, np.all),
         "xor": (lambda x, axis: lax.reduce(x, False, lax.bitwise_xor, (axis,)), np.logical_xor.reduce)}


def values(shape, dtype, seed=0):
    x = np.random.default_rng(seed).integers(-4, 5, shape)
    return (x > 3 if dtype == "bool" else x).astype(jnp.dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fold", FOLDS)
def test_folds_of_booleans(fold, dtype):
    """Along either axis, one of which is the vector, of what is compared and of what is stored."""
    ours, theirs = FOLDS[fold]
    with styrax.enable_x64(dtype == "float64"):
        for n in SIZES:
            for axis in (0, 1):
                x = values((n, 37) if axis == 0 else (37, n), dtype, n)
                for limit in (-5, -4, 0, 3):
                    held = x.astype(np.float64) > limit
                    compared = styrax.jit(lambda x, limit=limit, axis=axis: ours(x.astype("float32") > limit, axis))
                    np.testing.assert_array_equal(compared(x), theirs(held, axis))
                    stored = styrax.jit(lambda x, axis=axis: ours(x, axis))
                    np.testing.assert_array_equal(stored(held), theirs(held, axis))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "uint32", "bool"])
def test_places_of_extrema(name, dtype):
    """The first of equals; of numbers that are none, the first; where all are the worst there is."""
    inexact = dtype.startswith("float")
    with styrax.enable_x64(dtype == "float64"):
        for n in SIZES:
            x = values((29, n), dtype, n)
            if inexact:
                x[3:9] = np.where(values((6, n), "int32", 7) > 2, np.nan, x[3:9])
                x[9], x[10], x[11], x[12, n // 2:] = np.nan, np.inf, -np.inf, -np.inf
            for axis in (0, 1, None):
                found = styrax.jit(lambda x, axis=axis: getattr(jnp, name)(x, axis))(x)
                np.testing.assert_array_equal(found, getattr(np, name)(x, axis))
                assert found.dtype == (np.int64 if dtype == "float64" else np.int32)


def test_extrema_in_loops_and_under_vmap_of_grad():
    x = np.random.default_rng(1).standard_normal((5, 41, 23)).astype(np.float32)
    slopes = styrax.jit(styrax.vmap(styrax.grad(lambda x: x[jnp.arange(41), jnp.argmax(x, 1)].sum())))(x)
    np.testing.assert_array_equal(slopes, np.arange(23) == x.argmax(2)[..., None])
    places = lax.scan(lambda c, row: (jnp.where(jnp.arange(23) == jnp.argmax(c), -9.0, c), jnp.argmax(c)),
                      x[0, 0], None, length=23)[1]
    np.testing.assert_array_equal(places, np.argsort(-x[0, 0]))


@pytest.mark.parametrize("n", SIZES)
def test_booleans_that_loops_carry(n):
    """One for each element: in a loop of known length, and in one that each element ends by itself."""
    x = np.linspace(0.5, 3.0, n, dtype=np.float32)

    def steps(x):
        return lax.fori_loop(0, 9, lambda _, c: (c[0] * 1.2, c[1] & (c[0] < 4), c[2] ^ (c[0] > 2), c[3] | (c[0] > 7)),
                             (x, x > 0, x > 9, x < 0))

    found = styrax.jit(steps)(x)
    y, alive, odd, once = x.copy(), x > 0, x > 9, x < 0
    for _ in range(9):
        alive, odd, once = alive & (y < 4), odd ^ (y > 2), once | (y > 7)
        y = y * np.float32(1.2)
    np.testing.assert_allclose(found[0], y, 1e-6)
    for ours, theirs in zip(found[1:], (alive, odd, once), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    turns = styrax.jit(styrax.vmap(lambda x: lax.while_loop(
        lambda c: c[1], lambda c: (c[0] * 2, c[0] < 50, c[2] + 1), (x, x > 0, 0))[2]))(x)
    wanted = [next(k for k in range(99) if not (k == 0 or v * 2.0 ** (k - 1) < 50)) for v in x.astype(np.float64)]
    np.testing.assert_array_equal(turns, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16", "complex64", "bool"])
@pytest.mark.parametrize("size", [1, 5, 200])
def test_gathers_of_which_some_are_left_out(size, dtype):
    """Places outside, in operands that have one element, too."""
    with styrax.enable_x64(dtype == "float64"):
        x = values((size,), "float32" if dtype == "complex64" else dtype).astype(jnp.dtype(dtype))
        for n in (1, 7, 100):
            places = np.random.default_rng(n).integers(-3 * size - 2, 3 * size + 3, n).astype(np.int32)
            found = styrax.jit(lambda x, i: x.at[i].get(mode="fill", fill_value=1))(x, places)
            inside = (places >= -size) & (places < size)
            wanted = np.ones(n, x.dtype)
            wanted[inside] = x[places[inside]]
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("members", [2, 3, 4, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16"])
def test_records_whose_last_vector_is_part_of_one(members, dtype):
    with styrax.enable_x64(dtype == "float64"):
        for n in (1, 5, 16, 67, 1003):
            x = values((n, members), dtype, n) // 2  # (so that sums fit into a byte)
            weights = np.arange(1, members + 1).astype(x.dtype)
            found = styrax.jit(lambda x, w=weights, m=members: sum((x[:, k] * w[k] for k in range(m)), 0 * x[:, 0]))(x)
            np.testing.assert_array_equal(np.asarray(found, np.float64), sum(
                (x[:, k].astype(np.float64) * (k + 1) for k in range(members)), np.zeros(n)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "bfloat16", "float16", "int16", "float32", "complex64"])
@pytest.mark.parametrize("n", [1, 3, 7, 13, 29, 37, 61])
def test_rows_of_narrow_elements_that_end_within_a_vector(n, dtype):
    """Read with what lies around them left out, joined, and stored side by side or apart."""
    for rows in (1, 2, 19):
        x = values((rows, n), "float32" if dtype == "complex64" else dtype, n).astype(jnp.dtype(dtype))
        y = values((rows, n), "float32" if dtype == "complex64" else dtype, n + 1).astype(jnp.dtype(dtype))
        padded = styrax.jit(lambda x: jnp.pad(x, ((1, 2), (3, 1))).T)(x)
        np.testing.assert_array_equal(padded, np.pad(x, ((1, 2), (3, 1))).T)
        shifted = styrax.jit(lambda x: jnp.where(jnp.arange(x.shape[1]) % 3 == 1, jnp.roll(x, 2, 1), x))(x)
        np.testing.assert_array_equal(shifted, np.where(np.arange(n) % 3 == 1, np.roll(x, 2, 1), x))
        wanted = x.copy()
        wanted[:, ::2] = y[:, : (n + 1) // 2]
        stored = styrax.jit(lambda x, y, n=n: x.at[:, ::2].set(y[:, : (n + 1) // 2]))(x, y)
        np.testing.assert_array_equal(stored, wanted)
        np.testing.assert_array_equal(styrax.jit(lambda *z: jnp.stack(z, -1))(x, y, x), np.stack([x, y, x], -1))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "int4", "uint4"])
def test_shifts_by_constants(dtype):
    """By all that are inside, by the width, by more, and by fewer than none."""
    with styrax.enable_x64(dtype == "int64"):
        x = jnp.arange(-40, 41, 3).astype(dtype)
        width = 4 if dtype.endswith("4") and "6" not in dtype else jnp.dtype(dtype).itemsize * 8
        for amount in (0, 1, width - 1, width, width + 1, -1):
            if amount > jnp.iinfo(dtype).max or amount < jnp.iinfo(dtype).min:
                continue
            given = jnp.full(x.shape, amount, dtype)
            for shift in (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic):
                constant = styrax.jit(lambda x, s=shift, a=amount: s(x, jnp.asarray(a, dtype)))(x)
                np.testing.assert_array_equal(constant, styrax.jit(shift)(x, given))
                bits = np.asarray(x.astype("int64" if dtype == "int64" else "int32")) & (2 ** width - 1) if (
                    shift is lax.shift_left and width < 32) else None
                if bits is not None:
                    moved = bits << amount & (2 ** width - 1) if 0 <= amount < width else 0 * bits
                    np.testing.assert_array_equal(np.asarray(constant.astype("int32")) & (2 ** width - 1), moved)
