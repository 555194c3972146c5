"""Sizes as numbers: what a program that is generic in its sizes computes with (the count in a mean)."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.avals import ShapedArray

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

size_value_p = Primitive("dim_as_value")
size_value_p.declare(sizes=frozenset(("size",)))


@size_value_p.def_abstract_eval
def _size_value_abstract(*, size: Any, dtype: Any) -> ShapedArray:
    return ShapedArray((), dtype)


def _size_value_loops(b: Builder, *, size: Any, dtype: Any) -> Any:
    return b.value((), dtype, lambda _: b.cast(b.index(size), dtype))


rules.loops[size_value_p] = _size_value_loops
# Programs for XLA have sizes that are fixed: asking for one as an integer fixes it.
rules.stablehlos[size_value_p] = lambda m, *, size, dtype: m.const(np.asarray(operator.index(size), dtype))


def size_value(size: Any, dtype: Any) -> Any:
    """A size as a 0-d array of `dtype`: a constant where it is an integer, else a value known at run time."""
    if isinstance(size, int):
        return np.asarray(size, dtype)[()]
    return size_value_p.bind(size=size, dtype=np.dtype(dtype))
