"""Slices with positions known when a program is traced."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.traits import Part
from styrax.core.tracing.errors import ShardingTypeError
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.types.dims import is_symbolic
from styrax.core.types.physical import physicals
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad

from .. import factor_rules, sharding_rules
from ..elementwise.families import first_dtype, shape_of, standard_primitive
from ..shaping.broadcasting import squeeze
from ..shaping.filling import pad
from ..shaping.joining import slice_hlo
from ..shaping.shapes import canonical_shape

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def _slice_shape(x: Any, *, start_indices: tuple, limit_indices: tuple, strides: Any) -> tuple:
    for name, values in (("start_indices", start_indices), ("limit_indices", limit_indices)):
        if len(values) != x.ndim:
            raise TypeError(
                f"slice {name} must have length equal to the number of dimensions of the operand, got "
                f"{name} {values} for operand shape {x.shape}."
            )
    if strides is not None and len(strides) != x.ndim:
        raise TypeError(
            "slice strides must have length equal to the number of dimensions of the operand, got strides "
            f"{strides} for operand shape {x.shape}."
        )
    for start, limit, size in zip(start_indices, limit_indices, x.shape, strict=True):
        if start < 0:
            raise TypeError(f"slice start_indices must be greater than or equal to zero, got {start_indices}.")
        if not limit >= start:
            raise TypeError(
                "slice limit_indices must be greater than or equal to start_indices, got start_indices "
                f"{start_indices} and limit_indices {limit_indices}."
            )
        if limit > size:
            raise TypeError(
                f"slice limit_indices must be less than or equal to operand shape, got limit_indices "
                f"{limit_indices} for operand shape {x.shape}."
            )
    if strides is None:
        return tuple(limit - start for start, limit in zip(start_indices, limit_indices, strict=True))
    if any(s <= 0 for s in strides):
        raise TypeError(f"slice strides must be positive, got {strides}")
    return tuple(
        (limit - start + step - 1) // step
        for start, limit, step in zip(start_indices, limit_indices, strides, strict=True)
    )


def _slice_loops(b: Builder, x: Any, *, start_indices: tuple, limit_indices: tuple, strides: Any) -> Any:
    steps = strides or (1,) * len(x.shape)

    def at(index: Any) -> Any:
        where = []
        for i, start, step in zip(index, start_indices, steps, strict=True):
            if step != 1:
                i = b.mul(i, b.index(step))
            where.append(b.add(i, b.index(start)) if not (type(start) is int and start == 0) else i)
        return x.at(where)

    return b.value(b.avals_out[0].shape, x.dtype, at)


slice_p = standard_primitive(
    "slice",
    _slice_shape,
    first_dtype,
    loops=_slice_loops,
    hlo=lambda m, x, *, start_indices, limit_indices, strides: slice_hlo(
        m, x, start_indices, limit_indices, strides or (1,) * len(x.shape)
    ),
)
slice_p.declare(movement=True, sizes=frozenset(("start_indices", "limit_indices",)),
                parts=lambda params, _: [Part(params["start_indices"], params["limit_indices"], params["strides"])],
                sharding=sharding_rules.cut, factors=factor_rules.static_slice)


def _slice_transpose(
    ct: Any, x: Any, *, start_indices: tuple, limit_indices: tuple, strides: Any
) -> list[Any]:
    shape = x.aval.shape
    config = []
    for d, (start, limit) in enumerate(zip(start_indices, limit_indices, strict=True)):
        step = 1 if strides is None else strides[d]
        if step == 1:
            config.append((start, shape[d] - limit, 0))
        else:
            count = shape_of(ct)[d]
            covered = start + (1 + (count - 1) * step if count else 0)
            config.append((start, shape[d] - covered, step - 1))
    return [pad(ct, np.zeros((), get_aval(ct).dtype), config)]


def _slice_batch(
    args: Any, dims: Any, *, start_indices: tuple, limit_indices: tuple, strides: Any
) -> Any:
    (x,), (dim,) = args, dims
    start = (*start_indices[:dim], 0, *start_indices[dim:])
    limit = (*limit_indices[:dim], shape_of(x)[dim], *limit_indices[dim:])
    steps = None if strides is None else (*strides[:dim], 1, *strides[dim:])
    return slice(x, start, limit, steps), dim


ad.deflinear2(slice_p, _slice_transpose)
rules.batchers[slice_p] = _slice_batch


def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Array:
    """A block of an array at positions known when the program is traced.

    Args:
      operand: an array.
      start_indices: first index of each dimension.
      limit_indices: index after the last one of each dimension.
      strides: step along each dimension, 1 by default.

    Returns:
      an array of the same number of dimensions.

    Raises:
      TypeError: for positions outside the array or that do not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.slice(jnp.arange(6), (1,), (5,), (2,))
      Array([1, 3], dtype=int32)
    """
    starts = canonical_shape(start_indices) if len(start_indices) else ()
    limits = canonical_shape(limit_indices) if len(limit_indices) else ()
    try:
        return slice_p.bind(operand, start_indices=starts, limit_indices=limits,
                            strides=None if strides is None else tuple(map(operator.index, strides)))
    except ShardingTypeError as error:  # what is cut at once is a dynamic slice in JAX
        if isinstance(operand, Tracer):
            raise
        raise ShardingTypeError(str(error).replace("slicing on", "dynamic_slice on")) from None


def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1,
                 axis: int = 0) -> Array:
    """A slice along one dimension, as Python's `x[start:limit:stride]` cuts it.

    Args:
      operand: an array.
      start_index, limit_index: positions; negative ones count from the end, None is the whole length.
      stride: positive step.
      axis: the dimension; negative ones count from the end.

    Returns:
      an array of the dtype of `operand`.
    """
    shape = shape_of(operand)
    axis = range(len(shape))[axis]
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    size = shape[axis]
    start = 0 if start_index is None else _from_end(start_index, size)
    limit = size if limit_index is None else _from_end(limit_index, size)
    starts[axis], limits[axis], strides[axis] = start, limit, operator.index(stride)
    return slice(operand, starts, limits, strides)


def _from_end(position: Any, size: Any) -> Any:
    if is_symbolic(position):
        return position
    position = operator.index(position)
    return position + size if position < 0 else position


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice of one position along a dimension.

    Args:
      operand: an array.
      index: the position; negative ones count from the end.
      axis: the dimension.
      keepdims: keep the dimension, with size 1.

    Returns:
      an array of the dtype of `operand`.

    Raises:
      IndexError: for a position that does not exist.
    """
    index, axis = operator.index(index), operator.index(axis)
    shape = shape_of(operand)
    size = shape[axis]
    where = index + size if index < 0 else index
    if not 0 <= where < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    out = slice_in_dim(operand, where, where + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


def _slice_keys(c: Any, x: Any, *, start_indices: tuple, limit_indices: tuple, strides: Any) -> Any:
    n = c.element_ndim()
    return slice(
        x,
        (*start_indices, *(0,) * n),
        (*limit_indices, *c.element_shape()),
        None if strides is None else (*strides, *(1,) * n),
    )


physicals[slice_p] = _slice_keys
