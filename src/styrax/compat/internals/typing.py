"""Types for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arrays.array import Array
from ...typing import ArrayLike, DTypeLike, SupportsDType

DType = np.dtype
Shape = Sequence[int]
DimSize = int | Any

__all__ = ["Array", "ArrayLike", "DType", "DTypeLike", "DimSize", "Shape", "SupportsDType"]
