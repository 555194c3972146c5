"""What a number is: finite, infinite, NaN, negative."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .promotion import arrays, convert, dtype_of, literal


def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither infinite nor NaN, elementwise.

    Args:
      x: an array or number; of complex numbers both parts have to be finite.

    Returns:
      booleans of the shape of `x`; all True for integers.
    """
    (x,) = arrays("isfinite", x)
    dtype = dtype_of(x)
    if dtypes.issubdtype(dtype, np.floating):
        return lax.is_finite(x)
    if dtypes.issubdtype(dtype, np.complexfloating):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.full_like(x, True, dtype=np.dtype(np.bool_))


def _infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), literal(np.inf, dtype_of(x)))


@jit
def isinf(x: ArrayLike, /) -> Array:
    """Whether x is infinite, elementwise.

    Args:
      x: an array or number; of complex numbers one part has to be infinite.

    Returns:
      booleans of the shape of `x`; all False for integers.
    """
    (x,) = arrays("isinf", x)
    dtype = dtype_of(x)
    if dtypes.issubdtype(dtype, np.floating):
        return _infinite(x)
    if dtypes.issubdtype(dtype, np.complexfloating):
        re, im = lax.real(x), lax.imag(x)
        return lax.bitwise_or(_infinite(re), _infinite(im))
    return lax.full_like(x, False, dtype=np.dtype(np.bool_))


def isnan(x: ArrayLike, /) -> Array:
    """Whether x is NaN, elementwise.

    Args:
      x: an array or number; of complex numbers one part has to be NaN.

    Returns:
      booleans of the shape of `x`; all False for integers.
    """
    (x,) = arrays("isnan", x)
    return lax.ne(x, x)


class InfinityTest(Protocol):
    """`isposinf` or `isneginf`."""

    def __call__(self, x: ArrayLike, /, out: None = None) -> Array: ...


def _signed_infinity(name: str, value: float, doc: str) -> InfinityTest:
    def function(x: ArrayLike, /, out: None = None) -> Array:
        (x,) = arrays(name, x)
        if out is not None:
            raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
        dtype = dtype_of(x)
        if dtypes.issubdtype(dtype, np.floating):
            return lax.eq(x, literal(value, dtype_of(x)))
        if dtypes.issubdtype(dtype, np.complexfloating):
            raise ValueError("isposinf/isneginf are not well defined for complex types")
        return lax.full_like(x, False, dtype=np.dtype(np.bool_))

    return named(function, name, doc)


_INFINITY_DOC = """Whether x is {}∞, elementwise.

    Args:
      x: real numbers.
      out: has to be None.

    Returns:
      booleans of the shape of `x`; all False for integers.

    Raises:
      ValueError: for complex numbers.
      NotImplementedError: for an `out`.
    """
isposinf = _signed_infinity("isposinf", np.inf, _INFINITY_DOC.format("+"))
isneginf = _signed_infinity("isneginf", -np.inf, _INFINITY_DOC.format("-"))

_SIGN_VIEWS: dict[int, np.dtype] = {
    2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64), 1: np.dtype(np.int8)}


@jit
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set, elementwise.

    Args:
      x: real numbers.

    Returns:
      booleans of the shape of `x`: True for negative numbers, -0.0 and NaN with such a bit.

    Raises:
      ValueError: for complex numbers.
    """
    (x,) = arrays("signbit", x)
    dtype = dtype_of(x)
    if dtypes.issubdtype(dtype, np.integer):
        return lax.lt(x, literal(0, dtype))
    if dtype == np.bool_:
        return lax.full_like(x, False)
    if not dtypes.issubdtype(dtype, np.floating):
        raise ValueError(f"jax.numpy.signbit is not well defined for {dtype}")
    bits = _SIGN_VIEWS[dtype.itemsize]
    x = lax.bitcast_convert_type(x, bits)
    return convert(lax.shift_right_arithmetic(x, convert(8 * dtype.itemsize - 1, bits)), np.dtype(np.bool_))
