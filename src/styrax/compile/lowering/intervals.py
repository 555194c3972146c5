"""Intervals of integers: what the result of an operation lies within (interval arithmetic, R. Moore, 1966)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.types.index_type import INDEX, ScalarType
from ..ir.expr import UNBOUNDED, Expr, const_value
from .number_types import NARROW_INTS, is_integer

Interval = tuple[int, int]


def of_type(dtype: ScalarType) -> Interval:
    """All integers of a type."""
    if dtype in NARROW_INTS:
        bits, signed = NARROW_INTS[dtype]
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if dtype is INDEX:
        return UNBOUNDED
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def of(x: Expr) -> Interval:
    """What the value of an integer lies within."""
    return of_type(x.dtype) if x.bounds == UNBOUNDED else x.bounds


def within(x: Interval, limits: Interval) -> Interval:
    """The interval if it lies within limits; else a result may have wrapped, and nothing is known."""
    return x if limits[0] <= x[0] and x[1] <= limits[1] else UNBOUNDED


def where(condition: Expr, holds: bool, x: Expr) -> Interval:
    """What the value of an integer lies within where a condition holds, or does not."""
    known = of(x)
    if condition.op not in ("lt", "le", "gt", "ge") or not is_integer(condition.args[0].dtype):
        return known
    compared, offset = condition.args[0], 0
    if x.op == "add" and x.args[0] is compared and x.args[1].op == "const" and x.bounds != UNBOUNDED:
        offset = int(const_value(x.args[1]))  # (that does not wrap)
    elif x is not compared:
        return known
    low, high = of(compared)
    least, most = of(condition.args[1])
    if (condition.op in ("lt", "le")) == holds:
        high = min(high, most - (condition.op == "lt" or condition.op == "ge"))
    else:
        low = max(low, least + (condition.op == "gt" or condition.op == "le"))
    return (low + offset, high + offset) if low <= high else known


def result(name: str, dtype: ScalarType, x: Interval, y: Interval) -> Interval:
    """What an operation gives for operands within `x` and `y`: `UNBOUNDED` where it may wrap, or nobody knows."""
    rule = _RULES.get(name)
    if name == "shr_arith" and of_type(dtype)[0] == 0 and 2 * x[1] > of_type(dtype)[1]:
        return UNBOUNDED  # the highest bit, which may be set, is copied
    found = rule(x, y) if rule is not None else None
    return UNBOUNDED if found is None else found if dtype is INDEX else within(found, of_type(dtype))


def _products(x: Interval, y: Interval) -> Interval:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _quotients(x: Interval, y: Interval) -> Interval | None:
    """Of integers, rounded towards zero; what is divided by zero has a value of its own."""
    return None if y[0] <= 0 or x[0] < 0 else (x[0] // y[1], x[1] // y[0])


def _remainders(x: Interval, y: Interval) -> Interval | None:
    """With the dividend's sign."""
    if y[0] <= 0:
        return None
    return max(x[0], 1 - y[1]) if x[0] < 0 else 0, min(x[1], y[1] - 1) if x[1] > 0 else 0


def _common_bits(x: Interval, y: Interval) -> Interval | None:
    """No more than an operand that is not negative."""
    tops = [high for low, high in (x, y) if low >= 0]
    return (0, min(tops)) if tops else None


def _shifted(x: Interval, y: Interval) -> Interval | None:
    return (0, x[1] >> max(0, min(y[0], 64))) if x[0] >= 0 and y[0] >= 0 else None


_RULES: dict[str, Callable[[Interval, Interval], Interval | None]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "mul": _products,
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "div": _quotients,
    "rem": _remainders,
    "and": _common_bits,
    "shr_logical": _shifted,
    "shr_arith": _shifted,
}
