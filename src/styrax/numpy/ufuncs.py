"""Elementwise functions of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import hide_frames, warn
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis, SupportsShape
from styrax.transforms.custom import custom_jvp
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import choose_elements
from .promotion import (
    arrays,
    convert,
    dtype_of,
    is_array,
    is_arraylike,
    literal,
    number_like,
    promote_args_inexact,
    promote_args_numeric,
    shape_of,
    typed,
    unwrap,
)

INEXACT = frozenset(map(np.dtype, ("float16", "float32", "float64", "complex64", "complex128"))) | {
    np.dtype(dtypes.bfloat16)}


def shown(name: str, example: str) -> str:
    """The end of a docstring that shows a function's arguments and result, given as "arguments = result"."""
    if not example:
        return ""
    arguments, _, result = example.partition(" = ")
    return f"\n\n    Example:\n      >>> import styrax.numpy as jnp\n      >>> jnp.{name}({arguments})\n      {result}"


def _inexact(name: str, primitive: Callable[..., Any], doc: str, example: str = "") -> Callable[[ArrayLike], Array]:
    """A row of the table below: a function of floats (or complex numbers); integers become floats."""

    def function(x: ArrayLike, /) -> Array:
        try:
            if type(x) is Array and x.aval.dtype in INEXACT:
                return primitive(x)
            return primitive(*promote_args_inexact(name, x))
        except Exception as error:
            hide_frames(error)
            raise

    return named(function, name, doc + _OF_FLOATS + shown(name, example))


_OF_FLOATS = """ Elementwise.

    Args:
      x: an array or number; integers and booleans are taken as floats.

    Returns:
      floats (or complex numbers) of the shape of `x`.

    Raises:
      TypeError: for what is no array or number."""


acos = _inexact("acos", lax.acos, "Alias of :func:`jax.numpy.arccos`.")
asin = _inexact("asin", lax.asin, "Alias of :func:`jax.numpy.arcsin`.")
asinh = _inexact("asinh", lax.asinh, "Alias of :func:`jax.numpy.arcsinh`.")
atan = _inexact("atan", lax.atan, "Alias of :func:`jax.numpy.arctan`.")
atanh = _inexact("atanh", lax.atanh, "Alias of :func:`jax.numpy.arctanh`.")
arccos = _inexact("arccos", lax.acos, "The inverse cosine, in [0, π]; NaN for floats outside [-1, 1].")
arcsin = _inexact("arcsin", lax.asin, "The inverse sine, in [-π/2, π/2]; NaN for floats outside [-1, 1].")
arcsinh = _inexact("arcsinh", lax.asinh, "The inverse hyperbolic sine.")
arctan = _inexact("arctan", lax.atan, "The inverse tangent, in [-π/2, π/2].")
arctanh = _inexact("arctanh", lax.atanh, "The inverse hyperbolic tangent; ±∞ at ±1, NaN for floats beyond.")
cbrt = _inexact("cbrt", lax.cbrt, "The real cube root, negative for negative x. Not for complex numbers.")
cos = _inexact("cos", lax.cos, "The cosine of an angle in radians.",
               "0.0 = Array(1., dtype=float32, weak_type=True)")
cosh = _inexact("cosh", lax.cosh, "The hyperbolic cosine.")
exp = _inexact("exp", lax.exp, "e to the power x; ∞ where that is too large.",
               "jnp.array([0.0, 1.0]) = Array([1.       , 2.7182817], dtype=float32)")
exp2 = _inexact("exp2", lax.exp2, "2 to the power x; ∞ where that is too large.")
expm1 = _inexact("expm1", lax.expm1, "exp(x) - 1, accurate for small x.")
log = _inexact("log", lax.log, "The natural logarithm; -∞ at 0, NaN for negative floats.",
               "jnp.array([1.0, 0.0]) = Array([  0., -inf], dtype=float32)")
log1p = _inexact("log1p", lax.log1p, "log(1 + x), accurate for small x; -∞ at -1, NaN for floats below.")
sin = _inexact("sin", lax.sin, "The sine of an angle in radians.",
               "0.0 = Array(0., dtype=float32, weak_type=True)")
sinh = _inexact("sinh", lax.sinh, "The hyperbolic sine.")
sqrt = _inexact("sqrt", lax.sqrt, "The square root; NaN for negative floats. Its derivative at 0 is ∞.",
                "jnp.array([4.0, -1.0]) = Array([ 2., nan], dtype=float32)")
