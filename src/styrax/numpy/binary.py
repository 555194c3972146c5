"""Elementwise functions of two operands.

Two arrays of one dtype and shape go straight to their primitive; everything else is promoted first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import hide_frames
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.custom import custom_jvp
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import choose_elements, truth
from .division import _zero
from .float_tests import isinf, isnan, signbit
from .promotion import (
    arrays,
    convert,
    dtype_of,
    either,
    number_like,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes_inexact,
    promote_shapes,
    to_inexact,
)
from .rounding import frexp, frexp_of
from .ufuncs import INEXACT, shown

_BOOL = np.dtype(np.bool_)
_ARITHMETIC = INEXACT | {
    np.dtype(d) for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
_INTEGER = _ARITHMETIC - INEXACT
_REAL = frozenset(d for d in _ARITHMETIC if d.kind != "c")
# function -> (its primitive, the dtypes it takes two arrays of without promotion); operators read it.
direct: dict[Callable[..., Any], tuple[Callable[..., Any], frozenset]] = {}
_NUMBERS = "arrays or numbers that broadcast"
_FLOATED = "arrays or numbers that broadcast; integers are taken as floats"
_WHOLE = "integers that broadcast"
_PROMOTED = "an array of the shape that they broadcast to, of the dtype that both promote to"
_FLOATS = "floats or complex numbers of the shape that they broadcast to"
_BOOLEANS = "booleans of the shape that they broadcast to"
_DOC = """{}

    Args:
      {}{}.{}

    Returns:
      {}.

    Raises:
      TypeError: for what is no array or number{}, and for shapes that do not broadcast."""


def _described(doc: str, parameters: tuple[str, str] | None, takes: str, gives: str, refused: str = "") -> str:
    """The docstring of a function of two operands; `parameters` are None for those that `ufunc_objects` wraps."""
    if parameters is None:
        return _DOC.format(doc, "*args: x and y, ", takes, "\n      out, where: have to be None.", gives, refused)
    return _DOC.format(doc, ", ".join(parameters) + ": ", takes, "", gives, refused)


def _binary(name: str, primitive: Callable[..., Any], fast: frozenset, doc: str,
            promote: Callable[..., Any] = promote_args, general: Callable[..., Any] | None = None,
            example: str = "", parameters: tuple[str, str] | None = ("x", "y"), takes: str = _NUMBERS,
            gives: str = _PROMOTED, refused: str = "") -> Callable[[ArrayLike, ArrayLike], Array]:
    """A row of the tables below.

    `primitive` takes two arrays of a dtype in `fast` as they are; others go through `promote` to
    `general` (by default the primitive). The last three say what it takes, gives and raises TypeError for.
    """
    general = general or primitive
    promoted = fused(named(lambda x, y, /: general(*promote(name, x, y)), name))

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        try:
            if type(x) is Array and type(y) is Array:
                a, b = x.aval, y.aval
                if a is b or (a.dtype is b.dtype and a.weak_type is b.weak_type and a.shape == b.shape):
                    if a.dtype in fast:
                        return primitive(x, y)
            return promoted(x, y)
        except Exception as error:
            hide_frames(error)
            raise

    if parameters is not None:  # the names that the parameters have in JAX
        function.__code__ = function.__code__.replace(co_varnames=(*parameters, *function.__code__.co_varnames[2:]))
        function.__annotations__ = {**dict.fromkeys(parameters, "ArrayLike"), "return": "Array"}
    direct[function] = (primitive, fast)
    return named(function, name, _described(doc, parameters, takes, gives, refused) + shown(name, example))


def _by_bool(numbers: Callable[..., Any], booleans: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: (booleans if dtype_of(x) == _BOOL else numbers)(x, y)


add = _binary("add", lax.add, _ARITHMETIC, "x + y, elementwise; for booleans, or.",
              general=_by_bool(lax.add, lax.bitwise_or), parameters=None,
              example="jnp.ones((2, 1), int), jnp.arange(2) = Array([[1, 2],\n             [1, 2]], dtype=int32)")
subtract = _binary("subtract", lax.sub, _ARITHMETIC, "x - y, elementwise.", parameters=None, refused=", for booleans")


def _factors(name: str, x: Any, y: Any) -> tuple[Any, Any] | list[Array]:
    """As `promote_args`, but a condition among numbers stays one: the product converts it."""
    if (getattr(x, "dtype", None) is _BOOL) is not (getattr(y, "dtype", None) is _BOOL):
        return arrays(name, x, y)
    return promote_args(name, x, y)


@fused
def _where_it_holds(x: Any, y: Any) -> Array:
    """A product with a condition, in one program: zero where the condition does not hold, even of infinities."""
    return lax.mul(*promote_args("multiply", x, y))


def _product(x: Any, y: Any) -> Array:
    condition = dtype_of(x) == _BOOL
    if condition is not (dtype_of(y) == _BOOL):
        return _where_it_holds(x, y)
    return (lax.bitwise_and if condition else lax.mul)(x, y)


multiply = _binary("multiply", lax.mul, _ARITHMETIC, "x · y, elementwise; for booleans, and.",
                   promote=_factors, general=_product, parameters=None,
                   example="jnp.arange(3), 2.5 = Array([0. , 2.5, 5. ], dtype=float32, weak_type=True)")
_EXTREMUM = """The {} of x and y, elementwise; NaN where one is NaN.

    Complex numbers are ordered by their real parts, then by their imaginary ones. Where x and y are equal each has half
    of the derivative."""
maximum = _binary("maximum", lax.max, _ARITHMETIC, _EXTREMUM.format("larger"), parameters=None,
                  example="jnp.arange(3), 1 = Array([1, 1, 2], dtype=int32)")
minimum = _binary("minimum", lax.min, _ARITHMETIC, _EXTREMUM.format("smaller"), parameters=None)
_bits = partial(_binary, parameters=None, takes="integers or booleans that broadcast", refused=", for floats")
bitwise_and = _bits("bitwise_and", lax.bitwise_and, _INTEGER | {_BOOL}, "The and of bits, elementwise.")
bitwise_or = _bits("bitwise_or", lax.bitwise_or, _INTEGER | {_BOOL}, "The or of bits, elementwise.")
bitwise_xor = _bits("bitwise_xor", lax.bitwise_xor, _INTEGER | {_BOOL}, "The exclusive or of bits, elementwise.")
_inexact = partial(_binary, promote=promote_args_inexact, takes=_FLOATED, gives=_FLOATS)
true_divide = _inexact("true_divide", lax.div, INEXACT, "x1 / x2, elementwise.", parameters=("x1", "x2"),
                       gives=f"{_FLOATS}; by 0 they are infinite, 0 / 0 is NaN")
nextafter = _inexact("nextafter", lax.nextafter, INEXACT, "The next float after x towards y, elementwise; x where both "
                     "are equal.", refused=", for complex numbers")
arctan2 = _inexact("arctan2", lax.atan2, INEXACT, "The angle of the point (x2, x1), in (-π, π], elementwise.",
                   parameters=("x1", "x2"))
float_power = _inexact("float_power", lax.pow, INEXACT, "x to the power y in floats, elementwise.")


def _divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2, elementwise. Alias of :func:`jax.numpy.true_divide`.

    Args:
      x1, x2: arrays or numbers that broadcast; integers are taken as floats.

    Returns:
      floats or complex numbers of the shape that they broadcast to; by 0 they are infinite, 0 / 0 is NaN.

    Raises:
      TypeError: for what is no array or number, and for shapes that do not broadcast.
    """
    return true_divide(x1, x2)


