"""Discrete distributions, and random choices and permutations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, SupportsIndex, cast

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.dims import is_named
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.lax.random_bits import prng
from styrax.lax.shaping.shapes import canonical_axis, canonical_shape
from styrax.numpy.promotion import check_arraylike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .continuous import _eps, _halves, gumbel
from .keys import check_prng_key, split_apart
from .rejection import until_accepted
from .uniforms import checked_dtype, float_dtype, placed, randint, shape_of, shape_or_broadcast, uniform

FLOAT32 = np.dtype(np.float32)


def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Sequence[int] | None = None, mode: str = "low", *,
              out_sharding: ShardingLike | None = None) -> Array:
    """Booleans that are True with probability `p`.

    Args:
      key: a random key.
      p: probabilities.
      shape: shape of the result; by default that of `p`.
      mode: "high" draws twice the bits, for more accurate small probabilities; "low" does not.
      out_sharding: sharding of the result.

    Returns:
      an array of booleans of shape `shape`.

    Raises:
      ValueError: for another mode.
      TypeError: for probabilities that are not floats.

    Example:
      >>> import styrax as jax
      >>> jax.random.bernoulli(jax.random.key(0), 0.5, (4,))
      Array([False, False,  True,  True], dtype=bool)
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    key, _ = check_prng_key("bernoulli", key)
    dtype = dtypes.canonicalize_dtype(lax.dtype(p))
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    p = lax.convert_element_type(p, dtype)
    shape = shape_or_broadcast("bernoulli", shape, p)
    return placed(_bernoulli(key, p, shape, mode), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _bernoulli(key: Any, p: Any, shape: tuple[int, ...], mode: str) -> Array:
    dtype = lax.dtype(p)
    if mode == "low":
        return uniform(key, shape, dtype) < p
    first, second = _halves(uniform(key, (2, *shape), dtype))
    return lax.mul(second, _eps(dtype)) < p - first


def rademacher(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
               out_sharding: ShardingLike | None = None) -> Array:
    """Random signs: -1 or 1.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: dtype of the result, int by default.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype`; both signs are equally likely.
    """
    key, _ = check_prng_key("rademacher", key)
    dtype = dtypes.check_and_canonicalize_user_dtype(int if dtype is None else dtype)
    return placed(_rademacher(key, canonical_shape(shape), dtype), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _rademacher(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    kind = np.dtype(np.int32) if dtype == np.bool_ else dtype  # both signs are true
    signs = lax.convert_element_type(bernoulli(key, 0.5, shape), kind)
    found = lax.sub(lax.mul(np.asarray(2).astype(kind), signs), np.asarray(1).astype(kind))
    return lax.convert_element_type(found, dtype)


def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Sequence[int] | None = None,
                replace: bool = True, mode: str | None = None, *, out_sharding: ShardingLike | None = None) -> Array:
    """Indices of categories, of unnormalised log probabilities.

    Args:
      key: a random key.
      logits: log probabilities along `axis`.
      axis: the axis of categories.
      shape: shape of the result; it ends with the other dimensions of `logits`.
      replace: whether a category can come several times. Without replacement the leading dimensions of
        `shape` are draws from one urn.
      mode: as for `gumbel`.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` (by default that of `logits` without `axis`), of int32, or int64 where 64-bit types are
      enabled: numbers in `[0, logits.shape[axis])`.

    Raises:
      ValueError: for a shape that does not fit, or more draws than categories without replacement.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.random.categorical(jax.random.key(0), jnp.array([0.0, 50.0]))
      Array(1, dtype=int32)
    """
    from styrax.numpy import argmax, asarray, expand_dims

    key, _ = check_prng_key("categorical", key)
    check_arraylike("categorical", logits)
    logits = asarray(logits)
    rank = logits.ndim
    if not -rank <= axis < rank:
        raise IndexError(f"index {axis} is out of bounds for axis 0 with size {rank}")
    axis %= rank
    batch = logits.shape[:axis] + logits.shape[axis + 1:]
    shape = batch if shape is None else canonical_shape(shape)
    if lax.broadcast_shapes(shape, batch) != shape:
        raise ValueError(f"categorical: the shape {shape} of the result must end with {batch}, the dimensions of "
                         "logits without the axis of categories.")
    prefix = shape[: len(shape) - len(batch)]
    if not replace:
        draws = math.prod(prefix)
        if draws > logits.shape[axis]:
            raise ValueError(f"Number of samples without replacement ({draws}) cannot exceed number of categories "
                             f"({logits.shape[axis]}).")
        noisy = logits + gumbel(key, logits.shape, logits.dtype, mode)
        indices = lax.top_k(noisy, draws, axis=axis)[1]
        order = (axis, *(d for d in range(rank) if d != axis))
        return placed(lax.reshape(indices, shape, order), out_sharding)
    tail = list(shape[len(prefix):])
    tail.insert(axis, logits.shape[axis])
    noise = gumbel(key, (*prefix, *tail), logits.dtype, mode)
    noisy = noise + (expand_dims(logits, tuple(range(len(prefix)))) if prefix else logits)
    return placed(argmax(noisy, axis=len(prefix) + axis), out_sharding)


def permutation(key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False, *,
                out_sharding: ShardingLike | None = None) -> Array:
    """A random permutation of an array along an axis, or of the integers below `x`.

    Args:
      key: a random key.
      x: an array, or an integer.
      axis: the axis to permute along.
      independent: whether every vector along the axis is permuted on its own.
      out_sharding: sharding of the result.

    Returns:
      an array of the shape and dtype of `x`, or of shape `(x,)` for an integer.

    Raises:
      TypeError: for a scalar that is not an integer.

    Example:
      >>> import styrax as jax
      >>> jax.random.permutation(jax.random.key(0), 5)
      Array([0, 1, 4, 3, 2], dtype=int32)
    """
    key, _ = check_prng_key("permutation", key)
    from styrax.numpy import arange, asarray, take

    check_arraylike("permutation", x)
    if not shape_of(x):
        if not dtypes.issubdtype(lax.dtype(x), np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        return placed(_shuffle(key, arange(int(cast(SupportsIndex, x))), 0), out_sharding)
    x = asarray(x)
    axis = canonical_axis(axis, x.ndim)
    if independent or x.ndim == 1:
        return placed(_shuffle(key, x, axis), out_sharding)
    order = _shuffle(key, arange(x.shape[axis]), 0)
    return placed(take(x, order, axis, unique_indices=True), out_sharding)


@partial(jit, static_argnums=(2,))
def _shuffle(key: Any, x: Any, axis: int) -> Array:
    # Sorting by random keys permutes; equal keys keep their order, so that long arrays take several rounds
    # until the order of any two elements is random but for a chance of less than one in size**3.
    size = math.prod(x.shape)
    if is_named(size):
        raise NotImplementedError(
            f"shape polymorphism for `permutation` or `shuffle` for arrays of non-constant size: {size}")
    rounds = math.ceil(3 * math.log(max(1, size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = split_apart(key, 2)
        sort_keys = prng.random_bits(subkey, 32, x.shape)
        _, x = lax.sort_key_val(sort_keys, x, axis)
    return x


def choice(key: ArrayLike, a: int | ArrayLike, shape: Sequence[int] = (), replace: bool = True,
           p: ArrayLike | None = None, axis: int = 0, mode: str | None = None) -> Array:
    """Random elements of an array, or of the integers below `a`.

    Args:
      key: a random key.
      a: an array, or an integer.
      shape: shape of the array of draws.
      replace: whether an element can come several times.
      p: the probability of each element; by default they are all the same.
      axis: the axis of `a` along which elements lie.
      mode: as for `gumbel`.

    Returns:
      an array of the shape of `a` with `axis` replaced by the dimensions of `shape`.

    Raises:
      ValueError: for more draws than elements without replacement, an empty `a`, or a `p` of another
        shape.

    Example:
      >>> import styrax as jax
      >>> jax.random.choice(jax.random.key(0), 5, (3,), replace=False)
      Array([0, 1, 4], dtype=int32)
    """
    from styrax.numpy import asarray, cumsum, searchsorted, take, zeros

    key, _ = check_prng_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = canonical_shape(shape)
    check_arraylike("choice", a)
    array = a if shape_of(a) else None
    if array is not None:
        array = asarray(array)
        axis = canonical_axis(axis, array.ndim)
        size = array.shape[axis]
    else:
        axis = canonical_axis(axis, 1)
        size = int(cast(SupportsIndex, a))
    draws = math.prod(shape)
    if draws == 0:
        return zeros(shape if array is None else (*array.shape[:axis], *shape, *array.shape[axis + 1:]),
                     dtype=dtypes.default_int_dtype() if array is None else array.dtype)
    if size <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > size:
        raise ValueError(f"Cannot take a larger sample (size {draws}) than population (size {size}) when "
                         "'replace=False'")
    if p is None and replace:
        index = randint(key, shape, 0, size)
    elif p is None:
        shuffled = permutation(key, size if array is None else array, axis)
        chosen = shuffled[(slice(None),) * axis + (slice(draws),)]
        return _draws_in_shape(chosen, array, axis, shape)
    else:
        check_arraylike("choice", p)
        weights = asarray(p)
        if not dtypes.issubdtype(weights.dtype, np.inexact):
            weights = weights.astype(dtypes.default_float_dtype())
        if weights.shape != (size,):
            raise ValueError("p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                             f"{weights.shape} and a.shape[axis] is {size}.")
        if replace:
            cumulated = cumsum(weights)
            r = cumulated[-1] * (1 - uniform(key, shape, dtype=cumulated.dtype))
            index = searchsorted(cumulated, r)
        else:
            noisy = gumbel(key, (size,), dtype=weights.dtype, mode=mode) + lax.log(weights)
            index = lax.top_k(noisy, draws)[1]
    if array is None:
        return _draws_in_shape(index, None, axis, shape)
    return _draws_in_shape(take(array, index, axis=axis), array, axis, shape)


def _draws_in_shape(chosen: Any, array: Any, axis: int, shape: tuple[int, ...]) -> Array:
    full = shape if array is None else (*array.shape[:axis], *shape, *array.shape[axis + 1:])
    return chosen if chosen.shape == full and full else lax.reshape(chosen, full)


def geometric(key: ArrayLike, p: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
              out_sharding: ShardingLike | None = None) -> Array:
    """The number of trials until the first success, of success probability `p`.

    Args:
      key: a random key.
      p: probabilities.
      shape: shape of the result; by default that of `p`.
      dtype: an integer dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the integer dtype in force) of numbers from 1
      on, with mean `1 / p`.
    """
    key, _ = check_prng_key("geometric", key)
    dtype = checked_dtype("geometric", dtype, int, np.integer, "an int")
    shape = shape_or_broadcast("geometric", shape, p)
    return placed(_geometric(key, p, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _geometric(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    from styrax.numpy import asarray, broadcast_to, where

    p = asarray(p)
    if not dtypes.issubdtype(p.dtype, np.floating):
        p = p.astype(dtypes.default_float_dtype())
    u = uniform(key, shape, p.dtype)
    log_u = lax.log(where(lax.eq(u, np.zeros((), p.dtype)), 1, u))
    log_failure = broadcast_to(lax.log1p(lax.neg(p)), shape)
    trials = lax.add(lax.floor(lax.div(log_u, log_failure)), np.ones((), p.dtype))
    return lax.convert_element_type(trials, dtype)


def poisson(key: ArrayLike, lam: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None, *,
            out_sharding: ShardingLike | None = None) -> Array:
    """Numbers of the Poisson distribution.

    Args:
      key: a random key of the Threefry generator.
      lam: the mean.
      shape: shape of the result; by default that of `lam`.
      dtype: an integer dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the integer dtype in force) of nonnegative
      numbers with mean `lam`.

    Raises:
      NotImplementedError: for keys of another generator.
    """
    key, _ = check_prng_key("poisson", key)
    dtype = checked_dtype("poisson", dtype, int, np.integer, "an int")
    if key.aval.dtype._impl.name != "threefry2x32":
        raise NotImplementedError(f"`poisson` is only implemented for the threefry2x32 RNG, not {key.aval.dtype._impl}")
    from styrax.numpy import broadcast_to

    shape = shape_or_broadcast("poisson", shape, lam)
    lam = lax.convert_element_type(broadcast_to(lam, shape), FLOAT32)
    return placed(_poisson(key, lam, shape, dtype), out_sharding)


@partial(jit, static_argnums=(2, 3))
def _poisson(key: Any, lam: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    steps = np.dtype(dtype).type(dtypes.iinfo(dtype).max)
    small = lax.bitwise_or(lax.ne(lam, lam), lax.lt(lam, np.float32(10)))
    low = lax.select(small, lam, lax.full_like(lam, 0))
    high = lax.select(small, lax.full_like(lam, 1e5), lam)
    out = lax.select(small, _poisson_knuth(key, low, shape, dtype, steps),
                     _poisson_rejection(key, high, shape, dtype, steps))
    return lax.select(lax.eq(lam, np.float32(0)), lax.full_like(out, 0), out)


@partial(jit, static_argnums=(2, 3, 4))
def _poisson_knuth(key: Any, lam: Any, shape: tuple[int, ...], dtype: Any, steps: np.integer) -> Array:
    """Knuth's algorithm: counts how many uniform numbers multiply to less than exp(-lam)."""
    from styrax.numpy import any

    def body(carry: Any) -> Any:
        i, count, key, log_product = carry
        key, subkey = split_apart(key, 2)
        count = lax.select(log_product > -lam, count + 1, count)
        u = uniform(subkey, shape, FLOAT32)
        return i + 1, count, key, log_product + lax.log(u)

    def going(carry: Any) -> Any:
        i, _, _, log_product = carry
        return any(log_product > -lam) & (i < steps)

    start = (0, lax.full(shape, 0, dtype), key, lax.full(shape, 0, FLOAT32))
    count = lax.while_loop(going, body, start)[1]
    return lax.sub(count, np.asarray(1, dtype))


@partial(jit, static_argnums=(2, 3, 4))
def _poisson_rejection(key: Any, lam: Any, shape: tuple[int, ...], dtype: Any, steps: np.integer) -> Array:
    """Hörmann's transformed rejection, for large means."""
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        u = u - 0.5
        shifted = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / shifted + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (shifted * shifted) + b))
        t = -lam + k * log_lam - lax.lgamma(k + 1)
        at_once = (shifted >= 0.07) & (v <= v_r)
        refused = (k < 0) | ((shifted < 0.013) & (v > shifted))
        below = s <= t
        return k, at_once | (~refused & below)

    return lax.convert_element_type(until_accepted(key, lam, propose, steps), dtype)


def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Sequence[int] | None = None,
             dtype: DTypeLike | None = None) -> Array:
    """The number of successes in `n` trials of probability `p`, as floats.

    Args:
      key: a random key.
      n, p: number of trials and probability of success.
      shape: shape of the result; by default that of `n` and `p` broadcast together.
      dtype: a float dtype.

    Returns:
      numbers of successes; NaN where `n` or `p` is NaN or negative, or `p` is above 1.
    """
    from .trials import draw_binomial

    key, _ = check_prng_key("binomial", key)
    dtype = float_dtype("binomial", dtype)
    shape = shape_or_broadcast("binomial", shape, n, p)
    return draw_binomial(key, n, p, shape, dtype)


def multinomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: Sequence[int] | None = None,
                dtype: DTypeLike | None = None, unroll: int | bool = 1) -> Array:
    """How often each category comes in `n` draws.

    Args:
      key: a random key.
      n: number of draws.
      p: probabilities along the last axis.
      shape: shape of the result; by default that of `n` and `p` broadcast together.
      dtype: the dtype of the result.
      unroll: how many categories are handled in one step of the loop over them.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force) of whole numbers,
      whose sums along the last axis are `n`.

    Raises:
      ValueError: `p` is a scalar, or shapes do not fit.
    """
    from .trials import draw_multinomial

    key, _ = check_prng_key("multinomial", key)
    dtype = dtypes.check_and_canonicalize_user_dtype(float if dtype is None else dtype)
    if not shape_of(p):
        raise ValueError("multinomial: p must have an axis of categories, got a scalar.")
    if shape is None:
        shape = lax.broadcast_shapes((*shape_of(n), 1), shape_of(p))
    return draw_multinomial(key, n, p, canonical_shape(shape), dtype, unroll)

