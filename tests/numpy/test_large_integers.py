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
