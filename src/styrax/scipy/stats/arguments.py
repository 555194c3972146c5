"""Arguments of distributions: constants of their dtype, and distances from the location in scales."""

from __future__ import annotations

from typing import Any

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.numpy.promotion import convert, dtype_of


def number(x: Any, like: Any) -> Array:
    """A constant of the dtype of an operand."""
    return convert(x, dtype_of(like))


def standardised(x: Any, loc: Any, scale: Any) -> Array:
    """(x - loc) / scale."""
    return lax.div(lax.sub(x, loc), scale)
