"""The negative binomial distribution."""

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

from .arguments import number


@fused
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of j = k - loc failures before the n-th success; see `pmf`.

    -∞ for j < 0; fractions are interpolated.

    Args:
      k: counts; integers are taken as floats.
      n: the number of successes, positive.
      p: the probability of success in each trial.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    k, n, p, loc = promote_args_inexact("nbinom.logpmf", k, n, p, loc)
    one = number(1, k)
    y = lax.sub(k, loc)
    ways = lax.sub(lax.sub(special.gammaln(lax.add(y, n)), special.gammaln(n)), special.gammaln(lax.add(y, one)))
    kernel = lax.add(special.xlogy(n, p), special.xlogy(y, lax.sub(one, p)))
    return choose_elements(less(k, loc), -np.inf, lax.add(ways, kernel))


@fused
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of j = k - loc failures before the n-th success, Γ(j + n) / (j!·Γ(n)) · pⁿ·(1 - p)ʲ.

    0 for j < 0; fractions are interpolated.

    Args:
      k: counts; integers are taken as floats.
      n: the number of successes, positive.
      p: the probability of success in each trial.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpmf(k, n, p, loc))
