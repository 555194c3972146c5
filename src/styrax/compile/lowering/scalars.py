"""Arithmetic on scalar expressions, as lowering rules write it: `b.add(x, y)`, `b.exp(x)`, `b.cast(x, dtype)`.

Small floats (bfloat16, float16, float8) compute in float32 and round after every operation; complex numbers
are pairs and are expanded here; integers of index type go through the polynomial algebra of `expr`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.types.index_type import INDEX, ScalarType, scalar_type
from ..ir.expr import BOOL, F32, F64, SAFE, UNBOUNDED, Arena, Expr, Index, const_value
from . import complex_numbers, float_bits, intervals
from .narrowing import narrowed, shortened
from .number_types import (
    C64,
    C128,
    F16,
    NARROW_INTS,
    SMALL_FLOATS,
    is_complex,
    is_float,
    is_integer,
    is_signed,
    part_dtype,
)
from .rewrites import BY_OPERATION, LEVELS, rewrite


def _unary_method(name: str) -> Callable[[Scalars, Expr], Expr]:
    def method(self: Scalars, x: Expr) -> Expr:
        return self._unary(name, x)

    method.__name__ = name
    return method


def _binary_method(name: str) -> Callable[[Scalars, Expr, Expr], Expr]:
    def method(self: Scalars, x: Expr, y: Expr) -> Expr:
        return self._binary(name, x, y)

    method.__name__ = name
    return method


_EXTREMA = frozenset(("min", "max"))
_ASSOCIATIVE = frozenset(("add", "mul", "and", "or", "xor"))  # of integers


class Scalars:
    """The arithmetic of lowering rules, on expressions of an arena. `numerics` says which rewrites apply: see
    `rewrites`."""

    def __init__(self, arena: Arena, numerics: int = LEVELS["default"]):
        self.arena, self.numerics = arena, numerics
        self.carried: set[Expr] = set()  # what a turn of a loop has from the one before
        self.node, self.int = arena.node, arena.int
        self.iadd, self.isub, self.imul = arena.iadd, arena.isub, arena.imul
        self.floordiv, self.floormod = arena.floordiv, arena.floormod

    # -- leaves ----------------------------------------------------------------------------------
    def const(self, value: Any, dtype: Any) -> Expr:
        dtype = scalar_type(dtype)
        if is_complex(dtype):
            value = complex(value)
            part = part_dtype(dtype)
            return self.complex(self.const(value.real, part), self.const(value.imag, part))
        if dtype in NARROW_INTS:
            return self.node("const", (), dtype, _narrow_const(int(value)))
        return self.arena.const(value, dtype)

    # -- complex numbers ---------------------------------------------------------------------------
    def complex(self, re: Expr, im: Expr) -> Expr:
        return self.node("complex", (re, im), C64 if re.dtype == F32 else C128)

    def real(self, x: Expr) -> Expr:
        return x.args[0] if x.op == "complex" else x

    def imag(self, x: Expr) -> Expr:
        return x.args[1] if x.op == "complex" else self.const(0, x.dtype)

    def conj(self, x: Expr) -> Expr:
        return self.complex(self.real(x), self.neg(self.imag(x))) if is_complex(x.dtype) else x

    # -- the two generic forms -------------------------------------------------------------------
    def _unary(self, name: str, x: Expr) -> Expr:
        dtype = x.dtype
        if is_complex(dtype):
            return complex_numbers.unary[name](self, x)
        if dtype in SMALL_FLOATS:
            return self.cast(self._unary(name, self.cast(x, F32)), dtype)
        if name in BY_OPERATION and is_float(dtype):
            simpler = rewrite(self, name, (x,), self.numerics)
            if simpler is not None:
                return simpler
        return self.node(name, (x,), dtype)

    def _binary(self, name: str, x: Expr, y: Expr) -> Expr:
        dtype = x.dtype
        if dtype != y.dtype:
            raise TypeError(f"{name}: scalars of different types {dtype} and {y.dtype}")
        if is_complex(dtype):
            return complex_numbers.binary[name](self, x, y)
        if dtype in SMALL_FLOATS:
            return self.cast(self._binary(name, self.cast(x, F32), self.cast(y, F32)), dtype)
        if x.op == "const" and y.op == "const" and name in _folds and dtype not in NARROW_INTS:
            with np.errstate(all="ignore"):
                return self.const(_folds[name](const_value(x), const_value(y)), dtype)
        if name in BY_OPERATION and is_float(dtype):
            simpler = rewrite(self, name, (x, y), self.numerics)
            if simpler is not None:
                return simpler
        if dtype in NARROW_INTS and name in ("add", "sub", "mul", "shl", "neg"):
            return self.node("wrap", (self.node(name, (x, y), dtype),), dtype)
        bounds = intervals.result(name, dtype, intervals.of(x), intervals.of(y)) if dtype.kind in "iu" else UNBOUNDED
        if bounds[0] == bounds[1]:
            return self.const(bounds[0], dtype)
        if self.carried and (name in _EXTREMA or name in _ASSOCIATIVE and is_integer(dtype)):
            x, y = self._carried_last(name, x, y)
        return self.node(name, (x, y), dtype, None, bounds)

    def _carried_last(self, name: str, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """Operands of an associative operation, reassociated for latency: what a turn of a loop has from the one before
        enters last, so that the chain from turn to turn is one operation long."""
        for chain, other in ((x, y), (y, x)):
            if chain.op == name and self._is_carried(chain) and not self._is_carried(other):
                p, q = chain.args
                if self._is_carried(p) and not self._is_carried(q):
                    return p, self._binary(name, q, other)
                if self._is_carried(q) and not self._is_carried(p):
                    return q, self._binary(name, p, other)
        return x, y

    def _is_carried(self, e: Expr) -> bool:
        return not self.carried.isdisjoint(e.deps)

    # -- arithmetic ------------------------------------------------------------------------------
    def add(self, x: Expr, y: Expr) -> Expr:
        if x.dtype is INDEX and y.dtype is INDEX:
            return self.iadd(x, y)
        if x.dtype == BOOL:
            return self.node("or", (x, y), BOOL)
        return self._binary("add", x, y)

    def sub(self, x: Expr, y: Expr) -> Expr:
        if x.dtype is INDEX and y.dtype is INDEX:
            return self.isub(x, y)
        return self._binary("sub", x, y)

    def mul(self, x: Expr, y: Expr) -> Expr:
        if x.dtype is INDEX and y.dtype is INDEX:
            return self.imul(x, y)
        if x.dtype == BOOL:
            return self.node("and", (x, y), BOOL)
        if x is y and is_complex(x.dtype):
            return self._binary("mul", x, y)
        for a, c in ((x, y), (y, x)):
            if c.op == "const" and not is_complex(c.dtype) and c.dtype not in NARROW_INTS and const_value(c) == 1:
                return a
        return self._binary("mul", x, y)

    def div(self, x: Expr, y: Expr) -> Expr:
        """JAX's `div`: integers truncate towards zero, x / 0 is -1."""
        if _index_division(x, y):
            return self.floordiv(x, y)
        if (short := shortened(self, x, y)) is not None:
            return self.cast(self.div(*short), x.dtype)
        inverse = _inverse(y) if self.numerics >= LEVELS["default"] and x.op != "const" else None
        if inverse is not None:  # (a rounding more, as XLA has it, and a tenth of the time)
            return self.mul(x, self.const(inverse, y.dtype))
        if self.numerics >= LEVELS["default"] and x.op != "const" and _of_sizes(y):
            return self.mul(x, self._binary("div", self.const(1, y.dtype), y))
        return self._binary("div", x, y)

    def rem(self, x: Expr, y: Expr) -> Expr:
        """The remainder with the dividend's sign; x rem 0 is x for integers."""
        if _index_division(x, y):
            return self.floormod(x, y)
        if (short := shortened(self, x, y)) is not None:
            return self.cast(self.rem(*short), x.dtype)
        return self._binary("rem", x, y)

    def neg(self, x: Expr) -> Expr:
        if x.dtype is INDEX:
            return self.imul(x, -1)
        if x.op == "const" and x.dtype.kind in "if":
            with np.errstate(all="ignore"):
                return self.const(np.negative(const_value(x)), x.dtype)
        if x.dtype.kind in "iu":
            return self.node("neg", (x,), x.dtype, None, intervals.result("sub", x.dtype, (0, 0), intervals.of(x)))
        e = self._unary("neg", x)
        return self.node("wrap", (e,), x.dtype) if x.dtype in NARROW_INTS else e

    def abs(self, x: Expr) -> Expr:
        if is_integer(x.dtype) and not is_signed(x.dtype) or x.dtype == BOOL:
            return x
        if is_integer(x.dtype):
            return self.select(self.lt(x, self.const(0, x.dtype)), self.neg(x), x)
        return self._unary("abs", x)

    def sign(self, x: Expr) -> Expr:
        dtype = x.dtype
        if is_complex(dtype):
            return complex_numbers.unary["sign"](self, x)
        zero, one = self.const(0, dtype), self.const(1, dtype)
        if is_integer(dtype):
            if not is_signed(dtype):
                return self.select(self.eq(x, zero), zero, one)
            return self.select(self.gt(x, zero), one, self.select(self.lt(x, zero), self.const(-1, dtype), zero))
        if dtype in SMALL_FLOATS:
            return self.cast(self.sign(self.cast(x, F32)), dtype)
        nonzero = self.node("copysign", (one, x), dtype)
        return self.select(self.or_(self.eq(x, zero), self.ne(x, x)), self.add(x, x), nonzero)

    def min(self, x: Expr, y: Expr) -> Expr:
        """The smaller; NaN where either is NaN."""
        return self._extremum("min", x, y)

    def max(self, x: Expr, y: Expr) -> Expr:
        """The greater; NaN where either is NaN."""
        return self._extremum("max", x, y)

    def _extremum(self, name: str, x: Expr, y: Expr) -> Expr:
        if x is y:
            return x
        if is_integer(x.dtype) and x.dtype == y.dtype:
            for small, big in ((x, y), (y, x)):
                if intervals.of(small)[1] <= intervals.of(big)[0]:
                    return small if name == "min" else big
        if x.dtype is INDEX and y.dtype is INDEX:
            if (fewer := narrowed(x, y)) is not None:
                return self.cast(self._extremum(name, *fewer), INDEX)
            return self.node(name, (x, y), INDEX, None, intervals.result(name, INDEX, x.bounds, y.bounds))
        if x.dtype == BOOL:
            return self.node("and" if name == "min" else "or", (x, y), BOOL)
        return self._binary(name, x, y)

    def pow(self, x: Expr, y: Expr) -> Expr:
        return self._binary("pow", x, y)

    def ipow(self, x: Expr, n: int) -> Expr:
        """x to a Python integer's power, by repeated squaring."""
        if n < 0:
            return self.div(self.const(1, x.dtype), self.ipow(x, -n))
        if x.dtype in SMALL_FLOATS:
            return self.cast(self.ipow(self.cast(x, F32), n), x.dtype)
        out: Expr | None = None
        while n:
            if n & 1:
                out = x if out is None else self.mul(out, x)
            n >>= 1
            if n:
                x = self.mul(x, x)
        return self.const(1, x.dtype) if out is None else out

    # -- bits ------------------------------------------------------------------------------------
    def and_(self, x: Expr, y: Expr) -> Expr:
        for a, c in ((x, y), (y, x)):
            if c.dtype == BOOL and c.op == "const":
                return a if const_value(c) else c
            if a.op in ("lt", "gt") and c.op == "ne" and a.args == c.args:
                return a
        bounds = UNBOUNDED if x.dtype == BOOL else intervals.result("and", x.dtype, intervals.of(x), intervals.of(y))
        return self.node("and", (x, y), x.dtype, None, bounds)

    def or_(self, x: Expr, y: Expr) -> Expr:
        for a, c in ((x, y), (y, x)):
            if c.dtype == BOOL and c.op == "const":
                return c if const_value(c) else a
        return self.node("or", (x, y), x.dtype)

    def xor(self, x: Expr, y: Expr) -> Expr:
        return self.node("xor", (x, y), x.dtype)

    def not_(self, x: Expr) -> Expr:
        if x.dtype == BOOL and x.op == "const":
            return self.const(not const_value(x), BOOL)
        e = self.node("not", (x,), x.dtype)
        return self.node("wrap", (e,), x.dtype) if x.dtype in NARROW_INTS else e

    def shl(self, x: Expr, y: Expr) -> Expr:
        """Shifts by the width or more give 0."""
        return self._binary("shl", x, y)

    def shr_logical(self, x: Expr, y: Expr) -> Expr:
        return self._binary("shr_logical", x, y)

    def shr_arith(self, x: Expr, y: Expr) -> Expr:
        return self._binary("shr_arith", x, y)

    def popcount(self, x: Expr) -> Expr:
        return self.node("popcount", (x,), x.dtype, None, (0, 8 * x.dtype.itemsize))

    def clz(self, x: Expr) -> Expr:
        return self.node("clz", (x,), x.dtype, None, (0, 8 * x.dtype.itemsize))

    # -- comparisons -------------------------------------------------------------------------------
    def _compare(self, name: str, x: Expr, y: Expr) -> Expr:
        if x.dtype != y.dtype:
            raise TypeError(f"{name}: scalars of different types {x.dtype} and {y.dtype}")
        if is_complex(x.dtype):
            return complex_numbers.compare(self, name, x, y)
        if x.dtype in SMALL_FLOATS:
            return self._compare(name, self.cast(x, F32), self.cast(y, F32))
        known = None
        if x.dtype == BOOL and y.op == "const" and name in ("eq", "ne"):
            return x if const_value(y) == (name == "eq") else self.not_(x)
        if x.dtype is INDEX and _is_small(x) and _is_small(y):
            known = _decide(name, self.isub(x, y).bounds)
        elif x.op == "const" and y.op == "const" and x.dtype.kind in "iufb":
            known = _compare_folds[name](const_value(x), const_value(y))
        elif x.dtype.kind in "iu":
            (low, high), (least, most) = intervals.of(x), intervals.of(y)
            known = _decide(name, (low - most, high - least))
        if known is not None:
            return self.const(known, BOOL)
        return self.node(name, narrowed(x, y) or (x, y), BOOL)

    def eq(self, x: Expr, y: Expr) -> Expr:
        return self._compare("eq", x, y)

    def ne(self, x: Expr, y: Expr) -> Expr:
        return self._compare("ne", x, y)

    def lt(self, x: Expr, y: Expr) -> Expr:
        return self._compare("lt", x, y)

    def le(self, x: Expr, y: Expr) -> Expr:
        return self._compare("le", x, y)

    def gt(self, x: Expr, y: Expr) -> Expr:
        return self._compare("gt", x, y)

    def ge(self, x: Expr, y: Expr) -> Expr:
        return self._compare("ge", x, y)

    def select(self, condition: Expr, on_true: Expr, on_false: Expr) -> Expr:
        if on_true is on_false:
            return on_true
        if condition.op == "const":
            return on_true if const_value(condition) else on_false
        if is_complex(on_true.dtype):
            return self.complex(self.select(condition, self.real(on_true), self.real(on_false)),
                                self.select(condition, self.imag(on_true), self.imag(on_false)))
        bounds = UNBOUNDED
        if is_integer(on_true.dtype):
            a, c = intervals.where(condition, True, on_true), intervals.where(condition, False, on_false)
            bounds = min(a[0], c[0]), max(a[1], c[1])
        return self.node("select", (condition, on_true, on_false), on_true.dtype, None, bounds)

    # -- casts -------------------------------------------------------------------------------------
    def cast(self, x: Expr, dtype: Any) -> Expr:
        """JAX's convert_element_type: floats to integers truncate and saturate, NaN gives 0."""
        dtype = scalar_type(dtype)
        if x.dtype == dtype:
            return x
        if is_complex(dtype):
            part = part_dtype(dtype)
            return self.complex(self.cast(self.real(x), part),
                                self.cast(self.imag(x), part) if is_complex(x.dtype) else self.const(0, part))
        if is_complex(x.dtype):
            return self.ne(x, self.const(0, x.dtype)) if dtype == BOOL else self.cast(self.real(x), dtype)
        if dtype == BOOL:
            return self.ne(x, self.const(0, x.dtype))
        if x.op == "const" and dtype is INDEX:
            return self.int(int(const_value(x)))
        if x.op == "const" and x.dtype not in NARROW_INTS and dtype not in NARROW_INTS and (
                is_float(dtype) or is_integer(x.dtype) or x.dtype == BOOL):
            with np.errstate(all="ignore"):
                return self.const(np.asarray(const_value(x)).astype(dtype)[()], dtype)
        if x.dtype in SMALL_FLOATS:
            wide = self._decode(x)
            return wide if dtype == F32 else self.cast(wide, dtype)
        if dtype in SMALL_FLOATS:
            if x.dtype == F64 and dtype != F16:
                x = self.node("cast", (x,), F32)  # rounds twice as XLA does for the small types
            elif x.dtype != F64:
                x = self.cast(x, F32)
            return self._encode(x, dtype)
        bounds = (0, 1) if x.dtype == BOOL and is_integer(dtype) else UNBOUNDED
        if is_integer(dtype) and is_integer(x.dtype):
            bounds = intervals.within(intervals.of(x), intervals.of_type(dtype))
            if dtype is INDEX and not x.reads:
                index = self._as_index(x)
                if index is not None:
                    return index
        e = self.node("cast", (x,), dtype, None, bounds)
        if dtype in NARROW_INTS and is_integer(x.dtype):
            return self.node("wrap", (e,), dtype)
        return e

    def _as_index(self, x: Expr) -> Expr | None:
        """What is computed from loop variables without an overflow, as an index, whose steps show; else None."""
        if x.dtype is INDEX:
            return x
        if x.op == "const":
            return self.int(int(const_value(x)))
        if x.bounds == UNBOUNDED or x.op not in _ON_INDICES or any(not is_integer(a.dtype) for a in x.args):
            return None
        args = []
        for a in x.args:
            index = self._as_index(a)
            if index is None:
                return None
            args.append(index)
        if x.op == "cast":
            return args[0]
        if x.op in ("div", "rem") and not _index_division(*args):
            return None
        return getattr(self, x.op)(*args)

    def _decode(self, x: Expr) -> Expr:
        """A small float as float32, exactly."""
        return self.node("widen", (x,), F32)

    def _encode(self, x: Expr, dtype: ScalarType) -> Expr:
        """Rounds float32 (or float64, for float16) to a small float, to nearest even."""
        if x.op == "widen" and x.args[0].dtype == dtype:
            return x.args[0]
        return self.node("narrow", (x,), dtype)

    def bitcast(self, x: Expr, dtype: Any) -> Expr:
        """The same bits as another type of the same width."""
        dtype = scalar_type(dtype)
        return x if x.dtype == dtype else self.node("bitcast", (x,), dtype)

    # -- floats --------------------------------------------------------------------------------------
    def is_finite(self, x: Expr) -> Expr:
        if is_complex(x.dtype):
            return self.and_(self.is_finite(self.real(x)), self.is_finite(self.imag(x)))
        if x.dtype in SMALL_FLOATS:
            return self.is_finite(self.cast(x, F32))
        return self.lt(self.abs(x), self.const(np.inf, x.dtype))

    nextafter = float_bits.nextafter
    binade = float_bits.binade
    reduce_precision = float_bits.reduce_precision

    def add_bits(self, x: Expr, n: int) -> Expr:
        return self.add(x, self.const(n, x.dtype))

    def logistic(self, x: Expr) -> Expr:
        if is_complex(x.dtype):
            one = self.const(1, x.dtype)
            return self.div(one, self.add(one, self.exp(self.neg(x))))
        return self._unary("logistic", x)

    def lift(self, x: Any, like: Expr) -> Expr:
        return x if isinstance(x, Expr) else self.const(x, like.dtype)

    # -- functions ---------------------------------------------------------------------------------
    floor = _unary_method("floor")
    ceil = _unary_method("ceil")
    round_away = _unary_method("round_away")
    round_even = _unary_method("round_even")
    trunc = _unary_method("trunc")
    exp = _unary_method("exp")
    exp2 = _unary_method("exp2")
    log = _unary_method("log")
    log2 = _unary_method("log2")
    log1p = _unary_method("log1p")
    expm1 = _unary_method("expm1")
    sin = _unary_method("sin")
    cos = _unary_method("cos")
    tan = _unary_method("tan")
    asin = _unary_method("asin")
    acos = _unary_method("acos")
    atan = _unary_method("atan")
    sinh = _unary_method("sinh")
    cosh = _unary_method("cosh")
    tanh = _unary_method("tanh")
    asinh = _unary_method("asinh")
    acosh = _unary_method("acosh")
    atanh = _unary_method("atanh")
    sqrt = _unary_method("sqrt")
    rsqrt = _unary_method("rsqrt")
    cbrt = _unary_method("cbrt")
    erf = _unary_method("erf")
    erfc = _unary_method("erfc")
    erf_inv = _unary_method("erf_inv")
    lgamma = _unary_method("lgamma")
    digamma = _unary_method("digamma")
    bessel_i0e = _unary_method("bessel_i0e")
    bessel_i1e = _unary_method("bessel_i1e")
    atan2 = _binary_method("atan2")
    log_modulus = _binary_method("log_modulus")
    log1p_modulus = _binary_method("log1p_modulus")
    copysign = _binary_method("copysign")
    igamma = _binary_method("igamma")
    igammac = _binary_method("igammac")
    polygamma = _binary_method("polygamma")
    zeta = _binary_method("zeta")

    def betainc(self, a: Expr, b: Expr, x: Expr) -> Expr:
        if x.dtype in SMALL_FLOATS:
            return self.cast(self.betainc(*[self.cast(v, F32) for v in (a, b, x)]), x.dtype)
        return self.node("betainc", (a, b, x), x.dtype)


