"""Nests that see of buffers what they reach: steps written one by one share one function, with the results of JAX."""

import jax
import numpy as np
import pytest

import styrax
from styrax.cpu import runtime

rng = np.random.default_rng(0)


def unrolled(j):
    def f(x, w):
        h = j.numpy.zeros(x.shape[1:])
        for t in range(x.shape[0]):
            h = j.numpy.tanh(x[t] @ w + h)
        return h
    return f


def slices(j):
    def f(x, w):
        steps = [j.numpy.sin(x[t, ::-1]) * w[0] + j.numpy.cumsum(x[t], axis=-1) for t in range(x.shape[0])]
        return j.numpy.concatenate(steps, axis=0)
    return f


def updates(j):
    def f(x, w):
        for t in range(1, x.shape[0]):
            x = x.at[t].set(j.numpy.exp(-abs(x[t - 1])) + x[t]).at[t, 3:5].multiply(2)
        return x
    return f


def masked(j):
    def f(x, w):
        rows = [j.numpy.where(x[t] > 0.5, x[t], x[t, :, ::-1]).max(axis=0) for t in range(x.shape[0])]
        return j.numpy.stack(rows), [x[t] > w[0] for t in range(x.shape[0])]
    return f


def phases(j):
    return lambda x, w: j.lax.conv_transpose(x[:, :, None, :], w[:4, None, None, : x.shape[2]].repeat(4, 1), (2, 2),
                                             "SAME", transpose_kernel=True)


CASES = [(make, dtype) for make in (unrolled, slices, updates, masked, phases)
         for dtype in ("float32", "complex64", "bfloat16")
         if dtype != "complex64" or make not in (masked, phases)]  # (not ordered, not convolved)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("make", "dtype"), CASES)
def test_as_jax(make, dtype, threads):
    before = runtime.num_threads()
    try:
        runtime.set_num_threads(threads)
        for steps, rows, width in ((1, 1, 8), (7, 5, 16), (20, 40, 32)):
            x = (rng.normal(size=(steps, rows, width)) / 4).astype(jax.numpy.dtype(dtype))
            w = (rng.normal(size=(width, width)) / 4).astype(jax.numpy.dtype(dtype))
            got, want = (jax.tree.leaves(j.jit(make(j))(x, w)) for j in (styrax, jax))
            for a, b in zip(got, want, strict=True):
                a, b = (np.asarray(v).astype(complex) for v in (a, b))
                tolerance = 0.05 if dtype == "bfloat16" else 1e-5
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    finally:
        runtime.set_num_threads(before)


def parts(f, *args):
    return styrax.jit(f).lower(*args).compile().as_text("llvm").count("define void @part")


def test_steps_share_their_code():
    few, many = (parts(unrolled(styrax), rng.normal(size=(n, 40, 96)).astype(np.float32), np.eye(96, dtype=np.float32))
                 for n in (25, 50))
    assert many - few <= 2
    x, w = rng.normal(size=(2, 14, 14, 32)).astype(np.float32), rng.normal(size=(4, 4, 32, 16)).astype(np.float32)
    dilated = lambda stride: parts(lambda x, w: styrax.lax.conv_transpose(x, w, (stride, stride), "SAME"), x, w)
    assert dilated(4) <= dilated(2) + 3  # sixteen phases, and four
