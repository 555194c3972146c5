"""What gather and scatter share: dimension numbers, index modes, and their checks."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.index_type import INDEX

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


class GatherDimensionNumbers(NamedTuple):
    """Which dimensions play which part in a gather.

    Args:
      offset_dims: dimensions of the result that run over a slice.
      collapsed_slice_dims: dimensions of the operand whose slice has size 1 and leaves no dimension.
      start_index_map: for each component of an index vector, the operand dimension that it indexes.
      operand_batching_dims: dimensions of the operand that are batched with those of the indices.
      start_indices_batching_dims: their counterparts in the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which dimensions play which part in a scatter.

    Args:
      update_window_dims: dimensions of the updates that run over a window.
      inserted_window_dims: dimensions of the operand in which a window has size 1 and that the
        updates do not have.
      scatter_dims_to_operand_dims: for each component of an index vector, the operand dimension.
      operand_batching_dims, scatter_indices_batching_dims: as for gather.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(enum.Enum):
    """What an index out of bounds does.

    CLIP moves the window inside, FILL_OR_DROP gives a fill value in gathers and drops the update in
    scatters, PROMISE_IN_BOUNDS asserts that there is none (one that is there all the same is clipped
    by gathers and dropped by scatters).
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of a name. Raises ValueError for an unknown one."""
        if isinstance(s, GatherScatterMode):
            return s
        try:
            return _MODES[s]
        except (KeyError, TypeError):
            raise ValueError(f'Unknown gather mode "{s}"') from None

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


def check_index_dtype(name: str, aval: Any) -> None:
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise ValueError("indices must have an integer type")
    if not aval.shape:
        raise TypeError(f"{name[0].upper()}{name[1:]} index leaf dimension must be within [0, rank(indices) + 1). "
                        f"rank(indices) is 0 and {name} index leaf dimension is -1.")


def check_sorted(name: str, what: str, dims: Sequence[int]) -> None:
    if list(dims) != sorted(dims):
        raise TypeError(f"{what} in {name} op must be sorted; got {tuple(dims)}")


def check_distinct(name: str, what: str, dims: Sequence[int]) -> None:
    if len(set(dims)) != len(dims):
        raise TypeError(f"{what} in {name} op must not repeat; got: {tuple(dims)}.")


def check_within(name: str, what: str, dims: Sequence[int], bound: int) -> None:
    for d in dims:
        if not 0 <= d < bound:
            raise TypeError(f"Invalid {what} set in {name} op; valid range is [0, {bound}); got: {d}.")


def check_disjoint(name: str, what: str, dims: Sequence[int], other: str, other_dims: Sequence[int]) -> None:
    if set(dims) & set(other_dims):
        raise TypeError(f"{what} and {other} in {name} op must be disjoint; got: {tuple(dims)} and "
                        f"{tuple(other_dims)}.")


def check_batching(name: str, index_name: str, operand: Any, indices: Any, operand_dims: Sequence[int],
                   index_dims: Sequence[int]) -> None:
    """Checks the batching dimensions that gather and scatter share."""
    check_sorted(name, "operand_batching_dims", operand_dims)
    check_distinct(name, "operand_batching_dims", operand_dims)
    check_within(name, "operand_batching_dims", operand_dims, len(operand.shape))
    check_distinct(name, index_name, index_dims)
    check_within(name, index_name, index_dims, len(indices.shape))
    if len(indices.shape) - 1 in index_dims:
        raise TypeError(f"{name[0].upper()}{name[1:]} op cannot have the index vector dimension as a batching "
                        f"dimension; got {len(indices.shape) - 1}.")
    if len(operand_dims) != len(index_dims):
        raise TypeError(f"{name[0].upper()}{name[1:]} op requires equal numbers of operand_batching_dims and "
                        f"{index_name}, got operand_batching_dims of {tuple(operand_dims)} and {index_name} of "
                        f"{tuple(index_dims)}.")
    operand_sizes = tuple(operand.shape[d] for d in operand_dims)
    index_sizes = tuple(indices.shape[d] for d in index_dims)
    if operand_sizes != index_sizes:
        raise TypeError(f"{name[0].upper()}{name[1:]} op requires operand batching dimensions and indices batching "
                        f"dimensions to have the same shape, got operand_batching_dims of sizes {operand_sizes} and "
                        f"{index_name} of sizes {index_sizes}.")


def check_index_map(name: str, what: str, index_map: Sequence[int], operand: Any, indices: Any) -> None:
    """Checks the map from components of an index vector to operand dimensions."""
    rank = len(operand.shape)
    depth = indices.shape[-1]
    if len(index_map) != depth:
        raise TypeError(
            f"{name[0].upper()}{name[1:]} op has {len(index_map)} elements in {what} and the bound of dimension "
            f"index_vector_dim={len(indices.shape) - 1} of indices is {depth}. These two numbers must be equal.")
    for i, d in enumerate(index_map):
        if not 0 <= d < rank:
            suffix = " mapping" if name == "scatter" else ""
            raise TypeError(f"Invalid {what}{suffix}; domain is [0, {rank}), got: {i}->{d}.")
    check_distinct(name, what, index_map)


def starts(b: Builder, indices: Any, position: Sequence[Any], limits: Sequence[int],
           clamp: bool) -> tuple[list[Any], Any]:
    """The components of the index vector at a position of the indices, for the loop builder.

    `limits[k]` is the largest component `k` with which a window stays inside. Returns the components,
    clamped into bounds on demand, and the condition that all of them were inside: None where that is known.
    """
    components = []
    inside = None
    unsigned = indices.dtype.kind == "u"
    for k, limit in enumerate(limits):
        start = indices.at([*position, b.index(k)])
        if unsigned and indices.dtype.itemsize == 8:
            # No 64-bit index type holds all of these: what is beyond every array is brought near.
            start = b.min(start, b.const(2**62, indices.dtype))
        start = b.cast(start, INDEX)
        bound = b.index(limit)
        if not clamp:
            ok = b.le(start, bound)
            if not unsigned:
                ok = b.and_(ok, b.ge(start, b.index(0)))
            if not b.holds(ok):
                inside = ok if inside is None else b.and_(inside, ok)
        else:
            start = b.min(start if unsigned else b.max(start, b.index(0)), bound)
        components.append(start)
    return components, inside


def shape_of(x: Any) -> tuple[int, ...]:
    return get_aval(x).shape
