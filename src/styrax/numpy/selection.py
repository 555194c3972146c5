"""Choosing elements by condition, and functions that read and write at indices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, overload

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Object, Scalar
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import choose_elements, spread, spread_all, truth
from .clipping import clip
from .conversion import asarray, astype
from .promotion import (
    arrays,
    axis_index,
    check_arraylike,
    convert,
    default_int,
    dtype_of,
    is_array,
    number_like,
    promote_dtypes,
    shape_of,
    unwrap,
)
from .shaping import ravel

_BOOL = np.dtype(np.bool_)


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None,
          fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array: ...
@overload
def where(condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None,
          fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]: ...
def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *, size: int | None = None,
          fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> Array | tuple[Array, ...]:
    """The elements of `x` where a condition holds, those of `y` elsewhere; with the condition alone, where it holds.

    Derivatives flow through both branches: a NaN in the gradient of the one that is not chosen stays
    a NaN. Choose safe inputs before the operation as well as the result after it.

    Args:
      condition: an array; other numbers than booleans hold where they are nonzero.
      x, y: arrays or numbers, both or none.
      size, fill_value: as for `nonzero`, with the condition alone.

    Returns:
      an array of the shape that all three broadcast to and the common dtype of `x` and `y`; or what `nonzero` gives.

    Raises:
      TypeError: when only one of `x` and `y` is given.
      ValueError: for a `size` or `fill_value` with them.

    Example:
      >>> import styrax.numpy as jnp
      >>> x = jnp.array([-1, 2, -3])
      >>> jnp.where(x > 0, x, 0)
      Array([0, 2, 0], dtype=int32)
      >>> jnp.where(x > 0)
      (Array([1], dtype=int32),)
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        from .positions import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    return choose_elements(unwrap(condition), unwrap(x), unwrap(y))


