"""Convolutions, pooling, images, filters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import signal

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")


def conv(numbers, strides=(1, 1), padding="SAME", **options):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **options)


add("conv 3×3", conv(NHWC), "1,16,16,3 3,3,3,16", "1,28,28,16 3,3,16,32", "4,16,16,32 3,3,32,32", "1,64,64,8 3,3,8,8")
add("conv 3×3, channels first", conv(NCHW), "1,3,16,16 16,3,3,3", "1,16,28,28 32,16,3,3", "4,32,16,16 32,32,3,3")
add("conv 1×1", conv(NHWC), "2,16,16,32 1,1,32,64", "1,32,32,64 1,1,64,16")
add("conv 1×1, channels first", conv(NCHW), "2,32,16,16 64,32,1,1")
add("conv 5×5", conv(NHWC), "1,28,28,1 5,5,1,16", "4,14,14,16 5,5,16,16")
add("conv 7×7 stride 2", conv(NHWC, (2, 2)), "1,56,56,3 7,7,3,16")
add("conv 3×3 stride 2", conv(NHWC, (2, 2)), "2,28,28,16 3,3,16,32")
add("conv 4×4 stride 4", conv(NHWC, (4, 4), "VALID"), "2,32,32,3 4,4,3,32")
add("conv valid", conv(NHWC, padding="VALID"), "2,28,28,8 3,3,8,8")
add("conv dilated", conv(NHWC, rhs_dilation=(2, 2)), "1,28,28,16 3,3,16,16")
add("conv of a dilated image", conv(NHWC, padding=((1, 2), (1, 2)), lhs_dilation=(2, 2)), "1,14,14,16 3,3,16,16")
add("conv depthwise", conv(NHWC, feature_group_count=32), "2,16,16,32 3,3,1,32", fixed=True)
add("conv depthwise, channels first", conv(NCHW, feature_group_count=32), "2,32,16,16 32,1,3,3", fixed=True)
add("conv of 4 groups", conv(NHWC, feature_group_count=4), "2,16,16,32 3,3,8,32", fixed=True)
add("conv of batches' groups", conv(NHWC, batch_group_count=2), "4,16,16,8 3,3,8,16", fixed=True)
add("conv, one channel", conv(NHWC), "1,100,100,1 3,3,1,1", "1,200,150,1 5,5,1,1")
add("conv of a large kernel", conv(NHWC), "1,28,28,4 11,11,4,4")
add("conv and relu", lambda x, w, b: jax.nn.relu(conv(NHWC)(x, w) + b), "2,16,16,16 3,3,16,32 32")
add("conv transposed", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), "1,14,14,16 3,3,16,8")
add("conv transposed 4×4", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), "2,8,8,32 4,4,32,16")
add("conv 1-d", lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
    "1,100,16 3,16,16", "4,500,8 5,8,16")
add("conv 1-d, channels first", lambda x, w: lax.conv(x, w, (1,), "SAME"), "4,8,500 16,8,5")
add("conv 1-d causal", lambda x, w: lax.conv_general_dilated(
    x, w, (1,), ((4, 0),), rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")), "2,300,16 3,16,16")
add("conv 1-d depthwise", lambda x, w: lax.conv_general_dilated(
    x, w, (1,), ((3, 0),), dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=64), "2,128,64 4,1,64",
        fixed=True)
add("conv 3-d", lambda x, w: lax.conv_general_dilated(
    x, w, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")), "1,8,16,16,4 3,3,3,4,8")
add("conv patches", lambda x: lax.conv_general_dilated_patches(x, (3, 3), (1, 1), "SAME"), "1,3,32,32")
add("conv of integers", conv(NHWC), "1,16,16,4:int 3,3,4,4:int")
add("vmap of conv", lambda x, w: jax.vmap(conv(NHWC))(x, w), "4,1,12,12,4 4,3,3,4,4")

# Pooling.


def pool(operation, initial, size, stride, padding="VALID"):
    dims, strides = (1, *size, 1), (1, *stride, 1)
    return lambda x: lax.reduce_window(x, np.array(initial, x.dtype), operation, dims, strides, padding)


add("max pool 2×2", pool(lax.max, -np.inf, (2, 2), (2, 2)), "1,28,28,16", "4,32,32,32")
add("max pool 3×3", pool(lax.max, -np.inf, (3, 3), (1, 1), "SAME"), "1,28,28,16")
add("max pool 3×3 stride 2", pool(lax.max, -np.inf, (3, 3), (2, 2), "SAME"), "2,28,28,16")
add("sum pool 2×2", pool(lax.add, 0, (2, 2), (2, 2)), "4,32,32,32")
add("sum pool 3×3", pool(lax.add, 0, (3, 3), (1, 1), "SAME"), "1,28,28,16")
add("min pool 2×2", pool(lax.min, np.inf, (2, 2), (2, 2)), "4,32,32,32")
add("product pool 2×2", pool(lax.mul, 1, (2, 2), (2, 2)), "1,28,28,16")
add("max pool, channels first", lambda x: lax.reduce_window(
    x, np.array(-np.inf, x.dtype), lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), "4,32,32,32")
add("max pool by reshape", lambda x: x.reshape(4, 16, 2, 16, 2, 32).max((2, 4)), "4,32,32,32", fixed=True)
add("max pool gradient", jax.grad(lambda x: jnp.sum(pool(lax.max, -np.inf, (2, 2), (2, 2))(x) ** 2)), "2,28,28,16")
add("mean pool gradient", jax.grad(lambda x: jnp.sum((pool(lax.add, 0, (2, 2), (2, 2))(x) / 4) ** 2)), "2,28,28,16")
add("conv gradients", jax.grad(lambda x, w: jnp.sum(conv(NHWC)(x, w) ** 2), (0, 1)), "1,16,16,8 3,3,8,8")
add("moving sum", lambda x: lax.reduce_window(x, np.array(0, x.dtype), lax.add, (10,), (1,), "VALID"), "1000", "20000")
add("moving maximum", lambda x: lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, (10,), (1,), "VALID"), "1000",
    "20000")
add("moving maximum of rows", lambda x: lax.reduce_window(
    x, np.array(-np.inf, x.dtype), lax.max, (1, 7), (1, 1), "SAME"), "300,200")
add("box of 3×3", lambda x: lax.reduce_window(x, np.array(0, x.dtype), lax.add, (3, 3), (1, 1), "SAME"), "300,200")
add("dilated window", lambda x: lax.reduce_window(
    x, np.array(0, x.dtype), lax.add, (3, 3), (1, 1), "VALID", window_dilation=(2, 2)), "100,100")
add("logsumexp window", lambda x: lax.reduce_window(
    x, np.array(-np.inf, x.dtype), jnp.logaddexp, (4,), (1,), "VALID"), "1000")
add("moving variance", lambda x: jnp.var(x[jnp.arange(x.shape[0] - 9)[:, None] + jnp.arange(10)], 1), "1000")
add("sum of local maxima", lambda x: jnp.sum(jnp.where(x == lax.reduce_window(
    x, np.array(-np.inf, x.dtype), lax.max, (3, 3), (1, 1), "SAME"), x, 0)), "300,200")

# Images.
for method in "nearest linear cubic lanczos3".split():
    add(f"image resize {method}", lambda x, method=method: jax.image.resize(x, (60, 50, 3), method), "32,32,3",
        fixed=True)
add("image resize to half", lambda x: jax.image.resize(x, (4, 32, 32, 3), "linear"), "4,64,64,3", fixed=True)
add("image resize one channel", lambda x: jax.image.resize(x, (300, 200), "linear"), "100,80")
add("scale_and_translate", lambda x, s, t: jax.image.scale_and_translate(x, (40, 50), (0, 1), s, t, "linear"),
    "32,32 2:pos 2:unit")
add("gaussian blur", lambda x: (k := jnp.exp(-0.5 * jnp.arange(-3.0, 4) ** 2).astype(x.dtype), jnp.apply_along_axis(
    lambda r: jnp.convolve(r, k, "same"), 0, jnp.apply_along_axis(lambda r: jnp.convolve(r, k, "same"), 1, x)))[1],
        "100,80")
add("random crops", lambda x, i, j: jax.vmap(lambda x, i, j: lax.dynamic_slice(x, (i, j, 0), (24, 24, 3)))(x, i, j),
    "16,32,32,3 16:int<8 16:int<8")
add("flip some images", lambda x, c: jnp.where(c[:, None, None, None], x[:, :, ::-1], x), "16,32,32,3 16:bool")
add("image gradient", lambda x: jnp.hypot(*jnp.gradient(x)), "200,150")
add("normalised images", lambda x: (x.astype(jnp.float32) / 255 - 0.45) / 0.22, "8,32,32,3:u8")

# Signals.
add("convolve2d", lambda x, y: signal.convolve2d(x, y, mode="same"), "50,60 3,3", "200,150 5,5")
add("correlate2d", lambda x, y: signal.correlate2d(x, y, mode="valid"), "50,60 3,3")
add("signal.convolve direct", lambda x, y: signal.convolve(x, y, method="direct"), "500 50")
add("fftconvolve", lambda x, y: signal.fftconvolve(x, y), "1000 100", "64,64 16,16")
add("detrend", lambda x: signal.detrend(x), "1000", "20,500", loose=10)
add("stft", lambda x: signal.stft(x, nperseg=64)[2], "2000")
add("istft", lambda x: signal.istft(signal.stft(x, nperseg=64)[2], nperseg=64)[1], "1024", fixed=True)
add("welch", lambda x: signal.welch(x, nperseg=128)[1], "2000")
add("exponential smoothing", lambda x: lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (
    jnp.full_like(x, 0.9), 0.1 * x))[1], "1000")
add("fir filter by windows", lambda x, w: x[jnp.arange(x.shape[0] - 15)[:, None] + jnp.arange(16)] @ w, "2000 16",
    fixed=True)
