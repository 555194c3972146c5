"""Student's t distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.promotion import promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import number, standardised


@fused
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of Student's t distribution; see `pdf`.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: the median.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, df, loc, scale = promote_args_inexact("t.logpdf", x, df, loc, scale)
    z = standardised(x, loc, scale)
    half = lax.div(df, number(2, x))
    more = lax.add(half, number(0.5, x))
    width = lax.mul(lax.mul(lax.mul(scale, scale), number(np.pi, x)), df)
    tmp = lax.div(lax.log(width), number(2, x))
    normaliser = lax.sub(lax.add(lax.lgamma(half), tmp), lax.lgamma(more))
    quadratic = lax.div(lax.mul(z, z), df)
    return lax.neg(lax.add(normaliser, lax.mul(more, lax.log1p(quadratic))))


@fused
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of Student's t distribution, Γ(m) / (Γ(df/2)·√(π·df)·scale) · (1 + z² / df)⁻ᵐ.

    Here z = (x - loc) / scale and m = (df + 1) / 2; for all real x.

    Args:
      x: points; integers are taken as floats.
      df: degrees of freedom, positive.
      loc: the median.
      scale: what distances from `loc` are divided by, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, df, loc, scale))
