"""The Gumbel distribution of minima."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, greater, multiply
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import standardised
from .gumbel_r import log_complement


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Gumbel density of minima, z - exp(z) - log(scale) with z = (x - loc) / scale.

    For all real x; NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_l.logpdf", x, loc, scale)
    z = standardised(x, loc, scale)
    value = add(special.xlogy(-1, scale), lax.sub(z, lax.exp(z)))
    return choose_elements(greater(scale, 0), value, np.nan)


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Gumbel density of minima, exp(z - exp(z)) / scale with z = (x - loc) / scale.

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
    """The logarithm of the Gumbel distribution function of minima, log(1 - exp(-exp(z))) with z = (x - loc) / scale.

    Accurate in both tails. NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_l.logcdf", x, loc, scale)
    value = lax.neg(lax.exp(standardised(x, loc, scale)))
    return choose_elements(greater(scale, 0), log_complement(value), np.nan)


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Gumbel distribution function of minima, 1 - exp(-exp(z)) with z = (x - loc) / scale.

    Accurate in the lower tail. NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_l.cdf", x, loc, scale)
    value = lax.neg(lax.exp(standardised(x, loc, scale)))
    return choose_elements(greater(scale, 0), lax.neg(lax.expm1(value)), np.nan)


@fused
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of values above x, -exp(z) with z = (x - loc) / scale.

    NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("gumbel_l.logsf", x, loc, scale)
    value = lax.neg(lax.exp(standardised(x, loc, scale)))
    return choose_elements(greater(scale, 0), value, np.nan)


@fused
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, exp(-exp(z)) with z = (x - loc) / scale.

    NaN unless scale > 0.

    Args:
      x: points; integers are taken as floats.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logsf(x, loc, scale))


@fused
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Gumbel distribution of minima, loc + scale·log(-log(1 - p)).

    -∞ at 0, ∞ at 1, NaN outside of [0, 1] and unless scale > 0.

    Args:
      p: probabilities.
      loc: the mode.
      scale: the standard deviation times √6 / π, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    p, loc, scale = promote_args_inexact("gumbel_l.ppf", p, loc, scale)
    value = lax.log(lax.neg(lax.log1p(lax.neg(p))))
    return choose_elements(greater(scale, 0), add(multiply(value, scale), loc), np.nan)
