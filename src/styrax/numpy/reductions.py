"""Reductions along axes: sums, products, extrema and where these stand."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis, DTypeLike
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import choose_elements
from .promotion import (
    arrays,
    axis_indices,
    canonical,
    check_arraylike,
    convert,
    default_int,
    is_array,
    number_like,
    shape_of,
    static_axis,
    typed,
    unwrap,
    user_dtype,
)

_BOOL = np.dtype(np.bool_)
_HALF = {np.dtype(np.float16), np.dtype(dtypes.bfloat16)}


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def _check_mask(name: str, where: Any) -> None:
    """Raises ValueError, naming the function that a program called, for a `where` that is no array of booleans."""
    if where is None:
        return
    check_arraylike(name, where)
    if (dtype := typed(where)[0]) != _BOOL:
        raise ValueError(f"jnp.{name}: where must be None or a boolean array; got where.dtype={dtype!r}.")


def split_axes(axis: Any) -> tuple[Any, tuple[str, ...]]:
    """A static axis argument without names, and the names."""
    if not isinstance(axis, tuple):
        return axis, ()
    names = tuple(a for a in axis if isinstance(a, str))
    return tuple(a for a in axis if not isinstance(a, str)) if names else axis, names


def restore_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """The result of a reduction with its reduced axes put back, of size 1."""
    return lax.expand_dims(x, tuple(sorted(axes)))


def _reduce(name: str, a: Any, primitive: Callable[..., Any], identity: Any, axis: Any, dtype: Any, keepdims: bool,
            initial: Any, where: Any, *, to_bool: bool = False, widen: bool = False, promote: bool = False,
            needs_identity: bool = False) -> Any:
    """The one reduction behind the functions of this module.

    Args:
      identity: the value that changes nothing, given to elements that `where` leaves out: a number,
        or a function of the dtype.
      to_bool: whether elements are truth values.
      widen: whether float16 and bfloat16 are accumulated in float32.
      promote: whether integers are summed in the default integer dtype at least.
      needs_identity: whether an empty reduction without `initial` is an error.
    """
    a = a if is_array(a) else unwrap(_checked(name, a))
    _check_mask(name, where)
    axis, names = split_axes(static_axis(axis))
    axes = axis_indices(axis, len(shape_of(a)))
    if names:
        if name not in _OVER_NAMES:
            raise NotImplementedError(f"Named reductions not implemented for jnp.{name}()")
        collective = _OVER_NAMES[name]
        primitive = lambda a, axes: collective(a, (*names, *axes))
    if where is None and initial is None and needs_identity:
        sizes = shape_of(a)
        if builtins.any(type(sizes[i]) is int and sizes[i] == 0 for i in axes):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    have, _ = typed(a)
    result = have if dtype is None else user_dtype(dtype, name)
    if to_bool:
        result = _BOOL
    elif dtype is None and (promote or have == _BOOL and name in _LOGICAL):
        result = _sum_dtype(have)
    compute = np.dtype(np.float32) if widen and result in _HALF else result
    a = lax.ne(a, number_like(0, a)) if to_bool and have.kind == "c" else convert(a, compute)
    combine = _combine.get(name, lax.add)
    if compute == _BOOL and name in _LOGICAL:
        primitive, combine = _LOGICAL[name]
    if where is not None:
        value = identity(compute) if callable(identity) else identity
        a = choose_elements(where, a, convert(value, compute))
    out = primitive(a, axes)
    if initial is not None:
        check_arraylike(name, initial)
        if shape_of(initial):
            raise ValueError("initial value must be a scalar. Got array of shape " + str(shape_of(initial)))
        out = combine(convert(initial, compute), out)
    if keepdims:
        out = restore_axes(out, axes)
    return convert(out, result) if compute != result else out


def _checked(name: str, a: Any) -> Any:
    check_arraylike(name, a)
    return a


def _sum_dtype(dtype: Any) -> Any:
    """Small integers and booleans are added up in the default integer dtype of their signedness."""
    wide = default_int()
    if dtype == _BOOL:
        return wide
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        unsigned = canonical(np.dtype(np.uint64))
        return unsigned if dtype.itemsize < unsigned.itemsize else dtype
    if dtypes.issubdtype(dtype, np.integer):
        return wide if dtype.itemsize < wide.itemsize else dtype
    return dtype


def endless(dtype: Any) -> bool:
    """Whether an inexact dtype has infinities."""
    return bool(np.isinf(np.asarray(np.inf).astype(dtype)))


def lowest(dtype: Any) -> Any:
    """What no number of a dtype is less than."""
    if dtypes.issubdtype(dtype, np.inexact):
        return -np.inf if endless(dtype) else dtypes.finfo(dtype).min
    return False if dtype == _BOOL else np.asarray(dtypes.iinfo(dtype).min, dtype)


def highest(dtype: Any) -> Any:
    """What no number of a dtype is greater than."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.inf if endless(dtype) else dtypes.finfo(dtype).max
    return True if dtype == _BOOL else np.asarray(dtypes.iinfo(dtype).max, dtype)


