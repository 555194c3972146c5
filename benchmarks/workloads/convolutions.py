"""Convolutions in two layouts, depthwise, inside a loop, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
from jax import lax

from .catalog import Workload, floats

NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")


@jax.jit
def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)


convolution_gradient = jax.jit(jax.grad(lambda x, w: jnp.sum(convolution(x, w) ** 2), argnums=(0, 1)))


@jax.jit
def depthwise(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=x.shape[-1]
    )


@jax.jit
def channels_first_loop(x, w):
    def step(i, y):
        return jnp.tanh(lax.conv_general_dilated(y, w, (1, 1), "SAME", dimension_numbers=NCHW))

    return lax.fori_loop(0, 10, step, x)


@jax.jit
def strided_channels_first(x, w):
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NCHW)


strided_gradient = jax.jit(jax.grad(lambda x, w: jnp.sum(strided_channels_first(x, w) ** 2), argnums=(0, 1)))


@jax.jit
def wide_transposed(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)


@jax.jit
def pointwise(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=NHWC)


def patches(x, w):
    return lax.conv_general_dilated(x, w, w.shape[:2], "VALID", dimension_numbers=NHWC)


patches_gradient = jax.jit(jax.grad(lambda x, w: jnp.sum(patches(x, w) ** 2), argnums=(0, 1)))


def torch_patches(x, w):
    import torch

    y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), stride=w.shape[:2])
    return y.permute(0, 2, 3, 1)


def torch_convolution(x, w):
    import torch

    y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
    return y.permute(0, 2, 3, 1)


def torch_gradient(function):
    """The gradients of the sum of squares of a function's results, by both arguments."""

    def gradient(x, w):
        import torch

        x, w = (a.detach().requires_grad_() for a in (x, w))
        return torch.autograd.grad((function(x, w) ** 2).sum(), (x, w))

    return gradient


def torch_strided(x, w):
    import torch

    pads = []
    for n in (x.shape[3], x.shape[2]):
        total = max(0, (-(-n // 2) - 1) * 2 + 3 - n)
        pads += [total // 2, total - total // 2]
    return torch.nn.functional.conv2d(torch.nn.functional.pad(x, pads), w, stride=2)


def halves(shape, rng):
    return [x.astype(ml_dtypes.bfloat16) for x in images(shape, rng)]


def images(shape, rng):
    batch, size, channels, outputs = shape
    x, w = floats((batch, size, size, channels), (3, 3, channels, outputs), rng=rng)
    return [x, w / channels]


def depthwise_images(shape, rng):
    batch, size, channels = shape
    return floats((batch, size, size, channels), (3, 3, 1, channels), rng=rng)


def channels_first(shape, rng):
    batch, size, channels = shape
    x, w = floats((batch, channels, size, size), (channels, channels, 3, 3), rng=rng)
    return [x, w / channels]


def channels_first_images(shape, rng):
    batch, size, channels, outputs = shape
    x, w = floats((batch, channels, size, size), (outputs, channels, 3, 3), rng=rng)
    return [x, w / channels]


def pointwise_images(shape, rng):
    batch, size, channels, outputs = shape
    x, w = floats((batch, size, size, channels), (1, 1, channels, outputs), rng=rng)
    return [x, w / channels]


def patched_images(shape, rng):
    batch, size, patch, outputs = shape
    x, w = floats((batch, size, size, 3), (patch, patch, 3, outputs), rng=rng)
    return [x, w / patch]


def draw_images(rng):
    return rng.integers(1, 16), rng.integers(7, 40), rng.integers(1, 48), rng.integers(4, 64)


CONVOLUTION = Workload(
    "3x3 convolution", convolution, images, [(8, 32, 32, 64), (64, 8, 1, 16)], draw_images,
    torch=torch_convolution,
)  # fmt: skip
CONVOLUTION_GRADIENT = Workload(
    "3x3 convolution gradient", convolution_gradient, images, [(8, 32, 32, 64), (64, 8, 1, 16)], draw_images,
    torch=torch_gradient(torch_convolution),
)  # fmt: skip
BFLOAT16_CONVOLUTION = Workload(
    "bfloat16 convolution", convolution, halves, [(8, 32, 64, 64)], draw_images, torch=torch_convolution,
    tolerance=2e-2,
)  # fmt: skip
DEPTHWISE = Workload(
    "depthwise convolution", depthwise, depthwise_images, [(8, 32, 64)],
    lambda rng: (rng.integers(1, 16), rng.integers(7, 40), rng.integers(3, 96)),
)  # fmt: skip
CHANNELS_FIRST_LOOP = Workload(
    "channels-first convolution in a loop", channels_first_loop, channels_first, [(4, 16, 16)],
    lambda rng: (rng.integers(1, 8), rng.integers(7, 28), rng.integers(3, 24)), tolerance=1e-3,
)  # fmt: skip
STRIDED_CHANNELS_FIRST = Workload(
    "strided convolution, channels first", strided_channels_first, channels_first_images,
    [(8, 32, 32, 64), (8, 7, 64, 128)], draw_images, torch=torch_strided,
)  # fmt: skip
STRIDED_GRADIENT = Workload(
    "strided convolution gradient, channels first", strided_gradient, channels_first_images,
    [(8, 32, 32, 64), (4, 14, 64, 64)], draw_images, torch=torch_gradient(torch_strided),
)  # fmt: skip
WIDE_TRANSPOSED = Workload(
    "transposed convolution, 64 to 32 channels", wide_transposed, images, [(4, 16, 64, 32)], draw_images,
)  # fmt: skip
POINTWISE = Workload(
    "1x1 convolution", pointwise, pointwise_images, [(8, 28, 128, 128), (2, 14, 256, 1024)],
    lambda rng: (rng.integers(1, 16), rng.integers(7, 40), *rng.integers(16, 300, 2)), torch=torch_patches,
)  # fmt: skip
PATCHES_GRADIENT = Workload(
    "gradient of patches", patches_gradient, patched_images, [(4, 224, 16, 192), (16, 32, 4, 64)],
    lambda rng: (rng.integers(1, 9), rng.integers(40, 160), rng.integers(3, 17), rng.integers(8, 200)),
    torch=torch_gradient(torch_patches), tolerance=1e-3,
)  # fmt: skip
