"""The gamma distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import less
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the gamma density, (a - 1)·log z - z - log Γ(a) - log(scale) with z = (x - loc) / scale.

    -∞ below `loc`, and for NaN in x.

    Args:
      x: points; integers are taken as floats.
      a: the shape, positive.
      loc: where it begins.
      scale: the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, loc, scale = promote_args_inexact("gamma.logpdf", x, a, loc, scale)
    inside = lax.ge(x, loc)
    one = number(1, x)
    y = choose_elements(inside, standardised(x, loc, scale), one)
    kernel = lax.sub(special.xlogy(lax.sub(a, one), y), y)
    normaliser = lax.add(lax.lgamma(a), lax.log(scale))
    return choose_elements(inside, lax.sub(kernel, normaliser), -np.inf)


@fused
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The gamma density, zᵃ⁻¹·exp(-z) / (Γ(a)·scale) with z = (x - loc) / scale.

    0 below `loc`, and for NaN in x.

    Args:
      x: points; integers are taken as floats.
      a: the shape, positive.
      loc: where it begins.
      scale: the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, a, loc, scale))


@fused
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The gamma distribution function, the regularised lower incomplete gamma function P(a, z) with z = (x - loc) /
    scale.

    0 below `loc`.

    Args:
      x: points; integers are taken as floats.
      a: the shape, positive.
      loc: where it begins.
      scale: the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, loc, scale = promote_args_inexact("gamma.cdf", x, a, loc, scale)
    z = lax.clamp(number(0, x), standardised(x, loc, scale), number(np.inf, x))
    return special.gammainc(a, z)


@fused
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the gamma distribution function `cdf`.

    -∞ up to `loc`.

    Args:
      x: points; integers are taken as floats.
      a: the shape, positive.
      loc: where it begins.
      scale: the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(cdf(x, a, loc, scale))


@fused
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, the regularised upper incomplete gamma function Q(a, z) with z = (x - loc) /
    scale.

    1 below `loc`.

    Args:
      x: points; integers are taken as floats.
      a: the shape, positive.
      loc: where it begins.
      scale: the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, loc, scale = promote_args_inexact("gamma.sf", x, a, loc, scale)
    y = standardised(x, loc, scale)
    return choose_elements(less(y, 0), number(1, x), special.gammaincc(a, lax.max(y, number(0, x))))


@fused
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`, the probability of values above x.

    0 below `loc`.

    Args:
      x: points; integers are taken as floats.
      a: the shape, positive.
      loc: where it begins.
      scale: the inverse of the rate, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(sf(x, a, loc, scale))
