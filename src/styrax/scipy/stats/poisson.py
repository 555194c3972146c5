"""The Poisson distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, divide, equal, less, logical_or, multiply, not_equal, subtract
from styrax.numpy.broadcasting import choose_elements, spread_all
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import promote_args_inexact
from styrax.numpy.reductions import sum as sum_
from styrax.numpy.rounding import floor, round
from styrax.scipy import special
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .arguments import number


@fused
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of j = k - loc events, j·log mu - mu - log j!.

    -∞ for j < 0 and where k is no whole number.

    Args:
      k: counts; integers are taken as floats.
      mu: the mean, not negative.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    k, mu, loc = promote_args_inexact("poisson.logpmf", k, mu, loc)
    zero = number(0, k)
    x = lax.sub(k, loc)
    value = subtract(subtract(special.xlogy(x, mu), special.gammaln(add(x, 1))), mu)
    return choose_elements(logical_or(lax.lt(x, zero), not_equal(round(k), k)), -np.inf, value)


@fused
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of j = k - loc events, muʲ·exp(-mu) / j!.

    0 for j < 0 and where k is no whole number.

    Args:
      k: counts; integers are taken as floats.
      mu: the mean, not negative.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpmf(k, mu, loc))


@fused
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The Poisson distribution function, Q(⌊k - loc⌋ + 1, mu).

    Q is the regularised upper incomplete gamma function. 0 for k < loc.

    Args:
      k: counts; integers are taken as floats.
      mu: the mean, not negative.
      loc: a shift of the counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    k, mu, loc = promote_args_inexact("poisson.cdf", k, mu, loc)
    x = lax.sub(k, loc)
    value = special.gammaincc(add(floor(x), number(1, k)), mu)
    return choose_elements(lax.lt(x, number(0, k)), number(0, k), value)


@jit
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy of the Poisson distribution in nats: 0 for mean 0, NaN for negative means.

    From mean 25 on by the expansion log(2πe·mu) / 2 - 1 / (12·mu) - 1 / (24·mu²) - 19 / (360·mu³).

    Args:
      mu: the mean.
      loc: only its shape counts.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    mu, loc = promote_args_inexact("poisson.entropy", mu, loc)
    mu = asarray(mu)
    flat = lax.reshape(mu, (mu.size,))
    # Summed over the outcomes that matter for small means, by its expansion for large ones.
    cut = 25.0
    count = 120
    k = lax.expand_dims(lax.iota(flat.dtype, count), (0,))
    small = lax.expand_dims(lax.min(flat, number(cut, flat)), (1,))
    k, small = spread_all((k, small))
    log_p = subtract(subtract(special.xlogy(k, small), small), lax.lgamma(add(k, 1)))
    by_sum = lax.neg(sum_(multiply(lax.exp(log_p), choose_elements(less(log_p, -1e30), 0.0, log_p)), axis=1))
    large = lax.max(flat, number(cut, flat))
    r = divide(1, large)
    expansion = subtract(multiply(0.5, lax.log(multiply(2 * np.pi * np.e, large))), multiply(r, add(
        1 / 12, multiply(r, add(1 / 24, multiply(r, 19 / 360))))))
    out = choose_elements(less(flat, cut), by_sum, expansion)
    out = choose_elements(equal(flat, 0), 0.0, choose_elements(less(flat, 0), np.nan, out))
    return add(lax.reshape(out, mu.shape), multiply(0, loc))
