"""Integers that loops count with: what they are in each turn and afterwards, and what reads and writes by them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import styrax

X = np.random.default_rng(0).standard_normal((3, 17)).astype(np.float32)


def shifted(m, x):
    return m.lax.fori_loop(1, x.shape[-1], lambda i, x: x.at[i].add(0.5 * x[i - 1]), x)


def outside(m, x):  # negative numbers, and places that are not there
    return m.lax.fori_loop(-5, 30, lambda i, x: x.at[i].set(x[i + 1] + i), x)


def windows(m, x):
    def body(i, x):
        row = m.lax.dynamic_slice(x, (2 * i,), (3,))
        return m.lax.dynamic_update_slice(x, row[::-1] * 0.5, (i,))
    return m.lax.fori_loop(0, 12, body, x)


def nested(m, x):
    return m.lax.fori_loop(0, 4, lambda i, x: m.lax.fori_loop(
        i, i + 3, lambda j, x: x.at[j].set(x[i] - j), m.lax.fori_loop(0, 3, lambda j, x: x.at[i + j].add(i * j), x)), x)


def own_counters(m, x):
    """Of other steps, types and directions, one that wraps around, one that starts elsewhere, one that is no such."""
    def step(carry, y):
        i, j, k, w, v, x = carry
        x = x.at[i].add(y).at[j].add(k.astype(x.dtype)).at[v % 3].add(w.astype(x.dtype))
        return (i + 2, j - 1, k + k.dtype.type(40), 1 + w, v + 1, x), (i, j, k, w)

    numbers = m.numpy
    start = (1, 15, numbers.uint8(200), numbers.int32(2**31 - 3), numbers.argmax(x), x)
    return m.lax.scan(step, start, x[:8])


def backwards(m, x):
    return m.lax.scan(lambda c, y: ((c[0] + 1, c[1] + c[0] * y), (c[0], c[1])), (3, x[0]), x, reverse=True)


def never(m, x):
    return m.lax.scan(lambda c, y: ((c[0] + 1, c[1] + y), c[0]), (7, x[0]), x[:0])


def once(m, x):
    return m.lax.scan(lambda c, y: ((c[0] + 5, c[1] + y), c[0]), (7, x[0]), x[:1])


def exchanged(m, x):  # whose numbers change places: no one counts
    return m.lax.scan(lambda c, y: ((c[1] + 1, c[0] + 1, c[2] + y), c[0]), (0, 10, x[0]), x)


LOOPS = [shifted, outside, windows, nested, own_counters, backwards, never, once, exchanged]


def same(found, expected):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("x64", [False, True])
def test_loops(loop, x64):
    with styrax.enable_x64(x64), jax.enable_x64(x64):
        x = X[0].astype(np.float64 if x64 else np.float32)
        expected = jax.jit(lambda x: loop(jax, x))(x)
        for f in (lambda x: loop(styrax, x), styrax.jit(lambda x: loop(styrax, x))):
            same(f(x), expected)


@pytest.mark.parametrize("loop", LOOPS)
def test_batches(loop):
    same(styrax.jit(styrax.vmap(lambda x: loop(styrax, x)))(X), jax.jit(jax.vmap(lambda x: loop(jax, x)))(X))


@pytest.mark.parametrize("loop", [shifted, windows, backwards])
def test_derivatives_of_batches(loop):
    def total(m):
        def f(x):
            return sum(y.sum() for y in m.tree.leaves(loop(m, x)) if y.dtype == np.float32)
        return m.jit(m.vmap(m.grad(f)))

    same(total(styrax)(X), total(jax)(X))


def test_counted_places_are_known():
    """No place is asked whether it is negative or inside."""
    text = styrax.jit(lambda x: shifted(styrax, x)).lower(X[0]).compile().as_text("loops")
    assert "select" not in text and "min" not in text and "guard" not in text
