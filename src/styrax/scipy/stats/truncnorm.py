"""The normal distribution cut off at both sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import (
    add,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    subtract,
)
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from . import norm
from .arguments import number, standardised


def _log_mass(a: Any, b: Any) -> Array:
    """The logarithm of the probability that a standard normal variable lies between a and b."""
    # Mirrored to the left half, where the logarithms of the distribution function are accurate.
    right = logical_or(lax.le(b, number(0, b)), greater(a, 0))
    flip = lax.bitwise_and(right, greater(a, 0))
    low = choose_elements(flip, lax.neg(b), a)
    high = choose_elements(flip, lax.neg(a), b)
    top, bottom = special.log_ndtr(high), special.log_ndtr(low)
    one_sided = add(top, lax.log1p(lax.neg(lax.exp(lax.min(subtract(bottom, top), number(0, top))))))
    # An interval around zero is the rest of its two tails.
    tails = lax.log1p(lax.neg(add(special.ndtr(low), special.ndtr(lax.neg(high)))))
    return choose_elements(right, one_sided, tails)


@jit
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the truncated normal distribution, log φ(z) - log(scale·(Φ(b) - Φ(a))).

    Here z = (x - loc) / scale. -∞ outside of a ≤ z ≤ b, NaN where a ≥ b.

    Args:
      x: points; integers are taken as floats.
      a, b: where it is cut off, in deviations from the mean; may be infinite.
      loc: the mean before the cut.
      scale: the standard deviation before the cut, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, b, loc, scale = promote_args_inexact("truncnorm.logpdf", x, a, b, loc, scale)
    value = subtract(norm.logpdf(x, loc, scale), _log_mass(a, b))
    z = standardised(x, loc, scale)
    value = choose_elements(logical_or(less(z, a), greater(z, b)), -np.inf, value)
    return choose_elements(greater_equal(a, b), np.nan, value)


@fused
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the truncated normal distribution, φ(z) / (scale·(Φ(b) - Φ(a))).

    Here z = (x - loc) / scale. 0 outside of a ≤ z ≤ b, NaN where a ≥ b.

    Args:
      x: points; integers are taken as floats.
      a, b: where it is cut off, in deviations from the mean; may be infinite.
      loc: the mean before the cut.
      scale: the standard deviation before the cut, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, a, b, loc, scale))


@jit
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the distribution function, log((Φ(z) - Φ(a)) / (Φ(b) - Φ(a))).

    Here z = (x - loc) / scale. -∞ for z ≤ a, 0 for z ≥ b, NaN where a ≥ b.

    Args:
      x: points; integers are taken as floats.
      a, b: where it is cut off, in deviations from the mean; may be infinite.
      loc: the mean before the cut.
      scale: the standard deviation before the cut, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, b, loc, scale = promote_args_inexact("truncnorm.logcdf", x, a, b, loc, scale)
    z = standardised(x, loc, scale)
    inside = logical_and(greater(z, a), less(z, b))
    safe = choose_elements(inside, z, choose_elements(less(a, b), multiply(0.5, add(a, b)), a))
    safe = choose_elements(lax.ne(safe, safe), 0.0, safe)
    safe = choose_elements(inside, safe, choose_elements(lax.is_finite(b), b, safe))
    value = subtract(_log_mass(a, safe), _log_mass(a, b))
    value = choose_elements(greater_equal(z, b), 0.0, choose_elements(less_equal(z, a), -np.inf, value))
    return choose_elements(greater_equal(a, b), np.nan, value)


@jit
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The distribution function, (Φ(z) - Φ(a)) / (Φ(b) - Φ(a)).

    Here z = (x - loc) / scale. 0 for z ≤ a, 1 for z ≥ b, NaN where a ≥ b.

    Args:
      x: points; integers are taken as floats.
      a, b: where it is cut off, in deviations from the mean; may be infinite.
      loc: the mean before the cut.
      scale: the standard deviation before the cut, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logcdf(x, a, b, loc, scale))


@jit
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of values above x, log((Φ(b) - Φ(z)) / (Φ(b) - Φ(a))).

    Here z = (x - loc) / scale. 0 for z ≤ a, -∞ for z ≥ b, NaN where a ≥ b.

    Args:
      x: points; integers are taken as floats.
      a, b: where it is cut off, in deviations from the mean; may be infinite.
      loc: the mean before the cut.
      scale: the standard deviation before the cut, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, a, b, loc, scale = promote_args_inexact("truncnorm.logsf", x, a, b, loc, scale)
    return logcdf(lax.neg(x), lax.neg(b), lax.neg(a), lax.neg(loc), scale)


@jit
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of values above x, (Φ(b) - Φ(z)) / (Φ(b) - Φ(a)).

    Here z = (x - loc) / scale. 1 for z ≤ a, 0 for z ≥ b, NaN where a ≥ b.

    Args:
      x: points; integers are taken as floats.
      a, b: where it is cut off, in deviations from the mean; may be infinite.
      loc: the mean before the cut.
      scale: the standard deviation before the cut, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logsf(x, a, b, loc, scale))
