"""Elementwise arithmetic, comparisons and bit operations.

Each operation is a row: its dtypes, its derivative, the code of one element and its StableHLO
operation. Special functions are in `special`, conversions in `casting`.
"""

from __future__ import annotations

import builtins
import enum
from typing import Any

import numpy as np

from styrax.core import dtypes, rules
from styrax.core.avals import ShapedArray
from styrax.core.trace import get_aval
from styrax.transforms import ad, batching

from .comparisons import eq, ge, select
from .lanes import ArrayOps, Lane, ScalarOps
from .primitives import (
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMERIC,
    OPERATIONS,
    ORDERED,
    REAL,
    Operation,
    accepts_dtype,
    accuracy_attribute,
    binary,
    broadcast_shape,
    check_dtype,
    check_same_dtypes,
    comparison,
    elementwise_hlo,
    elementwise_loops,
    nary,
    scalar_like,
    shape_of,
    standard_primitive,
    unary,
)
from .shaping import full_like, unbroadcast


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of a complex dtype; other dtypes are their own."""
    return np.dtype({8: np.float32, 16: np.float64}[dtype.itemsize]) if dtype.kind == "c" else dtype


def complex_dtype(dtype: Any) -> Any:
    """The complex dtype whose parts are of the given dtype."""
    if dtype.kind == "c":
        return dtype
    return np.dtype(np.complex128 if dtype == np.float64 else np.complex64)


def is_complex(x: Any) -> bool:
    return get_aval(x).dtype.kind == "c"


class RoundingMethod(enum.IntEnum):
    """How `round` treats numbers half way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """How exact an accelerator's elementary functions have to be."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """An error bound for an elementary function: absolute, relative and in units of the last place."""

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0.0 or rtol < 0.0 or ulps < 0.0:
            raise ValueError("Tolerances must be non-negative.")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tolerance) and (self.atol, self.rtol, self.ulps) == (
            other.atol,
            other.rtol,
            other.ulps,
        )

    def __hash__(self) -> int:
        return hash((self.atol, self.rtol, self.ulps))

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


# -- signs, rounding, parts ------------------------------------------------------------------------

neg, neg_p = unary(
    "neg", NUMERIC, "Negation, elementwise. Unsigned integers wrap around.",
    jvp=lambda t, ans, x: neg(t),
    scalar=lambda b, x: b.neg(x),
    hlo="stablehlo.negate",
    reference=np.negative,
)  # fmt: skip
ad.deflinear2(neg_p, lambda ct, x: [neg(ct)])


def _sign_hlo(m: Any, x: Any) -> Any:
    if x.dtype.kind != "u":
        return m.op1("stablehlo.sign", [x], m.avals_out[0])
    zero = m.full(0, x.aval)
    return m.select(m.compare("EQ", x, zero), zero, m.full(1, x.aval))


sign, sign_p = unary(
    "sign", NUMERIC,
    "The sign of each element: -1, 0 or 1; NaN for NaN; `x / |x|` for complex numbers and 0 for 0.",
    jvp="zero",
    scalar=lambda b, x: b.sign(x),
    hlo=_sign_hlo,
    reference=np.sign,
)  # fmt: skip


def _abs_jvp(t: Any, ans: Any, x: Any) -> Any:
    if is_complex(x):
        direction = conj(x)
        return real(mul(t, div(direction, _replace_zero(_convert(ans, dtype_of_complex(x))))))
    return select(ge(x, scalar_like(x, 0)), t, neg(t))


def dtype_of_complex(x: Any) -> Any:
    return complex_dtype(get_aval(x).dtype)


def _replace_zero(x: Any) -> Any:
    return select(eq(x, scalar_like(x, 0)), full_like(x, 1), x)


def _convert(x: Any, dtype: Any) -> Any:
    from .casting import convert_element_type

    return convert_element_type(x, dtype)


abs, abs_p = unary(
    "abs", (np.signedinteger, *INEXACT),
    "Absolute value, elementwise; the modulus (a real array) of complex numbers.",
    jvp=_abs_jvp,
    out_dtype=real_dtype,
    scalar=lambda b, x: b.abs(x),
    hlo="stablehlo.abs",
    reference=np.abs,
)  # fmt: skip
floor, floor_p = unary(
    "floor", FLOAT, "The largest integral number that is not greater, elementwise.",
    jvp="zero",
    scalar=lambda b, x: b.floor(x),
    hlo="stablehlo.floor",
    reference=np.floor,
)  # fmt: skip
ceil, ceil_p = unary(
    "ceil", FLOAT, "The smallest integral number that is not smaller, elementwise.",
    jvp="zero",
    scalar=lambda b, x: b.ceil(x),
    hlo="stablehlo.ceil",
    reference=np.ceil,
)  # fmt: skip
is_finite, is_finite_p = unary(
    "is_finite", FLOAT, "Whether each element is neither infinite nor NaN.",
    jvp="zero",
    out_dtype=lambda dtype: np.dtype(np.bool_),
    scalar=lambda b, x: b.is_finite(x),
    hlo="stablehlo.is_finite",
    reference=np.isfinite,
)  # fmt: skip


def _float_only(name: str) -> Any:
    def rule(x: Any, **_: Any) -> Any:
        check_dtype(name, x, FLOAT)
        return x.dtype

    return rule


round_p = standard_primitive(
    "round",
    lambda x, **_: x.shape,
    _float_only("round"),
    loops=elementwise_loops(
        lambda b, x, rounding_method: b.round_even(x) if rounding_method == 1 else b.round_away(x)
    ),
    hlo=lambda m, x, rounding_method: m.op1(
        "stablehlo.round_nearest_even" if rounding_method == 1 else "stablehlo.round_nearest_afz",
        [x],
        m.avals_out[0],
    ),
)
batching.defvectorized(round_p)
ad.defjvp_zero(round_p)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integral number, elementwise.

    Args:
      x: floating array.
      rounding_method: whether numbers half way go away from zero (the default) or to the even one.

    Returns:
      an array of the same shape and dtype.

    Raises:
      ValueError: for a rounding method that does not exist.
      TypeError: for an array that is not floating.
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


OPERATIONS["round"] = Operation("round", round_p, round, "unary", 1, (FLOAT,), "numpy.round")

# -- exponentials, logarithms, powers --------------------------------------------------------------

exp, exp_p = unary(
    "exp", INEXACT, "The exponential function, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, ans),
    scalar=lambda b, x: b.exp(x),
    hlo="stablehlo.exponential",
    reference=np.exp,
)  # fmt: skip


def _exp2_hlo(m: Any, x: Any) -> Any:
    scaled = m.op1("stablehlo.multiply", [x, m.full(np.log(2.0), x.aval)], x.aval)
    return m.op1("stablehlo.exponential", [scaled], x.aval)


def _exp2_jvp(t: Any, ans: Any, x: Any) -> Any:
    return mul(log(scalar_like(x, 2)), mul(t, ans))


exp2, exp2_p = unary(
    "exp2", INEXACT, "Two to the power of each element.", accuracy=True,
    jvp=_exp2_jvp,
    scalar=lambda b, x: b.exp2(x),
    hlo=_exp2_hlo,
    reference=np.exp2,
)  # fmt: skip
log, log_p = unary(
    "log", INEXACT, "The natural logarithm, elementwise (principal branch for complex numbers).",
    accuracy=True,
    jvp=lambda t, ans, x: div(t, x),
    scalar=lambda b, x: b.log(x),
    hlo="stablehlo.log",
    reference=np.log,
)  # fmt: skip
expm1, expm1_p = unary(
    "expm1", INEXACT, "`exp(x) - 1`, elementwise, exact for small `x`.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, add(ans, scalar_like(ans, 1))),
    scalar=lambda b, x: b.expm1(x),
    hlo="stablehlo.exponential_minus_one",
    reference=np.expm1,
)  # fmt: skip
log1p, log1p_p = unary(
    "log1p", INEXACT, "`log(1 + x)`, elementwise, exact for small `x`.", accuracy=True,
    jvp=lambda t, ans, x: div(t, add(x, scalar_like(x, 1))),
    scalar=lambda b, x: b.log1p(x),
    hlo="stablehlo.log_plus_one",
    reference=np.log1p,
)  # fmt: skip
logistic, logistic_p = unary(
    "logistic", INEXACT, "The logistic function `1 / (1 + exp(-x))`, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, mul(ans, sub(scalar_like(ans, 1), ans))),
    scalar=lambda b, x: b.logistic(x),
    hlo="stablehlo.logistic",
    reference="scipy.special.expit",
)  # fmt: skip
sqrt, sqrt_p = unary(
    "sqrt", INEXACT, "The square root, elementwise (principal branch for complex numbers).",
    accuracy=True,
    jvp=lambda t, ans, x: mul(t, div(scalar_like(x, 0.5), ans)),
    scalar=lambda b, x: b.sqrt(x),
    hlo="stablehlo.sqrt",
    reference=np.sqrt,
)  # fmt: skip
rsqrt, rsqrt_p = unary(
    "rsqrt", INEXACT, "One over the square root, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, mul(scalar_like(x, -0.5), div(ans, x))),
    scalar=lambda b, x: b.rsqrt(x),
    hlo="stablehlo.rsqrt",
    reference=lambda x: 1 / np.sqrt(x),
)  # fmt: skip
cbrt, cbrt_p = unary(
    "cbrt", FLOAT, "The real cube root, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, mul(scalar_like(x, 1 / 3), integer_pow(ans, -2))),
    scalar=lambda b, x: b.cbrt(x),
    hlo="stablehlo.cbrt",
    reference=np.cbrt,
)  # fmt: skip
square, square_p = unary(
    "square", NUMERIC, "The square, elementwise.",
    jvp=lambda t, ans, x: mul(t, mul(scalar_like(x, 2), x)),
    scalar=lambda b, x: b.mul(x, x),
    hlo=lambda m, x: m.op1("stablehlo.multiply", [x, x], m.avals_out[0]),
    reference=np.square,
)  # fmt: skip


def _integer_pow_dtype(x: Any, *, y: int) -> Any:
    check_dtype("integer_pow", x, NUMERIC)
    if y < 0 and accepts_dtype(x.dtype, INTEGER):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got lax.integer_pow({x.str_short()}, {y})"
        )
    return x.dtype


def _integer_pow_hlo(m: Any, x: Any, *, y: int) -> Any:
    aval = x.aval

    def times(p: Any, q: Any) -> Any:
        return m.op1("stablehlo.multiply", [p, q], aval)

    if y == 0:
        return m.full(1, aval)
    power, bits, result = x, builtins.abs(y), None
    while bits:
        if bits & 1:
            result = power if result is None else times(result, power)
        bits >>= 1
        if bits:
            power = times(power, power)
    return result if y > 0 else m.op1("stablehlo.divide", [m.full(1, aval), result], aval)


integer_pow_p = standard_primitive(
    "integer_pow",
    lambda x, *, y: x.shape,
    _integer_pow_dtype,
    loops=elementwise_loops(lambda b, x, *, y: b.ipow(x, y)),
    hlo=_integer_pow_hlo,
)
batching.defvectorized(integer_pow_p)


def _integer_pow_jvp(t: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return full_like(t, 0)
    if y == 1:
        return t
    power = x if y == 2 else integer_pow(x, y - 1)
    return mul(t, mul(scalar_like(x, y), power))


ad.defjvp(integer_pow_p, _integer_pow_jvp)


def integer_pow(x: Any, y: int) -> Any:
    """Each element to the power of one Python integer, by repeated multiplication.

    Args:
      x: integer, floating or complex array.
      y: the exponent; negative only where `x` is not an integer array.

    Returns:
      an array of the same shape and dtype; `0 ** 0` is 1.

    Raises:
      TypeError: for a negative power of integers, or boolean arrays.
    """
    return integer_pow_p.bind(x, y=y)


OPERATIONS["integer_pow"] = Operation(
    "integer_pow", integer_pow_p, integer_pow, "unary", 1, (NUMERIC,), np.power
)


def reciprocal(x: Any) -> Any:
    """`1 / x`, elementwise.

    Args:
      x: floating or complex array.

    Returns:
      an array of the same shape and dtype.
    """
    return integer_pow(x, -1)


# -- trigonometric and hyperbolic functions --------------------------------------------------------

sin, sin_p = unary(
    "sin", INEXACT, "Sine, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, cos(x)),
    scalar=lambda b, x: b.sin(x),
    hlo="stablehlo.sine",
    reference=np.sin,
)  # fmt: skip
cos, cos_p = unary(
    "cos", INEXACT, "Cosine, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: neg(mul(t, sin(x))),
    scalar=lambda b, x: b.cos(x),
    hlo="stablehlo.cosine",
    reference=np.cos,
)  # fmt: skip
tan, tan_p = unary(
    "tan", INEXACT, "Tangent, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, add(scalar_like(x, 1), square(ans))),
    scalar=lambda b, x: b.tan(x),
    hlo="stablehlo.tan",
    reference=np.tan,
)  # fmt: skip
asin, asin_p = unary(
    "asin", INEXACT, "Inverse sine, elementwise.",
    jvp=lambda t, ans, x: mul(t, rsqrt(sub(scalar_like(x, 1), square(x)))),
    scalar=lambda b, x: b.asin(x),
    hlo="chlo.asin",
    reference=np.arcsin,
)  # fmt: skip
acos, acos_p = unary(
    "acos", INEXACT, "Inverse cosine, elementwise.",
    jvp=lambda t, ans, x: mul(t, neg(rsqrt(sub(scalar_like(x, 1), square(x))))),
    scalar=lambda b, x: b.acos(x),
    hlo="chlo.acos",
    reference=np.arccos,
)  # fmt: skip
atan, atan_p = unary(
    "atan", INEXACT, "Inverse tangent, elementwise.",
    jvp=lambda t, ans, x: div(t, add(scalar_like(x, 1), square(x))),
    scalar=lambda b, x: b.atan(x),
    hlo="chlo.atan",
    reference=np.arctan,
)  # fmt: skip
sinh, sinh_p = unary(
    "sinh", INEXACT, "Hyperbolic sine, elementwise.",
    jvp=lambda t, ans, x: mul(t, cosh(x)),
    scalar=lambda b, x: b.sinh(x),
    hlo="chlo.sinh",
    reference=np.sinh,
)  # fmt: skip
cosh, cosh_p = unary(
    "cosh", INEXACT, "Hyperbolic cosine, elementwise.",
    jvp=lambda t, ans, x: mul(t, sinh(x)),
    scalar=lambda b, x: b.cosh(x),
    hlo="chlo.cosh",
    reference=np.cosh,
)  # fmt: skip
tanh, tanh_p = unary(
    "tanh", INEXACT, "Hyperbolic tangent, elementwise.", accuracy=True,
    # (t + t*ans) * (1 - ans) keeps its digits where ans is near 1 and 1 - ans**2 would not.
    jvp=lambda t, ans, x: mul(add(t, mul(t, ans)), sub(scalar_like(x, 1), ans)),
    scalar=lambda b, x: b.tanh(x),
    hlo="stablehlo.tanh",
    reference=np.tanh,
)  # fmt: skip
asinh, asinh_p = unary(
    "asinh", INEXACT, "Inverse hyperbolic sine, elementwise.",
    jvp=lambda t, ans, x: mul(t, rsqrt(add(square(x), scalar_like(x, 1)))),
    scalar=lambda b, x: b.asinh(x),
    hlo="chlo.asinh",
    reference=np.arcsinh,
)  # fmt: skip
acosh, acosh_p = unary(
    "acosh", INEXACT, "Inverse hyperbolic cosine, elementwise.",
    jvp=lambda t, ans, x: mul(t, rsqrt(sub(square(x), scalar_like(x, 1)))),
    scalar=lambda b, x: b.acosh(x),
    hlo="chlo.acosh",
    reference=np.arccosh,
)  # fmt: skip
atanh, atanh_p = unary(
    "atanh", INEXACT, "Inverse hyperbolic tangent, elementwise.",
    jvp=lambda t, ans, x: mul(
        reciprocal(add(scalar_like(x, 1), x)), div(t, sub(scalar_like(x, 1), x))
    ),
    scalar=lambda b, x: b.atanh(x),
    hlo="chlo.atanh",
    reference=np.arctanh,
)  # fmt: skip


def _atan2_scalar(b: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return b.atan2(x, y)
    # -i log((y + i x) / sqrt(x² + y²))
    turned = b.complex(b.neg(b.imag(x)), b.real(x))
    unit = b.div(b.add(y, turned), b.sqrt(b.add(b.mul(x, x), b.mul(y, y))))
    angle = b.log(unit)
    return b.complex(b.imag(angle), b.neg(b.real(angle)))


atan2, atan2_p = binary(
    "atan2", INEXACT, "The angle of the point `(y, x)`, elementwise: `atan(x / y)` in the right quadrant.",
    jvp=(
        lambda t, ans, x, y: mul(t, div(y, add(square(x), square(y)))),
        lambda t, ans, x, y: mul(t, div(neg(x), add(square(x), square(y)))),
    ),
    scalar=_atan2_scalar,
    hlo="stablehlo.atan2",
    numpy_name="arctan2",
    reference=np.arctan2,
)  # fmt: skip

# -- complex numbers -------------------------------------------------------------------------------

_PARTS = (np.dtype(np.float32), np.dtype(np.float64))

real, real_p = unary(
    "real", COMPLEX, "The real part, elementwise.",
    jvp=lambda t, ans, x: real(t),
    out_dtype=real_dtype,
    scalar=lambda b, x: b.real(x),
    hlo="stablehlo.real",
    reference=np.real,
)  # fmt: skip
ad.deflinear2(real_p, lambda ct, x: [complex(ct, scalar_like(ct, 0))])
imag, imag_p = unary(
    "imag", COMPLEX, "The imaginary part, elementwise.",
    jvp=lambda t, ans, x: imag(t),
    out_dtype=real_dtype,
    scalar=lambda b, x: b.imag(x),
    hlo="stablehlo.imag",
    reference=np.imag,
)  # fmt: skip
ad.deflinear2(imag_p, lambda ct, x: [complex(scalar_like(ct, 0), neg(ct))])
complex, complex_p = binary(
    "complex", _PARTS, "The complex numbers with real part `x` and imaginary part `y`, elementwise.",
    jvp=None,
    out_dtype=complex_dtype,
    scalar=lambda b, x, y: b.complex(x, y),
    hlo="stablehlo.complex",
    reference=lambda x, y: x + 1j * y,
)  # fmt: skip


def _complex_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    assert ad.is_undefined_primal(x) or ad.is_undefined_primal(y)
    return [
        unbroadcast(x.aval, real(ct)) if ad.is_undefined_primal(x) else None,
        unbroadcast(y.aval, imag(neg(ct))) if ad.is_undefined_primal(y) else None,
    ]


rules.jvps[complex_p] = lambda primals, tangents: ad.linear_jvp(complex_p, primals, tangents)
rules.transposes[complex_p] = _complex_transpose


def _conj_dtype(x: Any, **_: Any) -> Any:
    check_dtype("conj", x, (*_PARTS, *COMPLEX))
    return complex_dtype(x.dtype)


conj_p = standard_primitive(
    "conj",
    lambda x, **_: x.shape,
    _conj_dtype,
    loops=elementwise_loops(
        lambda b, x, input_dtype: b.conj(x)
        if x.dtype.kind == "c"
        else b.complex(x, b.const(0, x.dtype))
    ),
    hlo=lambda m, x, input_dtype: _conj_hlo(m, x),
)


def _conj_hlo(m: Any, x: Any) -> Any:
    out = m.avals_out[0]
    if x.dtype.kind != "c":
        return m.op1("stablehlo.complex", [x, m.full(0, x.aval)], out)
    part = ShapedArray(x.shape, real_dtype(x.dtype))
    re = m.op1("stablehlo.real", [x], part)
    im = m.op1("stablehlo.negate", [m.op1("stablehlo.imag", [x], part)], part)
    return m.op1("stablehlo.complex", [re, im], out)


def _conj_transpose(ct: Any, x: Any, *, input_dtype: Any) -> list[Any]:
    return [conj(ct) if np.dtype(input_dtype).kind == "c" else real(ct)]


batching.defvectorized(conj_p)
ad.deflinear2(conj_p, _conj_transpose)


def conj(x: Any) -> Any:
    """The complex conjugate, elementwise; real arrays become complex.

    Args:
      x: complex, float32 or float64 array.

    Returns:
      a complex array of the same shape.
    """
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


OPERATIONS["conj"] = Operation("conj", conj_p, conj, "unary", 1, ((*_PARTS, *COMPLEX),), np.conj)

# -- arithmetic ------------------------------------------------------------------------------------


def _spread(t: Any, ans: Any) -> Any:
    """A tangent of an operand as one of the result, whose shape may be larger."""
    from .shaping import broadcast_in_dim

    shape = shape_of(ans)
    if shape_of(t) == shape:
        return t
    return broadcast_in_dim(t, shape, range(len(shape)) if shape_of(t) else ())


def _add_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    tx, ty = tangents
    ans = add(x, y)
    if type(tx) is ad.Zero and type(ty) is ad.Zero:
        return ans, ad.Zero(get_aval(ans).to_tangent_aval())
    if type(tx) is ad.Zero:
        return ans, _spread(ty, ans)
    if type(ty) is ad.Zero:
        return ans, _spread(tx, ans)
    return ans, add(tx, ty)


def _add_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    # Either operand, or both, may be linear.
    return [
        unbroadcast(x.aval, ct) if ad.is_undefined_primal(x) else None,
        unbroadcast(y.aval, ct) if ad.is_undefined_primal(y) else None,
    ]


def _sub_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    tx, ty = tangents
    ans = sub(x, y)
    if type(tx) is ad.Zero and type(ty) is ad.Zero:
        return ans, ad.Zero(get_aval(ans).to_tangent_aval())
    if type(tx) is ad.Zero:
        return ans, _spread(neg(ty), ans)
    if type(ty) is ad.Zero:
        return ans, _spread(tx, ans)
    return ans, sub(tx, ty)


def neg_cotangent(ct: Any) -> Any:
    return ct if type(ct) is ad.Zero else neg(ct)


def _sub_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [
        unbroadcast(x.aval, ct) if ad.is_undefined_primal(x) else None,
        unbroadcast(y.aval, neg_cotangent(ct)) if ad.is_undefined_primal(y) else None,
    ]


add, add_p = binary(
    "add", NUMERIC, "Addition, elementwise.",
    scalar=lambda b, x, y: b.add(x, y),
    hlo="stablehlo.add",
    reference=np.add,
)  # fmt: skip
rules.jvps[add_p] = _add_jvp
rules.transposes[add_p] = _add_transpose
sub, sub_p = binary(
    "sub", NUMERIC, "Subtraction, elementwise.",
    scalar=lambda b, x, y: b.sub(x, y),
    hlo="stablehlo.subtract",
    numpy_name="subtract",
    reference=np.subtract,
)  # fmt: skip
rules.jvps[sub_p] = _sub_jvp
rules.transposes[sub_p] = _sub_transpose


def _mul_dtype(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    check_dtype("mul", x, NUMERIC, 0)
    check_dtype("mul", y, NUMERIC, 1)
    check_same_dtypes("mul", (x, y), "multiply")
    return x.dtype if out_dtype is None else np.dtype(out_dtype)


def _mul_scalar(b: Any, x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    if out_dtype is not None:
        wide = np.promote_types(x.dtype, np.dtype(out_dtype))
        return b.cast(b.mul(b.cast(x, wide), b.cast(y, wide)), np.dtype(out_dtype))
    return b.mul(x, y)


def _mul_hlo(m: Any, x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    out = m.avals_out[0]
    if x.dtype == out.dtype:
        return m.op1("stablehlo.multiply", [x, y], out)
    wide = np.promote_types(x.dtype, out.dtype)
    product = m.op1(
        "stablehlo.multiply", [m.convert(x, wide), m.convert(y, wide)], ShapedArray(out.shape, wide)
    )
    return m.convert(product, out.dtype)


mul_p = standard_primitive(
    "mul",
    lambda x, y, **_: broadcast_shape("mul", [x.shape, y.shape]),
    _mul_dtype,
    loops=elementwise_loops(_mul_scalar),
    hlo=elementwise_hlo(_mul_hlo),
)
batching.defbroadcasting(mul_p)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """Multiplication, elementwise.

    Args:
      x, y: arrays of one integer, floating or complex dtype. Each is a scalar, or both have the same
        number of dimensions, equal or one.
      out_dtype: dtype of the result, when it is not that of the operands.

    Returns:
      an array of the shape of the operands broadcast together.

    Raises:
      TypeError: for boolean arrays, dtypes that differ, or shapes that do not fit.
    """
    return mul_p.bind(x, y, out_dtype=out_dtype)


OPERATIONS["mul"] = Operation("mul", mul_p, mul, "nary", 2, (NUMERIC, NUMERIC), np.multiply)


def _mul_transpose(ct: Any, x: Any, y: Any, *, out_dtype: Any = None) -> list[Any]:
    linear_x = ad.is_undefined_primal(x)
    operand, other = (x, y) if linear_x else (y, x)
    if type(ct) is ad.Zero:
        grad: Any = ad.Zero(operand.aval)
    else:
        dtype = None if out_dtype is None else operand.aval.dtype
        if dtype is not None:
            # The other factor has to meet the cotangent in the cotangent's own dtype.
            other = _convert(other, get_aval(ct).dtype)
        product = mul(ct, other, out_dtype=dtype) if linear_x else mul(other, ct, out_dtype=dtype)
        grad = unbroadcast(operand.aval, product)
    return [grad, None] if linear_x else [None, grad]


ad.defjvp(
    mul_p,
    lambda t, x, y, out_dtype=None: mul(t, y, out_dtype=out_dtype),
    lambda t, x, y, out_dtype=None: mul(x, t, out_dtype=out_dtype),
)
rules.transposes[mul_p] = _mul_transpose


def _div_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    assert ad.is_undefined_primal(x) and not ad.is_undefined_primal(y)
    return [ad.Zero(x.aval) if type(ct) is ad.Zero else unbroadcast(x.aval, div(ct, y)), None]


div, div_p = binary(
    "div", NUMERIC,
    "Division, elementwise. Integers are divided toward zero; an integer divided by zero gives -1.",
    jvp=(
        lambda t, ans, x, y: div(t, y),
        lambda t, ans, x, y: mul(mul(neg(t), x), integer_pow(y, -2)),
    ),
    scalar=lambda b, x, y: b.div(x, y),
    hlo="stablehlo.divide",
    numpy_name="divide",
    reference=np.true_divide,
)  # fmt: skip
rules.transposes[div_p] = _div_transpose


def _rem_jvp_y(t: Any, ans: Any, x: Any, y: Any) -> Any:
    return mul(neg(t), mul(sign(div(x, y)), floor(abs(div(x, y)))))


rem, rem_p = binary(
    "rem", REAL,
    "The remainder of the division toward zero, elementwise, with the sign of `x`; an integer's "
    "remainder by zero\nis the integer itself.",
    jvp=(lambda t, ans, x, y: _spread(t, ans), _rem_jvp_y),
    scalar=lambda b, x, y: b.rem(x, y),
    hlo="stablehlo.remainder",
    numpy_name="remainder",
    reference=np.fmod,
)  # fmt: skip


def extremum_scalar(direction: str) -> Any:
    """The code of one element of `max` or `min`."""

    def scalar(b: Any, x: Any, y: Any) -> Any:
        if x.dtype.kind != "c":
            if x.dtype == np.bool_:
                return b.or_(x, y) if direction == "max" else b.and_(x, y)
            return b.max(x, y) if direction == "max" else b.min(x, y)
        before = b.gt if direction == "max" else b.lt
        same = b.eq(b.real(x), b.real(y))
        first = b.select(same, before(b.imag(x), b.imag(y)), before(b.real(x), b.real(y)))
        return b.select(first, x, y)

    return scalar


def extremum_hlo(op: str, direction: str) -> Any:
    """The StableHLO rule of `max` or `min`."""

    def rule(m: Any, x: Any, y: Any) -> Any:
        out = m.avals_out[0]
        if x.dtype.kind != "c":
            return m.op1(op, [x, y], out)
        part = ShapedArray(x.shape, real_dtype(x.dtype))
        (rx, ry), (ix, iy) = (
            [m.op1(f"stablehlo.{name}", [v], part) for v in (x, y)] for name in ("real", "imag")
        )
        first = m.select(
            m.compare("EQ", rx, ry), m.compare(direction, ix, iy), m.compare(direction, rx, ry)
        )
        return m.select(first, x, y)

    return rule


def _share_of(winner: Any, other: Any, ans: Any) -> Any:
    """Which part of a tangent `max` and `min` pass on: all, none, or half where operands tie."""
    wins = select(eq(winner, ans), full_like(ans, 1), full_like(ans, 0))
    ties = select(eq(other, ans), full_like(ans, 2), full_like(ans, 1))
    return div(wins, ties)


_extremum_jvp = (
    lambda t, ans, x, y: mul(t, _share_of(x, y, ans)),
    lambda t, ans, x, y: mul(t, _share_of(y, x, ans)),
)
max, max_p = binary(
    "max", ANY,
    "The greater of two elements; NaN where either is. Complex numbers are ordered by real, then "
    "imaginary part.",
    jvp=_extremum_jvp,
    scalar=extremum_scalar("max"),
    hlo=extremum_hlo("stablehlo.maximum", "GT"),
    numpy_name="maximum",
    reference=np.maximum,
)  # fmt: skip
min, min_p = binary(
    "min", ANY,
    "The smaller of two elements; NaN where either is. Complex numbers are ordered by real, then "
    "imaginary part.",
    jvp=_extremum_jvp,
    scalar=extremum_scalar("min"),
    hlo=extremum_hlo("stablehlo.minimum", "LT"),
    numpy_name="minimum",
    reference=np.minimum,
)  # fmt: skip
nextafter, nextafter_p = binary(
    "nextafter", FLOAT, "The number next to `x` in the direction of `y`, elementwise.",
    scalar=lambda b, x, y: b.nextafter(x, y),
    hlo="chlo.next_after",
    reference=np.nextafter,
)  # fmt: skip


# -- powers ----------------------------------------------------------------------------------------


def _pow_dtype(x: Any, y: Any) -> Any:
    check_dtype("pow", x, INEXACT, 0)
    check_dtype("pow", y, NUMERIC, 1)
    if not accepts_dtype(y.dtype, INTEGER):
        check_same_dtypes("pow", (x, y), "power")
    return x.dtype


def _pow_hlo(m: Any, x: Any, y: Any) -> Any:
    return m.op1("stablehlo.power", [x, m.convert(y, x.dtype)], m.avals_out[0])


pow_p = standard_primitive(
    "pow",
    lambda x, y: broadcast_shape("pow", [x.shape, y.shape]),
    _pow_dtype,
    loops=elementwise_loops(lambda b, x, y: b.pow(x, y if y.dtype == x.dtype else b.cast(y, x.dtype))),
    hlo=elementwise_hlo(_pow_hlo),
)
batching.defbroadcasting(pow_p)


def _pow_jvp_x(t: Any, ans: Any, x: Any, y: Any) -> Any:
    if accepts_dtype(get_aval(y).dtype, INTEGER):
        shape = shape_of(ans)
        y = _convert(y, get_aval(x).dtype)
        y = _spread(y, ans) if shape else y
        # x ** -1 is infinite at 0, where the derivative of x ** 0 has to be 0.
        safe = sub(select(eq(y, scalar_like(y, 0)), full_like(y, 1), y), full_like(y, 1))
        slope = mul(select(eq(y, scalar_like(y, 0)), full_like(y, 1), y), pow(x, safe))
        return mul(t, select(eq(y, scalar_like(y, 0)), full_like(slope, 0), slope))
    y = _convert(y, get_aval(x).dtype)
    return mul(t, mul(y, pow(x, sub(y, full_like(y, 1)))))


def _pow_jvp_y(t: Any, ans: Any, x: Any, y: Any) -> Any:
    # log(0) would spoil the tangent at x = 0, where the power is 0 around y > 0.
    base = select(eq(x, scalar_like(x, 0)), full_like(x, 1), x)
    return mul(t, mul(log(base), ans))


def _pow_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    tx, ty = tangents
    ans = pow(x, y)
    out: Any = ad.Zero(get_aval(ans).to_tangent_aval())
    if type(tx) is not ad.Zero:
        out = ad.add_tangents(out, _pow_jvp_x(tx, ans, x, y))
    if type(ty) is not ad.Zero and get_aval(ty).dtype != dtypes.float0:
        out = ad.add_tangents(out, _pow_jvp_y(ty, ans, x, y))
    return ans, out


rules.jvps[pow_p] = _pow_jvp


def pow(x: Any, y: Any) -> Any:
    """`x` to the power of `y`, elementwise.

    Args:
      x: floating or complex array.
      y: array of the dtype of `x`, or integer array. Each is a scalar, or both have the same number of
        dimensions, equal or one.

    Returns:
      an array of the dtype of `x` and the shape of the operands broadcast together.

    Raises:
      TypeError: for other dtypes or shapes that do not fit.
    """
    return pow_p.bind(x, y)


OPERATIONS["pow"] = Operation("pow", pow_p, pow, "nary", 2, (INEXACT, INEXACT), np.power)

# -- bits ------------------------------------------------------------------------------------------

bitwise_and, and_p = binary(
    "bitwise_and", BITS, "The bits set in both operands; logical conjunction of booleans.", prim_name="and",
    jvp="zero",
    scalar=lambda b, x, y: b.and_(x, y),
    hlo="stablehlo.and",
    reference=np.bitwise_and,
)  # fmt: skip
bitwise_or, or_p = binary(
    "bitwise_or", BITS, "The bits set in either operand; logical disjunction of booleans.", prim_name="or",
    jvp="zero",
    scalar=lambda b, x, y: b.or_(x, y),
    hlo="stablehlo.or",
    reference=np.bitwise_or,
)  # fmt: skip
bitwise_xor, xor_p = binary(
    "bitwise_xor", BITS, "The bits set in exactly one operand.", prim_name="xor",
    jvp="zero",
    scalar=lambda b, x, y: b.xor(x, y),
    hlo="stablehlo.xor",
    reference=np.bitwise_xor,
)  # fmt: skip
bitwise_not, not_p = unary(
    "bitwise_not", BITS, "All bits inverted; logical negation of booleans.", prim_name="not",
    jvp="zero",
    scalar=lambda b, x: b.not_(x),
    hlo="stablehlo.not",
    reference=np.invert,
)  # fmt: skip
population_count, population_count_p = unary(
    "population_count", INTEGER, "The number of set bits of each element.",
    jvp="zero",
    scalar=lambda b, x: b.popcount(x),
    hlo="stablehlo.popcnt",
    reference=lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")),
)  # fmt: skip
clz, clz_p = unary(
    "clz", INTEGER, "The number of leading zero bits of each element.",
    jvp="zero",
    scalar=lambda b, x: b.clz(x),
    hlo="stablehlo.count_leading_zeros",
)  # fmt: skip
shift_left, shift_left_p = binary(
    "shift_left", INTEGER, "`x` shifted left by `y` bits; 0 for shifts by the width or more.",
    jvp="zero",
    scalar=lambda b, x, y: b.shl(x, y),
    hlo="stablehlo.shift_left",
    numpy_name="left_shift",
    reference=np.left_shift,
)  # fmt: skip
shift_right_logical, shift_right_logical_p = binary(
    "shift_right_logical", INTEGER,
    "`x` shifted right by `y` bits, filled with zeros; 0 for shifts by the width or more.",
    jvp="zero",
    scalar=lambda b, x, y: b.shr_logical(x, y),
    hlo="stablehlo.shift_right_logical",
    numpy_name="right_shift",
)  # fmt: skip
shift_right_arithmetic, shift_right_arithmetic_p = binary(
    "shift_right_arithmetic", INTEGER,
    "`x` shifted right by `y` bits, filled with its sign; the sign alone for shifts by the width or more.",
    jvp="zero",
    scalar=lambda b, x, y: b.shr_arith(x, y),
    hlo="stablehlo.shift_right_arithmetic",
    numpy_name="right_shift",
)  # fmt: skip


def _mulhi_halves(x: Lane, y: Lane, signed: bool) -> Lane:
    """The upper half of a 64-bit product, from products of 32-bit halves."""
    mask = x.like(0xFFFFFFFF)
    x_low, y_low = x & mask, y & mask
    x_high, y_high = x.shr_logical(32), y.shr_logical(32)
    crossed = x_high * y_low + (x_low * y_low).shr_logical(32)
    middle = (crossed & mask) + x_low * y_high
    high = x_high * y_high + crossed.shr_logical(32) + middle.shr_logical(32)
    if signed:
        # Two's complement: a negative factor counted 2**64 too much.
        high = high - (x < 0).where(y, 0) - (y < 0).where(x, 0)
    return high


def _mulhi_scalar(b: Any, x: Any, y: Any) -> Any:
    bits, signed = dtypes.itemsize_bits(x.dtype), dtypes.issubdtype(x.dtype, np.signedinteger)
    if bits < 64:
        wide = np.dtype(np.int64 if signed else np.uint64)
        product = b.mul(b.cast(x, wide), b.cast(y, wide))
        return b.cast(b.shr_arith(product, b.const(bits, wide)), x.dtype)
    ops, unsigned = ScalarOps(b, None), np.dtype(np.uint64)
    high = _mulhi_halves(Lane(ops, b.bitcast(x, unsigned)), Lane(ops, b.bitcast(y, unsigned)), False).value
    high = b.bitcast(high, x.dtype)
    if signed:
        zero = b.const(0, x.dtype)
        high = b.sub(high, b.select(b.lt(x, zero), y, zero))
        high = b.sub(high, b.select(b.lt(y, zero), x, zero))
    return high


def _mulhi_hlo(m: Any, x: Any, y: Any) -> Any:
    bits, signed = dtypes.itemsize_bits(x.dtype), dtypes.issubdtype(x.dtype, np.signedinteger)
    if bits == 64:
        lanes = lambda v, w: _mulhi_halves(Lane(ArrayOps(), v), Lane(ArrayOps(), w), signed).value  # noqa: E731
        return m.call_traced(lanes, x, y)[0]
    wide = np.dtype(np.int64 if signed else np.uint64)
    aval = ShapedArray(x.shape, wide)
    product = m.op1("stablehlo.multiply", [m.convert(x, wide), m.convert(y, wide)], aval)
    shift = "stablehlo.shift_right_arithmetic" if signed else "stablehlo.shift_right_logical"
    return m.convert(m.op1(shift, [product, m.full(bits, aval)], aval), x.dtype)


mulhi, mulhi_p = binary(
    "mulhi", INTEGER, "The upper half of the product of integers, which has twice their bits.",
    jvp="zero",
    scalar=_mulhi_scalar,
    hlo=_mulhi_hlo,
)  # fmt: skip