divide = named(_divide, "divide")


def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in (-π, π], elementwise. Alias of :func:`jax.numpy.arctan2`.

    Args:
      x1, x2: arrays or numbers that broadcast, the ordinate first; integers are taken as floats.

    Returns:
      floats (of complex numbers, complex ones) of the shape that they broadcast to, in radians.

    Raises:
      TypeError: for what is no array or number, and for shapes that do not broadcast.
    """
    return arctan2(x1, x2)


def _compare_complex(compare: Callable[..., Any]) -> Callable[..., Any]:
    """Lexicographic order: real parts first, then imaginary ones."""

    def ordered(x: Any, y: Any) -> Any:
        if not dtypes.issubdtype(dtype_of(x), np.complexfloating):
            return compare(x, y)
        same = lax.eq(lax.real(x), lax.real(y))
        by_imag = compare(lax.imag(x), lax.imag(y))
        return lax.select(same, by_imag, compare(lax.real(x), lax.real(y)))

    return ordered


_test = partial(_binary, gives=_BOOLEANS)
equal = _test("equal", lax.eq, _ARITHMETIC | {_BOOL}, "Whether x == y, elementwise; NaN equals nothing.",
              example="jnp.arange(3), 1 = Array([False,  True, False], dtype=bool)")
not_equal = _test("not_equal", lax.ne, _ARITHMETIC | {_BOOL}, "Whether x != y, elementwise; NaN differs from all.")
_ORDER = """Whether x {} y, elementwise.

    Complex numbers are ordered by their real parts, then by their imaginary ones."""
less = _test("less", lax.lt, _REAL, _ORDER.format("<"), general=_compare_complex(lax.lt))
less_equal = _test("less_equal", lax.le, _REAL, _ORDER.format("<="), general=_compare_complex(lax.le))
greater = _test("greater", lax.gt, _REAL, _ORDER.format(">"), general=_compare_complex(lax.gt))
greater_equal = _test("greater_equal", lax.ge, _REAL, _ORDER.format(">="), general=_compare_complex(lax.ge))


def _truths(name: str, *args: Any) -> list[Any]:
    return [truth(x) for x in promote_args(name, *args)]


_logical = partial(_binary, fast=frozenset({_BOOL}), promote=_truths, parameters=None, gives=_BOOLEANS)
logical_and = _logical("logical_and", lax.bitwise_and, doc="Whether x and y are both not 0, elementwise.")
logical_or = _logical("logical_or", lax.bitwise_or, doc="Whether x or y is not 0, elementwise.")
logical_xor = _logical("logical_xor", lax.bitwise_xor, doc="Whether exactly one of x and y is not 0, elementwise.")


# -- shifts ------------------------------------------------------------------------------------
left_shift = _binary("left_shift", lax.shift_left, _INTEGER,
                     "The bits of x shifted y places up, elementwise. Alias of :func:`jax.numpy.bitwise_left_shift`.",
                     promote_args_numeric, takes=_WHOLE, refused=", for floats")


def _shift_right(x: Any, y: Any) -> Any:
    if dtypes.issubdtype(dtype_of(x), np.unsignedinteger):
        return lax.shift_right_logical(x, y)
    return lax.shift_right_arithmetic(x, y)


_right = _binary("right_shift", _shift_right, _INTEGER, "", promote_args_numeric)


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of integers shifted down, elementwise: signed ones keep their sign.

    Args:
      x1, x2: integers that broadcast: what is shifted, and by how many places.

    Returns:
      integers of the shape that they broadcast to, of the dtype that both promote to.

    Raises:
      TypeError: for floats, and for shapes that do not broadcast.
    """
    return _right(x1, x2)


