"""Numbers at even steps or in even ratios."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import is_symbolic, larger, size_argument
from styrax.core.types.typing import ArrayLike, DeviceLike, Dim, DTypeLike, ShardingLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import spread, spread_all
from .conversion import astype, place, told_by
from .promotion import (
    arrays,
    axis_index,
    convert,
    is_array,
    is_arraylike,
    not_numeric,
    promote_dtypes,
    result_typed,
    shape_of,
    to_inexact,
    user_dtype,
    wrapped,
)


@api_boundary
def arange(start: ArrayLike | Dim, stop: ArrayLike | Dim | None = None, step: ArrayLike | None = None,
           dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
           out_sharding: ShardingLike | None = None) -> Array:
    """The numbers from `start` up to `stop`, which is left out, in steps of `step`.

    With one bound the numbers run from 0 up to it. Bounds are static, as the length has to be known.

    Args:
      start, stop: the bounds: real numbers.
      step: the step, 1 by default; negative to count down.
      dtype: dtype of the result; by default the one that the bounds and the step promote to.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      a vector of max(0, ceil((stop - start) / step)) elements, start + i · step.

    Raises:
      ConcretizationTypeError: for traced bounds.
      ValueError: for complex bounds, and for arrays of rank 1 or more.
      TypeError: for bounds that are no numbers.
      ZeroDivisionError: for step 0.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.arange(2, 10, 3)
      Array([2, 5, 8], dtype=int32)
    """
    for position, bound in enumerate((start, stop, step)):
        if not (bound is None or is_arraylike(bound) or is_symbolic(bound)):
            raise TypeError(f"arange requires ndarray, scalar, or None arguments, got {type(bound)} at position "
                            f"{position}.")
    place_: Any = device or (None if out_sharding is None else result_sharding(out_sharding, "jnp.arange"))
    if dtype is not None:
        dtype = user_dtype(dtype, "arange")
    if stop is None and step is None:
        start = _bound(start, "stop")
        if dtype is None:
            dtype = _range_dtype(start)
        length: Any = start if is_symbolic(start) else max(0, int(math.ceil(np.real(start))))  # type: ignore[arg-type]
        told = told_by(place_)
        return place(_iota(dtype, length), place_) if told is None else lax.broadcasted_iota(
            dtype, (length,), 0, out_sharding=told)
    start = _bound(start, "start")
    if stop is None:
        # arange(start, step=…): NumPy takes the one bound as the stop.
        start, stop = 0, start
    stop = _bound(stop, "stop")
    if step is None:
        step = 1
        simple = True
    else:
        step = _bound(step, "step")
        simple = False
    if dtype is None:
        dtype = _range_dtype(start, stop, step)
    if not is_symbolic(step) and np.asarray(step).item() == 0:
        raise ZeroDivisionError("division by zero")
    length = _range_length(_number(start), _number(stop), _number(step))
    out = _iota(dtype, length)
    if not simple:
        out = lax.mul(wrapped(_number(step), dtype), out)
        return place(lax.add(wrapped(_number(start), dtype), out), place_)
    if _number(start) == 0:
        return place(out, place_)
    return place(lax.add(wrapped(_number(start), dtype), out), place_)


def _range_length(start: Any, stop: Any, step: Any) -> Any:
    if not any(map(is_symbolic, (start, stop, step))):
        return max(0, int(math.ceil((stop - start) / step)))
    if not all(is_symbolic(x) or isinstance(x, int) for x in (start, stop, step)):
        raise ValueError("In arange with non-constant arguments all of start, stop, and step must be either dimension "
                         f"expressions or integers: {start=}, {stop=}, {step=}")
    distance, stride = (stop - start, step) if step > 0 else (start - stop, -step)
    return larger(0, (distance + stride - 1) // stride)


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, (np.generic, np.ndarray)) else x


def _iota(dtype: Any, length: int) -> Any:
    return lax.iota(dtype, length)


def _bound(x: Any, name: str) -> Any:
    if isinstance(x, Tracer):
        x = concrete_or_error(None, x, f"It arose in the jnp.arange argument '{name}'")
    if x is None:
        raise TypeError("must be real number, not NoneType")
    if (isinstance(x, (int, float)) and not isinstance(x, np.generic)) or is_symbolic(x):
        return x
    value = np.asarray(x)
    if value.dtype.kind in "SUO":
        raise not_numeric(x, value.dtype)
    if value.dtype.kind == "c":
        raise ValueError("Passing complex start/stop/step to jnp.arange is no longer supported starting in JAX "
                         "v0.10.0.")
    if value.ndim:
        raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {name}={x}")
    return value if isinstance(x, (np.ndarray, np.generic)) else value[()] if not is_array(x) else value


def _range_dtype(*bounds: Any) -> Any:
    return result_typed(*(0 if is_symbolic(b) else b for b in bounds))[0]


@partial(jit, static_argnames=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
              axis: int = 0) -> Any:
    result = to_inexact(result_typed(start, stop)[0]) if dtype is None else dtype
    compute = to_inexact(result)
    shape = tuple(lax.broadcast_shapes(shape_of(start), shape_of(stop)))
    axis = range(len(shape) + 1)[axis]  # IndexError outside, as JAX's
    start, stop = astype(start, compute), astype(stop, compute)
    start, stop = spread(start, shape), spread(stop, shape)
    column = (*shape[:axis], 1, *shape[axis:])
    divisions = num - 1 if endpoint else num
    if num > 1:
        delta = lax.div(lax.sub(stop, start), convert(divisions, compute))
        sizes = [1] * (len(shape) + 1)
        sizes[axis] = divisions
        real = np.empty(0, compute).real.dtype if compute.kind == "c" else compute
        ramp = lax.iota(real, divisions)
        if sizes != [divisions]:
            ramp = lax.reshape(ramp, tuple(sizes))
        ramp = convert(lax.div(ramp, convert(divisions, real)), compute)
        low = lax.mul(lax.reshape(start, column), lax.sub(convert(1, compute), ramp))
        out = lax.add(low, lax.mul(lax.reshape(stop, column), ramp))
        if endpoint:
            out = lax.concatenate([out, lax.expand_dims(stop, (axis,))], axis)
    elif num == 1:
        delta = convert(np.nan, compute) if endpoint else lax.sub(stop, start)
        out = lax.reshape(start, column)
    else:
        delta = convert(np.nan, compute)
        out = lax.full((*shape[:axis], 0, *shape[axis:]), 0, compute)
    if dtypes.issubdtype(result, np.integer) and not dtypes.issubdtype(out.dtype, np.integer):
        out = lax.floor(out)
    out = convert(out, result)
    return (out, convert(delta, compute) if not is_array(delta) else delta) if retstep else out


@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: Literal[False] = False,
             dtype: DTypeLike | None = None, axis: int = 0, *, device: DeviceLike | None = None) -> Array: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: Literal[True],
             dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike | None = None) -> tuple[Array, Array]: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *, retstep: Literal[True],
             dtype: DTypeLike | None = None, axis: int = 0,
             device: DeviceLike | None = None) -> tuple[Array, Array]: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike | None = None) -> Array | tuple[Array, Array]: ...
@api_boundary
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike | None = None) -> Array | tuple[Array, Array]:
    """`num` evenly spaced numbers from `start` to `stop`.

    Args:
      start, stop: the bounds: arrays or numbers that broadcast.
      num: how many; the step is (stop - start) / (num - 1), or by `num` without the endpoint.
      endpoint: whether `stop` is the last number.
      retstep: whether to return the step, too.
      dtype: dtype of the result; by default the float or complex one of the bounds. Into integers it is rounded down.
      axis: along which axis of the result the numbers run.
      device: where the result lives: a device or a sharding.

    Returns:
      an array of the shape of the bounds with an axis of size `num` more; with `retstep` a pair with the step, NaN
      where there is none.

    Raises:
      ValueError: for a negative `num`.
      ConcretizationTypeError: for a traced `num` or `axis`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linspace(0, 1, 5)
      Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    start, stop = arrays("linspace", start, stop)
    num = concrete_or_error(size_argument, num, "'num' argument of jnp.linspace")
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if dtype is not None:
        dtype = user_dtype(dtype, "linspace")
    out = _linspace(start, stop, num, bool(endpoint), bool(retstep), dtype, axis)
    return (place(out[0], device), out[1]) if retstep else place(out, device)


