"""Integers divided by one that all lanes have: multiplied with its reciprocal, which loops that do not change it need
once. Processors have no instructions for vectors of integer quotients."""

from __future__ import annotations

from typing import NamedTuple

from ..compile.lowering.number_types import is_signed
from ..core.types.index_type import ScalarType
from .instructions import F32, F64, Block, bits_of, constant, element_type, literal, splat, suffix, vector


def known(op: str, dtype: ScalarType) -> bool:
    """Whether an operation is a division that this module knows."""
    return op in ("div", "rem") and dtype.kind in "iu" and bits_of(dtype) <= 32


class Reciprocal(NamedTuple):
    """What all elements are multiplied with to be divided by one integer: the reciprocal of its size; all bits where it
    is negative, else none; and whether it is 0."""

    factor: str
    sign: str
    by_zero: str


def reciprocal(f: Block, dtype: ScalarType, lanes: int, y: str) -> Reciprocal:
    """That of a divisor that all lanes have.

    In floating-point numbers of p bits, 1/y is rounded by at most 2**-p of it, and so is each product. With a factor of
    1 + 2**(2 - p), x/y comes out no less than it is, for all roundings, and by less than 2**(4 - p) of it too large.
    From the next integer it is 1/y away at least: of integers of up to n bits, more than 2**-(n + 1) of that. With
    n + 1 <= p - 4 it does not get there, and cutting the fraction off gives the quotient exactly.
    """
    t, c = vector(element_type(dtype), lanes), vector("i1", lanes)
    part, real, digits = _real_for(dtype)
    wide = vector(part, lanes)
    by_zero = f.op(f"icmp eq {t} {y}, {constant(0, dtype, lanes)}")
    sign = f.op(f"ashr {t} {y}, {constant(bits_of(dtype) - 1, dtype, lanes)}") if is_signed(dtype) else ""
    size = f.op(f"{'s' if sign else 'u'}itofp {t} {y} to {wide}")
    if sign:
        fabs = f"{wide} @llvm.fabs.{suffix(part, lanes)}({wide}"
        f.declare(f"declare {fabs})")
        size = f.op(f"call {fabs} {size})")
    one, more = (splat(literal(1 + v, real), part, lanes) for v in (0.0, 2.0 ** (2 - digits)))
    size = f.op(f"select {c} {by_zero}, {wide} {one}, {wide} {size}")
    return Reciprocal(f.op(f"fmul {wide} {f.op(f'fdiv {wide} {one}, {size}')}, {more}"), sign, by_zero)


def divided(f: Block, op: str, dtype: ScalarType, lanes: int, x: str, y: str, by: Reciprocal) -> str:
    """`x` divided by `y`, or what is left of it."""
    t, c = vector(element_type(dtype), lanes), vector("i1", lanes)
    wide = vector(_real_for(dtype)[0], lanes)
    kind = "s" if by.sign else "u"
    q = f.op(f"fmul {wide} {f.op(f'{kind}itofp {t} {x} to {wide}')}, {by.factor}")
    q = f.op(f"fpto{kind}i {wide} {q} to {t}")
    if by.sign:  # (the smallest number divided by -1 is itself, wrapped)
        q = f.op(f"sub {t} {f.op(f'xor {t} {q}, {by.sign}')}, {by.sign}")
    if op == "div":
        return f.op(f"select {c} {by.by_zero}, {t} {constant(-1, dtype, lanes)}, {t} {q}")
    rest = f.op(f"sub {t} {x}, {f.op(f'mul {t} {q}, {y}')}")
    return f.op(f"select {c} {by.by_zero}, {t} {x}, {t} {rest}")


def _real_for(dtype: ScalarType) -> tuple[str, ScalarType, int]:
    """The floating-point numbers that integers are divided as, and the bits of those."""
    return ("double", F64, 53) if bits_of(dtype) == 32 else ("float", F32, 24)
