"""The chi-squared distribution."""

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
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the chi-squared density, (m - 1)·log z - z/2 - m·log 2 - log Γ(m) - log(scale).

    Here z = (x - loc) / scale and m = df / 2. -∞ below `loc`; NaN at `loc` for df = 2.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: where it begins.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, df, loc, scale = promote_args_inexact("chi2.logpdf", x, df, loc, scale)
    one, two = number(1, x), number(2, x)
    y = standardised(x, loc, scale)
    half = lax.div(df, two)
    kernel = lax.sub(lax.mul(lax.sub(half, one), lax.log(y)), lax.div(y, two))
    normaliser = lax.neg(lax.add(lax.lgamma(half), lax.div(lax.mul(lax.log(two), df), two)))
    value = lax.add(lax.sub(normaliser, lax.log(scale)), kernel)
    return choose_elements(less(x, loc), -np.inf, value)


@fused
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The chi-squared density, zᵐ⁻¹·exp(-z/2) / (2ᵐ·Γ(m)·scale).

    Here z = (x - loc) / scale and m = df / 2. 0 below `loc`; NaN at `loc` for df = 2.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: where it begins.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, df, loc, scale))


@fused
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The chi-squared distribution function, P(df/2, z/2) with z = (x - loc) / scale.

    P is the regularised lower incomplete gamma function. 0 below `loc`.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: where it begins.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, df, loc, scale = promote_args_inexact("chi2.cdf", x, df, loc, scale)
    two = number(2, scale)
    z = lax.clamp(number(0, x), lax.div(lax.sub(x, loc), lax.mul(scale, two)), number(np.inf, x))
    return special.gammainc(lax.div(df, two), z)


@fused
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the chi-squared distribution function `cdf`.

    -∞ up to `loc`.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: where it begins.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(cdf(x, df, loc, scale))


@fused
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, Q(df/2, z/2) with z = (x - loc) / scale.

    Q is the regularised upper incomplete gamma function. 1 below `loc`.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: where it begins.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, df, loc, scale = promote_args_inexact("chi2.sf", x, df, loc, scale)
    two = number(2, scale)
    z = lax.clamp(number(0, x), lax.div(lax.sub(x, loc), lax.mul(scale, two)), number(np.inf, x))
    return special.gammaincc(lax.div(df, two), z)


@fused
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`, the probability of values above x.

    0 below `loc`.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: where it begins.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(sf(x, df, loc, scale))
