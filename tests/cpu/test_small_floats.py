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
