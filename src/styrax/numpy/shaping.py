"""The elements of one array in another shape, or with axes in another order; diagonals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import resolved
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.programs.named import named
from styrax.core.tracing.errors import InconclusiveDimensionOperation
from styrax.core.tracing.source import api_boundary, hide_frames
from styrax.core.tracing.trace import Tracer, concrete_or_error
from styrax.core.types.dims import is_named, larger, smaller, surely_differ
from styrax.core.types.typing import ArrayLike, Axis, DTypeLike, ShapeLike, ShardingLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import canonical_shape, choose_elements
from .conversion import asarray, place
from .promotion import (
    axis_index,
    axis_indices,
    check_arraylike,
    convert,
    default_int,
    is_array,
    static_axis,
    unwrap,
    user_dtype,
)

_max, _min, _sum = max, min, sum


def operand(name: str, a: Any) -> Array:
    """The argument `a` of the function `name` as an array."""
    if is_array(a):
        return a
    check_arraylike(name, a)
    return asarray(unwrap(a))


@api_boundary
def reshape(a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None,
            out_sharding: ShardingLike | None = None) -> Array:
    """The elements of an array in another shape.

    Args:
      a: an array or number.
      shape: the sizes; one may be -1, and follows from the others then.
      order: "C" for row order, "F" for column order, both in reading and in writing.
      copy: without effect.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and of the dtype of `a`.

    Raises:
      TypeError: where the sizes do not multiply to the number of elements.
      ValueError: for another order.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.reshape(jnp.arange(6), (2, -1))
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
    """
    return _placed_reshape(operand("reshape", a), shape, order, out_sharding)


def _placed_reshape(a: Any, shape: Any, order: str, out_sharding: Any) -> Array:
    if out_sharding is None or order != "C":
        out_sharding = None if out_sharding is None else result_sharding(out_sharding, "reshape")
        return place(reshape_to(a, shape, order=order), out_sharding)
    return lax.reshape(a, _new_sizes(a, shape), out_sharding=resolved(result_sharding(out_sharding, "reshape")))


def reshape_to(a: Any, *shape: Any, order: str = "C") -> Array:
    """`a.reshape(*shape)`: the new sizes as one sequence or as arguments."""
    new = _new_sizes(a, shape[0] if len(shape) == 1 else shape)
    if order not in ("C", "F", "A"):
        raise ValueError(f"Unexpected value for 'order' argument: {order}.")
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    if order == "F":
        dims = tuple(range(a.ndim)[::-1])
        return lax.transpose(lax.reshape(a, new[::-1], dims), tuple(range(len(new))[::-1]))
    return a if new == a.shape else lax.reshape(a, new)


def _new_sizes(a: Any, shape: Any) -> tuple:
    new = canonical_shape([shape] if isinstance(shape, Tracer) and not shape.shape else shape)
    size = math.prod(a.shape)
    if any(d == -1 for d in new if type(d) is int):
        if _sum(1 for d in new if type(d) is int and d == -1) > 1:
            raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
        known = math.prod(d for d in new if not (type(d) is int and d == -1))
        if known == 0 or size % known:
            if known != 0 and is_named(size % known):
                raise InconclusiveDimensionOperation(
                    f"Cannot divide evenly the sizes of shapes {a.shape} and {new}. The remainder "
                    f"{size % math.prod(new)} should be 0.")
            raise TypeError(f"cannot reshape array of shape {a.shape} (size {size}) into shape {new} because the "
                            f"product of specified axis sizes ({known}) does not evenly divide {size}")
        return tuple(size // known if type(d) is int and d == -1 else d for d in new)
    if surely_differ(math.prod(new), size):
        raise TypeError(f"cannot reshape array of shape {a.shape} (size {size}) into shape {new} "
                        f"(size {math.prod(new)})")
    return new


@api_boundary
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
    """The elements of an array as a vector.

    Args:
      a: an array or number.
      order: "C" for row order, "F" for column order.
      out_sharding: sharding of the result.

    Returns:
      a vector of the dtype of `a`.

    Raises:
      NotImplementedError: for the orders "K" and "A".

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
      Array([1, 2, 3, 4], dtype=int32)
    """
    a = operand("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return _placed_reshape(a, (a.size,), order, out_sharding)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """An array with its axes in another order.

    Args:
      a: an array or number.
      axes: for each axis of the result the axis of `a`; by default they are reversed.

    Returns:
      an array of the elements of `a`.

    Raises:
      TypeError, ValueError: for `axes` that are no permutation.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.transpose(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
      (4, 2, 3)
    """
    try:
        a = operand("transpose", a)
        if axes is None:
            order = tuple(range(a.ndim)[::-1])
        else:
            order = tuple(axis_index(i, a.ndim) for i in axes)
        return lax.transpose(a, order)
    except Exception as error:
        hide_frames(error)
        raise


def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """An array with its axes in another order.

    Args:
      a: an array or number.
      axes: for each axis of the result the axis of `a`.

    Returns:
      an array of the elements of `a`.
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """An array with its last two axes exchanged; complex numbers are not conjugated.

    Args:
      x: an array of shape `[..., m, n]`.

    Returns:
      an array of shape `[..., n, m]`.

    Raises:
      ValueError: below rank 2.
    """
    x = operand("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@api_boundary
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """An array with two axes exchanged.

    Args:
      a: an array.
      axis1, axis2: the axes; negative ones count from the end.

    Returns:
      an array of the elements of `a`.

    Raises:
      IndexError: for an axis that `a` does not have.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
      (4, 3, 2)
    """
    a = operand("swapaxes", a)
    axis1 = concrete_or_error(operator.index, axis1, "axis1")
    axis2 = concrete_or_error(operator.index, axis2, "axis2")
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return lax.transpose(a, tuple(order))


@api_boundary
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """An array with some axes moved; the others stay in their order.

    Args:
      a: an array.
      source: the axes to move, an int or several.
      destination: their places in the result, as many.

    Returns:
      an array of the elements of `a`.

    Raises:
      ValueError: where these are not equally many, or out of range.
      TypeError: for an axis that is moved twice.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
      (3, 4, 2)
    """
    a = operand("moveaxis", a)
    source = axis_indices(source, a.ndim, unique=False)
    destination = axis_indices(destination, a.ndim, unique=False)
    if len(source) != len(destination):
        raise ValueError(f"Inconsistent number of elements: {len(source)} vs {len(destination)}")
    order = [i for i in range(a.ndim) if i not in source]
    for to, from_ in sorted(zip(destination, source)):
        order.insert(to, from_)
    return lax.transpose(a, tuple(order)) if order != list(range(a.ndim)) else a


def _rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """An array with one axis moved until it lies before another. `moveaxis` is simpler.

    Args:
      a: an array.
      axis: the axis to move.
      start: the axis that it is put before; `a.ndim` for the end.

    Returns:
      an array of the elements of `a`.

    Raises:
      ValueError: for an axis or a `start` out of range.
    """
    a = operand("rollaxis", a)
    start = operator.index(start)
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    start += a.ndim if start < 0 else 0
    axis = axis_index(axis, a.ndim)
    return moveaxis(a, axis, start - 1 if start > axis else start)


rollaxis = jit(named(_rollaxis, "rollaxis"), static_argnames=("axis", "start"))


@api_boundary
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """An array with new axes of size 1.

    Args:
      a: an array or number.
      axis: their places in the result, an int or several.

    Returns:
      an array of the elements of `a`.

    Raises:
      ValueError: for places out of range or given twice.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.expand_dims(jnp.ones(3), axis=(0, 2)).shape
      (1, 3, 1)
    """
    a = operand("expand_dims", a)
    axis = static_axis(axis)
    places = axis if isinstance(axis, tuple) else (axis,)
    return lax.expand_dims(a, axis_indices(places, a.ndim + len(places)))


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """An array without axes of size 1.

    Args:
      a: an array or number.
      axis: the axes, an int or several; by default all of size 1.

    Returns:
      an array of the elements of `a`.

    Raises:
      ValueError: for an axis of another size, or out of range.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
      (3,)
    """
    try:
        a = operand("squeeze", a)
        if axis is None:
            if any(map(is_named, a.shape)):
                raise ValueError("jnp.squeeze with axis=None is not supported with shape polymorphism")
            axes = tuple(i for i, d in enumerate(a.shape) if type(d) is int and d == 1)
        else:
            axes = axis_indices(axis, a.ndim)
        return lax.squeeze(a, axes) if axes else a
    except Exception as error:
        hide_frames(error)
        raise


class AtLeast(Protocol):
    """`atleast_1d` and its kin: one argument gives an array, several a list."""

    @overload
    def __call__(self, x: ArrayLike, /) -> Array: ...
    @overload
    def __call__(self, *arys: ArrayLike) -> Array | list[Array]: ...


def _atleast(name: str, rank: int, shape: Callable[[int], tuple[int, ...]], how: str) -> AtLeast:
    """`atleast_nd`: `shape(ndim)` gives the axes to insert into an array of rank `ndim` below `rank`."""

    def one(x: Any) -> Any:
        x = operand(name, x)
        return x if x.ndim >= rank else lax.expand_dims(x, shape(x.ndim))

    compiled = jit(named(lambda x: one(x), name, ""))

    def function(*arys: ArrayLike) -> Array | list[Array]:
        for x in arys:
            check_arraylike(name, x)
        if len(arys) == 1:
            return compiled(unwrap(arys[0]))
        return [compiled(unwrap(x)) for x in arys]

    return named(function, name, _ATLEAST.format(rank, how))  # type: ignore[return-value]


_ATLEAST = """Each argument as an array of rank {} at least: {}.

    Args:
      *arys: arrays or numbers.

    Returns:
      an array for one argument, a list for several.
    """
atleast_1d = _atleast("atleast_1d", 1, lambda n: (0,), "a number becomes [1]")
atleast_2d = _atleast("atleast_2d", 2, lambda n: (0, 1)[: 2 - n], "a number becomes [1, 1], a vector [1, n]")
atleast_3d = _atleast("atleast_3d", 3, lambda n: {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[n],
                      "a number becomes [1, 1, 1], a vector [1, n, 1], a matrix [m, n, 1]")




# -- diagonals -----------------------------------------------------------------------------------
def _diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals in the planes of two axes.

    Args:
      a: an array of rank 2 at least.
      offset: how many places the diagonal lies above the main one, or below it if negative.
      axis1, axis2: the axes of rows and columns.

    Returns:
      an array of the other axes of `a`, then the diagonals.

    Raises:
      ValueError: below rank 2.
    """
    from .indexing import gather_elements

    a = operand("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    offset = operator.index(offset)
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2:]
    size = larger(0, smaller(rows + _min(offset, 0), columns - _max(offset, 0)))
    i, j = lax.iota(default_int(), size), lax.iota(default_int(), size)
    if offset > 0:
        j = lax.add(convert(offset, j.dtype), j)
    elif offset < 0:
        i = lax.sub(i, convert(offset, i.dtype))
    return convert(gather_elements(a, (..., i, j)), a.dtype)


diagonal = jit(named(_diagonal, "diagonal"), static_argnames=("offset", "axis1", "axis2"))


def _trace(a: ArrayLike, offset: int | ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None,
           out: None = None) -> Array:
    """The sums of the diagonals in the planes of two axes.

    Args:
      a: an array of rank 2 at least.
      offset: how many places the diagonal lies above the main one, or below it if negative. It may be traced.
      axis1, axis2: the axes of rows and columns.
      dtype: dtype of the sum; by default that of `a`, with booleans and small integers widened as in `sum`.
      out: not supported, None only.

    Returns:
      an array of the other axes of `a`.

    Raises:
      ValueError: below rank 2.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)
    """
    from .reductions import sum as sum_

    a = operand("trace", a)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.trace is not supported.")
    if a.ndim < 2:
        raise ValueError("trace requires an array of at least two dimensions.")
    if axis1 % a.ndim == axis2 % a.ndim:
        raise ValueError(f"axis1 and axis2 can not be same. {axis1=} and {axis2=}")
    kind = None if dtype is None else user_dtype(dtype, "trace")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    plane = a.shape[-2:]
    index = np.dtype(np.int32)
    rows, columns = lax.broadcasted_iota(index, plane, 0), lax.broadcasted_iota(index, plane, 1)
    mask = lax.eq(lax.add(rows, convert(offset, index)), columns)
    a = choose_elements(mask, a, lax.full_like(a, 0))
    return sum_(a, axis=(-2, -1), dtype=kind)


trace = jit(named(_trace, "trace"), static_argnames=("axis1", "axis2", "dtype"))


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    Args:
      x: an array of rank 1 at least.
      axis: the axis.

    Returns:
      a tuple of arrays without that axis.

    Raises:
      ValueError: for scalars.
    """
    x = operand("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return tuple(lax.unstack(x, axis_index(axis, x.ndim)))


