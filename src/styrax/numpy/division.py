"""Whole quotients, remainders, and common divisors."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import choose_elements, spread_all
from .promotion import (
    arrays,
    both,
    dtype_of,
    number_as,
    number_like,
    promote_args_numeric,
    promote_dtypes,
    promote_shapes,
    result_typed,
)
from .ufuncs import absolute


def _zero(x: Any) -> Any:
    return number_like(0, x)


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    # C's remainder first, then moved to the sign of y; the quotient follows from it exactly.
    rem = lax.rem(x, y)
    quotient = lax.div(choose_elements(lax.eq(y, _zero(y)), x, lax.sub(x, rem)), y)
    opposite = lax.bitwise_and(lax.ne(rem, _zero(rem)), lax.ne(lax.sign(y), lax.sign(rem)))
    rem = lax.select(opposite, lax.add(rem, y), rem)
    quotient = lax.select(opposite, lax.sub(quotient, number_as(1, quotient)), quotient)
    return lax.round(quotient), rem


@jit
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest whole number not above x1 / x2, elementwise.

    By 0 floats give infinity or NaN, integers no meaningful numbers. The derivative is 0.

    Args:
      x1, x2: real arrays or numbers that broadcast.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to.

    Raises:
      TypeError: for complex numbers, and for shapes that do not broadcast.
    """
    x1, x2 = promote_args_numeric("floor_divide", x1, x2)
    dtype = dtype_of(x1)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return lax.div(x1, x2)
    if dtypes.issubdtype(dtype, np.integer):
        quotient = lax.div(x1, x2)
        below = both(lax.ne(lax.sign(x1), lax.sign(x2)), lax.ne(lax.rem(x1, x2), _zero(x1)))
        return choose_elements(below, lax.sub(quotient, number_as(1, quotient)), quotient)
    if dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError("floor_divide does not support complex-valued inputs")
    return _float_divmod(x1, x2)[0]


def _nonzero_divisor(y: Any) -> Any:
    """The divisor with 1 in place of 0, for integers: the remainder by 0 is then 0."""
    if not dtypes.issubdtype(dtype_of(y), np.integer):
        return y
    return choose_elements(lax.eq(y, _zero(y)), lax.full_like(y, 1), y)


@jit
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 modulo x2, x1 - x2 · floor(x1 / x2), with the sign of x2, elementwise.

    The derivatives are 1 and -floor(x1 / x2).

    Args:
      x1, x2: real arrays or numbers that broadcast.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to. Modulo 0 integers give 0, floats
      NaN.

    Raises:
      TypeError: for complex numbers, and for shapes that do not broadcast.
    """
    x1, x2 = promote_args_numeric("remainder", x1, x2)
    x2 = _nonzero_divisor(x2)
    rem = lax.rem(x1, x2)
    nonzero = lax.ne(rem, _zero(rem))
    negative = lax.lt(rem, _zero(rem))
    opposite = lax.bitwise_and(lax.ne(negative, lax.lt(x2, _zero(x2))), nonzero)
    return lax.select(opposite, lax.add(rem, x2), rem)


def mod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 modulo x2, with the sign of x2, elementwise. Alias of :func:`jax.numpy.remainder`.

    Args:
      x1, x2: real arrays or numbers that broadcast.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to. Modulo 0 integers give 0, floats
      NaN.

    Raises:
      TypeError: for complex numbers, and for shapes that do not broadcast.
    """
    return remainder(x1, x2)


@jit
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 / x2 with the sign of x1, as in C, elementwise.

    Args:
      x1, x2: real arrays or numbers that broadcast.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to. Modulo 0 integers give 0, floats
      NaN.

    Raises:
      TypeError: for complex numbers, and for shapes that do not broadcast.
    """
    x1, x2 = arrays("fmod", x1, x2)
    if dtypes.issubdtype(result_typed(x1, x2)[0], np.integer):
        x2 = choose_elements(lax.eq(x2, _zero(x2)), lax.full_like(x2, 1), x2)
    return lax.rem(*promote_args_numeric("fmod", x1, x2))


@jit
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The pair `(floor_divide(x1, x2), remainder(x1, x2))`, elementwise.

    Args:
      x1, x2: real arrays or numbers that broadcast.

    Returns:
      two arrays of the shape that they broadcast to, of the dtype that both promote to.

    Raises:
      TypeError: for complex numbers, and for shapes that do not broadcast.
    """
    x1, x2 = promote_args_numeric("divmod", x1, x2)
    if dtypes.issubdtype(dtype_of(x1), np.integer):
        return floor_divide(x1, x2), remainder(x1, x2)
    return _float_divmod(x1, x2)


# -- common divisors ---------------------------------------------------------------------------
def _gcd_step(state: tuple) -> tuple:
    a, b = state
    nonzero = lax.ne(b, _zero(b))
    larger = choose_elements(nonzero, b, a)
    smaller = choose_elements(lax.ne(b, _zero(b)), lax.rem(a, b), _zero(b))
    return (choose_elements(lax.lt(larger, smaller), smaller, larger),
            choose_elements(lax.lt(larger, smaller), larger, smaller))


def _gcd_going(state: tuple) -> Any:
    nonzero = lax.ne(state[1], _zero(state[1]))
    return lax.reduce_or(nonzero, tuple(range(nonzero.ndim)))


@jit
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers, elementwise, by Euclid's algorithm.

    Args:
      x1, x2: integers that broadcast.

    Returns:
      integers, not negative, of the shape that they broadcast to; gcd(0, n) is |n|.

    Raises:
      ValueError: for other dtypes, and for shapes that do not broadcast.
    """
    x1, x2 = arrays("gcd", x1, x2)
    x1, x2 = promote_dtypes(x1, x2)
    if not dtypes.issubdtype(dtype_of(x1), np.integer):
        raise ValueError("Arguments to jax.numpy.gcd must be integers.")
    x1, x2 = spread_all((x1, x2))
    return lax.while_loop(_gcd_going, _gcd_step, (absolute(x1), absolute(x2)))[0]


@jit
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers, elementwise.

    Args:
      x1, x2: integers that broadcast.

    Returns:
      integers, not negative, of the shape that they broadcast to; 0 where one is 0.

    Raises:
      ValueError: for other dtypes, and for shapes that do not broadcast.
    """
    x1, x2 = arrays("lcm", x1, x2)
    x1, x2 = promote_dtypes(x1, x2)
    if not dtypes.issubdtype(dtype_of(x1), np.integer):
        raise ValueError("Arguments to jax.numpy.lcm must be integers.")
    x1, x2 = promote_shapes("lcm", absolute(x1), absolute(x2))
    divisor = gcd(x1, x2)
    return choose_elements(lax.eq(divisor, _zero(divisor)), _zero(divisor),
                           lax.mul(x1, floor_divide(x2, divisor)))
