"""Reductions along axes: sums, products, extrema, means, variances and cumulative forms."""

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
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import broadcast_shapes, choose_elements, spread, truth
from .promotion import (
    arrays,
    axis_indices,
    canonical,
    check_arraylike,
    convert,
    default_int,
    dtype_of,
    is_array,
    promote_args,
    shape_of,
    static_axis,
    to_inexact,
    typed,
    unwrap,
    user_dtype,
)

_BOOL = np.dtype(np.bool_)
_HALF = {np.dtype(np.float16), np.dtype(dtypes.bfloat16)}


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def _split_axes(axis: Any) -> tuple[Any, tuple[str, ...]]:
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
    axis, names = _split_axes(static_axis(axis))
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
    elif dtype is None and promote:
        result = _sum_dtype(have)
    compute = np.dtype(np.float32) if widen and result in _HALF else result
    a = convert(a, compute)
    combine = _combine.get(name, lax.add)
    if compute == _BOOL and name in _LOGICAL:
        primitive, combine = _LOGICAL[name]
    if where is not None:
        check_arraylike(name, where)
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


@api_boundary
def sum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The sum of the elements along `axis` (an int, a tuple of ints, or None for all).

    Args:
      a: an array or number.
      dtype: dtype of the sum; by default that of `a`, small integers and booleans widened.
      keepdims: whether reduced axes stay, with size 1.
      initial: a number to start from.
      where: booleans that broadcast with `a`; elements where they are False are left out.
      promote_integers: whether small integers are widened.

    Raises ValueError for axes out of range or given twice.

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


@api_boundary
def prod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
         initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The product of the elements along `axis`. Arguments as for `sum`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.prod(jnp.array([2, 3, 4]))
      Array(24, dtype=int32)
    """
    _no_out("prod", out)
    return _reduce("prod", a, lax.reduce_prod, 1, axis, dtype, keepdims, initial, where, widen=True,
                   promote=promote_integers)


@api_boundary
def max(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The largest element along `axis`; NaN where there is one.

    Arguments as for `sum`. Raises ValueError for an empty reduction, and for `where` without `initial`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.max(jnp.array([[1, 5], [7, 2]]), axis=1)
      Array([5, 7], dtype=int32)
    """
    _no_out("max", out)
    if where is not None and initial is None:
        raise ValueError("reduction operation max does not have an identity, so to use a where mask one has to "
                         "specify 'initial'")
    return _reduce("max", a, lax.reduce_max, lowest, axis, None, keepdims, initial, where, needs_identity=True)


