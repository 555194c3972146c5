"""Real and imaginary parts, conjugates and angles of complex numbers."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import hide_frames
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, SupportsDType
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .promotion import (
    arrays,
    check_arraylike,
    convert,
    default_float,
    dtype_of,
    number_like,
    promote_dtypes,
    shape_of,
)
from .ufuncs import _array, rad2deg


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate, elementwise.

    Args:
      x: an array or number.

    Returns:
      an array of the shape and dtype of `x`; `x` itself where it is real.
    """
    (x,) = arrays("conjugate", x)
    return lax.conj(x) if dtypes.issubdtype(dtype_of(x), np.complexfloating) else _array(x)


def conj(x: ArrayLike, /) -> Array:
    """The complex conjugate, elementwise. Alias of :func:`jax.numpy.conjugate`.

    Args:
      x: an array or number.

    Returns:
      an array of the shape and dtype of `x`; `x` itself where it is real.
    """
    return conjugate(x)


def real(val: ArrayLike, /) -> Array:
    """The real part, elementwise.

    Args:
      val: an array or number.

    Returns:
      an array of the shape of `val`: of its float dtype for complex numbers, else `val` itself.
    """
    try:
        (val,) = arrays("real", val)
        return lax.real(val) if dtypes.issubdtype(dtype_of(val), np.complexfloating) else _array(val)
    except Exception as error:
        hide_frames(error)
        raise


@fused
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part, elementwise.

    Args:
      val: an array or number.

    Returns:
      an array of the shape of `val`: of its float dtype for complex numbers, else zeros of its own dtype.
    """
    (val,) = arrays("imag", val)
    if dtypes.issubdtype(dtype_of(val), np.complexfloating):
        return lax.imag(val)
    return lax.full_like(_array(val), 0)


def _angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex numbers, atan2(imag, real), elementwise.

    Args:
      z: an array or number; real ones give 0 or π.
      deg: whether the result is in degrees.

    Returns:
      floats of the shape of `z`, in (-π, π] or (-180, 180]; NaN for NaN.
    """
    check_arraylike("angle", z)
    re = real(z)
    kind = dtype_of(re)
    im = imag(z) if re is not z and iscomplexobj(z) else lax.full_like(re, 0)
    number = shape_of(re) == () and not iscomplexobj(z)  # a real one, as a Python number, has the default dtype
    if number or kind == np.bool_ or dtypes.issubdtype(kind, np.integer):
        re, im = convert(re, default_float()), convert(im, default_float())
    re, im = promote_dtypes(re, im)
    out = lax.atan2(im, re)
    return rad2deg(out) if deg else out


angle = jit(named(_angle, "angle"), static_argnames=("deg",))


@jit
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not 0, elementwise.

    Args:
      x: an array or number.

    Returns:
      booleans of the shape of `x`; all False for real dtypes.
    """
    part = imag(x)
    return lax.ne(part, number_like(0, part))


@jit
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is 0, elementwise.

    Args:
      x: an array or number.

    Returns:
      booleans of the shape of `x`; all True for real dtypes.
    """
    part = imag(x)
    return lax.eq(part, number_like(0, part))


def iscomplexobj(x: ArrayLike | SupportsDType) -> bool:
    """Whether the dtype of `x` is complex, whatever its imaginary parts are.

    Args:
      x: an array, a number, or anything with a dtype; None is not complex.

    Returns:
      a bool of Python.
    """
    if x is None:
        return False
    try:
        dtype = x.dtype  # type: ignore[union-attr]
    except AttributeError:
        dtype = np.asarray(x).dtype
    return bool(dtypes.issubdtype(dtype, np.complexfloating))


def isrealobj(x: ArrayLike | SupportsDType) -> bool:
    """Whether the dtype of `x` is not complex.

    Args:
      x: an array, a number, or anything with a dtype.

    Returns:
      a bool of Python.
    """
    return not iscomplexobj(x)
