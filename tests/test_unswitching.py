"""Choices by one condition for all elements: only what it asks for is computed."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
from styrax import lax
from styrax import numpy as jnp
from styrax.compile.pipeline import compile_to_loops

N = 3000


def one(np_, x, k):
    return np_.where(k % 2 == 0, np_.exp(-x * x), x)


def negated(np_, x, k):
    return np_.where(np_.logical_not(k % 3 == 0), np_.sqrt(np_.abs(x)), -x)


def part_of_a_condition(np_, x, k):
    return np_.where((k % 2 == 0) & (np_.exp(x) > 1), 0 * x, x + 1)


def either(np_, x, k):
    return np_.where((k % 3 == 0) | (np_.cos(x) > 0), x - 1, 2 * x)


def two(np_, x, k):
    return np_.where(k % 2 == 0, np_.exp(-np_.abs(x)), np_.where(k < 3, np_.sin(x), x))


def of_an_element(np_, x, k):
    return np_.where(x[k] > 0, np_.tanh(x), x[::-1])


def rows(np_, x, k):
    y = x.reshape(30, 100)
    return np_.where(k % 2 == 0, np_.exp(-y * y), y[::-1]).ravel()


def by_sums_of_columns(np_, x, k):
    y = x.reshape(60, 50)
    total = y.sum(0)
    return np_.where(np_.abs(total) > 1, np_.sin(y) * np_.tanh(total), k + 0 * y).ravel()


def by_sums_of_rows(np_, x, k):
    y = x.reshape(50, 60)
    total = y.sum(1, keepdims=True)
    return np_.where(total > 1, np_.exp(-y * y), y - k).ravel()


PROGRAMS = [by_sums_of_columns, by_sums_of_rows, one, negated, part_of_a_condition, either, two, of_an_element, rows]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_in_a_loop(f):
    x = np.linspace(-2, 2, N).astype(np.float32)
    x[[5, 1000]] = np.nan, np.inf
    found = styrax.jit(lambda x: lax.fori_loop(0, 6, lambda k, c: f(jnp, c, k), x))(x)
    with np.errstate(all="ignore"):
        for k in range(6):
            x = f(np, x, k).astype(np.float32)
    np.testing.assert_allclose(found, x, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("k", [0, 1])
def test_alone_in_batches_and_derived(f, k):
    x = np.linspace(-2, 2, N) + 1e-3
    with styrax.enable_x64(True):
        np.testing.assert_allclose(styrax.jit(lambda x, k: f(jnp, x, k))(x, k), f(np, x, k), rtol=1e-12, atol=1e-14)
        batch = np.stack([x, -x])
        np.testing.assert_allclose(styrax.jit(styrax.vmap(lambda x, k: f(jnp, x, k)))(batch, np.array([k, 1 - k])),
                                   [f(np, x, k), f(np, -x, 1 - k)], rtol=1e-12, atol=1e-14)
        slope = styrax.jit(styrax.grad(lambda x, k: f(jnp, x, k).sum()))(x, k)
        h = 1e-6
        at = [7, 1501, 2900]
        wanted = [(f(np, x + h * (np.arange(N) == i), k).sum() - f(np, x - h * (np.arange(N) == i), k).sum()) / (2 * h)
                  for i in at]
        np.testing.assert_allclose(np.asarray(slope)[at], wanted, rtol=1e-5, atol=1e-6)


def test_sieve():
    def crossed_out(p, prime):
        return jnp.where(prime[p] & (k % p == 0) & (k > p), False, prime)

    k = np.arange(N)
    found = styrax.jit(lambda prime: lax.fori_loop(2, 55, crossed_out, prime))(k > 1)
    np.testing.assert_array_equal(found, [n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1)) for n in k])


def test_what_is_not_asked_for_is_not_computed():
    program = compile_to_loops(styrax.make_jaxpr(lambda x, k: one(jnp, x, k))(np.ones(N, np.float32), 1), "f")
    assert "else:" in program.show(), program.show()
    cheap = compile_to_loops(styrax.make_jaxpr(lambda x, k: jnp.where(k > 0, x, 2 * x))(np.ones(9, np.float32), 1), "f")
    assert "else:" not in cheap.show(), cheap.show()
