"""Sums, products, quotients, extrema and powers, elementwise."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.shardings import NamedSharding, PartitionSpec
from styrax.core.hooks import lax
from styrax.core.programs import factors, rules
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.transforms import ad, batching

from ..casting import _convert_element_type
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import full_like
from ..shaping.reshaping import unbroadcast
from .algorithms import ArrayOps, Number, ScalarOps
from .comparisons import eq, select
from .families import (
    ANY,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMERIC,
    OPERATIONS,
    REAL,
    Operation,
    accepts_dtype,
    binary,
    broadcast_shape,
    check_dtype,
    check_same_dtypes,
    elementwise_hlo,
    reader,
    real_dtype,
    scalar_like,
    shape_of,
    standard_primitive,
    unary,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

neg, neg_p = unary(
    "neg", NUMERIC, "Negation, elementwise. Unsigned integers wrap around.",
    jvp=lambda t, ans, x: neg(t),  # type: ignore[has-type]
    scalar=lambda b, x: b.neg(x),
    hlo="stablehlo.negate",
    reference=np.negative,
)  # fmt: skip
ad.deflinear2(neg_p, lambda ct, x: [neg(ct)])




def _spread(t: Any, ans: Any) -> Any:
    """A tangent of an operand as one of the result, whose shape may be larger."""
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
add_p.declare(addition=True)
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


def _mul_dtype(x: Any, y: Any, *, out_dtype: Any = None, **_: Any) -> Any:
    check_dtype("mul", x, NUMERIC, 0)
    check_dtype("mul", y, NUMERIC, 1)
    check_same_dtypes("mul", (x, y), "multiply")
    return x.dtype if out_dtype is None else np.dtype(out_dtype)


def _mul_scalar(b: Builder, x: Any, y: Any, *, out_dtype: Any = None) -> Any:
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
    scalar=_mul_scalar,
    hlo=elementwise_hlo(_mul_hlo),
)
_products = rules.loops[mul_p]


def _mul_loops(b: Builder, x: Any, y: Any, *, out_dtype: Any = None, **_: object) -> Any:
    """Of ones and zeros made of a condition: as XLA has it outside of "strict" numerics, 0 where it does not hold, not
    the NaN of 0 times infinity."""
    out = b.avals_out[0]
    for factor, ones in ((x, y), (y, x)):
        condition = getattr(ones, "condition", None)
        if condition is not None and out_dtype is None and tuple(ones.shape) == tuple(out.shape):
            return _chosen(b, condition, factor, out)
    return _products(b, x, y, out_dtype=out_dtype)


def _chosen(b: Builder, condition: Any, factor: Any, out: Any) -> Any:
    read, zero = reader(b, factor, out.shape), b.const(0, out.dtype)
    return b.value(out.shape, out.dtype, lambda i: b.select(condition.at(i), read(i), zero))


rules.loops[mul_p] = _mul_loops
mul_p.declare(unprinted=frozenset(("out_dtype",)), bilinear=True)
batching.defbroadcasting(mul_p)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
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
            other = _convert_element_type(other, get_aval(ct).dtype)
        sums = get_aval(ct).given_sharding
        if sums is not None and sums.spec.unreduced and not shape_of(other):  # a number is the same everywhere
            from ..collectives.placing import reshard_p

            other = reshard_p.bind(other, dst_sharding=NamedSharding(
                sums.mesh, PartitionSpec(reduced=sums.spec.unreduced)))
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
        lambda t, ans, x, y: div(t, y),  # type: ignore[has-type]
        lambda t, ans, x, y: mul(mul(neg(t), x), integer_pow(y, -2)),
    ),
    scalar=lambda b, x, y: b.div(x, y),
    hlo="stablehlo.divide",
    numpy_name="divide",
    reference=np.true_divide,
)  # fmt: skip
div_p.declare(divides=True)
rules.transposes[div_p] = _div_transpose


def _rem_jvp_y(t: Any, ans: Any, x: Any, y: Any) -> Any:
    return mul(neg(t), mul(lax.sign(div(x, y)), lax.floor(lax.abs(div(x, y)))))


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

    def scalar(b: Builder, x: Any, y: Any) -> Any:
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
    "nextafter", FLOAT, "The number next to `x1` in the direction of `x2`, elementwise.",
    arguments=("x1", "x2"),
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
    scalar=lambda b, x, y: b.pow(x, y if y.dtype == x.dtype else b.cast(y, x.dtype)),
    hlo=elementwise_hlo(_pow_hlo),
)
batching.defbroadcasting(pow_p)


def _pow_jvp_x(t: Any, ans: Any, x: Any, y: Any) -> Any:
    if accepts_dtype(get_aval(y).dtype, INTEGER):
        shape = shape_of(ans)
        y = _convert_element_type(y, get_aval(x).dtype)
        y = _spread(y, ans) if shape else y
        # x ** -1 is infinite at 0, where the derivative of x ** 0 has to be 0.
        safe = sub(select(eq(y, scalar_like(y, 0)), full_like(y, 1), y), full_like(y, 1))
        slope = mul(select(eq(y, scalar_like(y, 0)), full_like(y, 1), y), pow(x, safe))
        return mul(t, select(eq(y, scalar_like(y, 0)), full_like(slope, 0), slope))
    x, y = (_convert_element_type(v, get_aval(x).dtype) for v in (x, y))
    return mul(t, mul(y, pow(x, sub(y, full_like(y, 1)))))


def _pow_jvp_y(t: Any, ans: Any, x: Any, y: Any) -> Any:
    # log(0) would spoil the tangent at x = 0, where the power is 0 around y > 0.
    base = select(eq(x, scalar_like(x, 0)), full_like(x, 1), x)
    return mul(t, mul(lax.log(base), ans))


def _pow_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    tx, ty = tangents
    ans = pow(x, y)
    out: Any = ad.Zero(get_aval(ans).to_tangent_aval())
    if type(tx) is not ad.Zero:
        out = ad.add_tangents(out, _pow_jvp_x(tx, ans, x, y))
    if type(ty) is not ad.Zero and get_aval(ty).dtype != dtypes.float0:
        part = _pow_jvp_y(ty, ans, x, y)
        out = part if type(out) is ad.Zero else ad.add_tangents(out, _convert_element_type(part, get_aval(x).dtype))
    return ans, out


rules.jvps[pow_p] = _pow_jvp


def pow(x: ArrayLike, y: ArrayLike) -> Array:
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
            f"Integers cannot be raised to negative powers, got integer_pow({'~' * x.weak_type}"
            f"{x.str_short()}, {y})"
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
    scalar=lambda b, x, *, y: b.ipow(x, y),
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


def integer_pow(x: ArrayLike, y: int) -> Array:
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


def reciprocal(x: ArrayLike) -> Array:
    """`1 / x`, elementwise.

    Args:
      x: floating or complex array.

    Returns:
      an array of the same shape and dtype.
    """
    return integer_pow(x, -1)


def _mulhi_halves(x: Number, y: Number, signed: bool) -> Number:
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


def _mulhi_scalar(b: Builder, x: Any, y: Any) -> Any:
    bits, signed = dtypes.itemsize_bits(x.dtype), dtypes.issubdtype(x.dtype, np.signedinteger)
    if bits < 64:
        wide = np.dtype(np.int64 if signed else np.uint64)
        product = b.mul(b.cast(x, wide), b.cast(y, wide))
        return b.cast(b.shr_arith(product, b.const(bits, wide)), x.dtype)
    ops, unsigned = ScalarOps(b, None), np.dtype(np.uint64)
    high = _mulhi_halves(Number(ops, b.bitcast(x, unsigned)), Number(ops, b.bitcast(y, unsigned)), False).value
    high = b.bitcast(high, x.dtype)
    if signed:
        zero = b.const(0, x.dtype)
        high = b.sub(high, b.select(b.lt(x, zero), y, zero))
        high = b.sub(high, b.select(b.lt(y, zero), x, zero))
    return high


def _mulhi_hlo(m: Any, x: Any, y: Any) -> Any:
    bits, signed = dtypes.itemsize_bits(x.dtype), dtypes.issubdtype(x.dtype, np.signedinteger)
    if bits == 64:
        numbers = lambda v, w: _mulhi_halves(Number(ArrayOps(), v), Number(ArrayOps(), w), signed).value
        return m.call_traced(numbers, x, y)[0]
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

for _p in (add_p, sub_p, mul_p, div_p, rem_p, pow_p, integer_pow_p):
    _p.declare(nan=True)
for _p in (square_p, nextafter_p):
    _p.declare(factors=factors.composed)
integer_pow_p.declare(factors=lambda xs, outs, *, y: (factors.elementwise if abs(y) < 2 else factors.composed)(
    xs, outs))
