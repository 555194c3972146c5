"""What several statements of a loop's body compute is computed once, unless memory changes in between."""

from __future__ import annotations

import re

import jax as real
import numpy as np
import pytest

import styrax
from styrax import numpy as jnp

X = np.random.default_rng(3).normal(0, 2, 200).astype(np.float32)
X[:6] = np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30


def slow(j, x):
    return j.numpy.tanh(j.numpy.tanh(x))


# name -> program of arrays, how many calls of tanh stand in its longest loop
PROGRAMS = {
    "two results": (lambda j, x: (slow(j, x) + 1, slow(j, x) * 3), 2),
    "result and sum": (lambda j, x: (slow(j, x) * 2, slow(j, x).sum()), 2),
    "two sums": (lambda j, x: (slow(j, x).sum(), (slow(j, x) ** 2).sum()), 2),
    "sum and maximum": (lambda j, x: (j.numpy.maximum(slow(j, x), 0).max(), j.numpy.maximum(slow(j, x), 0) + x), 2),
    "value and slope": (lambda j, x: j.value_and_grad(lambda x: slow(j, x).sum())(x), 2),
    "choice": (lambda j, x: (j.numpy.where(x > 0, slow(j, x), x), j.numpy.where(x > 0, x, slow(j, x))), 2),
}


def compiled(f, *args):
    executable = styrax.jit(f).lower(*args).compile().runtime_executable()
    return executable, executable.ir


def calls(ir, name):
    """The most calls of a function between two labels."""
    return max(len(re.findall(rf"call [^\n]*@styrax\.{name}\.", block)) for block in re.split(r"\n\w+:\n", ir))


@pytest.mark.parametrize("name", PROGRAMS)
def test_computed_once(name):
    f, most = PROGRAMS[name]
    _, ir = compiled(lambda x: f(styrax, x), X)
    assert calls(ir, "tanh") == most


@pytest.mark.parametrize("name, size", [(name, size) for name in PROGRAMS for size in (0, 1, 5, 200)
                                        if size or "maximum" not in name])
def test_values(name, size):
    f, _ = PROGRAMS[name]
    for x in (X[:size], X[6:6 + size]):
        found = styrax.jit(lambda x: f(styrax, x))(x)
        want = real.jit(lambda x: f(real, x))(x)
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


def test_signs_of_zeros_do_not_depend_on_a_maximum_beside():
    """Maxima that are folded need not tell zeros apart; those that are stored must."""
    x = np.tile(np.array([-0.0, 0.0], np.float32), 40)
    largest, stored = styrax.jit(lambda x: (jnp.maximum(x, 0.0).max(), jnp.maximum(x, 0.0)))(x)
    assert largest == 0
    assert not np.signbit(stored).any()


def test_memory_that_changes_is_read_again():
    def turn(i, c):
        a, b = c
        before = jnp.tanh(a)
        a = a.at[i].set(before[i] + 1)
        return a, b + jnp.tanh(a)

    def numpy(a, b):
        for i in range(a.shape[0]):
            a[i] = np.tanh(a[i]) + 1
            b = b + np.tanh(a)
        return a, b

    a, b = X[6:30], X[30:54]
    found = styrax.jit(lambda a, b: styrax.lax.fori_loop(0, a.shape[0], turn, (a, b)))(a, b)
    for x, y in zip(found, numpy(a.copy(), b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_references_are_read_again():
    @styrax.jit
    def f(x):
        ref = styrax.new_ref(x)
        first = jnp.tanh(ref[...])
        ref[...] = first + 1
        return first, jnp.tanh(ref[...])

    first, second = f(X[6:])
    np.testing.assert_allclose(first, np.tanh(X[6:]), rtol=1e-5)
    np.testing.assert_allclose(second, np.tanh(np.tanh(X[6:]) + 1), rtol=1e-5, atol=2e-7)
