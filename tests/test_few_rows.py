"""Products of few rows against a large operand, which is read as it lies: values, against JAX's in float64."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def einsum(text):
    return lambda j, x, w: j.numpy.einsum(text, x, w)


def gradient(j, x, w):
    return j.grad(lambda w: (j.numpy.tanh(x @ w) ** 2).sum())(w)


def loop(j, x, w):
    return j.lax.fori_loop(0, 3, lambda _, x: x.at[:, :180].add(j.numpy.tanh(x @ w)), x)


W = normal(530, 180)
PROGRAMS = {
    "one": (lambda j, x, w: x[0] @ w, (1, 530), W),
    "rows": (lambda j, x, w: x @ w, (5, 530), W),
    "two blocks": (lambda j, x, w: x @ w, (27, 530), W),
    "rows that fill tiles": (lambda j, x, w: x @ w, (16, 530), W),
    "turned": (lambda j, x, w: x.T @ w, (530, 3), W),
    "of a slice": (lambda j, x, w: x @ w[20:, 5:170], (6, 510), W),
    "of every other row": (lambda j, x, w: x @ w[::2], (9, 265), normal(530, 300)),
    "of columns": (lambda j, x, w: x @ w.T, (7, 180), W),
    "of long columns": (lambda j, x, w: x @ w.T, (8, 1030), normal(371, 1030)),
    "two of columns": (lambda j, x, w: x @ w.T, (2, 1030), normal(371, 1030)),
    "of columns in batches": (einsum("bik,bjk->bij"), (2, 4, 300), normal(2, 900, 300)),
    "distances": (lambda j, x, w: ((x[:, None] - w[None]) ** 2).sum(-1), (6, 200), normal(1400, 200)),
    "computed": (lambda j, x, w: j.numpy.tanh(x * 2) @ w + 1, (4, 530), W),
    "of what is computed": (lambda j, x, w: x @ (w * 2), (4, 530), W),
    "batches": (einsum("bik,bkj->bij"), (3, 4, 300), normal(3, 300, 250)),
    "batches inside": (einsum("ibk,kbj->bij"), (4, 3, 300), normal(300, 3, 250)),
    "heads": (einsum("ik,khj->ihj"), (2, 300), normal(300, 3, 100)),
    "mapped": (lambda j, x, w: j.vmap(lambda r: r @ w)(x), (12, 530), W),
    "gradient": (gradient, (8, 530), W / 20),
    "loop": (loop, (3, 530), W / 20),
}


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_few_rows(name, dtype, special):
    f, shape, w = PROGRAMS[name]
    x, w = normal(*shape).astype(dtype), w.astype(dtype)
    if special:
        x.flat[-1], w.flat[3] = np.inf, np.nan
    with styrax.enable_x64(True), real.enable_x64(True):
        found = np.asarray(styrax.jit(lambda x, w: f(styrax, x, w))(x, w))
        want = np.asarray(real.jit(lambda x, w: f(real, x, w))(x.astype(np.float64), w.astype(np.float64)))
    assert found.dtype == dtype and found.shape == want.shape
    tolerance = 2e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(found, want, tolerance, tolerance)
