"""Floats of 16 bits and fewer: the operations of the loop IR that make float32 of them, and them of float32."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from ..compile.lowering.number_types import BF16, F16
from ..core.types.index_type import ScalarType, numpy_type
from .instructions import F32, F64, Block, literal, splat, suffix, vector


def widen(f: Block, x: str, source: ScalarType, lanes: int) -> str:
    """The bits of a small float as a float32, exactly."""
    t = vector("float", lanes)
    if source == F16:
        half = f.op(f"bitcast {vector('i16', lanes)} {x} to {vector('half', lanes)}")
        return f.op(f"fpext {vector('half', lanes)} {half} to {t}")
    i32 = vector("i32", lanes)
    if source == BF16:
        wide = f.op(f"zext {vector('i16', lanes)} {x} to {i32}")
        up = f.op(f"shl {i32} {wide}, {splat('16', 'i32', lanes)}")
        return f.op(f"bitcast {i32} {up} to {t}")
    return _widen_8(f, x, source, lanes)


def _int32(value: int, lanes: int) -> str:
    return splat(str(value), "i32", lanes)


def _all_values(dtype: ScalarType) -> tuple[np.ndarray, np.ndarray]:
    """All bytes, and the numbers that they are."""
    codes = np.arange(256, dtype=np.uint8)
    with np.errstate(all="ignore"):
        return codes, codes.view(numpy_type(dtype)).astype(np.float32)


def _widen_8(f: Block, x: str, source: ScalarType, lanes: int) -> str:
    """Floats of 8 bits and fewer: exponent and mantissa move to their places in a float32, whose bias is another."""
    i32, c, t = vector("i32", lanes), vector("i1", lanes), vector("float", lanes)
    k = partial(_int32, lanes=lanes)
    def choose(order: str, code: str, limit: int, chosen: int | str, other: str) -> str:
        holds = f.op(f"icmp {order} {i32} {code}, {k(limit)}")
        return f.op(f"select {c} {holds}, {i32} {k(chosen) if isinstance(chosen, int) else chosen}, {i32} {other}")

    codes, values = _all_values(source)
    table = values.view(np.uint32)
    info = ml_dtypes.finfo(source)
    up, top = 23 - info.nmant, 1 << info.bits - 1  # how far numbers move, and their sign
    code = f.op(f"zext {vector('i8', lanes)} {x} to {i32}")
    if not info.nmant:  # powers of two: exponents alone
        bits = f.op(f"shl {i32} {code}, {k(up)}")
        bits = choose("eq", code, 0, int(table[0]), choose("eq", code, 255, int(table[255]), bits))
        return f.op(f"bitcast {i32} {bits} to {t}")
    size = f.op(f"and {i32} {code}, {k(top - 1)}")
    one = int(codes[values == 1][0])  # which tells the difference of the biases
    bits = f.op(f"add {i32} {f.op(f'shl {i32} {size}, {k(up)}')}, {k(int(table[one]) - (one << up))}")
    # Subnormal numbers are read as if they had the next exponent, which is taken from what comes of it.
    least = (1 << 23) + int(table[one]) - (one << up)
    next_up = f.op(f"bitcast {i32} {f.op(f'add {i32} {bits}, {k(1 << 23)}')} to {t}")
    power = literal(np.uint32(least).view(np.float32), F32)
    subnormal = f.op(f"fsub {t} {next_up}, {splat(power, 'float', lanes)}")
    bits = choose("ult", size, 1 << info.nmant, f.op(f"bitcast {t} {subnormal} to {i32}"), bits)
    for none in (np.isinf, np.isnan):
        where = codes[:top][none(values[:top])]
        if len(where):
            bits = choose("uge", size, int(where[0]), int(table[where[0]]), bits)
    sign = f.op(f"and {i32} {code}, {k(top)}")
    bits = f.op(f"or {i32} {bits}, {f.op(f'shl {i32} {sign}, {k(32 - info.bits)}')}")
    if np.isnan(values[top]) and not np.isnan(values[:top]).any():  # in place of -0
        bits = choose("eq", code, top, int(table[top]), bits)
    return f.op(f"bitcast {i32} {bits} to {t}")


def narrow(f: Block, x: str, source: ScalarType, target: ScalarType, lanes: int) -> str:
    """Rounds to the bits of a small float, to nearest even."""
    if target == F16:
        if source == F64:
            x = _to_odd(f, x, lanes)
        half = f.op(f"fptrunc {vector('float', lanes)} {x} to {vector('half', lanes)}")
        return f.op(f"bitcast {vector('half', lanes)} {half} to {vector('i16', lanes)}")
    i32, c = vector("i32", lanes), vector("i1", lanes)
    t = vector("float", lanes)
    bits = f.op(f"bitcast {t} {x} to {i32}")
    if target == BF16:
        odd = f.op(f"lshr {i32} {bits}, {splat('16', 'i32', lanes)}")
        odd = f.op(f"and {i32} {odd}, {splat('1', 'i32', lanes)}")
        bias = f.op(f"add {i32} {odd}, {splat('32767', 'i32', lanes)}")
        up = f.op(f"add {i32} {bits}, {bias}")
        nan = f.op(f"fcmp uno {t} {x}, {x}")
        quiet = f.op(f"or {i32} {bits}, {splat('4194304', 'i32', lanes)}")
        up = f.op(f"select {c} {nan}, {i32} {quiet}, {i32} {up}")
        down = f.op(f"lshr {i32} {up}, {splat('16', 'i32', lanes)}")
        return f.op(f"trunc {i32} {down} to {vector('i16', lanes)}")
    return _narrow_8(f, x, bits, target, lanes) if ml_dtypes.finfo(target).nmant else _narrow_to_power(f, bits, lanes)


def _to_odd(f: Block, x: str, lanes: int) -> str:
    """A float64 as a float32 whose last bit says that it is not exact, so that to round it once more is to round once
    (S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd,
    2008). Processors have no instruction for all the way, and LLVM calls a function for each number."""
    double, single, i32, c = (vector(t, lanes) for t in ("double", "float", "i32", "i1"))
    symbol = f"@llvm.fabs.{suffix('double', lanes)}"
    f.declare(f"declare {double} {symbol}({double})")
    near = f.op(f"fptrunc {double} {x} to {single}")
    back = f.op(f"fpext {single} {near} to {double}")
    sizes = [f.op(f"call {double} {symbol}({double} {y})") for y in (back, x)]
    above = f.op(f"zext {c} {f.op(f'fcmp ogt {double} {sizes[0]}, {sizes[1]}')} to {i32}")
    inexact = f.op(f"zext {c} {f.op(f'fcmp one {double} {back}, {x}')} to {i32}")
    bits = f.op(f"sub {i32} {f.op(f'bitcast {single} {near} to {i32}')}, {above}")
    return f.op(f"bitcast {i32} {f.op(f'or {i32} {bits}, {inexact}')} to {single}")


def _narrow_to_power(f: Block, bits: str, lanes: int) -> str:
    """Powers of two of float32's exponents, halves up, as ml_dtypes has it: neither 0 nor negative numbers are any."""
    i32, c = vector("i32", lanes), vector("i1", lanes)
    # Of the smallest, 2**-127, the exponent is 0: it is subnormal, and what lies above it is the next.
    normal = f.op(f"icmp uge {i32} {bits}, {splat(str(1 << 23), 'i32', lanes)}")
    up = f.op(f"zext {c} {normal} to {i32}")
    up = f.op(f"add {i32} {up}, {splat(str((1 << 22) - 1), 'i32', lanes)}")
    code = f.op(f"lshr {i32} {f.op(f'add {i32} {bits}, {up}')}, {splat('23', 'i32', lanes)}")
    before = f.op(f"add {i32} {bits}, {splat('-1', 'i32', lanes)}")  # (comparing floats takes subnormal ones for 0)
    positive = f.op(f"icmp ult {i32} {before}, {splat(str(0x7F7FFFFF), 'i32', lanes)}")
    code = f.op(f"select {c} {positive}, {i32} {code}, {i32} {splat('255', 'i32', lanes)}")
    return f.op(f"trunc {i32} {code} to {vector('i8', lanes)}")


