"""Python integers that no index or bound can hold: errors where JAX has them, never other numbers."""

import jax as real
import numpy as np
import pytest

import styrax

LARGE = [2**31, 2**32 + 3, -(2**32) - 3, 2**64, -(2**31) - 1]


def raising(j, n):
    x = j.numpy.arange(10)
    return {
        "index": lambda: x[n],
        "index and new axis": lambda: x[n, None],
        "index of a matrix": lambda: x.reshape(2, 5)[:, n],
        "index in jit": lambda: j.jit(lambda x: x[n])(x),
        "index in vmap": lambda: j.vmap(lambda x: x[n])(x.reshape(2, 5)),
        "index in grad": lambda: j.grad(lambda x: x[n])(x.astype(float)),
        "upper bound": lambda: j.lax.fori_loop(0, abs(n) + 1, lambda i, c: c + 1, 0),
        "upper bound in jit": lambda: j.jit(lambda c: j.lax.fori_loop(0, abs(n) + 1, lambda i, c: c + 1, c))(0),
        "lower bound": lambda: j.lax.fori_loop(n, n + 3, lambda i, c: c + 1, 0),
        "sum": lambda: x + n,
        "carry": lambda: j.lax.while_loop(lambda c: c < 0, lambda c: c + 1, n),
    }


@pytest.mark.parametrize("n", LARGE)
@pytest.mark.parametrize("name", list(raising(styrax, 0)))
def test_errors(name, n):
    for j in (styrax, real):
        with pytest.raises(OverflowError):
            raising(j, n)[name]()


@pytest.mark.parametrize("mode", ["clip", "drop", "fill"])
@pytest.mark.parametrize("n", LARGE)
def test_a_mode_says_what_lies_outside(n, mode):
    x = styrax.numpy.arange(10)
    nearest = 9 if n > 0 else 0
    assert int(x.at[n].get(mode=mode, fill_value=77)) == (nearest if mode == "clip" else 77)
    np.testing.assert_array_equal(x.at[n].set(5, mode=mode), np.where((mode == "clip") & (x == nearest), 5, x))


def test_numbers_without_a_dtype():
    assert styrax.lax.convert_element_type(2**100, np.float32) == np.float32(2**100)
    for j in (styrax, real):
        with pytest.raises(OverflowError):
            j.lax.full((2,), 2**64)


@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "int64", "uint64"])
def test_scalar_types(name):
    for j in (styrax, real):
        for n in (2**40, 2**64, -2**40):
            with pytest.raises(OverflowError):
                getattr(j.numpy, name)(n)
    assert getattr(styrax.numpy, name)(100) == 100


@pytest.mark.parametrize("n", [2**31, 2**32 + 3])
def test_wide_bounds_with_wide_integers(n):
    with styrax.enable_x64(True):
        count = styrax.jit(lambda a: styrax.lax.fori_loop(a, n, lambda i, c: i, 0))(np.int64(n - 2))
        assert int(count) == n - 1


FILLERS = {
    "full": lambda j, n, dtype: j.numpy.full((2, 3), n, dtype),
    "full, no shape": lambda j, n, dtype: j.numpy.full((), n, dtype),
    "full_like": lambda j, n, dtype: j.numpy.full_like(j.numpy.zeros(3, dtype), n),
    "arange": lambda j, n, dtype: j.numpy.arange(n - 5, n, 2, dtype=dtype),
    "arange, a step": lambda j, n, dtype: j.numpy.arange(3, n, max(abs(n) // 2, 1), dtype=dtype),
    "in jit": lambda j, n, dtype: j.jit(lambda: j.numpy.full(3, n, dtype))(),
    "in vmap": lambda j, n, dtype: j.vmap(lambda x: j.numpy.full_like(x, n))(j.numpy.zeros((2, 3), dtype)),
    "in a loop": lambda j, n, dtype: j.lax.fori_loop(
        0, 2, lambda _, c: j.numpy.full_like(c, n), j.numpy.zeros(2, dtype)),
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("n", [300, 2**31, 2**32 - 1, 2**40 + 7, 2**63, 2**64 - 1, -1, -(2**31) - 1, -(2**62)])
@pytest.mark.parametrize("name", list(FILLERS))
def test_fillers_wrap_around(name, n, x64):
    with real.enable_x64(x64), styrax.enable_x64(x64):
        for dtype in (None, "int8", "uint8", "int32", "uint32", "uint64", "float32", "complex64", "bool"):
            if dtype == "bool" and "arange" in name or dtype == "uint64" and not x64:
                continue
            found, expected = (FILLERS[name](j, n, dtype) for j in (styrax, real))
            assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_floats_of_more_than_64_bits(dtype):
    for fill in (FILLERS["full"], FILLERS["full_like"], FILLERS["arange"]):
        np.testing.assert_array_equal(fill(styrax, 2**70, dtype), fill(real, 2**70, dtype))


def test_what_is_too_large_is_named():
    def told(j):
        with pytest.raises(OverflowError) as raised:
            j.numpy.pad(j.numpy.ones(2), 1, constant_values=2**32)
        return str(raised.value)

    assert told(styrax) == told(real)
