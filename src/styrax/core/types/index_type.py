"""The type of indices and sizes in lowered programs.

It is not the user's int64, though it has as many bits: an index is exact (it never wraps), and is kept as a polynomial
over loop variables and sizes, so that the strides of an access stay visible.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class IndexType:
    """The one value of it is `INDEX`."""

    __slots__ = ()
    kind = "i"
    itemsize = 8
    name = "index"

    def __repr__(self) -> str:
        return "index"


INDEX = IndexType()

ScalarType = np.dtype | IndexType


def scalar_type(dtype: Any) -> Any:
    """What `dtype` stands for as the type of a scalar: a NumPy dtype, or the type of indices."""
    return dtype if dtype is INDEX else np.dtype(dtype)


def numpy_type(dtype: ScalarType) -> np.dtype:
    """The NumPy dtype whose bits a scalar has in memory: indices are int64 there."""
    return dtype if isinstance(dtype, np.dtype) else np.dtype(np.int64)
