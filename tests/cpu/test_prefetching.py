"""Loops that stride through far memory ask for what they read later; values are what they are without."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
import styrax as jax
import styrax.numpy as jnp
from styrax.core.settings import config

FAR = np.random.default_rng(0).normal(size=(700, 640)).astype(np.float32)
NEAR = FAR[:40]
ROW = FAR[0]

PROGRAMS = {
    "weighted columns": (lambda x: (x[:, :1] * x).sum(0), lambda x: (x[:, :1] * x).sum(0)),
    "sums of columns": (lambda x: x.sum(0), lambda x: x.sum(0)),
    "backwards": (lambda x: (x[::-1] * x).sum(0), lambda x: (x[::-1] * x).sum(0)),
    "softmax of columns": (lambda x: jnp.exp(x - x.max(0)) / jnp.exp(x - x.max(0)).sum(0),
                           lambda x: np.exp(x - x.max(0)) / np.exp(x - x.max(0)).sum(0)),
}


def prefetches(f, x):
    return "@llvm.prefetch" in styrax.jit(f).lower(x).compile().as_text("llvm")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_values(name, dtype):
    ours, wanted = PROGRAMS[name]
    x = (FAR * 4).astype(dtype)
    with styrax.enable_x64(dtype == np.float64):
        np.testing.assert_allclose(styrax.jit(ours)(x), wanted(x), 1e-3, 1e-3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_where(name):
    ours, _ = PROGRAMS[name]
    assert prefetches(ours, FAR)
    assert not prefetches(ours, NEAR)  # stays in a near cache


def test_processors_see_streams():
    assert not prefetches(lambda x: x.sum(1), FAR)
    assert not prefetches(lambda x: x * 2, FAR)
    assert not prefetches(lambda x: x @ ROW, FAR)


ROWS = np.random.default_rng(1).normal(size=(40_000, 16)).astype(np.float32)
PLACES = np.random.default_rng(2).integers(-50_000, 50_000, 3000).astype(np.int32)  # some are behind the ends
NEW = np.random.default_rng(3).normal(size=(3000, 16)).astype(np.float32)


def added(x, i, new):
    out = x.copy()
    valid = (i >= -len(x)) & (i < len(x))
    np.add.at(out, i[valid], new[valid])
    return out


def replaced(x, i, new):
    out = x.copy()
    for k, v in zip(i, new, strict=True):
        if -len(x) <= k < len(x):
            out[k] = v
    return out


def greatest(x, i, new):
    out = x.copy()
    valid = (i >= -len(x)) & (i < len(x))
    np.maximum.at(out, i[valid], new[valid])
    return out


def summed(i, new):
    out = np.zeros((40_000, 16), np.float32)
    valid = (i >= 0) & (i < 40_000)
    np.add.at(out, i[valid], new[valid])
    return out


INDIRECT = {
    "add": (lambda x, i, new: x.at[i].add(new), added),
    "set": (lambda x, i, new: x.at[i].set(new), replaced),
    "max": (lambda x, i, new: x.at[i].max(new), greatest),
    "segments": (lambda x, i, new: jax.ops.segment_sum(new, i, 40_000), lambda x, i, new: summed(i, new)),
    "sum of rows": (lambda x, i, new: x[i].sum(0), lambda x, i, new: x[np.clip(np.where(
        i < 0, i + len(x), i), 0, len(x) - 1)].sum(0)),
    "loop": (lambda x, i, new: jax.lax.fori_loop(0, len(i), lambda k, x: x.at[i[k]].add(new[k]), x), added),
    "vmapped": (lambda x, i, new: jax.vmap(lambda new: x.at[i].add(new), 2, 2)(jnp.stack([new, new], 2))[:, :, 1],
                added),
}


REAL = [(name, dtype) for name in INDIRECT for dtype in ("float32", "bfloat16", "int16")]
COMPLEX = [(name, "complex64") for name in INDIRECT if name not in ("max", "segments")]


@pytest.mark.parametrize(("name", "dtype"), REAL + COMPLEX)
def test_values_at_places_that_are_read(name, dtype):
    ours, wanted = INDIRECT[name]
    x, new = ((8 * a).astype("int32").astype(jnp.dtype(dtype)) for a in (ROWS, NEW))
    exact = np.complex128 if dtype == "complex64" else np.float64
    if dtype == "complex64":
        x, new = x * (1 + 2j), new * (2 - 1j)
    if name in ("sum of rows", "segments", "add", "loop", "vmapped") and dtype == "bfloat16":
        x, new = x.astype("float16"), new.astype("float16")
    got = np.asarray(jax.jit(ours)(x, PLACES, new)).astype(exact)
    np.testing.assert_allclose(got, wanted(x.astype(exact), PLACES, new.astype(exact)).astype(exact), 1e-2, 1e-2)


@pytest.mark.parametrize("name", sorted(INDIRECT.keys() - {"loop"}))  # (which counts its turns itself)
def test_where_rows_are_reached_by_numbers(name):
    def asks(x, i, new):
        return "@llvm.prefetch" in jax.jit(INDIRECT[name][0]).lower(x, i, new).compile().as_text("llvm")

    assert asks(ROWS, PLACES, NEW)
    assert not asks(ROWS, PLACES[:20], NEW[:20])  # over before what is asked for comes
    if name != "segments":
        assert not asks(ROWS[:500], PLACES, NEW)  # near
        assert not asks(np.repeat(ROWS[:, :1], 9, 0), PLACES, NEW[:, :1])  # little in each turn


def test_numbers_behind_a_condition_are_not_read_ahead():
    """`i` has fewer numbers than there are turns."""
    def f(x, i):
        turn = lambda k, x: jax.lax.cond(k < 100, lambda x: x.at[i[k]].add(1.0), lambda x: x, x)
        return jax.lax.fori_loop(0, 3000, turn, x)

    got = jax.jit(f)(ROWS, PLACES[:100])
    np.testing.assert_allclose(got, added(ROWS, PLACES[:100], np.ones((100, 16), np.float32)), rtol=1e-6)


def test_turns_at_the_end_read_no_numbers_behind_it():
    with config.states["styrax_debug"]("bounds"):
        got = jax.jit(INDIRECT["add"][0])(ROWS, PLACES, NEW)
    np.testing.assert_allclose(got, added(ROWS, PLACES, NEW), 1e-5, 1e-5)
