"""Loops that stride through far memory ask for what they read later; values are what they are without."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

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
