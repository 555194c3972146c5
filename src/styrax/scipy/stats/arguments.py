"""Arguments of distributions: constants that go with them, and distances from the location in scales."""

from __future__ import annotations

from typing import Any

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.numpy.promotion import convert, dtype_of


def number(x: Any, like: Any) -> Array:
    """A constant of the dtype of an operand; weak beside a number of Python's, but not beside a weak array."""
    return convert(x, dtype_of(like), type(like) in dtypes.python_scalars)


def standardised(x: Any, loc: Any, scale: Any) -> Array:
    """(x - loc) / scale."""
    return lax.div(lax.sub(x, loc), scale)
