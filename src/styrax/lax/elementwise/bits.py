"""Bitwise operations and shifts, elementwise."""

from __future__ import annotations

import numpy as np

from .families import BITS, INTEGER, binary, unary

bitwise_and, and_p = binary(
    "bitwise_and", BITS, "The bits set in both operands; logical conjunction of booleans.", prim_name="and",
    jvp="zero",
    scalar=lambda b, x, y: b.and_(x, y),
    hlo="stablehlo.and",
    reference=np.bitwise_and,
)  # fmt: skip
bitwise_or, or_p = binary(
    "bitwise_or", BITS, "The bits set in either operand; logical disjunction of booleans.", prim_name="or",
    jvp="zero",
    scalar=lambda b, x, y: b.or_(x, y),
    hlo="stablehlo.or",
    reference=np.bitwise_or,
)  # fmt: skip
bitwise_xor, xor_p = binary(
    "bitwise_xor", BITS, "The bits set in exactly one operand.", prim_name="xor",
    jvp="zero",
    scalar=lambda b, x, y: b.xor(x, y),
    hlo="stablehlo.xor",
    reference=np.bitwise_xor,
)  # fmt: skip
bitwise_not, not_p = unary(
    "bitwise_not", BITS, "All bits inverted; logical negation of booleans.", prim_name="not",
    jvp="zero",
    scalar=lambda b, x: b.not_(x),
    hlo="stablehlo.not",
    reference=np.invert,
)  # fmt: skip
population_count, population_count_p = unary(
    "population_count", INTEGER, "The number of set bits of each element.",
    jvp="zero",
    scalar=lambda b, x: b.popcount(x),
    hlo="stablehlo.popcnt",
    reference=lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")),
)  # fmt: skip
clz, clz_p = unary(
    "clz", INTEGER, "The number of leading zero bits of each element.",
    jvp="zero",
    scalar=lambda b, x: b.clz(x),
    hlo="stablehlo.count_leading_zeros",
)  # fmt: skip
shift_left, shift_left_p = binary(
    "shift_left", INTEGER, "`x` shifted left by `y` bits; 0 for shifts by the width or more.",
    jvp="zero",
    scalar=lambda b, x, y: b.shl(x, y),
    hlo="stablehlo.shift_left",
    numpy_name="left_shift",
    reference=np.left_shift,
)  # fmt: skip
shift_right_logical, shift_right_logical_p = binary(
    "shift_right_logical", INTEGER,
    "`x` shifted right by `y` bits, filled with zeros; 0 for shifts by the width or more.",
    jvp="zero",
    scalar=lambda b, x, y: b.shr_logical(x, y),
    hlo="stablehlo.shift_right_logical",
    numpy_name="right_shift",
)  # fmt: skip
shift_right_arithmetic, shift_right_arithmetic_p = binary(
    "shift_right_arithmetic", INTEGER,
    "`x` shifted right by `y` bits, filled with its sign; the sign alone for shifts by the width or more.",
    jvp="zero",
    scalar=lambda b, x, y: b.shr_arith(x, y),
    hlo="stablehlo.shift_right_arithmetic",
    numpy_name="right_shift",
)  # fmt: skip
