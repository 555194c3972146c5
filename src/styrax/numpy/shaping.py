"""Functions that rearrange the elements of one array."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, overload

import numpy as np

from styrax import lax
from styrax.core import hooks
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary, hide_frames
from styrax.core.tracing.trace import Tracer, concrete_or_error
from styrax.core.types.dims import larger, smaller
from styrax.core.types.typing import ArrayLike, Axis, DTypeLike, Shape, ShapeLike, ShardingLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import canonical_shape, choose_elements, spread
from .conversion import asarray
from .promotion import (
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
    """The elements of `a`, in row order (or column order for "F"), in another shape.

    One size may be -1: it follows from the others. Raises TypeError where the sizes do not multiply
    to the number of elements.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.reshape(jnp.arange(6), (2, -1))
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
    """
    return reshape_to(operand("reshape", a), shape, order=order)


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
    new = canonical_shape(shape)
    size = math.prod(a.shape)
    if any(d == -1 for d in new if type(d) is int):
        if _sum(1 for d in new if type(d) is int and d == -1) > 1:
            raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
        known = math.prod(d for d in new if not (type(d) is int and d == -1))
        if known == 0 or size % known:
            raise TypeError(f"cannot reshape array of shape {a.shape} (size {size}) into shape {new} because the "
                            f"product of specified axis sizes ({known}) does not evenly divide {size}")
        return tuple(size // known if type(d) is int and d == -1 else d for d in new)
    if math.prod(new) != size:
        raise TypeError(f"cannot reshape array of shape {a.shape} (size {size}) into shape {new} "
                        f"(size {math.prod(new)})")
    return new


@api_boundary
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
    """The elements of `a` as a vector, in row order (or column order for "F").

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
      Array([1, 2, 3, 4], dtype=int32)
    """
    a = operand("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return reshape_to(a, (a.size,), order=order)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """`a` with its axes in another order, reversed by default.

    Raises TypeError or ValueError for `axes` that are no permutation.

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
    """`a` with its axes in the order `axes`."""
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """`x` with its last two axes exchanged. Raises ValueError below rank 2."""
    x = operand("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@api_boundary
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """`a` with two axes exchanged. Raises IndexError for one that `a` does not have.

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
    """`a` with the axes `source` (an int or several) moved to the places `destination`.

    Raises ValueError where they are not equally many, or given twice.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
      (3, 4, 2)
    """
    a = operand("moveaxis", a)
    source = axis_indices(source, a.ndim)
    destination = axis_indices(destination, a.ndim)
    if len(source) != len(destination):
        raise ValueError(f"Inconsistent number of elements: {len(source)} vs {len(destination)}")
    order = [i for i in range(a.ndim) if i not in source]
    for to, from_ in sorted(zip(destination, source)):
        order.insert(to, from_)
    return lax.transpose(a, tuple(order)) if order != list(range(a.ndim)) else a


def _rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """`a` with `axis` moved until it lies before `start`."""
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
    """`a` with new axes of size 1 at the places `axis` (an int or several) of the result.

    Raises ValueError for places out of range or given twice.

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
    """`a` without axes of size 1: all of them, or those in `axis`. Raises ValueError for an axis of another size.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
      (3,)
    """
    try:
        a = operand("squeeze", a)
        if axis is None:
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


def _atleast(name: str, rank: int, shape: Callable[[int], tuple[int, ...]]) -> AtLeast:
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

    return named(  # type: ignore[return-value]
        function, name, f"Each argument as an array of rank {rank} at least, with axes of size 1 added."
                                  "\n\n    One argument gives an array, several a list.")


atleast_1d = _atleast("atleast_1d", 1, lambda n: (0,))
atleast_2d = _atleast("atleast_2d", 2, lambda n: (0, 1)[: 2 - n])
atleast_3d = _atleast("atleast_3d", 3, lambda n: {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[n])


# -- orders along an axis ------------------------------------------------------------------------
@partial(jit, static_argnames=("axis",))
def _flip(m: Any, axis: Any = None) -> Array:
    return lax.rev(m, axis_indices(axis, m.ndim))


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """`m` with its elements in reverse order along `axis` (an int, several, or None for all).

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.flip(jnp.arange(3))
      Array([2, 1, 0], dtype=int32)
    """
    m = operand("flip", m)
    return _flip(m, static_axis(axis))


def fliplr(m: ArrayLike) -> Array:
    """`m` reversed along its second axis. Raises ValueError below rank 2."""
    m = operand("fliplr", m)
    if m.ndim < 2:
        raise ValueError(f"fliplr requires at least 2-dimensional input, got ndim={m.ndim}")
    return _flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """`m` reversed along its first axis."""
    return _flip(operand("flipud", m), 0)


def _rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """`m` turned by k right angles in the plane of two axes, from the first towards the second."""
    m = operand("rot90", m)
    if m.ndim < 2:
        raise ValueError(f"rot90 requires its first argument to have ndim at least two, but got first argument of "
                         f"shape {m.shape}, having ndim={m.ndim}")
    a, b = axis_index(axes[0], m.ndim), axis_index(axes[1], m.ndim)
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
    """`a` with its elements moved by `shift` places along `axis`, around the end; in row order for None.

    `shift` and `axis` may be several, and `shift` may be traced.

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
    shift = tuple(map(unwrap, shift)) if isinstance(shift, (tuple, list)) else unwrap(shift)  # type: ignore[arg-type]
    concrete = shift.to_concrete_value() if isinstance(shift, Tracer) and hasattr(shift, "to_concrete_value") else shift
    if concrete is None or any(isinstance(s, Tracer) for s in (shift if isinstance(shift, (tuple, list)) else ())) or (
            is_array(shift)):
        shifts = asarray(shift)
        if shifts.ndim > 1:
            raise ValueError("shift must be a scalar or 1-dimensional")
        return _roll_dynamic(a, shifts, axes)
    steps = np.asarray(concrete)
    if steps.dtype.kind not in "iub":
        raise TypeError(f"roll requires integer shifts, got {shift!r}")
    return _roll_static(a, tuple(int(s) for s in np.atleast_1d(steps)), axes)


@api_boundary
def tile(A: ArrayLike, reps: ShapeLike) -> Array:
    """`A` repeated as a whole along each axis. `reps` is one count or one per axis, the last ones first matched.

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
    counts = tuple(concrete_or_error(operator.index, r, "reps argument of jnp.tile") for r in given)
    if a.ndim < len(counts):
        a = lax.expand_dims(a, tuple(range(len(counts) - a.ndim)))
    counts = (1,) * (a.ndim - len(counts)) + counts
    return lax.tile(a, counts)


@api_boundary
def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
           out_sharding: ShardingLike | None = None) -> Array:
    """Every element (or slice along `axis`) repeated, `repeats` times or as often as its entry there says.

    Under `jit` counts that are traced need `total_repeat_length`: the length of the result, which is
    cut off or filled up with the last element. Raises ConcretizationTypeError without it.

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
    if total_repeat_length is None:
        repeats = concrete_or_error(None, repeats, "When jit-compiling jnp.repeat, the total number of repeats must be "
                                    "static. To fix this, either specify a static value for `repeats`, or pass a "
                                    "static value to `total_repeat_length`.")
        counts = np.asarray(repeats)
        if counts.ndim == 0 or counts.size == 1:
            times = int(counts.reshape(()))
            out = lax.broadcast_in_dim(a, (*shape[: axis + 1], times, *shape[axis + 1:]),
                                       tuple(i for i in range(a.ndim + 1) if i != axis + 1))
            return lax.reshape(out, (*shape[:axis], shape[axis] * times, *shape[axis + 1:]))
        counts = np.broadcast_to(counts, (shape[axis],)) if counts.ndim == 1 else counts
        if counts.ndim != 1 or len(counts) != shape[axis]:
            raise ValueError(f"The repeats array should have length 1 or the length of the axis, {shape[axis]}; got "
                             f"shape {counts.shape}.")
        total = int(counts.sum())
        repeats = asarray(repeats) if not is_array(repeats) else repeats
    else:
        total = concrete_or_error(operator.index, total_repeat_length, "jnp.repeat argument 'total_repeat_length'")
        repeats = asarray(repeats)
        if repeats.ndim == 0:
            repeats = lax.broadcast_in_dim(repeats, (shape[axis],), ())
        elif repeats.shape != (shape[axis],):
            repeats = spread(repeats, (shape[axis],))
    if total == 0 or shape[axis] == 0:
        return lax.full((*shape[:axis], total if shape[axis] else 0, *shape[axis + 1:]), 0, a.dtype)
    return _repeat_each(a, repeats, axis, total)


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
    """The elements of `a` in row order, repeated as needed, in a shape. Raises ValueError for negative sizes."""
    a = ravel(operand("resize", a))
    new = canonical_shape(new_shape)
    if any(d < 0 for d in new):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size = math.prod(new)
    if a.size == 0 or size == 0:
        return lax.full(new, 0, a.dtype)
    times = -(-size // a.size)
    a = lax.slice(tile(a, times), (0,), (size,))
    return reshape_to(a, new)


resize = jit(named(_resize, "resize"), static_argnames=("new_shape",))


# -- diagonals -----------------------------------------------------------------------------------
def _diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals in the planes of two axes, as the last axis. Raises ValueError below rank 2."""
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
    return gather_elements(a, (..., i, j))


diagonal = jit(named(_diagonal, "diagonal"), static_argnames=("offset", "axis1", "axis2"))


def _trace(a: ArrayLike, offset: int | ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None,
           out: None = None) -> Array:
    """The sum of the diagonal in the planes of two axes. Raises ValueError below rank 2.

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
    """The slices of `x` along an axis, as a tuple. Raises ValueError for scalars."""
    x = operand("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return tuple(lax.unstack(x, axis_index(axis, x.ndim)))


