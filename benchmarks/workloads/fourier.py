"""Discrete Fourier transforms: powers of two, primes, many short ones, several axes, real data, and a filter."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .catalog import Workload, floats

transform = jax.jit(jnp.fft.fft)
transform_2d = jax.jit(jnp.fft.fft2)
transform_3d = jax.jit(jnp.fft.fftn)
real_transform = jax.jit(jnp.fft.rfft)
real_inverse = jax.jit(lambda x: jnp.fft.irfft(x))


@jax.jit
def low_pass(x):
    spectrum = jnp.fft.rfft2(x)
    return jnp.fft.irfft2(spectrum * jnp.exp(-0.1 * jnp.arange(spectrum.shape[-1])), s=x.shape[-2:])


filter_gradient = jax.jit(jax.grad(lambda x: jnp.sum(low_pass(x) ** 2)))


def real(shape, rng):
    return floats(shape, rng=rng)


def complex_(shape, rng):
    re, im = floats(shape, shape, rng=rng)
    return [(re + 1j * im).astype(np.complex64)]


def torch_transform(x):
    import torch

    return torch.fft.fft(x)


def torch_real_transform(x):
    import torch

    return torch.fft.rfft(x)


power_of_two = Workload("fft", transform, complex_, [(1024,), (65536,), (1 << 20,)],
                        lambda rng: (int(rng.integers(100, 20000)),), numpy=np.fft.fft, torch=torch_transform)
prime = Workload("fft of a prime length", transform, complex_, [(1009,), (10007,)], numpy=np.fft.fft,
                 torch=torch_transform)
short = Workload("many short ffts", transform, complex_, [(4096, 16), (1000, 64), (10000, 7), (1000, 97)],
                 lambda rng: (int(rng.integers(100, 2000)), int(rng.integers(4, 200))), numpy=np.fft.fft,
                 torch=torch_transform)
rows = Workload("ffts of rows", transform, complex_, [(64, 1024), (512, 512)], numpy=np.fft.fft, torch=torch_transform)
planes = Workload("fft2", transform_2d, complex_, [(512, 512), (97, 1000)], numpy=np.fft.fft2)
volumes = Workload("fftn", transform_3d, complex_, [(64, 64, 64)], numpy=np.fft.fftn)
halves = Workload("rfft", real_transform, real, [(1024,), (65536,), (1000, 64)],
                  lambda rng: (int(rng.integers(100, 20000)),), numpy=np.fft.rfft, torch=torch_real_transform)
wholes = Workload("irfft", real_inverse, complex_, [(513,), (1000, 33)], numpy=np.fft.irfft)
filters = Workload("filter by fft", low_pass, real, [(256, 256)])
filter_gradients = Workload("gradient of filter", filter_gradient, real, [(256, 256)])
