"""Resampling of images: each axis is multiplied with a matrix of a kernel's values."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.dims import is_named
from styrax.lax.reductions.contractions import PrecisionLike
from styrax.lax.shaping.shapes import canonical_shape
from styrax.numpy.promotion import axis_index, check_arraylike, promote_dtypes_inexact
from styrax.ops import segment_sum
from styrax.transforms.jit import jit

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How values between samples are found: the kernel that weighs the samples around."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as "linear" or "bicubic". Raises ValueError for other names."""
        try:
            return _NAMES[s]
        except KeyError:
            raise ValueError(f'Unknown resize method "{s}"') from None


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


# -- kernels, of the distances from the sample: 0 and greater ------------------------------------------
def _triangle(x: Array) -> Array:
    return jnp.maximum(0, 1 - jnp.abs(x))


def _lanczos(radius: float, x: Array) -> Array:
    """sinc(x) · sinc(x / radius), 0 beyond the radius (Duchon, 1979)."""
    values = radius * jnp.sin(np.pi * x) * jnp.sin(np.pi * x / radius)
    values = jnp.where(x > 1e-3, values / jnp.where(x != 0, np.pi**2 * x**2, 1), 1)
    return jnp.where(x > radius, 0.0, values)


def _cubic(a: float, x: Array) -> Array:
    """The cubic convolution kernel whose slope at 1 is `a` (Keys, 1981)."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x >= 2, 0.0, jnp.where(x >= 1, far, near))


_KERNELS: dict[ResizeMethod, Callable[[Array], Array]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: partial(_lanczos, 3.0),
    ResizeMethod.LANCZOS5: partial(_lanczos, 5.0),
    ResizeMethod.CUBIC: partial(_cubic, -0.5),
    ResizeMethod.CUBIC_PYTORCH: partial(_cubic, -0.5),
}
_LEAST_WEIGHT = 1000 * float(np.finfo(np.float32).eps)


def _weights(before: int, after: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool) -> Array:
    """The matrix [before, after] that makes `after` samples of `before` ones.

    Sample i of the result lies at (i + 1/2 - translation) / scale - 1/2. With `antialias`, a kernel is made
    wider where samples get fewer.
    """
    step = 1.0 / scale
    dtype = jnp.result_type(step)
    width = jnp.maximum(step, 1.0) if antialias else 1.0
    corners = lax.iota(dtype, after)
    places = ((corners + 0.5) * step - translation * step - 0.5)[None, :]
    samples = lax.iota(dtype, before)
    repeat_edges = method is ResizeMethod.CUBIC_PYTORCH and not antialias
    if method is ResizeMethod.AREA:
        # How much of each sample the interval of a result covers.
        low = (corners * step - translation * step)[None, :]
        covered = jnp.minimum(low + step, samples[:, None] + 1) - jnp.maximum(low, samples[:, None])
        weights = jnp.maximum(0, covered)
    elif repeat_edges:
        samples = lax.iota(dtype, before + 4) - 2  # the kernel reaches two samples beyond either edge
        weights = _cubic(-0.75, jnp.abs(places - samples[:, None]))
        weights = segment_sum(weights, jnp.clip(samples.astype(np.int32), 0, before - 1), before)
    else:
        weights = _KERNELS[method](jnp.abs(places - samples[:, None]) / width)
    total = jnp.sum(weights, axis=0, keepdims=True)
    weights = jnp.where(jnp.abs(total) > _LEAST_WEIGHT, weights / jnp.where(total != 0, total, 1), 0)
    if repeat_edges:
        return weights
    return jnp.where((places >= -0.5) & (places <= before - 0.5), weights, 0)


def _resampled(image: Array, shape: tuple[int, ...], dims: Sequence[int], scale: Sequence[Any],
               translation: Sequence[Any], method: ResizeMethod, antialias: bool, precision: PrecisionLike) -> Array:
    (image,) = promote_dtypes_inexact(image)
    if not dims:
        return jnp.asarray(image)
    letters = "".join(chr(97 + i) for i in range(image.ndim))
    result = "".join(c.upper() if i in dims else c for i, c in enumerate(letters))
    matrices = [_weights(image.shape[d], shape[d], s, t, method, antialias).astype(image.dtype)
                for d, s, t in zip(dims, scale, translation)]
    factors = ",".join([letters, *(letters[d] + result[d] for d in dims)])
    return jnp.einsum(f"{factors}->{result}", image, *matrices, precision=precision)


def _check_rank(image: Array, shape: tuple[int, ...]) -> None:
    if len(shape) != image.ndim:
        raise ValueError("shape must have length equal to the number of dimensions of x; "
                         f" {shape} vs {image.shape}")


def scale_and_translate(image: Array, shape: Sequence[int], spatial_dims: Sequence[int], scale: Array,
                        translation: Array, method: str | ResizeMethod, antialias: bool = True,
                        precision: PrecisionLike = lax.Precision.HIGHEST) -> Array:
    """An image, scaled and then moved along some of its axes; 0 where it does not reach.

    The sample at x goes to x · scale + translation, where samples are cells of width 1 that begin at their
    index. Scales and translations can be differentiated.

    Args:
      image: array of any rank; integers are taken as floats.
      shape: of the result, which differs from the image's along `spatial_dims` alone.
      spatial_dims: the axes, k of them.
      scale, translation: arrays of shape [k].
      method: a `ResizeMethod` or its name; not the nearest sample.
      antialias: whether kernels are made wider where the image gets smaller.
      precision: of the products, as for `lax.dot_general`.

    Returns:
      an array of `shape`, of the image's (floating or complex) dtype.

    Raises ValueError for a shape of another rank, axes out of range and unknown methods.
    """
    shape = canonical_shape(shape)
    _check_rank(image, shape)
    if isinstance(method, str):
        method = ResizeMethod.from_string(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for scale_and_translate.")
    assert isinstance(method, ResizeMethod), method
    dims = tuple(axis_index(d, image.ndim) for d in spatial_dims)
    check_arraylike("scale_and_translate", scale, translation)
    scale, translation = (jnp.asarray(v) for v in promote_dtypes_inexact(scale, translation))
    assert len(dims) == len(scale) == len(translation), (dims, scale.shape, translation.shape)
    return _resampled(image, shape, dims, [scale[i] for i in range(len(dims))],
                      [translation[i] for i in range(len(dims))], method, antialias, precision)


def _nearest(image: Array, shape: tuple[int, ...]) -> Array:
    for axis, (before, after) in enumerate(zip(image.shape, shape)):
        if before != after:
            if not before:
                raise TypeError(f"axis {axis} of an image of shape {image.shape} has no samples to take the nearest of")
            many, few = (n if is_named(n) else float(n) for n in (before, after))
            places = jnp.floor((lax.iota(np.float32, after) + 0.5) * many / few)
            image = image.at[(*[slice(None)] * axis, places.astype(np.int32))].get(
                mode="promise_in_bounds", wrap_negative_indices=False)
    return image


def _resize(image: Array, shape: tuple[int, ...], method: ResizeMethod, antialias: bool,
            precision: PrecisionLike) -> Array:
    _check_rank(image, shape)
    if method is ResizeMethod.NEAREST:
        return _nearest(image, shape)
    assert isinstance(method, ResizeMethod), method
    dims = tuple(i for i, (before, after) in enumerate(zip(image.shape, shape)) if before != after)
    scale = [shape[d] / image.shape[d] if shape[d] else 1.0 for d in dims]
    return _resampled(image, shape, dims, scale, [0.0] * len(dims), method, antialias, precision)


_resize_program = jit(_resize, static_argnames=("shape", "method", "antialias", "precision"))


def resize(image: Array, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
           precision: PrecisionLike = lax.Precision.HIGHEST) -> Array:
    """An image with other numbers of samples, over the same extent.

    Args:
      image: array of any rank; integers are taken as floats, but for the nearest sample.
      shape: of the result. Axes that keep their size are left as they are.
      method: a `ResizeMethod` or its name:
        "nearest": the nearest sample;
        "linear" (also "bilinear", "trilinear", "triangle"): interpolation between two samples;
        "cubic" (also "bicubic", "tricubic"): Keys' cubic kernel;
        "cubic-pytorch": the same as PyTorch has it: steeper, and with repeated edges, unless `antialias`;
        "lanczos3", "lanczos5": Lanczos' kernels of these radii;
        "area": the mean over the area that a result covers.
      antialias: whether kernels are made wider where the image gets smaller.
      precision: of the products, as for `lax.dot_general`.

    Returns:
      an array of `shape`.

    Raises ValueError for a shape of another rank and for unknown methods, ZeroDivisionError where samples are to be
    made of none.

    Example:
      >>> import styrax as jax
      >>> jax.image.resize(jax.numpy.array([0.0, 2.0]), (4,), "linear")
      Array([0. , 0.5, 1.5, 2. ], dtype=float32)
    """
    if isinstance(method, str):
        method = ResizeMethod.from_string(method)
    return _resize_program(image, canonical_shape(shape), method, antialias, precision)
