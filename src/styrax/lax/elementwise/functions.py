"""Elementwise functions of one array: signs, rounding, exponentials, trigonometry, parts of complex numbers.

Each is a row: its dtypes, its derivative, the code of one element and its StableHLO operation. Sums and
products are in `arithmetic`, special functions in `special`, conversions in `casting`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import factors, rules
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

from ..casting import _convert_element_type
from ..shaping.filling import full_like
from ..shaping.reshaping import unbroadcast
from .arithmetic import add, div, integer_pow, mul, neg, reciprocal, square, sub
from .comparisons import eq, ge, select
from .families import (
    COMPLEX,
    FLOAT,
    INEXACT,
    NUMERIC,
    OPERATIONS,
    Operation,
    binary,
    check_dtype,
    complex_dtype,
    is_complex,
    real_dtype,
    scalar_like,
    standard_primitive,
    unary,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


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
        return real(mul(t, div(direction, _replace_zero(_convert_element_type(ans, dtype_of_complex(x))))))
    return select(ge(x, scalar_like(x, 0)), t, neg(t))


def dtype_of_complex(x: Any) -> Any:
    return complex_dtype(get_aval(x).dtype)


def _replace_zero(x: Any) -> Any:
    return select(eq(x, scalar_like(x, 0)), full_like(x, 1), x)


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
    scalar=lambda b, x, rounding_method: b.round_even(x) if rounding_method == 1 else b.round_away(x),
    hlo=lambda m, x, rounding_method: m.op1(
        "stablehlo.round_nearest_even" if rounding_method == 1 else "stablehlo.round_nearest_afz",
        [x],
        m.avals_out[0],
    ),
)
batching.defvectorized(round_p)
ad.defjvp_zero(round_p)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
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
def _log2_hlo(m: Any, x: Any) -> Any:
    return m.op1("stablehlo.divide", [m.op1("stablehlo.log", [x], x.aval), m.full(np.log(2.0), x.aval)], x.aval)


def _log2_scalar(b: Builder, x: Any) -> Any:
    return b.div(b.log(x), b.const(np.log(2.0), x.dtype)) if x.dtype.kind == "c" else b.log2(x)


log2, log2_p = unary(
    "log2", INEXACT, "The logarithm to base 2, elementwise (principal branch for complex numbers); of powers of two "
    "exact.",
    accuracy=True,
    jvp=lambda t, ans, x: div(t, mul(log(scalar_like(x, 2)), x)),
    scalar=_log2_scalar,
    hlo=_log2_hlo,
    reference=np.log2,
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
# -- trigonometric and hyperbolic functions --------------------------------------------------------

sin, sin_p = unary(
    "sin", INEXACT, "Sine, elementwise.", accuracy=True,
    jvp=lambda t, ans, x: mul(t, cos(x)),  # type: ignore[has-type]
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
    jvp=lambda t, ans, x: mul(t, cosh(x)),  # type: ignore[has-type]
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


def _atan2_scalar(b: Builder, x: Any, y: Any) -> Any:
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
    jvp=lambda t, ans, x: real(t),  # type: ignore[has-type]
    out_dtype=real_dtype,
    scalar=lambda b, x: b.real(x),
    hlo="stablehlo.real",
    reference=np.real,
)  # fmt: skip
ad.deflinear2(real_p, lambda ct, x: [complex(ct, np.zeros((), get_aval(ct).dtype))])  # type: ignore[has-type]
imag, imag_p = unary(
    "imag", COMPLEX, "The imaginary part, elementwise.",
    jvp=lambda t, ans, x: imag(t),  # type: ignore[has-type]
    out_dtype=real_dtype,
    scalar=lambda b, x: b.imag(x),
    hlo="stablehlo.imag",
    reference=np.imag,
)  # fmt: skip
ad.deflinear2(imag_p, lambda ct, x: [complex(np.zeros((), get_aval(ct).dtype), neg(ct))])  # type: ignore[has-type]
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
    scalar=lambda b, x, input_dtype: b.conj(x)
        if x.dtype.kind == "c"
        else b.complex(x, b.const(0, x.dtype)),
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


def conj(x: ArrayLike) -> Array:
    """The complex conjugate, elementwise; real arrays become complex.

    Args:
      x: complex, float32 or float64 array.

    Returns:
      a complex array of the same shape.
    """
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


OPERATIONS["conj"] = Operation("conj", conj_p, conj, "unary", 1, ((*_PARTS, *COMPLEX),), np.conj)

for _p in (
    exp_p, log_p, expm1_p, log1p_p, log2_p, logistic_p, sqrt_p, rsqrt_p, cbrt_p, sin_p, cos_p, tan_p, asin_p,
    acos_p, atan_p, sinh_p, cosh_p, tanh_p, asinh_p, acosh_p, atanh_p, atan2_p,
):
    _p.declare(nan=True)
for _p in (asin_p, acos_p, sinh_p, cosh_p, asinh_p, acosh_p, atanh_p):
    _p.declare(factors=factors.composed)
