"""`gather`: slices of an array at positions given by an array of index vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Windows
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import is_symbolic, plain_size
from styrax.core.types.physical import Context, physical_aval, physicals
from styrax.core.types.typing import ArrayLike, Scalar
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import check_real
from ..elementwise.arithmetic import add, rem
from ..elementwise.bits import bitwise_and
from ..elementwise.comparisons import ge, le, lt, select
from ..reductions.reduce import reduce_and
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import full
from ..shaping.joining import concatenate
from ..shaping.sizes import size_vector
from .dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    check_batching,
    check_disjoint,
    check_distinct,
    check_index_dtype,
    check_index_map,
    check_sorted,
    check_within,
    shape_of,
    starts,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

gather_p = Primitive("gather")


def _windows(avals: Sequence[ShapedArray], params: dict[str, Any]) -> Windows:
    dims = params["dimension_numbers"].start_index_map
    return Windows(slice(1, 2), dims, [params["slice_sizes"][d] for d in dims])


gather_p.declare(movement=True, sizes=frozenset(("slice_sizes",)), windows=_windows,
                 sharding=sharding_rules.gather, factors=factor_rules.gather)


def _check_gather(operand: Any, indices: Any, dnums: GatherDimensionNumbers, slice_sizes: Sequence[int]) -> None:
    rank = len(operand.shape)
    check_index_dtype("gather", indices)
    check_sorted("gather", "offset_dims", dnums.offset_dims)
    check_distinct("gather", "offset_dims", dnums.offset_dims)
    out_rank = len(dnums.offset_dims) + len(indices.shape) - 1
    for i, d in enumerate(dnums.offset_dims):
        if not 0 <= d < out_rank:
            raise TypeError(f"Offset dimension {i} in gather op is out of bounds; got {d}, but should have been in "
                            f"[0, {out_rank})")
    check_index_map("gather", "start_index_map", dnums.start_index_map, operand, indices)
    collapsed, batched = dnums.collapsed_slice_dims, dnums.operand_batching_dims
    check_sorted("gather", "collapsed_slice_dims", collapsed)
    check_within("gather", "collapsed_slice_dims", collapsed, rank)
    check_distinct("gather", "collapsed_slice_dims", collapsed)
    check_batching("gather", "start_indices_batching_dims", operand, indices, batched,
                   dnums.start_indices_batching_dims)
    check_disjoint("gather", "collapsed_slice_dims", collapsed, "operand_batching_dims", batched)
    check_disjoint("gather", "start_index_map", dnums.start_index_map, "operand_batching_dims", batched)
    if len(slice_sizes) != rank:
        raise TypeError("Gather op must have one slice size for every input dimension; got: "
                        f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={rank}")
    expected = len(dnums.offset_dims) + len(collapsed) + len(batched)
    if len(slice_sizes) != expected:
        raise TypeError("All components of the offset index in a gather op must either be a offset dimension, or "
                        "explicitly collapsed/batching; got "
                        f"len(slice_sizes)={len(slice_sizes)}, output_slice_sizes={tuple(dnums.offset_dims)}, "
                        f"collapsed_slice_dims={tuple(collapsed)}, operand_batching_dims={tuple(batched)}.")
    for i, (size, bound) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        if not 0 <= size <= bound and 0 not in indices.shape[:-1]:  # of no windows, none is too large
            raise TypeError(f"Slice size at index {i} in gather op is out of range, must be within [0, {bound} + 1), "
                            f"got {size}.")
    for dims, verb in ((collapsed, "collapse"), (batched, "have operand batching dims")):
        for position, d in enumerate(dims):
            if slice_sizes[d] > 1:
                what = "collapse slice dims" if verb == "collapse" else verb
                raise TypeError(f"Gather op can only {what} with bound 1, but bound is {slice_sizes[d]} for index "
                                f"{d} at position {position}.")


def _gather_shape(indices_shape: Sequence[int], dnums: GatherDimensionNumbers, slice_sizes: Sequence[int]
                  ) -> tuple[int, ...]:
    offset = set(dnums.offset_dims)
    dropped = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    batch = iter(indices_shape[:-1])
    window = iter(n for d, n in enumerate(slice_sizes) if d not in dropped)
    rank = len(indices_shape) - 1 + len(offset)
    return tuple(next(window) if d in offset else next(batch) for d in range(rank))


@gather_p.def_abstract_eval
def _gather_abstract(operand: ShapedArray, indices: ShapedArray, *, dimension_numbers: GatherDimensionNumbers,
                     slice_sizes: Sequence[int], unique_indices: bool, indices_are_sorted: bool,
                     mode: GatherScatterMode, fill_value: Any) -> ShapedArray:
    _check_gather(operand, indices, dimension_numbers, slice_sizes)
    shape = _gather_shape(indices.shape, dimension_numbers, slice_sizes)
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
           mode: str | GatherScatterMode | None = None, fill_value: Scalar | None = None) -> Array:
    """Slices of an array at many positions.

    Args:
      operand: the array to take slices from.
      start_indices: integers; the last dimension holds index vectors, where slices start.
      dimension_numbers: how the dimensions of operand, indices and result correspond.
      slice_sizes: for each dimension of the operand, the size of a slice.
      unique_indices: asserts that no two slices overlap.
      indices_are_sorted: asserts that the index vectors ascend.
      mode: what slices out of bounds give, see `GatherScatterMode`; None promises that there is none.
      fill_value: what "fill" gives; by default NaN for inexact dtypes, the smallest value for signed
        integers, the largest for unsigned ones, True for booleans.

    Returns:
      an array of the operand's dtype, whose `offset_dims` run over slices and whose other dimensions
      are those of the indices without the last.

    Raises:
      TypeError: for dimension numbers, shapes or sizes that do not fit together.
      ValueError: for indices that are not integers, or an unknown mode.
    """
    dnums = GatherDimensionNumbers(*(tuple(map(int, field)) for field in dimension_numbers))
    parsed = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if parsed == GatherScatterMode.FILL_OR_DROP:
        if fill_value is None:
            fill_value = default_fill(get_aval(operand).dtype)
        check_real(fill_value, get_aval(operand).dtype)
    else:
        fill_value = None
    return gather_p.bind(
        operand, start_indices, dimension_numbers=dnums, slice_sizes=tuple(map(plain_size, slice_sizes)),
        unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted), mode=parsed,
        fill_value=fill_value)


def default_fill(dtype: Any) -> Any:
    """What gathers with mode "fill" give out of bounds."""
    if isinstance(dtype, dtypes.ExtendedDType):
        return default_fill(physical_aval(ShapedArray((), dtype)).dtype)
    if dtypes.issubdtype(dtype, np.inexact):
        return float("nan")
    if dtypes.issubdtype(dtype, np.signedinteger):
        return int(dtypes.iinfo(dtype).min)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return int(dtypes.iinfo(dtype).max)
    return True


# --- derivatives


def _gather_jvp(tangent: Any, operand: Any, indices: Any, *, fill_value: Any, **params: Any) -> Any:
    fill = None if fill_value is None else 0
    return gather_p.bind(tangent, indices, fill_value=fill, **params)


ad.defjvp(gather_p, _gather_jvp, None)


def _gather_transpose(ct: Any, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
                      slice_sizes: Any, unique_indices: bool, indices_are_sorted: bool, mode: Any,
                      fill_value: Any) -> list[Any]:
    assert ad.is_undefined_primal(operand)
    if type(ct) is ad.Zero:
        return [ad.Zero(operand.aval), None]
    zeros = full(operand.aval.shape, 0, operand.aval.dtype, sharding=operand.aval.cotangent_sharding)
    dnums = lax.ScatterDimensionNumbers(*dimension_numbers)
    return [lax.scatter_add(zeros, indices, ct, dnums, indices_are_sorted=indices_are_sorted,
                            unique_indices=unique_indices, mode=mode), None]


rules.transposes[gather_p] = _gather_transpose


# --- batching


def _shift(dims: Sequence[int], by: int = 1) -> tuple[int, ...]:
    return tuple(d + by for d in dims)


def _gather_batch(args: Sequence[Any], dims: Sequence[Any], *, dimension_numbers: GatherDimensionNumbers,
                  slice_sizes: tuple[int, ...], **params: Any) -> tuple[Any, int]:
    operand, indices = args
    operand_dim, indices_dim = dims
    dn = dimension_numbers
    if operand_dim is not None:
        operand = batching.moveaxis(operand, operand_dim, 0)
    if indices_dim is not None:
        indices = batching.moveaxis(indices, indices_dim, 0)
    operand_map = dict(
        collapsed_slice_dims=_shift(dn.collapsed_slice_dims),
        start_index_map=_shift(dn.start_index_map),
        operand_batching_dims=_shift(dn.operand_batching_dims),
    )
    if indices_dim is None:
        # The whole batch lies in every slice.
        new = GatherDimensionNumbers(
            offset_dims=(0, *_shift(dn.offset_dims)),
            start_indices_batching_dims=dn.start_indices_batching_dims, **operand_map)
        sizes = (shape_of(operand)[0], *slice_sizes)
    elif operand_dim is None:
        new = dn._replace(offset_dims=_shift(dn.offset_dims),
                          start_indices_batching_dims=_shift(dn.start_indices_batching_dims))
        sizes = slice_sizes
        params = {**params, "unique_indices": False, "indices_are_sorted": False} \
            if params["unique_indices"] or params["indices_are_sorted"] else params
    else:
        operand_map["operand_batching_dims"] = (0, *operand_map["operand_batching_dims"])
        new = GatherDimensionNumbers(
            offset_dims=_shift(dn.offset_dims),
            start_indices_batching_dims=(0, *_shift(dn.start_indices_batching_dims)), **operand_map)
        sizes = (1 if shape_of(operand)[0] else 0, *slice_sizes)
    return gather_p.bind(operand, indices, dimension_numbers=new, slice_sizes=sizes, **params), 0


rules.batchers[gather_p] = _gather_batch


# --- lowerings


def _gather_loops(b: Builder, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
                  slice_sizes: tuple[int, ...], unique_indices: bool, indices_are_sorted: bool,
                  mode: GatherScatterMode, fill_value: Any) -> Any:
    dn = dimension_numbers
    out = b.avals_out[0]
    fill = mode == GatherScatterMode.FILL_OR_DROP
    offset_dims = set(dn.offset_dims)
    batch_dims = [d for d in range(len(out.shape)) if d not in offset_dims]
    dropped = {*dn.collapsed_slice_dims, *dn.operand_batching_dims}
    windowed = dict(zip([d for d in range(len(operand.shape)) if d not in dropped], dn.offset_dims, strict=True))
    batched = dict(zip(dn.operand_batching_dims, dn.start_indices_batching_dims, strict=True))
    limits = [operand.shape[d] - slice_sizes[d] for d in dn.start_index_map]

    def at(index: Sequence[Any]) -> Any:
        position = [index[d] for d in batch_dims]
        components, inside = starts(b, indices, position, limits, clamp=not fill)
        start_of = dict(zip(dn.start_index_map, components, strict=True))
        where = []
        for d in range(len(operand.shape)):
            i = position[batched[d]] if d in batched else start_of.get(d)
            if d in windowed:
                i = index[windowed[d]] if i is None else b.add(i, index[windowed[d]])
            where.append(b.index(0) if i is None else i)
        if inside is None:
            return operand.at(where)
        return b.load_if(inside, operand, where, b.const(fill_value, out.dtype))

    return b.value(out.shape, out.dtype, at)


rules.loops[gather_p] = _gather_loops


def _fill_outside(operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Any,
                  fill_value: Any, **params: Any) -> Any:
    """A gather with mode "fill" out of one that clips."""
    dn = dimension_numbers
    dtype = get_aval(indices).dtype
    limits = [shape_of(operand)[d] - slice_sizes[d] for d in dn.start_index_map]
    largest = int(dtypes.iinfo(dtype).max)
    limit = size_vector([n if is_symbolic(n) else min(n, largest) for n in limits], dtype)
    shape = shape_of(indices)
    spread = broadcast_in_dim(limit, shape, (len(shape) - 1,))
    inside = bitwise_and(ge(indices, full(shape, 0, dtype)), le(indices, spread))
    inside = reduce_and(inside, (len(shape) - 1,))
    params["mode"] = GatherScatterMode.CLIP
    found = gather_p.bind(operand, indices, dimension_numbers=dn, slice_sizes=slice_sizes, fill_value=None, **params)
    out_shape = shape_of(found)
    batch_dims = [d for d in range(len(out_shape)) if d not in dn.offset_dims]
    mask = broadcast_in_dim(inside, out_shape, batch_dims)
    return select(mask, found, full(out_shape, fill_value, get_aval(found).dtype))


def _gather_stablehlo(m: Any, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
                      slice_sizes: tuple[int, ...], unique_indices: bool, indices_are_sorted: bool,
                      mode: GatherScatterMode, fill_value: Any) -> Any:
    if mode == GatherScatterMode.FILL_OR_DROP:
        params = dict(dimension_numbers=dimension_numbers, slice_sizes=slice_sizes, fill_value=fill_value,
                      unique_indices=unique_indices, indices_are_sorted=indices_are_sorted, mode=mode)
        return m.call_traced(lambda x, i: _fill_outside(x, i, **params), operand, indices)
    dn = dimension_numbers
    fields = (
        ("offset_dims", dn.offset_dims), ("collapsed_slice_dims", dn.collapsed_slice_dims),
        ("operand_batching_dims", dn.operand_batching_dims),
        ("start_indices_batching_dims", dn.start_indices_batching_dims), ("start_index_map", dn.start_index_map),
    )
    text = ", ".join(f"{name} = [{', '.join(map(str, dims))}]" for name, dims in fields if dims)
    text += f"{', ' if text else ''}index_vector_dim = {len(indices.aval.shape) - 1}"
    sizes = f"array<i64: {', '.join(map(str, slice_sizes))}>" if slice_sizes else "array<i64>"
    attributes = (f"dimension_numbers = #stablehlo.gather<{text}>, slice_sizes = {sizes}, "
                  f"indices_are_sorted = {str(indices_are_sorted).lower()}")
    return m.op("stablehlo.gather", [operand, indices], [m.avals_out[0]], attributes=attributes)


rules.stablehlos[gather_p] = _gather_stablehlo


def _gather_physical(context: Context, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
                     slice_sizes: tuple[int, ...], fill_value: Any, **params: Any) -> Any:
    element = context.element_shape()
    rank = context.avals_out[0].ndim
    new = dimension_numbers._replace(
        offset_dims=(*dimension_numbers.offset_dims, *range(rank, rank + len(element))))
    return gather_p.bind(operand, indices, dimension_numbers=new, slice_sizes=(*slice_sizes, *element),
                         fill_value=fill_value, **params)


physicals[gather_p] = _gather_physical


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The slices of an array at positions in some dimensions, counted around the end.

    Args:
      src: the array.
      idxs: for each of `axes` a vector of integers, all of one length.
      axes: the dimensions that the positions are in.

    Returns:
      an array whose first dimension runs over the positions, followed by the dimensions that are not in `axes`.
    """
    shape = shape_of(src)
    indices = concatenate([broadcast_in_dim(i, (*shape_of(i), 1), (0,)) for i in idxs], 1)
    dtype = get_aval(indices).dtype
    sizes = broadcast_in_dim(np.array([shape[a] for a in axes], dtype), shape_of(indices), (1,))
    rest = rem(indices, sizes)
    positions = select(lt(rest, full(shape_of(rest), 0, dtype)), add(rest, sizes), rest)
    slice_sizes = [1 if d in axes else size for d, size in enumerate(shape)]
    dnums = GatherDimensionNumbers(tuple(range(1, len(shape) - len(axes) + 1)), tuple(axes), tuple(axes))
    return gather(src, positions, dnums, slice_sizes)


def take_along(x: Any, positions: Any, axis: int) -> Any:
    """`x` at `positions` along an axis; all other dimensions are those of `positions`, one to one."""
    rank = len(shape_of(x))
    if any(type(d) is int and d == 0 for d in shape_of(positions)):  # no window fits into an empty array
        return full(shape_of(positions), 0, get_aval(x).dtype)
    others = tuple(d for d in range(rank) if d != axis)
    dnums = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(axis,), start_index_map=(axis,),
                                   operand_batching_dims=others, start_indices_batching_dims=others)
    indices = broadcast_in_dim(positions, (*shape_of(positions), 1), tuple(range(rank)))
    return gather(x, indices, dnums, (1,) * rank, mode="promise_in_bounds")
