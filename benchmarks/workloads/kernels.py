"""Kernels on grids of blocks. JAX interprets them on CPUs, with slices and updates in a loop over the grid."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from .catalog import Workload, between, floats, one_array


def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


@jax.jit
def add(x, y):
    spec = pl.BlockSpec((-(-x.size // 16),), lambda i: i)
    return pl.pallas_call(add_kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(16,), in_specs=[spec, spec],
                          out_specs=spec, interpret=True)(x, y)


def softmax_kernel(x_ref, o_ref):
    e = jnp.exp(x_ref[...] - x_ref[...].max(axis=1, keepdims=True))
    o_ref[...] = e / e.sum(axis=1, keepdims=True)


@jax.jit
def softmax(x):
    spec = pl.BlockSpec((-(-x.shape[0] // 16), x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(softmax_kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(16,), in_specs=[spec],
                          out_specs=spec, interpret=True)(x)


def numpy_softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


ADD_BLOCKS = Workload(
    "a kernel that adds blocks", add, lambda shape, rng: floats(shape, shape, rng=rng), [(1_000_000,), (10_000,)],
    between(10_000, 500_000), numpy=np.add,
)  # fmt: skip
SOFTMAX_OF_BLOCKS = Workload(
    "a kernel that normalises rows", softmax, one_array, [(1024, 1024), (64, 64)], between(50, 800, 2),
    numpy=numpy_softmax,
)  # fmt: skip