_combine = {"sum": lax.add, "prod": lax.mul, "max": lax.max, "min": lax.min}
_OVER_NAMES = {"sum": lax.psum, "max": lax.pmax, "min": lax.pmin}  # reductions that take mapped axes, too
# Sums and products of dtype bool: the reduction, and how it is joined with an initial value.
_LOGICAL = {"sum": (lax.reduce_or, lax.bitwise_or), "prod": (lax.reduce_and, lax.bitwise_and)}


@fused(static_argnames=("axis", "dtype", "out", "keepdims", "promote_integers"))
def sum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The sum of the elements along `axis`; 0 for an empty one. Floats of 16 bits are added up in float32.

    Args:
      a: an array or number.
      axis: an int, a tuple of ints, or None for all axes. A tuple may hold names of mapped axes, too.
      dtype: dtype of the sum; by default that of `a`, with booleans and small integers widened. With bool it is an or.
      out: not supported, None only.
      keepdims: whether reduced axes stay, with size 1.
      initial: a number to start from.
      where: booleans that broadcast with `a`; elements where they are False are left out.
      promote_integers: whether integers narrower than the default one are added up in it, as booleans are always
        (unsigned ones in the unsigned dtype of its width). Otherwise they wrap around.

    Returns:
      an array of the shape of `a` without the reduced axes.

    Raises:
      ValueError: for axes out of range or given twice.

    Example:
      >>> import styrax.numpy as jnp
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.sum(x, axis=0)
      Array([4, 6], dtype=int32)
      >>> jnp.sum(x, axis=1, keepdims=True)
      Array([[3],
             [7]], dtype=int32)
    """
    _no_out("sum", out)
    return _reduce("sum", a, lax.reduce_sum, 0, axis, dtype, keepdims, initial, where, widen=True,
                   promote=promote_integers)


@fused(static_argnames=("axis", "dtype", "out", "keepdims", "promote_integers"))
def prod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
         initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The product of the elements along `axis`; 1 for an empty one. Floats of 16 bits are multiplied in float32.

    Args:
      a, axis, dtype, out, keepdims, initial, where, promote_integers: as for `sum`.

    Returns:
      an array of the shape of `a` without the reduced axes.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.prod(jnp.array([2, 3, 4]))
      Array(24, dtype=int32)
    """
    _no_out("prod", out)
    return _reduce("prod", a, lax.reduce_prod, 1, axis, dtype, keepdims, initial, where, widen=True,
                   promote=promote_integers)