tan = _inexact("tan", lax.tan, "The tangent of an angle in radians.")
tanh = _inexact("tanh", lax.tanh, "The hyperbolic tangent.",
                "jnp.array([0, 20]) = Array([0., 1.], dtype=float32)")


@jit
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic cosine; NaN below 1. Its real part is not negative. Elementwise.

    Args:
      x: an array or number; integers and booleans are taken as floats.

    Returns:
      floats (or complex numbers) of the shape of `x`.
    """
    (x,) = promote_args_inexact("arccosh", x)
    out = lax.acosh(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        # The principal branch has a real part that is not negative.
        out = choose_elements(lax.lt(lax.real(out), np.zeros((), np.empty(0, x.dtype).real.dtype)), lax.neg(out), out)
    return out


def acosh(x: ArrayLike, /) -> Array:
    """Alias of :func:`jax.numpy.arccosh`. Elementwise.

    Args:
      x: an array or number; integers and booleans are taken as floats.

    Returns:
      what `arccosh` gives.
    """
    return arccosh(x)


def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x, elementwise; ±∞ at ±0.

    Args:
      x: an array or number; integers and booleans are taken as floats.

    Returns:
      floats (or complex numbers) of the shape of `x`.
    """
    (x,) = promote_args_inexact("reciprocal", x)
    return lax.integer_pow(x, -1)


def _scaled_log(name: str, scale: Callable[[Any], Any], doc: str) -> Callable[[ArrayLike], Array]:
    def function(x: ArrayLike, /) -> Array:
        (x,) = promote_args_inexact(name, x)
        if not dtypes.issubdtype(dtype_of(x), np.complexfloating):
            return scale(lax.log(x))
        out = lax.log(x)
        re, im = lax.real(out), lax.imag(out)
        return _scale_parts(re, im, scale)

    return fused(named(function, name, doc + _OF_FLOATS))


def _scale_parts(re: Any, im: Any, scale: Callable[..., Any]) -> Any:
    return lax.complex(*scale(re, im))


def _times_log10(*xs: Any) -> Any:
    out = [lax.mul(x, literal(math.log10(math.e), x.dtype)) for x in xs]
    return out[0] if len(out) == 1 else out


def _over_log2(*xs: Any) -> Any:
    factor = lax.log(literal(2.0, xs[0].dtype))
    out = [lax.div(x, factor) for x in xs]
    return out[0] if len(out) == 1 else out


log10 = _scaled_log("log10", _times_log10, "The logarithm to base 10; -∞ at 0, NaN for negative floats.")
log2 = _scaled_log("log2", _over_log2, "The logarithm to base 2; -∞ at 0, NaN for negative floats.")


def _times(name: str, factor: float, doc: str) -> Callable[[ArrayLike], Array]:
    def function(x: ArrayLike, /) -> Array:
        (x,) = promote_args_inexact(name, x)
        return lax.mul(x, number_like(factor, x))

    return fused(named(function, name, doc + _OF_FLOATS))


deg2rad = _times("deg2rad", math.pi / 180, "Degrees as radians: x · π/180. Alias of :func:`jax.numpy.radians`.")
radians = _times("radians", math.pi / 180, "Degrees as radians: x · π/180. Alias of :func:`jax.numpy.deg2rad`.")
rad2deg = _times("rad2deg", 180 / math.pi, "Radians as degrees: x · 180/π. Alias of :func:`jax.numpy.degrees`.")
degrees = _times("degrees", 180 / math.pi, "Radians as degrees: x · 180/π. Alias of :func:`jax.numpy.rad2deg`.")


# -- sign, rounding and parts ------------------------------------------------------------------
def absolute(x: ArrayLike, /) -> Array:
    """The absolute value, elementwise. Its derivative at 0 is 1; the lowest signed integer stays itself.

    Args:
      x: an array or number.

    Returns:
      an array of the shape and dtype of `x`; for complex numbers their moduli, real.
    """
    (x,) = arrays("absolute", x)
    dtype = dtype_of(x)
    if dtype == np.bool_ or dtypes.issubdtype(dtype, np.unsignedinteger):
        return _array(x)
    return lax.abs(x)


def _array(x: Any) -> Any:
    if is_array(x):
        return x
    from .conversion import asarray

    return asarray(x)


def abs(x: ArrayLike, /) -> Array:
    """The absolute value, elementwise. Alias of :func:`jax.numpy.absolute`.

    Args:
      x: an array or number.

    Returns:
      what `absolute` gives.
    """
    return absolute(x)