def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of integers shifted up, elementwise. Alias of :func:`jax.numpy.left_shift`.

    Args:
      x, y: integers that broadcast: what is shifted, and by how many places.

    Returns:
      integers of the shape that they broadcast to, of the dtype that both promote to; bits beyond it are lost.

    Raises:
      TypeError: for floats, and for shapes that do not broadcast.
    """
    return left_shift(x, y)


def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of integers shifted down, signed ones with their sign. Alias of :func:`jax.numpy.right_shift`.

    Args:
      x1, x2: integers that broadcast: what is shifted, and by how many places.

    Returns:
      integers of the shape that they broadcast to, of the dtype that both promote to.

    Raises:
      TypeError: for floats, and for shapes that do not broadcast.
    """
    return _right(x1, x2)


# -- powers ------------------------------------------------------------------------------------
def _integer_power(x: Any, y: Any) -> Any:
    """Integers to integer powers by squaring, on as many bits of y as matter."""
    one, zero = number_like(1, y), number_like(0, y)
    # 0 to a nonzero power starts from 0, so that a negative one gives 0, too.
    acc = choose_elements(lax.bitwise_and(lax.eq(x, _zero(x)), lax.ne(y, zero)), convert(0, dtype_of(x)),
                          convert(1, dtype_of(x)))
    for _ in range(6):
        acc = choose_elements(lax.bitwise_and(y, one), lax.mul(acc, x), acc)
        x = lax.mul(x, x)
        y = lax.shift_right_logical(y, one)
    return acc


