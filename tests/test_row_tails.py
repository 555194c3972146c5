"""What is computed once a row, from what the row was reduced to: the same as JAX's, whichever loop it gets."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax

TAILS = {
    "norm": lambda j, x: j.numpy.sqrt((x * x).sum(-1)),
    "tanh of a mean": lambda j, x: j.numpy.tanh(x.mean(-1)),
    "two reductions": lambda j, x: j.numpy.sin(x.sum(-1)) * j.numpy.exp(-j.numpy.abs(x).max(-1)),
    "two results": lambda j, x: (j.numpy.cos(x.sum(-1)), j.numpy.tanh(x.prod(-1))),
    "kept as well": lambda j, x: (x.sum(-1), j.numpy.tanh(x.sum(-1))),
    "with a vector": lambda j, x: j.numpy.tanh(x.sum(-1) + j.numpy.arange(x.shape[-2])),
    "again in the row": lambda j, x: x * j.numpy.tanh(x.sum(-1, keepdims=True)),
    "after two passes": lambda j, x: j.numpy.log(j.numpy.exp(x - x.max(-1, keepdims=True)).sum(-1)),
    "transposed": lambda j, x: j.numpy.tanh(x.sum(-1)).T,
    "of products": lambda j, x: j.numpy.tanh(j.numpy.einsum("...ij,...kj->...ik", x[..., :3, :], x)),
    "as an index": lambda j, x: j.numpy.arange(100)[j.numpy.clip(j.numpy.tanh(x.sum(-1)) * 9, 0, 9).astype(int)],
}
SHAPES = [(40, 12), (3, 9, 33), (1, 12), (0, 5)]
rng = np.random.default_rng(0)


def same(f, *args, tolerance):
    for x, y in zip(*(j.tree.leaves(f(j)(*args)) for j in (styrax, real)), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(np.asarray(x, np.complex128), np.asarray(y, np.complex128), tolerance, tolerance)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", TAILS)
def test_values(name, shape):
    x = (rng.normal(size=shape) / 2).astype(np.float32)
    same(lambda j: j.jit(lambda x: TAILS[name](j, x)), x, tolerance=1e-5)
    same(lambda j: j.jit(j.vmap(lambda s: TAILS[name](j, s * x))), np.ones(2, np.float32), tolerance=1e-5)
    if name != "as an index":
        total = lambda j: lambda x: sum(leaf.sum() for leaf in j.tree.leaves(TAILS[name](j, x)))
        same(lambda j: j.jit(j.grad(total(j))), x, tolerance=1e-4)
        same(lambda j: j.jit(lambda x: j.lax.scan(lambda c, _: (c / 2, TAILS[name](j, c)), x, None, length=3)), x,
             tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", ["norm", "tanh of a mean", "two results", "kept as well", "of products"])
def test_dtypes(name, dtype):
    x = np.asarray(real.numpy.asarray(rng.normal(size=(40, 12)) / 4).astype(dtype))
    same(lambda j: j.jit(lambda x: TAILS[name](j, x)), x, tolerance=1e-5 if dtype == "complex64" else 2e-2)


@pytest.mark.parametrize("name", TAILS)
def test_not_a_number_and_infinity(name):
    x = np.ones((20, 4), np.float32)
    x[1, 2], x[3, 1], x[5, 0] = np.nan, np.inf, -np.inf
    if name == "as an index":
        x = np.nan_to_num(x)
    same(lambda j: j.jit(lambda x: TAILS[name](j, x)), x, tolerance=1e-5)