def fabs(x: ArrayLike, /) -> Array:
    """The absolute value as a float, elementwise.

    Args:
      x: an array or number; integers and booleans are taken as floats.

    Returns:
      floats of the shape of `x`.

    Raises:
      TypeError: for complex numbers.
    """
    (x,) = arrays("fabs", x)
    if dtypes.issubdtype(dtype_of(x), np.complexfloating):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    (x,) = promote_args_inexact("fabs", x)
    return lax.abs(x)


def negative_elements(x: Any, /) -> Any:
    """-x, elementwise. Unsigned integers wrap around.

    Args:
      *args: x, an array or number.
      out, where: have to be None.

    Returns:
      an array of the shape and dtype of x.

    Raises:
      TypeError: for booleans.
    """
    try:
        (x,) = arrays("negative", x)
        return lax.neg(x)
    except Exception as error:
        hide_frames(error)
        raise


def positive(x: ArrayLike, /) -> Array:
    """+x: the array itself.

    Args:
      x: an array or number.

    Returns:
      an array of the shape and dtype of `x`.
    """
    try:
        (x,) = arrays("positive", x)
        return _array(x)
    except Exception as error:
        hide_frames(error)
        raise


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 as x is negative, zero or positive, elementwise; NaN for NaN, x/|x| for complex numbers.

    Args:
      x: an array or number.

    Returns:
      an array of the shape and dtype of `x`. Its derivative is 0.

    Raises:
      TypeError: for booleans.
    """
    try:
        (x,) = arrays("sign", x)
        return lax.sign(x)
    except Exception as error:
        hide_frames(error)
        raise


# -- tests -------------------------------------------------------------------------------------
@fused
def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero (or False), elementwise. NaN is not.

    Args:
      x: an array or number.

    Returns:
      booleans of the shape of `x`.
    """
    (x,) = arrays("logical_not", x)
    if dtype_of(x) != np.bool_:
        x = lax.ne(x, number_like(0, x))
    return lax.bitwise_not(x)


def bitwise_not(x: ArrayLike, /) -> Array:
    """The bits of integers flipped, -x - 1 for signed ones; booleans negated. Alias of :func:`jax.numpy.invert`.

    Args:
      x: an array or number.

    Returns:
      an array of the shape and dtype of `x`.

    Raises:
      TypeError: for floats and complex numbers.
    """
    try:
        (x,) = arrays("bitwise_not", x)
        return lax.bitwise_not(x)
    except Exception as error:
        hide_frames(error)
        raise


def invert(x: ArrayLike, /) -> Array:
    """The bits of integers flipped; booleans negated. The same as `bitwise_not`.

    Args:
      x: an array or number.

    Returns:
      what `bitwise_not` gives.
    """
    return bitwise_not(x)


def bitwise_invert(x: ArrayLike, /) -> Array:
    """The bits of integers flipped; booleans negated. Alias of :func:`jax.numpy.invert`.

    Args:
      x: an array or number.

    Returns:
      what `bitwise_not` gives.
    """
    return bitwise_not(x)