@fused
def _power(x1: Any, x2: Any) -> Any:
    base, exponent = x1, x2
    x1, x2 = promote_args_numeric("power", x1, x2)
    if dtypes.issubdtype(dtype_of(x1), np.integer):
        return _integer_power(x1, x2)
    if dtypes.issubdtype(dtype_of(exponent), np.integer) and dtypes.issubdtype(dtype_of(base), np.inexact):
        # Integer exponents stay integers.
        return lax.pow(*promote_shapes("power", x1, exponent))
    return lax.pow(x1, x2)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2, elementwise.

    A Python int (or concrete integer scalar) as x2 is a chain of multiplications in x1's dtype. Negative
    powers of integers in arrays give no meaningful numbers; negative floats to broken powers give NaN.

    Args:
      x1, x2: arrays or numbers that broadcast; booleans are taken as integers.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to; of x1's where x2 is a concrete
      integer scalar.

    Raises:
      TypeError: for integers with a negative static power, and for shapes that do not broadcast.
    """
    try:
        x1, x2 = arrays("power", x1, x2)
        exponent = _static_integer(x2)
        if exponent is not None:
            base = dtype_of(x1)
            if base == _BOOL:
                # Truth values are taken as integers of 32 bits, whatever the exponent and x64.
                return lax.integer_pow(convert(x1, np.dtype(np.int32)), exponent)
            if dtypes.issubdtype(base, np.number):
                return lax.integer_pow(x1, exponent)
        return _power(x1, x2)
    except Exception as error:
        hide_frames(error)
        raise


def _static_integer(y: Any) -> int | None:
    """The value of a scalar that is known to be an integer while tracing, else None."""
    if type(y) is int or type(y) is bool:
        return int(y)
    if isinstance(y, float):
        return None
    if isinstance(y, (np.integer, np.ndarray)) and y.shape == () and y.dtype.kind in "iu":
        return int(y)
    if type(y) is Array and y.aval.shape == () and y.aval.dtype.kind in "iu":
        return int(y)
    return None


def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2, elementwise. Alias of :func:`jax.numpy.power`.

    Args:
      x1, x2: arrays or numbers that broadcast; booleans are taken as integers.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to; of x1's where x2 is a concrete
      integer scalar.

    Raises:
      TypeError: for integers with a negative static power, and for shapes that do not broadcast.
    """
    return power(x1, x2)


# -- minima and maxima that skip NaN ---------------------------------------------------------------
@jit
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, elementwise; the other one where one is NaN.

    Args:
      x1, x2: arrays or numbers that broadcast.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to; NaN where both are. Where they
      are equal x2 has the derivative.

    Raises:
      TypeError: for what is no array or number, and for shapes that do not broadcast.
    """
    return choose_elements(either(greater(x1, x2), isnan(x2)), *arrays("fmax", x1, x2))


@jit
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, elementwise; the other one where one is NaN.

    Args:
      x1, x2: arrays or numbers that broadcast.

    Returns:
      an array of the shape that they broadcast to, of the dtype that both promote to; NaN where both are. Where they
      are equal x2 has the derivative.

    Raises:
      TypeError: for what is no array or number, and for shapes that do not broadcast.
    """
    return choose_elements(either(less(x1, x2), isnan(x2)), *arrays("fmin", x1, x2))