@partial(jit, static_argnames=("num", "endpoint", "dtype", "axis"))
def _logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
              axis: int = 0) -> Any:
    result = to_inexact(result_typed(start, stop)[0]) if dtype is None else dtype
    compute = to_inexact(result)
    start, stop = astype(start, compute), astype(stop, compute)
    exponents = linspace(start, stop, num=num, endpoint=endpoint, axis=axis)
    base = convert(base, compute)
    operands = promote_dtypes(base, exponents)
    return convert(lax.pow(*(spread_all(operands) if np.ndim(base) else operands)), result)


@api_boundary
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0,
             dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`num` numbers in a constant ratio from base^start to base^stop.

    Args:
      start, stop: the exponents: arrays or numbers that broadcast.
      num: how many.
      endpoint: whether base^stop is the last number.
      base: what is raised to the exponents; broadcasts with the result.
      dtype: dtype of the result; by default the float or complex one of the exponents.
      axis: along which axis of the result the numbers run.

    Returns:
      an array of the shape of the exponents with an axis of size `num` more.

    Raises:
      ValueError: for a negative `num`.
    """
    num = concrete_or_error(operator.index, num, "'num' argument of jnp.logspace")
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.logspace")
    start, stop, base = arrays("logspace", start, stop, base)
    return _logspace(start, stop, num, bool(endpoint), base, None if dtype is None else user_dtype(dtype, "logspace"),
                     axis)


@partial(jit, static_argnames=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    from .ufuncs import log10

    result = to_inexact(result_typed(start, stop)[0]) if dtype is None else dtype
    compute = to_inexact(result)
    start, stop = astype(start, compute), astype(stop, compute)
    sign = lax.sign(start)
    out = logspace(log10(lax.div(start, sign)), log10(lax.div(stop, sign)), num, endpoint=endpoint, base=10.0, axis=0)
    out = lax.mul(sign, out) if shape_of(sign) == () else lax.mul(lax.expand_dims(sign, (0,)), out)
    if axis_index(axis, out.ndim) != 0:
        order = list(range(1, out.ndim))
        order.insert(axis_index(axis, out.ndim), 0)
        out = lax.transpose(out, tuple(order))
    return convert(out, result)


@api_boundary
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None,
              axis: int = 0) -> Array:
    """`num` numbers in a constant ratio from `start` to `stop`.

    Args:
      start, stop: the bounds: arrays or numbers that broadcast, of one sign and not 0.
      num: how many.
      endpoint: whether `stop` is the last number.
      dtype: dtype of the result; by default the float or complex one of the bounds.
      axis: along which axis of the result the numbers run.

    Returns:
      an array of the shape of the bounds with an axis of size `num` more; NaN where the signs differ.

    Raises:
      ValueError: for a negative `num`.
    """
    num = concrete_or_error(operator.index, num, "'num' argument of jnp.geomspace")
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.geomspace")
    start, stop = arrays("geomspace", start, stop)
    return _geomspace(start, stop, num, bool(endpoint), None if dtype is None else user_dtype(dtype, "geomspace"), axis)
