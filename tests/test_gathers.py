"""Reads at places that are computed: their values, and that lanes are used only where they pay."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax

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
    (name, dtype) for name in PROGRAMS for dtype in ("float32", "float16", "int8", "bool", "complex64")
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
