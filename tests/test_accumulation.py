"""Arrays that are zero but for a part, added to others: parts of any kind, wherever they go, and their derivatives."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import styrax

X = np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32)


def window(m, x, i):
    return x + m.lax.dynamic_update_slice(m.numpy.zeros_like(x), x[:2, :3] * 2, (i, i))


def window_first(m, x, i):
    return m.lax.dynamic_update_slice(m.numpy.zeros_like(x), x[:2, :3] * 2, (i, i)) + x * x


def scattered(m, x, i):
    return x + m.numpy.zeros_like(x).at[m.numpy.array([0, i, 0]), 1].add(x[:3, 2])


def both(m, x, i):
    zeros = m.numpy.zeros_like(x)
    return zeros.at[i].set(x[0]) + zeros.at[:, i].add(x[:, 1])


def recurrence(m, x, i):
    def step(k, y):
        return y.at[k].add(0.5 * y[k - 1] * y[(k + i) % 6])
    return m.lax.fori_loop(0, 6, step, x)


def reads(m, x, i):
    def step(c, k):
        return c + x[k] * x[k - i, ::-1], m.lax.dynamic_slice(x, (k, k), (2, 2)).sum()
    total, each = m.lax.scan(step, x[0], m.numpy.arange(8))
    return total + each.sum()


def one_place(m, x, i):
    return m.numpy.zeros_like(x).at[i, 2].add(x[1, 3]) + x


PROGRAMS = [one_place, window, window_first, scattered, both, recurrence, reads]


@pytest.mark.parametrize("i", [0, 3, 7, -2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_derivatives(program, i):
    def of(m):
        def f(x, i):
            return (program(m, x, i) * X).sum()
        return [m.jit(lambda x, i: program(m, x, i)), m.jit(m.grad(f)),
                m.jit(m.vmap(m.grad(f), (0, None))), m.jit(m.jacfwd(m.grad(f)))]

    for k, (ours, theirs) in enumerate(zip(of(styrax), of(jax), strict=True)):
        x = np.stack([X, X[::-1]]) if k == 2 else X
        np.testing.assert_allclose(ours(x, i), theirs(x, i), rtol=2e-5, atol=2e-5)


def test_places_of_each_example():
    def of(m):
        def f(x, k):
            return m.lax.fori_loop(0, 9, lambda i, y: y.at[i].add(0.5 * y[(i + k) % 9]), x).sum()
        return m.jit(m.vmap(m.grad(f)))

    k = np.array([0, 3, 8, 1, 1, 5])
    np.testing.assert_allclose(of(styrax)(X, k), of(jax)(X, k), rtol=1e-5)
    text = of(styrax).lower(X, k).compile().as_text("loops")
    assert "= 0.0:float32" not in text  # no array of zeros is made in a turn


def test_applied_functions_are_no_parts():
    def f(m):
        return m.jit(lambda x: x + m.numpy.zeros_like(x).at[m.numpy.array([1])].apply(lambda y: y + 3))

    np.testing.assert_allclose(f(styrax)(X), f(jax)(X))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bfloat16", "float16", "complex64"])
def test_types(dtype):
    def f(m):
        return m.jit(lambda x, p, i: x + m.lax.dynamic_update_slice(m.numpy.zeros_like(x), p, (i,)))

    x, p = (X[0] * 50).astype(np.int32), (X[1, :4] * 50).astype(np.int32)
    for i in (0, 5, 8):
        args = [m.numpy.asarray(x).astype(dtype) for m in (styrax, jax)], [
            m.numpy.asarray(p).astype(dtype) for m in (styrax, jax)]
        ours, theirs = f(styrax)(args[0][0], args[1][0], i), f(jax)(args[0][1], args[1][1], i)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(np.asarray(ours).astype(complex), np.asarray(theirs).astype(complex))


def test_what_is_no_number_stays_where_it_is():
    x = X.copy()
    x[0, 0], x[1, 2], x[4, 4] = np.nan, np.inf, -np.inf
    ours, theirs = (m.jit(lambda x, m=m: window(m, x, 0))(x) for m in (styrax, jax))
    np.testing.assert_array_equal(ours, theirs)