@api_boundary
def min(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The smallest element along `axis`; NaN where there is one.

    Arguments as for `sum`. Raises ValueError for an empty reduction, and for `where` without `initial`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.min(jnp.array([[1, 5], [7, 2]]), axis=1)
      Array([1, 2], dtype=int32)
    """
    _no_out("min", out)
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
    """The largest element along `axis`. The same as `max`."""
    return max(a, axis, out, keepdims, initial, where)


def amin(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None) -> Array:
    """The smallest element along `axis`. The same as `min`."""
    return min(a, axis, out, keepdims, initial, where)


@api_boundary
def all(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements along `axis` are nonzero. Arguments as for `sum`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=1)
      Array([False,  True], dtype=bool)
    """
    _no_out("all", out)
    return _reduce("all", a, lax.reduce_and, True, axis, None, keepdims, None, where, to_bool=True)


@api_boundary
def any(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether some element along `axis` is nonzero. Arguments as for `sum`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.any(jnp.array([0, 0, 3]))
      Array(True, dtype=bool)
    """
    _no_out("any", out)
    return _reduce("any", a, lax.reduce_or, False, axis, None, keepdims, None, where, to_bool=True)


def count(shape: tuple, axis: Any) -> int:
    """How many elements are reduced into one. Raises IndexError for an axis that the shape does not have."""
    axis, names = _split_axes(axis)
    mapped = lax.axis_size(names) if names else 1
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return math.prod(shape[i] for i in axes) * mapped


@api_boundary
def mean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
         where: ArrayLike | None = None) -> Array:
    """The mean of the elements along `axis`. Arguments as for `sum`.

    Integers are averaged as floats, float16 and bfloat16 in float32.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.mean(jnp.array([1, 2, 6]))
      Array(3., dtype=float32)
    """
    _no_out("mean", out)
    check_arraylike("mean", a)
    a = unwrap(a)
    axis = static_axis(axis)
    have = dtype_of(a)
    result = to_inexact(have) if dtype is None else user_dtype(dtype, "mean")
    compute = np.dtype(np.float32) if result in _HALF and dtype is None else result
    if where is None:
        number: Any = convert(count(shape_of(a), axis), compute)
    else:
        number = count_where(where, shape_of(a), axis, keepdims, compute)
    total = _reduce("sum", a, lax.reduce_sum, 0, axis, compute, keepdims, None, where)
    return convert(lax.div(total, number), result)


def count_where(where: Any, shape: tuple, axis: Any, keepdims: bool, dtype: Any) -> Any:
    """How many elements `where` selects, as a number of `dtype`."""
    mask = spread(truth(where), broadcast_shapes(shape_of(where), shape))
    return sum(convert(mask, np.dtype(np.int32)), axis, dtype, keepdims=keepdims)


@partial(jit, static_argnames=("axis", "dtype", "keepdims"))
def _var(a: Any, axis: Any, dtype: Any, mean: Any, correction: Any, keepdims: bool = False, *,
         where: Any = None) -> Any:
    compute, result = _var_dtypes(dtype_of(a), dtype)
    a = convert(a, compute)
    center = _mean(a, axis, compute, where) if mean is None else mean
    centered = lax.sub(*promote_args("var", a, convert(center, compute)))
    if dtypes.issubdtype(dtype_of(centered), np.complexfloating):
        squares = lax.real(lax.mul(centered, lax.conj(centered)))
        compute = dtype_of(squares)
    else:
        squares = lax.square(centered)
    shape = shape_of(a)
    if where is None:
        number: Any = convert(count(shape, axis), compute)
    else:
        number = count_where(where, shape, axis, keepdims, compute)
    degrees = lax.sub(number, convert(correction, compute))
    total = sum(squares, axis, compute, keepdims=keepdims, where=where)
    out = convert(lax.div(total, degrees), result)
    return choose_elements(lax.gt(degrees, convert(0, compute)), out, np.nan)


def _mean(a: Any, axis: Any, dtype: Any, where: Any) -> Any:
    return globals()["mean"](a, axis, dtype=dtype, keepdims=True, where=where)


def _var_dtypes(have: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtypes a variance is computed and given back in."""
    if dtype is not None:
        dtype = user_dtype(dtype, "var")
        if not dtypes.issubdtype(dtype, np.complexfloating) and dtypes.issubdtype(have, np.complexfloating):
            raise ValueError("jax.numpy.var does not yet support real dtype parameters when computing the variance of "
                             "an array of complex values. The semantics of numpy.var seem unclear in this case.")
        return (np.dtype(np.float32) if dtype in _HALF else dtype), dtype
    compute = to_inexact(have)
    result = np.empty(0, compute).real.dtype if compute.kind == "c" else compute
    return (np.dtype(np.float32) if compute in _HALF else compute), result


def _degrees(name: str, ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if not (isinstance(ddof, int) and ddof == 0):
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@api_boundary
def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:
    """The variance of the elements along `axis`.

    Args:
      a, axis, dtype, keepdims, where: as for `sum`; integers are taken as floats.
      ddof: the sum of squares is divided by the number of elements less this. `correction` is the
        array API's name for it.
      mean: the mean, where it is known, with reduced axes kept.

    Raises ValueError when both `ddof` and `correction` are given.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.var(jnp.array([1.0, 2.0, 6.0]), ddof=1)
      Array(7., dtype=float32)
    """
    _no_out("var", out)
    check_arraylike("var", a)
    correction = _degrees("var", ddof, correction)
    return _var(unwrap(a), static_axis(axis), None if dtype is None else user_dtype(dtype, "var"), mean, correction,
                keepdims, where=where)


@partial(jit, static_argnames=("axis", "dtype", "keepdims"))
def _std(a: Any, axis: Any, dtype: Any, mean: Any, correction: Any, keepdims: bool = False, *,
         where: Any = None) -> Any:
    return lax.sqrt(_var(a, axis, dtype, mean, correction, keepdims, where=where))


@api_boundary
def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:
    """The standard deviation along `axis`: the square root of `var`, which see.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.std(jnp.array([1.0, 3.0]))
      Array(1., dtype=float32)
    """
    _no_out("std", out)
    check_arraylike("std", a)
    correction = _degrees("std", ddof, correction)
    if dtype is not None and not dtypes.issubdtype(user_dtype(dtype, "std"), np.inexact):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    return _std(unwrap(a), static_axis(axis), None if dtype is None else user_dtype(dtype, "std"), mean, correction,
                keepdims, where=where)


@partial(jit, static_argnames=("axis", "keepdims"))
def _ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return lax.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


@api_boundary
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element less the smallest, along `axis`."""
    _no_out("ptp", out)
    check_arraylike("ptp", a)
    return _ptp(unwrap(a), static_axis(axis), keepdims)


def _count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements along `axis` are not zero.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.count_nonzero(jnp.array([0, 3, 0, 5]))
      Array(2, dtype=int32)
    """
    (a,) = arrays("count_nonzero", a)
    return sum(lax.ne(a, convert(0, *typed(a))), axis, dtype=int, keepdims=keepdims)


count_nonzero = jit(named(_count_nonzero, "count_nonzero"),
                    static_argnames=("axis", "keepdims"))


@api_boundary
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False,
            keepdims: bool = False) -> Array | tuple[Array, Array]:
    """The mean along `axis`, weighted by `weights` (of the shape of `a`, or 1-d along the axis).

    With `returned` a pair of the mean and the sum of the weights. Raises TypeError or ValueError for
    weights that do not fit.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.average(jnp.array([1.0, 4.0]), weights=jnp.array([2.0, 1.0]))
      Array(2., dtype=float32)
    """
    if weights is None:
        check_arraylike("average", a)
        (a,) = arrays("average", a)
        axis = static_axis(axis)
        if not _split_axes(axis)[1]:
            axis_indices(axis, len(shape_of(a)))
        mean_ = globals()["mean"](a, axis, keepdims=keepdims)
        if not returned:
            return mean_
        return mean_, lax.full_like(mean_, count(shape_of(a), axis))
    a, weights = promote_args_dtypes("average", a, weights)
    axis = static_axis(axis)
    a_shape, w_shape = shape_of(a), shape_of(weights)
    if axis is not None:
        axes = axis_indices(axis, len(a_shape))
        axis = axes[0] if isinstance(axis, int) else axes
    if a_shape != w_shape:
        if axis is None:
            raise ValueError("Axis must be specified when shapes of a and weights differ.")
        if len(w_shape) == 1 and isinstance(axis, int):
            if w_shape[0] != a_shape[axis]:
                raise ValueError("Length of weights not compatible with specified axis.")
            weights = lax.reshape(weights, tuple(w_shape[0] if i == axis else 1 for i in range(len(a_shape))))
        elif w_shape != tuple(a_shape[i] for i in axis_indices(axis, len(a_shape))):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        else:
            axes = axis_indices(axis, len(a_shape))
            order = np.argsort(axes)
            weights = lax.transpose(weights, tuple(int(i) for i in order))
            weights = lax.reshape(weights, tuple(a_shape[i] if i in axes else 1 for i in range(len(a_shape))))
    weight_sum = sum(weights, axis, keepdims=keepdims)
    total = sum(lax.mul(*promote_args("average", a, weights)), axis, keepdims=keepdims)
    out = lax.div(total, weight_sum)
    if returned:
        return out, spread(weight_sum, shape_of(out))
    return out


def promote_args_dtypes(name: str, *args: Any) -> list[Any]:
    """Operands of one floating point dtype, their shapes as they are."""
    from .promotion import promote_dtypes_inexact

    return promote_dtypes_inexact(*arrays(name, *args))


# -- positions of extrema --------------------------------------------------------------------------
class Position(Protocol):
    """A function that finds the place of an element."""

    def __call__(self, a: ArrayLike, axis: int | None = None, out: None = None,
                 keepdims: bool | None = None) -> Array: ...


def _arg(name: str, primitive: Callable[..., Any], doc: str) -> Position:
    def function(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
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

    return named(function, name, doc)


def _flat(a: Any) -> Any:
    shape = shape_of(a)
    if len(shape) == 1:
        return a
    return lax.reshape(a, (math.prod(shape),))


_ARG_DOC = """The index of the {} element along `axis`, or among all elements in row order.

    The first of several; NaN counts as the {}. Raises ValueError for an empty axis.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.{}(jnp.array([[1, 5, 3], [7, 2, 6]]), axis=1)
      Array([{}], dtype=int32)
    """
argmax = _arg("argmax", lax.argmax, _ARG_DOC.format("largest", "largest", "argmax", "1, 0"))
argmin = _arg("argmin", lax.argmin, _ARG_DOC.format("smallest", "smallest", "argmin", "0, 1"))
