"""The generalised normal distribution."""

from __future__ import annotations

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.promotion import promote_args_inexact
from styrax.scipy import special
from styrax.transforms.fused import fused

from .arguments import number


@fused
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density, log(beta / (2·Γ(1 / beta))) - |x|^beta, for all real x.

    Args:
      x: points; integers are taken as floats.
      beta: the exponent, positive: 2 gives a normal distribution, 1 Laplace's.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, beta = promote_args_inexact("gennorm.logpdf", x, beta)
    normaliser = lax.sub(lax.log(lax.mul(number(0.5, beta), beta)), lax.lgamma(lax.div(number(1, beta), beta)))
    return lax.sub(normaliser, lax.pow(lax.abs(x), beta))


@fused
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density beta / (2·Γ(1 / beta)) · exp(-|x|^beta), for all real x.

    Args:
      x: points; integers are taken as floats.
      beta: the exponent, positive: 2 gives a normal distribution, 1 Laplace's.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, beta))


@fused
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The distribution function, (1 + sign(x)·P(1 / beta, |x|^beta)) / 2.

    P is the regularised lower incomplete gamma function.

    Args:
      x: points; integers are taken as floats.
      beta: the exponent, positive: 2 gives a normal distribution, 1 Laplace's.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, beta = promote_args_inexact("gennorm.cdf", x, beta)
    tail = special.gammainc(lax.div(number(1, beta), beta), lax.pow(lax.abs(x), beta))
    return lax.mul(number(0.5, x), lax.add(number(1, x), lax.mul(lax.sign(x), tail)))
