"""The uniform distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, greater, less, logical_or, multiply
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import convert, dtype_of, promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import standardised


@fused
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the uniform distribution, -log(scale) on [loc, loc + scale].

    Both ends belong to it; -∞ outside. A NaN in x counts as inside.

    Args:
      x: points; integers are taken as floats.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("uniform.logpdf", x, loc, scale)
    value = lax.neg(lax.log(scale))
    return choose_elements(logical_or(greater(x, lax.add(loc, scale)), less(x, loc)), -np.inf, value)


@fused
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the uniform distribution, 1 / scale on [loc, loc + scale].

    Both ends belong to it; 0 outside. A NaN in x counts as inside.

    Args:
      x: points; integers are taken as floats.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, loc, scale))


@fused
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The distribution function of the uniform distribution, (x - loc) / scale on [loc, loc + scale].

    0 below, 1 above, NaN for NaN.

    Args:
      x: points; integers are taken as floats.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, loc, scale = promote_args_inexact("uniform.cdf", x, loc, scale)
    zero, one = convert(0, dtype_of(x)), convert(1, dtype_of(x))  # not weak, as in JAX
    position = standardised(x, loc, scale)
    return choose_elements(less(x, loc), zero, choose_elements(greater(x, lax.add(loc, scale)), one, position))


@fused
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the uniform distribution, loc + q·scale.

    NaN outside of [0, 1].

    Args:
      q: probabilities.
      loc: the lower end.
      scale: the length of the interval, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, loc, scale = promote_args_inexact("uniform.ppf", q, loc, scale)
    outside = logical_or(lax.ne(q, q), logical_or(less(q, 0), greater(q, 1)))
    return choose_elements(outside, np.nan, add(multiply(q, scale), loc))
