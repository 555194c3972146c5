"""Numbers rounded, and taken apart: into fractions and whole parts, into fractions and exponents."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import hide_frames
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.custom import custom_jvp
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import choose_elements
from .float_tests import isinf
from .promotion import (
    arrays,
    convert,
    default_float,
    dtype_of,
    either,
    number_like,
    promote_args_inexact,
    typed_beside,
)
from .ufuncs import _array


def _whole(name: str, primitive: Callable[..., Any], doc: str) -> Callable[[ArrayLike], Array]:
    def function(x: ArrayLike, /) -> Array:
        try:
            (x,) = arrays(name, x)
            dtype = dtype_of(x)
            if dtype == np.bool_ or dtypes.issubdtype(dtype, np.integer):
                return _array(x)
            return primitive(x)
        except Exception as error:
            hide_frames(error)
            raise

    return named(function, name, doc + _UNCHANGED)


_UNCHANGED = """ Elementwise; the derivative is 0.

    Args:
      x: an array or number of a real dtype.

    Returns:
      an array of the shape and dtype of `x`; integers and booleans are unchanged."""
floor = _whole("floor", lax.floor, "The largest whole number not above x.")
ceil = _whole("ceil", lax.ceil, "The smallest whole number not below x.")


@jit
def trunc(x: ArrayLike) -> Array:
    """x with its fraction cut off, towards zero. Elementwise; the derivative is 0.

    Args:
      x: an array or number of a real dtype.

    Returns:
      an array of the shape and dtype of `x`; integers and booleans are unchanged.
    """
    (x,) = arrays("trunc", x)
    dtype = dtype_of(x)
    if dtype == np.bool_ or dtypes.issubdtype(dtype, np.integer):
        return x
    return choose_elements(lax.lt(x, number_like(0, x)), lax.ceil(x), lax.floor(x))


@jit
def rint(x: ArrayLike, /) -> Array:
    """x rounded to the nearest whole number, halves to even; of complex numbers each part. Elementwise.

    Args:
      x: an array or number.

    Returns:
      floats (or complex numbers) of the shape of `x`; integers and booleans become floats of the default dtype.
    """
    (x,) = arrays("rint", x)
    dtype = dtype_of(x)
    if dtype == np.bool_ or dtypes.issubdtype(dtype, np.integer):
        return convert(x, default_float())
    if dtypes.issubdtype(dtype, np.complexfloating):
        return lax.complex(rint(lax.real(x)), rint(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _round(x: Any, decimals: int) -> Any:
    dtype = x.dtype
    if dtypes.issubdtype(dtype, np.integer):
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return x

    def part(x: Any) -> Any:
        if decimals == 0:
            return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
        kind, weak = typed_beside(x)
        # 10**decimals overflows float16 early, so the scaling is done in float32.
        wide = np.dtype(np.float32) if kind == np.float16 else kind
        factor = convert(float(10**decimals) if decimals > 0 else 10.0**decimals, wide, weak)
        scaled = lax.mul(convert(x, wide) if wide != kind else x, factor)
        out = lax.div(lax.round(scaled, lax.RoundingMethod.TO_NEAREST_EVEN), factor)
        return convert(out, kind) if wide != kind else out

    if dtypes.issubdtype(dtype, np.complexfloating):
        return lax.complex(part(lax.real(x)), part(lax.imag(x)))
    return part(x)


def _round_entry(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The elements rounded to decimals, halves to even; of complex numbers each part.

    Args:
      a: an array or number.
      decimals: how many of them; negative ones round to tens, hundreds and so on.
      out: not supported, None only.

    Returns:
      an array of the shape and dtype of `a`; integers are unchanged.

    Raises:
      NotImplementedError: for integers with negative `decimals`.
      ValueError: for booleans.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.round(jnp.array([14.0, 25.0, 35.0]), -1)
      Array([10., 20., 40.], dtype=float32)
    """
    (a,) = arrays("round", a)
    decimals = operator.index(decimals)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.round is not supported.")
    if dtype_of(a) == np.bool_:
        raise ValueError("data type <class 'numpy.bool'> not inexact")
    return _round(a, decimals)


round = jit(named(_round_entry, "round"), static_argnames=("decimals",))


def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The elements rounded to decimals, halves to even. Alias of :func:`jax.numpy.round`.

    Args:
      a, decimals, out: as for `round`.

    Returns:
      what `round` gives.
    """
    return round(a, decimals, out)


@jit
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fraction and the whole part of x, both with its sign. Elementwise.

    Args:
      x: an array or number of a real dtype; integers and booleans are taken as floats.
      out: not supported, None only.

    Returns:
      a pair of floats of the shape of `x`: fractions and whole parts.

    Raises:
      NotImplementedError: for `out`.
    """
    (x,) = promote_args_inexact("modf", x)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.modf is not supported.")
    whole = choose_elements(lax.ge(x, number_like(0, x)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


_FLOAT_BITS: dict[str, Any] = {  # dtype -> integer view, exponent bits, mantissa bits, exponent bias
    "float16": (np.dtype(np.int16), 5, 10, 15),
    "bfloat16": (np.dtype(np.int16), 8, 7, 127),
    "float32": (np.dtype(np.int32), 8, 23, 127),
    "float64": (np.dtype(np.int64), 11, 52, 1023),
}


@custom_jvp
def frexp_of(x: Any) -> Any:
    dtype = x.dtype
    bits, n_exponent, n_mantissa, bias = _FLOAT_BITS[dtype.name]
    tiny = lax.lt(lax.abs(x), number_like(float(dtypes.finfo(dtype).tiny), x))
    # Subnormals are scaled to normal numbers first.
    scaled = choose_elements(tiny, lax.mul(x, number_like(float(2**n_mantissa), x)), x)
    shift = choose_elements(tiny, convert(-n_mantissa, bits), convert(0, bits))
    word = lax.bitcast_convert_type(scaled, bits)
    exponent = lax.bitwise_and(lax.shift_right_arithmetic(word, convert(n_mantissa, bits)),
                               convert(2**n_exponent - 1, bits))
    exponent = lax.add(lax.sub(exponent, convert(bias, bits)), convert(1, bits))
    exponent = lax.add(shift, exponent)
    mask = ((2**n_exponent - 1) << n_mantissa)
    mantissa = lax.bitwise_and(word, np.asarray(~mask).astype(bits))
    mantissa = lax.bitwise_or(mantissa, np.asarray((bias - 1) << n_mantissa).astype(bits))
    fraction = lax.bitcast_convert_type(mantissa, dtype)
    special = either(either(isinf(x), lax.ne(x, x)), lax.eq(x, number_like(0, x)))
    exponent = choose_elements(special, lax.full_like(exponent, 0), exponent)
    fraction = choose_elements(special, x, fraction)
    return fraction, convert(exponent, np.dtype(np.int32))


@jit
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """The fraction f with |f| in [0.5, 1) and the exponent e with x = f·2^e, elementwise. Of 0, NaN and infinities the
    fraction is x and the exponent 0.

    Args:
      x: an array or number of a real dtype; integers and booleans are taken as floats.

    Returns:
      a pair of floats and int32 exponents, of the shape of `x`.

    Raises:
      TypeError: for complex numbers.
    """
    (x,) = arrays("frexp", x)
    if dtypes.issubdtype(dtype_of(x), np.complexfloating):
        raise TypeError("frexp does not support complex-valued inputs")
    (x,) = promote_args_inexact("frexp", x)
    return frexp_of(x)
