"""Initializers: functions `(key, shape, dtype) -> array` that make the parameters of networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.numpy.conversion import asarray
from styrax.numpy.creation import full
from styrax.numpy.creation import ones as ones_
from styrax.numpy.creation import zeros as zeros_
from styrax.numpy.promotion import convert, default_float, user_dtype
from styrax.random.uniforms import placed


class Initializer(Protocol):
    """What initializers are."""

    def __call__(self, key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array: ...


def _dtype(dtype: Any, default: Any) -> Any:
    """The dtype to make: the caller's, else the initializer's, else the default float."""
    chosen = default if dtype is None else dtype
    return default_float() if chosen is None else user_dtype(chosen, "initializer")


def zeros(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike | None = None,
          out_sharding: ShardingLike | None = None) -> Array:
    """An initializer that gives zeros. `key` is not used.

    Args:
      key: anything.
      shape: shape of the result.
      dtype: dtype of the result; by default the float dtype in force.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape`.
    """
    return zeros_(shape, _dtype(dtype, None), out_sharding=out_sharding)


def ones(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike | None = None,
         out_sharding: ShardingLike | None = None) -> Array:
    """An initializer that gives ones. `key` is not used.

    Args:
      key: anything.
      shape: shape of the result.
      dtype: dtype of the result; by default the float dtype in force.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape`.
    """
    return ones_(shape, _dtype(dtype, None), out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that gives one value everywhere (or an array that broadcasts).

    Args:
      value: a number, or an array that broadcasts to the shape.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.

    Returns:
      an initializer: a function `(key, shape, dtype, out_sharding)` that gives an array of shape `shape` with
      `value` in it.

    Example:
      >>> import styrax as jax
      >>> jax.nn.initializers.constant(3.0)(None, (2,))
      Array([3., 3.], dtype=float32)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        return full(shape, value, dtype=_dtype(dtype, None), out_sharding=out_sharding)

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws uniformly from [0, scale).

    Args:
      scale: the upper bound.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.

    Returns:
      an initializer: a function `(key, shape, dtype, out_sharding)` that gives an array.
    """

    @api_boundary
    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        from styrax import random

        kind = _dtype(dtype, None)
        return random.uniform(key, shape, kind, out_sharding=out_sharding) * np.asarray(scale).astype(kind)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws from a normal distribution of mean 0.

    Args:
      stddev: the standard deviation.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.

    Returns:
      an initializer: a function `(key, shape, dtype, out_sharding)` that gives an array.
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        from styrax import random

        kind = _dtype(dtype, None)
        return random.normal(key, shape, kind, out_sharding=out_sharding) * asarray_like(stddev, kind)

    return init


def asarray_like(x: Any, dtype: Any) -> Any:
    """A factor of a dtype: a literal for numbers, a conversion for arrays."""
    return convert(x, dtype) if hasattr(x, "aval") else np.asarray(x).astype(dtype)


def truncated_normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0,
                     upper: ArrayLike = 2.0) -> Initializer:
    """An initializer that draws from a normal distribution cut off at `lower` and `upper` times `stddev`.

    Args:
      stddev: the standard deviation before the cut.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.
      lower, upper: the bounds, in units of `stddev`.

    Returns:
      an initializer: a function `(key, shape, dtype, out_sharding)` that gives an array.
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        from styrax import random

        kind = _dtype(dtype, None)
        return random.truncated_normal(key, lower, upper, shape, kind, out_sharding=out_sharding) * asarray_like(
            stddev, kind)

    return init


def _axes(axis: Any) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _fans(shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """How many inputs and outputs a weight of a shape connects."""
    rank = len(shape)
    if rank <= 1 and in_axis == -2:
        raise ValueError(f"Can't compute input and output sizes of a {rank}-dimensional weights tensor with default "
                         "in_axis. Must be at least 2D or specify in_axis explicitly.")
    ins = math.prod(shape[i] for i in _axes(in_axis))
    outs = math.prod(shape[i] for i in _axes(out_axis))
    batch = math.prod(shape[i] for i in _axes(batch_axis))
    field = math.prod(shape) / ins / outs / batch
    return ins * field, outs * field


def _complex_uniform(key: Any, shape: Sequence[int], dtype: Any) -> Array:
    """Uniform numbers in the unit disk."""
    from styrax import random

    key_r, key_theta = random.split(key)
    real = np.empty(0, dtype).real.dtype
    r = convert(lax.sqrt(random.uniform(key_r, shape, real)), dtype)
    theta = convert(random.uniform(key_theta, shape, real) * np.asarray(2 * np.pi, real), dtype)
    return r * lax.exp(theta * np.asarray(1j, dtype))


def _complex_truncated_normal(key: Any, upper: Any, shape: Sequence[int], dtype: Any) -> Array:
    """Normal numbers in a disk."""
    from styrax import random

    key_r, key_theta = random.split(key)
    real = np.empty(0, dtype).real.dtype
    top = (1 - np.exp(-(np.asarray(upper, real) ** 2)))
    t = (random.uniform(key_r, shape, real) * np.asarray(-top, real))
    r = convert(lax.sqrt(-lax.log1p(t)), dtype)
    theta = convert(random.uniform(key_theta, shape, real) * np.asarray(2 * np.pi, real), dtype)
    return r * lax.exp(theta * np.asarray(1j, dtype))


def variance_scaling(scale: ArrayLike, mode: str, distribution: str, in_axis: int | Sequence[int] = -2,
                     out_axis: int | Sequence[int] = -1, batch_axis: int | Sequence[int] = (),
                     dtype: DTypeLike | None = None) -> Initializer:
    """An initializer whose variance is `scale` divided by a number of connections.

    Args:
      scale: the factor of the variance.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.
      mode: the number: "fan_in" (inputs), "fan_out" (outputs), "fan_avg" (their mean) or
        "fan_geo_avg" (their geometric mean).
      distribution: "normal", "truncated_normal" (cut off at twice the deviation) or "uniform".
      in_axis, out_axis: the axes of the inputs and of the outputs; others count to both.
      batch_axis: axes that count to none.

    Raises ValueError for other modes and distributions, and for shapes of rank below 2.

    Returns:
      an initializer: a function `(key, shape, dtype, out_sharding)` that gives an array of shape
      `shape`.
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        from styrax import random

        shape = tuple(shape)
        kind = _dtype(dtype, None)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        if mode == "fan_in":
            number = fan_in
        elif mode == "fan_out":
            number = fan_out
        elif mode == "fan_avg":
            number = (fan_in + fan_out) / 2
        elif mode == "fan_geo_avg":
            number = (fan_in * fan_out) ** 0.5
        else:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = np.asarray(scale / number).astype(kind)
        complex_kind = dtypes.issubdtype(kind, np.complexfloating)
        if distribution == "normal":
            return random.normal(key, shape, kind, out_sharding=out_sharding) * lax.sqrt(variance)
        if distribution == "uniform":
            if complex_kind:
                return placed(_complex_uniform(key, shape, kind), out_sharding) * lax.sqrt(variance)
            return random.uniform(key, shape, kind, -1, out_sharding=out_sharding) * lax.sqrt(
                lax.mul(np.asarray(3, kind), variance))
        if distribution == "truncated_normal":
            if complex_kind:
                deviation = lax.div(lax.sqrt(variance), np.asarray(0.95311164380491208, kind))
                return placed(_complex_truncated_normal(key, 2, shape, kind), out_sharding) * deviation
            numbers = random.truncated_normal(key, -2, 2, shape, kind, out_sharding=out_sharding)
            # The deviation of the standard normal distribution cut off at ±2.
            return numbers * lax.div(lax.sqrt(variance), np.asarray(0.87962566103423978, kind))
        raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")

    return init


