"""The Gumbel distribution of maxima."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, greater, multiply
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.scipy.special.numbers import number
from styrax.transforms.fused import fused

from .arguments import standardised


def log_complement(value: Any) -> Array:
    """log(1 - exp(value)) for negative values."""
    # Each form where it keeps all digits; the other gets a number at which its derivative is finite.
    small, middle = lax.gt(value, number(-0.7, value)), number(-1, value)
    by_expm1 = lax.log(lax.neg(lax.expm1(choose_elements(small, value, middle))))
    by_log1p = lax.log1p(lax.neg(lax.exp(choose_elements(small, middle, value))))
    return choose_elements(small, by_expm1, by_log1p)


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Gumbel density of maxima, -z - exp(-z) - log(scale) with z = (x - loc) / scale.

    For all real x; NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_r.logpdf", x, loc, scale)
    z = standardised(x, loc, scale)
    value = add(special.xlogy(-1, scale), lax.neg(lax.add(z, lax.exp(lax.neg(z)))))
    return choose_elements(greater(scale, 0), value, np.nan)


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Gumbel density of maxima, exp(-z - exp(-z)) / scale with z = (x - loc) / scale.

    For all real x; NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, loc, scale))


@fused
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Gumbel distribution function of maxima, -exp(-z) with z = (x - loc) / scale.

    NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_r.logcdf", x, loc, scale)
    value = lax.neg(lax.exp(lax.neg(standardised(x, loc, scale))))
    return choose_elements(greater(scale, 0), value, np.nan)


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Gumbel distribution function of maxima, exp(-exp(-z)) with z = (x - loc) / scale.

    NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logcdf(x, loc, scale))


@fused
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of values above x, log(1 - exp(-exp(-z))) with z = (x - loc) / scale.

    Accurate in both tails. NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_r.logsf", x, loc, scale)
    value = lax.neg(lax.exp(lax.neg(standardised(x, loc, scale))))
    return choose_elements(greater(scale, 0), log_complement(value), np.nan)


@fused
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, 1 - exp(-exp(-z)) with z = (x - loc) / scale.

    Accurate in the upper tail. NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_r.sf", x, loc, scale)
    value = lax.neg(lax.exp(lax.neg(standardised(x, loc, scale))))
    return choose_elements(greater(scale, 0), lax.neg(lax.expm1(value)), np.nan)


@fused
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Gumbel distribution of maxima, loc - scale·log(-log p).

    -∞ at 0, ∞ at 1, NaN outside of [0, 1] and unless scale > 0.

    Args:
      p: probabilities.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    p, loc, scale = promote_args_inexact("gumbel_r.ppf", p, loc, scale)
    value = lax.neg(lax.log(lax.neg(lax.log(p))))
    return choose_elements(greater(scale, 0), add(multiply(value, scale), loc), np.nan)
