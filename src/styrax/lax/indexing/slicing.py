"""Slices with run-time positions, and updates of slices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.traits import Windows
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.types import avals, dtypes
from styrax.core.types.dims import canonical_dim, is_named, is_symbolic
from styrax.core.types.index_type import INDEX
from styrax.core.types.physical import physicals
from styrax.core.types.typing import ArrayLike, Shape
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import _convert_element_type, convert_element_type
from ..elementwise.arithmetic import add
from ..elementwise.comparisons import lt, select
from ..elementwise.families import first_dtype, first_weak_type, shape_of, standard_primitive
from ..shaping.broadcasting import broadcast_in_dim, squeeze
from ..shaping.filling import full
from ..shaping.joining import concatenate
from ..shaping.shapes import canonical_axis, canonical_shape
from .static_slicing import index_in_dim

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


# -- dynamic_slice -----------------------------------------------------------------------------------
def _check_indices(name: str, indices: Sequence[Any]) -> None:
    if any(i.shape for i in indices):
        raise TypeError(
            f"start_indices arguments to {name} must be scalars, got indices of shapes "
            f"{', '.join(str(i.shape) for i in indices)}"
        )
    if any(not dtypes.issubdtype(i.dtype, np.integer) or i.dtype != indices[0].dtype for i in indices):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got "
            f"{', '.join(i.dtype.name for i in indices)}"
        )


def _dynamic_slice_shape(x: Any, *indices: Any, slice_sizes: tuple) -> tuple:
    _check_indices("dynamic_slice", indices)
    if len(slice_sizes) != x.ndim:
        raise TypeError(
            "dynamic_slice slice_sizes must have length equal to the number of dimensions of the operand, got "
            f"slice_sizes {slice_sizes} for operand shape {x.shape}."
        )
    for size, extent in zip(slice_sizes, x.shape, strict=True):
        if not size <= extent:
            raise TypeError("slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
                            f"{slice_sizes} for operand shape {x.shape}.")
        if not size >= 0:
            raise TypeError("slice slice_sizes must be greater than or equal to zero, got slice_sizes of "
                            f"{slice_sizes}.")
    if len(indices) != x.ndim:
        raise TypeError(
            f"dynamic_slice needs one start index for each dimension, got {len(indices)} for shape {x.shape}."
        )
    return slice_sizes


def clamped_starts(b: Builder, indices: Sequence[Any], extents: Sequence[Any], sizes: Sequence[Any]) -> list[Any]:
    """Start positions as index scalars, moved so that the slice lies inside the array."""
    out: list[Any] = []
    for i, extent, size in zip(indices, extents, sizes, strict=True):
        if type(extent) is int and type(size) is int and extent == size:
            out.append(None)
            continue
        where = b.cast(i.at(()), INDEX)
        if np.dtype(i.dtype) == np.uint64:
            # A position beyond the range of signed integers is far outside: it means the last slice.
            where = b.select(b.lt(where, b.index(0)), b.index(np.iinfo(np.int64).max), where)
        last = b.sub(b.index(extent), b.index(size))
        out.append(b.min(b.max(where, b.index(0)), last))
    return out


def _dynamic_slice_loops(b: Builder, x: Any, *indices: Any, slice_sizes: tuple) -> Any:
    shape = b.avals_out[0].shape

    def at(index: Any) -> Any:
        starts = clamped_starts(b, indices, x.shape, shape)
        return x.at([i if s is None else b.add(i, s) for i, s in zip(index, starts, strict=True)])

    return b.value(shape, x.dtype, at)


def _dynamic_slice_hlo(m: Any, x: Any, *indices: Any, slice_sizes: tuple) -> Any:
    sizes = ", ".join(map(str, slice_sizes))
    return m.op1(
        "stablehlo.dynamic_slice",
        [x, *indices],
        m.avals_out[0],
        f"slice_sizes = array<i64: {sizes}>" if sizes else "slice_sizes = array<i64>",
    )


dynamic_slice_p = standard_primitive(
    "dynamic_slice",
    _dynamic_slice_shape,
    first_dtype,
    first_weak_type,
    loops=_dynamic_slice_loops,
    hlo=_dynamic_slice_hlo,
)
dynamic_slice_p.declare(
    movement=True, sizes=frozenset(("slice_sizes",)), sharding=sharding_rules.cut, factors=factor_rules.dynamic_slice,
    windows=lambda avals, params: Windows(slice(1, None), range(avals[0].ndim), params["slice_sizes"]))


def _dynamic_slice_jvp(primals: Any, tangents: Any, *, slice_sizes: tuple) -> Any:
    x, *indices = primals
    t = tangents[0]
    moving = None if type(t) is ad.Zero else dynamic_slice_p.bind(t, *indices, slice_sizes=slice_sizes)
    out = dynamic_slice_p.bind(x, *indices, slice_sizes=slice_sizes)
    return out, ad.Zero.from_primal_value(out) if moving is None else moving


def _dynamic_slice_transpose(ct: Any, x: Any, *indices: Any, slice_sizes: tuple) -> list[Any]:
    assert ad.is_undefined_primal(x)
    if type(ct) is ad.Zero:
        return [ad.Zero(x.aval), *[None] * len(indices)]
    zeros = full(x.aval.shape, 0, x.aval.dtype, sharding=x.aval.cotangent_sharding)
    return [dynamic_update_slice_p.bind(zeros, ct, *indices), *[None] * len(indices)]


def _dynamic_slice_batch(args: Any, dims: Any, *, slice_sizes: tuple) -> Any:
    x, *indices = args
    x_dim, *index_dims = dims
    if all(d is None for d in index_dims):
        # The same position for all examples: a slice that takes the whole batch dimension.
        sizes = (*slice_sizes[:x_dim], shape_of(x)[x_dim], *slice_sizes[x_dim:])
        zero = np.zeros((), get_aval(indices[0]).dtype) if indices else np.int32(0)
        starts = [*indices[:x_dim], zero, *indices[x_dim:]]
        return dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), x_dim
    from .gather import GatherDimensionNumbers, GatherScatterMode, gather_p

    n = len(indices)
    window = tuple(range(n))
    dnums = GatherDimensionNumbers(offset_dims=window, collapsed_slice_dims=(), start_index_map=window)
    where, where_dim = _stacked_indices(indices, index_dims)
    return rules.batchers[gather_p](
        (x, where),
        (x_dim, where_dim),
        dimension_numbers=dnums,
        slice_sizes=slice_sizes,
        unique_indices=True,
        indices_are_sorted=True,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )


def _stacked_indices(indices: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int | None]:
    """Scalar indices, some of them with a batch dimension, as one array of index vectors."""
    size = next((shape_of(i)[d] for i, d in zip(indices, dims, strict=True) if d is not None), None)
    if size is None:
        return concatenate([broadcast_in_dim(i, (1,), ()) for i in indices], 0), None
    columns = [broadcast_in_dim(i, (size, 1), (0,)) for i in batching.all_at_front(indices, dims, size)] if (
        avals.explicit) else [
        broadcast_in_dim(i, (size, 1), () if d is None else (0,)) for i, d in zip(indices, dims, strict=True)
    ]
    return concatenate(columns, 1), 0


rules.jvps[dynamic_slice_p] = _dynamic_slice_jvp
rules.transposes[dynamic_slice_p] = _dynamic_slice_transpose
rules.batchers[dynamic_slice_p] = _dynamic_slice_batch


def start_scalars(
    operand: Any, start_indices: Any, allow_negative: bool | Sequence[bool] = True
) -> list[Any]:
    """Start positions as scalars, those below zero counted from the end where that is allowed."""
    shape = shape_of(operand)
    if isinstance(start_indices, (tuple, list)):
        given = list(start_indices)
    else:
        if len(shape_of(start_indices)) != 1:
            raise ValueError(
                f"Length of slice indices must match number of operand dimensions, got indices of shape "
                f"{shape_of(start_indices)} for shape {shape}"
            )
        given = [index_in_dim(start_indices, k, keepdims=False) for k in range(shape_of(start_indices)[0])]
    if len(given) != len(shape):
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({len(given)} vs {shape})"
        )
    flags = [allow_negative] * len(given) if isinstance(allow_negative, (bool, np.bool_)) else allow_negative
    plain = np.dtype(np.int32)
    if any(not -(2**31) <= i < 2**31 if type(i) is int else getattr(i, "dtype", plain) == np.int64 for i in given):
        plain = dtypes.default_int_dtype()
    return [_start_scalar(i, d, f, plain) for i, d, f in zip(given, shape, flags, strict=True)]


def _start_scalar(i: Any, extent: Any, allow_negative: bool, plain: np.dtype) -> Any:
    """One of `start_scalars`; Python's integers get the dtype `plain`. What a dtype cannot hold wraps around."""
    if isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_)) and not is_symbolic(extent):
        value = operator.index(i)
        if allow_negative and value < 0:
            value += extent
        dtype = dtypes.canonicalize_dtype(i.dtype) if isinstance(i, np.integer) else plain
        return np.asarray(value & (2**64 - 1), np.uint64).astype(dtype)
    aval = get_aval(i)
    if not allow_negative or not dtypes.issubdtype(aval.dtype, np.signedinteger):
        return i
    dtype = aval.dtype
    if not isinstance(i, Tracer) and aval.shape == ():
        value = int(np.asarray(i))
        if value >= 0:
            return i
    # A size that the index type cannot hold leaves negative numbers with no meaning but clamping.
    if not is_named(extent) and extent > np.iinfo(dtype).max:
        return i
    size = np.asarray(extent, dtype) if not is_symbolic(extent) else convert_element_type(extent, dtype)
    return select(lt(i, np.zeros((), dtype)), add(convert_element_type(i, dtype), size), i)


