"""The Dirichlet distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import arrays, promote_dtypes_inexact
from styrax.numpy.reductions import max as max_
from styrax.numpy.reductions import min as min_
from styrax.numpy.reductions import sum as sum_
from styrax.scipy import special

from .arguments import number


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the Dirichlet density, log Γ(Σ alphaᵢ) + Σ ((alphaᵢ - 1)·log xᵢ - log Γ(alphaᵢ)).

    -∞ unless all entries of a point lie in [0, 1] and their sum within 1e-6 of 1.

    Args:
      x: points along the first axis, shape [n, ...], or [n - 1, ...] without the last entries, which then make the
        sums 1.
      alpha: the parameters, positive, shape [n].

    Returns:
      a float array of the shape of x without the first axis.

    Raises:
      ValueError: alpha is no vector, or x does not fit it.
    """
    x, alpha = promote_dtypes_inexact(*arrays("dirichlet.logpdf", x, alpha))
    x, alpha = asarray(x), asarray(alpha)
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError("`x` must have either the same number of entries as `alpha` or one entry fewer; got "
                         f"x.shape={x.shape}, alpha.shape={alpha.shape}")
    one = number(1, x)
    if x.shape[0] != alpha.shape[0]:
        last = lax.expand_dims(lax.sub(one, sum_(x, axis=0)), (0,))
        x = lax.concatenate([x, last], 0)
    normaliser = lax.sub(sum_(special.gammaln(alpha)), special.gammaln(sum_(alpha)))
    column = lax.expand_dims(alpha, tuple(range(1, x.ndim))) if x.ndim > 1 else alpha
    value = subtract(sum_(special.xlogy(lax.sub(column, one), x), axis=0), normaliser)
    total = sum_(x, axis=0)
    inside = lax.bitwise_and(min_(x, axis=0) >= 0, lax.bitwise_and(max_(x, axis=0) <= 1,
                                                                   lax.abs(subtract(total, 1)) < 1e-6))
    return choose_elements(inside, value, -np.inf)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The Dirichlet density, Γ(Σ alphaᵢ) · Π xᵢ^(alphaᵢ - 1) / Γ(alphaᵢ).

    0 unless all entries of a point lie in [0, 1] and their sum within 1e-6 of 1.

    Args:
      x: points along the first axis, shape [n, ...], or [n - 1, ...] without the last entries, which then make the
        sums 1.
      alpha: the parameters, positive, shape [n].

    Returns:
      a float array of the shape of x without the first axis.

    Raises:
      ValueError: alpha is no vector, or x does not fit it.
    """
    return lax.exp(logpdf(x, alpha))
