"""Floats of few bits: all their values as float32, and what rounds to them, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

NAMES = [name for name in dir(ml_dtypes) if name.startswith(("float", "bfloat"))] + ["float16"]


def all_of(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    bits = ml_dtypes.finfo(dtype).bits
    return np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8).view(dtype)


@pytest.mark.parametrize("name", NAMES)
def test_all_values(name):
    """In vectors, and one at a time."""
    given = all_of(name)
    with np.errstate(all="ignore"):
        expected = given.astype(np.float32)
    whole = styrax.jit(lambda x: x.astype(jnp.float32))
    number = np.isfinite(expected)
    for found in (np.asarray(whole(given)), np.asarray(styrax.jit(lambda x: styrax.lax.map(whole, x))(given))):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(found[number].view(np.int32), expected[number].view(np.int32))
        np.testing.assert_array_equal(found[np.isinf(expected)], expected[np.isinf(expected)])


@pytest.mark.parametrize("name", NAMES)
def test_they_are_what_they_round_to(name):
    given = all_of(name)
    with np.errstate(all="ignore"):
        exact = given.astype(np.float32)
    found = np.asarray(styrax.jit(lambda x: x.astype(given.dtype))(exact))
    number = np.isfinite(exact)
    np.testing.assert_array_equal(found[number].view(given.dtype), given[number])
    assert np.isnan(found[np.isnan(exact)].astype(np.float32)).all()


def test_doubles_are_rounded_to_halves_once():
    """To what NumPy rounds to: at halves, in the middle between them, and next to that."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves = np.sort(halves[np.isfinite(halves)])
    middle = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([halves, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf),
                        middle * (1 + 2.0**-30), middle * (1 - 2.0**-30),
                        [np.inf, -np.inf, np.nan, -0.0, 65519.99999999, 65520, 1e300, -1e300, 1e-300, -1e-300, 5e-324,
                         2.0**-25, 2.0**-25 * (1 + 2.0**-40), -(2.0**-25)]])
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    with styrax.enable_x64(True):
        for part in (slice(None), slice(-14, None), slice(5, 6)):
            got = np.asarray(styrax.jit(lambda x: x.astype(np.float16))(x[part]))
            np.testing.assert_array_equal(got, want[part])
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want[part]))
