"""Associated Legendre functions of the first kind, tables of all degrees and orders.

By recurrence (Abramowitz and Stegun, 8.5.3 and 8.6.6): the diagonal `P_m^m = -(2m - 1) sqrt(1 - z²) P_{m-1}^{m-1}`,
then upwards in degree, `(l - m) P_l^m = (2l - 1) z P_{l-1}^m - (l + m - 1) P_{l-2}^m`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...core.arrays.array import Array
from ...core.types.typing import ArrayLike
from ...transforms.fused import fused


def _argument(m: int, n: int, z: ArrayLike) -> Array:
    z = jnp.asarray(z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"z.dtype={z.dtype} is not supported: it is to be float32 or float64.")
    if z.ndim != 1:
        raise ValueError("z must be a 1D array.")
    if m != n:
        raise NotImplementedError("Computations for m!=n are not yet supported.")
    return z


def _table(n: int, z: Any) -> list[list[Any]]:
    """`table[m][l]` is `P_l^m(z)`, with the phase of Condon and Shortley."""
    root = lax.sqrt(1 - z * z)
    table: list[list[Any]] = [[jnp.zeros_like(z)] * (n + 1) for _ in range(n + 1)]
    table[0][0] = jnp.ones_like(z)
    for m in range(n + 1):
        if m:
            table[m][m] = -(2 * m - 1) * root * table[m - 1][m - 1]
        for degree in range(m + 1, n + 1):
            below = table[m][degree - 2] if degree > m + 1 else 0.0
            table[m][degree] = ((2 * degree - 1) * z * table[m][degree - 1] - (degree + m - 1) * below) / (degree - m)
    return table


@fused(static_argnames=("m", "n"))
def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions up to an order and degree, and their derivatives.

    Args:
      m, n: the greatest order and degree, which are to be equal.
      z: a vector of floats between -1 and 1.

    Returns:
      `(values, derivatives)`: arrays of shape `(m + 1, n + 1, len(z))`, by order and degree.

    Raises:
      NotImplementedError: m and n differ.
      TypeError: z holds no floats. ValueError: it is no vector.
    """
    z = _argument(m, n, z)
    table = _table(n, z)
    slopes = [[(degree * z * row[degree] - (degree + order) * row[degree - 1]) / (z * z - 1) if degree
               else jnp.zeros_like(z) for degree in range(n + 1)] for order, row in enumerate(table)]
    slopes = [[s if degree >= order else jnp.zeros_like(z) for degree, s in enumerate(row)]
              for order, row in enumerate(slopes)]
    return jnp.stack([jnp.stack(row) for row in table]), jnp.stack([jnp.stack(row) for row in slopes])


@fused(static_argnames=("m", "n", "is_normalized"))
def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions up to an order and degree.

    Args:
      m, n: the greatest order and degree, which are to be equal.
      z: a vector of floats between -1 and 1.
      is_normalized: whether they are scaled as in spherical harmonics, by
        `sqrt((2l + 1) / (4 pi) (l - m)! / (l + m)!)`.

    Returns:
      an array of shape `(m + 1, n + 1, len(z))`, by order and degree.

    Raises:
      NotImplementedError: m and n differ.
      TypeError: z holds no floats. ValueError: it is no vector.
    """
    z = _argument(m, n, z)
    values = jnp.stack([jnp.stack(row) for row in _table(n, z)])
    if not is_normalized:
        return values
    scale = [[math.sqrt((2 * degree + 1) / (4 * math.pi) * math.factorial(degree - order)
                        / math.factorial(degree + order)) if degree >= order else 0.0
              for degree in range(n + 1)] for order in range(m + 1)]
    return values * jnp.asarray(scale, z.dtype)[..., None]


__all__ = ["lpmn", "lpmn_values"]
