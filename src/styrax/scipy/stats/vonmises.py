"""The von Mises distribution."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import promote_args_inexact
from styrax.transforms.fused import fused

from .arguments import number


@fused
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the von Mises density, kappa·cos x - log(2π·I₀(kappa)).

    Periodic in x; it integrates to 1 over 2π. NaN unless kappa > 0.

    Args:
      x: angles in radians; integers are taken as floats.
      kappa: the concentration around 0, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    x, kappa = promote_args_inexact("vonmises.logpdf", x, kappa)
    valid = lax.gt(kappa, number(0, kappa))
    value = lax.sub(lax.mul(kappa, lax.sub(lax.cos(x), number(1, kappa))),
                    lax.log(lax.mul(number(2 * np.pi, kappa), lax.bessel_i0e(kappa))))
    return choose_elements(valid, value, np.nan)


@fused
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The von Mises density, exp(kappa·cos x) / (2π·I₀(kappa)).

    Periodic in x; it integrates to 1 over 2π. NaN unless kappa > 0.

    Args:
      x: angles in radians; integers are taken as floats.
      kappa: the concentration around 0, positive.

    Returns:
      a float array of the shape of the arguments broadcast together.
    """
    return lax.exp(logpdf(x, kappa))
