"""Matrix products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .catalog import Workload, between, floats, one_array


@jax.jit
def centred_gram(x):
    return x.T @ (x - x.mean(axis=0))


@jax.jit
def product(x, y):
    return x @ y


@jax.jit
def layers(x, w, v):
    return jnp.tanh(jnp.tanh(x @ w) @ v)


@jax.jit
def jacobian(x):
    return jax.jacfwd(lambda x: jnp.sin(x @ x).sum(0))(x)


def numpy_centred_gram(x):
    return x.T @ (x - x.mean(axis=0))


def halves(shape, rng):
    return [x.astype(np.float16) for x in floats(shape, shape, rng=rng)]


def skinny(shape, rng):
    rows, terms, columns = shape
    return floats((rows, terms), (terms, columns), rng=rng)


def layers_of(shape, rng):
    rows, terms, columns = shape
    return floats((rows, terms), (terms, columns), (columns, terms), rng=rng)


def square(shape, rng):
    return floats(shape, shape, rng=rng)


CENTRED_GRAM = Workload(
    "x.T @ (x - x.mean(axis=0))", centred_gram, one_array, [(1000, 1000), (10, 10), (100, 100)],
    lambda rng: (rng.integers(10, 800),) * 2, numpy=numpy_centred_gram,
)  # fmt: skip
PRODUCT = Workload(
    "large product", product, square, [(2048, 2048), (512, 512)], lambda rng: (rng.integers(300, 1500),) * 2,
    numpy=np.matmul, torch=lambda x, y: x @ y,
)  # fmt: skip
SMALL_PRODUCTS = Workload(
    "10,000 small products", product, square, [(10_000, 8, 8), (10_000, 3, 3)],
    lambda rng: (10_000, *(int(rng.integers(2, 24)),) * 2), numpy=np.matmul, torch=lambda x, y: x @ y,
)  # fmt: skip
PRODUCT_WITH_VECTOR = Workload(
    "matrix times vector", product, lambda shape, rng: floats(shape, shape[1:], rng=rng),
    [(4096, 4096), (100, 100)], between(500, 4000, 2), numpy=np.matmul, torch=lambda x, y: x @ y,
)  # fmt: skip
HALF_PRODUCT = Workload(
    "float16 product", product, halves, [(1024, 1024), (256, 256)],
    lambda rng: (rng.integers(100, 1000),) * 2, tolerance=1e-2,
)  # fmt: skip
SKINNY_PRODUCT = Workload(
    "product of a few rows", product, skinny, [(16, 1024, 1024), (64, 1024, 768), (4, 1024, 1024)],
    lambda rng: (rng.integers(4, 64), rng.integers(300, 1500), rng.integers(300, 1500)), numpy=np.matmul,
    torch=lambda x, y: x @ y,
)  # fmt: skip
LONG_SUMS = Workload(
    "product over many terms", product, skinny, [(30, 10_000, 30), (64, 8000, 32)],
    lambda rng: (rng.integers(17, 100), rng.integers(3000, 20_000), rng.integers(17, 100)), numpy=np.matmul,
    torch=lambda x, y: x @ y, tolerance=1e-4,
)  # fmt: skip
LAYERS = Workload(
    "two layers for a few rows", layers, layers_of, [(10, 512, 1024), (14, 64, 64), (32, 40, 50)],
    lambda rng: (rng.integers(2, 40), rng.integers(20, 800), rng.integers(20, 800)),
    tolerance=1e-3,  # sums of a thousand terms near zero, after a tanh: JAX's own error is 1e-4
)  # fmt: skip
JACOBIAN = Workload(
    "jacobian of a product", jacobian, one_array, [(20, 20), (50, 50)], lambda rng: (rng.integers(3, 60),) * 2,
)  # fmt: skip
