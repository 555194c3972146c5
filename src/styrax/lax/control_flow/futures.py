"""Collectives that are started in one place of a program and waited for in another.

Between the two the program may compute what does not need the result. Compilers order operations by what these need,
so a future holds the result itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from styrax.core.types.typing import PyTree

from ..collectives.communication import psum_scatter
from ..collectives.named_axes import AxisName

T = TypeVar("T")


class Future(Generic[T]):
    """A result that somebody is going to wait for."""

    __slots__ = ("_value",)

    def __init__(self, value: T):
        self._value = value

    def done(self) -> T:
        """The result, once it is there."""
        return self._value

    def __repr__(self) -> str:
        return f"Future({self._value!r})"


def psum_scatter_start(x: PyTree, axis_name: AxisName | Sequence[AxisName], *, scatter_dimension: int = 0,
                       axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False
                       ) -> Future[PyTree]:
    """Starts a `psum_scatter` of these arguments: `psum_scatter_start(...).done()` is its result.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis.
      scatter_dimension: the dimension that is dealt out.
      axis_index_groups: disjoint groups of positions that are summed and dealt out separately.
      tiled: whether each example gets a block of that dimension instead of one position of it.

    Raises:
      ValueError: where the dimension's size does not fit that of the axis.
    """
    return Future(psum_scatter(x, axis_name, scatter_dimension=scatter_dimension,
                               axis_index_groups=axis_index_groups, tiled=tiled))


__all__ = ["Future", "psum_scatter_start"]
