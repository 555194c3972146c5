"""Arrays made from shapes and ranges."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import is_symbolic, larger
from styrax.core.types.typing import (
    ArrayLike,
    DeviceLike,
    Dim,
    DTypeLike,
    Object,
    PyTree,
    ShapeLike,
    ShardingLike,
    SupportsShape,
)
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import canonical_shape, choose_elements, spread
from .conversion import asarray, place
from .promotion import (
    arrays,
    axis_index,
    canonical,
    check_arraylike,
    convert,
    default_int,
    is_array,
    promote_dtypes,
    result_typed,
    shape_of,
    to_inexact,
    typed,
    unwrap,
    user_dtype,
)

_BOOL = np.dtype(np.bool_)


def _filled(shape: Any, value: Any, dtype: Any, device: Any) -> Any:
    shape = canonical_shape(shape)
    if any(type(d) is int and d < 0 for d in shape):
        raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.")
    if dtypes.issubdtype(dtype, dtypes.extended):
        return lax.full(shape, value, dtype)
    if shape == ():
        return place(asarray(convert(value, dtype)), device)
    return place(lax.broadcast_in_dim(convert(value, dtype), shape, ()), device)


@api_boundary
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
          out_sharding: ShardingLike | None = None) -> Array:
    """Zeros in a shape (an int or a sequence of ints); float by default.

    Raises TypeError for sizes that are negative or no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.zeros((2, 3))
      Array([[0., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    return _filled(shape, 0, user_dtype(float if dtype is None else dtype, "zeros"), device or out_sharding)


@api_boundary
def ones(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
         out_sharding: ShardingLike | None = None) -> Array:
    """Ones in a shape (an int or a sequence of ints); float by default.

    Raises TypeError for sizes that are negative or no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.ones(3, dtype="int32")
      Array([1, 1, 1], dtype=int32)
    """
    return _filled(shape, 1, user_dtype(float if dtype is None else dtype, "ones"), device or out_sharding)


@api_boundary
def empty(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
          out_sharding: ShardingLike | None = None) -> Array:
    """An array of a shape with zeros in it: arrays have no unspecified contents here."""
    return _filled(shape, 0, user_dtype(float if dtype is None else dtype, "empty"), device or out_sharding)


@api_boundary
def full(shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
         out_sharding: ShardingLike | None = None) -> Array:
    """An array filled with a number, or with an array that broadcasts to the shape.

    The dtype is that of `fill_value` by default, weakly typed for a Python number.

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
        shape = canonical_shape(shape)
        if dtype is None:
            kind, weak = typed(fill_value)
            value = fill_value if is_array(fill_value) else convert(fill_value, kind, weak)
        elif dtypes.issubdtype(dtype, dtypes.extended):
            value = lax.full((), fill_value, dtype)
        else:
            value = convert(fill_value, dtype)
        if shape == ():
            return place(asarray(value), device or out_sharding)
        return place(lax.broadcast_in_dim(value, shape, ()), device or out_sharding)
    value = asarray(fill_value, dtype=dtype)
    return place(spread(value, canonical_shape(shape)), device or out_sharding)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[Any, Any, bool]:
    """The shape, dtype and weak type that a result like `a` has."""
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        check_arraylike(name, a)
    if dtype is None:
        kind, weak = (canonical(a.dtype), False) if not (is_array(a) or isinstance(
            a, (np.ndarray, np.generic, int, float, complex))) and hasattr(a, "dtype") else typed(a)
    else:
        kind, weak = user_dtype(dtype, name), False
    return canonical_shape(shape_of(a) if shape is None else shape), kind, weak


def _full_like(name: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Any:
    shape, kind, weak = _like(name, a, dtype, shape)
    if dtypes.issubdtype(kind, dtypes.extended):
        return lax.full(shape, value, kind)
    filler = convert(value, kind, weak)
    return place(asarray(filler) if shape == () else lax.broadcast_in_dim(filler, shape, ()), device)


@api_boundary
def zeros_like(a: ArrayLike | SupportsShape, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *,
               device: DeviceLike | None = None, out_sharding: ShardingLike | None = None) -> Array:
    """Zeros with the shape and dtype of `a`, unless others are given.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.zeros_like(jnp.arange(3))
      Array([0, 0, 0], dtype=int32)
    """
    return _full_like("zeros_like", a, 0, dtype, shape, device or out_sharding)


@api_boundary
def ones_like(a: ArrayLike | SupportsShape, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *,
              device: DeviceLike | None = None, out_sharding: ShardingLike | None = None) -> Array:
    """Ones with the shape and dtype of `a`, unless others are given.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.ones_like(jnp.arange(3), dtype=float)
      Array([1., 1., 1.], dtype=float32)
    """
    return _full_like("ones_like", a, 1, dtype, shape, device or out_sharding)


def empty_like(prototype: ArrayLike | SupportsShape, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *,
               device: DeviceLike | None = None) -> Array:
    """Zeros with the shape and dtype of `prototype`, unless others are given."""
    return _full_like("empty_like", prototype, 0, dtype, shape, device)


@api_boundary
def full_like(a: ArrayLike | SupportsShape, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: ShapeLike | None = None, *, device: DeviceLike | None = None,
              out_sharding: ShardingLike | None = None) -> Array:
    """An array with the shape and dtype of `a` (unless others are given), filled with a value that broadcasts.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.full_like(jnp.zeros(2), 5)
      Array([5., 5.], dtype=float32)
    """
    check_arraylike("full_like", 0, fill_value)
    if shape_of(fill_value) == ():
        return _full_like("full_like", a, unwrap(fill_value), dtype, shape, device or out_sharding)
    sizes, kind, _ = _like("full_like", a, dtype, shape)
    return place(spread(asarray(fill_value, dtype=kind), sizes), device or out_sharding)


# -- ranges --------------------------------------------------------------------------------------
@api_boundary
def arange(start: ArrayLike | Dim, stop: ArrayLike | Dim | None = None, step: ArrayLike | None = None,
           dtype: DTypeLike | None = None, *, device: DeviceLike | None = None,
           out_sharding: ShardingLike | None = None) -> Array:
    """The numbers from `start` up to `stop` (left out) in steps of `step`; from 0 when only one is given.

    Bounds are static: the length has to be known. Raises ConcretizationTypeError for traced bounds,
    ValueError for complex ones.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.arange(2, 10, 3)
      Array([2, 5, 8], dtype=int32)
    """
    place_: Any = device or out_sharding
    if dtype is not None:
        dtype = user_dtype(dtype, "arange")
    if stop is None and step is None:
        start = _bound(start, "stop")
        if dtype is None:
            dtype = _range_dtype(start)
        length: Any = start if is_symbolic(start) else max(0, int(math.ceil(np.real(start))))  # type: ignore[arg-type]
        return place(_iota(dtype, length), place_)
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
        out = lax.mul(convert(_number(step), dtype), out)
        return place(lax.add(convert(_number(start), dtype), out), place_)
    if _number(start) == 0:
        return place(out, place_)
    return place(lax.add(convert(_number(start), dtype), out), place_)


def _range_length(start: Any, stop: Any, step: Any) -> Any:
    if any(map(is_symbolic, (start, stop, step))):
        return larger(0, -((start - stop) // step))
    return max(0, int(math.ceil((stop - start) / step)))


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
        raise TypeError(f"Value {x!r} with dtype {value.dtype} is not a valid JAX array type. Only arrays of numeric "
                        "types are supported by JAX.")
    if value.dtype.kind == "c":
        raise ValueError("Passing complex start/stop/step to jnp.arange is no longer supported starting in JAX "
                         "v0.10.0.")
    if value.ndim:
        raise ValueError(f"jnp.arange: arguments must be scalars; got {name}={x}")
    return value if isinstance(x, (np.ndarray, np.generic)) else value[()] if not is_array(x) else value


def _range_dtype(*bounds: Any) -> Any:
    return result_typed(*(0 if is_symbolic(b) else b for b in bounds))[0]


@partial(jit, static_argnames=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
              axis: int = 0) -> Any:
    computed = to_inexact(result_typed(start, stop)[0])
    result = computed if dtype is None else dtype
    compute = to_inexact(dtypes.promote_types(result, computed)) if dtype is not None else computed
    shape = tuple(lax.broadcast_shapes(shape_of(start), shape_of(stop)))
    axis = range(len(shape) + 1)[axis]  # IndexError outside, as JAX's
    start, stop = convert(start, compute), convert(stop, compute)
    start, stop = spread(start, shape), spread(stop, shape)
    column = (*shape[:axis], 1, *shape[axis:])
    divisions = num - 1 if endpoint else num
    if num > 1:
        delta = lax.div(lax.sub(stop, start), convert(divisions, compute))
        sizes = [1] * (len(shape) + 1)
        sizes[axis] = divisions
        ramp = lax.iota(np.empty(0, compute).real.dtype if compute.kind == "c" else compute, divisions)
        if compute.kind == "c":
            ramp = convert(ramp, compute)
        if sizes != [divisions]:
            ramp = lax.reshape(ramp, tuple(sizes))
        ramp = lax.div(ramp, convert(divisions, compute))
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
    """`num` evenly spaced numbers from `start` to `stop`, which is included with `endpoint`.

    Bounds may be arrays; samples then run along `axis`. With `retstep` a pair with the spacing.
    Raises ValueError for a negative `num`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linspace(0, 1, 5)
      Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    start, stop = arrays("linspace", start, stop)
    num = concrete_or_error(operator.index, num, "'num' argument of jnp.linspace")
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
    compute = to_inexact(result_typed(start, stop)[0])
    result = compute if dtype is None else dtype
    start, stop = convert(start, compute), convert(stop, compute)
    exponents = linspace(start, stop, num=num, endpoint=endpoint, axis=axis)
    return convert(lax.pow(*promote_dtypes(convert(base, compute), exponents)), result)


@api_boundary
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0,
             dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`num` numbers from base^start to base^stop with a constant ratio. Other arguments as for `linspace`."""
    num = concrete_or_error(operator.index, num, "'num' argument of jnp.logspace")
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.logspace")
    start, stop, base = arrays("logspace", start, stop, base)
    return _logspace(start, stop, num, bool(endpoint), base, None if dtype is None else user_dtype(dtype, "logspace"),
                     axis)


@partial(jit, static_argnames=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    from .ufuncs import log10

    compute = to_inexact(result_typed(start, stop)[0])
    result = compute if dtype is None else dtype
    start, stop = convert(start, compute), convert(stop, compute)
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
    """`num` numbers from `start` to `stop` with a constant ratio. Other arguments as for `linspace`."""
    num = concrete_or_error(operator.index, num, "'num' argument of jnp.geomspace")
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.geomspace")
    start, stop = arrays("geomspace", start, stop)
    return _geomspace(start, stop, num, bool(endpoint), None if dtype is None else user_dtype(dtype, "geomspace"), axis)


# -- matrices ------------------------------------------------------------------------------------
def _below(shape: tuple, offset: int) -> Any:
    """Booleans: column <= row + offset, in the last two dimensions."""
    kind = np.dtype(np.int32)
    rows = lax.add(lax.broadcasted_iota(kind, shape, len(shape) - 2), convert(offset, kind))
    return lax.ge(rows, lax.broadcasted_iota(kind, shape, len(shape) - 1))


def _diagonal_mask(shape: tuple, offset: int) -> Any:
    kind = np.dtype(np.int32)
    rows, columns = lax.broadcasted_iota(kind, shape, 0), lax.broadcasted_iota(kind, shape, 1)
    return lax.eq(lax.add(rows, convert(offset, kind)), columns)


@api_boundary
def eye(N: Dim, M: Dim | None = None, k: int | ArrayLike = 0, dtype: DTypeLike | None = None, *,
        device: DeviceLike | None = None) -> Array:
    """An N × M matrix with ones on its k-th diagonal; square by default. Raises ValueError for negative sizes.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.eye(2, 3, k=1)
      Array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    kind = user_dtype(float if dtype is None else dtype, "eye")
    rows = canonical_shape(N)[0]
    columns = rows if M is None else canonical_shape(M)[0]
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    if isinstance(k, Tracer) or is_array(k):
        index = np.dtype(np.int32)
        shape = (rows, columns)
        at = lax.add(lax.broadcasted_iota(index, shape, 0), convert(k, index))
        return place(convert(lax.eq(at, lax.broadcasted_iota(index, shape, 1)), kind), device)
    return place(convert(_diagonal_mask((rows, columns), operator.index(k)), kind), device)  # type: ignore[arg-type]


def identity(n: Dim, dtype: DTypeLike | None = None) -> Array:
    """The n × n identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """An N × M matrix with ones on and below its k-th diagonal.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.tri(2, 3)
      Array([[1., 0., 0.],
             [1., 1., 0.]], dtype=float32)
    """
    kind = user_dtype(np.dtype(np.float32) if dtype is None else dtype, "tri")
    return convert(_below((N, N if M is None else M), k), kind)


def _tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangles of matrices: zeros above the k-th diagonal. Raises ValueError below rank 2.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.tril(jnp.ones((2, 2)))
      Array([[1., 0.],
             [1., 1.]], dtype=float32)
    """
    (m,) = arrays("tril", m)
    if len(m.shape) < 2:
        raise ValueError("Argument to jax.numpy.tril must be at least 2D")
    mask = _below(m.shape[-2:], k)
    return lax.select(spread(mask, m.shape), m, lax.full_like(m, 0))


def _triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangles of matrices: zeros below the k-th diagonal. Raises ValueError below rank 2.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.triu(jnp.ones((2, 2)))
      Array([[1., 1.],
             [0., 1.]], dtype=float32)
    """
    (m,) = arrays("triu", m)
    if len(m.shape) < 2:
        raise ValueError("Argument to jax.numpy.triu must be at least 2D")
    mask = _below(m.shape[-2:], k - 1)
    return lax.select(spread(mask, m.shape), lax.full_like(m, 0), m)


tril = jit(named(_tril, "tril"), static_argnames=("k",))
triu = jit(named(_triu, "triu"), static_argnames=("k",))


@partial(jit, static_argnames=("k",))
def _diag(v: Any, k: int) -> Any:
    if len(v.shape) == 1:
        zero = convert(0, v.dtype)
        n = v.shape[0] + abs(k)
        v = lax.pad(v, zero, ((max(0, -k), max(0, k), 0),))
        return choose_elements(_diagonal_mask((n, n), k), lax.expand_dims(v, (1,)), zero)
    from .shaping import diagonal

    return diagonal(v, offset=k)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix with a vector on its k-th diagonal.

    Raises ValueError for other ranks.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.diag(jnp.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
      >>> jnp.diag(jnp.array([[1, 2], [3, 4]]))
      Array([1, 4], dtype=int32)
    """
    (v,) = arrays("diag", v)
    if len(shape_of(v)) not in (1, 2):
        raise ValueError("diag input must be 1d or 2d")
    return _diag(asarray(v), operator.index(k))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of `v`, in row order, on its k-th diagonal."""
    (v,) = arrays("diagflat", v)
    v = lax.reshape(asarray(v), (math.prod(shape_of(v)),))
    size = v.shape[0]  # type: ignore[union-attr]
    length = size + abs(k)
    out = lax.full((length * length,), 0, v.dtype)  # type: ignore[union-attr]
    i = lax.iota(default_int(), size)
    row, column = (i, lax.add(i, convert(k, i.dtype))) if k >= 0 else (lax.sub(i, convert(k, i.dtype)), i)
    at = lax.add(column, lax.mul(row, convert(length, i.dtype)))
    from .updates import scatter

    return lax.reshape(scatter(out, at, v, "set"), (length, length))


def fromfunction(function: Callable[..., PyTree], shape: ShapeLike, *, dtype: DTypeLike = float,
                 **kwargs: Object) -> PyTree:
    """`function` of the indices of every element of a shape, called once on the whole and vectorized by `vmap`.

    Raises ConcretizationTypeError where the function needs the values of its arguments.
    """
    from styrax.transforms.api import vmap

    shape = canonical_shape(concrete_or_error(None, shape, "shape argument of jnp.fromfunction()"))
    for i in range(len(shape)):
        last = len(shape) - 1 - i
        function = vmap(function, in_axes=tuple(0 if j == last else None for j in range(len(shape))))
    return function(*(arange(s, dtype=dtype) for s in shape), **kwargs)


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None,
            sparse: bool = False) -> Array | tuple[Array, ...]:
    """The indices of every element of a shape: one array per dimension, stacked unless `sparse`."""
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


def _vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix of a vector: its powers as columns, falling unless `increasing`."""
    (x,) = arrays("vander", x)
    if len(x.shape) != 1:
        raise ValueError("x must be a one-dimensional array")
    count = x.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError("N must be nonnegative")
    powers = lax.iota(x.dtype, count)
    if not increasing:
        powers = lax.sub(convert(count - 1, x.dtype), powers)
    from .binary import power

    return power(lax.expand_dims(x, (1,)), lax.expand_dims(powers, (0,)))


vander = jit(named(_vander, "vander"), static_argnames=("N", "increasing"))


