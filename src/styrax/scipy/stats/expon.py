"""The exponential distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import divide, greater, less, logical_or, multiply, subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the exponential density, -z - log(scale) with z = (x - loc) / scale.

    -∞ below `loc`.

    Args:
      x: points; integers are taken as floats.
      loc: where it begins.
      scale: the mean distance from `loc`, the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("expon.logpdf", x, loc, scale)
    log_scale = lax.log(scale)
    value = lax.neg(lax.add(standardised(x, loc, scale), log_scale))
    return choose_elements(less(x, loc), -np.inf, value)


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The exponential density, exp(-z) / scale with z = (x - loc) / scale.

    0 below `loc`.

    Args:
      x: points; integers are taken as floats.
      loc: where it begins.
      scale: the mean distance from `loc`, the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, loc, scale))


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The exponential distribution function, 1 - exp(-z) with z = (x - loc) / scale.

    0 below `loc`; accurate for small z.

    Args:
      x: points; integers are taken as floats.
      loc: where it begins.
      scale: the mean distance from `loc`, the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("expon.cdf", x, loc, scale)
    negative = divide(subtract(loc, x), scale)
    return choose_elements(less(x, loc), number(0, x), lax.neg(lax.expm1(negative)))


@fused
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the exponential distribution function, log(1 - exp(-z)) with z = (x - loc) / scale.

    -∞ up to `loc`.

    Args:
      x: points; integers are taken as floats.
      loc: where it begins.
      scale: the mean distance from `loc`, the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("expon.logcdf", x, loc, scale)
    negative = divide(subtract(loc, x), scale)
    return choose_elements(less(x, loc), -np.inf, lax.log1p(lax.neg(lax.exp(negative))))


@fused
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of values above x, -z with z = (x - loc) / scale.

    0 below `loc`.

    Args:
      x: points; integers are taken as floats.
      loc: where it begins.
      scale: the mean distance from `loc`, the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("expon.logsf", x, loc, scale)
    return choose_elements(less(x, loc), number(0, x), divide(subtract(loc, x), scale))


@fused
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, exp(-z) with z = (x - loc) / scale.

    1 below `loc`.

    Args:
      x: points; integers are taken as floats.
      loc: where it begins.
      scale: the mean distance from `loc`, the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logsf(x, loc, scale))


@fused
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the exponential distribution, loc - scale·log(1 - q).

    ∞ at 1, NaN outside of [0, 1].

    Args:
      q: probabilities.
      loc: where it begins.
      scale: the mean distance from `loc`, the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, loc, scale = promote_args_inexact("expon.ppf", q, loc, scale)
    outside = logical_or(lax.ne(q, q), logical_or(less(q, 0), greater(q, 1)))
    return choose_elements(outside, np.nan, subtract(loc, multiply(scale, lax.log1p(lax.neg(q)))))
