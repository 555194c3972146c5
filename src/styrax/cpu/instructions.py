"""Scalar operations of the loop IR as LLVM instructions, for one lane or many.

One row per operation. No row has undefined behaviour: division by zero and on overflow, shifts by the
width, conversions out of range and NaN give JAX's results.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..compile.lowering.number_types import NARROW_INTS, SMALL_FLOATS, is_complex, is_float, is_signed, part_dtype
from ..core.types.index_type import ScalarType, numpy_type

F32, F64, BOOL = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)


class Block(Protocol):
    """Where instructions go: see `emit.Function`."""

    def op(self, text: str) -> str: ...

    def declare(self, text: str) -> None: ...

    def function(self, name: str, dtype: str, lanes: int) -> str: ...

    folding: bool


def bits_of(dtype: ScalarType) -> int:
    return dtype.itemsize * 8


def element_type(dtype: ScalarType) -> str:
    """The type of a value in a register."""
    if dtype == BOOL:
        return "i1"
    if dtype == F32:
        return "float"
    if dtype == F64:
        return "double"
    return f"i{bits_of(dtype)}"  # integers, and the bits of small floats


def memory_type(dtype: ScalarType) -> str:
    """An element's own, of complex numbers a vector of both parts."""
    if is_complex(dtype):
        return f"<2 x {element_type(part_dtype(dtype))}>"
    return "i8" if dtype == BOOL else element_type(dtype)


def vector(t: str, lanes: int) -> str:
    return t if lanes == 1 else f"<{lanes} x {t}>"


def suffix(t: str, lanes: int) -> str:
    name = {"float": "f32", "double": "f64"}.get(t, t)
    return name if lanes == 1 else f"v{lanes}{name}"


def literal(value: Any, dtype: ScalarType) -> str:
    """A constant's text."""
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype == F32 or dtype == F64:
        wide = np.float64(value)
        if np.isnan(wide):
            return "0x7FF8000000000000"
        return f"0x{int(wide.view(np.uint64)):016X}"
    if dtype in SMALL_FLOATS:
        return str(int(np.asarray(value, numpy_type(dtype)).view(f"u{dtype.itemsize}")))
    return str(int(value))


def splat(text: str, t: str, lanes: int) -> str:
    return text if lanes == 1 else f"splat ({t} {text})"


def constant_of(text: str) -> int | None:
    """The integer that an operand is, in all lanes; None where it is no constant."""
    found = re.fullmatch(r"(?:splat \(i\d+ (-?\d+)\)|(-?\d+))", text)
    return None if found is None else int(found[1] or found[2])


Row = Callable[[Block, ScalarType, int, tuple[str, ...]], str]
rows: dict[str, Row] = {}


def row(*names: str) -> Callable[[Row], Row]:
    def register(rule: Row) -> Row:
        for name in names:
            rows[name] = rule
        return rule

    return register


def _typed(dtype: ScalarType, lanes: int) -> str:
    return vector(element_type(dtype), lanes)


def constant(value: Any, dtype: ScalarType, lanes: int) -> str:
    return splat(literal(value, dtype), element_type(dtype), lanes)


