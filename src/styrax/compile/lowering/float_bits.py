"""Floats as their bits: neighbours, powers of two, fewer digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.expr import F32, F64, Expr
from .number_types import SMALL_FLOATS

if TYPE_CHECKING:
    from .scalars import Scalars


def nextafter(b: Scalars, x: Expr, y: Expr) -> Expr:
    dtype = x.dtype
    bits = np.dtype(f"i{dtype.itemsize}")
    wide = F32 if dtype in SMALL_FLOATS else dtype
    ix, iy = b.bitcast(x, bits), b.bitcast(y, bits)
    fx, fy = b.cast(x, wide), b.cast(y, wide)
    zero, one, top = (b.const(v, bits) for v in (0, 1, np.iinfo(bits).min))
    sign_y = b.and_(iy, top)
    # integers in the order of the numbers, subnormal ones included
    kx, ky = (b.select(b.lt(i, zero), b.sub(top, i), i) for i in (ix, iy))
    away = b.eq(b.lt(kx, ky), b.ge(ix, zero))
    step = b.select(away, b.add_bits(ix, 1), b.add_bits(ix, -1))
    from_zero = b.node("or", (sign_y, one), bits)
    moved = b.select(b.eq(kx, zero), from_zero, step)
    same = b.select(b.eq(kx, ky), iy, moved)
    nan = b.bitcast(b.const(np.nan, dtype), bits)
    out = b.select(b.or_(b.ne(fx, fx), b.ne(fy, fy)), nan, same)
    return b.bitcast(out, dtype)


class Keys:
    """Halves as integers in the order of the numbers, of which a register holds twice as many as of what halves are
    compared as. NaNs of either sign come before all numbers, or with `last` after them, so that an extremum is one."""

    def __init__(self, dtype: np.dtype, last: bool):
        self.half, self.dtype = dtype, np.dtype(np.uint16 if last else np.int16)
        infinity = int(np.asarray(np.inf, dtype).view(np.uint16))
        # with it, the least number is the first integer, or the greatest the last, and NaNs wrap around
        self.shift = infinity + 1 if last else 0x7FFF - infinity

    def of(self, b: Scalars, x: Expr) -> Expr:
        """The key of a half."""
        return b.bitcast(b.add_bits(self._turned(b, b.bitcast(x, np.int16)), self.shift), self.dtype)

    def half_of(self, b: Scalars, key: Expr) -> Expr:
        """The half that has a key."""
        return b.bitcast(self._turned(b, b.add_bits(b.bitcast(key, np.int16), -self.shift)), self.half)

    def _turned(self, b: Scalars, bits: Expr) -> Expr:
        """Magnitudes of what is negative in the opposite order."""
        sign = b.shr_arith(bits, b.const(15, np.int16))
        return b.xor(bits, b.and_(sign, b.const(0x7FFF, np.int16)))


def binade(b: Scalars, x: Expr) -> tuple[Expr, Expr]:
    """The power of two in a float of 32 or 64 bits that is not negative, 0 for 0, and its reciprocal; where one of
    them would not be a normal number, or x is none, the nearest that are."""
    bits, digits, bias = (np.int64, 52, 1023) if x.dtype == F64 else (np.int32, 23, 127)
    mask, most, both = (b.const(n << digits, bits) for n in (2 * bias + 1, 2 * bias - 1, 2 * bias))
    power = b.min(b.and_(b.bitcast(x, bits), mask), most)
    return b.bitcast(power, x.dtype), b.bitcast(b.sub(both, power), x.dtype)


def reduce_precision(b: Scalars, x: Expr, exponent_bits: int, mantissa_bits: int) -> Expr:
    """Rounds to a float of so many exponent and mantissa bits; subnormals of that type become zero."""
    if x.dtype in SMALL_FLOATS:
        return b.cast(b.reduce_precision(b.cast(x, F32), exponent_bits, mantissa_bits), x.dtype)
    f64 = x.dtype == F64
    bits = np.dtype(np.uint64 if f64 else np.uint32)
    width, own = (11, 52) if f64 else (8, 23)
    i = b.bitcast(x, bits)
    c = lambda v: b.const(v & ((1 << (64 if f64 else 32)) - 1), bits)
    if mantissa_bits < own:
        drop = own - mantissa_bits
        last = b.and_(b.shr_logical(i, c(drop)), c(1))
        i = b.add(i, b.add(c((1 << (drop - 1)) - 1), last))
        i = b.and_(i, c(~((1 << drop) - 1)))
    if exponent_bits < width:
        bias, small = (1 << (width - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        sign = b.and_(i, c(1 << (own + width)))
        exponent = b.and_(i, c(((1 << width) - 1) << own))
        i = b.select(b.gt(exponent, c((bias + small) << own)),
                        b.node("or", (sign, c(((1 << width) - 1) << own)), bits), i)
        i = b.select(b.le(exponent, c((bias - small) << own)), sign, i)
    rounded = b.bitcast(i, x.dtype)
    return b.select(b.ne(x, x), x, rounded)
