"""The Laplace distribution."""

from __future__ import annotations

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Laplace density, -|z| - log(2·scale) with z = (x - loc) / scale, for all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the mean distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("laplace.logpdf", x, loc, scale)
    distance = lax.div(lax.abs(lax.sub(x, loc)), scale)
    return lax.neg(lax.add(distance, lax.log(lax.mul(number(2, x), scale))))


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Laplace density, exp(-|z|) / (2·scale) with z = (x - loc) / scale, for all real x.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the mean distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, loc, scale))


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Laplace distribution function: exp(z) / 2 for z ≤ 0, otherwise 1 - exp(-z) / 2, with z = (x - loc) / scale.

    Args:
      x: points; integers are taken as floats.
      loc: the mean.
      scale: the mean distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("laplace.cdf", x, loc, scale)
    half, zero, one = number(0.5, x), number(0, x), number(1, x)
    z = standardised(x, loc, scale)
    below = lax.le(z, zero)
    lower = lax.mul(half, lax.exp(choose_elements(below, z, zero)))
    upper = lax.sub(one, lax.mul(half, lax.exp(lax.neg(choose_elements(below, zero, z)))))
    return lax.select(below, lower, upper)
