"""Real and imaginary parts, conjugates and angles of complex numbers."""

from __future__ import annotations

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import hide_frames
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, SupportsDType
from styrax.transforms.jit import jit_for_all_shapes as jit

from .promotion import arrays, check_arraylike, convert, default_float, dtype_of, promote_dtypes, shape_of, typed
from .ufuncs import _array, rad2deg


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real arrays are unchanged."""
    (x,) = arrays("conjugate", x)
    return lax.conj(x) if dtypes.issubdtype(dtype_of(x), np.complexfloating) else _array(x)


def conj(x: ArrayLike, /) -> Array:
    """The complex conjugate; real arrays are unchanged."""
    return conjugate(x)


def real(val: ArrayLike, /) -> Array:
    """The real part; real arrays are unchanged."""
    try:
        (val,) = arrays("real", val)
        return lax.real(val) if dtypes.issubdtype(dtype_of(val), np.complexfloating) else _array(val)
    except Exception as error:
        hide_frames(error)
        raise


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real arrays."""
    try:
        (val,) = arrays("imag", val)
        if dtypes.issubdtype(dtype_of(val), np.complexfloating):
            return lax.imag(val)
        return lax.full_like(_array(val), 0)
    except Exception as error:
        hide_frames(error)
        raise


def _angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex numbers in (-π, π], in radians or degrees; 0 or π for real ones."""
    check_arraylike("angle", z)
    re = real(z)
    kind = dtype_of(re)
    im = imag(z) if re is not z and iscomplexobj(z) else lax.full(shape_of(re), 0, kind)
    number = shape_of(re) == () and not iscomplexobj(z)  # a real one, as a Python number, has the default dtype
    if number or kind == np.bool_ or dtypes.issubdtype(kind, np.integer):
        re, im = convert(re, default_float()), convert(im, default_float())
    re, im = promote_dtypes(re, im)
    out = lax.atan2(im, re)
    return rad2deg(out) if deg else out


angle = jit(named(_angle, "angle"), static_argnames=("deg",))


@jit
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part of x is nonzero. Elementwise."""
    part = imag(x)
    return lax.ne(part, convert(0, *typed(part)))


@jit
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part of x is zero. Elementwise."""
    part = imag(x)
    return lax.eq(part, convert(0, *typed(part)))


def iscomplexobj(x: ArrayLike | SupportsDType) -> bool:
    """Whether the dtype of x is complex."""
    if x is None:
        return False
    try:
        dtype = x.dtype  # type: ignore[union-attr]
    except AttributeError:
        dtype = np.asarray(x).dtype
    return bool(dtypes.issubdtype(dtype, np.complexfloating))


def isrealobj(x: ArrayLike | SupportsDType) -> bool:
    """Whether the dtype of x is not complex."""
    return not iscomplexobj(x)
