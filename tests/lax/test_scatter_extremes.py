"""Derivatives of scatter_min and scatter_max: where indices repeat, lie outside, are clipped; against dense ones."""

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

N = 5
INDICES = [[1, 1, 3, 9, -9], [4, 9, 9, 0, 0], [9, 9, 8, 8, 7], [2, 2, 2, 1, 0], [], [9]]


def dense(x, u, positions, best):
    """The derivative of the sum of results weighted 1, 2, …, shared evenly where values tie."""
    weights = np.arange(1.0, N + 1)
    gx, gu = np.zeros(N), np.zeros(len(u))
    for place in range(N):
        here = [k for k, p in enumerate(positions) if p == place]
        top = best([x[place], *u[here]])
        winners = [k for k in here if u[k] == top]
        share = weights[place] / (len(winners) + (x[place] == top))
        gx[place] = share * (x[place] == top)
        gu[winners] = share
    return gx, gu


def positions_of(indices, mode):
    wrapped = [i + N if i < 0 else i for i in indices]
    return [min(max(i, 0), N - 1) if mode == "clip" else i if 0 <= i < N else None for i in wrapped]


@pytest.mark.parametrize("indices", INDICES, ids=str)
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_gradients(name, mode, indices):
    weights = jnp.arange(1.0, N + 1)
    index = np.asarray(indices, np.int32)

    def f(x, u):
        return (getattr(x.at[index], name)(u, mode=mode) * weights).sum()

    x = np.array([1.0, 5.0, 2.0, 7.0, 3.0], np.float32)
    for values in ([4.0, 4.0, 6.0, 1.0, 1.0], [2.0, 3.0, 3.0, 9.0, 0.0]):
        u = np.array(values, np.float32)[: len(indices)]
        gx, gu = dense(x, u, positions_of(indices, mode), min if name == "min" else max)
        got = styrax.jit(styrax.grad(f, (0, 1)))(x, u)
        np.testing.assert_allclose(got[0], gx, rtol=1e-6)
        np.testing.assert_allclose(got[1], gu, rtol=1e-6)
        tx, tu = np.ones_like(x), u / 2
        _, tangent = styrax.jvp(f, (x, u), (tx, tu))
        np.testing.assert_allclose(tangent, gx @ tx + gu @ tu, rtol=1e-6)
        batched = styrax.vmap(styrax.grad(f, (0, 1)))(np.stack([x, x + 1]), np.stack([u, u + 1]))
        np.testing.assert_allclose(batched[0], np.stack([gx, gx]), rtol=1e-6)
        np.testing.assert_allclose(batched[1], np.stack([gu, gu]), rtol=1e-6)
