"""The beta-binomial distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, greater, greater_equal, logical_and, subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import arrays, promote_args_inexact, typed
from styrax.numpy.rounding import floor
from styrax.scipy import special
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit


@jit
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of j successes, log(C(n, j)·B(j + a, n - j + b) / B(a, b)).

    Here j is k, rounded down, less loc. -∞ outside of 0 ≤ j ≤ n; NaN unless n ≥ 0 and a and b are positive.

    Args:
      k: counts; integers are taken as floats.
      n: the number of trials, not negative.
      a, b: parameters of the beta distribution of the probability of success, positive.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    given = arrays("betabinom.logpmf", k, n, a, b, loc)
    weak = all(typed(x)[1] for x in given)
    k, n, a, b, loc = promote_args_inexact("betabinom.logpmf", *given)
    hits = subtract(floor(k), loc)
    misses = subtract(n, hits)
    # C(n, k) = 1 / ((n + 1)·B(n - k + 1, k + 1))
    value = subtract(special.betaln(add(hits, a), add(misses, b)), special.betaln(a, b))
    value = subtract(value, add(lax.log1p(n), special.betaln(add(misses, 1), add(hits, 1))))
    value = choose_elements(logical_and(greater_equal(hits, 0), greater_equal(misses, 0)), value, -np.inf)
    defined = logical_and(greater_equal(n, 0), logical_and(greater(a, 0), greater(b, 0)))
    out = choose_elements(defined, value, np.nan)
    return out if weak else lax.convert_element_type(out, out.dtype)


@fused
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of j successes, C(n, j)·B(j + a, n - j + b) / B(a, b).

    Here j is k, rounded down, less loc. 0 outside of 0 ≤ j ≤ n; NaN unless n ≥ 0 and a and b are positive.

    Args:
      k: counts; integers are taken as floats.
      n: the number of trials, not negative.
      a, b: parameters of the beta distribution of the probability of success, positive.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpmf(k, n, a, b, loc))
