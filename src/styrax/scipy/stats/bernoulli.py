"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, equal, greater, greater_equal, less_equal, logical_and, logical_or, subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import number


def _probability(p: Any) -> Array:
    """Where p lies between 0 and 1."""
    return logical_and(greater_equal(p, 0), less_equal(p, 1))


@fused
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k - loc, which is 0 or 1: j·log p + (1 - j)·log(1 - p), j = k - loc.

    -∞ outside of 0 ≤ j ≤ 1; fractions are interpolated.

    Args:
      k: counts; integers are taken as floats.
      p: the probability of 1.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    k, p, loc = promote_args_inexact("bernoulli.logpmf", k, p, loc)
    zero, one = number(0, k), number(1, k)
    x = lax.sub(k, loc)
    value = add(special.xlogy(x, p), special.xlog1py(lax.sub(one, x), lax.neg(p)))
    return choose_elements(logical_or(lax.lt(x, zero), lax.gt(x, one)), -np.inf, value)


@fused
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k - loc, which is 0 or 1: pʲ·(1 - p)¹⁻ʲ with j = k - loc.

    0 outside of 0 ≤ j ≤ 1; fractions are interpolated.

    Args:
      k: counts; integers are taken as floats.
      p: the probability of 1.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpmf(k, p, loc))


@fused
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The Bernoulli distribution function: 0 for k < 0, 1 - p for 0 ≤ k < 1, otherwise 1.

    NaN for NaN and where p is no probability.

    Args:
      k: counts; integers are taken as floats.
      p: the probability of 1.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    k, p = promote_args_inexact("bernoulli.cdf", k, p)
    # Steps at 0 and 1; comparisons with NaN are false.
    failed, either = greater_equal(k, 0), greater_equal(k, 1)
    one, zero = number(1, k), number(0, k)
    value = choose_elements(either, one, choose_elements(failed, lax.sub(one, p), zero))
    return choose_elements(logical_and(_probability(p), equal(k, k)), value, np.nan)


@fused
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The quantiles of the Bernoulli distribution: 0 for q ≤ 1 - p, otherwise 1.

    NaN where q or p is no probability.

    Args:
      q: probabilities.
      p: the probability of 1.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    q, p = promote_args_inexact("bernoulli.ppf", q, p)
    value = choose_elements(greater(q, subtract(1, p)), number(1, q), number(0, q))
    return choose_elements(logical_and(_probability(q), _probability(p)), value, np.nan)
