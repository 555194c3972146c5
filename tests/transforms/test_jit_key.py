"""Every part of `jit`'s cache key: flipped, and the answer checked."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax

pytestmark = pytest.mark.usefixtures("old_objects_aside")


def counted(f):
    calls = []

    @functools.wraps(f)
    def g(*args, **kwargs):
        calls.append(1)
        return f(*args, **kwargs)

    return g, calls


def test_shape_dtype_and_weak_type():
    f, calls = counted(lambda x: x + jnp.float16(1))
    g = jax.jit(f)
    assert g(jnp.ones(2)).shape == (2,)
    assert g(jnp.ones(3)).shape == (3,)
    assert g(jnp.ones(3, jnp.int32)).dtype == jnp.float16
    assert g(1.0).dtype == jnp.float16  # weak
    assert g(jnp.float32(1.0)).dtype == jnp.float32
    assert len(calls) == 5


def test_structure():
    g = jax.jit(lambda t: jax.tree.map(lambda x: x + 1, t))
    assert g((1, 2)) == (2, 3)
    assert g([1, 2]) == [2, 3]
    assert g({"a": 1}) == {"a": 2}
    assert g({"b": 1}) == {"b": 2}


def test_static_values_and_their_types():
    g = jax.jit(lambda x, n: x * n, static_argnums=1)
    assert g(2, 3) == 6 and g(2, 4) == 8
    assert g(jnp.int32(2), 1).dtype == jnp.int32
    assert g(jnp.int32(2), 1.0).dtype == jnp.float32
    assert g(jnp.int32(2), True).dtype == jnp.int32


def test_keywords():
    g = jax.jit(lambda x, *, scale: x * scale, static_argnames="scale")
    assert g(2.0, scale=3) == 6 and g(2.0, scale=4) == 8


def test_x64():
    g = jax.jit(lambda x: x * 2.0)
    assert g(np.ones(2)).dtype == jnp.float32
    with jax.enable_x64(True):
        assert g(np.ones(2)).dtype == np.float64
    assert g(np.ones(2)).dtype == jnp.float32


def test_promotion_and_rank_rules():
    g = jax.jit(lambda x, y: x + y)
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    assert g(x, y).shape == (2, 3)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        g(x, y)
    i = jnp.ones(3, jnp.int32)
    assert g(y, i).dtype == jnp.float32
    with jax.numpy_dtype_promotion("strict"), pytest.raises(Exception, match="promotion"):
        g(y, i)


def test_matmul_precision_is_in_the_program():
    g = jax.jit(lambda x: x @ x)
    with jax.default_matmul_precision("float32"):
        assert "HIGHEST" in str(jax.make_jaxpr(g)(jnp.ones((2, 2))))
    assert "HIGHEST" not in str(jax.make_jaxpr(g)(jnp.ones((2, 2))))


def test_mapped_axes():
    g = jax.jit(lambda x: lax.psum(x, "i"))
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(jax.vmap(g, axis_name="i")(x), [3, 3, 3])
    np.testing.assert_array_equal(jax.vmap(g, axis_name="i")(jnp.ones(4)), [4] * 4)
    with pytest.raises(NameError):
        g(1.0)


def test_random_bits():
    g = jax.jit(lambda k: jax.random.bits(k, (4,)))
    key = jax.random.PRNGKey(0)
    new = np.asarray(g(key))
    with jax.threefry_partitionable(False):
        old = np.asarray(g(key))
    assert (new != old).any()
    np.testing.assert_array_equal(g(key), new)


def test_numerics():
    from styrax.core.settings import config

    g = jax.jit(lambda x, y: x + y - x)
    assert g(1e8, 1.0) == 0.0
    with config.states["styrax_numerics"]("fast"):
        assert g(1e8, 1.0) == 1.0
    assert g(1e8, 1.0) == 0.0


def test_disable_jit():
    seen = []
    g = jax.jit(lambda x: seen.append(type(x).__name__) or x)
    g(1.0)
    with jax.disable_jit():
        g(1.0)
    assert seen[0] != seen[1]


def test_disable_jit_refuses_programs_compiled_ahead_of_time():
    """As JAX does: a compiled program knows no Python function to run instead."""
    program = jax.jit(lambda x: x + 1).lower(1.0).compile()
    with jax.disable_jit(), pytest.raises(ValueError, match="Disable jit is not supported in the AOT path"):
        program(1.0)
    assert program(1.0) == 2.0


def test_donation():
    f = lambda x: x + 1
    x = jnp.ones(3)
    jax.jit(f)(x)
    assert not x.is_deleted()
    jax.jit(f, donate_argnums=0)(x)
    assert x.is_deleted()


def test_functions_are_held_weakly():
    import gc
    import weakref

    def make():
        def f(x):
            return x + 1

        jax.jit(f)(1.0)
        return weakref.ref(f)

    ref = make()
    gc.collect()
    assert ref() is None


def test_arguments_are_not_held():
    import gc
    import weakref

    x = jnp.ones((3, 5))
    ref = weakref.ref(x)
    jax.jit(lambda t: t["x"] + 1)({"x": x})
    jnp.tanh(x)
    jax.make_jaxpr(lambda x: x)(x)
    jax.nn.softmax(x)
    del x
    gc.collect()
    assert ref() is None