@fused(static_argnames=("axis", "out", "keepdims"))
def max(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The largest element along `axis`; NaN where there is one.

    Complex numbers are compared by their real parts first. Elements that tie share the derivative equally.

    Args:
      a, axis, out, keepdims: as for `sum`.
      initial: a number that the result is not less than.
      where: booleans that broadcast with `a`; elements where they are False are left out.

    Returns:
      an array of the dtype of `a`, of its shape without the reduced axes.

    Raises:
      ValueError: for an empty axis, and for `where`, unless there is an `initial`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.max(jnp.array([[1, 5], [7, 2]]), axis=1)
      Array([5, 7], dtype=int32)
    """
    _no_out("max", out)
    _check_mask("max", where)
    if where is not None and initial is None:
        raise ValueError("reduction operation max does not have an identity, so to use a where mask one has to "
                         "specify 'initial'")
    return _reduce("max", a, lax.reduce_max, lowest, axis, None, keepdims, initial, where, needs_identity=True)


@fused(static_argnames=("axis", "out", "keepdims"))
def min(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The smallest element along `axis`; NaN where there is one.

    Complex numbers are compared by their real parts first. Elements that tie share the derivative equally.

    Args:
      a, axis, out, keepdims: as for `sum`.
      initial: a number that the result is not greater than.
      where: booleans that broadcast with `a`; elements where they are False are left out.

    Returns:
      an array of the dtype of `a`, of its shape without the reduced axes.

    Raises:
      ValueError: for an empty axis, and for `where`, unless there is an `initial`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.min(jnp.array([[1, 5], [7, 2]]), axis=1)
      Array([1, 2], dtype=int32)
    """
    _no_out("min", out)
    _check_mask("min", where)
    if where is not None and initial is None:
        raise ValueError("reduction operation min does not have an identity, so to use a where mask one has to "
                         "specify 'initial'")
    return _reduce("min", a, lax.reduce_min, highest, axis, None, keepdims, initial, where, needs_identity=True)


def minmax(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> tuple[Array, Array]:
    """The least and the greatest elements along `axis`; NaN where there is one.

    Raises ValueError for an empty `axis`.
    """
    return min(a, axis, keepdims=keepdims), max(a, axis, keepdims=keepdims)


def amax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None) -> Array:
    """The largest element along `axis`. Alias of :func:`jax.numpy.max`.

    Args:
      a, axis, out, keepdims, initial, where: as for `max`.

    Returns:
      what `max` gives.
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None) -> Array:
    """The smallest element along `axis`. Alias of :func:`jax.numpy.min`.

    Args:
      a, axis, out, keepdims, initial, where: as for `min`.

    Returns:
      what `min` gives.
    """
    return min(a, axis, out, keepdims, initial, where)


@fused(static_argnames=("axis", "out", "keepdims"))
def all(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements along `axis` are nonzero: True for an empty one. NaN counts as nonzero.

    Args:
      a, axis, out, keepdims, where: as for `sum`.

    Returns:
      booleans, of the shape of `a` without the reduced axes.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=1)
      Array([False,  True], dtype=bool)
    """
    _no_out("all", out)
    return _reduce("all", a, lax.reduce_and, True, axis, None, keepdims, None, where, to_bool=True)


@fused(static_argnames=("axis", "out", "keepdims"))
def any(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether some element along `axis` is nonzero: False for an empty one. NaN counts as nonzero.

    Args:
      a, axis, out, keepdims, where: as for `sum`.

    Returns:
      booleans, of the shape of `a` without the reduced axes.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.any(jnp.array([0, 0, 3]))
      Array(True, dtype=bool)
    """
    _no_out("any", out)
    return _reduce("any", a, lax.reduce_or, False, axis, None, keepdims, None, where, to_bool=True)


@partial(jit, static_argnames=("axis", "keepdims"))
def _ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return lax.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


@api_boundary
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element along `axis` less the smallest; NaN where there is one. Integers may wrap around.

    Args:
      a, axis, out, keepdims: as for `sum`.

    Returns:
      an array of the dtype of `a`, of its shape without the reduced axes.

    Raises:
      ValueError: for an empty axis.
    """
    _no_out("ptp", out)
    check_arraylike("ptp", a)
    return _ptp(unwrap(a), static_axis(axis), keepdims)


def _count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements along `axis` are not zero; NaN counts as such.

    Args:
      a: an array or number.
      axis: an int, a tuple of ints, or None for all axes.
      keepdims: whether reduced axes stay, with size 1.

    Returns:
      an array of the default integer dtype, of the shape of `a` without the reduced axes.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.count_nonzero(jnp.array([0, 3, 0, 5]))
      Array(2, dtype=int32)
    """
    (a,) = arrays("count_nonzero", a)
    return sum(lax.ne(a, number_like(0, a)), axis, dtype=int, keepdims=keepdims)


count_nonzero = jit(named(_count_nonzero, "count_nonzero"),
                    static_argnames=("axis", "keepdims"))


# -- positions of extrema --------------------------------------------------------------------------
class Position(Protocol):
    """A function that finds the place of an element."""

    def __call__(self, a: ArrayLike, axis: int | None = None, out: None = None,
                 keepdims: bool | None = None) -> Array: ...


def _place(name: str, primitive: Callable[..., Any], a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    (a,) = arrays(name, a)
    _no_out(name, out)
    if axis is not None and not hasattr(axis, "__index__"):
        raise TypeError(f"axis must be an integer, got {axis!r}")
    shape = shape_of(a)
    if axis is None:
        dims = list(range(len(shape)))
        a = _flat(a)
        axis_ = 0
    else:
        axis_ = range(len(shape))[concrete_or_error(None, axis, f"axis of {name}")]  # IndexError outside, as JAX's
        dims = [axis_]
    if shape_of(a)[axis_] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    result = primitive(a, axis_, default_int())
    return lax.expand_dims(result, dims) if keepdims else result


def _flat(a: Any) -> Any:
    shape = shape_of(a)
    if len(shape) == 1:
        return a
    return lax.reshape(a, (math.prod(shape),))


@fused(static_argnames=("axis", "out", "keepdims"))
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the largest element along `axis`: the first of several. NaN counts as the largest.

    Args:
      a: an array or number of a real dtype.
      axis: an int, or None for the index among all elements in row order.
      out: not supported, None only.
      keepdims: whether reduced axes stay, with size 1.

    Returns:
      integers of the default dtype, of the shape of `a` without the reduced axes.

    Raises:
      ValueError: for an empty axis.
      IndexError: for an axis out of range.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.argmax(jnp.array([[1, 5, 3], [7, 2, 6]]), axis=1)
      Array([1, 0], dtype=int32)
    """
    return _place("argmax", lax.argmax, a, axis, out, keepdims)


@fused(static_argnames=("axis", "out", "keepdims"))
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the smallest element along `axis`: the first of several. NaN counts as the smallest.

    Args:
      a: an array or number of a real dtype.
      axis: an int, or None for the index among all elements in row order.
      out: not supported, None only.
      keepdims: whether reduced axes stay, with size 1.

    Returns:
      integers of the default dtype, of the shape of `a` without the reduced axes.

    Raises:
      ValueError: for an empty axis.
      IndexError: for an axis out of range.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.argmin(jnp.array([[1, 5, 3], [7, 2, 6]]), axis=1)
      Array([0, 1], dtype=int32)
    """
    return _place("argmin", lax.argmin, a, axis, out, keepdims)
