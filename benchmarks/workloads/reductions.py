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


@jax.jit
def log_softmax_of_classes(x):
    return jax.nn.log_softmax(x)


@jax.jit
def classes(x):
    return jnp.argmax(x, axis=1), jnp.max(x, axis=1)


covariance_gradient = jax.jit(jax.grad(lambda x: jnp.sum(jnp.cov(x) ** 2)))


@jax.jit
def peak(x):
    return jnp.argmax(x), jnp.max(x)


@jax.jit
def shortlist(x):
    return jax.lax.top_k(x, 200)


def numpy_log_softmax(x):
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def few_columns(rng):
    return rng.integers(1000, 50_000), rng.integers(9, 33)


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
LOG_SOFTMAX_OF_CLASSES = Workload(
    "log softmax of ten classes", log_softmax_of_classes, one_array, [(10_000, 10), (5000, 26)], few_columns,
    numpy=numpy_log_softmax,
)  # fmt: skip
CLASSES = Workload(
    "likeliest of some classes", classes, one_array, [(10_000, 10), (5000, 24)], few_columns,
    numpy=lambda x: (np.argmax(x, axis=1), np.max(x, axis=1)),
)  # fmt: skip
PEAK = Workload(
    "largest of all elements", peak, one_array, [(40, 50, 60), (7, 11, 13)], between(10, 200, 3),
    numpy=lambda x: (np.argmax(x), np.max(x)),
)  # fmt: skip
SHORTLIST = Workload("200 largest of long rows", shortlist, one_array, [(16, 32_000), (100_000,)],
                     between(10_000, 300_000))
COVARIANCE_GRADIENT = Workload("gradient of a covariance", covariance_gradient, one_array, [(30, 5000), (300, 300)],
                               between(20, 600, 2), tolerance=1e-3)
