"""Where a kernel stands in its grid: `program_id` and `num_programs`.

Both are equations of the kernel itself, also where they are asked for in a loop or branch inside: the kernel's
trace is kept at hand here, and what is written into it is captured by the traces inside like any other value.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ...core.arrays.array import Array
from ...core.programs.primitive import Primitive
from ...core.tracing.trace import Trace, set_current_trace
from ...core.types.avals import ShapedArray, shaped

program_id_p = Primitive("program_id")
num_programs_p = Primitive("num_programs")


@program_id_p.def_abstract_eval
@num_programs_p.def_abstract_eval
def _index_aval(*, axis: int) -> ShapedArray:
    return shaped((), np.dtype(np.int32))


class _Kernels(threading.local):
    """The kernels that are being traced, the innermost last, with their grids; None for a size known only later."""

    def __init__(self) -> None:
        self.stack: list[tuple[Trace, Sequence[int | None]]] = []


_kernels = _Kernels()


@contextmanager
def inside_kernel(trace: Trace, grid: Sequence[int | None]) -> Iterator[None]:
    """Makes indices available to what `trace` writes down."""
    _kernels.stack.append((trace, grid))
    try:
        yield
    finally:
        _kernels.stack.pop()


def _kernel(name: str, axis: int) -> tuple[Trace, int, int | None]:
    """The kernel's trace, the axis counted from the front, and the grid's size there."""
    assert _kernels.stack, f"{name} is known inside of kernels only"
    trace, grid = _kernels.stack[-1]
    position = operator.index(axis)
    if not -len(grid) <= position < len(grid):
        raise ValueError(f"Axis {axis} is out of bounds for grid {tuple(grid)}")
    return trace, position % len(grid), grid[position]


def program_id(axis: int) -> Array:
    """The kernel's index in the grid along an axis.

    Args:
      axis: the dimension of the grid. Dimensions that `vmap` adds are not counted.

    Returns:
      an int32 scalar.

    Raises:
      ValueError: the grid has no such axis.
      TypeError: the axis is no integer.
      AssertionError: called outside of a kernel.
    """
    trace, axis, _ = _kernel("program_id", axis)
    with set_current_trace(trace):
        return program_id_p.bind(axis=axis)


def num_programs(axis: int) -> int | Array:
    """The size of the grid along an axis: an integer, or an int32 scalar where it is known only when the kernel runs.

    Raises:
      ValueError: the grid has no such axis.
      TypeError: the axis is no integer.
      AssertionError: called outside of a kernel.
    """
    trace, axis, size = _kernel("num_programs", axis)
    if size is not None:
        return size
    with set_current_trace(trace):
        return num_programs_p.bind(axis=axis)
