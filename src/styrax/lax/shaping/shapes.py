"""Shapes, sizes and axes as users write them, checked and made plain."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.tracing.errors import origin
from styrax.core.tracing.trace import Tracer
from styrax.core.types.dims import canonical_dim

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def canonical_shape(shape: Any, context: str = "") -> tuple:
    """A shape as a tuple of ints (or symbolic sizes).

    Raises TypeError for anything but a sequence of integers.
    """
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        return (int(shape),)
    try:
        return tuple(map(canonical_dim, shape))
    except TypeError:
        pass
    where = f" {context}" if context else ""
    traced = [d for d in (shape if isinstance(shape, Sequence) else (shape,)) if isinstance(d, Tracer)]
    if traced:
        where += "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
        where += "".join(map(origin, traced))
    raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.{where}")


def check_shape(name: str, shape: tuple) -> None:
    for d in shape:
        if d < 0:
            raise TypeError(f"{name} shape must have every element be nonnegative, got {shape}.")


def canonical_axis(axis: int, ndim: int) -> int:
    """An axis counted from the front. Raises ValueError for one that does not exist."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def size_of(shape: Sequence[Any]) -> Any:
    return math.prod(shape)


def is_one(d: Any) -> bool:
    return type(d) is int and d == 1


def extent(b: Builder, d: Any) -> Any:
    """A size as a scalar of the CPU lowering."""
    return b.index(d)
