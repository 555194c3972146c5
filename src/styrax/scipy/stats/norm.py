"""The normal distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, multiply
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the normal density, -z² / 2 - log(√(2π)·scale) with z = (x - loc) / scale, for all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.

    Example:
      >>> from styrax.scipy.stats import norm
      >>> norm.logpdf(0.0)
      Array(-0.9189385, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_args_inexact("norm.logpdf", x, loc, scale)
    variance = lax.square(scale)
    normaliser = lax.log(lax.mul(number(2 * np.pi, x), variance))
    quadratic = lax.div(lax.square(lax.sub(x, loc)), variance)
    return lax.div(lax.add(normaliser, quadratic), number(-2, x))


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The normal density, exp(-z² / 2) / (√(2π)·scale) with z = (x - loc) / scale, for all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, loc, scale))


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The normal distribution function, Φ(z) with z = (x - loc) / scale.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("norm.cdf", x, loc, scale)
    return special.ndtr(standardised(x, loc, scale))


@fused
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the normal distribution function, log Φ(z) with z = (x - loc) / scale.

    Accurate in the lower tail, too, where Φ(z) underflows.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("norm.logcdf", x, loc, scale)
    return special.log_ndtr(standardised(x, loc, scale))


@fused
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the normal distribution, loc + scale·Φ⁻¹(q).

    -∞ at 0, ∞ at 1, and NaN outside of [0, 1].

    Args:
      q: probabilities.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, loc, scale = promote_args_inexact("norm.ppf", q, loc, scale)
    return add(multiply(special.ndtri(q), scale), loc)


@fused
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, 1 - Φ(z) = Φ(-z) with z = (x - loc) / scale.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("norm.sf", x, loc, scale)
    return cdf(lax.neg(x), lax.neg(loc), scale)


@fused
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of values above x, log Φ(-z) with z = (x - loc) / scale.

    Accurate in the upper tail, too, where Φ(-z) underflows.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("norm.logsf", x, loc, scale)
    return logcdf(lax.neg(x), lax.neg(loc), scale)


@fused
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`: the points above which values lie with probability q.

    It takes the quantile of 1 - q, so that a q below the precision of the dtype gives ∞. NaN outside of [0, 1].

    Args:
      q: probabilities.
      loc: the mean.
      scale: the standard deviation, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, loc, scale = promote_args_inexact("norm.isf", q, loc, scale)
    return ppf(lax.sub(number(1, q), q), loc, scale)
