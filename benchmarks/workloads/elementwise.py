"""Elementwise programs and small normalisations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from .catalog import Workload, between, floats, one_array


@jax.jit
def polynomial(x):
    return x * x + x * 2


@jax.jit
def softmax(x):
    return jax.nn.softmax(x, axis=-1)


@jax.jit
def layer_norm(x, scale, bias):
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale + bias


@jax.jit
def gelu(x):
    return jax.nn.gelu(x)


gelu_gradient = jax.jit(jax.grad(lambda x: jnp.sum(jax.nn.gelu(x))))


@jax.jit
def transposition(x):
    return x.T


@jax.jit
def pixels(x):
    return jnp.clip(x * 1.2 + 10, 0, 255).astype(jnp.uint8)


@jax.jit
def eight_bit_weights(x, scales):
    return x.astype(jnp.float32) * scales[:, None]


@jax.jit
def normals(key):
    return jax.random.normal(jax.random.wrap_key_data(key), (1_000_000,))


@jax.jit
def buckets(x, counts):
    return x // counts, x % counts


@jax.jit
def softening(x):
    r = x * x + 0.01
    return r**0.5 + r**-1.5


@jax.jit
def phases(x, period):
    return jnp.fmod(x, period), x % period


@jax.jit
def distributions(a, x):
    special = jax.scipy.special
    lower = special.gammainc(a, x)
    quantile = special.ndtri(lower * 0.98 + 0.01)
    return lower, quantile, special.polygamma(1, a), special.zeta(a + 1, x), special.i1e(x), special.gammaln(a)


def numpy_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def numpy_layer_norm(x, scale, bias):
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axis=-1, keepdims=True) + np.float32(1e-5)) * scale + bias


def torch_softmax(x):
    import torch

    return torch.softmax(x, -1)


def torch_layer_norm(x, scale, bias):
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, bias, 1e-5)


def torch_gelu(x):
    import torch

    return torch.nn.functional.gelu(x, approximate="tanh")


def norm_arguments(shape, rng):
    return floats(shape, shape[-1:], shape[-1:], rng=rng)


def key_data(shape, rng):
    return [rng.integers(0, 2**32, 2, dtype=np.uint32)]


def bucket_arguments(shape, rng):
    return [rng.integers(-100000, 100000, shape).astype(np.int32), rng.integers(1, 1000, shape).astype(np.int32)]


def rows(rng):
    return rng.integers(50, 3000), rng.integers(50, 1500)


def angle_arguments(shape, rng):
    return [rng.uniform(-50, 50, shape).astype(np.float32), rng.uniform(0.5, 10, shape).astype(np.float32)]


def gamma_arguments(shape, rng):
    return [rng.uniform(0.5, 20, shape).astype(np.float32), rng.uniform(0.1, 30, shape).astype(np.float32)]


POLYNOMIAL = Workload(
    "x*x + x*2", polynomial, one_array, [(5000, 5000)], between(1000, 5000, 2), numpy=lambda x: x * x + x * 2
)
SOFTMAX = Workload(
    "softmax", softmax, one_array, [(1024, 1024), (64, 10), (32, 50000)], rows,
    numpy=numpy_softmax, torch=torch_softmax,
)  # fmt: skip
LAYER_NORM = Workload(
    "layer norm", layer_norm, norm_arguments, [(2048, 768), (16, 64)], rows,
    numpy=numpy_layer_norm, torch=torch_layer_norm,
)  # fmt: skip
GELU = Workload("gelu", gelu, one_array, [(1024, 1024), (1000,)], rows, torch=torch_gelu)
GELU_GRADIENT = Workload("gelu gradient", gelu_gradient, one_array, [(1024, 1024), (1000,)], rows)
TRANSPOSITION = Workload(
    "transposition", transposition, one_array, [(2048, 2048), (10000, 64)], between(500, 3000, 2),
    numpy=lambda x: np.ascontiguousarray(x.T),
)  # fmt: skip
NORMALS = Workload("a million normals", normals, key_data, [(1_000_000,)])
PIXELS = Workload(
    "brightness of pixels", pixels, lambda shape, rng: [rng.uniform(0, 255, shape).astype(np.float32)],
    [(1000, 1000, 3), (28, 28)],
    lambda rng: (rng.integers(10, 1000), rng.integers(10, 1000), 3), tolerance=1.0,
)  # fmt: skip
BUCKETS = Workload(
    "quotients and remainders", buckets, bucket_arguments, [(1_000_000,), (1000,)], between(100, 2_000_000),
    numpy=lambda x, counts: (x // counts, x % counts), tolerance=0.0,
)  # fmt: skip
SOFTENING = Workload(
    "powers by constants", softening, one_array, [(1000, 1000), (1000,)], rows,
    numpy=lambda x: (x * x + np.float32(0.01)) ** np.float32(0.5) + (x * x + np.float32(0.01)) ** np.float32(-1.5),
)  # fmt: skip
PHASES = Workload(
    "remainders of floats", phases, angle_arguments, [(1_000_000,), (1000,)], between(100, 2_000_000),
    numpy=lambda x, period: (np.fmod(x, period), x % period),
)  # fmt: skip
DISTRIBUTIONS = Workload(
    "distribution functions", distributions, gamma_arguments, [(100_000,), (100,)], between(100, 200_000),
    tolerance=1e-3,
)  # fmt: skip
EIGHT_BIT_WEIGHTS = Workload(
    "weights of eight bits", eight_bit_weights,
    lambda shape, rng: [floats(shape, rng=rng)[0].astype(ml_dtypes.float8_e4m3fn), *floats(shape[:1], rng=rng)],
    [(1024, 1024), (100, 30)], between(20, 2000, 2), tolerance=0.0,
)  # fmt: skip