# -- sums of exponentials -----------------------------------------------------------------------
def _log_sum(name: str, base: float) -> Callable[[ArrayLike, ArrayLike], Array]:
    power_of = lax.exp if base == math.e else lax.exp2
    scale = None if base == math.e else 1 / math.log(2)
    turn = math.pi if base == math.e else math.pi / math.log(2)

    def logarithm_1p(x: Any) -> Any:
        out = lax.log1p(x)
        return out if scale is None else lax.mul(number_like(scale, out), out)

    def function(x1: Any, x2: Any, /) -> Any:
        largest = lax.max(x1, x2)
        if dtypes.issubdtype(dtype_of(x1), np.complexfloating):
            rest = lax.sub(lax.add(x1, x2), lax.mul(largest, number_like(2, largest)))
            out = lax.add(largest, logarithm_1p(power_of(rest)))
            re, im = lax.real(out), lax.imag(out)
            half, whole = number_like(turn, im), number_like(2 * turn, im)
            rem = lax.rem(lax.add(im, half), whole)
            rem = lax.select(lax.lt(rem, _zero(rem)), lax.add(rem, whole), rem)
            return lax.complex(re, lax.sub(rem, half))
        delta = lax.sub(x1, x2)
        # Equal infinities have a difference of NaN; their sum is the answer.
        return lax.select(lax.ne(delta, delta), lax.add(x1, x2),
                          lax.add(largest, logarithm_1p(power_of(lax.neg(lax.abs(delta))))))

    named(function, name)
    wrapped = custom_jvp(function)

    def finite(x: Any) -> Any:
        # An infinite operand is the result itself: their difference is 0, not NaN.
        return lax.select(lax.eq(x, number_like(np.inf, x)), lax.full_like(x, 0), x)

    def jvp(primals: tuple, tangents: tuple) -> tuple:
        (x1, x2), (t1, t2) = primals, tangents
        out = wrapped(x1, x2)
        weight1 = power_of(lax.sub(finite(x1), finite(out)))
        weight2 = power_of(lax.sub(finite(x2), finite(out)))
        return out, lax.add(lax.mul(t1, weight1), lax.mul(t2, weight2))

    named(jvp, f"_{name}_jvp")
    wrapped.defjvp(jvp)

    def entry(x1: Any, x2: Any, /) -> Any:
        return wrapped(*promote_args_inexact(name, x1, x2))

    formula = "log(exp(x) + exp(y))" if scale is None else "log2(2^x + 2^y)"
    return fused(named(entry, name, _described(f"{formula}, elementwise, without overflow.", None, _FLOATED, _FLOATS)))


logaddexp = _log_sum("logaddexp", math.e)
logaddexp2 = _log_sum("logaddexp2", 2.0)


# -- others ------------------------------------------------------------------------------------
@jit
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of x1 with the sign bit of x2, elementwise.

    Args:
      x1, x2: real arrays or numbers that broadcast; integers are taken as floats. -0.0 and NaN have sign bits, too.

    Returns:
      floats of the shape that they broadcast to.

    Raises:
      TypeError: for complex numbers.
      ValueError: for shapes that do not broadcast.
    """
    x1, x2 = promote_args_inexact("copysign", x1, x2)
    if dtypes.issubdtype(dtype_of(x1), np.complexfloating):
        raise TypeError("copysign does not support complex-valued inputs")
    return choose_elements(signbit(x2), lax.neg(lax.abs(x1)), lax.abs(x1))


@jit
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where x1 < 0, x2 where x1 = 0, 1 where x1 > 0, elementwise.

    Args:
      x1, x2: real arrays or numbers that broadcast; integers are taken as floats.

    Returns:
      floats of the shape that they broadcast to; NaN where x1 is NaN.

    Raises:
      TypeError: for complex numbers.
      ValueError: for shapes that do not broadcast.
    """
    x1, x2 = promote_dtypes_inexact(*arrays("heaviside", x1, x2))
    zero = number_like(0, x1)
    below, above = lax.lt(x1, zero), lax.gt(x1, zero)
    rest = choose_elements(lax.ne(x1, x1), x1, x2)
    return choose_elements(below, zero, choose_elements(above, number_like(1, x1), rest))


