"""Rows hardly longer than a vector, whose lanes are rows: values as JAX's, at all edges, however they are run."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

import styrax
from styrax.compile.ir.loopir import Transpose, statements
from styrax.cpu import llvm, runtime

rng = np.random.default_rng(0)
LENGTHS = (9, 10, 15, 16, 17, 25, 31, 32)
COUNTS = (1, 63, 64, 65, 127, 129, 1000)  # of rows: too few, whole tiles, tails
PROGRAMS = {
    "softmax": lambda j, x: j.nn.softmax(x, -1),
    "log_softmax": lambda j, x: j.nn.log_softmax(x, -1),
    "logsumexp": lambda j, x: j.nn.logsumexp(x, -1),
    "max": lambda j, x: j.numpy.max(x, -1),
    "argmin": lambda j, x: j.numpy.argmin(x, -1),
    "argmax and max": lambda j, x: (j.numpy.argmax(x, -1), j.numpy.max(x, -1)),
    "any": lambda j, x: j.numpy.any(x > 1, -1),
    "standardized": lambda j, x: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1),
    "with a bias": lambda j, x: j.nn.softmax(x + j.numpy.arange(x.shape[-1], dtype=x.dtype), -1) * x[..., :1],
    "causal": lambda j, x: j.nn.softmax(
        j.numpy.where(j.numpy.arange(x.shape[-1]) <= j.numpy.arange(len(x))[:, None], x, -j.numpy.inf), -1),
    "of parts": lambda j, x: j.numpy.max(x[:, 1:], -1) - j.numpy.min(x[:, :-1], -1),
    "cross entropy": lambda j, x: -j.numpy.mean(j.numpy.take_along_axis(
        j.nn.log_softmax(x), j.numpy.arange(len(x))[:, None] % x.shape[-1], 1)),
}


def same(got, wanted, rtol=2e-5):
    for x, y in zip(styrax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x, np.float64), np.asarray(y, np.float64), rtol, rtol)


def tiles(f, *args):
    program = styrax.jit(f).lower(*args).compile().runtime_executable().program
    return sum(isinstance(s, Transpose) for s in statements(program.statements))


def normal(*shape, dtype=np.float32):
    return (3 * rng.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_and_counts(name, length):
    f = PROGRAMS[name]
    for count in (COUNTS[LENGTHS.index(length) % len(COUNTS)], 1000, 1003):
        x = normal(count, length)
        same(styrax.jit(partial(f, styrax))(x), jax.jit(partial(f, jax))(x))


@pytest.mark.parametrize("count", COUNTS)
def test_tiles_are_made_of_enough_rows(count):
    for name in ("softmax", "argmin", "max"):
        x = normal(count, 10)
        same(styrax.jit(partial(PROGRAMS[name], styrax))(x), PROGRAMS[name](jax, x))
        lanes = llvm.host().vector_bytes // 4
        assert bool(tiles(partial(PROGRAMS[name], styrax), x)) == (count >= 4 * lanes and 10 <= 2 * lanes)


@pytest.mark.parametrize("dtype", [
    "float64", "float16", "bfloat16", "int32", "int64", "int16", "uint32", "int8", "bool", "complex64"])
def test_dtypes(dtype):
    with styrax.enable_x64(True), jax.enable_x64(True):
        x = np.asarray(jax.numpy.asarray(normal(200, 12)).astype(dtype))
        names = ["max", "argmin"] if dtype[:3] in ("int", "uin", "boo") else ["softmax", "argmin", "max"]
        for name in names if dtype != "complex64" else ["max"]:
            got, wanted = (jit(partial(PROGRAMS[name], j))(x) for j, jit in ((styrax, styrax.jit), (jax, jax.jit)))
            assert str(got.dtype) == str(wanted.dtype)
            np.testing.assert_allclose(np.asarray(got, complex), np.asarray(wanted, complex),
                                       2e-2 if dtype in ("float16", "bfloat16") else 1e-5)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
@pytest.mark.parametrize("name", ["softmax", "logsumexp", "max", "argmin", "argmax and max"])
def test_special_values(name, special):
    x = normal(130, 11)
    x[::3, 4] = special
    x[5], x[128] = special, special
    x[7, -1], x[129, 0] = special, special
    same(styrax.jit(partial(PROGRAMS[name], styrax))(x), jax.jit(partial(PROGRAMS[name], jax))(x))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", ["grad", "vmap of grad", "scan", "while", "vmap", "donated", "checked", "rows of rows"])
def test_ways(way, threads):
    x = normal(40, 100, 10) if way in ("scan", "rows of rows", "vmap of grad", "vmap") else normal(5000, 10)

    def program(j):
        jnp, lax = j.numpy, j.lax
        loss = lambda x: -jnp.sum(jnp.log(j.nn.softmax(x)[..., 3])) + jnp.sum(jnp.max(x, -1) ** 2)
        if way == "grad":
            return j.jit(j.grad(loss))(x)
        if way == "vmap of grad":
            return j.jit(j.vmap(j.grad(loss)))(x)
        if way == "vmap":
            return j.jit(j.vmap(lambda x: j.nn.softmax(x, 0)))(x), j.jit(j.vmap(lambda x: j.nn.softmax(x)))(x)
        if way == "scan":
            return j.jit(lambda x: lax.scan(lambda c, a: (j.nn.softmax(c + a), c.max(1)), x[0], x))(x)
        if way == "while":
            return j.jit(lambda x: lax.while_loop(lambda s: s[1] < 4, lambda s: (
                s[0] - s[0].max(1, keepdims=True) * 0.5, s[1] + 1), (x, 0)))(x)
        if way == "donated":
            return j.jit(lambda x: x - x.max(1, keepdims=True), donate_argnums=0)(jnp.array(x))
        return j.jit(lambda x: j.nn.log_softmax(x) + x.argmax(-1)[..., None])(x)

    before = runtime.num_threads()
    runtime.set_num_threads(threads)
    try:
        with styrax.core.settings.config.states["styrax_debug"]("bounds" if way == "checked" else "verify"):
            got = program(styrax)
    finally:
        runtime.set_num_threads(before)
    same(got, program(jax), 1e-4)


def test_bits_do_not_depend_on_threads():
    x, found = normal(20000, 10), []
    for threads in (1, 2):
        before = runtime.num_threads()
        runtime.set_num_threads(threads)
        found.append(np.asarray(styrax.jit(lambda x: styrax.nn.softmax(x * 1))(x)))
        runtime.set_num_threads(before)
    np.testing.assert_array_equal(*found)
