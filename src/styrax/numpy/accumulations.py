"""Cumulative sums and products, and reductions that skip NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis, DTypeLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import choose_elements
from .promotion import (
    arrays,
    axis_index,
    convert,
    default_int,
    dtype_of,
    promote_args,
    shape_of,
    static_axis,
    user_dtype,
)
from .reductions import _BOOL, Position, _check_mask, _no_out, _sum_dtype, argmax, argmin, highest, lowest
from .reductions import all as all_
from .reductions import max as max_
from .reductions import min as min_
from .reductions import prod as prod_
from .reductions import sum as sum_


def _cumulate(name: str, a: Any, primitive: Callable[..., Any], axis: Any, dtype: Any, fill: Any, promote: bool) -> Any:
    (a,) = arrays(name, a)
    if axis is None:
        a = lax.reshape(a, (math.prod(shape_of(a)),)) if len(shape_of(a)) != 1 else a
        axis = 0
    axis = axis_index(axis, len(shape_of(a)))
    if fill is not None and dtypes.issubdtype(dtype_of(a), np.inexact):
        a = choose_elements(lax.ne(a, a), convert(fill, dtype_of(a)), a)
    have = dtype_of(a)
    result = (_sum_dtype(have) if promote else have) if dtype is None else user_dtype(dtype, name)
    if dtype is None and not promote and have == _BOOL:
        result = default_int()
    if result == _BOOL:
        # A bool result is accumulated in integers: the running "any" (or "all").
        return convert(primitive(convert(convert(a, _BOOL), default_int()), axis), _BOOL)
    return primitive(convert(a, result), axis)


class Accumulation(Protocol):
    """`cumsum` and its kin."""

    def __call__(self, a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
                 out: None = None) -> Array: ...


def _cumulative(name: str, primitive: Callable[..., Any], fill: Any, doc: str) -> Accumulation:
    def function(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        _no_out(name, out)
        return _cumulate(name, a, primitive, axis, dtype, fill, False)

    return jit(named(function, name, doc), static_argnames=("axis", "dtype"))


_CUM_DOC = """The {} of the elements up to each one along `axis`.

    Args:
      a: an array.
      axis: the axis; None for all elements in row order.
      dtype: dtype to compute in and to return; by default that of `a`, for booleans the int dtype in force.
      out: has to be None.

    Returns:
      an array of the shape of `a`, a vector without an axis. Integers wrap around.

    Raises:
      ValueError: for an axis out of range.
      NotImplementedError: for an `out`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.{}(jnp.array([1, 2, 3]))
      Array([{}], dtype=int32)
    """
cumsum = _cumulative("cumsum", lax.cumsum, None, _CUM_DOC.format("sum", "cumsum", "1, 3, 6"))
cumprod = _cumulative("cumprod", lax.cumprod, None, _CUM_DOC.format("product", "cumprod", "1, 2, 6"))
nancumsum = _cumulative("nancumsum", lax.cumsum, 0, _CUM_DOC.format(
    "sum, NaN taken as 0,", "nancumsum", "1, 3, 6"))
nancumprod = _cumulative("nancumprod", lax.cumprod, 1, _CUM_DOC.format(
    "product, NaN taken as 1,", "nancumprod", "1, 2, 6"))


def _with_promotion(name: str, primitive: Callable[..., Any]) -> Accumulation:
    def function(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        return _cumulate(name, a, primitive, axis, dtype, None, True)

    return jit(named(function, name, ""), static_argnames=("axis", "dtype"))


_cumsum_with_promotion = _with_promotion("_cumsum_with_promotion", lax.cumsum)


def _cumprod_without_promotion(a: Any, axis: int, dtype: Any) -> Any:
    return _cumulate("cumulative_prod", a, lax.cumprod, axis, dtype, None, False)


class ArrayApiAccumulation(Protocol):
    """`cumulative_sum` and `cumulative_prod`."""

    def __call__(self, x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                 include_initial: bool = False) -> Array: ...


def _array_api(name: str, accumulate: Callable[..., Any], start: int, doc: str) -> ArrayApiAccumulation:
    def function(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None,
                 include_initial: bool = False) -> Array:
        (x,) = arrays(name, x)
        rank = len(shape_of(x))
        if rank == 0:
            raise ValueError(f"The input must be non-scalar to take a {name.replace('_', ' ')}, however a scalar value "
                             "or scalar array was given.")
        if axis is None:
            if rank > 1:
                raise ValueError(f"The input array has rank {rank}, however axis was not set to an explicit value. The "
                                 "axis argument is only optional for one-dimensional arrays.")
            axis = 0
        axis = axis_index(axis, rank)
        if dtype is not None:
            dtype = user_dtype(dtype, name)
        out = accumulate(x, axis=axis, dtype=dtype)
        if include_initial:
            shape = tuple(1 if i == axis else d for i, d in enumerate(shape_of(x)))
            out = lax.concatenate([lax.full(shape, start, dtype_of(out)), out], axis)
        return out

    return named(function, name, doc)


_ARRAY_API_DOC = """The {} of the elements up to each one along `axis`: the array API's `{}`.

    Args:
      x: an array of rank 1 or more.
      axis: the axis; needed for rank 2 and more.
      dtype: dtype to compute in and to return; by default {}.
      include_initial: whether the result begins with the {} of no elements, {}.

    Returns:
      an array of the shape of `x`, longer by one along `axis` with `include_initial`.

    Raises:
      ValueError: for scalars, for rank 2 and more without an axis, and for an axis out of range.
    """
cumulative_sum = _array_api("cumulative_sum", _cumsum_with_promotion, 0, _ARRAY_API_DOC.format(
    "sum", "cumsum", "that of `x`, small integers widened", "sum", 0))
cumulative_prod = _array_api("cumulative_prod", _cumprod_without_promotion, 1, _ARRAY_API_DOC.format(
    "product", "cumprod", "that of `x`, for booleans the int dtype in force", "product", 1))


# -- skipping NaN --------------------------------------------------------------------------------
_NAN_STATIC = ("axis", "keepdims")
_NAN_DOC = """The {} of the elements along `axis` that are not NaN.

    Args:
      a: an array.
      axis: an int, or several; None for all.{}
      out: has to be None.
      keepdims: whether `axis` stays, with size 1.
      initial: a value that counts besides the elements.
      where: which elements count: booleans that broadcast with `a`{}.

    Returns:
      an array of the shape of `a` without `axis`; {}.{}
    """


class NanExtremum(Protocol):
    """`nanmax` and `nanmin`."""

    def __call__(self, a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
                 initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array: ...


class NanFold(Protocol):
    """`nansum` and `nanprod`."""

    def __call__(self, a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
                 keepdims: bool = False, initial: ArrayLike | None = None,
                 where: ArrayLike | None = None) -> Array: ...


def _nan_extremum(name: str, reduce: Callable[..., Any], fill: Callable[[Any], Any], extreme: str) -> NanExtremum:
    def function(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
                 initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        (a,) = arrays(name, a)
        _no_out(name, out)
        _check_mask(name, where)
        if not dtypes.issubdtype(dtype_of(a), np.inexact):
            return reduce(a, axis=axis, keepdims=keepdims, initial=initial, where=where)
        filled = choose_elements(lax.ne(a, a), convert(fill(dtype_of(a)), dtype_of(a)), a)
        result = reduce(filled, axis=axis, keepdims=keepdims, initial=initial, where=where)
        if initial is not None:
            return result
        empty = all_(lax.ne(a, a), axis=axis, keepdims=keepdims)
        return choose_elements(empty, convert(np.nan, dtype_of(a)), result)

    doc = _NAN_DOC.format(extreme, "", "; `initial` is needed then", "NaN where all are NaN and there is no `initial`",
                          "\n\n    Raises:\n      ValueError: for an empty axis or a `where` without `initial`.")
    return jit(named(function, name, doc), static_argnames=_NAN_STATIC)


nanmax = _nan_extremum("nanmax", max_, lowest, "largest")
nanmin = _nan_extremum("nanmin", min_, highest, "smallest")


def _nan_fold(name: str, reduce: Callable[..., Any], fill: int, result: str) -> NanFold:
    def function(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
                 keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        (a,) = arrays(name, a)
        _no_out(name, out)
        _check_mask(name, where)
        if dtypes.issubdtype(dtype_of(a), np.inexact):
            a = choose_elements(lax.ne(a, a), convert(fill, dtype_of(a)), a)
        return reduce(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    doc = _NAN_DOC.format(result, "\n      dtype: dtype to compute in and to return; by default that of `a`, small "
                          "integers widened.", "", f"{fill} where none counts", "")
    return jit(named(function, name, doc), static_argnames=("axis", "dtype", "keepdims"))


nansum = _nan_fold("nansum", sum_, 0, "sum")
nanprod = _nan_fold("nanprod", prod_, 1, "product")


def _nanmean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
             where: ArrayLike | None = None) -> Array:
    """The mean of the elements along `axis` that are not NaN.

    Args:
      a: an array.
      axis: an int, or several; None for all.
      dtype: dtype to add up in and to return; by default that of `a`, floats for integers.
      out: has to be None.
      keepdims: whether `axis` stays, with size 1.
      where: which elements count: booleans that broadcast with `a`.

    Returns:
      an array of the shape of `a` without `axis`; NaN where no element counts.
    """
    from .moments import mean

    (a,) = arrays("nanmean", a)
    _no_out("nanmean", out)
    _check_mask("nanmean", where)
    have = dtype_of(a)
    if have == _BOOL or dtypes.issubdtype(have, np.integer):
        return mean(a, axis, dtype, keepdims=keepdims, where=where)
    result = have if dtype is None else user_dtype(dtype, "nanmean")
    valid = lax.bitwise_not(lax.ne(a, a))
    number = sum_(convert(valid, default_int()), axis=axis, dtype=result, keepdims=keepdims, where=where)
    return lax.div(nansum(a, axis, dtype=result, keepdims=keepdims, where=where), number)


nanmean = jit(named(_nanmean, "nanmean"), static_argnames=("axis", "dtype", "keepdims"))


def _nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
            keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:
    """The variance of the elements along `axis` that are not NaN.

    It is the sum of |a - mean|² divided by the number of these elements less `ddof`.

    Args:
      a: an array; integers are taken as floats.
      axis: an int, or several; None for all.
      dtype: dtype to compute in and to return; by default the float dtype of `a`.
      out: has to be None.
      ddof: what is taken from the number of elements.
      keepdims: whether `axis` stays, with size 1.
      where: which elements count: booleans that broadcast with `a`.
      mean: the mean, with `axis` kept, where it is known.

    Returns:
      real numbers of the shape of `a` without `axis`; NaN where not more than `ddof` elements count.
    """
    (a,) = arrays("nanvar", a)
    _no_out("nanvar", out)
    _check_mask("nanvar", where)
    from .moments import _var_dtypes

    compute, result = _var_dtypes(dtype_of(a), dtype)
    a = convert(a, compute)
    if mean is None:
        mean = nanmean(a, axis, dtype=compute, keepdims=True, where=where)
    centered = choose_elements(lax.ne(a, a), 0, lax.sub(a, convert(mean, compute)))
    if dtypes.issubdtype(dtype_of(centered), np.complexfloating):
        centered = lax.real(lax.mul(centered, lax.conj(centered)))
    else:
        centered = lax.square(centered)
    number = sum_(lax.bitwise_not(lax.ne(a, a)), axis=axis, keepdims=keepdims, where=where)
    number = lax.sub(*promote_args("subtract", number, ddof))
    invalid = lax.le(number, convert(0, dtype_of(number)))
    total = sum_(centered, axis, keepdims=keepdims, where=where)
    total = choose_elements(invalid, np.nan, total)
    number = choose_elements(invalid, 1, number)
    return convert(lax.div(total, convert(number, dtype_of(total))), result)


nanvar = jit(named(_nanvar, "nanvar"), static_argnames=("axis", "dtype", "keepdims"))


def _nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
            keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:
    """The standard deviation of the elements along `axis` that are not NaN: the root of `nanvar`.

    Args:
      a: an array; integers are taken as floats.
      axis: an int, or several; None for all.
      dtype: dtype to compute in and to return; by default the float dtype of `a`.
      out: has to be None.
      ddof: what is taken from the number of elements.
      keepdims: whether `axis` stays, with size 1.
      where: which elements count: booleans that broadcast with `a`.
      mean: the mean, with `axis` kept, where it is known.

    Returns:
      real numbers of the shape of `a` without `axis`; NaN where not more than `ddof` elements count.
    """
    (a,) = arrays("nanstd", a)
    _no_out("nanstd", out)
    _check_mask("nanstd", where)
    return lax.sqrt(nanvar(a, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean))


nanstd = jit(named(_nanstd, "nanstd"), static_argnames=("axis", "dtype", "keepdims"))


def _nan_arg(name: str, plain: Callable[..., Any], fill: float, doc: str) -> Position:
    def inner(a: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        if not dtypes.issubdtype(dtype_of(a), np.inexact):
            return plain(a, axis=axis, keepdims=keepdims)
        invalid = lax.ne(a, a)
        a = choose_elements(invalid, fill, a)
        result = plain(a, axis=axis, keepdims=keepdims)
        return choose_elements(all_(invalid, axis=axis, keepdims=keepdims), -1, result)

    compiled = jit(named(inner, f"_{name}", ""), static_argnames=("axis", "keepdims"))

    def function(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        _no_out(name, out)
        (a,) = arrays(name, a)
        return compiled(a, None if axis is None else static_axis(axis), keepdims=bool(keepdims))

    return named(function, name, doc)


_NAN_ARG_DOC = """The index of the {} element along `axis` that is not NaN; of equal ones the first.

    Args:
      a: an array, not empty.
      axis: the axis; None for the index among all elements in row order.
      out: has to be None.
      keepdims: whether `axis` stays, with size 1.

    Returns:
      integers of the shape of `a` without `axis`; -1 where all are NaN.

    Raises:
      ValueError: for an empty array.
    """
nanargmax = _nan_arg("nanargmax", argmax, -np.inf, _NAN_ARG_DOC.format("largest"))
nanargmin = _nan_arg("nanargmin", argmin, np.inf, _NAN_ARG_DOC.format("smallest"))
