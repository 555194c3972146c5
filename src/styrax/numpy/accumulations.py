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
from .reductions import _BOOL, Position, _no_out, _sum_dtype, argmax, argmin, highest, lowest
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


_CUM_DOC = """The {} of the elements up to each one along `axis` (None: in row order of all).

    `dtype` is that of the result; booleans become integers by default. Raises ValueError for an axis
    out of range.

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


def _array_api(name: str, accumulate: Callable[..., Any], start: int) -> ArrayApiAccumulation:
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

    return named(function, name, f"The {name.replace('_', ' ')} along `axis`, small integers widened.\n\n    With "
                                  "`include_initial` it begins with the value of the empty case. Raises ValueError\n"
                                  "    for scalars, and for rank 2 and more without an axis.")


cumulative_sum = _array_api("cumulative_sum", _cumsum_with_promotion, 0)
cumulative_prod = _array_api("cumulative_prod", _cumprod_without_promotion, 1)


# -- skipping NaN --------------------------------------------------------------------------------
_NAN_STATIC = ("axis", "keepdims")
_NAN_DOC = """The {} of the elements along `axis` that are not NaN. Arguments as for `{}`.{}"""


class NanExtremum(Protocol):
    """`nanmax` and `nanmin`."""

    def __call__(self, a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
                 initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array: ...


class NanFold(Protocol):
    """`nansum` and `nanprod`."""

    def __call__(self, a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
                 keepdims: bool = False, initial: ArrayLike | None = None,
                 where: ArrayLike | None = None) -> Array: ...


def _nan_extremum(name: str, reduce: Callable[..., Any], fill: Callable[[Any], Any], plain: str) -> NanExtremum:
    def function(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
                 initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        (a,) = arrays(name, a)
        _no_out(name, out)
        if not dtypes.issubdtype(dtype_of(a), np.inexact):
            return reduce(a, axis=axis, keepdims=keepdims, initial=initial, where=where)
        filled = choose_elements(lax.ne(a, a), convert(fill(dtype_of(a)), dtype_of(a)), a)
        result = reduce(filled, axis=axis, keepdims=keepdims, initial=initial, where=where)
        if initial is not None:
            return result
        empty = all_(lax.ne(a, a), axis=axis, keepdims=keepdims)
        return choose_elements(empty, convert(np.nan, dtype_of(a)), result)

    return jit(named(function, name, _NAN_DOC.format(f"{plain}", plain[-3:], " NaN where all are.")),
               static_argnames=_NAN_STATIC)


nanmax = _nan_extremum("nanmax", max_, lowest, "max")
nanmin = _nan_extremum("nanmin", min_, highest, "min")


def _nan_fold(name: str, reduce: Callable[..., Any], fill: int) -> NanFold:
    def function(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
                 keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        (a,) = arrays(name, a)
        _no_out(name, out)
        if dtypes.issubdtype(dtype_of(a), np.inexact):
            a = choose_elements(lax.ne(a, a), convert(fill, dtype_of(a)), a)
        return reduce(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    return jit(
        named(function, name, _NAN_DOC.format(name[3:], name[3:], "")), static_argnames=("axis", "dtype", "keepdims")
    )


nansum = _nan_fold("nansum", sum_, 0)
nanprod = _nan_fold("nanprod", prod_, 1)


def _nanmean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
             where: ArrayLike | None = None) -> Array:
    """The mean of the elements along `axis` that are not NaN. Arguments as for `mean`."""
    from .reductions import mean

    (a,) = arrays("nanmean", a)
    _no_out("nanmean", out)
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
    """The variance of the elements along `axis` that are not NaN. Arguments as for `var`."""
    (a,) = arrays("nanvar", a)
    _no_out("nanvar", out)
    from .reductions import _var_dtypes

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
    """The standard deviation of the elements along `axis` that are not NaN. Arguments as for `std`."""
    (a,) = arrays("nanstd", a)
    _no_out("nanstd", out)
    return lax.sqrt(nanvar(a, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean))


nanstd = jit(named(_nanstd, "nanstd"), static_argnames=("axis", "dtype", "keepdims"))


def _nan_arg(name: str, plain: Callable[..., Any], fill: float) -> Position:
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

    return named(function, name, f"The index of the {'largest' if 'max' in name else 'smallest'} element that is not "
                                  "NaN along `axis`; -1 where all are.")


nanargmax = _nan_arg("nanargmax", argmax, -np.inf)
nanargmin = _nan_arg("nanargmin", argmin, np.inf)
