"""Continuous distributions that are functions of uniform numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.lax.shaping.shapes import canonical_shape
from styrax.transforms.jit import jit_for_all_shapes as jit

from .keys import check_prng_key, split_apart
from .uniforms import _uniform, checked_dtype, float_dtype, placed, shape_or_broadcast, uniform


def _number(value: complex, dtype: Any) -> Any:
    return np.asarray(value).astype(dtype)


@api_boundary
def normal(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
           out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the standard normal distribution.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float or complex dtype. Complex numbers have variance 1 in all.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) with mean 0 and variance 1.

    Raises:
      ValueError: for another dtype.

    Example:
      >>> import styrax as jax
      >>> jax.random.normal(jax.random.key(0), (2, 3)).shape
      (2, 3)
    """
    key, _ = check_prng_key("normal", key)
    shape = canonical_shape(shape)
    dtype = checked_dtype("normal", dtype, float, np.inexact, "a float or complex")
    return placed(_normal(key, shape, dtype), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    if not dtypes.issubdtype(dtype, np.complexfloating):
        return _normal_real(key, shape, dtype)
    part = np.dtype(f"float{4 * np.dtype(dtype).itemsize}")
    first, second = split_apart(key, 2)
    re = lax.convert_element_type(_normal_real(first, shape, part), dtype)
    im = lax.convert_element_type(_normal_real(second, shape, part), dtype)
    return lax.div(lax.add(re, lax.mul(_number(1j, dtype), im)), _number(part.type(math.sqrt(2)), dtype))


@partial(jit, static_argnums=(1, 2))
def _normal_real(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    low = np.nextafter(_number(-1.0, dtype), _number(0.0, dtype), dtype=dtype)
    u = uniform(key, shape, dtype, low, _number(1.0, dtype))
    return lax.mul(_number(math.sqrt(2), dtype), lax.erf_inv(u))


@api_boundary
def truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Sequence[int] | None = None,
                     dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the standard normal distribution between two bounds.

    Args:
      key: a random key.
      lower, upper: bounds.
      shape: shape of the result; by default that of the bounds broadcast together.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of numbers in `[lower, upper]`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> x = jax.random.truncated_normal(jax.random.key(0), -1.0, 1.0, (100,))
      >>> bool(jnp.all(jnp.abs(x) <= 1))
      True
    """
    key, _ = check_prng_key("truncated_normal", key)
    dtype = float_dtype("truncated_normal", dtype)
    shape = shape_or_broadcast("truncated_normal", shape, lower, upper)
    return placed(_truncated_normal(key, lower, upper, shape, dtype), out_sharding)


@partial(jit, static_argnums=(3, 4))
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy import clip

    root = _number(math.sqrt(2), dtype)
    lower, upper = lax.convert_element_type(lower, dtype), lax.convert_element_type(upper, dtype)
    a, b = lax.erf(lax.div(lower, root)), lax.erf(lax.div(upper, root))
    out = lax.mul(root, lax.erf_inv(uniform(key, shape, dtype, minval=a, maxval=b)))
    # Rounding must not carry a number out of the open interval.
    return clip(out, lax.nextafter(lax.stop_gradient(lower), _number(np.inf, dtype)),
                lax.nextafter(lax.stop_gradient(upper), _number(-np.inf, dtype)))


def exponential(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
                out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the exponential distribution with mean 1.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of nonnegative numbers.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> bool(jnp.all(jax.random.exponential(jax.random.key(0), (100,)) >= 0))
      True
    """
    key, _ = check_prng_key("exponential", key)
    dtype, shape = float_dtype("exponential", dtype), canonical_shape(shape)
    return placed(_exponential(key, shape, dtype), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _exponential(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    return lax.neg(lax.log1p(lax.neg(uniform(key, shape, dtype))))


def laplace(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
            out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the Laplace distribution with location 0 and scale 1.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force), symmetric about 0
      with variance 2.
    """
    key, _ = check_prng_key("laplace", key)
    dtype, shape = float_dtype("laplace", dtype), canonical_shape(shape)
    return placed(_laplace(key, shape, dtype), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _laplace(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    low = np.nextafter(_number(-1.0, dtype), _number(0.0, dtype), dtype=dtype)
    u = uniform(key, shape, dtype, minval=low, maxval=1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


def logistic(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
             out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the logistic distribution.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force), symmetric about 0.
    """
    key, _ = check_prng_key("logistic", key)
    dtype, shape = float_dtype("logistic", dtype), canonical_shape(shape)
    return placed(_logistic(key, shape, dtype), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _logistic(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    x = uniform(key, shape, dtype, _tiny(dtype), 1.0)
    return lax.sub(lax.log(x), lax.log1p(lax.neg(x)))


def _tiny(dtype: Any) -> Any:
    return np.asarray(dtypes.finfo(dtype).tiny).astype(dtype)


def _eps(dtype: Any) -> Any:
    return np.asarray(dtypes.finfo(dtype).eps).astype(dtype)


def cauchy(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
           out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the Cauchy distribution with location 0 and scale 1.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force), of any real numbers: they
      have no mean.
    """
    key, _ = check_prng_key("cauchy", key)
    dtype, shape = float_dtype("cauchy", dtype), canonical_shape(shape)
    return placed(_cauchy(key, shape, dtype), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _cauchy(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    u = uniform(key, shape, dtype, _eps(dtype), 1.0)
    return lax.tan(lax.mul(_number(np.pi, dtype), lax.sub(u, _number(0.5, dtype))))


def gumbel(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, mode: str | None = None, *,
           out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the standard Gumbel distribution.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float dtype.
      mode: "high" draws twice the bits, for more accurate small probabilities; "low" does not.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force): `-log(-log(u))` of uniform `u`.

    Raises:
      ValueError: for another dtype or mode.
    """
    key, _ = check_prng_key("gumbel", key)
    dtype, shape = float_dtype("gumbel", dtype), canonical_shape(shape)
    mode = default_mode() if mode is None else mode
    if mode not in ("high", "low"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return placed(_gumbel(key, shape, dtype, mode), out_sharding)


def default_mode() -> str:
    from styrax.core.settings import config

    return "high" if getattr(config.config, "jax_high_dynamic_range_gumbel", False) else "low"


@partial(jit, static_argnums=(1, 2, 3))
def _gumbel(key: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    from styrax.numpy import where

    tiny = _tiny(dtype)
    if mode == "low":
        u = _uniform(key, shape, dtype, minval=tiny, maxval=1.0)
        return lax.neg(lax.log(lax.neg(lax.log(u))))
    high, low = _halves(_uniform(key, (2, *shape), dtype, minval=0.0, maxval=1.0))
    # Small numbers get their low bits from the second draw.
    x = where(high >= 0.5, high, high + _eps(dtype) * low + tiny)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(x)))))


def _halves(x: Any) -> tuple[Array, Array]:
    """The two elements of the first axis."""
    first, second = (lax.squeeze(lax.slice_in_dim(x, i, i + 1), (0,)) for i in (0, 1))
    return first, second


def pareto(key: ArrayLike, b: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
           out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the Pareto distribution with scale 1.

    Args:
      key: a random key.
      b: the shape parameter.
      shape: shape of the result; by default that of `b`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of numbers from 1 on.
    """
    key, _ = check_prng_key("pareto", key)
    dtype = float_dtype("pareto", dtype)
    shape = shape_or_broadcast("pareto", shape, b)
    return placed(_pareto(key, b, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _pareto(key: Any, b: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    b = lax.convert_element_type(b, dtype)
    e = exponential(key, shape, dtype)
    return lax.exp(e / b)


def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Sequence[int] = (),
                dtype: DTypeLike | None = None) -> Array:
    """Numbers of the Weibull distribution.

    Args:
      key: a random key.
      scale, concentration: its parameters.
      shape: shape of the result.
      dtype: a float dtype.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of nonnegative numbers.
    """
    key, _ = check_prng_key("weibull_min", key)
    dtype, shape = float_dtype("weibull_min", dtype), canonical_shape(shape)
    return _weibull_min(key, scale, concentration, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _weibull_min(key: Any, scale: Any, concentration: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy import power

    e = lax.neg(lax.log1p(lax.neg(uniform(key, shape, dtype, minval=0, maxval=1))))
    return power(e, 1.0 / concentration) * scale


def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
             out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the Rayleigh distribution.

    Args:
      key: a random key.
      scale: its parameter.
      shape: shape of the result; by default that of `scale`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of nonnegative
      numbers: lengths of normal vectors of two dimensions with standard deviation `scale`.
    """
    key, _ = check_prng_key("rayleigh", key)
    dtype = float_dtype("rayleigh", dtype)
    shape = shape_or_broadcast("rayleigh", shape, scale)
    return placed(_rayleigh(key, scale, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _rayleigh(key: Any, scale: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy import broadcast_to

    u = uniform(key, shape, dtype)
    scale = broadcast_to(lax.convert_element_type(scale, dtype), shape)
    return lax.mul(scale, lax.sqrt(lax.mul(lax.log(u), _number(-2.0, dtype))))


def wald(key: ArrayLike, mean: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
         out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the Wald (inverse Gaussian) distribution with scale 1.

    Args:
      key: a random key.
      mean: its mean.
      shape: shape of the result; by default that of `mean`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of positive numbers.
    """
    key, _ = check_prng_key("wald", key)
    dtype = float_dtype("wald", dtype)
    shape = shape_or_broadcast("wald", shape, mean)
    return placed(_wald(key, mean, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _wald(key: Any, mean: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy import broadcast_to

    first, second = split_apart(key, 2)
    mean = broadcast_to(lax.convert_element_type(mean, dtype), shape)
    v, z = normal(first, shape, dtype), uniform(second, shape, dtype)
    y = lax.integer_pow(v, 2)
    y_sq, mean_sq = lax.integer_pow(y, 2), lax.integer_pow(mean, 2)
    root = lax.sqrt(4 * mean * y + mean_sq * y_sq)
    w = mean + mean_sq * y / 2 - mean / 2 * root
    return lax.select(lax.le(z, mean / (mean + w)), w, mean_sq / w)


def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike, shape: Sequence[int] | None = None,
               dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the triangular distribution on `[left, right]` with its peak at `mode`.

    Args:
      key: a random key.
      left, mode, right: its parameters.
      shape: shape of the result; by default that of the parameters broadcast together.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of numbers in `[left, right]`.
    """
    key, _ = check_prng_key("triangular", key)
    dtype = float_dtype("triangular", dtype)
    shape = shape_or_broadcast("triangular", shape, left, mode, right)
    left, mode, right = (lax.convert_element_type(x, dtype) for x in (left, mode, right))
    return placed(_triangular(key, left, mode, right, shape, dtype), out_sharding)


@partial(jit, static_argnums=(4, 5), inline=True)
def _triangular(key: Any, left: Any, mode: Any, right: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy import broadcast_to

    left, right, mode = (broadcast_to(x, shape) for x in (left, right, mode))
    peak = (mode - left) / (right - left)
    u = uniform(key, shape, dtype)
    rising = left + lax.sqrt(u * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - u) * (right - left) * (right - mode))
    return lax.select(lax.lt(u, peak), rising, falling)


def lognormal(key: ArrayLike, sigma: ArrayLike = np.float32(1.0), shape: Sequence[int] | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None) -> Array:
    """Numbers whose logarithms are normal with mean 0 and standard deviation `sigma`.

    Args:
      key: a random key.
      sigma: standard deviation of the logarithm.
      shape: shape of the result; by default that of `sigma`.
      dtype: a float or complex dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of positive numbers
      with median 1, or of complex ones whose logarithms are complex normal.
    """
    key, _ = check_prng_key("lognormal", key)
    dtype = checked_dtype("lognormal", dtype, float, np.inexact, "a float or complex")
    shape = shape_or_broadcast("lognormal", shape, sigma)
    return placed(_lognormal(key, lax.convert_element_type(sigma, dtype), shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3), inline=True)
def _lognormal(key: Any, sigma: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    return lax.exp(normal(key, shape, dtype) * sigma)


def maxwell(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
            out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the Maxwell distribution: lengths of normal vectors of three dimensions.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of nonnegative numbers.
    """
    key, _ = check_prng_key("maxwell", key)
    dtype, shape = float_dtype("maxwell", dtype), canonical_shape(shape)
    return placed(_maxwell(key, shape, dtype), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _maxwell(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy.linalg import norm

    return norm(normal(key, (*shape, 3), dtype), axis=-1)
