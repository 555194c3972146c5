"""Factorisations of one large matrix, and of many small ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .catalog import Workload, floats

cholesky = jax.jit(jnp.linalg.cholesky)
solve = jax.jit(jnp.linalg.solve)
qr = jax.jit(lambda a: jnp.linalg.qr(a))
eigenvectors = jax.jit(lambda a: jnp.linalg.eigh(a)[0])
log_determinant_gradient = jax.jit(jax.grad(lambda a: jnp.linalg.slogdet(a)[1]))


def square(shape, rng):
    return floats((shape[0], shape[0]), rng=rng)


def symmetric(shape, rng):
    (a,) = square(shape, rng)
    return [a + a.T]


def positive(shape, rng):
    (a,) = square(shape, rng)
    return [(a @ a.T + shape[0] * np.eye(shape[0])).astype(np.float32)]


def system(shape, rng):
    n, k = shape
    return [*positive((n,), rng), *floats((n, k), rng=rng)]


def many(shape, rng):
    count, n = shape
    (a,) = floats((count, n, n), rng=rng)
    return [a + n * np.eye(n, dtype=np.float32)]


def torch_of(name):
    def call(*args):
        import torch

        return getattr(torch.linalg, name)(*args)

    return call


def size(rng):
    return (int(rng.integers(200, 700)),)


factors = Workload("Cholesky factor", cholesky, positive, [(300,), (1000,)], size, numpy=np.linalg.cholesky,
                   torch=torch_of("cholesky"))
systems = Workload("linear system", solve, system, [(300, 1), (600, 600)],
                   lambda rng: (*size(rng), int(rng.integers(1, 300))), numpy=np.linalg.solve, torch=torch_of("solve"),
                   tolerance=1e-3)
orthogonal = Workload("QR of a square matrix", qr, square, [(300,), (600,)], size, tolerance=1e-2)
spectra = Workload("eigenvalues and vectors", eigenvectors, symmetric, [(100,), (400,)], size, tolerance=1e-3)
determinants = Workload("gradient of many determinants", jax.jit(jax.vmap(log_determinant_gradient)), many,
                        [(1000, 10), (50, 60)])
