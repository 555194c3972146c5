"""Sorting: `sort` by one or several keys, `top_k`, and their approximate forms.

Keys are ordered as unsigned integers whose order is that of the keys (see `order_bits`). On the CPU
a row is sorted stably by a radix sort of such integers paired with positions, key after key from the
last to the first; short rows by insertion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import multiple_results
from styrax.core.tracing.source import api_boundary
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import plain_size
from styrax.core.types.index_type import INDEX
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import as_array
from ..indexing.dimension_numbers import shape_of
from ..indexing.gather import take_along
from ..shaping.filling import broadcasted_iota
from ..shaping.reshaping import transpose
from ..shaping.shapes import canonical_axis
from .row_sorting import (
    RowSorter,
    candidates_block,
    each_row,
    from_order_bits,
    is_cheap,
    keep_smallest,
    keys_hold_values,
    order_bits,
    select_smallest,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

INT32 = np.dtype(np.int32)
UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)

# --- the primitive

sort_p = multiple_results("sort")
sort_p.declare(sharding=sharding_rules.sort, factors=factor_rules.sort)


@sort_p.def_abstract_eval
def _sort_abstract(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if any(a.shape != avals[0].shape for a in avals):
        shapes = " ".join(str(a.shape) for a in avals)
        raise TypeError(f"Arguments to sort must have equal shapes, got: {shapes}")
    for a in avals[:num_keys]:
        if dtypes.issubdtype(a.dtype, dtypes.extended):
            raise TypeError(f"sort orders its keys by lt_to, and lt_to does not accept dtype {a.dtype}.")
    return [ShapedArray(a.shape, a.dtype, a.weak_type) for a in avals]


@overload
def sort(operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...


@overload
def sort(operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True,
         num_keys: int = 1) -> tuple[Array, ...]: ...


def sort(operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True,
         num_keys: int = 1) -> Array | tuple[Array, ...]:
    """Sorts one or several arrays along a dimension.

    Numbers ascend; NaN comes last; -0 and 0 are equal; complex numbers are ordered by their real and
    then their imaginary parts.

    Args:
      operand: an array, or a sequence of arrays of one shape that are permuted together.
      dimension: the dimension to sort along.
      is_stable: whether equal keys keep their order.
      num_keys: how many of the first arrays are keys, the first one the most important.

    Returns:
      the sorted array, or a tuple of them.

    Raises:
      TypeError: for arrays of different shapes, or none.
      ValueError: for a dimension or number of keys out of range.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.sort(jnp.array([3, 1, 2]))
      Array([1, 2, 3], dtype=int32)
    """
    if isinstance(operand, Sequence) and not hasattr(operand, "shape"):
        if len(operand) == 0:
            raise TypeError("Sort requires at least one operand")
        if not 1 <= num_keys <= len(operand):
            raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operand)}")
        axis = canonical_axis(dimension, len(shape_of(operand[0])))
        return tuple(sort_p.bind(*operand, dimension=axis, is_stable=bool(is_stable), num_keys=int(num_keys)))
    axis = canonical_axis(dimension, len(shape_of(operand)))
    return sort_p.bind(operand, dimension=axis, is_stable=bool(is_stable), num_keys=1)[0]


def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1,
                 is_stable: bool = True) -> tuple[Array, Array]:
    """Sorts `keys` along a dimension and permutes `values` in the same way.

    Args:
      keys, values: arrays of one shape.
      dimension: the dimension to sort along.
      is_stable: whether values of equal keys keep their order.

    Returns:
      sorted keys and permuted values.

    Raises:
      TypeError: for arrays of different shapes.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([0, 1, 2]))
      (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32))
    """
    axis = canonical_axis(dimension, len(shape_of(keys)))
    sorted_keys, sorted_values = sort_p.bind(
        keys, as_array(values), dimension=axis, is_stable=bool(is_stable), num_keys=1)
    return sorted_keys, sorted_values


def _sort_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, dimension: int, is_stable: bool, num_keys: int
              ) -> tuple[list[Any], list[Any]]:
    shape = shape_of(primals[0])
    if all(type(t) is ad.Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        return outs, [ad.Zero.from_primal_value(x) for x in outs]
    dtype = UINT32 if shape[dimension] < 2**32 else UINT64
    positions = broadcasted_iota(dtype, shape, dimension)
    *outs, order = sort_p.bind(*primals, positions, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    slopes = [ad.Zero.from_primal_value(x) if type(t) is ad.Zero else take_along(t, order, dimension)
              for x, t in zip(outs, tangents, strict=True)]
    return outs, slopes


rules.jvps[sort_p] = _sort_jvp


def _sort_batch(args: Sequence[Any], dims: Sequence[Any], *, dimension: int, is_stable: bool, num_keys: int
                ) -> tuple[list[Any], list[int]]:
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    first = next(d for d in dims if d is not None)
    if all(d == first for d in dims):
        args, front = list(args), first
    else:
        args, front = batching.all_at_front(args, dims, size), 0
    axis = dimension + (front <= dimension)
    outs = sort_p.bind(*args, dimension=axis, is_stable=is_stable, num_keys=num_keys)
    return outs, [front] * len(outs)


rules.batchers[sort_p] = _sort_batch


# --- lowerings


def _values_alone(b: Builder, n: Any, sorter: RowSorter, x: Any, out: Any, at: Callable[[Any], list[Any]]) -> None:
    """Sorts a row of one array: its keys are all there is to move."""
    dtype, size = x.dtype, sorter.size
    bits = order_bits(b, x.at(at(b.index(0))))[0].dtype
    keys = sorter.values(lambda i: order_bits(b, x.at(at(i)))[0], bits)
    with n.loop(size) as i:
        n.store(out, at(i), from_order_bits(b, keys(i), dtype))
    if not dtypes.issubdtype(dtype, np.floating):
        return
    # Zeros of both signs have one key, and so have NaNs: they are put back as they came.
    with n.loop(2) as which:
        wanted = n.let(b.select(b.eq(which, b.index(0)), b.const(1 << (8 * bits.itemsize - 1), bits),
                                b.const((1 << 8 * bits.itemsize) - 1, bits)))
        first, last = n.var(INDEX, b.index(0)), n.var(INDEX, b.index(size))
        with n.while_(lambda: b.lt(first.get(), last.get())):
            low, high = first.get(), last.get()
            middle = b.floordiv(b.add(low, high), b.index(2))
            with n.if_(b.lt(n.let(keys(middle)), wanted)):
                first.set(b.add(middle, b.index(1)))
            with n.else_():
                last.set(middle)
        place = n.var(INDEX, first.get())
        start = n.let(b.min(place.get(), b.index(size - 1)))
        with n.if_(b.and_(b.lt(place.get(), b.index(size)), b.eq(n.let(keys(start)), wanted))):
            with n.loop(size) as i:
                value = n.let(x.at(at(i)))
                with n.if_(b.eq(order_bits(b, value)[0], wanted)):
                    here = place.get()
                    n.store(out, at(here), value)
                    place.set(b.add(here, b.index(1)))


def _sort_loops(b: Builder, *operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    shape = operands[0].shape
    size = shape[dimension]
    stored = [x for x in operands if not is_cheap(x)]
    key_index = list(range(num_keys))

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        memory = iter(ins)
        values = [x if is_cheap(x) else next(memory) for x in operands]

        def row(at: Callable[[Any], list[Any]]) -> None:
            if isinstance(size, int) and size <= 1:
                with n.loop(size) as i:
                    for out, x in zip(outs, values, strict=True):
                        n.store(out, at(i), x.at(at(i)))
                return
            sorter = RowSorter(b, n, size)
            if len(operands) == 1 and keys_hold_values(values[0].dtype):
                _values_alone(b, n, sorter, values[0], outs[0], at)
                return
            for k in reversed(key_index):
                words = len(order_bits(b, values[k].at(at(b.index(0)))))
                for w in reversed(range(words)):
                    def key(place: Any, k: int = k, w: int = w) -> Any:
                        return order_bits(b, values[k].at(at(place)))[w]

                    width = 8 * key(b.index(0)).dtype.itemsize
                    sorter.by(key, width)
            with n.loop(size) as i:
                place = n.let(sorter.position(i))
                for out, x in zip(outs, values, strict=True):
                    n.store(out, at(i), x.at(at(place)))

        each_row(n, shape, dimension, row)

    return b.nest([(shape, x.dtype) for x in operands], body, inputs=stored)


rules.loops[sort_p] = _sort_loops


def _hlo_keys(m: Any, x: Any) -> list[Any]:
    """A scalar made ready for a total-order comparison."""
    dtype = x.aval.dtype
    if dtypes.issubdtype(dtype, np.complexfloating):
        part = ShapedArray((), np.dtype(f"float{4 * dtype.itemsize}"))
        return [key for name in ("real", "imag")
                for key in _hlo_keys(m, m.op(f"stablehlo.{name}", [x], [part])[0])]
    if dtypes.issubdtype(dtype, np.floating):
        zero = m.const(np.zeros((), dtype), x.aval)  # XLA knows this very comparison, and has a library sort by it
        unsigned = m.select(m.compare("EQ", x, zero), zero, x)
        nan = m.const(np.asarray(np.nan).astype(dtype), x.aval)
        return [m.select(m.compare("NE", x, x), nan, unsigned)]
    return [x]


def _hlo_less(m: Any, xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    boolean = ShapedArray((), np.dtype(np.bool_))
    result = None
    for x, y in reversed(list(zip(xs, ys, strict=True))):
        kind = "TOTALORDER" if dtypes.issubdtype(x.aval.dtype, np.floating) else None
        less = m.compare("LT", x, y, kind)
        if result is None:
            result = less
        else:
            same = m.compare("EQ", x, y, kind)
            both = m.op("stablehlo.and", [same, result], [boolean])[0]
            result = m.op("stablehlo.or", [less, both], [boolean])[0]
    return result


def _sort_stablehlo(m: Any, *operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    scalars = [ShapedArray((), x.aval.dtype) for x in operands for _ in (0, 1)]

    def less(m2: Any, *args: Any) -> list[Any]:
        xs = [key for x in args[: 2 * num_keys: 2] for key in _hlo_keys(m2, x)]
        ys = [key for y in args[1: 2 * num_keys: 2] for key in _hlo_keys(m2, y)]
        return [_hlo_less(m2, xs, ys)]

    return m.op("stablehlo.sort", list(operands), list(m.avals_out),
                attributes=f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}",
                regions=[m.region(scalars, less)])


rules.stablehlos[sort_p] = _sort_stablehlo


# --- the largest elements

top_k_p = multiple_results("top_k")
top_k_p.declare(sharding=sharding_rules.along("axis", "The input", "along which to compute the top_k values"),
                factors=factor_rules.top_k)


@top_k_p.def_abstract_eval
def _top_k_abstract(operand: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    if dtypes.issubdtype(operand.dtype, np.complexfloating):
        raise ValueError("top_k is not compatible with complex inputs.")
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if not operand.shape:
        raise TypeError("top_k operand must have >= 1 dimension, got ()")
    if operand.shape[axis] < k:
        raise ValueError(f"k argument to top_k must be no larger than size along axis; got k={k} with "
                         f"shape={list(operand.shape)} and axis={axis}")
    shape = (*operand.shape[:axis], k, *operand.shape[axis + 1:])
    return [ShapedArray(shape, operand.dtype, operand.weak_type), ShapedArray(shape, INT32, operand.weak_type)]


@api_boundary
def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """The `k` largest elements along an axis, in descending order, and where they stand.

    The earlier one of equal elements comes first; NaN counts as the largest.

    Args:
      operand: an array of a real dtype.
      k: how many elements.
      axis: the axis to search along.

    Returns:
      a list of the values, and of int32 indices along the axis.

    Raises:
      ValueError: for a complex array, an axis that does not exist, or `k` out of range.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> values, places = jax.lax.top_k(jnp.array([3, 1, 2]), 2)
      >>> values, places
      (Array([3, 2], dtype=int32), Array([0, 2], dtype=int32))
    """
    axis = canonical_axis(axis, len(shape_of(operand)))
    return list(top_k_p.bind(operand, k=plain_size(k), axis=axis))


def _top_k_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, k: int, axis: int) -> tuple[list[Any], list[Any]]:
    (operand,), (tangent,) = primals, tangents
    values, indices = top_k_p.bind(operand, k=k, axis=axis)
    slope = ad.Zero.from_primal_value(values) if type(tangent) is ad.Zero else take_along(tangent, indices, axis)
    return [values, indices], [slope, ad.Zero.from_primal_value(indices)]


rules.jvps[top_k_p] = _top_k_jvp


def _top_k_batch(args: Sequence[Any], dims: Sequence[int], *, k: int, axis: int) -> tuple[list[Any], list[int]]:
    (operand,), (dim,) = args, dims
    return top_k_p.bind(operand, k=k, axis=axis + (dim <= axis)), [dim, dim]


rules.batchers[top_k_p] = _top_k_batch

_HEAP = 64  # that many elements are kept sorted while the row goes by


def _top_k_loops(b: Builder, operand: Any, *, k: int, axis: int) -> list[Any]:
    return select_largest(b, operand, k, axis, lambda x: order_bits(b, x, total=True)[0])


def select_largest(b: Builder, operand: Any, k: int, axis: int, order: Callable[[Any], Any]) -> list[Any]:
    """Values and positions of the `k` elements of each row for which `order`, an unsigned integer, is largest."""
    shape = operand.shape
    size = shape[axis]
    out_shape = (*shape[:axis], k, *shape[axis + 1:])
    probe = order(operand.at([b.index(0)] * len(shape))).dtype
    width = 8 * probe.itemsize
    cheap = is_cheap(operand)

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        values, indices = outs
        x = operand if cheap else ins[0]

        def inverted(place: Any, at: Callable[[Any], list[Any]]) -> Any:
            bits = order(x.at(at(place)))
            return b.xor(bits, b.const((1 << width) - 1, bits.dtype))

        def row(at: Callable[[Any], list[Any]]) -> None:
            if k == 0:
                return
            best = None
            if width <= 32 and isinstance(size, int):
                if k <= _HEAP and size > k:
                    best = keep_smallest(b, n, size, k, lambda i: inverted(i, at))
                elif candidates_block(size, k):
                    best = select_smallest(b, n, size, k, lambda i: inverted(i, at), width)
            if best is not None:
                position = lambda i: b.cast(b.and_(best(i), b.const(0xFFFFFFFF, UINT64)), INDEX)
            else:
                sorter = RowSorter(b, n, size)
                sorter.by(lambda i: inverted(i, at), width)
                position = sorter.position
            with n.loop(k) as i:
                place = n.let(position(i))
                n.store(values, at(i), x.at(at(place)))
                n.store(indices, at(i), b.cast(place, INT32))

        each_row(n, out_shape, axis, row)

    return b.nest([(out_shape, operand.dtype), (out_shape, INT32)], body, inputs=[] if cheap else [operand])


rules.loops[top_k_p] = _top_k_loops


def _top_k_stablehlo(m: Any, operand: Any, *, k: int, axis: int) -> list[Any]:
    rank = len(operand.aval.shape)
    if axis != rank - 1:
        order = tuple(d for d in range(rank) if d != axis) + (axis,)
        back = tuple(order.index(d) for d in range(rank))
        return m.call_traced(lambda x: [
            transpose(out, back) for out in top_k_p.bind(transpose(x, order), k=k, axis=rank - 1)], operand)
    return m.op("chlo.top_k", [operand], list(m.avals_out), attributes=f"k = {k} : i64")


rules.stablehlos[top_k_p] = _top_k_stablehlo


# --- approximately the largest elements

approx_top_k_p = multiple_results("approx_top_k")
approx_top_k_p.declare(sharding=sharding_rules.along(
    "reduction_dimension", "The input", "along which to compute the top_k values"), factors=factor_rules.top_k)


def _approx_output_size(size: int, rank: int, k: int, recall_target: float, aggregate: bool, override: int) -> int:
    """How many candidates a reduction keeps that finds a share `recall_target` of the best ones."""
    if aggregate:
        return k
    tile = 1024 if rank == 1 else 128
    if size <= tile:
        return size
    if k == 1:
        return tile
    logical = override if override >= 0 else size
    wanted = size if recall_target >= 1 else max(int((1.0 - k) / math.log(recall_target)), tile)
    wanted = min(wanted, size)
    halvings = int(math.floor(math.log2(logical // wanted))) if logical // wanted >= 1 else 0
    if halvings == 0:
        return size
    tiles = -(-size // tile)
    halvings = min(halvings, max(0, math.ceil(math.log2(tiles))))
    return -(-tiles // (1 << halvings)) * tile


@approx_top_k_p.def_abstract_eval
def _approx_top_k_abstract(operand: ShapedArray, *, k: int, reduction_dimension: int, recall_target: float,
                           is_max_k: bool, reduction_input_size_override: int, aggregate_to_topk: bool
                           ) -> list[ShapedArray]:
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    if not operand.shape:
        raise TypeError("approx_top_k operand must have >= 1 dimension, got ()")
    size = operand.shape[reduction_dimension]
    if size < k:
        raise ValueError(f"k must be smaller than the size of reduction_dim {size}, got {k}")
    if not dtypes.issubdtype(operand.dtype, np.floating):
        raise ValueError("operand must be a floating type")
    count = _approx_output_size(size, len(operand.shape), k, recall_target, aggregate_to_topk,
                                reduction_input_size_override)
    axis = reduction_dimension % len(operand.shape)
    shape = (*operand.shape[:axis], count, *operand.shape[axis + 1:])
    return [ShapedArray(shape, operand.dtype, operand.weak_type), ShapedArray(shape, INT32, operand.weak_type)]


def approx_max_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> list[Array]:
    """About the `k` largest elements along a dimension, and where they stand.

    The CPU finds them exactly; a TPU may miss some.

    Args:
      operand: a floating-point array.
      k: how many elements.
      reduction_dimension: the dimension to search along.
      recall_target: the share of the true largest elements that is expected among the results.
      reduction_input_size_override: the size to base that expectation on, where `operand` is a part.
      aggregate_to_topk: False leaves more candidates than `k` for a later search.

    Returns:
      a list of the values, falling, and of int32 indices along the dimension.

    Raises:
      ValueError: for other dtypes and for `k` out of range.
    """
    return list(approx_top_k_p.bind(
        operand, k=int(k), reduction_dimension=reduction_dimension, recall_target=recall_target, is_max_k=True,
        reduction_input_size_override=reduction_input_size_override, aggregate_to_topk=aggregate_to_topk))


def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> list[Array]:
    """About the `k` smallest elements along a dimension, and where they stand.

    Args:
      operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk: as for
        `approx_max_k`.

    Returns:
      a list of the values, rising, and of int32 indices along the dimension.

    Raises:
      ValueError: for other dtypes and for `k` out of range.
    """
    return list(approx_top_k_p.bind(
        operand, k=int(k), reduction_dimension=reduction_dimension, recall_target=recall_target, is_max_k=False,
        reduction_input_size_override=reduction_input_size_override, aggregate_to_topk=aggregate_to_topk))


def _approx_top_k_loops(b: Builder, operand: Any, *, k: int, reduction_dimension: int, is_max_k: bool, **_: Any
                        ) -> list[Any]:
    axis = reduction_dimension % len(operand.shape)

    def order(x: Any) -> Any:
        (bits,) = order_bits(b, x, total=True)
        return bits if is_max_k else b.xor(bits, b.const((1 << 8 * bits.dtype.itemsize) - 1, bits.dtype))

    return select_largest(b, operand, b.avals_out[0].shape[axis], axis, order)


rules.loops[approx_top_k_p] = _approx_top_k_loops


def _approx_top_k_stablehlo(m: Any, operand: Any, *, k: int, reduction_dimension: int, is_max_k: bool,
                            **_: Any) -> list[Any]:
    axis = reduction_dimension % len(operand.aval.shape)
    count = m.avals_out[0].shape[axis]

    def exact(x: Any) -> list[Any]:
        from ..elementwise.arithmetic import neg

        values, indices = top_k(x if is_max_k else neg(x), count, axis=axis)
        return [values if is_max_k else neg(values), indices]

    return m.call_traced(exact, operand)


rules.stablehlos[approx_top_k_p] = _approx_top_k_stablehlo


def _approx_top_k_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, reduction_dimension: int, **params: Any
                      ) -> tuple[list[Any], list[Any]]:
    (operand,), (tangent,) = primals, tangents
    axis = reduction_dimension % len(shape_of(operand))
    values, indices = approx_top_k_p.bind(operand, reduction_dimension=reduction_dimension, **params)
    slope = ad.Zero.from_primal_value(values) if type(tangent) is ad.Zero else take_along(tangent, indices, axis)
    return [values, indices], [slope, ad.Zero.from_primal_value(indices)]


rules.jvps[approx_top_k_p] = _approx_top_k_jvp


def _approx_top_k_batch(args: Sequence[Any], dims: Sequence[int], *, reduction_dimension: int, **params: Any
                        ) -> tuple[list[Any], list[int]]:
    (operand,), (dim,) = args, dims
    axis = reduction_dimension % (len(shape_of(operand)) - 1)
    out = approx_top_k_p.bind(operand, reduction_dimension=axis + (dim <= axis), **params)
    return out, [dim, dim]


rules.batchers[approx_top_k_p] = _approx_top_k_batch

__all__ = [
    "approx_max_k", "approx_min_k", "approx_top_k_p", "sort", "sort_key_val", "sort_p",
    "top_k", "top_k_p",
]
