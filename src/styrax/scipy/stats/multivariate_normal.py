"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import add, divide, multiply, subtract
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import arrays, promote_dtypes_inexact
from styrax.numpy.reductions import sum as sum_
from styrax.numpy.shaping import diagonal


def _inner(x: Any, y: Any) -> Array:
    return sum_(lax.mul(x, y), axis=-1)


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the normal density of vectors, -(dᵀ·cov⁻¹·d + log det(cov) + n·log 2π) / 2 with d = x - mean.

    By a Cholesky factor; NaN where a matrix is not positive definite.

    Args:
      x: points, shape [..., n], or of any shape for a number `mean`; integers are taken as floats.
      mean: means, shape [..., n], or a number.
      cov: covariance matrices, shape [..., n, n], made symmetric, or a variance.
      allow_singular: not supported.

    Returns:
      a float array of the leading axes broadcast together.

    Raises:
      NotImplementedError: for `allow_singular`.
      ValueError: mean and cov do not fit.
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = (asarray(v) for v in promote_dtypes_inexact(*arrays("multivariate_normal.logpdf", x, mean, cov)))
    if mean.ndim == 0:
        return multiply(-0.5, add(divide(lax.square(subtract(x, mean)), cov), add(math.log(2 * math.pi),
                                                                                 lax.log(cov))))
    n = mean.shape[-1]
    if cov.ndim == 0:
        y = subtract(x, mean)
        squares = divide(_inner(y, y), cov)
        return subtract(multiply(-0.5, squares), multiply(n / 2, add(math.log(2 * math.pi), lax.log(cov))))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal.logpdf got incompatible shapes: mean {mean.shape}, cov {cov.shape}")
    from styrax.lax import linalg as lax_linalg

    factor = lax_linalg.cholesky(cov)
    difference = subtract(x, mean)
    batch = lax.broadcast_shapes(difference.shape[:-1], cov.shape[:-2])
    factor_ = lax.broadcast_in_dim(factor, (*batch, n, n), tuple(range(len(batch) - (cov.ndim - 2), len(batch) + 2)))
    column = lax.broadcast_in_dim(difference, (*batch, n, 1), tuple(range(len(batch) - (difference.ndim - 1),
                                                                          len(batch) + 1)))
    y = lax.squeeze(lax_linalg.triangular_solve(factor_, column, left_side=True, lower=True), (len(batch) + 1,))
    logdet = sum_(lax.log(diagonal(factor, axis1=-1, axis2=-2)), axis=-1)
    half = multiply(-0.5, _inner(y, y))
    return subtract(subtract(half, multiply(n / 2, math.log(2 * math.pi))), logdet)


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The normal density of vectors, exp(-dᵀ·cov⁻¹·d / 2) / √((2π)ⁿ·det(cov)) with d = x - mean.

    By a Cholesky factor; NaN where a matrix is not positive definite.

    Args:
      x: points, shape [..., n], or of any shape for a number `mean`; integers are taken as floats.
      mean: means, shape [..., n], or a number.
      cov: covariance matrices, shape [..., n, n], made symmetric, or a variance.

    Returns:
      a float array of the leading axes broadcast together.

    Raises:
      ValueError: mean and cov do not fit.
    """
    return lax.exp(logpdf(x, mean, cov))
