"""Like functions of scalars in lanes: which meet, and that their values are those of functions on their own."""

from __future__ import annotations

import numpy as np

import styrax as jax
import styrax.numpy as jnp
from styrax.compile.ir.loopir import Let, Set, Store
from styrax.compile.loops import slp as packs
from styrax.compile.lowering.builder import Builder

F32 = np.dtype(np.float32)


def scalars(b, n):
    return [b.arena.unique("get", F32, f"k{i}") for i in range(n)]


def test_functions_of_one_kind_meet():
    b = Builder()
    a, c, d = scalars(b, 3)
    out = b.buffer(F32, 8)
    body = [Store(out, b.int(0), b.sin(a)), Store(out, b.int(1), b.add(b.sin(c), b.cos(d))),
            Store(out, b.int(2), b.sin(b.sin(c)))]
    assert packs.plan(body, lambda dtype: 16) == {0: [[b.sin(a), b.sin(c)]]}


def test_what_becomes_known_later_waits_and_memory_is_read_in_turn():
    b = Builder()
    a, c, k = scalars(b, 3)
    out = b.buffer(F32, 8)
    read = b.arena.node("load", (b.int(0),), F32, (out, None))
    body = [Store(out, b.int(0), b.exp(a)), Let(k, read), Store(out, b.int(1), b.exp(k)),
            Store(out, b.int(2), b.exp(read)), Set([c], [b.exp(c)])]
    assert packs.plan(body, lambda dtype: 16) == {}  # exp(k) is not known before exp(a) is needed; c changes


def test_the_same_bits_as_alone():
    xs = [np.float32(v) for v in np.random.default_rng(0).normal(0, 40, 21)]
    xs += [np.float32(v) for v in (np.inf, -np.inf, np.nan, 0.0, -0.0, 3e9)]

    @jax.jit
    def together(*xs):
        return [(jnp.sin(x), jnp.cos(x), jnp.exp(x), jnp.tanh(jnp.sin(x)), x ** 0.3) for x in xs]

    alone = jax.jit(lambda x: (jnp.sin(x), jnp.cos(x), jnp.exp(x), jnp.tanh(jnp.sin(x)), x ** 0.3))
    for found, x in zip(together(*xs), xs, strict=True):
        for y, z in zip(found, alone(x), strict=True):
            np.testing.assert_array_equal(np.asarray(y).view(np.uint32), np.asarray(z).view(np.uint32))


def test_in_the_body_of_a_scan():
    def step(carry, x):
        return tuple(c + 0.1 * (jnp.sin(n) * x - jnp.exp(-c * c)) for c, n in zip(carry, carry[1:] + carry[:1])), None

    start = tuple(np.linspace(-1, 1, 19).astype(np.float32))
    drive = np.random.default_rng(1).normal(size=50).astype(np.float32)
    found = jax.lax.scan(step, start, drive)[0]
    state = np.array(start, np.float64)
    for x in drive:
        state = state + 0.1 * (np.sin(np.roll(state, -1)) * x - np.exp(-state * state))
    np.testing.assert_allclose(np.array(found), state, atol=2e-5)


def test_what_does_not_change_in_a_loop_leaves_it():
    @jax.jit
    def run(a, b, n):
        return jax.lax.fori_loop(0, n, lambda i, c: c * (3 * jnp.log(a)) + (2 + jnp.log(b)) + jnp.log(c), 2.0)

    want = 2.0
    for _ in range(4):
        want = want * 3 * np.log(1.3) + 2 + np.log(2.5) + np.log(want)
    np.testing.assert_allclose(run(np.float32(1.3), np.float32(2.5), 4), want, rtol=1e-5)
    counts = jax.random.multinomial(jax.random.key(7), 10, np.array([0.2, 0.3, 0.5]))
    np.testing.assert_array_equal(counts, [2, 4, 4])
