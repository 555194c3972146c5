"""Arrays made from shapes: of one value, of the indices, of a function of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays import backends
from styrax.core.arrays.array import Array
from styrax.core.arrays.devices import Device, Sharding, SingleDeviceSharding
from styrax.core.arrays.mesh import Mesh
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.arrays.shardings import NamedSharding
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, concrete_or_error, get_aval
from styrax.core.types import avals, dtypes
from styrax.core.types.typing import (
    ArrayLike,
    DeviceLike,
    DTypeLike,
    Object,
    PyTree,
    ShapeLike,
    ShardingLike,
    SupportsShape,
)
from styrax.lax.casting import check_real
from styrax.lax.shaping.filling import vary_like

from .broadcasting import canonical_shape, spread
from .conversion import asarray, place, told_by
from .promotion import arrays, check_arraylike, dtype_of_new, is_array, shape_of, typed, unwrap, user_dtype, wrapped
from .ranges import arange


def _where(name: str, device: Any, out_sharding: Any) -> Any:
    """Where a function's result is to be: as one of the two says. TypeError or ValueError for no `out_sharding`."""
    return device if out_sharding is None else device or result_sharding(out_sharding, name)


def _filled(shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    shape = canonical_shape(shape)
    if any(type(d) is int and d < 0 for d in shape):
        raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.")
    if dtypes.issubdtype(dtype, dtypes.extended):
        return place(lax.full(shape, value, dtype), device)
    check_real(value, dtype)
    if shape == ():
        return place(asarray(wrapped(value, dtype)), device)
    told = told_by(device)
    if told is not None:
        return lax.broadcast_in_dim(wrapped(value, dtype), shape, (), out_sharding=told)
    return place(lax.broadcast_in_dim(wrapped(value, dtype), shape, ()), device)


@api_boundary
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
          out_sharding: ShardingLike | None = None) -> Array:
    """Zeros in a shape.

    Args:
      shape: an int or a sequence of ints.
      dtype: dtype of the result; by default the float dtype in force.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array of shape `shape`.

    Raises:
      TypeError: for sizes that are negative or no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.zeros((2, 3))
      Array([[0., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    return _filled(shape, 0, dtype_of_new("zeros", shape, dtype),
                   _where("jnp.zeros", device, out_sharding))


@api_boundary
def ones(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
         out_sharding: ShardingLike | None = None) -> Array:
    """Ones in a shape.

    Args:
      shape: an int or a sequence of ints.
      dtype: dtype of the result; by default the float dtype in force.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array of shape `shape`.

    Raises:
      TypeError: for sizes that are negative or no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.ones(3, dtype="int32")
      Array([1, 1, 1], dtype=int32)
    """
    return _filled(shape, 1, dtype_of_new("ones", shape, dtype),
                   _where("jnp.ones", device, out_sharding))


@api_boundary
def empty(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
          out_sharding: ShardingLike | None = None) -> Array:
    """Zeros in a shape: no array has unspecified contents here.

    Args:
      shape: an int or a sequence of ints.
      dtype: dtype of the result; by default the float dtype in force.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array of shape `shape`.

    Raises:
      TypeError: for sizes that are negative or no integers.
    """
    return _filled(shape, 0, dtype_of_new("empty", shape, dtype),
                   _where("jnp.empty", device, out_sharding))


@api_boundary
def full(shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
         out_sharding: ShardingLike | None = None) -> Array:
    """An array filled with a number, or with an array that broadcasts to the shape.

    Args:
      shape: an int or a sequence of ints.
      fill_value: a number or an array.
      dtype: dtype of the result; by default that of `fill_value`, weakly typed for a Python number.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array of shape `shape`.

    Raises:
      TypeError: for sizes that are negative or no integers.
      ValueError: for a `fill_value` that does not broadcast.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.full((2, 2), 7)
      Array([[7, 7],
             [7, 7]], dtype=int32, weak_type=True)
    """
    (fill_value,) = arrays("full", fill_value)
    if dtype is not None:
        dtype = user_dtype(dtype, "full")
    if shape_of(fill_value) == ():
        if dtype is not None:
            return _filled(shape, fill_value, dtype, _where("full", device, out_sharding))
        shape = canonical_shape(shape)
        if isinstance(device, (Device, Sharding)) and out_sharding is None:
            return _filled(shape, fill_value, typed(fill_value)[0], device)
        value = fill_value if is_array(fill_value) else wrapped(fill_value, *typed(fill_value))
        return place(lax.broadcast_in_dim(value, shape, ()) if shape else asarray(value),
                     _where("full", device, out_sharding))
    value = asarray(fill_value, dtype=dtype)
    return place(spread(value, canonical_shape(shape)),
                 _where("full", device, out_sharding))


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[Any, Any, bool]:
    """The shape, dtype and weak type that a result like `a` has."""
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        check_arraylike(name, a)
    if dtype is None:
        kind, weak = (dtypes.canonicalize_dtype(a.dtype, allow_extended_dtype=True), False) if not (
            is_array(a) or isinstance(a, (np.ndarray, np.generic, int, float, complex))) and hasattr(
                a, "dtype") else typed(a)
    else:
        kind, weak = user_dtype(dtype, name), False
    return canonical_shape(shape_of(a) if shape is None else shape), kind, weak


def _full_like(name: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Any:
    shape, kind, weak = _like(name, a, dtype, shape)
    if dtypes.issubdtype(kind, dtypes.extended):
        return place(lax.full(shape, value, kind), device)
    check_real(value, kind)
    filler = wrapped(value, kind, weak)
    told = getattr(get_aval(a), "given_sharding", None) if avals.explicit and is_array(a) else None
    if told is not None and len(told.spec) == len(shape) and device is None:
        return lax.broadcast_in_dim(filler, shape, (), out_sharding=told)
    if device is None and backends.several and not isinstance(a, Tracer):
        given = getattr(a, "sharding", None)
        told = isinstance(given, NamedSharding) and isinstance(given.mesh, Mesh)
        if (told or getattr(a, "committed", False)) and (tuple(a.shape) == shape
                                                         or isinstance(given, SingleDeviceSharding)):
            device = given
    out = place(asarray(filler) if shape == () else lax.broadcast_in_dim(filler, shape, ()), device)
    return vary_like(out, get_aval(a)) if avals.manual and is_array(a) else out


@api_boundary
def zeros_like(a: ArrayLike | SupportsShape, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *,
               device: DeviceLike | None = None, out_sharding: ShardingLike | None = None) -> Array:
    """Zeros with the shape and dtype of `a`, unless others are given.

    Args:
      a: an array or number, or anything with a shape and a dtype.
      dtype, shape: what the result has instead.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array, weakly typed where `a` is and no dtype is given.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.zeros_like(jnp.arange(3))
      Array([0, 0, 0], dtype=int32)
    """
    return _full_like("zeros_like", a, 0, dtype, shape,
                      _where("jnp.zeros_like", device, out_sharding))


@api_boundary
def ones_like(a: ArrayLike | SupportsShape, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *,
              device: DeviceLike | None = None, out_sharding: ShardingLike | None = None) -> Array:
    """Ones with the shape and dtype of `a`, unless others are given.

    Args:
      a: an array or number, or anything with a shape and a dtype.
      dtype, shape: what the result has instead.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array, weakly typed where `a` is and no dtype is given.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.ones_like(jnp.arange(3), dtype=float)
      Array([1., 1., 1.], dtype=float32)
    """
    return _full_like("ones_like", a, 1, dtype, shape, _where("jnp.ones_like", device, out_sharding))


def empty_like(prototype: ArrayLike | SupportsShape, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *,
               device: DeviceLike | None = None) -> Array:
    """Zeros with the shape and dtype of `prototype`, unless others are given.

    Args:
      prototype: an array or number, or anything with a shape and a dtype.
      dtype, shape: what the result has instead.
      device: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array, weakly typed where `prototype` is and no dtype is given.
    """
    return _full_like("empty_like", prototype, 0, dtype, shape, device)


@api_boundary
def full_like(a: ArrayLike | SupportsShape, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: ShapeLike | None = None, *, device: DeviceLike | None = None,
              out_sharding: ShardingLike | None = None) -> Array:
    """An array with the shape and dtype of `a` (unless others are given), filled with a value.

    Args:
      a: an array or number, or anything with a shape and a dtype.
      fill_value: a number, or an array that broadcasts to the shape; converted to the dtype.
      dtype, shape: what the result has instead.
      device, out_sharding: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array, weakly typed where `a` is, `fill_value` is a scalar and no dtype is given.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.full_like(jnp.zeros(2), 5)
      Array([5., 5.], dtype=float32)
    """
    check_arraylike("full_like", 0, fill_value)
    if shape_of(fill_value) == ():
        return _full_like("full_like", a, unwrap(fill_value), dtype, shape,
                          _where("full_like", device, out_sharding))
    sizes, kind, _ = _like("full_like", a, dtype, shape)
    return place(spread(asarray(fill_value, dtype=kind), sizes),
                 _where("full_like", device, out_sharding))


def fromfunction(function: Callable[..., PyTree], shape: ShapeLike, *, dtype: DTypeLike = float,
                 **kwargs: Object) -> PyTree:
    """`function` of the indices of every element of a shape, called once and vectorized by `vmap`.

    Args:
      function: takes as many scalars as the shape has dimensions, and `kwargs`; gives an array or a tree of them.
      shape: an int or a sequence of ints.
      dtype: dtype of the indices.
      **kwargs: arrays for `function`; `vmap` maps over their first axis.

    Returns:
      what `function` gives, its arrays with the dimensions of `shape` in front.

    Raises:
      ConcretizationTypeError: for a traced shape, and where the function needs the values of its arguments.
    """
    from styrax.transforms.api import vmap

    shape = canonical_shape(concrete_or_error(None, shape, "shape argument of jnp.fromfunction()"))
    for i in range(len(shape)):
        last = len(shape) - 1 - i
        function = vmap(function, in_axes=tuple(0 if j == last else None for j in range(len(shape))))
    return function(*(arange(s, dtype=dtype) for s in shape), **kwargs)


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None,
            sparse: bool = False) -> Array | tuple[Array, ...]:
    """The indices of every element of a shape along each dimension.

    Args:
      dimensions: the shape.
      dtype: dtype of the indices; by default the int dtype in force.
      sparse: whether an array has size 1 but along its own dimension.

    Returns:
      an array of shape [len(dimensions), *dimensions]; with `sparse` a tuple of arrays that broadcast.
    """
    kind = user_dtype(int if dtype is None else dtype, "indices")
    dimensions = tuple(concrete_or_error(operator.index, d, "dimensions argument of jnp.indices") for d in dimensions)
    rank = len(dimensions)
    out = []
    for i, n in enumerate(dimensions):
        shape = tuple(n if i == j else 1 for j in range(rank)) if sparse else dimensions
        out.append(lax.broadcast_in_dim(lax.iota(kind, n), shape, (i,)))
    if sparse:
        return tuple(out)
    return lax.stack(out, 0) if out else zeros((0,), kind)
