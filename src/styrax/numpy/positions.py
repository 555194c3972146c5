"""Positions of elements: where they are nonzero, and flat ones against those along each axis."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.following import beside
from styrax.core.tracing.trace import Tracer, concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import canonical_dim, plain_size
from styrax.core.types.typing import ArrayLike, DTypeLike, Shape

from .binary import subtract
from .broadcasting import choose_elements, truth
from .clipping import clip
from .conversion import asarray
from .promotion import (
    arrays,
    axis_index,
    check_arraylike,
    convert,
    default_int,
    is_array,
    shape_of,
    unwrap,
    user_dtype,
)
from .shaping import operand, ravel


def nonzero(a: ArrayLike, *, size: int | None = None,
            fill_value: None | ArrayLike | tuple[ArrayLike, ...] = None) -> tuple[Array, ...]:
    """The indices of the nonzero elements, in row order. NaN counts as nonzero.

    Args:
      a: an array of rank 1 at least.
      size: how many indices are given: needed under `jit`. Superfluous ones are cut off.
      fill_value: what is given where there are not so many: an index, or a tuple of one per axis; 0 by default.

    Returns:
      a tuple of integer vectors, one per axis.

    Raises:
      ValueError: for scalars, and for a `fill_value` of another shape.
      ConcretizationTypeError: for a traced array without `size`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.nonzero(jnp.array([0, 4, 5]))
      (Array([1, 2], dtype=int32),)
      >>> jnp.nonzero(jnp.array([0, 4, 5]), size=3, fill_value=-1)
      (Array([ 1,  2, -1], dtype=int32),)
    """
    (a,) = arrays("nonzero", a)
    shape = shape_of(a)
    if not shape:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    mask = truth(a)
    if size is None:
        if isinstance(mask, Tracer):
            size = concrete_or_error(int, lax.reduce_sum(convert(mask, default_int()), range(len(shape))),
                                     "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
                                     "within JAX transformations.")
        else:
            found = np.nonzero(np.asarray(mask))
            if fill_value is None:
                places = tuple(asarray(i.astype(default_int())) for i in found)
                beside(places, (mask,))
                return places
            size = len(found[0])
    size = canonical_dim(concrete_or_error(None, size, "The size argument of jnp.nonzero must be statically specified "
                                            "to use jnp.nonzero within JAX transformations."))
    mask = asarray(mask)
    if math.prod(shape) == 0 or size == 0:
        return tuple(lax.full((size,), 0 if fill_value is None else fill_value if np.ndim(fill_value) == 0 else  # type: ignore[arg-type]
                              fill_value[i], default_int()) for i in range(len(shape)))  # type: ignore[index]
    from .accumulations import cumsum
    from .reductions import sum as sum_

    flat = ravel(mask)
    # The rank of every nonzero element among them, then how many ranks are below each place.
    ranks = cumsum(flat)
    flat_indices = cumsum(bincount_of(ranks, size))
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    from .division import floor_divide, remainder

    out = tuple(remainder(floor_divide(flat_indices, stride), n) for stride, n in zip(strides, shape))
    if fill_value is not None:
        fill = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(shape)
        if len(fill) != len(shape) or any(np.ndim(f) for f in fill):  # type: ignore[arg-type]
            raise ValueError(f"fill_value must be a scalar or a tuple of length {len(shape)}; got {fill_value}")
        missing = lax.ge(lax.iota(np.dtype(np.int32), size), convert(sum_(flat), np.dtype(np.int32)))
        out = tuple(choose_elements(missing, f, entry) for f, entry in zip(fill, out))  # type: ignore[arg-type]
    return out


def bincount_of(x: Any, length: int) -> Any:
    """How often each of 0 … length - 1 occurs in a vector of integers that are not negative."""
    from .updates import scatter

    zeros = lax.full((length,), 0, default_int())
    return scatter(zeros, clip(x, 0), 1, "add")


def flatnonzero(a: ArrayLike, *, size: int | None = None,
                fill_value: None | ArrayLike | tuple[ArrayLike, ...] = None) -> Array:
    """The indices of the nonzero elements of `a` as a vector.

    Args:
      a: an array or number.
      size, fill_value: as for `nonzero`.

    Returns:
      a vector of integers.
    """
    return nonzero(ravel(operand("flatnonzero", a)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The indices of the nonzero elements as the rows of a matrix.

    Args:
      a: an array or number.
      size, fill_value: as for `nonzero`.

    Returns:
      integers of shape `[size, a.ndim]`.
    """
    from .shaping import atleast_1d

    a = operand("argwhere", a)
    rank = a.ndim
    found = nonzero(atleast_1d(a), size=size, fill_value=fill_value)
    table = lax.transpose(lax.stack(list(found), 0), (1, 0))
    if rank == 0:
        table = lax.slice_in_dim(table, 0, 0, axis=1)
    return table


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of an array where a condition is nonzero, in row order.

    Args:
      condition: an array; elements of `arr` beyond its size are left out.
      arr: an array.
      size, fill_value: as for `compress`.

    Returns:
      a vector of the dtype of `arr`.
    """
    return compress(ravel(operand("extract", condition)), ravel(operand("extract", arr)), size=size,
                    fill_value=fill_value)


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *, size: int | None = None,
             fill_value: ArrayLike = 0, out: None = None) -> Array:
    """The slices of an array where a vector is nonzero.

    Args:
      condition: a vector. One that is shorter than the axis selects nothing beyond its end.
      a: an array.
      axis: the axis of the slices, or None for the elements in row order.
      size: how many slices are given, up to all: needed where `condition` is traced. Superfluous ones are cut off.
      fill_value: what missing ones are filled up with.
      out: not supported, None only.

    Returns:
      an array of the dtype of `a`, of its shape but for `axis`.

    Raises:
      ValueError: for a condition that is no vector, or nonzero beyond the axis, and for a `size` out of range.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.compress is not supported.")
    check_arraylike("compress", condition, a, fill_value)
    condition = asarray(truth(unwrap(condition)))
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    a = asarray(unwrap(a))
    if axis is None:
        axis, a = 0, ravel(a)
    axis = axis_index(axis, a.ndim)
    if condition.shape[0] < a.shape[axis]:
        condition = lax.pad(condition, np.zeros((), bool), ((0, a.shape[axis] - condition.shape[0], 0),))
    else:
        extra = lax.slice_in_dim(condition, a.shape[axis], condition.shape[0])
        condition = lax.slice_in_dim(condition, 0, a.shape[axis])
        if extra.shape[0] and bool(np.any(concrete_or_error(np.asarray, extra, "condition of jnp.compress"))):
            raise ValueError("condition contains entries that are out of bounds")
    if size is None:
        mask = concrete_or_error(np.asarray, condition, "In jnp.compress the condition must be concrete unless "
                                                        "`size` is given.")
        from .indexing import gather_elements

        return gather_elements(a, (*[slice(None)] * axis, mask))
    if not 0 <= size <= a.shape[axis]:
        raise ValueError("size must not be negative or greater than the size of the array axis; got "
                         f"size={size} for a.shape[axis]={a.shape[axis]}")
    column = tuple(-1 if i == axis else 1 for i in range(a.ndim))
    mask = lax.reshape(condition, tuple(a.shape[axis] if c == -1 else 1 for c in column))
    kept = choose_elements(mask, a, convert(unwrap(fill_value), a.dtype))
    _, order = lax.sort_key_val(lax.bitwise_not(condition), lax.iota(np.int32, condition.shape[0]))
    from .indexing import gather_elements

    kept = gather_elements(kept, (*[slice(None)] * axis, order))
    return lax.slice_in_dim(kept, 0, size, axis=axis)


