"""Ramps: indices that move evenly from lane to lane, compared and converted in elements no wider than they need.

An index has 64 bits, so that the lanes of eight floats would be two vectors of indices, or four. But a comparison of
such an index hangs on its first lane alone: x + step·k < 0 where step·k < -x, and the left side is a constant vector.

    icmp slt <8 x i64> <i, i + 1, …>, splat (n)    is    icmp slt <8 x i32> <0, 1, …>, splat (n - i)
"""

from __future__ import annotations

from collections.abc import Callable

from ..compile.ir.expr import BOOL
from ..compile.lowering.number_types import NARROW_INTS, is_float
from .instructions import Block, ScalarType, bits_of, element_type, vector

COMPARISONS = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
INT32 = (-(1 << 31), (1 << 31) - 1)

Splat = Callable[[str, str, int], str]  # a scalar's name, its type, and in how many lanes it is wanted


def constant(step: int, bits: int, lanes: int) -> str:
    """step·k in lane k."""
    return f"<{', '.join(f'i{bits} {step * k}' for k in range(lanes))}>"


def compared(f: Block, spread: Splat, op: str, first: str, bounds: tuple[int, int], step: int, lanes: int,
             vector_bytes: int) -> str:
    """Where x + step·k compares with zero as `op` says, for x of a name `first` that lies within bounds."""
    last = step * (lanes - 1)
    least, most = min(0, last) - 1, max(0, last) + 1  # numbers beyond these compare as they do
    bits = min(64, max(8, 8 * vector_bytes // lanes))
    while bits < 64 and not (-(1 << bits - 1) <= least and most < 1 << bits - 1):
        bits *= 2
    bound, t = f.op(f"sub i64 0, {first}"), f"i{bits}"
    if bits < 64:
        low, high = -bounds[1], -bounds[0]
        for inside, order, end in ((low >= -(1 << bits - 1), "sgt", least), (high < 1 << bits - 1, "slt", most)):
            if not inside:
                nearer = f.op(f"icmp {order} i64 {bound}, {end}")
                bound = f.op(f"select i1 {nearer}, i64 {bound}, i64 {end}")
        bound = f.op(f"trunc i64 {bound} to {t}")
    return f.op(f"icmp {COMPARISONS[op]} {vector(t, lanes)} {constant(step, bits, lanes)}, {spread(bound, t, lanes)}")


def converts(target: ScalarType, bounds: tuple[int, int]) -> bool:
    """Whether numbers within bounds are converted to a dtype by way of narrower ones than indices."""
    if is_float(target):
        return INT32[0] <= bounds[0] and bounds[1] <= INT32[1]
    return target not in NARROW_INTS and target != BOOL and bits_of(target) <= 32


def converted(f: Block, spread: Splat, first: str, target: ScalarType, step: int, lanes: int) -> str:
    """x + step·k as numbers of a dtype, for x of a name `first`."""
    bits = 32 if is_float(target) else bits_of(target)
    t, v = f"i{bits}", vector(f"i{bits}", lanes)
    every = spread(f.op(f"trunc i64 {first} to {t}"), t, lanes)
    numbers = f.op(f"add {v} {every}, {constant(step, bits, lanes)}")
    return f.op(f"sitofp {v} {numbers} to {vector(element_type(target), lanes)}") if is_float(target) else numbers


def spread(f: Block, splat: Splat, first: str, step: int, lanes: int) -> str:
    """x + step·k as indices, for x of a name `first`."""
    return f.op(f"add <{lanes} x i64> {splat(first, 'i64', lanes)}, {constant(step, 64, lanes)}")


def wrapped(value: int, bits: int) -> int:
    """A number modulo so many bits, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
