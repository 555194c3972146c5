"""Floats as integers, at every type's ends, against JAX: in vectors, in their tails and alone."""

import jax as real
import numpy as np
import pytest

import styrax as jax

ENDS = [2.0**n + d for n in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)]
VALUES = np.array([0, 0.5, 0.99, 3.5, 1e30, np.inf, np.nan, *ENDS])
VALUES = np.concatenate([VALUES, -VALUES, np.nextafter(VALUES, np.inf), np.nextafter(-VALUES, -np.inf)])
WIDE = ("int64", "uint64", "float64")


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32",
                                    "uint32", "int64", "uint64"])
def test_every_end(source, target):
    x64 = source in WIDE or target in WIDE
    with jax.enable_x64(x64), real.enable_x64(x64), np.errstate(over="ignore"):
        x = VALUES.astype(real.numpy.dtype(source))
        want = np.asarray(real.lax.convert_element_type(x, target))
        f = jax.jit(lambda x: jax.lax.convert_element_type(x, target))
        np.testing.assert_array_equal(np.asarray(f(x)), want)
        for i in range(0, len(x), 7):
            np.testing.assert_array_equal(np.asarray(f(x[i])), want[i])
