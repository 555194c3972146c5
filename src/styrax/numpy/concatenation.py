"""Functions that put arrays together and take them apart."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types.dims import is_named, is_symbolic
from styrax.core.types.typing import ArrayLike, DTypeLike, NestedArrayLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .conversion import asarray
from .promotion import (
    arrays,
    axis_index,
    check_arraylike,
    convert,
    is_array,
    promote_dtypes,
    shape_of,
    unwrap,
    user_dtype,
)
from .shaping import atleast_1d, atleast_2d, atleast_3d, operand, ravel, reshape_to


def _members(name: str, sequence: Any) -> list[Any]:
    """The arrays of a sequence argument. Raises TypeError for what is no sequence of arrays."""
    if is_array(sequence) or isinstance(sequence, np.ndarray):
        raise TypeError(f"{name} expects a sequence of arrays")
    members = list(sequence)
    return arrays(name, *members)


@api_boundary
def concatenate(arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int | None = 0,
                dtype: DTypeLike | None = None) -> Array:
    """Arrays put one after the other along an existing axis.

    Args:
      arrays: a sequence of arrays whose shapes agree but for `axis`; one array stands for its slices along the first
        axis.
      axis: the axis; None for all elements as vectors in row order.
      dtype: dtype of the result; by default the one that all promote to.

    Returns:
      an array of the common shape, as long along `axis` as all together.

    Raises:
      ValueError: for an empty sequence, for scalars, and for an axis out of range.
      TypeError: for shapes that do not agree, and for what is no sequence of arrays.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.concatenate([jnp.zeros((1, 2)), jnp.ones((2, 2))], axis=0)
      Array([[0., 0.],
             [1., 1.],
             [1., 1.]], dtype=float32)
    """
    if is_array(arrays) or isinstance(arrays, np.ndarray):
        check_arraylike("concatenate", arrays)
        return _concatenate_slices(asarray(arrays), axis, dtype)
    members = _members("concatenate", arrays)
    if not members:
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        return concatenate([ravel(x) for x in members], axis=0, dtype=dtype)
    if len(shape_of(members[0])) == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = axis_index(concrete_or_error(operator.index, axis, "axis argument of jnp.concatenate()"),
                      len(shape_of(members[0])))
    return lax.concatenate(_of_dtype(members, dtype, "concatenate"), axis)


def _of_dtype(members: list[Any], dtype: Any, name: str) -> list[Any]:
    if dtype is None:
        return [asarray(x) for x in promote_dtypes(*members)]
    kind = user_dtype(dtype, name)
    return [asarray(convert(x, kind)) for x in members]


def _concatenate_slices(a: Any, axis: int | None, dtype: Any) -> Any:
    """`concatenate` of the slices of one array along its first axis: a transposition and a reshape."""
    if a.ndim == 0:
        raise ValueError("Need at least one array to concatenate; got a scalar.")
    if dtype is not None:
        a = convert(a, user_dtype(dtype, "concatenate"))
    if a.shape[0] == 0:
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        return reshape_to(a, (-1,))
    if a.ndim == 1:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = axis_index(axis, a.ndim - 1)
    shape = a.shape[1:]
    order = [i for i in range(a.ndim) if i != 0]
    order.insert(axis, 0)
    if order != list(range(a.ndim)):
        a = lax.transpose(a, tuple(order))
    return reshape_to(a, tuple(-1 if i == axis else d for i, d in enumerate(shape)))


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays put one after the other along an existing axis: the array API's `concatenate`.

    Args:
      arrays: a sequence of arrays whose shapes agree but for `axis`.
      axis: the axis; None for all elements as vectors in row order.

    Returns:
      an array of the dtype that all promote to.

    Raises:
      TypeError: for a scalar.
    """
    if (is_array(arrays) or isinstance(arrays, np.ndarray)) and shape_of(arrays) == ():
        raise TypeError("concat expects a sequence of arrays; got a scalar.")
    return concatenate(arrays, axis=axis)