def _narrow_8(f: Block, x: str, bits: str, target: ScalarType, lanes: int) -> str:
    """Floats of 8 bits and fewer: rounding in integers, subnormals by adding a power of two that aligns them."""
    info = ml_dtypes.finfo(target)
    i32, c, t = vector("i32", lanes), vector("i1", lanes), vector("float", lanes)
    k = partial(_int32, lanes=lanes)
    mantissa = int(info.nmant)
    largest = np.float32(info.max)
    all_bits, values = _all_values(target)
    positive = all_bits[(values > 0) & np.isfinite(values) & ~np.signbit(values)]
    smallest = np.float32(values[positive].min()) if len(positive) else np.float32(1)
    sign_bits = f.op(f"lshr {i32} {bits}, {k(31)}")
    size_bits = f.op(f"and {i32} {bits}, {k(0x7FFFFFFF)}")
    size = f.op(f"bitcast {i32} {size_bits} to {t}")
    min_normal = np.float32(info.smallest_normal)
    # normal: round the mantissa to nearest even, then rebase the exponent
    drop = 23 - mantissa
    odd = f.op(f"lshr {i32} {size_bits}, {k(drop)}")
    odd = f.op(f"and {i32} {odd}, {k(1)}")
    rounded = f.op(f"add {i32} {size_bits}, {k((1 << (drop - 1)) - 1)}")
    rounded = f.op(f"add {i32} {rounded}, {odd}")
    rounded = f.op(f"lshr {i32} {rounded}, {k(drop)}")
    code_of_min_normal = int(all_bits[values == min_normal][0])
    base = (int(min_normal.view(np.uint32)) >> drop) - code_of_min_normal
    normal = f.op(f"sub {i32} {rounded}, {k(base)}")
    # subnormal: multiples of the smallest value, rounded to nearest even
    scaled = f.op(f"fmul {t} {size}, {splat(literal(1.0 / float(smallest), F32), 'float', lanes)}")
    symbol = f"@llvm.roundeven.{suffix('float', lanes)}"
    f.declare(f"declare {t} {symbol}({t})")
    whole = f.op(f"call {t} {symbol}({t} {scaled})")
    tiny = f.op(f"fcmp olt {t} {size}, {splat(literal(min_normal, F32), 'float', lanes)}")
    whole = f.op(f"select {c} {tiny}, {t} {whole}, {t} {splat('0.0', 'float', lanes)}")
    sub = f.op(f"fptosi {t} {whole} to {i32}")
    code = f.op(f"select {c} {tiny}, {i32} {sub}, {i32} {normal}")
    # beyond the largest: what a rounding past it gives (infinity, NaN, or the largest)
    code_of_max = int(all_bits[values == largest][0])
    with np.errstate(all="ignore"):
        edges = np.array([3e38, np.nan, np.inf, -0.0, -1.0, 1.0], np.float32).astype(numpy_type(target))
    beyond, nan_code, inf_code, minus_zero, minus_one, one = map(int, edges.view(np.uint8))
    over = f.op(f"icmp sgt {i32} {code}, {k(code_of_max)}")
    code = f.op(f"select {c} {over}, {i32} {k(beyond & ~(minus_one ^ one) if beyond != nan_code else beyond)}, {i32} "
                f"{code}")
    infinite = f.op(f"fcmp oeq {t} {size}, {splat('0x7FF0000000000000', 'float', lanes)}")
    code = f.op(f"select {c} {infinite}, {i32} {k(inf_code)}, {i32} {code}")
    sign_mask = minus_one ^ one
    if sign_mask:
        shift = sign_mask.bit_length() - 1
        sign = f.op(f"shl {i32} {sign_bits}, {k(shift)}")
        signed = f.op(f"or {i32} {code}, {sign}")
        if minus_zero == 0:  # no negative zero: its bits mean NaN
            zero = f.op(f"icmp eq {i32} {code}, {k(0)}")
            signed = f.op(f"select {c} {zero}, {i32} {k(0)}, {i32} {signed}")
        code = signed
    nan = f.op(f"fcmp uno {t} {x}, {x}")
    code = f.op(f"select {c} {nan}, {i32} {k(nan_code)}, {i32} {code}")
    return f.op(f"trunc {i32} {code} to {vector('i8', lanes)}")
