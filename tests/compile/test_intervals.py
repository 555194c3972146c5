"""Intervals of integers: no result lies outside, whatever the operands; and what programs fold by them stays right."""

import itertools
import operator

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.ir.expr import UNBOUNDED
from styrax.compile.ir.loopir import BufferKind
from styrax.compile.lowering import intervals
from styrax.compile.lowering.builder import Builder

I8, U8 = np.dtype("int8"), np.dtype("uint8")


def truncated(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else -1


def remainder(x, y):
    return x - truncated(x, y) * y if y else x


def shifted(bits):
    return lambda x, y: x >> y if 0 <= y < bits else (-1 if x < 0 else 0)


OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max, "div": truncated,
    "rem": remainder, "and": operator.and_, "shr_arith": shifted(8),
    "shr_logical": lambda x, y: (x & 255) >> y if 0 <= y < 8 else 0,
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [I8, U8])
def test_results_lie_within(name, dtype):
    low, high = intervals.of_type(dtype)
    ends = sorted({low, low + 1, low // 2, -3, -1, 0, 1, 2, 7, high // 2, high - 1, high} & set(range(low, high + 1)))
    every = [(a, b) for a, b in itertools.product(ends, ends) if a <= b]
    rng = np.random.default_rng(0)
    for x, y in itertools.product(every, every):
        found = intervals.result(name, dtype, x, y)
        if found == UNBOUNDED:
            continue
        for a in {*x, *(int(v) for v in rng.integers(x[0], x[1] + 1, 3))}:
            for b in {*y, *(int(v) for v in rng.integers(y[0], y[1] + 1, 3))}:
                exact = OPERATIONS[name](a, b)
                wrapped = (exact - low) % 256 + low
                assert found[0] <= wrapped <= found[1], (name, x, y, a, b)


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("offset", [0, 5, -5])
def test_where_a_condition_holds(op, offset):
    b = Builder()
    x = b.load(b.buffer(I8, 1, BufferKind.ARG), b.int(0))
    low = b.min(b.max(x, b.const(-50, I8)), b.const(60, I8))
    value = low if not offset else b.add(low, b.const(offset, I8))
    for bound in range(-60, 70, 7):
        condition = getattr(b, op)(low, b.const(bound, I8))
        for holds in (True, False):
            told = intervals.where(condition, holds, value)
            if condition.op == "const":
                continue
            there = [v + offset for v in range(-50, 61) if getattr(operator, op)(v, bound) == holds]
            assert told == (min(there), max(there))


X = np.arange(100.0, dtype=np.float32)
EXTREMES = {
    name: np.array([info.min, info.min + 1, info.min // 2, -101, -100, -99, -1, 0, 1, 50, 98, 99, 100, 101,
                    info.max // 2, info.max - 1, info.max], object)
    for name in ("int8", "int16", "int32") for info in [np.iinfo(name)]}
EXTREMES |= {name: np.array([0, 1, 50, 99, 100, 127, np.iinfo(name).max // 2 + 1, np.iinfo(name).max], object)
             for name in ("uint8", "uint16", "uint32")}
PLACES = {
    "clipped": lambda n, i: n.clip(i, 0, 99),
    "modulo": lambda n, i: i % 100,
    "of any sign": lambda n, i: n.where(i < 0, n.clip(i, -100, 0) + 99, n.clip(i, 0, 99)),
    "halved": lambda n, i: n.clip(i // 2, 0, 40) * 2 + 1,
    "masked": lambda n, i: i & 63,
    "truth": lambda n, i: (i > 3).astype("int32") * 7,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.parametrize("used", [1, 3])
def test_elements_at_computed_places(place, dtype, used):
    at = PLACES[place]
    info = np.iinfo(dtype)
    i = np.array([v for v in EXTREMES[dtype] if info.min <= v <= info.max]).astype(dtype)

    def read(x, i):
        j = at(jnp, i)
        return [x[j], x[::-1][j] + j, j * 2][:used]

    expected_at = at(np, i)
    expected = [X[expected_at], X[::-1][expected_at] + expected_at, expected_at * 2][:used]
    for f in (read, jax.jit(read), lambda x, i: jax.jit(jax.vmap(read, (None, 0)))(x, i)):
        for a, e in zip(f(jnp.asarray(X), jnp.asarray(i)), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a, np.float64), np.asarray(e, np.float64))


@pytest.mark.parametrize("count", [1, 7, 64, 100])
def test_places_that_count(count):
    """Of loop variables alone: they become steps, also where narrow integers wrap."""
    n = np.arange(count)

    def read(x, k):
        i = jnp.arange(count)
        return x[i], x[99 - i], x[(i * 3 + 2) % 100], x[jnp.minimum(i, 10) + k], x[jnp.arange(count, dtype=jnp.uint8)]

    expected = X[n], X[99 - n], X[(n * 3 + 2) % 100], X[np.minimum(n, 10) + 2], X[n]
    for f in (read, jax.jit(read)):
        for a, e in zip(f(jnp.asarray(X), 2), expected, strict=True):
            np.testing.assert_array_equal(a, e)


def test_what_wraps_is_no_step():
    x = jnp.arange(1000.0)
    got = jax.jit(lambda x: x[lax.convert_element_type(jnp.arange(600), jnp.uint8)])(x)
    np.testing.assert_array_equal(got, np.arange(600) % 256)
    got = jax.jit(lambda x: x[lax.convert_element_type(jnp.arange(100, dtype=jnp.uint8) * 9, jnp.int32)])(x)
    np.testing.assert_array_equal(got, np.arange(100, dtype=np.uint8) * np.uint8(9))


def test_the_largest_integers():
    with jax.enable_x64(True):
        x = jnp.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], jnp.uint64)
        f = jax.jit(lambda x: (x > 2**62, x < jnp.uint64(2**63), jnp.minimum(x, jnp.uint64(2**63)), x // 2))
        n = np.asarray(x)
        for a, e in zip(f(x), (n > 2**62, n < np.uint64(2**63), np.minimum(n, np.uint64(2**63)), n // np.uint64(2)),
                        strict=True):
            np.testing.assert_array_equal(a, e)
        y = jnp.array([-(2**63), -1, 0, 2**63 - 1], jnp.int64)
        np.testing.assert_array_equal(jax.jit(lambda y: (jnp.abs(y), -y, y - 1, y < 0))(y)[0],
                                      np.abs(np.asarray(y)))
