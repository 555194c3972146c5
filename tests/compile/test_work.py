"""Lowering asks for few elements: what folds to little, though it is made of many, is not asked for again and again."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
from styrax import lax
from styrax import numpy as jnp
from styrax.compile.pipeline import compile_to_loops

MOST = 8  # elements asked for in lowering, an equation: of values that are halved, three times is one expression


def halved(v, join):
    return repeated(v, lambda v: join(v[::2], v[1::2]))


def repeated(v, half):
    while v.shape[0] > 1:
        v = half(v)
    return v


def recurrence(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


LENGTH = 2**16
X = np.linspace(-1, 1, LENGTH).astype(np.float32)


def weighted(x):
    total = 0.0
    for k in range(60):
        window = x[k:k + 1000]
        total = total + jnp.exp(-window * window) * window
    return total


WINDOWS = np.lib.stride_tricks.sliding_window_view(X[:1059].astype(float), 1000)
# what is computed, and its value by NumPy
PROGRAMS = {
    "sum of weighted windows": (weighted, (np.exp(-WINDOWS * WINDOWS) * WINDOWS).sum(0)),
    "products of a constant": (lambda x: halved(jnp.full(LENGTH, 1.00001), jnp.multiply) + x[:1], 1.00001**LENGTH - 1),
    "sums of indices": (lambda x: halved(jnp.arange(LENGTH), jnp.add), LENGTH * (LENGTH - 1) // 2 % 2**32),
    "maxima of indices": (lambda x: halved(jnp.arange(LENGTH), jnp.maximum), LENGTH - 1),
    "maxima in programs of their own": (
        lambda x: repeated(x, styrax.checkpoint(lambda v: jnp.maximum(v[::2], v[1::2]))), 1),
    "linear recurrence": (
        lambda x: lax.associative_scan(recurrence, (jnp.full_like(x, 0.9), x))[1][-1:],
        (X[-200:].astype(float) * 0.9 ** np.arange(200)[::-1]).sum()),
    "gradient of a linear recurrence": (
        styrax.grad(lambda x: lax.associative_scan(recurrence, (jnp.full_like(x, 0.9), x))[1][-9:].sum()),
        np.concatenate([np.zeros(LENGTH - 300), *(
            sum(0.9 ** (j - i) for j in range(LENGTH - 9, LENGTH) if j >= i) for i in range(LENGTH - 300, LENGTH))],
            axis=None)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_asked_for(name):
    f, wanted = PROGRAMS[name]
    np.testing.assert_allclose(np.asarray(styrax.jit(f)(X)).astype(np.float64) % 2**32, np.float64(wanted) % 2**32,
                               rtol=1e-2 if name.startswith("products") else 1e-5, atol=1e-9)
    closed = styrax.make_jaxpr(f)(X)
    program = compile_to_loops(closed, "f")
    assert program.builder.evaluations < MOST * len(closed.eqns)
