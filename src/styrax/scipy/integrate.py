"""Integrals of samples."""

from __future__ import annotations

from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of samples by the trapezoidal rule, Σ (x[i + 1] - x[i])·(y[i] + y[i + 1]) / 2.

    The same as `jax.numpy.trapezoid`.

    Args:
      y: samples; integers are taken as floats.
      x: where they were taken, of the shape of `y` or a vector; by default places at distance `dx`.
      dx: the distance without `x`.
      axis: the axis of the samples.

    Returns:
      a float array of the shape of `y` without the axis, 0 for one sample.
    """
    return jnp.trapezoid(y, x, dx, axis)