def unravel_index(indices: ArrayLike, shape: Shape) -> tuple[Array, ...]:
    """Flat indices into an array of a shape as indices along each axis. Those out of bounds go to the nearest place.

    Args:
      indices: integers of any shape, in row order; negative ones count from the end.
      shape: the shape, or a size; sizes may be traced.

    Returns:
      a tuple of arrays of the shape and dtype of `indices`, one per axis.

    Raises:
      ValueError: for sizes that are no scalars.
    """
    (indices,) = arrays("unravel_index", indices)
    indices = asarray(indices)
    if indices.dtype == np.bool_:
        indices = convert(indices, np.dtype(np.int32))
    sizes: tuple[Any, ...] = (shape,) if np.ndim(shape) == 0 and not isinstance(shape, (tuple, list)) else tuple(shape)  # type: ignore[arg-type]
    if any(shape_of(s) != () for s in sizes):
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    from .division import divmod as divmod_

    kind = indices.dtype
    if not sizes:
        return ()
    out: list[Any] = []
    rest = indices
    for n in reversed(sizes):
        rest, i = divmod_(rest, n)
        out.append(i)
    # What is left over after the first axis tells an index that is too large (> 0) or too small (< -1).
    upper = convert(0, kind)
    result = []
    for i, n in zip(reversed(out), sizes):
        if not dtypes.issubdtype(kind, np.unsignedinteger):
            i = choose_elements(lax.lt(rest, convert(-1, kind)), 0, i)
        last: Any = subtract(n, 1) if is_array(n) else plain_size(n) - 1
        result.append(choose_elements(lax.gt(rest, upper), last, i))
    return tuple(result)


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise", order: str = "C", *,
                      dtype: DTypeLike | None = None) -> Array:
    """Indices along each axis as flat indices into an array of a shape.

    Args:
      multi_index: arrays of integers that broadcast, one per axis.
      dims: the shape.
      mode: what an index out of bounds means: an error ("raise", for concrete indices only), itself modulo the
        size ("wrap") or the nearest one ("clip").
      order: "C" for row order, "F" for column order.
      dtype: integer dtype of the result; by default that to which the indices promote.

    Returns:
      an array of the broadcast shape.

    Raises:
      ValueError: for indices out of bounds or of another dtype, for numbers of them other than that of `dims`, for a
        `dtype` too narrow for `dims`, and for other modes and orders.
    """
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    sizes = tuple(concrete_or_error(operator.index, d, "in `dims` argument of ravel_multi_index().") for d in dims)
    check_arraylike("ravel_multi_index", *multi_index)
    at = [asarray(unwrap(i)) for i in multi_index]
    for i in at:
        if mode == "raise":
            concrete_or_error(np.asarray, i, "The error occurred because ravel_multi_index was jit-compiled with "
                              "mode='raise'. Use mode='wrap' or mode='clip' instead.")
        if not dtypes.issubdtype(i.dtype, np.integer):
            raise ValueError(f"only int indices permitted, got dtype {i.dtype}")
    kind = user_dtype(dtype, "ravel_multi_index") if dtype is not None else (
        dtypes.result_type(*at) if at else default_int())
    if not dtypes.issubdtype(kind, np.integer):
        raise ValueError(f"{dtype=} is not an integer type.")
    if math.prod(sizes) - 1 > dtypes.iinfo(kind).max:
        raise ValueError(f"jnp.ravel_multi_index: dtype={kind} is not large enough to hold flat indices for "
                         f"dims={sizes}. Use the dtype argument to ask for a wider one.")
    # Bounds may be too large for the dtype of an index.
    at = [convert(i, dtypes.promote_types(i.dtype, kind)) for i in at]
    if mode == "raise":
        if any(np.any((np.asarray(i) < 0) | (np.asarray(i) >= d)) for i, d in zip(at, sizes)):
            raise ValueError("invalid entry in coordinates array")
    elif mode == "clip":
        at = [clip(i, 0, d - 1) for i, d in zip(at, sizes)]
    elif mode == "wrap":
        from .division import remainder

        at = [remainder(i, d) for i, d in zip(at, sizes)]
    else:
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', or 'clip'")
    if order == "C":
        strides = np.append(np.cumprod(sizes[:0:-1], dtype=int)[::-1], 1)
    elif order == "F":
        strides = np.append(1, np.cumprod(sizes[:-1], dtype=int))
    else:
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    from .binary import add, multiply

    out: Any = asarray(np.zeros((), kind))
    for i, stride in zip(at, strides):
        out = add(out, multiply(convert(i, kind), int(stride)))
    return out
