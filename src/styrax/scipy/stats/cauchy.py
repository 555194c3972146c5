"""The Cauchy distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.promotion import promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Cauchy density, -log(π·scale·(1 + z²)) with z = (x - loc) / scale, for all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("cauchy.logpdf", x, loc, scale)
    z = standardised(x, loc, scale)
    normaliser = lax.log(lax.mul(number(np.pi, x), scale))
    return lax.neg(lax.add(normaliser, lax.log1p(lax.mul(z, z))))


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Cauchy density, 1 / (π·scale·(1 + z²)) with z = (x - loc) / scale, for all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, loc, scale))


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Cauchy distribution function, arctan2(1, -z) / π with z = (x - loc) / scale.

    It is 1/2 + arctan(z) / π, without the cancellation in the lower tail.

    Args:
      x: points; integers are taken as floats.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("cauchy.cdf", x, loc, scale)
    z = standardised(x, loc, scale)
    return lax.div(lax.atan2(lax.full_like(z, 1), lax.neg(z)), number(np.pi, x))


@fused
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Cauchy distribution function `cdf`.

    Args:
      x: points; integers are taken as floats.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(cdf(x, loc, scale))


@fused
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, arctan2(1, z) / π with z = (x - loc) / scale.

    Args:
      x: points; integers are taken as floats.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("cauchy.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


@fused
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`, the probability of values above x.

    Args:
      x: points; integers are taken as floats.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(sf(x, loc, scale))


@fused
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Cauchy distribution, loc + scale·tan(π(q - 1/2)).

    Finite at 0 and 1, where π is rounded; outside of [0, 1] the tangent repeats itself.

    Args:
      q: probabilities.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, loc, scale = promote_args_inexact("cauchy.ppf", q, loc, scale)
    angle = lax.sub(lax.mul(number(np.pi, q), q), number(np.pi / 2, q))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)


@fused
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`, loc + scale·tan(π(1/2 - q)).

    Finite at 0 and 1, where π is rounded; outside of [0, 1] the tangent repeats itself.

    Args:
      q: probabilities.
      loc: the median.
      scale: half the distance between the quartiles, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, loc, scale = promote_args_inexact("cauchy.isf", q, loc, scale)
    angle = lax.sub(number(np.pi / 2, q), lax.mul(number(np.pi, q), q))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)
