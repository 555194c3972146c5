"""Results are the same bits with one thread and with several."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.cpu import runtime

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def normalised(x):
    """Rows in 16 bits: temporaries of a row have elements of different sizes."""
    x = x.astype(jnp.bfloat16)
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + jnp.bfloat16(1e-5))


PROGRAMS = {
    "sum": (lambda x: x.sum(), normal(1 << 20)),
    "sum of columns": (lambda x: x.sum(0), normal(5000, 70)),
    "mean and variance": (lambda x: (x.mean(), x.var()), normal(1000, 1000)),
    "softmax": (lambda x: jax.nn.softmax(x), normal(2000, 333)),
    "product": (lambda x: x @ x.T, normal(700, 500)),
    "batched product": (lambda x: x @ x.swapaxes(1, 2), normal(64, 40, 50)),
    "convolution": (lambda x: lax.conv_general_dilated(
        x, jnp.ones((3, 3, 16, 32)) * 0.1, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
                    normal(8, 30, 30, 16)),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x @ x.T) ** 2)), normal(300, 200)),
    "argmax": (lambda x: x.argmax(), normal(1 << 19)),
    "cumulative sum": (lambda x: jnp.cumsum(x), normal(1 << 18)),
    "sort": (lambda x: jnp.sort(x), normal(1 << 17)),
    "scatter-add": (lambda x: jnp.zeros(50).at[(jnp.abs(x) * 20).astype(int) % 50].add(x), normal(1 << 17)),
    "windows": (lambda x: lax.fori_loop(0, 4, lambda i, x: x.at[i, :, 2:-2].mul(2).at[1:-1, 1:-1, 1:-1].add(
        0.1 * (x[2:, 1:-1, 1:-1] - x[:-2, 1:-1, 1:-1])), x), normal(30, 40, 50)),
    "convolution of short numbers": (lambda x: lax.conv_general_dilated(
        x.astype(jnp.bfloat16), jnp.ones((3, 3, 40, 32), jnp.bfloat16), (1, 2), "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC")), normal(4, 30, 30, 40)),
    "rows of short numbers": (lambda x: [jax.grad(lambda x: (jnp.abs(normalised(x).astype(jnp.float32)) ** 2).sum())(
        x * k) for k in (1.0, 2.0, 3.0)], normal(512, 1024)),
    "logsumexp": (lambda x: jax.scipy.special.logsumexp(x, 0), normal(3000, 300)),
}


@pytest.fixture
def threads():
    before = runtime.num_threads()
    yield runtime.set_num_threads
    runtime.set_num_threads(before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits(name, threads):
    f, x = PROGRAMS[name]
    compiled = jax.jit(f)
    results = []
    for count in (1, 2, 3):
        threads(count)
        results.append([np.asarray(r).tobytes() for r in jax.tree.leaves(compiled(x))])
    assert results[0] == results[1] == results[2]
