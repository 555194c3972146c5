"""Loops of unknown length are tried where they are called, and go on the queue when their fuel runs out."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.cpu import executable, runtime

LONG = executable.QUEUED  # turns, each of which costs an instruction or more


def count(n, x):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] ^ (c[0] * 5)), (jnp.int32(0), x))[1]


def counted(n, x):
    return np.bitwise_xor.reduce(np.arange(n, dtype=np.int32) * np.int32(5), initial=np.int32(x))


@pytest.mark.parametrize("sizes", [(3, LONG, 3), (LONG, 0, 7)])
def test_short_and_long_calls(sizes):
    f = jax.jit(count)
    for n in sizes:
        assert int(f(jnp.int32(n), jnp.int32(9))) == counted(n, 9)
    code = f.lower(jnp.int32(0), jnp.int32(0)).compile().runtime_executable()
    assert code.queued  # it was long once
    g = jax.jit(lambda n, x: count(n, x) + 0)
    g(jnp.int32(3), jnp.int32(0)).block_until_ready()
    assert not g.lower(jnp.int32(0), jnp.int32(0)).compile().runtime_executable().queued


def test_loops_inside_loops_share_the_fuel():
    def both(n, m, x):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, count(m, c[1])), (jnp.int32(0), x))[1]

    f = jax.jit(both)
    for n, m in ((3, 4), (2001, LONG // 1000), (0, 5), (1, LONG)):
        expected = counted(m, 1) if n % 2 else 1  # an even number of times undoes itself
        assert int(f(jnp.int32(n), jnp.int32(m), jnp.int32(1))) == expected


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_of_elements(threads):
    def steps(x):
        return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] + 2), (x, jnp.int32(0)))[1]

    f = jax.jit(jax.vmap(steps))
    before = runtime.num_threads()
    runtime.set_num_threads(threads)
    try:
        for top in (3, 30_000):
            x = np.arange(20_000, dtype=np.int32) % top
            np.testing.assert_array_equal(f(x), 2 * x)
    finally:
        runtime.set_num_threads(before)


def test_a_donated_argument_is_used_once():
    f = jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c + 1, x), donate_argnums=0)
    for n in (5, LONG // 10):
        assert float(f(jnp.zeros(100), n)[3]) == n


def test_run_time_sizes():
    for size in (3, 5, 100):
        x = jnp.ones(size)
        out = lax.while_loop(lambda c: c[1] < 10, lambda c: (c[0] * 2, c[1] + 1), (x, 0))[0]
        np.testing.assert_array_equal(out, np.full(size, 1024, np.float32))