_ON_INDICES = frozenset(("cast", "add", "sub", "mul", "min", "max", "div", "rem"))
_folds = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_compare_folds = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                  "ge": np.greater_equal}


def _inverse(y: Expr) -> Any:
    """The reciprocal of a constant of float32 or float64, where both are normal numbers; else None."""
    if y.op != "const" or y.dtype not in (F32, F64):
        return None
    value, smallest = const_value(y), np.finfo(y.dtype).tiny  # type: ignore[arg-type]
    if not smallest <= abs(value) <= 1 / smallest:
        return None
    inverse = y.dtype.type(1) / value  # type: ignore[union-attr]
    return inverse if abs(inverse) >= smallest else None


def _of_sizes(y: Expr) -> bool:
    """Whether a divisor is computed from sizes that are known only at run time: where they are known, it is a constant,
    and results are to have the same bits."""
    return y.dtype in (F32, F64) and y.op != "const" and not y.deps and not y.reads


def _is_small(x: Expr) -> bool:
    return x.bounds[0] >= -SAFE and x.bounds[1] <= SAFE


def _index_division(x: Expr, y: Expr) -> bool:
    """Whether rounding down equals rounding to zero and the divisor is not zero."""
    return x.dtype is INDEX and y.bounds[0] > 0 and x.bounds[0] >= 0 and _is_small(x) and _is_small(y)


def _decide(name: str, difference: tuple[int, int]) -> bool | None:
    """A comparison x ? y from the bounds of x - y, where they decide it."""
    lo, hi = difference
    if name == "lt":
        return True if hi < 0 else False if lo >= 0 else None
    if name == "le":
        return True if hi <= 0 else False if lo > 0 else None
    if name == "gt":
        return True if lo > 0 else False if hi <= 0 else None
    if name == "ge":
        return True if lo >= 0 else False if hi < 0 else None
    if lo == hi == 0:
        return name == "eq"
    if hi < 0 or lo > 0:
        return name == "ne"
    return None


def _narrow_const(value: int) -> Any:
    return expr_const(np.int8(value))


def expr_const(value: Any) -> Any:
    from ..ir.expr import _Const

    return _Const(value)


__all__ = ["Scalars", "Index", "is_complex", "is_float", "is_integer", "is_signed", "part_dtype"]
