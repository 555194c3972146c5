"""Activation functions: elementwise, and those that normalise along an axis."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary, warn
from styrax.core.types import dtypes
from styrax.core.types.dims import canonical_dim
from styrax.core.types.typing import ArrayLike, Axis, AxisName, DTypeLike
from styrax.numpy.binary import add, divide, equal, logaddexp, multiply, power, subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.clipping import clip
from styrax.numpy.conversion import array, asarray
from styrax.numpy.moments import mean as mean_
from styrax.numpy.promotion import (
    arrays,
    axis_index,
    convert,
    default_float,
    dtype_of,
    number_like,
    promote_args_inexact,
    user_dtype,
)
from styrax.numpy.ufuncs import absolute, sqrt, square, tanh
from styrax.transforms.custom import custom_jvp
from styrax.transforms.jit import jit_for_all_shapes as jit

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu",
    "log1mexp", "log_sigmoid", "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]


def _zeros(x: Any) -> Array:
    return lax.full_like(x, 0)


@jit
def identity(x: ArrayLike) -> Array:
    """x itself, as an array.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    return asarray(arrays("identity", x)[0])


@custom_jvp
@jit
def relu(x: ArrayLike) -> Array:
    """max(x, 0), with derivative 0 at 0.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.relu(jnp.array([-1.0, 0.0, 2.0]))
      Array([0., 0., 2.], dtype=float32)
    """
    from styrax.numpy.binary import maximum

    return maximum(x, 0)


relu.defjvps(lambda g, ans, x: lax.select(lax.gt(x, number_like(0, x)), g, _zeros(g)))


@custom_jvp
@jit
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), with derivative 0 at both bounds.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    from styrax.numpy.binary import maximum, minimum

    return minimum(maximum(x, 0), 6.0)


relu6.defjvps(lambda g, ans, x: lax.select(
    lax.bitwise_and(lax.gt(x, number_like(0, x)), lax.lt(x, number_like(6, x))), g, _zeros(g)))


@custom_jvp
@jit
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for positive x, accurate near 0 and far from it.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = promote_args_inexact("log1mexp", x)
    near = x < convert(lax.log(2.0), dtype_of(x))  # complex numbers have an order here, too
    return choose_elements(near, lax.log(lax.neg(lax.expm1(lax.neg(x)))), lax.log1p(lax.neg(lax.exp(lax.neg(x)))))


log1mexp.defjvps(lambda g, ans, x: divide(g, lax.expm1(x)))


@api_boundary
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)). Raises TypeError for integers.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.sigmoid(jnp.array([0.0]))
      Array([0.5], dtype=float32)
    """
    (x,) = arrays("sigmoid", x)
    return lax.logistic(x)


@jit
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)): a smooth `relu`.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.

    Example:
      >>> import styrax as jax
      >>> jax.nn.softplus(0.0)
      Array(0.6931472, dtype=float32, weak_type=True)
    """
    return logaddexp(x, 0)


@jit
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, (x + 1)²/4 up to 1, x above: a smooth `relu` that is exactly 0 for small x.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("sparse_plus", x)
    low, high = x <= -1.0, x >= 1.0
    return choose_elements(low, 0.0, choose_elements(high, x, divide(power(add(x, 1.0), 2), 4)))


@jit
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1).

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("soft_sign", x)
    return divide(x, add(absolute(x), 1))


@partial(jit, inline=False)
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 below -1, (x + 1)/2 up to 1, 1 above: the derivative of `sparse_plus`.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    return multiply(0.5, clip(add(x, 1.0), 0.0, 2.0))


@jit
def silu(x: ArrayLike) -> Array:
    """x · sigmoid(x), also called swish. Raises TypeError for integers.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("silu", x)
    return multiply(x, sigmoid(x))


swish = silu


@jit
def mish(x: ArrayLike) -> Array:
    """x · tanh(softplus(x)).

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("mish", x)
    return multiply(x, tanh(softplus(x)))


@jit
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)), without underflow.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = promote_args_inexact("log_sigmoid", x)
    return lax.neg(softplus(lax.neg(x)))


@jit
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, alpha · (exp(x) - 1) elsewhere.

    Args:
      x: an array.
      alpha: the limit for very negative x, negated; broadcasts with `x`.

    Returns:
      an array of the shape of `x`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.elu(jnp.array([0.0, 2.0]))
      Array([0., 2.], dtype=float32)
    """
    from styrax.numpy.ufuncs import expm1

    (x,) = arrays("elu", x)
    zero = number_like(0, x)
    return choose_elements(x > zero, x, multiply(alpha, expm1(choose_elements(x > zero, 0.0, x))))


@jit
def selu(x: ArrayLike) -> Array:
    """A scaled `elu` that keeps mean 0 and variance 1 in deep networks.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    return multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


@jit
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + min(0, alpha · (exp(x / alpha) - 1)): an `elu` with a continuous derivative.

    Args:
      x: an array.
      alpha: the limit for very negative x, negated; broadcasts with `x`.

    Returns:
      an array of the shape of `x`.
    """
    from styrax.numpy.binary import maximum, minimum

    return add(maximum(x, 0.0), multiply(alpha, lax.expm1(divide(minimum(x, 0.0), alpha))))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x · Φ(x), with the normal distribution function Φ, or an approximation of it by tanh.

    Args:
      x: an array.
      approximate: whether to use the formula with tanh.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = promote_args_inexact("gelu", x)
    x = asarray(x)
    dtype = x.dtype
    if approximate:
        slope = np.asarray(np.sqrt(2 / np.pi)).astype(dtype)
        inside = multiply(slope, add(x, multiply(0.044715, power(x, 3))))
        return multiply(x, multiply(0.5, add(1.0, lax.tanh(inside))))
    half = np.asarray(np.sqrt(0.5)).astype(dtype)
    return array(multiply(multiply(0.5, x), lax.erfc(multiply(lax.neg(x), half))), dtype=dtype)


def _glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of `x` along `axis` times the sigmoid of the second. Raises ValueError for an odd size.

    Args:
      x: an array of even size along `axis`.
      axis: the axis that is halved.

    Returns:
      an array of the shape of `x`, half as long along `axis`.
    """
    from styrax.numpy.concatenation import split

    (x,) = arrays("glu", x)
    if x.shape[axis] % 2:
        raise AssertionError("axis size must be divisible by 2")
    first, second = split(x, 2, axis)
    return multiply(first, sigmoid(second))


