"""Operands of special functions: real ones, and constants of their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.nn.exponentials import logsumexp as logsumexp
from styrax.numpy.promotion import dtype_of, promote_args_inexact
from styrax.numpy.promotion import number_like as number


def zero(x: Any) -> Array:
    return number(0, x)


def reals(name: str, *args: Any) -> list[Any]:
    """Arguments promoted to floats. Raises ValueError for complex ones."""
    promoted = promote_args_inexact(name, *args)
    if dtypes.issubdtype(dtype_of(promoted[0]), np.complexfloating):
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return promoted
