"""The geometric distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import number


@fused
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability that trial j = k - loc is the first success, (j - 1)·log(1 - p) + log p.

    Trials count from 1: -∞ for j ≤ 0. Fractions are interpolated.

    Args:
      k: counts; integers are taken as floats.
      p: the probability of success in each trial.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    k, p, loc = promote_args_inexact("geom.logpmf", k, p, loc)
    zero, one = number(0, k), number(1, k)
    x = lax.sub(k, loc)
    value = add(special.xlog1py(lax.sub(x, one), lax.neg(p)), lax.log(p))
    return choose_elements(lax.le(x, zero), -np.inf, value)


@fused
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability that trial j = k - loc is the first success, (1 - p)ʲ⁻¹·p.

    Trials count from 1: 0 for j ≤ 0. Fractions are interpolated.

    Args:
      k: counts; integers are taken as floats.
      p: the probability of success in each trial.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpmf(k, p, loc))
