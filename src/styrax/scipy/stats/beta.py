"""The beta distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import greater, less, logical_or
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the beta density, (a - 1)·log z + (b - 1)·log(1 - z) - log B(a, b) - log(scale).

    Here z = (x - loc) / scale. -∞ outside of 0 ≤ z ≤ 1; NaN unless a, b and scale are positive.

    Args:
      x: points; integers are taken as floats.
      a, b: the exponents at either end plus 1, positive.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, b, loc, scale = promote_args_inexact("beta.logpdf", x, a, b, loc, scale)
    one = number(1, x)
    normaliser = lax.neg(special.betaln(a, b))
    y = standardised(x, loc, scale)
    kernel = lax.add(special.xlogy(lax.sub(a, one), y), special.xlog1py(lax.sub(b, one), lax.neg(y)))
    value = lax.sub(lax.add(normaliser, kernel), lax.log(scale))
    value = choose_elements(logical_or(greater(x, lax.add(loc, scale)), less(x, loc)), -np.inf, value)
    invalid = logical_or(logical_or(lax.le(a, number(0, a)), lax.le(b, number(0, b))), lax.le(scale, number(0, scale)))
    return choose_elements(invalid, np.nan, value)


@fused
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The beta density, zᵃ⁻¹·(1 - z)ᵇ⁻¹ / (B(a, b)·scale).

    Here z = (x - loc) / scale. 0 outside of 0 ≤ z ≤ 1; NaN unless a, b and scale are positive.

    Args:
      x: points; integers are taken as floats.
      a, b: the exponents at either end plus 1, positive.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, a, b, loc, scale))


@fused
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The beta distribution function, the regularised incomplete beta function I(z; a, b) with z = (x - loc) / scale.

    0 below `loc`, 1 above loc + scale.

    Args:
      x: points; integers are taken as floats.
      a, b: the exponents at either end plus 1, positive.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, b, loc, scale = promote_args_inexact("beta.cdf", x, a, b, loc, scale)
    return special.betainc(a, b, lax.clamp(number(0, x), standardised(x, loc, scale), number(1, x)))


@fused
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the beta distribution function `cdf`.

    -∞ up to `loc`.

    Args:
      x: points; integers are taken as floats.
      a, b: the exponents at either end plus 1, positive.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(cdf(x, a, b, loc, scale))


@fused
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, I(1 - z; b, a) with z = (x - loc) / scale.

    I is the regularised incomplete beta function. 1 below `loc`, 0 above loc + scale.

    Args:
      x: points; integers are taken as floats.
      a, b: the exponents at either end plus 1, positive.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, b, loc, scale = promote_args_inexact("beta.sf", x, a, b, loc, scale)
    y = lax.clamp(number(0, x), standardised(x, loc, scale), number(1, x))
    return special.betainc(b, a, lax.sub(number(1, x), y))


@fused
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`, the probability of values above x.

    -∞ from loc + scale on.

    Args:
      x: points; integers are taken as floats.
      a, b: the exponents at either end plus 1, positive.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(sf(x, a, b, loc, scale))
