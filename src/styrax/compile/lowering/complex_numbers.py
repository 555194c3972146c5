"""Complex arithmetic as arithmetic on pairs of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..ir.expr import Expr
    from .scalars import Scalars


def parts(b: Scalars, x: Expr) -> tuple[Expr, Expr]:
    return b.real(x), b.imag(x)


def add(b: Scalars, x: Expr, y: Expr) -> Expr:
    (xr, xi), (yr, yi) = parts(b, x), parts(b, y)
    return b.complex(b.add(xr, yr), b.add(xi, yi))


def sub(b: Scalars, x: Expr, y: Expr) -> Expr:
    (xr, xi), (yr, yi) = parts(b, x), parts(b, y)
    return b.complex(b.sub(xr, yr), b.sub(xi, yi))


def mul(b: Scalars, x: Expr, y: Expr) -> Expr:
    (xr, xi), (yr, yi) = parts(b, x), parts(b, y)
    return b.complex(b.sub(b.mul(xr, yr), b.mul(xi, yi)), b.add(b.mul(xr, yi), b.mul(xi, yr)))


def div(b: Scalars, x: Expr, y: Expr) -> Expr:
    """Smith's division, which does not overflow early; division by zero and infinity as C99's Annex G."""
    (xr, xi), (yr, yi) = parts(b, x), parts(b, y)
    wide = b.ge(b.abs(yr), b.abs(yi))
    big, small = b.select(wide, yr, yi), b.select(wide, yi, yr)
    ratio = b.div(small, big)
    denominator = b.add(big, b.mul(small, ratio))
    re = b.div(b.select(wide, b.add(xr, b.mul(xi, ratio)), b.add(b.mul(xr, ratio), xi)), denominator)
    im = b.div(b.select(wide, b.sub(xi, b.mul(xr, ratio)), b.sub(b.mul(xi, ratio), xr)), denominator)
    zero = b.const(0, yr.dtype)
    inf = b.const(np.inf, yr.dtype)
    by_zero = b.and_(b.eq(yr, zero), b.eq(yi, zero))
    signed_inf = b.copysign(inf, yr)
    re = b.select(by_zero, b.mul(signed_inf, xr), re)
    im = b.select(by_zero, b.mul(signed_inf, xi), im)
    by_inf = b.or_(b.eq(b.abs(yr), inf), b.eq(b.abs(yi), inf))
    finite = b.and_(b.lt(b.abs(xr), inf), b.lt(b.abs(xi), inf))
    vanish = b.and_(by_inf, finite)
    one = b.const(1, yr.dtype)
    cr = b.copysign(b.select(b.eq(b.abs(yr), inf), one, zero), yr)
    ci = b.copysign(b.select(b.eq(b.abs(yi), inf), one, zero), yi)
    re = b.select(vanish, b.mul(zero, b.add(b.mul(xr, cr), b.mul(xi, ci))), re)
    im = b.select(vanish, b.mul(zero, b.sub(b.mul(xi, cr), b.mul(xr, ci))), im)
    return b.complex(re, im)


def modulus(b: Scalars, x: Expr) -> Expr:
    """|x| without overflow or underflow on the way: squares of its parts divided by the power of two of the greater."""
    re, im = b.abs(b.real(x)), b.abs(b.imag(x))
    bits = np.int64 if re.dtype == np.float64 else np.int32
    greater = b.max(b.bitcast(re, bits), b.bitcast(im, bits))  # (in the order of the numbers)
    power, inverse = b.binade(b.bitcast(greater, re.dtype))
    r, i = b.mul(re, inverse), b.mul(im, inverse)
    size = b.mul(b.sqrt(b.add(b.mul(r, r), b.mul(i, i))), power)
    inf = b.const(np.inf, re.dtype)
    return b.select(b.or_(b.eq(re, inf), b.eq(im, inf)), inf, size)


def phase(b: Scalars, x: Expr) -> Expr:
    return b.atan2(b.imag(x), b.real(x))


def sign(b: Scalars, x: Expr) -> Expr:
    size = modulus(b, x)
    zero = b.const(0, size.dtype)
    still = b.eq(size, zero)
    return b.complex(b.select(still, zero, b.div(b.real(x), size)), b.select(still, zero, b.div(b.imag(x), size)))


def exp(b: Scalars, x: Expr) -> Expr:
    re, im = parts(b, x)
    size = b.exp(re)
    zero = b.const(0, re.dtype)
    flat = b.eq(im, zero)  # keeps exp(inf + 0j) free of NaN
    return b.complex(b.mul(size, b.cos(im)), b.select(flat, im, b.mul(size, b.sin(im))))


def log(b: Scalars, x: Expr) -> Expr:
    return b.complex(b.log_modulus(*parts(b, x)), phase(b, x))


def log1p(b: Scalars, x: Expr) -> Expr:
    return b.complex(b.log1p_modulus(*parts(b, x)), phase(b, plus_real(b, 1, x)))


def expm1(b: Scalars, x: Expr) -> Expr:
    re, im = parts(b, x)
    half, two = b.const(0.5, re.dtype), b.const(2, re.dtype)
    s = b.sin(b.mul(im, half))
    e = b.expm1(re)
    real = b.sub(b.mul(e, b.cos(im)), b.mul(two, b.mul(s, s)))
    # Real numbers stay real, infinite ones too.
    imag = b.select(b.eq(im, b.const(0, re.dtype)), im, b.mul(b.exp(re), b.sin(im)))
    return b.complex(real, imag)


def greater(b: Scalars, x: Expr) -> Expr:
    """The absolute value of the greater part."""
    return b.max(b.abs(b.real(x)), b.abs(b.imag(x)))


def power_of_two(b: Scalars, exponent: int, like: Expr) -> Expr:
    return b.const(2.0**exponent, like.dtype)


def scaled(b: Scalars, x: Expr, factor: Expr) -> Expr:
    return b.complex(b.mul(b.real(x), factor), b.mul(b.imag(x), factor))


def shrunk(b: Scalars, x: Expr) -> tuple[Expr, Expr]:
    """x times a power of two where it is so large that its square, or the sum of its parts, overflows; it stays far
    above 1/eps. And what the logarithm of x has lost by that."""
    big = greater(b, x)
    above, less = (900, 512) if big.dtype == np.float64 else (100, 64)
    far = b.gt(big, power_of_two(b, above, big))
    zero, one, lost = (b.const(v, big.dtype) for v in (0, 1, less * np.log(2)))
    return scaled(b, x, b.select(far, power_of_two(b, -less, big), one)), b.select(far, lost, zero)


def sqrt(b: Scalars, x: Expr) -> Expr:
    """The root with a real part that is not negative (Kahan's scheme); of huge and tiny numbers, those of others that
    have squares, and halves that are not subnormal."""
    big, double = greater(b, x), b.real(x).dtype == np.float64
    huge = b.gt(big, power_of_two(b, 1020 if double else 124, big))
    tiny = b.lt(big, power_of_two(b, -960 if double else -96, big))
    zero, half, one, inf = (b.const(v, b.real(x).dtype) for v in (0, 0.5, 1, np.inf))
    x = scaled(b, x, b.select(huge, power_of_two(b, -4, zero), b.select(tiny, power_of_two(b, 64, zero), one)))
    re, im = parts(b, x)
    size = modulus(b, x)
    t = b.sqrt(b.mul(half, b.add(size, b.abs(re))))
    other = b.select(b.eq(t, zero), b.abs(im), b.div(b.abs(im), b.add(t, t)))
    right = b.ge(re, zero)
    real = b.select(right, t, other)
    imag = b.copysign(b.select(right, other, t), im)
    back = b.select(huge, power_of_two(b, 2, zero), b.select(tiny, power_of_two(b, -32, zero), one))
    real, imag = b.mul(real, back), b.mul(imag, back)
    endless = b.eq(b.abs(im), inf)
    real = b.select(endless, inf, real)
    imag = b.select(endless, im, imag)
    straight = b.eq(b.abs(re), inf)
    real = b.select(b.and_(straight, b.not_(endless)), b.select(right, inf, zero), real)
    imag = b.select(b.and_(straight, b.not_(endless)),
                    b.copysign(b.select(right, zero, inf), im), imag)
    return b.complex(real, imag)


def endless(b: Scalars, x: Expr) -> Expr:
    """Whether a part is infinite."""
    inf = b.const(np.inf, b.real(x).dtype)
    return b.or_(b.eq(b.abs(b.real(x)), inf), b.eq(b.abs(b.imag(x)), inf))


def sinh(b: Scalars, x: Expr) -> Expr:
    re, im = parts(b, x)
    flat = b.eq(im, b.const(0, re.dtype))  # real numbers stay real, infinite ones and NaN, too
    return b.complex(b.mul(b.sinh(re), b.cos(im)), b.select(flat, im, b.mul(b.cosh(re), b.sin(im))))


def cosh(b: Scalars, x: Expr) -> Expr:
    re, im = parts(b, x)
    flat = b.eq(im, b.const(0, re.dtype))
    return b.complex(b.mul(b.cosh(re), b.cos(im)),
                     b.select(flat, b.mul(im, b.copysign(b.const(1, re.dtype), re)), b.mul(b.sinh(re), b.sin(im))))


def turn(b: Scalars, x: Expr) -> Expr:
    """i·x"""
    re, im = parts(b, x)
    return b.complex(b.neg(im), re)


def turn_back(b: Scalars, x: Expr) -> Expr:
    """-i·x"""
    re, im = parts(b, x)
    return b.complex(im, b.neg(re))


def sin(b: Scalars, x: Expr) -> Expr:
    return turn_back(b, sinh(b, turn(b, x)))


def cos(b: Scalars, x: Expr) -> Expr:
    return cosh(b, turn(b, x))


def tanh(b: Scalars, x: Expr) -> Expr:
    """Kahan's formula: tan of the imaginary part, tanh's derivative from sinh."""
    re, im = parts(b, x)
    one = b.const(1, re.dtype)
    t = b.tan(im)
    s = b.sinh(re)
    beta = b.add(one, b.mul(t, t))
    rho = b.sqrt(b.add(one, b.mul(s, s)))
    denominator = b.add(one, b.mul(beta, b.mul(s, s)))
    real = b.div(b.mul(beta, b.mul(rho, s)), denominator)
    imag = b.div(t, denominator)
    far = b.and_(b.gt(b.abs(re), b.const(20 if re.dtype == np.float64 else 9, re.dtype)), b.eq(t, t))
    far = b.or_(far, b.eq(b.abs(re), b.const(np.inf, re.dtype)))
    real = b.select(far, b.copysign(one, re), real)
    zero = b.const(0, re.dtype)
    imag = b.select(far, b.copysign(zero, im), imag)
    return b.complex(real, b.select(b.eq(im, zero), im, imag))


def tan(b: Scalars, x: Expr) -> Expr:
    return turn_back(b, tanh(b, turn(b, x)))


def plus_real(b: Scalars, number: float, x: Expr) -> Expr:
    """number + x, which keeps the sign of a zero as imaginary part: the side of a branch cut."""
    return b.complex(b.add(b.const(number, b.real(x).dtype), b.real(x)), b.imag(x))


def asinh(b: Scalars, x: Expr) -> Expr:
    """Kahan: with u = sqrt(1 - i x), v = sqrt(1 + i x)."""
    near, lost = shrunk(b, x)
    u = sqrt(b, plus_real(b, 1, turn_back(b, near)))
    v = sqrt(b, plus_real(b, 1, turn(b, near)))
    re = b.asinh(b.sub(b.mul(b.real(v), b.imag(u)), b.mul(b.imag(v), b.real(u))))
    re = b.copysign(b.add(b.abs(re), lost), b.real(x))
    im = b.atan2(b.imag(near), b.real(mul(b, u, v)))
    far = endless(b, x)
    re = b.select(far, b.copysign(b.const(np.inf, re.dtype), b.real(x)), re)
    return b.complex(re, b.select(far, b.atan2(b.imag(x), b.abs(b.real(x))), im))


def asin(b: Scalars, x: Expr) -> Expr:
    return turn_back(b, asinh(b, turn(b, x)))


def acos(b: Scalars, x: Expr) -> Expr:
    two = b.const(2, b.real(x).dtype)
    near, lost = shrunk(b, x)
    u, v = sqrt(b, plus_real(b, 1, negate(b, near))), sqrt(b, plus_real(b, 1, near))
    re = b.mul(two, b.atan2(b.real(u), b.real(v)))
    im = b.asinh(b.sub(b.mul(b.real(v), b.imag(u)), b.mul(b.imag(v), b.real(u))))
    im = b.add(im, b.copysign(lost, im))
    far = endless(b, x)
    im = b.select(far, b.neg(b.copysign(b.const(np.inf, re.dtype), b.imag(x))), im)
    return b.complex(b.select(far, b.atan2(b.abs(b.imag(x)), b.real(x)), re), im)


def acosh(b: Scalars, x: Expr) -> Expr:
    two = b.const(2, b.real(x).dtype)
    near, lost = shrunk(b, x)
    u, v = sqrt(b, plus_real(b, -1, near)), sqrt(b, plus_real(b, 1, near))
    re = b.add(b.asinh(b.add(b.mul(b.real(u), b.real(v)), b.mul(b.imag(u), b.imag(v)))), lost)
    im = b.mul(two, b.atan2(b.imag(u), b.real(v)))
    far = endless(b, x)
    re = b.select(far, b.const(np.inf, re.dtype), re)
    return b.complex(re, b.select(far, b.atan2(b.imag(x), b.real(x)), im))


def atanh(b: Scalars, x: Expr) -> Expr:
    """log((1 + x) / (1 - x)) / 2, by 1 - |re x|: squares are scaled where they overflow, or vanish close to 1."""
    re, im = parts(b, x)
    one, quarter, half, two, four = (b.const(v, re.dtype) for v in (1, 0.25, 0.5, 2, 4))
    size = b.abs(re)
    below, above = b.sub(one, size), b.add(one, size)
    over, down, under, up = (300, -600, -300, 600) if re.dtype == np.float64 else (40, -80, -40, 64)
    big = b.max(b.abs(below), b.abs(im))
    huge, close = b.gt(big, power_of_two(b, over, re)), b.lt(big, power_of_two(b, under, re))
    factor = b.select(huge, power_of_two(b, down, re), b.select(close, power_of_two(b, up, re), one))
    left, y = b.mul(below, factor), b.mul(im, factor)
    y2 = b.mul(y, y)
    squares = b.add(b.mul(left, left), y2)
    # close to 1 the fraction is beyond all numbers, and its root is not
    fraction = b.div(b.select(close, b.mul(two, factor), b.mul(b.mul(four, b.mul(size, factor)), factor)),
                     b.select(close, b.sqrt(squares), squares))
    real = b.copysign(b.mul(b.select(close, half, quarter), b.log1p(fraction)), re)
    turned = b.mul(two, b.select(close, im, b.mul(y, factor)))
    across = b.select(close, b.mul(below, above), b.sub(b.mul(left, b.mul(above, factor)), y2))
    imag = b.mul(half, b.atan2(turned, across))
    far = endless(b, x)
    right = b.select(b.ne(im, im), im, b.copysign(b.const(np.pi / 2, re.dtype), im))
    return b.complex(b.select(far, b.copysign(b.const(0, re.dtype), re), real), b.select(far, right, imag))


def atan(b: Scalars, x: Expr) -> Expr:
    return turn_back(b, atanh(b, turn(b, x)))


def power(b: Scalars, x: Expr, y: Expr) -> Expr:
    """exp(y log x); 0 to a power with positive real part is 0 and to others NaN. x⁰ and 1ʸ are 1 and x¹ is x, even
    where the logarithm is not finite."""
    out = exp(b, mul(b, y, log(b, x)))
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    nan = b.const(complex(np.nan, np.nan), x.dtype)
    out = b.select(compare(b, "eq", x, zero), b.select(b.gt(b.real(y), b.real(zero)), zero, nan), out)
    out = b.select(compare(b, "eq", y, one), x, out)
    return b.select(b.or_(compare(b, "eq", y, zero), compare(b, "eq", x, one)), one, out)


def reciprocal_sqrt(b: Scalars, x: Expr) -> Expr:
    return div(b, b.const(1, x.dtype), sqrt(b, x))


def negate(b: Scalars, x: Expr) -> Expr:
    return b.complex(b.neg(b.real(x)), b.neg(b.imag(x)))


def extremum(name: str) -> Callable[[Any, Any, Any], Any]:
    """Lexicographic order: by real parts, then imaginary ones."""

    def rule(b: Scalars, x: Expr, y: Expr) -> Expr:
        (xr, xi), (yr, yi) = parts(b, x), parts(b, y)
        before = b.lt if name == "min" else b.gt
        first = b.or_(before(xr, yr), b.and_(b.eq(xr, yr), before(xi, yi)))
        nan = b.or_(b.ne(xr, xr), b.ne(xi, xi))
        return b.select(b.or_(first, nan), x, y)

    return rule


def compare(b: Scalars, name: str, x: Expr, y: Expr) -> Expr:
    (xr, xi), (yr, yi) = parts(b, x), parts(b, y)
    if name == "eq":
        return b.and_(b.eq(xr, yr), b.eq(xi, yi))
    if name == "ne":
        return b.or_(b.ne(xr, yr), b.ne(xi, yi))
    order = getattr(b, name)
    strict = getattr(b, name[0] + "t")
    return b.or_(strict(xr, yr), b.and_(b.eq(xr, yr), order(xi, yi)))


unary: dict[str, Callable[[Any, Any], Any]] = {
    "neg": negate, "abs": modulus, "sign": sign, "exp": exp, "log": log, "log1p": log1p, "expm1": expm1,
    "sqrt": sqrt, "rsqrt": reciprocal_sqrt, "sin": sin, "cos": cos, "tan": tan, "sinh": sinh, "cosh": cosh,
    "tanh": tanh, "asin": asin, "acos": acos, "atan": atan, "asinh": asinh, "acosh": acosh, "atanh": atanh,
    "exp2": lambda b, x: exp(b, mul(b, x, b.const(0.6931471805599453, x.dtype))),
}

binary: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": add, "sub": sub, "mul": mul, "div": div, "pow": power, "min": extremum("min"), "max": extremum("max"),
}