def dynamic_slice(operand: ArrayLike, start_indices: ArrayLike | Sequence[ArrayLike], slice_sizes: Shape, *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """A block of an array at a position known when the program runs.

    Args:
      operand: an array.
      start_indices: a sequence of integer scalars, or an integer vector: the first index of each dimension.
        A block that would reach beyond the array is moved inside.
      slice_sizes: shape of the block.
      allow_negative_indices: whether numbers below zero count from the end, for all or each dimension.

    Returns:
      an array of shape `slice_sizes`.

    Raises:
      TypeError: for a block larger than the array, or indices that are no integers.
      ValueError: unless there is one index for each dimension.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.dynamic_slice(jnp.arange(6), (2,), (3,))
      Array([2, 3, 4], dtype=int32)
    """
    starts = start_scalars(operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=canonical_shape(slice_sizes) if len(
        slice_sizes) else ())  # fmt: skip


@api_boundary
def dynamic_slice_in_dim(operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *,
                         allow_negative_indices: bool = True) -> Array:
    """A run of positions along one dimension, from a position known when the program runs.

    Args:
      operand: an array.
      start_index: an integer scalar; moved so that the slice lies inside the array.
      slice_size: how many positions.
      axis: the dimension.
      allow_negative_indices: whether numbers below zero count from the end.

    Returns:
      an array of the dtype of `operand`, with `slice_size` positions in that dimension.
    """
    shape = shape_of(operand)
    axis = range(len(shape))[axis]
    starts: list[Any] = [np.zeros((), get_aval(start_index).dtype)] * len(shape)
    sizes = list(shape)
    starts[axis], sizes[axis] = start_index, canonical_dim(slice_size)
    flags = [False] * len(shape)
    flags[axis] = allow_negative_indices
    return dynamic_slice(operand, _typed(starts, start_index), sizes, allow_negative_indices=flags)


def _typed(starts: list[Any], pattern: Any) -> list[Any]:
    """Zeros of the dtype of the one index that is not; plain numbers stay so."""
    if isinstance(pattern, int):
        return [0 if isinstance(s, np.ndarray) else s for s in starts]
    return starts


@api_boundary
def dynamic_index_in_dim(operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *,
                         allow_negative_indices: bool = True) -> Array:
    """The slice of one position, known when the program runs, along a dimension.

    Args:
      operand: an array.
      index: an integer scalar; moved to the nearest position that exists.
      axis: the dimension.
      keepdims: keep the dimension, with size 1.
      allow_negative_indices: whether numbers below zero count from the end.

    Returns:
      an array of the dtype of `operand`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.dynamic_index_in_dim(jnp.array([10, 20, 30]), 1)
      Array([20], dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else squeeze(out, (axis,))


# -- dynamic_update_slice ------------------------------------------------------------------------------
def _update_shape(x: Any, update: Any, *indices: Any) -> tuple:
    if update.ndim != x.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {x.shape}."
        )
    for size, extent in zip(update.shape, x.shape, strict=True):
        if size > extent:
            raise TypeError(
                "dynamic_update_slice update shape must be smaller than operand shape, got update shape "
                f"{update.shape} for operand shape {x.shape}."
            )
    if len(indices) != x.ndim:
        raise TypeError(
            "dynamic_update_slice needs one start index for each dimension, got "
            f"{len(indices)} for shape {x.shape}."
        )
    _check_indices("dynamic_update_slice", indices)
    return x.shape


def _update_dtype(x: Any, update: Any, *indices: Any) -> Any:
    if x.dtype != update.dtype:
        raise TypeError(
            "lax.dynamic_update_slice requires arguments to have the same dtypes, got "
            f"{x.dtype.name}, {update.dtype.name}."
        )
    return x.dtype


def _update_loops(b: Builder, x: Any, update: Any, *indices: Any) -> Any:
    starts = clamped_starts(b, indices, x.shape, update.shape)
    return b.update(x, update, [0 if s is None else s for s in starts])


dynamic_update_slice_p = standard_primitive(
    "dynamic_update_slice",
    _update_shape,
    _update_dtype,
    loops=_update_loops,
    hlo=lambda m, x, update, *indices: m.op1(
        "stablehlo.dynamic_update_slice", [x, update, *indices], m.avals_out[0]
    ),
)
def _added(total: Any, zeros: Any, update: Any, *indices: Any) -> Any:
    here = dynamic_slice_p.bind(total, *indices, slice_sizes=shape_of(update))
    return dynamic_update_slice_p.bind(total, add(here, update), *indices)


dynamic_update_slice_p.declare(
    added=_added, once=True, sharding=sharding_rules.dynamic_update_slice, factors=factor_rules.dynamic_update_slice,
    windows=lambda avals, _: Windows(slice(2, None), range(avals[0].ndim), avals[1].shape))


def _update_jvp(primals: Any, tangents: Any) -> Any:
    x, update, *indices = primals
    t_x, t_update = tangents[:2]
    out = dynamic_update_slice_p.bind(x, update, *indices)
    if type(t_x) is ad.Zero and type(t_update) is ad.Zero:
        return out, ad.Zero.from_primal_value(out)
    t_x, t_update = ad.instantiate_zeros(t_x), ad.instantiate_zeros(t_update)
    return out, dynamic_update_slice_p.bind(t_x, t_update, *indices)


def _update_transpose(ct: Any, x: Any, update: Any, *indices: Any) -> list[Any]:
    rest: list[Any] = [None] * len(indices)
    linear_x, linear_update = ad.is_undefined_primal(x), ad.is_undefined_primal(update)
    if type(ct) is ad.Zero:
        return [
            ad.Zero(x.aval) if linear_x else None,
            ad.Zero(update.aval) if linear_update else None,
            *rest,
        ]
    given = update.aval if linear_update else get_aval(update)
    shape = given.shape
    zeros = full(shape, 0, get_aval(ct).dtype, sharding=given.given_sharding)
    ct_x = dynamic_update_slice_p.bind(ct, zeros, *indices) if linear_x else None
    ct_update = dynamic_slice_p.bind(ct, *indices, slice_sizes=shape) if linear_update else None
    return [ct_x, ct_update, *rest]


def _update_batch(args: Any, dims: Any) -> Any:
    x, update, *indices = args
    x_dim, update_dim, *index_dims = dims
    size = next(shape_of(v)[d] for v, d in zip(args, dims, strict=True) if d is not None)
    if all(d is None for d in index_dims):
        x, update = batching.all_at_front((x, update), (x_dim, update_dim), size)
        zero = np.zeros((), get_aval(indices[0]).dtype) if indices else np.int32(0)
        out = dynamic_update_slice_p.bind(x, update, zero, *indices)
        return _convert_element_type(out, weak_type=get_aval(x).weak_type), 0  # as a scatter's result
    from .scatter import GatherScatterMode, ScatterDimensionNumbers, scatter_p

    window = tuple(range(len(indices)))
    dnums = ScatterDimensionNumbers(
        update_window_dims=window, inserted_window_dims=(), scatter_dims_to_operand_dims=window
    )
    where, where_dim = _stacked_indices(indices, index_dims)
    return rules.batchers[scatter_p](
        (x, where, update),
        (x_dim, where_dim, update_dim),
        dimension_numbers=dnums,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
        update_jaxpr=None,
        update_consts=(),
    )


rules.jvps[dynamic_update_slice_p] = _update_jvp
rules.transposes[dynamic_update_slice_p] = _update_transpose
rules.batchers[dynamic_update_slice_p] = _update_batch


def dynamic_update_slice(operand: ArrayLike, update: ArrayLike, start_indices: ArrayLike | Sequence[ArrayLike], *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The array with a block replaced, at a position known when the program runs.

    Args:
      operand: an array.
      update: the new block, of the same dtype and number of dimensions, no larger than `operand`.
      start_indices: a sequence of integer scalars, or an integer vector: where the block goes. A block that
        would reach beyond the array is moved inside.
      allow_negative_indices: whether numbers below zero count from the end, for all or each dimension.

    Returns:
      an array of the shape of `operand`.

    Raises:
      TypeError: for a block that does not fit, or indices that are no integers.
      ValueError: unless there is one index for each dimension.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,))
      Array([0., 1., 1., 0.], dtype=float32)
    """
    starts = start_scalars(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


@api_boundary
def dynamic_update_slice_in_dim(operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The array with a run of positions along one dimension replaced.

    Args:
      operand: an array.
      update: the new elements; its shape differs from that of `operand` in `axis` at most.
      start_index: an integer scalar; moved so that the update lies inside the array.
      axis: the dimension.
      allow_negative_indices: whether numbers below zero count from the end.

    Returns:
      an array of the shape and dtype of `operand`.
    """
    shape = shape_of(operand)
    axis = canonical_axis(axis, len(shape))
    starts: list[Any] = [np.zeros((), get_aval(start_index).dtype)] * len(shape)
    starts[axis] = start_index
    flags = [False] * len(shape)
    flags[axis] = allow_negative_indices
    return dynamic_update_slice(
        operand, update, _typed(starts, start_index), allow_negative_indices=flags
    )


@api_boundary
def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The array with the slice of one position along a dimension replaced.

    Args:
      operand: an array.
      update: the new slice, with the dimension (of size 1) or without it.
      index: an integer scalar; moved to the nearest position that exists.
      axis: the dimension.
      allow_negative_indices: whether numbers below zero count from the end.

    Returns:
      an array of the shape and dtype of `operand`.
    """
    ndim = len(shape_of(operand))
    axis = canonical_axis(axis, ndim)
    if len(shape_of(update)) != ndim:
        from ..shaping.broadcasting import expand_dims

        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


def _dynamic_slice_keys(c: Any, x: Any, *indices: Any, slice_sizes: tuple) -> Any:
    zero = np.zeros((), get_aval(indices[0]).dtype) if indices else np.int32(0)
    n = c.element_ndim()
    return dynamic_slice_p.bind(x, *indices, *[zero] * n, slice_sizes=(*slice_sizes, *c.element_shape()))


def _update_keys(c: Any, x: Any, update: Any, *indices: Any) -> Any:
    zero = np.zeros((), get_aval(indices[0]).dtype) if indices else np.int32(0)
    return dynamic_update_slice_p.bind(x, update, *indices, *[zero] * c.element_ndim())


physicals[dynamic_slice_p] = _dynamic_slice_keys
physicals[dynamic_update_slice_p] = _update_keys
