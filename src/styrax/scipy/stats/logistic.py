"""The logistic distribution."""

from __future__ import annotations

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import logaddexp
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the logistic density, -2·log(exp(z/2) + exp(-z/2)) - log(scale) with z = (x - loc) / scale.

    For all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation times √3 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("logistic.logpdf", x, loc, scale)
    half = lax.div(standardised(x, loc, scale), number(2, x))
    minus_two = lax.neg(number(2, x))
    return lax.sub(lax.mul(minus_two, logaddexp(half, lax.neg(half))), lax.log(scale))


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logistic density, exp(-z) / (scale·(1 + exp(-z))²) with z = (x - loc) / scale, for all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation times √3 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, loc, scale))


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logistic distribution function, 1 / (1 + exp(-z)) with z = (x - loc) / scale.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation times √3 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("logistic.cdf", x, loc, scale)
    return special.expit(standardised(x, loc, scale))


@fused
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, 1 / (1 + exp(z)) with z = (x - loc) / scale.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the standard deviation times √3 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("logistic.sf", x, loc, scale)
    return special.expit(lax.neg(standardised(x, loc, scale)))


@fused
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the logistic distribution, loc + scale·log(x / (1 - x)).

    -∞ at 0, ∞ at 1, NaN outside of [0, 1].

    Args:
      x: probabilities.
      loc: the mean.
      scale: the standard deviation times √3 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("logistic.ppf", x, loc, scale)
    return lax.add(lax.mul(special.logit(x), scale), loc)


@fused
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`, loc - scale·log(x / (1 - x)).

    ∞ at 0, -∞ at 1, NaN outside of [0, 1].

    Args:
      x: probabilities.
      loc: the mean.
      scale: the standard deviation times √3 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("logistic.isf", x, loc, scale)
    return lax.add(lax.mul(lax.neg(special.logit(x)), scale), loc)
