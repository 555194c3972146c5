"""Updates of trees: what is computed of a leaf is one loop, however many leaves there are."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.compile.ir.loopir import Loop
from styrax.compile.pipeline import compile_to_loops


def adam(params, means, squares, grads):
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, grads)
    squares = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, squares, grads)
    return jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-8), params, means, squares), means, squares


@pytest.mark.parametrize("leaves", [1, 5, 40])
def test_a_loop_for_each_leaf(leaves):
    rng = np.random.default_rng(leaves)
    trees = [[rng.uniform(0.1, 1, (3 + k, 70)).astype(np.float32) for k in range(leaves)] for _ in range(4)]
    program = compile_to_loops(jax.make_jaxpr(adam)(*trees), "adam")
    assert sum(isinstance(s, Loop) for s in program.statements) == leaves
    params, means, squares, grads = (jax.tree.map(np.float64, t) for t in trees)
    means = [0.9 * m + 0.1 * g for m, g in zip(means, grads, strict=True)]
    squares = [0.99 * v + 0.01 * g * g for v, g in zip(squares, grads, strict=True)]
    params = [p - 0.01 * m / (np.sqrt(v) + 1e-8) for p, m, v in zip(params, means, squares, strict=True)]
    for found, wanted in zip(jax.tree.leaves(jax.jit(adam)(*trees)), [*params, *means, *squares], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)