@jit
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1² + x2²) without overflow on the way, elementwise.

    Args:
      x1, x2: real arrays or numbers that broadcast; integers are taken as floats.

    Returns:
      floats of the shape that they broadcast to; infinite where one is, even beside NaN.

    Raises:
      ValueError: for complex numbers.
      TypeError: for shapes that do not broadcast.
    """
    x1, x2 = promote_args_inexact("hypot", x1, x2)
    dtype = dtype_of(x1)
    if dtypes.issubdtype(dtype, np.complexfloating):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs. Please convert to real values "
                         "first, such as by using abs(x)")
    x1, x2 = lax.abs(x1), lax.abs(x2)
    infinite = lax.bitwise_or(lax.eq(x1, number_like(np.inf, x1)), lax.eq(x2, number_like(np.inf, x2)))
    x1, x2 = lax.max(x1, x2), lax.min(x1, x2)
    none = lax.eq(x1, _zero(x1))
    ratio = lax.div(x2, choose_elements(lax.eq(x1, _zero(x1)), lax.full_like(x1, 1), x1))
    length = lax.mul(x1, lax.sqrt(lax.add(number_like(1, x1), lax.square(ratio))))
    return choose_elements(infinite, number_like(np.inf, x1), choose_elements(none, x1, length))


@jit
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 · 2^x2, elementwise, without overflow on the way.

    Args:
      x1: real numbers; integers are taken as floats.
      x2: integers, which broadcast with `x1`.

    Returns:
      floats of the shape that they broadcast to, of the float dtype of `x1`.

    Raises:
      ValueError: for complex x1, and for an x2 that is not of an integer dtype.
    """
    x1, x2 = arrays("ldexp", x1, x2)
    d1, d2 = dtype_of(x1), dtype_of(x2)
    if dtypes.issubdtype(d1, np.complexfloating) or dtypes.issubdtype(d2, np.inexact):
        raise ValueError(f"ldexp not supported for input types {(d1, d2)}")
    x1, x2 = promote_shapes("ldexp", x1, x2)
    dtype = to_inexact(d1)
    fraction, exponent = frexp(convert(x1, dtype))
    x1 = convert(x1, dtype)
    exponent = lax.add(convert(exponent, dtype), convert(x2, dtype))
    # The scale is taken in two steps so that 2^exponent cannot overflow where the result does not.
    zero = convert(0, dtype)
    fraction = choose_elements(lax.gt(exponent, zero), lax.mul(fraction, convert(2, dtype)), fraction)
    exponent = choose_elements(lax.gt(exponent, zero), lax.sub(exponent, convert(1, dtype)), exponent)
    out = lax.mul(fraction, lax.pow(convert(2, dtype), exponent))
    return choose_elements(either(isinf(x1), lax.eq(x1, zero)), x1, out)


@fused
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from zero, elementwise, with the sign of x.

    Args:
      x: real numbers; integers are taken as floats.

    Returns:
      floats of the shape of `x`; the smallest subnormal at 0, NaN for infinities and NaN. Halves have no sign.

    Raises:
      ValueError: for complex numbers.
    """
    (x,) = arrays("spacing", x)
    if dtypes.issubdtype(dtype_of(x), np.complexfloating):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    (x,) = promote_args_inexact("spacing", x)
    dtype = dtype_of(x)
    up = lax.full_like(x, np.inf)
    # Halves look upwards alone, as NumPy's.
    step = lax.sub(lax.nextafter(x, up if dtype == np.float16 else copysign(up, x)), x)
    smallest = convert(dtypes.finfo(dtype).smallest_subnormal, dtype)
    out = choose_elements(lax.eq(step, convert(0, dtype)), copysign(smallest, x), step)
    return lax.abs(out) if dtype == np.float16 else out


@frexp_of.defjvp
def _frexp_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    fraction, exponent = frexp_of(x)
    zero = np.zeros(exponent.shape, dtypes.float0)
    return (fraction, exponent), (lax.mul(t, lax.exp2(lax.neg(convert(exponent, fraction.dtype)))), zero)
