"""Products of matrices whose rows, or contracted columns, fall into groups of run-time sizes; scaled products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.lax.reductions.contractions import DotDimensionNumbers, PrecisionLike

from ..casting import convert_element_type
from ..elementwise.arithmetic import mul, sub
from ..elementwise.bits import bitwise_and
from ..elementwise.comparisons import ge, lt, select
from ..elementwise.families import shape_of
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import broadcasted_iota, full_like
from ..shaping.reshaping import reshape, transpose
from .contractions import dot_general
from .cumulative import cumsum


class RaggedDotDimensionNumbers:
    """Which dimensions `ragged_dot_general` contracts, and which of them is cut into groups.

    Args:
      dot_dimension_numbers: as for `dot_general`.
      lhs_ragged_dimensions: the one dimension of the left operand that is cut into groups.
      rhs_group_dimensions: the dimension of the right operand that counts groups, or none.
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(
        self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Sequence[int], rhs_group_dimensions: Sequence[int]
    ):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dot_dimension_numbers
        self.dot_dimension_numbers = (
            (tuple(lhs_contract), tuple(rhs_contract)),
            (tuple(lhs_batch), tuple(rhs_batch)),
        )
        self.lhs_ragged_dimensions = tuple(lhs_ragged_dimensions)
        self.rhs_group_dimensions = tuple(rhs_group_dimensions)

    def _key(self) -> tuple:
        return (self.dot_dimension_numbers, self.lhs_ragged_dimensions, self.rhs_group_dimensions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedDotDimensionNumbers) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"RaggedDotDimensionNumbers(dot_dimension_numbers={self.dot_dimension_numbers}, "
            f"lhs_ragged_dimensions={self.lhs_ragged_dimensions}, rhs_group_dimensions={self.rhs_group_dimensions})"
        )


def _prefix(rank: int, numbers: RaggedDotDimensionNumbers) -> tuple[int, ...]:
    """The dimensions of the left operand that may have group sizes of their own: those outside the ragged one."""
    (contract, _), (batch, _) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    if ragged in batch:
        return batch[:batch.index(ragged)]
    if ragged in contract:
        return (*batch, *contract[:contract.index(ragged)])
    return (*batch, *(d for d in range(ragged) if d not in contract and d not in batch))


def _in_range(axis: int, rank: int, what: str, operand: str) -> None:
    if not 0 <= axis < rank:
        raise TypeError(f"ragged_dot_general requires {what} numbers to be nonnegative and less than the number of "
                        f"axes of the {operand} value, got {axis} for {operand} of rank {rank}.")


