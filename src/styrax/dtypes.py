"""Types of array elements, and how they are promoted."""

from __future__ import annotations

from .core.types.dtypes import (
    canonicalize_dtype,
    finfo,
    iinfo,
    issubdtype,
    itemsize_bits,
    result_type,
    scalar_type_of,
)
from .core.types.promotion_lattice import TypePromotionError, bfloat16, extended, float0, prng_key

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]