# -- arithmetic ----------------------------------------------------------------------------------------
def _arithmetic(int_op: str, float_op: str) -> Row:
    def rule(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
        t = _typed(dtype, lanes)
        if is_float(dtype):
            return f.op(f"{float_op} {t} {a[0]}, {a[1]}")
        return f.op(f"{int_op} {t} {a[0]}, {a[1]}")

    return rule


rows["add"] = _arithmetic("add", "fadd")
rows["sub"] = _arithmetic("sub", "fsub")
rows["mul"] = _arithmetic("mul", "fmul")


@row("neg")
def _neg(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    t = _typed(dtype, lanes)
    return f.op(f"fneg {t} {a[0]}") if is_float(dtype) else f.op(f"sub {t} {constant(0, dtype, lanes)}, {a[0]}")


@row("div")
def _div(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    t = _typed(dtype, lanes)
    if is_float(dtype):
        return f.op(f"fdiv {t} {a[0]}, {a[1]}")
    plain = f"{'sdiv' if is_signed(dtype) else 'udiv'} {t} {a[0]}"
    if (constant_of(a[1]) or 0) > 0:
        return f.op(f"{plain}, {a[1]}")
    safe, by_zero = _safe_divisor(f, dtype, lanes, a)
    q = _quotient(f, dtype, lanes, a[0], safe) if _divides_as_float(dtype, lanes, a[1]) else f.op(f"{plain}, {safe}")
    return f.op(f"select {vector('i1', lanes)} {by_zero}, {t} {splat('-1', element_type(dtype), lanes)}, {t} {q}")


@row("rem")
def _rem(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    t = _typed(dtype, lanes)
    if is_float(dtype):
        return _own_function("fmod")(f, dtype, lanes, a)
    plain = f"{'srem' if is_signed(dtype) else 'urem'} {t} {a[0]}"
    if (constant_of(a[1]) or 0) > 0:
        return f.op(f"{plain}, {a[1]}")
    safe, by_zero = _safe_divisor(f, dtype, lanes, a)
    if _divides_as_float(dtype, lanes, a[1]):
        r = f.op(f"sub {t} {a[0]}, {f.op(f'mul {t} {_quotient(f, dtype, lanes, a[0], safe)}, {safe}')}")
    else:
        r = f.op(f"{plain}, {safe}")
    return f.op(f"select {vector('i1', lanes)} {by_zero}, {t} {a[0]}, {t} {r}")


def _divides_as_float(dtype: ScalarType, lanes: int, divisor: str) -> bool:
    """Whether vectors of integers are divided as floating-point numbers: no processor has an instruction for them, and
    LLVM would take their elements apart. Divisors that are known are multiplications."""
    return lanes > 1 and divisor.startswith("%")


def _quotient(f: Block, dtype: ScalarType, lanes: int, x: str, y: str) -> str:
    """Integers divided as floating-point numbers, rounding towards zero; `y` is safe.

    A quotient of integers of up to n bits that is no integer differs from the next one by 2**-(n + 1) of it or more.
    Rounding to n + 2 bits or more does not reach that, so cutting the fraction off gives the quotient exactly.
    """
    t = _typed(dtype, lanes)
    sign = "s" if is_signed(dtype) else "u"
    if bits_of(dtype) == 64:  # most of them are small
        return f.op(f"call {t} {f.function('quotient', 'i64' if sign == 's' else 'u64', lanes)}({t} {x}, {t} {y})")
    wide = vector("double" if bits_of(dtype) == 32 else "float", lanes)
    over, under = (f.op(f"{sign}itofp {t} {v} to {wide}") for v in (x, y))
    return f.op(f"fpto{sign}i {wide} {f.op(f'fdiv {wide} {over}, {under}')} to {t}")


def _safe_divisor(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> tuple[str, str]:
    """A divisor that is neither 0 nor, for the smallest dividend, -1, and where it was 0.

    The smallest dividend divided by 1 instead of -1 is itself, which is the wrapped result.
    """
    t, c = _typed(dtype, lanes), vector("i1", lanes)
    by_zero = f.op(f"icmp eq {t} {a[1]}, {constant(0, dtype, lanes)}")
    bad = by_zero
    if is_signed(dtype):
        smallest = splat(str(-(1 << (bits_of(dtype) - 1))), element_type(dtype), lanes)
        low = f.op(f"icmp eq {t} {a[0]}, {smallest}")
        minus = f.op(f"icmp eq {t} {a[1]}, {splat('-1', element_type(dtype), lanes)}")
        bad = f.op(f"or {c} {by_zero}, {f.op(f'and {c} {low}, {minus}')}")
    return f.op(f"select {c} {bad}, {t} {constant(1, dtype, lanes)}, {t} {a[1]}"), by_zero


def _index_division(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> tuple[str, str]:
    """The quotient of an index and a positive size, rounded towards zero, and the remainder."""
    t = _typed(dtype, lanes)
    if _divides_as_float(dtype, lanes, a[1]):
        q = _quotient(f, dtype, lanes, a[0], a[1])
        return q, f.op(f"sub {t} {a[0]}, {f.op(f'mul {t} {q}, {a[1]}')}")
    return f.op(f"sdiv {t} {a[0]}, {a[1]}"), f.op(f"srem {t} {a[0]}, {a[1]}")


@row("floordiv")
def _floordiv(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    """Indices divided by positive sizes, rounding down."""
    t, c = _typed(dtype, lanes), vector("i1", lanes)
    q, r = _index_division(f, dtype, lanes, a)
    below = f.op(f"icmp slt {t} {r}, {constant(0, dtype, lanes)}")
    lower = f.op(f"add {t} {q}, {splat('-1', 'i64', lanes)}")
    return f.op(f"select {c} {below}, {t} {lower}, {t} {q}")


@row("floormod")
def _floormod(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    t, c = _typed(dtype, lanes), vector("i1", lanes)
    _, r = _index_division(f, dtype, lanes, a)
    below = f.op(f"icmp slt {t} {r}, {constant(0, dtype, lanes)}")
    lifted = f.op(f"add {t} {r}, {a[1]}")
    return f.op(f"select {c} {below}, {t} {lifted}, {t} {r}")


_BITS_OF = {"float": "i32", "double": "i64"}


def _either_way(f: Block, joined: str, order: str, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    """The greater or the lesser of two floats. The processor's instruction gives its second operand where both are
    zeros; what it gives either way round, `joined` by bits, has the right sign. LLVM's own way is half as fast where
    each waits for the one before."""
    t, c, bits = _typed(dtype, lanes), vector("i1", lanes), vector(_BITS_OF[element_type(dtype)], lanes)
    sides = []
    for x, y in (a, a[::-1]):
        first = f.op(f"fcmp {order} {t} {x}, {y}")
        sides.append(f.op(f"bitcast {t} {f.op(f'select {c} {first}, {t} {x}, {t} {y}')} to {bits}"))
    both = f.op(f"{joined} {bits} {sides[0]}, {sides[1]}")
    nan = f.op(f"fcmp uno {t} {a[0]}, {a[1]}")
    total = f.op(f"fadd {t} {a[0]}, {a[1]}")
    return f.op(f"select {c} {nan}, {t} {total}, {t} {f.op(f'bitcast {bits} {both} to {t}')}")


def _extremum(name: str, order_float: str, order_signed: str, order_unsigned: str) -> Row:
    def rule(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
        t, c = _typed(dtype, lanes), vector("i1", lanes)
        variables = a[0][0] == a[1][0] == "%"  # (of constants LLVM knows more)
        if element_type(dtype) in _BITS_OF and variables and not f.folding:
            return _either_way(f, "and" if name == "maximum" else "or", order_float, dtype, lanes, a)
        if is_float(dtype) and not f.folding:
            return _intrinsic(f, name, t, element_type(dtype), lanes, f"{t} {a[0]}, {t} {a[1]}", f"{t}, {t}")
        if is_float(dtype):  # a reduction need not tell the zeros apart
            first = f.op(f"fcmp {order_float} {t} {a[0]}, {a[1]}")
            chosen = f.op(f"select {c} {first}, {t} {a[0]}, {t} {a[1]}")  # the second where either is NaN
            # One instruction: LLVM would join the conditions, and branch on what they say of single numbers.
            chosen = f.op(f"freeze {t} {chosen}")
            nan = f.op(f"fcmp uno {t} {a[0]}, {a[0]}")
            return f.op(f"select {c} {nan}, {t} {a[0]}, {t} {chosen}")
        first = f.op(f"icmp {order_signed if is_signed(dtype) else order_unsigned} {t} {a[0]}, {a[1]}")
        return f.op(f"select {c} {first}, {t} {a[0]}, {t} {a[1]}")

    return rule


rows["max"] = _extremum("maximum", "ogt", "sgt", "ugt")
rows["min"] = _extremum("minimum", "olt", "slt", "ult")


# -- comparisons ---------------------------------------------------------------------------------------
def _comparison(float_order: str, int_order: str, signless: bool = False) -> Row:
    def rule(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
        t = _typed(dtype, lanes)
        if is_float(dtype):
            return f.op(f"fcmp {float_order} {t} {a[0]}, {a[1]}")
        order = int_order if signless else ("s" if is_signed(dtype) else "u") + int_order
        return f.op(f"icmp {order} {t} {a[0]}, {a[1]}")

    return rule


rows["eq"] = _comparison("oeq", "eq", True)
rows["ne"] = _comparison("une", "ne", True)
rows["lt"] = _comparison("olt", "lt")
rows["le"] = _comparison("ole", "le")
rows["gt"] = _comparison("ogt", "gt")
rows["ge"] = _comparison("oge", "ge")


# -- bits ----------------------------------------------------------------------------------------------
def _bitwise(name: str) -> Row:
    return lambda f, dtype, lanes, a: f.op(f"{name} {_typed(dtype, lanes)} {a[0]}, {a[1]}")


for _name in ("and", "or", "xor"):
    rows[_name] = _bitwise(_name)


@row("not")
def _not(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    ones = splat("true" if dtype == BOOL else "-1", element_type(dtype), lanes)
    return f.op(f"xor {_typed(dtype, lanes)} {a[0]}, {ones}")


def _shift(instruction: str) -> Row:
    def rule(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
        t, c = _typed(dtype, lanes), vector("i1", lanes)
        width = NARROW_INTS[dtype][0] if dtype in NARROW_INTS else bits_of(dtype)
        known, inside, x, amount = constant_of(a[1]), "", *a
        if known is None or not 0 <= known < width:
            inside = f.op(f"icmp ult {t} {amount}, {splat(str(width), element_type(dtype), lanes)}")
            limit = splat(str(width - 1), element_type(dtype), lanes)
            amount = f.op(f"select {c} {inside}, {t} {amount}, {t} {limit}")
        if dtype in NARROW_INTS and instruction == "lshr":  # the register holds the sign's copies: clear them
            x = f.op(f"and {t} {x}, {splat(str((1 << width) - 1), 'i8', lanes)}")
        elif dtype in NARROW_INTS and instruction == "ashr" and not is_signed(dtype):  # the highest bit is the sign
            gap = splat(str(8 - width), "i8", lanes)
            x = f.op(f"ashr {t} {f.op(f'shl {t} {x}, {gap}')}, {gap}")
        out = f.op(f"{instruction} {t} {x}, {amount}")
        if dtype in NARROW_INTS and instruction != "shl":
            out = rows["wrap"](f, dtype, lanes, (out,))
        if not inside or instruction == "ashr":  # shifting everything out leaves copies of the sign
            return out
        return f.op(f"select {c} {inside}, {t} {out}, {t} {constant(0, dtype, lanes)}")

    return rule


rows["shl"] = _shift("shl")
rows["shr_logical"] = _shift("lshr")
rows["shr_arith"] = _shift("ashr")


@row("wrap")
def _wrap(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    """Cuts a register of 8 bits to a 2- or 4-bit integer."""
    bits, signed = NARROW_INTS[dtype]
    t = _typed(dtype, lanes)
    gap = splat(str(8 - bits), "i8", lanes)
    high = f.op(f"shl {t} {a[0]}, {gap}")
    return f.op(f"{'ashr' if signed else 'lshr'} {t} {high}, {gap}")


@row("popcount")
def _popcount(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    x = a[0]
    t = _typed(dtype, lanes)
    if dtype in NARROW_INTS:
        x = f.op(f"and {t} {x}, {splat(str((1 << NARROW_INTS[dtype][0]) - 1), 'i8', lanes)}")
    return _intrinsic(f, "ctpop", t, element_type(dtype), lanes, f"{t} {x}")


@row("clz")
def _clz(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
    t = _typed(dtype, lanes)
    x = a[0]
    if dtype in NARROW_INTS:
        x = f.op(f"and {t} {x}, {splat(str((1 << NARROW_INTS[dtype][0]) - 1), 'i8', lanes)}")
    out = _intrinsic(f, "ctlz", t, element_type(dtype), lanes, f"{t} {x}, i1 false", f"{t}, i1")
    if dtype in NARROW_INTS:
        out = f.op(f"sub {t} {out}, {splat(str(8 - NARROW_INTS[dtype][0]), 'i8', lanes)}")
    return out


# -- floats --------------------------------------------------------------------------------------------
def _intrinsic(f: Block, name: str, t: str, element: str, lanes: int, arguments: str, types: str = "") -> str:
    symbol = f"@llvm.{name}.{suffix(element, lanes)}"
    types = types or ", ".join([t] * (arguments.count(t + " ") or 1))
    f.declare(f"declare {t} {symbol}({types})")
    return f.op(f"call {t} {symbol}({arguments})")


def _float_intrinsic(name: str) -> Row:
    def rule(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
        t = _typed(dtype, lanes)
        arguments = ", ".join(f"{t} {x}" for x in a)
        return _intrinsic(f, name, t, element_type(dtype), lanes, arguments, ", ".join([t] * len(a)))

    return rule


for _name, _llvm in {"abs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_away": "round",
                     "round_even": "roundeven", "sqrt": "sqrt", "copysign": "copysign"}.items():
    rows[_name] = _float_intrinsic(_llvm)


def _own_function(name: str) -> Row:
    def rule(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
        t = _typed(dtype, lanes)
        symbol = f.function(name, "f32" if dtype == F32 else "f64", lanes)
        return f.op(f"call {t} {symbol}({', '.join(f'{t} {x}' for x in a)})")

    return rule


def _one_of(name: str, place: int) -> Row:
    """A result of a function that gives two; who asks for both pays once."""
    def rule(f: Block, dtype: ScalarType, lanes: int, a: tuple[str, ...]) -> str:
        t = _typed(dtype, lanes)
        symbol = f.function(name, "f32" if dtype == F32 else "f64", lanes)
        both = f"{{ {t}, {t} }}"
        return f.op(f"extractvalue {both} {f.op(f'call {both} {symbol}({t} {a[0]})')}, {place}")

    return rule


rows["sin"], rows["cos"] = _one_of("sin_cos", 0), _one_of("sin_cos", 1)
for _name in ("exp exp2 expm1 log log1p tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh pow cbrt "
              "erf erfc erf_inv lgamma digamma logistic rsqrt log2 igamma igammac polygamma zeta bessel_i0e "
              "bessel_i1e betainc log_modulus log1p_modulus").split():
    rows[_name] = _own_function(_name)


# -- choices and casts -----------------------------------------------------------------------------------
def cast(f: Block, x: str, source: ScalarType, target: ScalarType, lanes: int) -> str:
    """Numbers of one type as another. Floats become integers by truncation with saturation."""
    s, t = _typed(source, lanes), _typed(target, lanes)
    if is_float(source):
        if is_float(target):
            return f.op(f"{'fpext' if target == F64 else 'fptrunc'} {s} {x} to {t}")
        return _float_to_int(f, x, source, target, lanes)
    if is_float(target):
        unsigned = source == BOOL or not is_signed(source)
        return f.op(f"{'uitofp' if unsigned else 'sitofp'} {s} {x} to {t}")
    if source == BOOL:
        return f.op(f"zext {s} {x} to {t}")
    if bits_of(target) > bits_of(source):
        return f.op(f"{'sext' if is_signed(source) else 'zext'} {s} {x} to {t}")
    if bits_of(target) < bits_of(source):
        return f.op(f"trunc {s} {x} to {t}")
    return x


def _float_to_int(f: Block, x: str, source: ScalarType, target: ScalarType, lanes: int) -> str:
    """Truncation with saturation; NaN is 0. LLVM's intrinsic for it goes through vectors lane by lane, so they are
    clamped here."""
    s, t, bits, signed = _typed(source, lanes), _typed(target, lanes), bits_of(target), is_signed(target)
    if target in NARROW_INTS:
        bits = NARROW_INTS[target][0]
    least, beyond = -(1 << bits - 1) if signed else 0, 1 << bits - signed
    if lanes == 1:
        element = f"i{bits}"
        symbol = f"@llvm.fpto{'s' if signed else 'u'}i.sat.{element}.{suffix(element_type(source), 1)}"
        f.declare(f"declare {element} {symbol}({s})")
        out = f.op(f"call {element} {symbol}({s} {x})")
        return f.op(f"{'sext' if signed else 'zext'} {element} {out} to {t}") if target in NARROW_INTS else out
    zero = constant(0, source, lanes)
    if bits <= 16:  # both ends are floats
        ordered = f.op(f"fcmp ord {s} {x}, {zero}")
        out = f.op(f"select {vector('i1', lanes)} {ordered}, {s} {x}, {s} {zero}")
        for order, end in (("olt", beyond - 1), ("ogt", least)):
            limit = constant(end, source, lanes)
            inside = f.op(f"fcmp {order} {s} {out}, {limit}")
            out = f.op(f"select {vector('i1', lanes)} {inside}, {s} {out}, {s} {limit}")
        i32 = vector("i32", lanes)
        return f.op(f"trunc {i32} {f.op(f'fptosi {s} {out} to {i32}')} to {t}")
    below = f.op(f"fcmp olt {s} {x}, {constant(least, source, lanes)}")
    above = f.op(f"fcmp oge {s} {x}, {constant(beyond, source, lanes)}")
    out = x
    for outside in (below, above, f.op(f"fcmp uno {s} {x}, {zero}")):
        out = f.op(f"select {vector('i1', lanes)} {outside}, {s} {zero}, {s} {out}")
    out = f.op(f"fpto{'s' if signed else 'u'}i {s} {out} to {t}")
    for outside, end in ((above, beyond - 1), (below, least)):
        out = f.op(f"select {vector('i1', lanes)} {outside}, {t} {constant(end, target, lanes)}, {t} {out}")
    return out


def bitcast(f: Block, x: str, source: ScalarType, target: ScalarType, lanes: int) -> str:
    s, t = _typed(source, lanes), _typed(target, lanes)
    return x if s == t else f.op(f"bitcast {s} {x} to {t}")
