"""Programs that are called by a generated stub: memory, errors, and arguments that are not ready."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.cpu.stubs import MANY


@pytest.mark.parametrize(("count", "size"), [*itertools.product([0, 1, 3, 20], [0, 1, 5, 100_000]), (MANY, 2)])
def test_results_by_numbers_of_arguments_and_sizes(size, count):
    """Of more than a stub takes, too."""
    given = [np.full(size, k, np.float32) for k in range(count)]

    @jax.jit
    def run(*xs):
        return [jnp.full(size, 7.0), *[x + 1 for x in xs], sum(xs)]

    for _ in range(3):
        first, *others, total = run(*map(jnp.asarray, given))
        np.testing.assert_array_equal(first, np.full(size, 7))
        for x, y in zip(others, given, strict=True):
            np.testing.assert_array_equal(x, y + 1)
        np.testing.assert_array_equal(total, sum(given))


def test_results_of_one_call_are_not_those_of_the_next():
    f = jax.jit(lambda x: x + 1)
    x = jnp.zeros(4)
    kept = [x := f(x) for _ in range(100)]
    np.testing.assert_array_equal([k[0] for k in kept], np.arange(1, 101))


def test_an_argument_that_is_still_being_written():
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, a: a * 0.999 + 0.001, x))
    quick = jax.jit(lambda x: x[:3] + 1)
    x = jnp.zeros(200_000)
    quick(x)
    for _ in range(3):
        np.testing.assert_array_equal(quick(slow(x)), np.asarray(slow(x))[:3] + 1)


def test_a_deleted_argument_is_refused():
    f = jax.jit(lambda x, y: x + y)
    x, y = jnp.ones(3), jnp.ones(3)
    f(x, y)
    y.delete()
    for call in (lambda: f(x, y), lambda: x + y):
        with pytest.raises(RuntimeError, match="deleted"):
            call()


def test_the_first_code_and_the_optimised_code_give_the_same():
    f = jax.jit(lambda x: jnp.sin(x) * jnp.exp(x) / (1 + x * x))
    x = jnp.linspace(0, 1, 1000)
    first = np.asarray(f(x))
    for _ in range(200):
        last = f(x)
    np.testing.assert_array_equal(first, last)


def test_a_program_goes_with_its_function():
    def grow(x):
        return x + 1

    f = jax.jit(grow)
    f(jnp.ones(3))
    f(jnp.ones(3))
    alive = weakref.ref(grow)
    del f, grow
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("change", [
    lambda x: x.reshape(6, 4), lambda x: x.reshape(-1), lambda x: x[None], lambda x: jnp.expand_dims(x, (0, 2)),
    lambda x: jax.lax.squeeze(x[None], (0,)), lambda x: x.reshape(2, 2, 6), jnp.ravel,
])
def test_another_shape_is_the_same_memory(change):
    value = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = jnp.asarray(value)
    y = change(x)
    np.testing.assert_array_equal(y, change(jnp.asarray(value)))
    np.testing.assert_array_equal(np.asarray(y).reshape(-1), value.reshape(-1))
    x.delete()
    np.testing.assert_array_equal(np.asarray(y).reshape(-1), value.reshape(-1))


def test_a_donated_array_leaves_those_of_another_shape_alone():
    taking = jax.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.arange(6.0)
    y = x.reshape(2, 3)
    np.testing.assert_array_equal(taking(x), 2 * np.arange(6))
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(y, np.arange(6.0).reshape(2, 3))
    z = y.reshape(6)
    np.testing.assert_array_equal(taking(z), 2 * np.arange(6))
    np.testing.assert_array_equal(y, np.arange(6.0).reshape(2, 3))


def test_a_permuting_reshape_computes():
    x = jnp.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(jax.lax.reshape(x, (6,), (1, 0)), np.arange(6).reshape(2, 3).T.reshape(6))
    np.testing.assert_array_equal(jax.lax.broadcast_in_dim(jnp.arange(3), (3, 1), (0,)), np.arange(3)[:, None])
    np.testing.assert_array_equal(jax.lax.broadcast_in_dim(jnp.arange(3), (2, 3), (1,)), [[0, 1, 2]] * 2)


@pytest.mark.parametrize("rows", [10, 3000, 400_000])
def test_programs_that_find_their_workspace_themselves(rows):
    """On the stack, or from the runtime; of much, from whoever calls."""
    def f(x, i):
        return x[jnp.sort(i)], jnp.sort(jnp.sin(x))[::-1].sum()

    x = np.random.default_rng(0).normal(size=rows).astype(np.float32)
    i = np.random.default_rng(1).integers(-rows, rows, rows // 2)
    jitted = jax.jit(f)
    code = jitted.lower(x, i).compile()
    assert code.memory_analysis().temp_size_in_bytes > 0
    assert code.runtime_executable().straight == (rows < 100_000)
    given = jnp.asarray(x), jnp.asarray(i)

    def check():
        for _ in range(5):
            taken, total = jitted(*given)
            np.testing.assert_array_equal(taken, x[np.sort(i)])
            np.testing.assert_allclose(total, np.sin(x).sum(), rtol=1e-3, atol=1e-2)

    workers = [threading.Thread(target=check) for _ in range(3)]
    for worker in workers:
        worker.start()
    check()
    for worker in workers:
        worker.join()


@pytest.mark.parametrize("dtype", ["float32", "bool", "int8", "complex64", "bfloat16"])
def test_arguments_of_numpy(dtype):
    """Of any layout; what becomes of them afterwards is seen by nobody."""
    x = np.arange(24).reshape(4, 6).astype(jnp.dtype(dtype))
    read_only = x.copy()
    read_only.flags.writeable = False
    double = jax.jit(lambda x: (x, jnp.stack([x, x])))
    for a in (x, x[:0], x[::2], x[:, 1:], x.T, x[::-1, ::-1], read_only, x[1, 2], np.zeros((), x.dtype),
              np.ascontiguousarray(np.tile(x, (100, 100)))):
        for _ in range(3):
            same, both = double(a)
            assert same.dtype == a.dtype and not same.weak_type
            np.testing.assert_array_equal(same, a)
            np.testing.assert_array_equal(both, np.stack([a, a]))
    y = np.zeros(5, x.dtype)
    kept, _ = double(y)
    y[:] = 1
    np.testing.assert_array_equal(kept, np.zeros(5))
    with pytest.raises(TypeError):
        double(np.array(["a"]))


def test_arguments_of_numpy_become_what_is_canonical():
    double = jax.jit(lambda x: x * 2)
    for x in (np.arange(3.0), np.arange(3), np.arange(3, dtype=">f4"), np.arange(3, dtype=np.uint64)):
        if not x.dtype.isnative:
            with pytest.raises(TypeError):
                double(x)
            continue
        assert double(x).dtype.itemsize == 4
        with jax.enable_x64(True):
            assert double(x).dtype == x.dtype


@pytest.mark.parametrize("limit", [3, 2_000_000, 2_000_000])
def test_loops_that_prove_long(limit):
    """They are tried at once, and then run on the queue."""
    f = jax.jit(lambda x, n: jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + 1), (0, x))[1])
    x = jnp.zeros(7)
    for n in (limit, 5, limit, 0):
        np.testing.assert_array_equal(f(x, n), np.full(7, n))
    np.testing.assert_array_equal(f(f(f(x, limit), 5), 1), np.full(7, limit + 6))


def test_keys_are_arguments_like_arrays():
    key = jax.random.key(3)
    draw = jax.jit(lambda k, x: jax.random.normal(k, (4,)) + x)
    expected = jax.random.normal(key, (4,))
    for _ in range(3):
        np.testing.assert_array_equal(draw(key, jnp.zeros(4)), expected)
    tree = jax.jit(lambda t: (jax.random.split(t["key"]), t["x"] + 1))
    keys, x = tree({"key": key, "x": 1.0})
    assert keys.dtype == key.dtype and x == 2
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(key)))
    fun = jax.jit(lambda k: k, donate_argnums=0)
    assert jax.random.key_data(fun(jax.random.clone(key))).tolist() == jax.random.key_data(key).tolist()
