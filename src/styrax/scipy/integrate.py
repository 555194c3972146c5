"""Integrals of samples."""

from __future__ import annotations

from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of samples `y` along `axis` by the trapezoidal rule, at coordinates `x` or spacing `dx`.

    The same as `jax.numpy.trapezoid`.
    """
    return jnp.trapezoid(y, x, dx, axis)
