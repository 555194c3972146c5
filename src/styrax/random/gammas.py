"""The gamma distribution and those made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.physical import Context, physicals
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.lax.random_bits import prng
from styrax.lax.shaping.shapes import canonical_shape
from styrax.transforms import ad, batching
from styrax.transforms.jit import jit_for_all_shapes as jit

from .continuous import exponential, maxwell, normal
from .discrete import rademacher
from .keys import check_prng_key, split, split_apart
from .uniforms import float_dtype, placed, shape_of, shape_or_broadcast, uniform

# --- the primitive: one number for each element of the shape parameter

random_gamma_p = Primitive("random_gamma")


@random_gamma_p.def_abstract_eval
def _random_gamma_abstract(key: ShapedArray, alpha: ShapedArray, *, log_space: bool) -> ShapedArray:
    return ShapedArray(alpha.shape, alpha.dtype)


def _gamma_one(key: Any, alpha: Any, log_space: bool) -> Array:
    """Marsaglia and Tsang's method, for one number."""
    dtype = get_aval(alpha).dtype

    def c(value: float) -> np.ndarray:
        return np.asarray(value).astype(dtype)

    # Shapes below 1 are drawn with 1 more; a power of a uniform number corrects for it.
    boosted = lax.ge(alpha, c(1))
    original, alpha = alpha, lax.select(boosted, alpha, lax.add(alpha, c(1)))
    third = c(1.0 / 3.0)
    d = lax.sub(alpha, third)
    scale = lax.div(third, lax.sqrt(d))

    def going(carry: Any) -> Any:
        _, x, v, u = carry
        # a squeeze spares the logarithms in most cases
        outside = lax.ge(u, lax.sub(c(1), lax.mul(c(0.0331), lax.mul(x, x))))
        bound = lax.add(lax.mul(x, c(0.5)), lax.mul(d, lax.add(lax.sub(c(1), v), lax.log(v))))
        return lax.bitwise_and(outside, lax.ge(lax.log(u), bound))

    def body(carry: Any) -> Any:
        key, x_key, u_key = split_apart(carry[0], 3)

        def redraw(state: Any) -> Any:
            key, subkey = split_apart(state[0], 2)
            x = normal(subkey, (), dtype=dtype)
            return key, x, lax.add(c(1), lax.mul(x, scale))

        _, x, v = lax.while_loop(lambda state: lax.le(state[2], c(0)), redraw, (x_key, c(0), c(-1)))
        u = uniform(u_key, (), dtype=dtype)
        return key, lax.mul(x, x), lax.mul(lax.mul(v, v), v), u

    key, subkey = split_apart(key, 2)
    _, _, v, _ = lax.while_loop(going, body, (key, c(0), c(1), c(2)))
    if log_space:
        log_u = lax.neg(exponential(subkey, (), dtype=dtype))
        no_boost = lax.bitwise_or(boosted, lax.eq(log_u, c(0)))
        log_boost = lax.select(no_boost, c(0), lax.mul(log_u, lax.div(c(1), original)))
        return lax.add(lax.add(lax.log(d), lax.log(v)), log_boost)
    u = lax.sub(c(1), uniform(subkey, (), dtype=dtype))
    boost = lax.select(boosted, c(1), lax.pow(u, lax.div(c(1), original)))
    return lax.mul(lax.mul(d, v), boost)


def _random_gamma_physical(context: Context, data: Any, alpha: Any, *, log_space: bool) -> Array:
    keys = context.avals_in[0]
    shape = alpha.shape
    each = math.prod(shape[keys.ndim:])
    key_shape = keys.dtype.element_shape
    flat = prng.random_wrap(lax.reshape(data, (math.prod(keys.shape), *key_shape)), impl=keys.dtype._impl)
    flat = lax.reshape(prng.random_split(flat, (each,)), (math.prod(shape),))
    out = lax.map(lambda x: _gamma_one(x[0], x[1], log_space), (flat, lax.reshape(alpha, (math.prod(shape),))))
    return lax.reshape(out, shape)


physicals[random_gamma_p] = _random_gamma_physical


def _random_gamma_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, log_space: bool) -> tuple[Any, Any]:
    key, alpha = primals
    out = random_gamma_p.bind(key, alpha, log_space=log_space)
    tangent = tangents[1]
    if type(tangent) is ad.Zero:
        return out, ad.Zero.from_primal_value(out)
    if log_space:
        # d log(g) = dg / g; where g has become zero, the smallest number stands for it
        g = lax.exp(out)
        tiny = np.asarray(dtypes.finfo(get_aval(out).dtype).tiny).astype(get_aval(out).dtype)
        g = lax.select(lax.eq(g, np.zeros((), tiny.dtype)), lax.full_like(g, tiny), g)
        slope = lax.div(lax.random_gamma_grad(alpha, g), g)
    else:
        slope = lax.random_gamma_grad(alpha, out)
    return out, lax.mul(tangent, slope)


