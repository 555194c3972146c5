"""Sums, sorts and running sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .catalog import Workload, between, one_array


@jax.jit
def sums_of_axes(x):
    return x.sum(axis=0), x.sum(axis=1), x.sum(axis=2)


@jax.jit
def argsort(x):
    return jnp.argsort(x)


@jax.jit
def cumsum(x):
    return jnp.cumsum(x)


SUMS_OF_AXES = Workload(
    "sums over each axis", sums_of_axes, one_array, [(128, 256, 128), (8, 16, 32)], between(20, 200, 3),
    numpy=lambda x: (x.sum(axis=0), x.sum(axis=1), x.sum(axis=2)),
)  # fmt: skip
ARGSORT = Workload(
    "argsort", argsort, one_array, [(1_000_000,), (1000,)], between(10_000, 500_000),
    numpy=lambda x: np.argsort(x, stable=True),
)  # fmt: skip
CUMSUM = Workload(
    "cumsum", cumsum, one_array, [(1_000_000,), (1000,)], between(10_000, 500_000), numpy=np.cumsum,
    tolerance=1e-3,
)  # fmt: skip
