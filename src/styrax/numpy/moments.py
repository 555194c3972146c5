"""Means, variances and standard deviations along axes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis, DTypeLike
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import broadcast_shapes, choose_elements, spread, truth
from .promotion import (
    arrays,
    axis_indices,
    check_arraylike,
    convert,
    dtype_of,
    promote_args,
    promote_dtypes_inexact,
    shape_of,
    static_axis,
    to_inexact,
    unwrap,
    user_dtype,
)
from .reductions import _HALF, _check_mask, _no_out, _reduce, split_axes, sum


def count(shape: tuple, axis: Any) -> int:
    """How many elements are reduced into one. Raises IndexError for an axis that the shape does not have."""
    axis, names = split_axes(axis)
    mapped = lax.axis_size(names) if names else 1
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return math.prod(shape[i] for i in axes) * mapped


@fused(static_argnames=("axis", "dtype", "out", "keepdims"))
def mean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
         where: ArrayLike | None = None) -> Array:
    """The mean of the elements along `axis`; NaN for an empty one.

    Args:
      a, axis, out, keepdims, where: as for `sum`.
      dtype: dtype of the mean and of the sum in it; by default that of `a`, with integers and booleans taken as
        floats, and floats of 16 bits added up in float32.

    Returns:
      an array of floats (or complex numbers), of the shape of `a` without the reduced axes.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.mean(jnp.array([1, 2, 6]))
      Array(3., dtype=float32)
    """
    _no_out("mean", out)
    _check_mask("mean", where)
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
    """The variance of the elements along `axis`: Σ|a - mean|² / (n - ddof), and NaN where n is not above `ddof`.

    Args:
      a, axis, out, keepdims, where: as for `sum`.
      dtype: float dtype of the result; by default the real one of `a`, with integers and booleans taken as floats.
      ddof: the sum of squares is divided by the number of elements n less this.
      mean: the mean, where it is known, with reduced axes kept.
      correction: the array API's name for `ddof`.

    Returns:
      an array of real floats, of the shape of `a` without the reduced axes.

    Raises:
      ValueError: for both `ddof` and `correction`, and for a real `dtype` with complex numbers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.var(jnp.array([1.0, 2.0, 6.0]), ddof=1)
      Array(7., dtype=float32)
    """
    _no_out("var", out)
    _check_mask("var", where)
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
    """The standard deviation along `axis`: the square root of `var`. Its gradient is NaN where it is 0.

    Args:
      a, axis, dtype, out, ddof, keepdims, where, mean, correction: as for `var`.

    Returns:
      an array of real floats, of the shape of `a` without the reduced axes.

    Raises:
      ValueError: as for `var`, and for a `dtype` of integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.std(jnp.array([1.0, 3.0]))
      Array(1., dtype=float32)
    """
    _no_out("std", out)
    _check_mask("std", where)
    check_arraylike("std", a)
    correction = _degrees("std", ddof, correction)
    if dtype is not None and not dtypes.issubdtype(user_dtype(dtype, "std"), np.inexact):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    return _std(unwrap(a), static_axis(axis), None if dtype is None else user_dtype(dtype, "std"), mean, correction,
                keepdims, where=where)


@fused(static_argnames=("axis", "returned", "keepdims"))
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False,
            keepdims: bool = False) -> Array | tuple[Array, Array]:
    """The mean along `axis`, weighted: Σ a·w / Σ w. NaN or ±∞ where the weights add up to 0.

    Args:
      a: an array or number; integers are taken as floats.
      axis: an int, a tuple of ints, or None for all axes.
      weights: numbers w of the shape of `a`, or of that along `axis`; all 1 by default.
      returned: whether the sum of the weights is given, too.
      keepdims: whether reduced axes stay, with size 1.

    Returns:
      an array of floats (or complex numbers), of the shape of `a` without the reduced axes; with `returned` a pair
      of it and the sum of the weights in the same shape.

    Raises:
      ValueError: for weights of another shape, also for any but that of `a` without an `axis`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.average(jnp.array([1.0, 4.0]), weights=jnp.array([2.0, 1.0]))
      Array(2., dtype=float32)
    """
    if weights is None:
        check_arraylike("average", a)
        (a,) = arrays("average", a)
        axis = static_axis(axis)
        if not split_axes(axis)[1]:
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
                raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
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
    return promote_dtypes_inexact(*arrays(name, *args))