rules.jvps[random_gamma_p] = _random_gamma_jvp


def _random_gamma_batch(args: Sequence[Any], dims: Sequence[Any], *, log_space: bool) -> tuple[Any, int]:
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    key, alpha = (batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True))
    return random_gamma_p.bind(key, alpha, log_space=log_space), 0


rules.batchers[random_gamma_p] = _random_gamma_batch

# --- distributions


@api_boundary
def gamma(key: ArrayLike, a: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
          out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the gamma distribution with scale 1.

    Args:
      key: a random key.
      a: the shape parameter; derivatives with respect to it are defined.
      shape: shape of the result; by default that of `a`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of nonnegative numbers
      with mean `a`.

    Example:
      >>> import styrax as jax
      >>> jax.random.gamma(jax.random.key(0), 2.0, (3,)).shape
      (3,)
    """
    key, _ = check_prng_key("gamma", key)
    dtype = float_dtype("gamma", dtype)
    shape = shape_or_broadcast("gamma", shape, a)
    return placed(_gamma(key, a, shape=shape, dtype=dtype), out_sharding)


def loggamma(key: ArrayLike, a: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
             out_sharding: ShardingLike | None = None) -> Array:
    """Logarithms of numbers of the gamma distribution, accurate also where those would underflow.

    Args:
      key: a random key.
      a: the shape parameter.
      shape: shape of the result; by default that of `a`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force).
    """
    key, _ = check_prng_key("loggamma", key)
    dtype = float_dtype("loggamma", dtype)
    shape = shape_or_broadcast("loggamma", shape, a)
    return placed(_gamma(key, a, shape=shape, dtype=dtype, log_space=True), out_sharding)


@partial(jit, static_argnames=("shape", "dtype", "log_space"))
def _gamma(key: Any, a: Any, shape: tuple[int, ...], dtype: Any, log_space: bool = False) -> Array:
    from styrax.numpy import broadcast_to

    a = lax.convert_element_type(a, dtype)
    if shape_of(a) != shape:
        a = broadcast_to(a, shape)
    return random_gamma_p.bind(key, a, log_space=log_space)


def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None,
         *, out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the beta distribution.

    Args:
      key: a random key.
      a, b: its parameters.
      shape: shape of the result; by default that of `a` and `b` broadcast together.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) with numbers in `[0, 1]`.
    """
    key, _ = check_prng_key("beta", key)
    dtype = float_dtype("beta", dtype)
    shape = shape_or_broadcast("beta", shape, a, b)
    return placed(_beta(key, a, b, shape, dtype), out_sharding)


