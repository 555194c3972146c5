"""Modified Bessel functions."""

from __future__ import annotations

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.nn.exponentials import logsumexp as logsumexp
from styrax.numpy.promotion import promote_args_inexact


def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) · I₀(x).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i0e", x)
    return lax.bessel_i0e(x)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function I₀.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i0", x)
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i0e(x))


def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) · I₁(x).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i1e", x)
    return lax.bessel_i1e(x)


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function I₁.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i1", x)
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))
