"""Small states of loops, whose elements stand in registers, against JAX."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
from styrax import numpy as jnp
from styrax.compile.ir.loopir import Copy, Store, While, statements


def pendulum(j, y):
    def turn(_, y):
        return y + 0.1 * j.numpy.stack([y[1], -j.numpy.sin(y[0])])

    return j.lax.fori_loop(0, 9, turn, y)


def exchanged(j, y):
    return j.lax.fori_loop(0, 3, lambda _, y: j.numpy.stack([y[1], y[2], y[0]]), y)


def collatz(j, n):
    """Of each of two numbers in turn, in a loop of unknown length with branches."""
    def turn(state):
        n, count, which = state
        one = j.lax.cond(n[0] % 2 == 0, lambda n: n.at[0].set(n[0] // 2), lambda n: n.at[0].set(3 * n[0] + 1), n)
        return one[::-1], count.at[which].add(1), 1 - which

    return j.lax.while_loop(lambda s: (s[0] > 1).any(), turn, (n, j.numpy.zeros(2, n.dtype), 0))


def history(j, y):
    return j.lax.scan(lambda y, x: (j.numpy.stack([y[1] * x, y[0] + x]), y), y, j.numpy.arange(5.0, dtype=y.dtype))


def nested(j, y):
    def turn(_, y):
        z = j.lax.fori_loop(0, 3, lambda _, z: j.numpy.stack([z[1], z[0] * 0.5]), y)
        return j.numpy.where(z[0] > y[0], z, y - z[::-1])

    return j.lax.fori_loop(0, 4, turn, y)


def by_index(j, y):
    return j.lax.fori_loop(0, 6, lambda i, y: y.at[i % 2].add(y[(i + 1) % 2] * 0.5), y)


def truths(j, y):
    def turn(i, p):
        return j.numpy.stack([p[1] ^ (i % 3 == 0), p[0] | p[1]])

    return j.lax.fori_loop(0, 5, turn, y > 0)


PAIR = np.array([0.3, -0.7])
FLOATS = [np.float32, np.float64, np.float16, "bfloat16"]
CASES = [
    *[(f, PAIR, dtype) for f in (pendulum, history, nested, by_index) for dtype in FLOATS],
    *[(pendulum, np.array(special), np.float32) for special in (
        [np.nan, 0.0], [np.inf, -0.0], [-0.0, 0.0], [1e38, -1e38])],
    (exchanged, np.array([1, 2, 3]), np.int8), (exchanged, np.array([1, 2, 3]), np.uint16),
    (exchanged, np.array([1.5, 2.5, np.nan]), np.complex64), (exchanged, np.array([1, 0, 1]), np.bool_),
    (collatz, np.array([7, 12]), np.int32), (truths, PAIR, np.float32),
]


def value(j, dtype, x):
    return j.numpy.asarray(x).astype(dtype)


def same(found, want):
    for a, b in zip(styrax.tree.leaves(found), real.tree.leaves(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        kind = a.dtype.kind
        tolerance = {"float16": 1e-2, "bfloat16": 6e-2, "float64": 1e-13}.get(a.dtype.name, 1e-5)
        if kind in "fcV":
            np.testing.assert_allclose(a.astype(np.complex128), b.astype(np.complex128), rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("f, x, dtype", CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_values(f, x, dtype):
    with real.enable_x64(True), styrax.enable_x64(True):
        same(styrax.jit(lambda x: f(styrax, x))(value(styrax, dtype, x)),
             real.jit(lambda x: f(real, x))(value(real, dtype, x)))


@pytest.mark.parametrize("f", [pendulum, history, nested, by_index])
def test_many_states_and_slopes(f):
    x = np.linspace(-1, 1, 14).reshape(7, 2).astype(np.float32)

    def programs(j):
        total = lambda x: sum(leaf.sum() for leaf in j.tree.leaves(f(j, x)))
        return j.vmap(lambda x: f(j, x)), j.vmap(j.jacfwd(total)), lambda x: j.jvp(total, (x[0],), (x[1],))

    for ours, theirs in zip(programs(styrax), programs(real), strict=True):
        same(styrax.jit(ours)(x), real.jit(theirs)(x))


def test_no_memory_in_the_loop():
    def program(y):
        return styrax.lax.while_loop(lambda y: y[0] < 10, lambda y: y + jnp.stack([y[1], -jnp.sin(y[0])]), y)

    compiled = styrax.jit(program).lower(np.zeros(2, np.float32)).compile().runtime_executable().program
    loop, = [s for s in compiled.statements if isinstance(s, While)]
    assert not any(isinstance(s, (Store, Copy)) for s in statements([loop]))
    assert not compiled.placement.workspace


@pytest.mark.parametrize("change", ["set", "add", "subtract", "max"])
@pytest.mark.parametrize("mode", ["drop", "clip", "fill"])
@pytest.mark.parametrize("at", [0, -1, -2, 5, 2147483647, -2147483648])
def test_elements_that_are_not_there(at, mode, change):
    def changed(j):
        return j.jit(lambda x, v: getattr(j.numpy.asarray(x).at[at], change)(v, mode=mode))

    x, v = np.array([1.5], np.float32), np.float32(2)
    np.testing.assert_array_equal(changed(styrax)(x, v), changed(real)(x, v))
