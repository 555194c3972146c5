"""Copies that threads share: all elements, whatever their number, alone, in loops and inside of parallel work."""

import numpy as np
import pytest

import styrax as jax
from styrax.cpu import runtime
from styrax.cpu.copies_and_fills import SHARED


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "bool"])
@pytest.mark.parametrize("extra", [-1, 0, 1, 12345])
def test_updates_of_large_arrays(dtype, extra, threads):
    zero, one, size = np.zeros((), dtype), np.ones((), dtype), SHARED // np.dtype(dtype).itemsize + extra
    x = (np.random.default_rng(0).normal(size=size) * 3).astype(dtype)
    before = runtime.num_threads()
    try:
        runtime.set_num_threads(threads)
        want = x.copy()
        want[[3, -1]] = one
        update = jax.jit(lambda x: x.at[3].set(one).at[-1].set(one))
        np.testing.assert_array_equal(update(x), want)
        looped = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: (c[1].at[i].set(zero), c[0]), (x, x[::-1])))
        a, b = x.copy(), x[::-1].copy()
        for i in range(3):
            b[i] = 0
            a, b = b, a
        for got, expected in zip(looped(x), (a, b), strict=True):
            np.testing.assert_array_equal(got, expected)
    finally:
        runtime.set_num_threads(before)