named(_glu, "glu")
glu = jit(_glu, static_argnames=("axis",))


@jit
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where it is not negative, `negative_slope` · x elsewhere.

    Args:
      x: an array.
      negative_slope: the slope below 0.

    Returns:
      an array of the shape of `x`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.leaky_relu(jnp.array([-1.0, 2.0]))
      Array([-0.01,  2.  ], dtype=float32)
    """
    (x,) = arrays("leaky_relu", x)
    return choose_elements(x >= number_like(0, x), x, multiply(negative_slope, x))


@jit
def hard_tanh(x: ArrayLike) -> Array:
    """x kept between -1 and 1.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("hard_tanh", x)
    return choose_elements(x > 1, 1, choose_elements(x < -1, -1, x))


@jit
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6: a `sigmoid` of straight lines.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    return divide(relu6(add(x, 3.0)), 6.0)


@jit
def hard_silu(x: ArrayLike) -> Array:
    """x · hard_sigmoid(x), also called hard swish.

    Args:
      x: an array.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("hard_silu", x)
    return multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@jit
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2: a smooth `relu` without exponentials.

    Args:
      x: an array.
      b: how wide the bend is.

    Returns:
      an array of the shape of `x`.
    """
    (x, b) = arrays("squareplus", x, b)
    return divide(add(x, sqrt(add(square(x), b))), 2)


def _standardize(x: ArrayLike, axis: Axis = -1, mean: ArrayLike | None = None, variance: ArrayLike | None = None,
                 epsilon: ArrayLike = 1e-5, where: ArrayLike | None = None, *, algorithm: str = "fast") -> Array:
    """x less its mean, divided by its standard deviation, along `axis`.

    Args:
      x: an array; integers are taken as floats.
      axis: an int, or several.
      mean, variance: what to use instead of the elements' own; for `variance`, `mean` is needed, too.
      epsilon: is added to the variance.
      where: elements to take the mean and variance of.
      algorithm: "fast" computes the variance as mean(x²) - mean(x)², "stable" from the differences.

    Returns:
      an array of the shape of `x` and of its float dtype.

    Raises:
      ValueError: for another algorithm.
    """
    (x,) = promote_args_inexact("standardize", x)
    if mean is None:
        mean = mean_(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            # Rounding may take the difference below zero.
            variance = clip(subtract(mean_(square(x), axis, keepdims=True, where=where), square(mean)), 0)
        elif algorithm == "stable":
            variance = mean_(square(subtract(x, mean)), axis, keepdims=True, where=where)
        else:
            raise ValueError(f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    return multiply(subtract(x, mean), lax.rsqrt(add(variance, epsilon)))


named(_standardize, "standardize")
standardize = jit(_standardize, static_argnames=("axis", "algorithm"))


@partial(jit, static_argnames=("num_classes", "dtype", "axis"))
def _one_hot(x: Any, num_classes: int, *, dtype: Any, axis: Any) -> Array:
    (x,) = arrays("one_hot", x)
    place = axis_index(axis, x.ndim + 1)
    columns = lax.expand_dims(x, (place,))
    shape = tuple(num_classes if i == place else 1 for i in range(x.ndim + 1))
    numbers = lax.broadcasted_iota(x.dtype, shape, place)
    return convert(equal(columns, numbers), dtype)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int | AxisName = -1) -> Array:
    """For every integer k a vector of `num_classes` elements along a new axis, 1 at place k and 0 elsewhere.

    Integers out of range give zeros. `axis` may be the name of a mapped axis, which then stands for the
    new one.

    Args:
      x: integers, in an array or in lists.
      num_classes: length of the vectors.
      dtype: dtype of the result.
      axis: where the new axis goes, or the name of a mapped one.

    Returns:
      an array of the shape of `x` with one more dimension, of dtype `dtype` (by default the float dtype in force).

    Raises:
      ValueError: the named axis has another size than `num_classes`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.one_hot(jnp.array([0, 2]), 3)
      Array([[1., 0., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    from styrax.core.tracing.trace import concrete_or_error

    number = concrete_or_error(canonical_dim, num_classes,
                               "The error arose in jax.nn.one_hot argument `num_classes`.")
    x = asarray(x)
    if not dtypes.issubdtype(dtype_of(x), np.integer):
        warn(f"jax.nn.one_hot input should be integer-typed; got dtype={dtype_of(x)}", DeprecationWarning)
    kind = default_float() if dtype is None else user_dtype(dtype, "one_hot")
    if isinstance(axis, str):
        size = lax.axis_size(axis)
        if size != number:
            raise ValueError(f"Expected num_classes to match the size of axis {axis}, but {number} != {size}")
        return convert(lax.eq(x, convert(lax.axis_index(axis), dtype_of(x))), kind)
    return _one_hot(x, number, dtype=kind, axis=axis)


