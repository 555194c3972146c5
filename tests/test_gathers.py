"""Reads at places that are computed: their values, and that lanes are used only where they pay."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

X = np.random.default_rng(2).normal(size=(30, 200)).astype(np.float32)
AT = np.random.default_rng(3).integers(-200, 200, (30, 50)).astype(np.int32)
PROGRAMS = {
    "along": lambda j, x, i: j.numpy.take_along_axis(x, i, 1),
    "clipped": lambda j, x, i: j.numpy.take(x.reshape(-1), i * 97, mode="clip"),
    "filled": lambda j, x, i: j.numpy.take(x.reshape(-1), i * 97, mode="fill"),
    "wrapped": lambda j, x, i: j.numpy.take(x.reshape(-1), i * 97, mode="wrap"),
    "two": lambda j, x, i: x.reshape(-1)[i] * 2 + x.reshape(-1)[i + 1],
    "both indices": lambda j, x, i: x[i % 30, i],
    "and a function": lambda j, x, i: j.numpy.exp(x.reshape(-1)[i]),
    "and sums": lambda j, x, i: (x.reshape(-1)[i].sum(1), x[0, i].max()),
    "slopes": lambda j, x, i: j.grad(lambda x: (j.numpy.take_along_axis(x, i, 1) ** 2).sum())(x),
    "permuted columns": lambda j, x, i: x[:, i[0]] + 1,
    "mapped": lambda j, x, i: j.vmap(lambda row, at: row[at])(x, i),
}


REAL = {"slopes", "and a function", "and sums"}


@pytest.mark.parametrize("name, dtype", [
    (name, dtype) for name in PROGRAMS for dtype in ("float32", "float16", "int8", "int16", "bool", "complex64")
    if name not in REAL or dtype.startswith("float")])
def test_values(name, dtype):
    f = PROGRAMS[name]
    for rows in (slice(0, 30), slice(0, 1)):
        x, i = X[rows].astype(dtype), AT[rows]
        if name == "both indices" and rows.stop == 1:
            continue
        found, want = styrax.jit(lambda x, i: f(styrax, x, i))(x, i), real.jit(lambda x, i: f(real, x, i))(x, i)
        for a, b in zip(styrax.tree.leaves(found), real.tree.leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3 if dtype == "float16" else 2e-6)


def test_lanes_only_where_they_pay():
    def loops(name):
        f = PROGRAMS[name]
        return styrax.jit(lambda x, i: f(styrax, x, i)).lower(X, AT).compile().as_text()

    assert "vector(" in loops("along") and "vector(" in loops("both indices")
    assert "vector(" in loops("and a function")
    raw = styrax.jit(lambda x, i: x[i]).lower(np.arange(300.0), AT[0].astype(np.uint8)).compile().as_text()
    assert "vector" not in raw
    assert "jammed(" in loops("permuted columns")  # rows share the places
    rows = styrax.jit(lambda x, i: x[i]).lower(X, np.arange(9)).compile().as_text()
    assert "vector(" in rows


@pytest.mark.parametrize("index", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "complex64"])
def test_indices_of_all_widths(index, dtype):
    """Computed with and compared in the bits that they have: outside at either end, clipped and filled, of columns."""
    with styrax.enable_x64(True):
        generator = np.random.default_rng(3)
        x = generator.integers(-9, 9, (90, 33)).astype(dtype)
        limits = np.iinfo(index)
        for n in (1, 7, 64, 301):
            i = generator.integers(max(limits.min, -200), min(limits.max, 200), n, dtype="int64").astype(index)
            wide = i.astype("int64")
            clipped = styrax.jit(lambda x, i: jnp.take(x[:, 5], i, mode="clip"))(x, i)
            np.testing.assert_array_equal(clipped, x[np.clip(wide, 0, 89), 5])
            wanted = np.where((wide >= -90) & (wide < 90), x[wide % 90, 7], 3)
            filled = styrax.jit(lambda x, i: x.at[i, 7].get(mode="fill", fill_value=3))(x, i)
            np.testing.assert_array_equal(filled, wanted)
            inside = np.abs(wide) % 33
            pairs = styrax.jit(lambda x, i, j: x[i, j] + x[j, i])(x, inside.astype(index), inside[::-1].astype(index))
            np.testing.assert_array_equal(pairs, x[inside, inside[::-1]] + x[inside[::-1], inside])
            rows = styrax.jit(styrax.vmap(lambda row, k: row[k]))(x[np.arange(n) % 90], inside.astype(index))
            np.testing.assert_array_equal(rows, x[np.arange(n) % 90, inside])


def test_indices_near_the_ends_of_their_type():
    """What overflows 32 bits does not in an index."""
    x = np.arange(100, dtype=np.float32)
    for i in (np.array([2**31 - 1, -2**31, 99, -100, 0], np.int32), np.array([2**32 - 1, 2**31, 99, 0], np.uint32)):
        wide = i.astype("int64")
        found = styrax.jit(lambda x, i: jnp.take(x, i, mode="clip"))(x, i)
        np.testing.assert_array_equal(found, x[np.clip(wide, 0, 99)])
        filled = styrax.jit(lambda x, i: x.at[i].get(mode="fill", fill_value=-1))(x, i)
        np.testing.assert_array_equal(filled, np.where((wide >= -100) & (wide < 100), x[wide % 100], -1))
