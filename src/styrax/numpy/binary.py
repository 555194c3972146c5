"""Elementwise functions of two operands.

Two arrays of one dtype and shape go straight to their primitive; everything else is promoted first.
"""

from __future__ import annotations

import math
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

from .broadcasting import choose_elements, truth
from .float_tests import isinf, isnan, signbit
from .promotion import (
    arrays,
    both,
    convert,
    dtype_of,
    either,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_shapes,
    to_inexact,
    typed,
)
from .ufuncs import INEXACT, absolute, frexp, frexp_of, shown

_BOOL = np.dtype(np.bool_)
_ARITHMETIC = INEXACT | {
    np.dtype(d) for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
_INTEGER = _ARITHMETIC - INEXACT
_REAL = frozenset(d for d in _ARITHMETIC if d.kind != "c")


# function -> (its primitive, the dtypes it takes two arrays of without promotion); operators read it.
direct: dict[Callable[..., Any], tuple[Callable[..., Any], frozenset]] = {}


def _binary(name: str, primitive: Callable[..., Any], fast: frozenset, doc: str,
            promote: Callable[..., Any] = promote_args, general: Callable[..., Any] | None = None,
            example: str = "", parameters: tuple[str, str] = ("x", "y")) -> Callable[[ArrayLike, ArrayLike], Array]:
    """A row of the tables below.

    `primitive` takes two arrays of a dtype in `fast` as they are; others go through `promote` to
    `general` (by default the primitive).
    """
    general = general or primitive

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        try:
            if type(x) is Array and type(y) is Array:
                a, b = x.aval, y.aval
                if a is b or (a.dtype is b.dtype and a.weak_type is b.weak_type and a.shape == b.shape):
                    if a.dtype in fast:
                        return primitive(x, y)
            return general(*promote(name, x, y))
        except Exception as error:
            hide_frames(error)
            raise

    # the names that the parameters have in JAX
    function.__code__ = function.__code__.replace(co_varnames=(*parameters, *function.__code__.co_varnames[2:]))
    function.__annotations__ = {**dict.fromkeys(parameters, "ArrayLike"), "return": "Array"}
    direct[function] = (primitive, fast)
    return named(function, name, f"{doc}\n\n    Elementwise, with NumPy's broadcasting and JAX's promotion. Raises "
                                  "TypeError for what is no array or number, and for shapes that do not broadcast."
                                  + shown(name, example))


def _by_bool(numbers: Callable[..., Any], booleans: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: (booleans if dtype_of(x) == _BOOL else numbers)(x, y)


add = _binary("add", lax.add, _ARITHMETIC, "x + y; for booleans, or.", general=_by_bool(lax.add, lax.bitwise_or),
              example="jnp.ones((2, 1), int), jnp.arange(2) = Array([[1, 2],\n             [1, 2]], dtype=int32)")
subtract = _binary("subtract", lax.sub, _ARITHMETIC, "x - y; not defined for booleans.")
multiply = _binary("multiply", lax.mul, _ARITHMETIC, "x · y; for booleans, and.",
                   general=_by_bool(lax.mul, lax.bitwise_and),
                   example="jnp.arange(3), 2.5 = Array([0. , 2.5, 5. ], dtype=float32, weak_type=True)")
maximum = _binary("maximum", lax.max, _ARITHMETIC, "The larger of x and y; NaN where one is NaN.",
                  example="jnp.arange(3), 1 = Array([1, 1, 2], dtype=int32)")
minimum = _binary("minimum", lax.min, _ARITHMETIC, "The smaller of x and y; NaN where one is NaN.")
bitwise_and = _binary("bitwise_and", lax.bitwise_and, _INTEGER | {_BOOL}, "The and of the bits of integers.")
bitwise_or = _binary("bitwise_or", lax.bitwise_or, _INTEGER | {_BOOL}, "The or of the bits of integers.")
bitwise_xor = _binary("bitwise_xor", lax.bitwise_xor, _INTEGER | {_BOOL}, "The exclusive or of the bits of integers.")
true_divide = _binary("true_divide", lax.div, INEXACT, "x1 / x2; integers are divided as floats.", promote_args_inexact,
                      parameters=("x1", "x2"))
nextafter = _binary("nextafter", lax.nextafter, INEXACT, "The next float after x towards y.", promote_args_inexact)
arctan2 = _binary("arctan2", lax.atan2, INEXACT, "The angle of the point (x2, x1), in (-π, π].",
                  promote_args_inexact, parameters=("x1", "x2"))
float_power = _binary("float_power", lax.pow, INEXACT, "x to the power y in floats.", promote_args_inexact)


def _divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2. Elementwise; integers are divided as floats."""
    return true_divide(x1, x2)


divide = named(_divide, "divide")


def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in (-π, π]. Elementwise; integers are taken as floats."""
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


equal = _binary("equal", lax.eq, _ARITHMETIC | {_BOOL}, "x == y as booleans.",
                example="jnp.arange(3), 1 = Array([False,  True, False], dtype=bool)")
not_equal = _binary("not_equal", lax.ne, _ARITHMETIC | {_BOOL}, "x != y as booleans.")
less = _binary("less", lax.lt, _REAL, "x < y as booleans.", general=_compare_complex(lax.lt))
less_equal = _binary("less_equal", lax.le, _REAL, "x <= y as booleans.", general=_compare_complex(lax.le))
greater = _binary("greater", lax.gt, _REAL, "x > y as booleans.", general=_compare_complex(lax.gt))
greater_equal = _binary("greater_equal", lax.ge, _REAL, "x >= y as booleans.", general=_compare_complex(lax.ge))


def _truths(name: str, *args: Any) -> list[Any]:
    return [truth(x) for x in promote_args(name, *args)]


_ONLY_BOOL = frozenset({_BOOL})
logical_and = _binary("logical_and", lax.bitwise_and, _ONLY_BOOL, "Whether x and y are both nonzero.", _truths)
logical_or = _binary("logical_or", lax.bitwise_or, _ONLY_BOOL, "Whether x or y is nonzero.", _truths)
logical_xor = _binary("logical_xor", lax.bitwise_xor, _ONLY_BOOL, "Whether exactly one of x and y is nonzero.", _truths)


# -- shifts ------------------------------------------------------------------------------------
left_shift = _binary("left_shift", lax.shift_left, _INTEGER, "The bits of x shifted y places up.", promote_args_numeric)


def _shift_right(x: Any, y: Any) -> Any:
    if dtypes.issubdtype(dtype_of(x), np.unsignedinteger):
        return lax.shift_right_logical(x, y)
    return lax.shift_right_arithmetic(x, y)


_right = _binary("right_shift", _shift_right, _INTEGER, "", promote_args_numeric)


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of x1 shifted x2 places down, keeping the sign. Raises TypeError for floats."""
    return _right(x1, x2)


def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of x shifted y places up. Raises TypeError for floats."""
    return left_shift(x, y)


def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of x1 shifted x2 places down, keeping the sign. Raises TypeError for floats."""
    return _right(x1, x2)


# -- division ----------------------------------------------------------------------------------
def _zero(x: Any) -> Any:
    return convert(0, *typed(x))


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    # C's remainder first, then moved to the sign of y; the quotient follows from it exactly.
    rem = lax.rem(x, y)
    quotient = lax.div(choose_elements(lax.eq(y, _zero(y)), x, lax.sub(x, rem)), y)
    opposite = lax.bitwise_and(lax.ne(rem, _zero(rem)), lax.ne(lax.sign(y), lax.sign(rem)))
    rem = lax.select(opposite, lax.add(rem, y), rem)
    quotient = lax.select(opposite, lax.sub(quotient, convert(1, *typed(quotient))), quotient)
    return lax.round(quotient), rem


@jit
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest whole number not above x1 / x2.

    Integers divided by 0 give -1 or the largest unsigned value. Raises TypeError for complex numbers.
    """
    x1, x2 = promote_args_numeric("floor_divide", x1, x2)
    dtype = dtype_of(x1)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return lax.div(x1, x2)
    if dtypes.issubdtype(dtype, np.integer):
        quotient = lax.div(x1, x2)
        below = both(lax.ne(lax.sign(x1), lax.sign(x2)), lax.ne(lax.rem(x1, x2), _zero(x1)))
        return choose_elements(below, lax.sub(quotient, convert(1, *typed(quotient))), quotient)
    if dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError("floor_divide does not support complex-valued inputs")
    return _float_divmod(x1, x2)[0]


def _nonzero_divisor(x: Any, y: Any) -> Any:
    """The divisor with 1 in place of 0, for integers: the remainder by 0 is then 0."""
    if not dtypes.issubdtype(dtype_of(y), np.integer):
        return y
    return choose_elements(lax.eq(y, _zero(y)), _ones_like(y), y)


def _ones_like(x: Any) -> Any:
    return lax.full_like(x, 1)


@jit
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 modulo x2, with the sign of x2; integers modulo 0 give 0. Raises TypeError for complex numbers."""
    x1, x2 = promote_args_numeric("remainder", x1, x2)
    x2 = _nonzero_divisor(x1, x2)
    rem = lax.rem(x1, x2)
    nonzero = lax.ne(rem, _zero(rem))
    negative = lax.lt(rem, _zero(rem))
    opposite = lax.bitwise_and(lax.ne(negative, lax.lt(x2, _zero(x2))), nonzero)
    return lax.select(opposite, lax.add(rem, x2), rem)


def mod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 modulo x2, with the sign of x2; integers modulo 0 give 0. The same as `remainder`."""
    return remainder(x1, x2)


@jit
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 / x2 with the sign of x1, as in C; integers by 0 give 0."""
    x1, x2 = arrays("fmod", x1, x2)
    if dtypes.issubdtype(_result_dtype(x1, x2), np.integer):
        x2 = choose_elements(lax.eq(x2, _zero(x2)), _ones_like(x2), x2)
    return lax.rem(*promote_args_numeric("fmod", x1, x2))


def _result_dtype(*args: Any) -> Any:
    from .promotion import result_typed

    return result_typed(*args)[0]


@jit
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The pair `(floor_divide(x1, x2), remainder(x1, x2))`."""
    x1, x2 = promote_args_numeric("divmod", x1, x2)
    if dtypes.issubdtype(dtype_of(x1), np.integer):
        return floor_divide(x1, x2), remainder(x1, x2)
    return _float_divmod(x1, x2)


# -- powers ------------------------------------------------------------------------------------
def _integer_power(x: Any, y: Any) -> Any:
    """Integers to integer powers by squaring, on as many bits of y as matter."""
    one, zero = convert(1, *typed(y)), convert(0, *typed(y))
    # 0 to a nonzero power starts from 0, so that a negative one gives 0, too.
    acc = choose_elements(lax.bitwise_and(lax.eq(x, _zero(x)), lax.ne(y, zero)), convert(0, dtype_of(x)),
                          convert(1, dtype_of(x)))
    for _ in range(6):
        acc = choose_elements(lax.bitwise_and(y, one), lax.mul(acc, x), acc)
        x = lax.mul(x, x)
        y = lax.shift_right_logical(y, one)
    return acc


def _power(x1: Any, x2: Any) -> Any:
    exponent = x2
    x1, x2 = promote_args_numeric("power", x1, x2)
    if dtypes.issubdtype(dtype_of(x1), np.integer):
        return _integer_power(x1, x2)
    if dtypes.issubdtype(dtype_of(exponent), np.integer):
        # Integer exponents stay integers.
        return lax.pow(*promote_shapes("power", x1, exponent))
    return lax.pow(x1, x2)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2. Elementwise.

    A Python int (or concrete integer scalar) as x2 is a chain of multiplications, exact for integers.
    Raises TypeError for integers with a negative static power.
    """
    try:
        x1, x2 = arrays("power", x1, x2)
        exponent = _static_integer(x2)
        if exponent is not None:
            base, weak = typed(x1)
            if base == _BOOL:
                # Truth values are taken as integers of 32 bits, whatever the exponent and x64.
                return lax.integer_pow(convert(x1, np.dtype(np.int32)), exponent)
            if dtypes.issubdtype(base, np.number) and _result_dtype(x1, x2) == base:
                return lax.integer_pow(x1, exponent)
        return _power(x1, x2)
    except Exception as error:
        hide_frames(error)
        raise


def _static_integer(y: Any) -> int | None:
    """The value of a scalar that is known to be an integer while tracing, else None."""
    if type(y) is int:
        return y
    if type(y) is bool or isinstance(y, float):
        return None
    if isinstance(y, (np.integer, np.ndarray)) and y.shape == () and y.dtype.kind in "iu":
        return int(y)
    if type(y) is Array and y.aval.shape == () and y.aval.dtype.kind in "iu":
        return int(y)
    return None


def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2. The same as `power`."""
    return power(x1, x2)


# -- minima and maxima that skip NaN ---------------------------------------------------------------
@jit
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, or the other one where one is NaN. Elementwise."""
    return choose_elements(either(greater(x1, x2), isnan(x2)), *arrays("fmax", x1, x2))


@jit
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, or the other one where one is NaN. Elementwise."""
    return choose_elements(either(less(x1, x2), isnan(x2)), *arrays("fmin", x1, x2))


# -- sums of exponentials -----------------------------------------------------------------------
def _log_sum(name: str, base: float) -> Callable[[ArrayLike, ArrayLike], Array]:
    power_of = lax.exp if base == math.e else lax.exp2
    scale = None if base == math.e else 1 / math.log(2)
    turn = math.pi if base == math.e else math.pi / math.log(2)

    def logarithm_1p(x: Any) -> Any:
        out = lax.log1p(x)
        return out if scale is None else lax.mul(convert(scale, *typed(out)), out)

    def function(x1: Any, x2: Any, /) -> Any:
        largest = lax.max(x1, x2)
        if dtypes.issubdtype(dtype_of(x1), np.complexfloating):
            rest = lax.sub(lax.add(x1, x2), lax.mul(largest, convert(2, *typed(largest))))
            out = lax.add(largest, logarithm_1p(power_of(rest)))
            re, im = lax.real(out), lax.imag(out)
            half, whole = convert(turn, *typed(im)), convert(2 * turn, *typed(im))
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
        return lax.select(lax.eq(x, convert(np.inf, *typed(x))), lax.full_like(x, 0), x)

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

    return named(entry, name, f"log{'' if scale is None else '2'} of the sum of two exponentials, without overflow.")


logaddexp = _log_sum("logaddexp", math.e)
logaddexp2 = _log_sum("logaddexp2", 2.0)


# -- others ------------------------------------------------------------------------------------
@jit
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of x1 with the sign bit of x2. Raises TypeError for complex numbers."""
    x1, x2 = promote_args_inexact("copysign", x1, x2)
    if dtypes.issubdtype(dtype_of(x1), np.complexfloating):
        raise TypeError("copysign does not support complex-valued inputs")
    return choose_elements(signbit(x2), lax.neg(lax.abs(x1)), lax.abs(x1))


@jit
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where x1 < 0, x2 where x1 = 0, 1 where x1 > 0. Integers are taken as floats."""
    x1, x2 = promote_dtypes_inexact(*arrays("heaviside", x1, x2))
    dtype, zero = dtype_of(x1), _zero(x1)
    below, above = lax.lt(x1, zero), lax.gt(x1, zero)
    rest = choose_elements(lax.ne(x1, x1), x1, x2)
    return choose_elements(below, convert(0, dtype), choose_elements(above, convert(1, dtype), rest))


@jit
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1² + x2²) without overflow on the way. Raises ValueError for complex numbers."""
    x1, x2 = promote_args_inexact("hypot", x1, x2)
    dtype = dtype_of(x1)
    if dtypes.issubdtype(dtype, np.complexfloating):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs. Please convert to real values "
                         "first, such as by using abs(x)")
    x1, x2 = lax.abs(x1), lax.abs(x2)
    inf = convert(np.inf, dtype)
    infinite = either(lax.eq(x1, inf), lax.eq(x2, inf))
    x1, x2 = lax.max(x1, x2), lax.min(x1, x2)
    zero = convert(0, dtype)
    none = lax.eq(x1, zero)
    ratio = lax.div(x2, choose_elements(lax.eq(x1, zero), _ones_like(x1), x1))
    length = lax.mul(x1, lax.sqrt(lax.add(convert(1, *typed(x1)), lax.square(ratio))))
    return choose_elements(infinite, inf, choose_elements(none, x1, length))


@jit
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 · 2^x2 for whole x2. Raises ValueError for an x2 that is not of an integer dtype."""
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
    """The greatest common divisor of integers. Raises ValueError for others."""
    from .broadcasting import spread_all

    x1, x2 = arrays("gcd", x1, x2)
    x1, x2 = promote_dtypes(x1, x2)
    if not dtypes.issubdtype(dtype_of(x1), np.integer):
        raise ValueError("Arguments to jax.numpy.gcd must be integers.")
    x1, x2 = spread_all((x1, x2))
    return lax.while_loop(_gcd_going, _gcd_step, (absolute(x1), absolute(x2)))[0]


@jit
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers. Raises ValueError for others."""
    x1, x2 = arrays("lcm", x1, x2)
    x1, x2 = promote_dtypes(x1, x2)
    if not dtypes.issubdtype(dtype_of(x1), np.integer):
        raise ValueError("Arguments to jax.numpy.lcm must be integers.")
    x1, x2 = promote_shapes("lcm", absolute(x1), absolute(x2))
    divisor = gcd(x1, x2)
    return choose_elements(lax.eq(divisor, _zero(divisor)), _zero(divisor),
                           lax.mul(x1, floor_divide(x2, divisor)))


def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from zero. Raises ValueError for complex numbers."""
    (x,) = arrays("spacing", x)
    if dtypes.issubdtype(dtype_of(x), np.complexfloating):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    (x,) = promote_args_inexact("spacing", x)
    dtype = dtype_of(x)
    step = lax.sub(lax.nextafter(x, copysign(convert(np.inf, dtype), x)), x)
    smallest = convert(dtypes.finfo(dtype).smallest_subnormal, dtype)
    out = choose_elements(lax.eq(step, convert(0, dtype)), copysign(smallest, x), step)
    return lax.abs(out) if dtype == np.float16 else out  # NumPy's halves have no sign here


@frexp_of.defjvp
def _frexp_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    fraction, exponent = frexp_of(x)
    zero = np.zeros(exponent.shape, dtypes.float0)
    return (fraction, exponent), (lax.mul(t, ldexp(lax.full_like(fraction, 1), lax.neg(exponent))), zero)
