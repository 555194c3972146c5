"""Sizes as numbers: what a program that is generic in its sizes computes with (the count in a mean)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import is_symbolic

from .filling import full
from .joining import concatenate

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

size_value_p = Primitive("dim_as_value")
size_value_p.declare(sizes=frozenset(("size",)))


@size_value_p.def_abstract_eval
def _size_value_abstract(*, size: Any, dtype: Any, weak_type: bool) -> ShapedArray:
    return ShapedArray((), dtype, weak_type)


def _size_value_loops(b: Builder, *, size: Any, dtype: Any, weak_type: bool) -> Any:
    return b.value((), dtype, lambda _: b.cast(b.index(size), dtype))


rules.loops[size_value_p] = _size_value_loops
rules.stablehlos[size_value_p] = lambda m, *, size, dtype, weak_type: m.size(size, dtype)


@size_value_p.def_impl
def _no_value(*, size: Any, dtype: Any, weak_type: bool) -> Any:
    if not isinstance(size, int):
        raise NotImplementedError(f"Evaluation rule for 'dim_as_value' is not implemented: the symbolic size {size} "
                                  "has no value outside of programs that are exported.")
    return np.asarray(size, dtype)


def size_vector(sizes: Sequence[Any], dtype: Any) -> Any:
    """Sizes as a 1-d array of `dtype`."""
    if not any(map(is_symbolic, sizes)):
        return np.asarray(sizes, dtype)
    return concatenate([full((1,), size_value(n, dtype), dtype) for n in sizes], 0)


def size_value(size: Any, dtype: Any, weak_type: bool = False) -> Any:
    """A size as a 0-d array of `dtype`: a constant where it is an integer, else a value known at run time."""
    if isinstance(size, int):
        return np.asarray(size, dtype)[()]
    return size_value_p.bind(size=size, dtype=np.dtype(dtype), weak_type=weak_type)
