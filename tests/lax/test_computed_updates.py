"""Scatters of single elements whose updates are computed, in lanes before they are written: against JAX."""

from __future__ import annotations

import jax as real
import ml_dtypes
import numpy as np
import pytest

import styrax
from styrax.cpu import runtime

RNG = np.random.default_rng(3)
PLACES = 7000
COUNTS = 4095, 4096, 5003, 8192, 70_001  # the last are so many that threads share what they are computed of
DTYPES = np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.uint8, np.complex64
CASES = [(operation, dtype, count) for operation in ("add", "max", "min", "multiply") for dtype in DTYPES
         for count in COUNTS if dtype is not np.complex64 or operation not in ("max", "min")]  # which have no order
TOLERANCES = {2: 2e-2, 1: 0}


def numbers(dtype, *shape):
    if np.dtype(dtype).kind in "iu":
        return RNG.integers(0, 100, shape).astype(dtype)
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def check(f, *args, tolerance=2e-5):
    with real.enable_x64(True):
        wanted = real.jit(lambda *a: f(real, *a))(*args)
    before = runtime.num_threads()
    try:
        for threads in (1, 2):
            runtime.set_num_threads(threads)
            with styrax.enable_x64(True):
                found = styrax.jit(lambda *a: f(styrax, *a))(*args)
            for x, y in zip(styrax.tree.leaves(found), real.tree.leaves(wanted), strict=True):
                assert x.dtype == y.dtype
                wide = complex if x.dtype.kind == "c" else float
                np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide), rtol=tolerance,
                                           atol=tolerance)
    finally:
        runtime.set_num_threads(before)


@pytest.mark.parametrize(("operation", "dtype", "count"), CASES,
                         ids=lambda v: v if isinstance(v, str | int) else np.dtype(v).name)
def test_operations(operation, dtype, count):
    where, other = RNG.integers(-PLACES - 5, PLACES + 9, count), RNG.integers(0, PLACES, count)
    x, y = numbers(dtype, PLACES), numbers(dtype, count)
    tolerance = TOLERANCES.get(np.dtype(dtype).itemsize, 1e-4)
    for mode in ("drop", "clip"):
        check(lambda j, x, y, mode=mode: getattr(j.numpy.asarray(x).at[where], operation)(y * x[other], mode=mode),
              x, y, tolerance=tolerance)


@pytest.mark.parametrize("count", [4096, 6001])
def test_elements_set(count):
    where = RNG.permutation(PLACES)[:count]
    x, y = numbers(np.float32, PLACES), numbers(np.float32, count)
    x[3], y[5] = np.nan, np.inf
    for unique in (False, True):
        check(lambda j, x, y, unique=unique: j.numpy.asarray(x).at[where].set(
            j.numpy.tanh(y) + x[0], unique_indices=unique), x, y)


@pytest.mark.parametrize("count", [4100, 70_001])
def test_compositions(count):
    """In place in a loop, where updates read what others write; mapped; in gradients; two indices."""
    where, other = RNG.integers(0, PLACES, (2, count))
    x, y = numbers(np.float32, PLACES), numbers(np.float32, count)

    def loop(j, x, y):
        return j.lax.fori_loop(0, 3, lambda i, x: x.at[where].add(0.1 * y * j.numpy.sin(x[other])), j.numpy.asarray(x))

    check(loop, x, y, tolerance=1e-4)
    check(lambda j, x, y: j.vmap(lambda x, y: loop(j, x, y))(x, y), np.stack([x, 2 * x]), np.stack([y, 2 * y]),
          tolerance=1e-4)
    check(lambda j, x, y: j.grad(lambda x, y: (x.at[where].add(y * j.numpy.sin(x[other])) ** 2).sum(), (0, 1))(
        j.numpy.asarray(x), y), x, y, tolerance=1e-3)
    check(lambda j, x, y: j.numpy.zeros((70, 100)).at[where // 100, where % 100].add(y * x[other]), x, y,
          tolerance=1e-4)


@pytest.mark.parametrize("places", [30, 7000])
def test_two_dimensions_of_updates(places):
    """Into few places, in pieces that are added up, and into many."""
    where = RNG.integers(0, places, (70, 4100))
    x, y = numbers(np.float32, places), numbers(np.float32, 70, 4100)
    check(lambda j, x, y: j.numpy.asarray(x).at[where].add(y * j.numpy.sin(y)), x, y, tolerance=2e-3)
