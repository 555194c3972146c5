"""Kinds of numbers: narrow integers and small floats, which are computed in wider types, complex numbers, the rest."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ...core.types.index_type import ScalarType
from ..ir.expr import F32, F64

BF16 = np.dtype(ml_dtypes.bfloat16)
F16 = np.dtype(np.float16)
C64 = np.dtype(np.complex64)
C128 = np.dtype(np.complex128)

NARROW_INTS = {
    np.dtype(getattr(ml_dtypes, name)): (int(name[-1]), not name.startswith("u"))
    for name in ("int2", "int4", "uint2", "uint4")
    if hasattr(ml_dtypes, name)
}
SMALL_FLOATS = {BF16, F16} | {
    np.dtype(getattr(ml_dtypes, name))
    for name in dir(ml_dtypes)
    if name.startswith("float") and name != "float_" and isinstance(getattr(ml_dtypes, name), type)
}


def is_complex(dtype: ScalarType) -> bool:
    return dtype.kind == "c"


def is_float(dtype: ScalarType) -> bool:
    return dtype == F32 or dtype == F64 or dtype in SMALL_FLOATS


def is_signed(dtype: ScalarType) -> bool:
    if dtype in NARROW_INTS:
        return NARROW_INTS[dtype][1]
    return dtype.kind == "i"


def is_integer(dtype: ScalarType) -> bool:
    return dtype.kind in "iu" or dtype in NARROW_INTS


def part_dtype(dtype: ScalarType) -> ScalarType:
    return F32 if dtype == C64 else F64