@api_boundary
def select(condlist: Array | Sequence[ArrayLike], choicelist: Array | Sequence[ArrayLike],
           default: ArrayLike = 0) -> Array:
    """Element by element, that of the first choice whose condition holds, else that of `default`.

    Args:
      condlist: conditions, in a list or along a first axis; other numbers than booleans hold where they are nonzero.
      choicelist: as many arrays.
      default: an array or number.

    Returns:
      an array of the shape that all of them broadcast to and the choices' common dtype.

    Raises:
      ValueError: for lists of different lengths or none at all.

    Example:
      >>> import styrax.numpy as jnp
      >>> x = jnp.arange(4)
      >>> jnp.select([x < 1, x > 2], [x, 10 * x], default=-1)
      Array([ 0, -1, -1, 30], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    conditions = [astype(c, _BOOL) for c in map(asarray, condlist)]
    choices = promote_dtypes(unwrap(default), *(unwrap(c) for c in choicelist))
    shape = lax.broadcast_shapes(*(shape_of(c) for c in (*conditions, *choices)))
    first = lax.full(shape, False, _BOOL)
    stacked = lax.stack([first, *(spread(c, shape) for c in conditions)], 0)
    # The position of the first True; the row of False in front makes it 0 where none holds.
    which = lax.argmax(stacked, 0, np.dtype(np.int32))
    return lax.select_n(which, *(spread(c, shape) for c in choices))


def piecewise(x: ArrayLike, condlist: Array | Sequence[ArrayLike],
              funclist: Sequence[ArrayLike | Callable[..., ArrayLike]], *args: Object, **kw: Object) -> Array:
    """The function of the last condition that holds, applied to each element of `x`.

    NaN in the derivative of a function that is not chosen does not spread, unlike in `where`.

    Args:
      x: an array or number.
      condlist: conditions that broadcast with `x`, in a list or along a first axis.
      funclist: for each condition a function of a number, which is mapped over `x`, or a number. One more stands for
        where none holds; that is 0 by default.
      *args, **kw: further arguments of the functions.

    Returns:
      an array of the shape and dtype of `x`: what functions give is converted.

    Raises:
      ValueError: for lists that do not match.
    """
    (x,) = arrays("piecewise", x)
    x = asarray(x)
    many = isinstance(condlist, (list, tuple))
    conditions = truth(asarray([asarray(unwrap(c)) for c in condlist] if many else unwrap(condlist)))
    count = conditions.shape[0]
    functions = list(funclist)
    if len(functions) == count:
        functions = [0, *functions]
    elif len(functions) == count + 1:
        functions = [functions[-1], *functions[:-1]]
    else:
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected; got "
                         f"{len(functions)}")
    if not any(callable(f) or shape_of(f) for f in functions):
        return _constants_by_piece(x, conditions, *functions)
    conditions = lax.concatenate([lax.full((1, *conditions.shape[1:]), False, _BOOL), conditions], 0)
    from .accumulations import cumsum
    from .vectorization import vectorize

    which = lax.argmax(cumsum(conditions, axis=0), 0, np.dtype(np.int32))
    kind = x.dtype

    def branch(f: Any) -> Callable[[Any], Any]:
        return lambda x: convert(asarray(f(x, *args, **kw) if callable(f) else f), kind)

    return vectorize(lambda i, x: lax.switch(i, [branch(f) for f in functions], x))(which, x)


def _last_that_holds(x: Any, conditions: Any, otherwise: Any, *constants: Any) -> Any:
    chosen = lax.full_like(x, otherwise)
    for condition, constant in zip(conditions, constants, strict=True):
        chosen = choose_elements(condition, lax.full_like(x, constant), chosen)
    return chosen


_constants_by_piece = jit(named(_last_that_holds, "_piecewise", ""))


@api_boundary
def choose(a: ArrayLike, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None,
           mode: str = "raise") -> Array:
    """Element by element, that of the member of `choices` that `a` names.

    Args:
      a: integers.
      choices: arrays that broadcast with `a`, in a sequence or along a first axis.
      out: not supported, None only.
      mode: what an index out of range means: an error ("raise", for concrete indices only), itself modulo their
        number ("wrap") or the nearest one ("clip").

    Returns:
      an array of the broadcast shape and the choices' common dtype.

    Raises:
      ValueError: for indices out of range or of another dtype, and another mode.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.choose is not supported.")
    check_arraylike("choose", a, *(choices if not is_array(choices) else ()))
    a = asarray(unwrap(a))
    if not dtypes.issubdtype(a.dtype, np.integer):
        raise ValueError("`a` array must be integer typed")
    members = list(lax.unstack(choices, 0)) if is_array(choices) or isinstance(choices, np.ndarray) else [
        unwrap(c) for c in choices]
    count = len(members)
    if mode == "raise":
        values = concrete_or_error(np.asarray, a, "The error occurred because jnp.choose was jit-compiled with "
                                   "mode='raise'. Use mode='wrap' or mode='clip' instead.")
        if np.any((values < 0) | (values >= count)):
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        from .division import remainder

        a = remainder(a, convert(count, a.dtype))
    elif mode == "clip":
        a = clip(a, 0, count - 1)
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    kind, _ = dtypes.result_type(*members, return_weak_type_flag=True)
    a, *members = spread_all([a, *(convert(m, kind) for m in members)])
    from .indexing import gather_elements

    stacked = lax.stack([asarray(c) for c in members], 0)
    mesh = [lax.broadcasted_iota(default_int(), a.shape, i) for i in range(a.ndim)]
    return gather_elements(stacked, (a, *mesh))


