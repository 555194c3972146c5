"""Vectors of integers divided by one that all of them share, against Python's own integers."""

import numpy as np
import pytest

import styrax
from styrax import lax

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def quotients(x: np.ndarray, y: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounded towards zero, and what is left. By 0: all bits, and the dividend."""
    found = []
    for v in x.tolist():
        q = -1 if y == 0 else abs(v) // abs(y) * (1 if (v < 0) == (y < 0) else -1)
        found.append((q, v if y == 0 else v - q * y))
    bits = 8 * x.itemsize
    numbers = np.array([[v % (1 << bits) for v in pair] for pair in found], np.uint64).astype(f"u{x.itemsize}")
    return numbers[:, 0].view(x.dtype), numbers[:, 1].view(x.dtype)


def edges(dtype: str, rng: np.random.Generator, more: int) -> np.ndarray:
    info = np.iinfo(dtype)
    near = [v + d for v in (info.min, 0, info.max, info.max // 2, info.max // 3) for d in range(-3, 4)]
    powers = [s * (1 << k) + d for k in range(info.bits) for d in (-1, 0, 1) for s in (1, -1)]
    drawn = rng.integers(info.min, info.max, more, dtype, endpoint=True).tolist()
    return np.array([v for v in near + powers + drawn if info.min <= v <= info.max], dtype)


@pytest.fixture(autouse=True)
def wide():
    with styrax.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_and_rests(dtype):
    rng = np.random.default_rng(7)
    xs = np.unique(np.concatenate([edges(dtype, rng, 300), np.arange(100).astype(dtype)]))
    ys = np.unique(edges(dtype, rng, 12))
    if dtype in ("int8", "uint8"):
        info = np.iinfo(dtype)
        xs = ys = np.arange(info.min, info.max + 1).astype(dtype)
    both = styrax.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)))
    near = [v for y in ys.tolist() for k in (1, 2, 3, 7, 1000) for d in (-1, 0, 1)
            if np.iinfo(dtype).min <= (v := k * y + d) <= np.iinfo(dtype).max]
    xs = np.unique(np.concatenate([xs, np.array(near, dtype)]))
    for y in ys:
        for ours, exact in zip(both(xs, y), quotients(xs, int(y)), strict=True):
            np.testing.assert_array_equal(ours, exact, err_msg=f"by {y}")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32"])
def test_a_divisor_that_changes_from_turn_to_turn(dtype):
    x = np.arange(3, 77).astype(dtype)

    def turn(k, carry):
        total, y = carry
        return total + x % y + x // y, y + np.array(3, dtype)

    total, _ = styrax.jit(lambda y: lax.fori_loop(0, 9, turn, (x * 0, y)))(np.array(1, dtype))
    expected, y = x * 0, 1
    for _ in range(9):
        expected, y = expected + x % np.array(y, dtype) + x // np.array(y, dtype), y + 3
    np.testing.assert_array_equal(total, expected)


def test_divisors_of_rows():
    rng = np.random.default_rng(8)
    x, y = rng.integers(-10**9, 10**9, (5, 33), np.int32), np.array([3, -7, 1, -1, 2**31 - 1], np.int32)
    divide = styrax.jit(styrax.vmap(lambda x, y: (lax.div(x, y), lax.rem(x, y))))
    for ours, rows in zip(divide(x, y), zip(*map(quotients, x, y.tolist()), strict=True), strict=True):
        np.testing.assert_array_equal(ours, np.stack(rows))