@partial(jit, static_argnums=(3, 4))
def _beta(key: Any, a: Any, b: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy import broadcast_to

    a, b = lax.convert_element_type(a, dtype), lax.convert_element_type(b, dtype)
    first, second = split_apart(key, 2)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    log_x, log_y = loggamma(first, a, shape, dtype), loggamma(second, b, shape, dtype)
    top = lax.max(log_x, log_y)
    x, y = lax.exp(lax.sub(log_x, top)), lax.exp(lax.sub(log_y, top))
    return lax.div(x, lax.add(x, y))


def chisquare(key: ArrayLike, df: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
              out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the chi-square distribution.

    Args:
      key: a random key.
      df: degrees of freedom.
      shape: shape of the result; by default that of `df`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of nonnegative numbers with
      mean `df`.
    """
    key, _ = check_prng_key("chisquare", key)
    dtype = float_dtype("chisquare", dtype)
    shape = shape_or_broadcast("chisquare", shape, df)
    return placed(_chisquare(key, df, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _chisquare(key: Any, df: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    df = lax.convert_element_type(df, dtype)
    two = np.asarray(2.0).astype(dtype)
    log_g = loggamma(key, lax.div(df, two), shape, dtype)
    return lax.mul(lax.exp(log_g), two)


def t(key: ArrayLike, df: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
      out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of Student's t distribution.

    Args:
      key: a random key.
      df: degrees of freedom.
      shape: shape of the result; by default that of `df`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force), symmetric about 0.
    """
    key, _ = check_prng_key("t", key)
    dtype = float_dtype("t", dtype)
    shape = shape_or_broadcast("t", shape, df)
    return placed(_t(key, df, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _t(key: Any, df: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    df = lax.convert_element_type(df, dtype)
    first, second = split_apart(key, 2)
    n = normal(first, shape, dtype)
    half = lax.div(df, np.asarray(2.0).astype(dtype))
    g = gamma(second, half, shape, dtype)
    return n * lax.sqrt(half / g)


def f(key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Sequence[int] | None = None,
      dtype: DTypeLike | None = None, *, out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the F distribution.

    Args:
      key: a random key.
      dfnum, dfden: degrees of freedom of numerator and denominator.
      shape: shape of the result; by default that of the parameters broadcast together.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of nonnegative
      numbers: the quotient of two chi-square numbers, each divided by its degrees of freedom.
    """
    key, _ = check_prng_key("f", key)
    dtype = float_dtype("f", dtype)
    shape = shape_or_broadcast("f", shape, dfnum, dfden)
    return placed(_f(key, dfnum, dfden, shape, dtype), out_sharding)


@partial(jit, static_argnums=(3, 4))
def _f(key: Any, dfnum: Any, dfden: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    dfden = lax.convert_element_type(dfden, dtype)
    dfnum = lax.convert_element_type(dfnum, dtype)
    key_den, key_num = split_apart(key, 2)
    num = chisquare(key_num, dfnum, shape, dtype)
    den = chisquare(key_den, dfden, shape, dtype)
    return (num / dfnum) / (den / dfden)


def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
              out_sharding: ShardingLike | None = None) -> Array:
    """Vectors of the Dirichlet distribution.

    Args:
      key: a random key.
      alpha: concentrations along the last axis.
      shape: shape of the array of vectors; by default the other dimensions of `alpha`.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `(*shape, alpha.shape[-1])` whose last axis sums to 1.

    Raises:
      ValueError: for a scalar `alpha` or a shape that does not fit.
    """
    key, _ = check_prng_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    if not shape_of(alpha):
        raise ValueError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {len(shape_of(alpha))}")
    shape = shape_of(alpha)[:-1] if shape is None else canonical_shape(shape)
    if lax.broadcast_shapes(shape, shape_of(alpha)[:-1]) != shape:
        raise ValueError(f"dirichlet: the shape {shape} must agree with the leading dimensions {shape_of(alpha)[:-1]} "
                         "of alpha.")
    return placed(_dirichlet(key, alpha, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _dirichlet(key: Any, alpha: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    alpha = lax.convert_element_type(alpha, dtype)
    log_x = loggamma(key, alpha, (*shape, shape_of(alpha)[-1]), dtype)
    last = len(shape)
    top = lax.max(np.asarray(-np.inf).astype(dtype), lax.reduce_max(log_x, (last,)))
    x = lax.exp(lax.sub(log_x, lax.stop_gradient(lax.expand_dims(top, (last,)))))
    return lax.div(x, lax.expand_dims(lax.reduce_sum(x, (last,)), (last,)))


def generalized_normal(key: ArrayLike, p: float, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
                       out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the generalised normal distribution, whose density falls as `exp(-|x|**p)`.

    Args:
      key: a random key.
      p: the exponent.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force), symmetric about 0.
    """
    key, _ = check_prng_key("generalized_normal", key)
    dtype, shape = float_dtype("generalized_normal", dtype), canonical_shape(shape)
    return placed(_generalized_normal(key, p, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _generalized_normal(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    keys = split(key)
    g = gamma(keys[0], 1 / p, shape, dtype)
    return rademacher(keys[1], shape, dtype) * g ** (1 / p)


def ball(key: ArrayLike, d: int, p: float = 2, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
         out_sharding: ShardingLike | None = None) -> Array:
    """Points spread evenly over the unit ball of the `p`-norm.

    Args:
      key: a random key.
      d: dimension of the ball.
      p: which norm.
      shape: shape of the array of points.
      dtype: a float dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `(*shape, d)`.
    """
    key, _ = check_prng_key("ball", key)
    dtype, shape = float_dtype("ball", dtype), canonical_shape(shape)
    return placed(_ball(key, d, p, shape, dtype), out_sharding)


@partial(jit, static_argnums=(1, 3, 4))
def _ball(key: Any, d: int, p: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    first, second = split_apart(key, 2)
    g = generalized_normal(first, p, (*shape, d), dtype)
    e = exponential(second, shape, dtype)
    lengths = (lax.reduce_sum(lax.abs(g) ** p, (len(shape),)) + e) ** (1 / p)
    return g / lax.expand_dims(lengths, (len(shape),))


def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Sequence[int] = (),
                         dtype: DTypeLike | None = None) -> Array:
    """Numbers of the Maxwell distribution with random signs, scaled and moved.

    Args:
      key: a random key.
      loc, scale: added to and multiplied with the numbers.
      shape: the leading dimensions of the result, by default those of `loc` and `scale`, broadcast together, which
        also follow.
      dtype: a float dtype.

    Returns:
      an array of shape `(*shape, ...)`, with the dimensions of `loc` and `scale`, and of dtype `dtype`; symmetric about
      `loc`.
    """
    key, _ = check_prng_key("double_sided_maxwell", key)
    dtype = float_dtype("double_sided_maxwell", dtype)
    both = lax.broadcast_shapes(shape_of(loc), shape_of(scale))
    shape = (*(canonical_shape(shape) or both), *both)
    return _double_sided_maxwell(key, loc, scale, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    first, second = split_apart(key, 2)
    lengths = maxwell(first, shape, dtype)
    signs = rademacher(second, shape, dtype)
    return signs * lengths * scale + loc