# -- reading ---------------------------------------------------------------------------------------
@api_boundary
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None,
         unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Scalar | None = None) -> Array:
    """The elements (or slices along `axis`) of `a` at `indices`.

    Args:
      a: an array.
      indices: integers of any shape. Negative ones count from the end, except with "clip", where they are out of
        bounds.
      axis: the axis, or None for the elements in row order.
      out: not supported, None only.
      mode: what an index out of bounds gives: `fill_value` ("fill", the default), the nearest element ("clip"), or the
        element at it modulo the size ("wrap").
      unique_indices, indices_are_sorted: promises that make it faster.
      fill_value: a number; by default NaN for floats, the lowest value of signed integers, the highest of unsigned
        ones, and True.

    Returns:
      an array of the dtype of `a`, with the shape of `indices` in place of `axis`.

    Raises:
      ValueError: for another mode, and for indices that are no integers.
      IndexError: for an empty axis.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0]))
      Array([30, 10], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.take is not supported.")
    check_arraylike("take", a, indices)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    return _take(unwrap(a), unwrap(indices), None if axis is None else operator.index(axis), mode=mode,
                 unique_indices=unique_indices, indices_are_sorted=indices_are_sorted, fill_value=fill_value)


@partial(jit, static_argnames=("axis", "mode", "unique_indices", "indices_are_sorted", "fill_value"))
def _take(a: Any, indices: Any, axis: int | None = None, *, mode: Any = None, unique_indices: bool = False,
          indices_are_sorted: bool = False, fill_value: Any = None) -> Any:
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_index(axis, a.ndim)
    size = a.shape[axis]
    if dtype_of(indices) == np.bool_:
        indices = convert(indices, np.dtype(np.int32))
    if not dtypes.issubdtype(dtype_of(indices), np.integer):
        raise ValueError("indices must have an integer type")
    indices = convert(indices, np.dtype(np.int32)) if dtypes.issubdtype(
        dtype_of(indices), np.unsignedinteger) and dtype_of(indices).itemsize < 4 else indices
    shape = shape_of(indices)
    if type(size) is int and size == 0 and not any(type(d) is int and d == 0 for d in shape):
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if mode == "wrap":
        from .division import remainder

        indices = remainder(indices, convert(size, dtype_of(indices)))
        how = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    elif mode == "clip":
        how = lax.GatherScatterMode.CLIP
    else:
        zero = number_like(0, indices)
        indices = choose_elements(lax.lt(indices, zero), lax.add(indices, number_like(size, indices)), indices)
        how = lax.GatherScatterMode.FILL_OR_DROP if mode is None else lax.GatherScatterMode.from_any(mode)
    result = (*a.shape[:axis], *shape, *a.shape[axis + 1:])
    if any(type(d) is int and d == 0 for d in result):  # no window fits into an empty array
        return lax.full_like(a, 0, shape=result)
    start = lax.expand_dims(indices, (len(shape),))
    offset = (*range(axis), *range(axis + len(shape), a.ndim + len(shape) - 1))
    return lax.gather(a, start, lax.GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=(axis,),
                                                           start_index_map=(axis,)),
                      tuple(1 if i == axis else d for i, d in enumerate(a.shape)), mode=how, fill_value=fill_value,
                      unique_indices=unique_indices, indices_are_sorted=indices_are_sorted)


def _take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1,
                     mode: str | lax.GatherScatterMode | None = None, fill_value: Scalar | None = None, *,
                     wrap_negative_indices: bool | None = None) -> Array:
    """An array read at indices along one axis, with the other axes side by side.

    Args:
      arr: an array.
      indices: integers of the same rank; sizes other than that of `axis` broadcast with those of `arr`.
      axis: the axis; with None `arr` is read in row order, and `indices` are a vector.
      mode, fill_value: as for `take`; also "promise_in_bounds", with which an index out of bounds gives anything, and
        "one_hot", with which it gives 0.
      wrap_negative_indices: whether negative indices count from the end; by default in all modes but
        "promise_in_bounds".

    Returns:
      an array of the dtype of `arr`, with the size of `indices` along `axis`.

    Raises:
      ValueError: for ranks that differ and shapes that do not broadcast.
      TypeError: for indices that are no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> x = jnp.array([[3, 1, 2]])
      >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
      Array([[1, 2, 3]], dtype=int32)
    """
    arr, indices = arrays("take_along_axis", arr, indices)
    arr, indices = asarray(arr), asarray(indices)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError("take_along_axis indices must be of integer type, got " + str(indices.dtype))
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {indices.shape}")
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {indices.ndim} vs. {arr.ndim}")
    axis = axis_index(axis, arr.ndim)
    size = arr.shape[axis]
    if mode == "one_hot":  # a product with the indicators of the indices: 0 where one is out of bounds
        mode, fill_value = "fill", 0
    how = lax.GatherScatterMode.FILL_OR_DROP if mode is None else lax.GatherScatterMode.from_any(mode)
    from .indexing import wrap_negative

    if wrap_negative_indices is None:
        wrap_negative_indices = how != lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if wrap_negative_indices:
        indices = wrap_negative(indices, size)
    indices = convert(indices, np.dtype(np.int64) if type(size) is int and size >= 2**31 else np.dtype(np.int32))
    shape = lax.broadcast_shapes(tuple(1 if i == axis else d for i, d in enumerate(arr.shape)),
                                 tuple(1 if i == axis else d for i, d in enumerate(indices.shape)))
    batch = [i for i in range(arr.ndim) if i != axis]
    # Axes of size 1 in the indices are taken whole; the others are matched by their own indices.
    whole = [i for i in batch if indices.shape[i] == 1]
    matched = [i for i in batch if indices.shape[i] != 1]
    if any(arr.shape[i] not in (1, indices.shape[i]) for i in matched):
        raise ValueError(f"incompatible shapes for take_along_axis: {arr.shape} and {indices.shape}")
    for i in matched:
        if arr.shape[i] == 1:
            arr = spread(arr, tuple(indices.shape[i] if j == i else d for j, d in enumerate(arr.shape)))
    result = tuple(arr.shape[i] if i in whole else indices.shape[i] for i in range(arr.ndim))
    if any(type(d) is int and d == 0 for d in (*result, size)):  # no window fits into an empty array
        return lax.full(result, 0, arr.dtype)
    kept = [*matched, axis]
    order = sorted(kept)
    rows = lax.reshape(indices, (*(indices.shape[i] for i in order), 1))
    # In the result the gathered axes stay where they were; whole ones are offsets.
    del shape
    return lax.gather(arr, rows, lax.GatherDimensionNumbers(
        offset_dims=tuple(whole), collapsed_slice_dims=(axis,), start_index_map=(axis,),
        operand_batching_dims=tuple(matched), start_indices_batching_dims=tuple(order.index(i) for i in matched)),
        tuple(arr.shape[i] if i in whole else 1 for i in range(arr.ndim)), mode=how,
        fill_value=fill_value)


take_along_axis = jit(named(_take_along_axis, "take_along_axis"),
                      static_argnames=("axis", "mode", "fill_value", "wrap_negative_indices"))


# -- writing ---------------------------------------------------------------------------------------
def _no_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass "
                         "inplace=False to instead return an updated array.")


@api_boundary
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A copy of an array with other values at flat indices. Which one of several at one index stays is not defined.

    Args:
      a: an array.
      ind: integers, in row order; negative ones count from the end, except with "clip". Booleans are 0 and 1.
      v: values, repeated or cut off to the number of the indices, and converted to the dtype of `a`.
      mode: what an index out of bounds means: nothing (None), the nearest place ("clip"), or itself modulo the
        size ("wrap").
      inplace: must be False, since arrays do not change.

    Returns:
      an array of the shape and dtype of `a`.

    Raises:
      ValueError: unless `inplace=False` is given, and for another mode.
      TypeError: for indices that are no integers.
    """
    from .positions import unravel_index
    from .updates import scatter

    _no_inplace("put", inplace)
    a, ind, v = (asarray(x) for x in arrays("put", a, ind, v))
    if a.size == 0 or ind.size == 0 or v.size == 0:
        return a
    ind, v = ravel(ind), ravel(v)
    if ind.dtype == np.bool_:
        ind = convert(ind, np.dtype(np.int32))
    if not dtypes.issubdtype(ind.dtype, np.integer):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {ind.dtype.name}")
    if v.shape[0] < ind.shape[0]:
        from .arrangements import resize

        v = resize(v, ind.shape)
    else:
        v = lax.slice(v, (0,), ind.shape)
    if mode is None:
        how: Any = "drop"
    elif mode == "clip":
        ind, how = clip(ind, 0, a.size - 1), "promise_in_bounds"
    elif mode == "wrap":
        from .division import remainder

        ind, how = remainder(ind, convert(a.size, ind.dtype)), "promise_in_bounds"
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode=}")
    return scatter(a, unravel_index(ind, a.shape), v, "set", mode=how)