@jit
def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits are set in |x|, elementwise.

    Args:
      x: integers.

    Returns:
      an array of uint8 of the shape of `x`.

    Raises:
      TypeError: for floats and complex numbers.
    """
    (x,) = promote_args_numeric("bitwise_count", x)
    return convert(lax.population_count(absolute(x)), np.dtype(np.uint8))


# -- others ------------------------------------------------------------------------------------
def square(x: ArrayLike, /) -> Array:
    """x · x, elementwise. Integers may wrap around; complex numbers are not conjugated.

    Args:
      x: an array or number; booleans are taken as integers.

    Returns:
      an array of the shape and dtype of `x`.
    """
    (x,) = promote_args_numeric("square", x)
    return lax.square(x)


@custom_jvp
def _sinc_maclaurin(x: Any) -> Any:
    # sinc near zero; the derivatives that its JVP gives are those of the series there.
    return lax.add(lax.mul(x, number_like(0, x)), number_like(1, x))


@_sinc_maclaurin.defjvp
def _sinc_maclaurin_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    return _sinc_maclaurin(x), _sinc_slope(x, 1) * t


def _sinc_slope(x: Any, order: int) -> Any:
    """The derivative of sin(x)/x at zero: (-1)^(k/2)/(k+1) for even k, 0 for odd, with its own derivatives."""

    @custom_jvp
    def at_zero(x: Any) -> Any:
        value = 0.0 if order % 2 else (-1.0) ** (order // 2) / (order + 1)
        return lax.full_like(x, value)

    @at_zero.defjvp
    def at_zero_jvp(primals: tuple, tangents: tuple) -> tuple:
        (x,), (t,) = primals, tangents
        return at_zero(x), _sinc_slope(x, order + 1) * t

    return at_zero(x)


@jit
def sinc(x: ArrayLike, /) -> Array:
    """sin(πx) / (πx), and 1 at 0, where the derivatives are right, too. Elementwise.

    Args:
      x: an array or number; integers and booleans are taken as floats.

    Returns:
      floats (or complex numbers) of the shape of `x`.
    """
    (x,) = promote_args_inexact("sinc", x)
    zero = lax.eq(x, number_like(0, x))
    scaled = lax.mul(number_like(np.pi, x), x)
    safe = choose_elements(zero, number_like(1, scaled), scaled)
    return choose_elements(zero, _sinc_maclaurin(scaled), lax.div(lax.sin(safe), safe))


@custom_jvp
def _i0(x: Any) -> Any:
    x = lax.abs(x)
    return lax.mul(lax.exp(x), lax.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    # d/dx I0 = I1, with the sign of x in I1e.
    return _i0(x), lax.mul(lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x)), t)


@jit
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0, elementwise.

    Args:
      x: an array or number of a real dtype; integers and booleans are taken as floats.

    Returns:
      floats of the shape of `x`.

    Raises:
      ValueError: for complex numbers.
    """
    (x,) = promote_args_inexact("i0", x)
    if not dtypes.issubdtype(dtype_of(x), np.floating):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {dtype_of(x)}")
    return _i0(x)


def _nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None,
                neginf: ArrayLike | None = None) -> Array:
    """x with NaN and infinities replaced, elementwise; of complex numbers in each part.

    Args:
      x: an array or number; integers and booleans are unchanged.
      copy: without effect.
      nan: what replaces NaN.
      posinf, neginf: what replaces ∞ and -∞; by default the largest and lowest finite values.

    Returns:
      an array of the shape and dtype of `x`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan]))
      Array([1., 0.], dtype=float32)
    """
    (x,) = arrays("nan_to_num", x)
    dtype, weak = typed(x)
    if not dtypes.issubdtype(dtype, np.inexact):
        return x
    if dtypes.issubdtype(dtype, np.complexfloating):
        return lax.complex(nan_to_num(lax.real(x), nan=nan, posinf=posinf, neginf=neginf),
                           nan_to_num(lax.imag(x), nan=nan, posinf=posinf, neginf=neginf))
    info = dtypes.finfo(dtype)
    posinf = info.max if posinf is None else posinf
    neginf = info.min if neginf is None else neginf

    def value(v: Any) -> Any:
        return convert(unwrap(v), dtype)

    out = choose_elements(lax.ne(x, x), value(nan), x)
    out = choose_elements(lax.eq(out, number_like(np.inf, out)), value(posinf), out)
    return choose_elements(lax.eq(out, number_like(-np.inf, out)), value(neginf), out)


nan_to_num = jit(named(_nan_to_num, "nan_to_num"))


def _sizes(name: str, a: Any) -> Any:
    if not is_arraylike(a) and not hasattr(a, "shape"):
        warn(f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a future JAX release this "
             "will be an error.", DeprecationWarning)
    return shape_of(a)


def shape(a: ArrayLike | SupportsShape) -> tuple[int, ...]:
    """The shape of an array or number.

    Args:
      a: an array or number, or something with a `shape`.

    Returns:
      a tuple of ints.
    """
    return tuple(_sizes("shape", a))


def ndim(a: ArrayLike | SupportsShape) -> int:
    """The rank of an array or number.

    Args:
      a: an array or number, or something with a `shape`.

    Returns:
      an int.
    """
    return len(_sizes("ndim", a))


def size(a: ArrayLike | SupportsShape, axis: Axis = None) -> int:
    """The number of elements of an array or number.

    Args:
      a: an array or number, or something with a `shape`.
      axis: an axis, or several, whose sizes are multiplied; by default all.

    Returns:
      an int.
    """
    sizes = _sizes("size", a)
    if axis is None:
        return math.prod(sizes)
    from .promotion import axis_indices

    return math.prod(sizes[i] for i in axis_indices(axis, len(sizes)))