@api_boundary
def stack(arrays: np.ndarray | Array | Sequence[ArrayLike], axis: int = 0, out: None = None,
          dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape put side by side along a new axis.

    Args:
      arrays: a sequence of arrays; one array stands for its slices along the first axis.
      axis: where the new axis is in the result.
      out: has to be None.
      dtype: dtype of the result; by default the one that all promote to.

    Returns:
      an array of one more dimension than each has.

    Raises:
      ValueError: for an empty sequence, for shapes that differ, and for an axis out of range.
      NotImplementedError: for an `out`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.stack([jnp.arange(2), jnp.ones(2, int)], axis=1)
      Array([[0, 1],
             [1, 1]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.stack is not supported.")
    if is_array(arrays) or isinstance(arrays, np.ndarray):
        a = asarray(arrays)
        if a.ndim == 0:
            raise TypeError("stack expects a sequence of arrays; got a scalar.")
        at = axis_index(axis, a.ndim)
        return concatenate(lax.expand_dims(a, (at + 1,)), axis=at, dtype=dtype)
    members = _members("stack", arrays)
    if not members:
        raise ValueError("Need at least one array to stack.")
    shapes = [tuple(shape_of(x)) for x in members]
    if any(s != shapes[0] for s in shapes):
        raise ValueError(f"All input arrays must have the same shape. Got {', '.join(map(str, shapes))}.")
    at = axis_index(axis, len(shapes[0]) + 1)
    if dtype is None:
        return lax.stack(promote_dtypes(*members), at)
    kind = user_dtype(dtype, "stack")
    return lax.stack([convert(x, kind) for x in members], at)


def _at_least(name: str, tup: Any, raise_rank: Callable[..., Any]) -> Any:
    """The members of `tup`, of a rank at least; one array stands for its slices."""
    if is_array(tup) or isinstance(tup, np.ndarray):
        return asarray(tup)
    return [raise_rank(x) for x in _members(name, tup)]


@api_boundary
def vstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays put one below the other, along the first axis.

    Args:
      tup: a sequence of arrays, of which vectors are taken as rows; one array stands for its slices along the first
        axis.
      dtype: dtype of the result; by default the one that all promote to.

    Returns:
      an array of rank 2 or more.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
      Array([[0, 1],
             [0, 1]], dtype=int32)
    """
    if is_array(tup) or isinstance(tup, np.ndarray):
        a = asarray(tup)
        return concatenate(
            a if a.ndim > 2 else lax.expand_dims(a, (1,) if a.ndim == 2 else (1, 2)), axis=0, dtype=dtype
        )
    return concatenate(_at_least("vstack", tup, atleast_2d), axis=0, dtype=dtype)


@api_boundary
def hstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays put side by side, along the second axis; vectors and scalars one after the other.

    Args:
      tup: a sequence of arrays; one array stands for its slices along the first axis.
      dtype: dtype of the result; by default the one that all promote to.

    Returns:
      an array: a vector where the first member has rank 0 or 1.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.hstack([jnp.arange(2), jnp.arange(3)])
      Array([0, 1, 0, 1, 2], dtype=int32)
    """
    if is_array(tup) or isinstance(tup, np.ndarray):
        a = asarray(tup)
        a = lax.expand_dims(a, (1,)) if a.ndim == 1 else a
        return concatenate(a, axis=0 if a.ndim == 2 else 1, dtype=dtype)
    members = _at_least("hstack", tup, atleast_1d)
    return concatenate(members, axis=0 if members and members[0].ndim == 1 else 1, dtype=dtype)


@api_boundary
def dstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays put one behind the other, along the third axis.

    Args:
      tup: a sequence of arrays, of which shape [n] is taken as [1, n, 1] and [m, n] as [m, n, 1]; one array stands for
        its slices along the first axis.
      dtype: dtype of the result; by default the one that all promote to.

    Returns:
      an array of rank 3 or more.
    """
    if is_array(tup) or isinstance(tup, np.ndarray):
        tup = [x for x in lax.unstack(asarray(tup))]
    return concatenate(_at_least("dstack", tup, atleast_3d), axis=2, dtype=dtype)


@api_boundary
def column_stack(tup: np.ndarray | Array | Sequence[ArrayLike]) -> Array:
    """Vectors as the columns of a matrix; matrices put side by side.

    Args:
      tup: a sequence of arrays with equal numbers of rows; one array stands for its slices along the first axis.

    Returns:
      a matrix of the dtype that all promote to.
    """
    members = list(lax.unstack(asarray(tup))) if is_array(tup) or isinstance(tup, np.ndarray) else _members(
        "column_stack", tup)
    columns = [lax.transpose(atleast_2d(x), (1, 0)) if len(shape_of(x)) < 2 else asarray(x) for x in members]
    return concatenate(columns, axis=1)


def _append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` followed by `values`.

    Args:
      arr, values: arrays whose shapes agree but for `axis`.
      axis: the axis; None for the elements of both as vectors in row order.

    Returns:
      an array of the dtype that both promote to.
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([arr, values], axis=axis)


named(_append, "append")
append = jit(_append, static_argnames=("axis",))


def _block(xs: Any) -> Any:
    if isinstance(xs, tuple):
        raise ValueError(f"jax.numpy.block does not allow tuples, got {xs}")
    if isinstance(xs, list):
        if not xs:
            raise ValueError("jax.numpy.block does not allow empty list arguments")
        parts, depths = zip(*(_block(x) for x in xs))
        if any(d != depths[0] for d in depths):
            raise ValueError("Mismatched list depths in jax.numpy.block")
        rank = max(depths[0], max(p.ndim for p in parts))
        raised = [lax.expand_dims(p, tuple(range(rank - p.ndim))) if p.ndim < rank else p for p in parts]
        return concatenate(raised, axis=-depths[0]), depths[0] + 1
    return operand("block", xs), 1


def block(arrays: NestedArrayLike) -> Array:
    """An array made of nested lists of blocks.

    The innermost lists run along the last axis, those around them along the last but one, and so on.

    Args:
      arrays: an array or number, or lists of them, nested equally deep; leading dimensions of size 1 are added.

    Returns:
      an array of the dtype that all promote to, of a rank not below the depth of the lists.

    Raises:
      ValueError: for tuples, empty lists, and lists of different depth.
    """
    return _block_jit(arrays)


def _block_entry(arrays: Any) -> Any:
    return _block(arrays)[0]


named(_block_entry, "block")
_block_jit = jit(_block_entry)


# -- apart -----------------------------------------------------------------------------------------
def _between(cuts: Sequence[int], size: Any) -> tuple[Any, ...]:
    """The sizes of the parts of an axis whose size is known by name alone."""
    bounds = [0, *(cut + size if cut < 0 else cut for cut in cuts), size]
    return tuple(after - before for before, after in itertools.pairwise(bounds))


def _split(name: str, ary: Any, indices_or_sections: Any, axis: int, equal: bool) -> list[Any]:
    ary = operand(name, ary)
    axis = concrete_or_error(operator.index, axis, f"in jax.numpy.{name} argument `axis`")
    size = ary.shape[axis]
    axis %= ary.ndim
    sections = indices_or_sections
    if isinstance(sections, (tuple, list)) or (hasattr(sections, "shape") and np.ndim(sections) > 0):
        bounds = np.array([concrete_or_error(operator.index, i, f"in jax.numpy.{name} argument 1") for i in sections],
                          np.int64)
        if is_named(size):
            return list(lax.split(ary, _between([int(b) for b in bounds], size), axis=axis))
        bounds = np.concatenate([[0], np.where(bounds < 0, bounds + size, bounds), [size]]).astype(np.int64)
        bounds = np.clip(bounds, 0, size)
    else:
        parts = concrete_or_error(operator.index, sections, f"in jax.numpy.{name} argument 1")
        each, rest = divmod(size, parts)
        if rest and equal:
            raise ValueError(f"array split does not result in an equal division: rest is {rest}")
        if is_symbolic(each):
            return list(lax.split(ary, (each,) * int(parts), axis=axis))
        bounds = np.concatenate([np.arange(rest + 1) * (each + 1),
                                 np.arange(1, parts - rest + 1) * each + rest * (each + 1)])
    if np.any(bounds[1:] < bounds[:-1]):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(np.diff(bounds))}")
    return list(lax.split(ary, tuple(np.diff(bounds)), axis=axis))


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """`ary` cut along an axis.

    Args:
      ary: an array.
      indices_or_sections: into how many equal parts, or the indices before which to cut, rising; those beyond the end
        give empty parts, negative ones count from the end.
      axis: the axis.

    Returns:
      a list of arrays: as many as there are parts, or one more than indices.

    Raises:
      ValueError: where the axis does not divide equally, and for indices that fall.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.split(jnp.arange(5), [2, 3])
      [Array([0, 1], dtype=int32), Array([2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0) -> list[Array]:
    """`ary` cut along an axis into parts that may differ by one in size: the first ones are the longer.

    Args:
      ary: an array.
      indices_or_sections: into how many parts, or the indices before which to cut, as for `split`.
      axis: the axis.

    Returns:
      a list of arrays.
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`ary` cut along its second axis, a vector along its only one.

    Args:
      ary: an array of rank 1 or more.
      indices_or_sections: into how many equal parts, or the indices before which to cut, as for `split`.

    Returns:
      a list of arrays.
    """
    check_arraylike("hsplit", ary)
    axis = 0 if len(shape_of(unwrap(ary))) == 1 else 1
    return _split("hsplit", ary, indices_or_sections, axis, True)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`ary` cut along its first axis.

    Args:
      ary: an array of rank 1 or more.
      indices_or_sections: into how many equal parts, or the indices before which to cut, as for `split`.

    Returns:
      a list of arrays.
    """
    return _split("vsplit", ary, indices_or_sections, 0, True)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`ary` cut along its third axis.

    Args:
      ary: an array of rank 3 or more.
      indices_or_sections: into how many equal parts, or the indices before which to cut, as for `split`.

    Returns:
      a list of arrays.
    """
    return _split("dsplit", ary, indices_or_sections, 2, True)
