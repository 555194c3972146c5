"""The Pareto distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, divide, greater, less, logical_or, multiply, power
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Pareto density, log(b / scale) - (b + 1)·log z with z = (x - loc) / scale.

    -∞ where z < 1.

    Args:
      x: points; integers are taken as floats.
      b: the exponent of the tail, positive.
      loc: a shift; the distribution begins at loc + scale.
      scale: the least distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, b, loc, scale = promote_args_inexact("pareto.logpdf", x, b, loc, scale)
    z = standardised(x, loc, scale)
    normaliser = lax.log(lax.div(scale, b))
    value = lax.neg(lax.add(normaliser, lax.mul(lax.add(b, number(1, x)), lax.log(z))))
    return choose_elements(less(x, lax.add(loc, scale)), -np.inf, value)


@fused
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Pareto density, b / (scale·zᵇ⁺¹) with z = (x - loc) / scale.

    0 where z < 1.

    Args:
      x: points; integers are taken as floats.
      b: the exponent of the tail, positive.
      loc: a shift; the distribution begins at loc + scale.
      scale: the least distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, b, loc, scale))


@fused
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Pareto distribution function, 1 - z⁻ᵇ with z = (x - loc) / scale.

    0 where z < 1.

    Args:
      x: points; integers are taken as floats.
      b: the exponent of the tail, positive.
      loc: a shift; the distribution begins at loc + scale.
      scale: the least distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, b, loc, scale = promote_args_inexact("pareto.cdf", x, b, loc, scale)
    z = standardised(x, loc, scale)
    value = lax.sub(number(1, x), power(z, lax.neg(b)))
    return choose_elements(less(x, lax.add(loc, scale)), number(0, x), value)


@fused
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Pareto distribution function `cdf`.

    -∞ up to loc + scale.

    Args:
      x: points; integers are taken as floats.
      b: the exponent of the tail, positive.
      loc: a shift; the distribution begins at loc + scale.
      scale: the least distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.log(cdf(x, b, loc, scale))


@fused
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of values above x, -b·log z with z = (x - loc) / scale.

    0 where z < 1.

    Args:
      x: points; integers are taken as floats.
      b: the exponent of the tail, positive.
      loc: a shift; the distribution begins at loc + scale.
      scale: the least distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, b, loc, scale = promote_args_inexact("pareto.logsf", x, b, loc, scale)
    z = standardised(x, loc, scale)
    return choose_elements(less(x, lax.add(loc, scale)), number(0, x), lax.neg(lax.mul(b, lax.log(z))))


@fused
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, z⁻ᵇ with z = (x - loc) / scale.

    1 where z < 1.

    Args:
      x: points; integers are taken as floats.
      b: the exponent of the tail, positive.
      loc: a shift; the distribution begins at loc + scale.
      scale: the least distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logsf(x, b, loc, scale))


@fused
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Pareto distribution, loc + scale·(1 - q)^(-1 / b).

    ∞ at 1, NaN outside of [0, 1].

    Args:
      q: probabilities.
      b: the exponent of the tail, positive.
      loc: a shift; the distribution begins at loc + scale.
      scale: the least distance from `loc`, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, b, loc, scale = promote_args_inexact("pareto.ppf", q, b, loc, scale)
    outside = logical_or(lax.ne(q, q), logical_or(less(q, 0), greater(q, 1)))
    value = add(multiply(scale, power(lax.sub(number(1, q), q), lax.neg(divide(1, b)))), loc)
    return choose_elements(outside, np.nan, value)
