"""The wrapped Cauchy distribution."""

from __future__ import annotations

import math

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import number


@fused
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the wrapped Cauchy density; see `pdf`.

    -∞ outside of 0 ≤ x ≤ 2π and for NaN in x, NaN unless 0 < c < 1.

    Args:
      x: angles in radians; integers are taken as floats.
      c: the concentration around 0, between 0 and 1.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, c = promote_args_inexact("wrapcauchy.logpdf", x, c)
    valid = lax.bitwise_and(lax.gt(c, number(0, c)), lax.lt(c, number(1, c)))
    inside = lax.bitwise_and(lax.ge(x, number(0, x)), lax.le(x, number(2 * np.pi, x)))
    top = lax.sub(lax.log(lax.sub(number(1, c), lax.mul(c, c))), number(math.log(2 * math.pi), c))
    bottom = lax.sub(lax.add(number(1, c), lax.mul(c, c)), lax.mul(lax.mul(number(2, c), c), lax.cos(x)))
    value = lax.sub(top, lax.log(bottom))
    return choose_elements(valid, choose_elements(inside, value, -np.inf), np.nan)


@fused
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The wrapped Cauchy density, (1 - c²) / (2π·(1 + c² - 2c·cos x)).

    0 outside of 0 ≤ x ≤ 2π and for NaN in x, NaN unless 0 < c < 1.

    Args:
      x: angles in radians; integers are taken as floats.
      c: the concentration around 0, between 0 and 1.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, c))