@api_boundary
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy of an array with other values, one after the other, where a mask is nonzero.

    Args:
      arr: an array.
      mask: an array of as many elements.
      vals: values, repeated as needed, and converted to the dtype of `arr`.
      inplace: must be False, since arrays do not change.

    Returns:
      an array of the shape and dtype of `arr`.

    Raises:
      ValueError: unless `inplace=False` is given, for another number of elements, and for no values.
    """
    _no_inplace("place", inplace)
    data, mask, vals = (asarray(x) for x in arrays("place", arr, mask, vals))
    vals = ravel(vals)
    if data.size != mask.size:
        raise ValueError("place: arr and mask must have the same size")
    if vals.size == 0:
        raise ValueError("vals must have nonzero size")
    if data.size == 0:
        return data
    from .arrangements import resize
    from .positions import nonzero
    from .updates import scatter

    at = nonzero(ravel(mask), size=mask.size, fill_value=data.size)[0]
    flat = scatter(ravel(data), at, resize(vals, (data.size,)), "set", mode="drop")
    return lax.reshape(flat, data.shape)


@api_boundary
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: bool = True, *,
                   mode: str | None = None) -> Array:
    """A copy of an array with other values at indices along one axis, the counterpart of `take_along_axis`.

    Args:
      arr: an array.
      indices: integers of the same rank; sizes other than that of `axis` broadcast with those of `arr`.
      values: what is put there: broadcast to the shape of `indices`.
      axis: the axis; with None `arr` is taken in row order, and `indices` are a vector.
      inplace: must be False, since arrays do not change.
      mode: what an index out of bounds means, as for `Array.at`: it is dropped by default.

    Returns:
      an array of the shape and dtype of `arr`.

    Raises:
      ValueError: unless `inplace=False` is given, and for ranks that differ.
    """
    _no_inplace("put_along_axis", inplace)
    arr, indices, values = arrays("put_along_axis", arr, indices, values)
    return _put_along_axis(arr, indices, values, axis, mode=mode)


def _put_along_entry(arr: Any, indices: Any, values: Any, axis: int | None, *, mode: Any = None) -> Any:
    from .updates import scatter

    arr, indices = asarray(arr), asarray(indices)
    shape = arr.shape
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = axis_index(axis, arr.ndim)
    if arr.ndim != indices.ndim:
        raise ValueError("put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
                         f"{arr.ndim=} and {indices.ndim=}.")
    values = spread(asarray(values), indices.shape)
    where_: list[Any] = []
    for i, d in enumerate(arr.shape):
        if i == axis:
            where_.append(indices)
        else:
            where_.append(lax.expand_dims(lax.iota(default_int(), d), tuple(j for j in range(arr.ndim) if j != i)))
    return lax.reshape(scatter(arr, tuple(where_), values, "set", mode=mode), shape) if arr.shape != shape else scatter(
        arr, tuple(where_), values, "set", mode=mode)


_put_along_axis = jit(named(_put_along_entry, "put_along_axis", ""), static_argnames=("axis", "mode"))


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy of an array with other values on its main diagonal.

    Args:
      a: a matrix, or an array of higher rank with axes of one size.
      val: a number, or values that are repeated as needed.
      wrap: not supported, False only.
      inplace: must be False, since arrays do not change.

    Returns:
      an array of the shape and dtype of `a`.

    Raises:
      ValueError: for rank below 2, and for axes that differ above.
      NotImplementedError: unless `inplace=False` is given, and for `wrap`.
    """
    from .updates import scatter

    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    a, val = (asarray(x) for x in arrays("fill_diagonal", a, val))
    if wrap:
        raise NotImplementedError("wrap=True is not supported, only wrap=False")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(a.shape)
    if val.ndim:
        flat = ravel(val)
        from .arrangements import tile

        val = lax.slice(tile(flat, -(-n // flat.shape[0])), (0,), (n,))
    i = lax.iota(default_int(), n)
    return scatter(a, (i,) * a.ndim, val, "set")
