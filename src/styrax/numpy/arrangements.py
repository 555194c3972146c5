"""Elements in another order along axes, or repeated."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core import hooks
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, concrete_or_error, get_aval
from styrax.core.types.dims import is_named, size_argument
from styrax.core.types.typing import ArrayLike, Axis, Shape, ShapeLike, ShardingLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import canonical_shape, spread
from .conversion import asarray, with_result
from .promotion import (
    arrays,
    axis_index,
    axis_indices,
    check_arraylike,
    convert,
    default_int,
    dtype_of,
    is_array,
    shape_of,
    static_axis,
    unwrap,
)
from .shaping import operand, ravel, reshape_to


@partial(jit, static_argnames=("axis",))
def _flip(m: Any, axis: Any = None) -> Array:
    return lax.rev(m, axis_indices(axis, m.ndim, unique=False))


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """An array with its elements in reverse order along some axes.

    Args:
      m: an array.
      axis: an int, several, or None for all axes.

    Returns:
      an array of the shape and dtype of `m`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.flip(jnp.arange(3))
      Array([2, 1, 0], dtype=int32)
    """
    m = operand("flip", m)
    return _flip(m, static_axis(axis))


def fliplr(m: ArrayLike) -> Array:
    """An array reversed along its second axis.

    Args:
      m: an array of rank 2 at least.

    Returns:
      an array of the shape and dtype of `m`.

    Raises:
      ValueError: below rank 2.
    """
    m = operand("fliplr", m)
    if m.ndim < 2:
        raise ValueError(f"fliplr requires at least 2-dimensional input, got ndim={m.ndim}")
    return _flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """An array reversed along its first axis.

    Args:
      m: an array of rank 1 at least.

    Returns:
      an array of the shape and dtype of `m`.
    """
    return _flip(operand("flipud", m), 0)


def _rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """An array turned by right angles in the plane of two axes.

    Args:
      m: an array of rank 2 at least.
      k: how many right angles; negative ones turn backwards.
      axes: the plane: it is turned from the first towards the second.

    Returns:
      an array of the elements of `m`; the sizes of the two axes are exchanged for odd k.

    Raises:
      ValueError: below rank 2, and for axes that are not two or the same.
    """
    m = operand("rot90", m)
    if m.ndim < 2:
        raise ValueError(f"rot90 requires its first argument to have ndim at least two, but got first argument of "
                         f"shape {m.shape}, which has ndim {m.ndim}")
    first, second = axes
    a, b = axis_index(first, m.ndim), axis_index(second, m.ndim)
    if a == b:
        raise ValueError("Axes must be different")
    k = k % 4
    if k == 0:
        return m
    if k == 2:
        return flip(flip(m, a), b)
    order = list(range(m.ndim))
    order[a], order[b] = b, a
    if k == 1:
        return lax.transpose(flip(m, b), tuple(order))
    return flip(lax.transpose(m, tuple(order)), b)


rot90 = jit(named(_rot90, "rot90"), static_argnames=("k", "axes"))


@partial(jit, static_argnames=("shift", "axis"))
def _roll_static(a: Any, shift: tuple[int, ...], axis: tuple[int, ...]) -> Array:
    for n, i in zip(*np.broadcast_arrays(shift, axis)):
        i = axis_index(int(i), a.ndim)
        size = a.shape[i]
        n = (-int(n)) % (size or 1)
        if n:
            a = lax.concatenate([lax.slice_in_dim(a, n, size, axis=i), lax.slice_in_dim(a, 0, n, axis=i)], i)
    return a


@partial(jit, static_argnames=("axis",))
def _roll_dynamic(a: Any, shift: Any, axis: tuple[int, ...]) -> Array:
    from .division import remainder

    shifts = lax.broadcast_shapes(shape_of(shift), (len(axis),))
    shift = spread(shift, shifts)
    shift = convert(shift, default_int())  # a dtype that holds the sizes
    for n, i in enumerate(axis if shifts == (len(axis),) else axis * shifts[0]):
        i = axis_index(i, a.ndim)
        size = a.shape[i]
        step = lax.squeeze(lax.slice_in_dim(shift, n, n + 1), (0,))
        period = lax.max(convert(size, dtype_of(step)), convert(1, dtype_of(step)))
        step = remainder(step, period)
        twice = lax.concatenate((a, a), i)
        a = lax.dynamic_slice_in_dim(twice, lax.sub(convert(size, dtype_of(step)), step), size, axis=i)
    return a


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axis = None) -> Array:
    """An array with its elements moved along axes; those that leave one end come in at the other.

    Args:
      a: an array.
      shift: how many places, towards higher indices; an int or one for each axis. It may be traced; fractions are cut
        off.
      axis: an int, several (which may repeat), or None for the elements in row order.

    Returns:
      an array of the shape and dtype of `a`.

    Raises:
      ValueError: for a shift of rank above 1.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.roll(jnp.arange(5), 2)
      Array([3, 4, 0, 1, 2], dtype=int32)
    """
    a = operand("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(a), shift, 0), a.shape) if a.ndim != 1 else roll(a, shift, 0)
    axis = static_axis(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shift = tuple(map(unwrap, shift)) if isinstance(shift, (tuple, list)) else arrays("roll", shift)[0]  # type: ignore[arg-type]
    concrete = shift.to_concrete_value() if isinstance(shift, Tracer) and hasattr(shift, "to_concrete_value") else shift
    if concrete is None or any(isinstance(s, Tracer) for s in (shift if isinstance(shift, (tuple, list)) else ())) or (
            is_array(shift)):
        shifts = asarray(shift)
        if shifts.ndim > 1:
            raise ValueError("shift must be a scalar or 1-dimensional")
        return _roll_dynamic(a, shifts, axes)
    return _roll_static(a, tuple(int(s.real) for s in np.atleast_1d(np.asarray(concrete))), axes)


@api_boundary
def tile(A: ArrayLike, reps: ShapeLike) -> Array:
    """An array repeated as a whole along each axis.

    Args:
      A: an array or number.
      reps: one count or one per axis. Where there are fewer counts than axes, the last axes get them; where there are
        more, `A` gets new axes in front.

    Returns:
      an array of the dtype of `A`, its sizes multiplied by the counts.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.tile(jnp.array([1, 2]), (2, 2))
      Array([[1, 2, 1, 2],
             [1, 2, 1, 2]], dtype=int32)
    """
    a = operand("tile", A)
    try:
        given: tuple[Any, ...] = tuple(reps)  # type: ignore[arg-type]
    except TypeError:
        given = (reps,)
    counts = tuple(concrete_or_error(size_argument, r, "reps argument of jnp.tile") for r in given)
    if a.ndim < len(counts):
        a = lax.expand_dims(a, tuple(range(len(counts) - a.ndim)))
    counts = (1,) * (a.ndim - len(counts)) + counts
    return lax.tile(a, counts)


@api_boundary
def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
           out_sharding: ShardingLike | None = None) -> Array:
    """Every element (or slice along an axis) of an array repeated.

    Args:
      a: an array or number.
      repeats: how often, a number or one for each.
      axis: the axis, or None for the elements in row order.
      total_repeat_length: the length of the result: needed where `repeats` is traced. It is cut off, or filled up with
        the last element.
      out_sharding: sharding of the result.

    Returns:
      an array of the dtype of `a`, of its shape but for `axis`, or a vector.

    Raises:
      ValueError: for a number of counts other than that of the slices, and for an axis that types tell to be spread,
        without `out_sharding`.
      TypeError: for one count that is no integer.
      ConcretizationTypeError: for traced counts without `total_repeat_length`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.repeat(jnp.array([1, 2]), jnp.array([1, 3]), total_repeat_length=4)
      Array([1, 2, 2, 2], dtype=int32)
    """
    a = operand("repeat", a)
    check_arraylike("repeat", repeats)
    if axis is None:
        a, axis = ravel(a) if a.ndim != 1 else a, 0
    axis = axis_index(concrete_or_error(operator.index, axis, "'axis' argument of jnp.repeat()"), a.ndim)
    shape = a.shape
    told = get_aval(a).given_sharding
    if told is not None and told.spec[axis] is not None and out_sharding is None:
        raise ValueError("Please pass sharding to `jnp.repeat` via `out_sharding` parameter.")
    if is_named(repeats) and total_repeat_length is not None:
        raise ValueError("jnp.repeat with a non-constant `repeats` is supported only when `total_repeat_length` "
                         f"is None. (repeats={repeats} total_repeat_length={total_repeat_length})")
    if total_repeat_length is None:
        repeats = concrete_or_error(None, repeats, "When jit-compiling jnp.repeat, the total number of repeats must be "
                                    "static. To fix this, either specify a static value for `repeats`, or pass a "
                                    "static value to `total_repeat_length`.")
        counts = np.asarray(repeats)
        if counts.ndim > 1:
            repeats = counts = counts.ravel()
        if counts.ndim == 0 or counts.size == 1:
            times: Any = repeats if is_named(repeats) else operator.index(counts.item())
            return with_result(partial(_repeat_all, axis=axis, times=times), out_sharding, "repeat")(a)
        counts = np.broadcast_to(counts, (shape[axis],)) if counts.ndim == 1 else counts
        if counts.ndim != 1 or len(counts) != shape[axis]:
            raise ValueError(f"The repeats array should have length 1 or the length of the axis, {shape[axis]}; got "
                             f"shape {counts.shape}.")
        total = int(counts.sum())
        repeats = asarray(repeats) if not is_array(repeats) else repeats
    else:
        total = concrete_or_error(size_argument, total_repeat_length, "jnp.repeat argument 'total_repeat_length'")
        repeats = asarray(repeats)
        if repeats.ndim == 0:
            repeats = lax.broadcast_in_dim(repeats, (shape[axis],), ())
        elif repeats.shape != (shape[axis],):
            repeats = spread(repeats, (shape[axis],))
    if total == 0 or shape[axis] == 0:
        return lax.full((*shape[:axis], total if shape[axis] else 0, *shape[axis + 1:]), 0, a.dtype)
    return with_result(partial(_repeat_each, axis=axis, total=total), out_sharding, "repeat")(a, repeats)


def _repeat_all(a: Any, axis: int, times: int) -> Array:
    shape = a.shape
    out = lax.broadcast_in_dim(a, (*shape[: axis + 1], times, *shape[axis + 1:]),
                               tuple(i for i in range(a.ndim + 1) if i != axis + 1))
    return lax.reshape(out, (*shape[:axis], shape[axis] * times, *shape[axis + 1:]))


def _repeat_each(a: Any, repeats: Any, axis: int, total: int) -> Array:
    # Element i begins at the sum of the counts before it: marks there, summed up, give the source indices.
    from .accumulations import cumsum
    from .updates import scatter

    starts = roll(repeats, 1)
    starts = scatter(starts, 0, 0, "set")
    starts = cumsum(starts)
    marks = lax.full((total,), 0, default_int())
    marks = scatter(marks, starts, 1, "add")
    source = cumsum(marks)
    source = lax.sub(source, convert(1, source.dtype))
    return hooks.numpy.take(a, source, axis=axis)


def _resize(a: ArrayLike, new_shape: Shape) -> Array:
    """The elements of an array in row order, repeated or cut off as needed, in another shape.

    Args:
      a: an array or number.
      new_shape: the shape.

    Returns:
      an array of that shape and the dtype of `a`; zeros where `a` is empty.

    Raises:
      ValueError: for negative sizes.
    """
    a = ravel(operand("resize", a))
    new = canonical_shape(new_shape)
    if any(d < 0 for d in new):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size = math.prod(new)
    if a.size == 0 or size == 0:
        return lax.full_like(a, 0, shape=new)
    times = -(-size // a.size)
    a = lax.slice(tile(a, times), (0,), (size,))
    return reshape_to(a, new)


resize = jit(named(_resize, "resize"), static_argnames=("new_shape",))
