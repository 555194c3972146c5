"""The multinomial distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, equal, subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import arrays, convert, dtype_of, promote_dtypes_inexact
from styrax.numpy.reductions import sum as sum_
from styrax.scipy import special


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of counts x in n trials, log(n! · Π pᵢ^xᵢ / xᵢ!).

    -∞ where n is not the sum of x, which is taken over all axes.

    Args:
      x: counts, integers; the outcomes are along the last axis.
      n: the number of trials.
      p: the probabilities of the outcomes, along the last axis; integers are taken as floats.

    Returns:
      a float array of the broadcast shape of x and p without the last axis.

    Raises:
      ValueError: x is not of integers.
    """
    (p,) = promote_dtypes_inexact(*arrays("multinomial.logpmf", p))
    x, n = arrays("multinomial.logpmf", x, n)
    p = asarray(p)
    if not dtypes.issubdtype(dtype_of(x), np.integer):
        raise ValueError(f"x and n must be of integer type; got x.dtype={dtype_of(x)}, n.dtype={dtype_of(n)}")
    counts, trials = convert(asarray(x), p.dtype), convert(n, p.dtype)
    terms = subtract(special.xlogy(counts, p), special.gammaln(add(counts, 1)))
    value = add(special.gammaln(add(trials, 1)), sum_(terms, axis=-1))
    return choose_elements(equal(sum_(asarray(x)), n), value, -np.inf)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of counts x in n trials, n! · Π pᵢ^xᵢ / xᵢ!.

    0 where n is not the sum of x, which is taken over all axes.

    Args:
      x: counts, integers; the outcomes are along the last axis.
      n: the number of trials.
      p: the probabilities of the outcomes, along the last axis; integers are taken as floats.

    Returns:
      a float array of the broadcast shape of x and p without the last axis.

    Raises:
      ValueError: x is not of integers.
    """
    return lax.exp(logpmf(x, n, p))