def _check_groups(lhs: tuple, rhs: tuple, sizes: tuple, numbers: RaggedDotDimensionNumbers) -> None:
    """Raises TypeError for shapes and dimensions that do not fit."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError("ragged_dot_general expects exactly one lhs ragged dimension.")
    (ragged,) = numbers.lhs_ragged_dimensions
    _in_range(ragged, len(lhs), "lhs ragged dimension", "lhs")
    if not sizes:
        raise TypeError("expected rank of group_sizes to be >=1.")
    expected = (*(lhs[d] for d in _prefix(len(lhs), numbers)), sizes[-1])
    if len(sizes) > 1 and sizes != expected:
        raise TypeError(f"expected group_sizes to have shape {expected}, got {sizes}.")
    if ragged in lhs_contract or ragged in lhs_batch:
        if numbers.rhs_group_dimensions:
            raise TypeError("ragged_dot_general requires zero group dimensions in the rhs when lhs ragged dimension is "
                            "contracting or batch.")
    else:
        if len(numbers.rhs_group_dimensions) != 1:
            raise TypeError("ragged_dot_general requires exactly one rhs group dimension when lhs ragged dimension is "
                            "noncontracting.")
        (group,) = numbers.rhs_group_dimensions
        _in_range(group, len(rhs), "rhs group dimension", "rhs")
        if group in rhs_contract or group in rhs_batch:
            raise TypeError("ragged_dot_general requires rhs group dimension numbers to be distinct from contracting "
                            "and batch dimensions.")
        if rhs[group] != sizes[-1]:
            raise TypeError(f"expected rhs group dimension size to be {sizes[-1]}, got {rhs[group]}.")
    ours, theirs = tuple(lhs[d] for d in lhs_contract), tuple(rhs[d] for d in rhs_contract)
    if ours != theirs:
        raise TypeError("dot_general requires contracting dimensions to have the same shape, got "
                        f"{ours} and {theirs}.")


def _by_group(x: Any, group_sizes: Any, axis: int, prefix: Sequence[int]) -> Any:
    """The array once for each group, in front, with zeros at positions along `axis` of other groups.

    `group_sizes` has the sizes of the dimensions `prefix` of `x` in front, if any.
    """
    shape = shape_of(x)
    sizes = shape_of(group_sizes)
    groups = sizes[-1]
    ends = cumsum(group_sizes, len(sizes) - 1)
    starts = sub(ends, group_sizes)
    full_shape = (groups, *shape)
    # Dimensions of the sizes: those of the prefix, then the group.
    where = [*(d + 1 for d in prefix[: len(sizes) - 1]), 0]
    order = sorted(range(len(where)), key=where.__getitem__)

    def spread(v: Any) -> Any:
        return broadcast_in_dim(transpose(v, order), full_shape, sorted(where))

    position = broadcasted_iota(get_aval(group_sizes).dtype, full_shape, axis + 1)
    inside = bitwise_and(ge(position, spread(starts)), lt(position, spread(ends)))
    copies = broadcast_in_dim(x, full_shape, range(1, len(full_shape)))
    return select(inside, copies, full_like(copies, 0))


def ragged_dot_general(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: PrecisionLike = None,
                       preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None,
                       out_sharding: ShardingLike | None = None) -> Array:
    """`dot_general` where one dimension of the left operand is cut into consecutive groups.

    Args:
      lhs, rhs: the arrays.
      group_sizes: integers, how long each group is; with the batch dimensions in front, or without.
      ragged_dot_dimension_numbers: the dimensions. Where the ragged dimension is neither contracted nor a
        batch dimension, every group meets its own slice of `rhs`; where it is contracted, the result has a
        leading dimension of groups; a batch dimension is not cut at all.
      precision, preferred_element_type, out_sharding: as for `dot_general`.
      group_offset: not supported, as in JAX.

    Returns:
      the products. Positions behind the last group give zeros.

    Raises:
      NotImplementedError: for a `group_offset`.
      TypeError: for dimensions that do not fit.
    """
    if group_offset is not None:
        raise NotImplementedError("Unimplemented group_offset support.")
    numbers = ragged_dot_dimension_numbers
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    options: dict[str, Any] = dict(
        precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )
    if not dtypes.issubdtype(get_aval(group_sizes).dtype, np.integer):
        raise TypeError("ragged_dot_general requires that group_sizes.dtype is subtype of np.integer.")
    _check_groups(shape_of(lhs), shape_of(rhs), shape_of(group_sizes), numbers)
    (ragged,) = numbers.lhs_ragged_dimensions
    if ragged in lhs_batch:
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, **options)
    moved = lambda dims: tuple(d + 1 for d in dims)
    cut = _by_group(lhs, group_sizes, ragged, _prefix(len(shape_of(lhs)), numbers))
    if ragged in lhs_contract:
        out = dot_general(
            cut, rhs, ((moved(lhs_contract), rhs_contract), (moved(lhs_batch), rhs_batch)), **options
        )
        n = len(lhs_batch)
        return transpose(out, (n, *range(n), *range(n + 1, len(shape_of(out)))))
    contract = (0, *moved(lhs_contract)), (*numbers.rhs_group_dimensions, *rhs_contract)
    return dot_general(cut, rhs, (contract, (moved(lhs_batch), rhs_batch)), **options)


def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, precision: PrecisionLike = None,
               preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None,
               out_sharding: ShardingLike | None = None) -> Array:
    """The product of consecutive groups of rows with a matrix for each group.

    Args:
      lhs: array of shape `(m, k)`.
      rhs: array of shape `(groups, k, n)`.
      group_sizes: integers of shape `(groups,)`: how many rows each group has.
      precision, preferred_element_type, out_sharding: as for `dot_general`.
      group_offset: not supported, as in JAX.

    Returns:
      array of shape `(m, n)`; rows behind the last group are zeros.
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )


def _scaled(x: Any, scale: Any, dtype: Any) -> Any:
    """The array times its scales, each of which counts for a run of elements along every dimension."""
    x = convert_element_type(x, dtype)
    if scale is None:
        return x
    shape, parts = shape_of(x), shape_of(scale)
    if len(shape) != len(parts) or any(s % p for s, p in zip(shape, parts, strict=True)):
        raise TypeError(f"scales of shape {parts} do not divide an operand of shape {shape}")
    cut = tuple(n for s, p in zip(shape, parts, strict=True) for n in (p, s // p))
    spread = broadcast_in_dim(convert_element_type(scale, dtype), cut, range(0, len(cut), 2))
    return mul(x, reshape(spread, shape))


def scaled_dot(lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None,
               rhs_scale: ArrayLike | None = None, dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of arrays in a narrow format, each with scales for runs of its elements.

    Args:
      lhs, rhs: the arrays.
      lhs_scale, rhs_scale: arrays of as many dimensions, whose sizes divide those of the operands.
      dimension_numbers: as for `dot_general`; by default the product of matrices, with one batch dimension
        in front where there are three dimensions.
      preferred_element_type: dtype of the result, bfloat16 by default.

    Returns:
      an array of that dtype, of the shape that `dot_general` gives.

    Raises:
      TypeError: for scales that do not fit.
    """
    dtype = np.dtype(dtypes.bfloat16) if preferred_element_type is None else np.dtype(preferred_element_type)
    if dimension_numbers is None:
        if len(shape_of(lhs)) == 3:
            dimension_numbers = (((2,), (1,)), ((0,), (0,)))
        else:
            dimension_numbers = (((1,), (0,)), ((), ()))
    wide = np.promote_types(dtype, np.float32)
    out = dot_general(
        _scaled(lhs, lhs_scale, wide),
        _scaled(rhs, rhs_scale, wide),
        dimension_numbers,
        preferred_element_type=wide,
    )
    return convert_element_type(out, dtype)