def _scaled(scale: float, mode: str, distribution: str, name: str, text: str) -> Callable[..., Initializer]:
    def make(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
             batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis=in_axis, out_axis=out_axis, batch_axis=batch_axis,
                                dtype=dtype)

    return named(make, name, f"""{text}

    Args:
      in_axis, out_axis: the axes of the inputs and of the outputs; others count to both.
      batch_axis: axes that count to none.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.

    Returns:
      `variance_scaling({scale}, {mode!r}, {distribution!r})`, which see.""")


glorot_uniform = _scaled(1.0, "fan_avg", "uniform", "glorot_uniform", "Glorot's (Xavier's) uniform initializer.")
glorot_normal = _scaled(1.0, "fan_avg", "truncated_normal", "glorot_normal", "Glorot's (Xavier's) normal initializer.")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
lecun_uniform = _scaled(1.0, "fan_in", "uniform", "lecun_uniform", "LeCun's uniform initializer.")
lecun_normal = _scaled(1.0, "fan_in", "truncated_normal", "lecun_normal", "LeCun's normal initializer.")
he_uniform = _scaled(2.0, "fan_in", "uniform", "he_uniform", "He's (Kaiming's) uniform initializer.")
he_normal = _scaled(2.0, "fan_in", "truncated_normal", "he_normal", "He's (Kaiming's) normal initializer.")
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def _refuse_sharding(out_sharding: Any) -> None:
    """Raises NotImplementedError where it is said how a matrix is to be spread whose columns are made together."""
    if out_sharding is not None:
        raise NotImplementedError("orthogonal initializers do not take out_sharding: reshard what they give")


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that gives matrices with orthogonal rows or columns, whichever are fewer.

    Axes other than `column_axis` are the rows. Raises ValueError for shapes of rank below 2.

    Args:
      scale: factor of the orthonormal vectors.
      column_axis: the axis of the columns; all others together are rows.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.

    Returns:
      an initializer: a function `(key, shape, dtype, out_sharding)` that gives an array of at least
      two dimensions.
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        from styrax import random

        kind = _dtype(dtype, None)
        _refuse_sharding(out_sharding)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        many, few = max(rows, columns), min(rows, columns)
        q = random.orthogonal(key, many, (), kind, few)
        if rows < columns:
            q = q.T
        q = q.reshape(tuple(np.delete(shape, column_axis)) + (columns,))
        from styrax.numpy.shaping import moveaxis

        return asarray_like(scale, kind) * moveaxis(q, -1, column_axis)

    return init


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer for convolution kernels: an orthogonal matrix in the middle, zeros around it.

    Raises ValueError for ranks other than 3, 4 and 5, and for more inputs than outputs.

    Args:
      scale: factor of the orthonormal vectors.
      column_axis: the axis of the columns.
      dtype: dtype of the arrays where the call names none; by default the float dtype in force.

    Returns:
      an initializer: a function `(key, shape, dtype, out_sharding)` that gives an array of 3 to 5
      dimensions.
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Array:
        kind = _dtype(dtype, None)
        _refuse_sharding(out_sharding)
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`.")
        matrix = orthogonal(scale=scale, column_axis=column_axis, dtype=kind)(key, shape[-2:])
        middle = tuple((k - 1) // 2 for k in shape[:-2])
        return asarray(zeros_(shape, kind)).at[middle].set(matrix)

    return init
