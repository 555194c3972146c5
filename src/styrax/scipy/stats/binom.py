"""The binomial distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, equal, greater, less, logical_or
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused


@fused
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of j = k - loc successes, log(C(n, j)·pʲ·(1 - p)ⁿ⁻ʲ).

    -∞ outside of 0 ≤ j ≤ n; fractions are interpolated by gamma functions.

    Args:
      k: counts; integers are taken as floats.
      n: the number of trials.
      p: the probability of success in each.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    k, n, p, loc = promote_args_inexact("binom.logpmf", k, n, p, loc)
    y = lax.sub(k, loc)
    ways = lax.sub(
        special.gammaln(add(n, 1)), lax.add(special.gammaln(add(y, 1)), special.gammaln(add(lax.sub(n, y), 1)))
    )
    value = add(ways, add(special.xlogy(y, p), special.xlog1py(lax.sub(n, y), lax.neg(p))))
    value = choose_elements(equal(n, 0.0), choose_elements(equal(y, 0.0), 0.0, -np.inf), value)
    return choose_elements(logical_or(less(k, loc), greater(y, n)), -np.inf, value)


@fused
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of j = k - loc successes, C(n, j)·pʲ·(1 - p)ⁿ⁻ʲ.

    0 outside of 0 ≤ j ≤ n; fractions are interpolated by gamma functions.

    Args:
      k: counts; integers are taken as floats.
      n: the number of trials.
      p: the probability of success in each.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpmf(k, n, p, loc))
