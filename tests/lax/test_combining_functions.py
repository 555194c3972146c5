"""Functions of scalars that reductions, windows and scatters are given: traced once, and alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from styrax import grad, jit, lax

X = np.arange(1.0, 8.0, dtype=np.float32)
AT = np.array([0, 2])


def window(np_like, lax_like, f):
    return lambda x: lax_like.reduce_window(x, x.dtype.type(1), f, (3,), (2,), "VALID")


def whole(np_like, lax_like, f):
    return lambda x: lax_like.reduce(x, x.dtype.type(1), f, (0,))


def apply(np_like, lax_like, f):
    return lambda x: np_like.asarray(x).at[AT].apply(f)


USERS = [window, whole, apply]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_known_function_is_traced_once(user, dtype):
    import styrax.numpy as own

    calls = []

    def combine(a, b=3):
        calls.append(a.dtype)
        return a * b

    x = X.astype(dtype)
    expected = user(jnp, jax.lax, lambda a, b=3: a * b)(x)
    f = user(own, lax, combine)
    for _ in range(3):
        np.testing.assert_array_equal(f(x), expected)
    assert len(calls) == 1
    f(x.astype("uint8"))  # another type is another program
    assert len(calls) == 2
    np.testing.assert_array_equal(jit(f)(x), expected)


@pytest.mark.parametrize("user", USERS)
def test_functions_cannot_use_traced_values_besides_their_arguments(user):
    import styrax.numpy as own

    def f(scale, x):
        return user(own, lax, lambda a, b=3: a * b * scale)(x).sum()

    def expected(scale, x):
        return user(jnp, jax.lax, lambda a, b=3: a * b * scale)(jnp.asarray(x)).sum()

    for ours, theirs in ((jit(f), jax.jit(expected)), (grad(f), jax.grad(expected))):
        with pytest.raises(NotImplementedError, match="(?i)can't close over tracers"):
            ours(np.float32(2), X)
        with pytest.raises(NotImplementedError, match="(?i)can't close over tracers"):
            theirs(np.float32(2), X)


def test_the_derivative_of_a_computation_is_made_once():
    from styrax import jvp
    from styrax.cpu.llvm import compile_count

    def combine(a, b):
        return a * b

    f, g = window(None, lax, combine), window(None, jax.lax, combine)
    for _ in range(2):
        value, slope = jvp(f, (X,), (X,))
        before = compile_count.compiled, compile_count.disk_hits, compile_count.memory_hits
        value, slope = jvp(f, (X,), (X,))
        assert before == (compile_count.compiled, compile_count.disk_hits, compile_count.memory_hits)
    expected, d_expected = jax.jvp(g, (jnp.asarray(X),), (jnp.asarray(X),))
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(slope, d_expected)
