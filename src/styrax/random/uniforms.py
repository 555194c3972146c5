"""Random bits, uniform numbers and uniform integers: what all other distributions are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.lax.random_bits import prng
from styrax.lax.shaping.shapes import canonical_shape
from styrax.transforms.jit import jit_for_all_shapes as jit

from .keys import check_prng_key, split_apart


def shape_of(x: Any) -> tuple[int, ...]:
    return np.shape(x) if isinstance(x, (bool, int, float, complex, list, tuple)) else get_aval(x).shape


def placed(x: Any, out_sharding: Any) -> Array:
    """The result where the caller asked for it."""
    if out_sharding is None:
        return x
    from styrax.core.arrays.out_shardings import result_sharding
    from styrax.numpy.conversion import place

    return place(x, result_sharding(out_sharding))


def checked_dtype(name: str, dtype: Any, default: type, family: Any, what: str) -> Any:
    """The dtype of a result. Raises ValueError where it is not of the family."""
    found = dtypes.check_and_canonicalize_user_dtype(default if dtype is None else dtype)
    families = family if isinstance(family, tuple) else (family,)
    if not any(dtypes.issubdtype(found, f) for f in families):
        raise ValueError(f"dtype argument to `{name}` must be {what} dtype, got {found}")
    return found


def float_dtype(name: str, dtype: Any) -> Any:
    return checked_dtype(name, dtype, float, np.floating, "a float")


def shape_or_broadcast(name: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of a result: the given one, with which parameters have to agree, or theirs."""
    shapes = [shape_of(p) for p in parameters]
    if shape is None:
        return lax.broadcast_shapes(*shapes)
    shape = canonical_shape(shape)
    if shapes:
        joint = lax.broadcast_shapes(shape, *shapes)
        if joint != shape:
            raise ValueError(
                f"{name} parameter shapes must be broadcast-compatible with shape argument, and the result of "
                f"broadcasting the shapes must equal the shape argument, but got result {joint} for shape argument "
                f"{shape}")
    return shape


@api_boundary
def bits(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
         out_sharding: ShardingLike | None = None) -> Array:
    """Random bits as unsigned integers.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: unsigned integer dtype; by default uint32, or uint64 where 64-bit types are enabled.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` whose bits are all random, each 1 with probability 1/2.

    Raises:
      ValueError: for another dtype.
    """
    key, _ = check_prng_key("bits", key)
    default = np.uint64 if dtypes.default_uint_dtype() == np.uint64 else np.uint32
    dtype = checked_dtype("bits", default if dtype is None else dtype, int, np.unsignedinteger, "an unsigned int")
    shape = canonical_shape(shape)
    return placed(prng.random_bits(key, 8 * np.dtype(dtype).itemsize, shape), out_sharding)


@api_boundary
def uniform(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0,
            maxval: ArrayLike = 1.0, *, out_sharding: ShardingLike | None = None) -> Array:
    """Uniform numbers in `[minval, maxval)`.

    Args:
      key: a random key.
      shape: shape of the result.
      dtype: a float dtype.
      minval, maxval: bounds, broadcast to `shape`.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the float dtype in force).

    Raises:
      ValueError: for another dtype.

    Example:
      >>> import styrax as jax
      >>> jax.random.uniform(jax.random.key(0), (3,), minval=1.0, maxval=2.0).shape
      (3,)
    """
    key, _ = check_prng_key("uniform", key)
    shape = canonical_shape(shape)
    dtype = float_dtype("uniform", dtype)
    return placed(_uniform(key, shape, dtype, minval, maxval), out_sharding)


@partial(jit, static_argnums=(1, 2))
def _uniform(key: Any, shape: tuple[int, ...], dtype: Any, minval: Any, maxval: Any) -> Array:
    # The mantissa of a number in [1, 2) is filled with bits, 1 is taken off, and the result scaled.
    minval, maxval = lax.convert_element_type(minval, dtype), lax.convert_element_type(maxval, dtype)
    minval, maxval = lax.broadcast_to_rank(minval, len(shape)), lax.broadcast_to_rank(maxval, len(shape))
    info = dtypes.finfo(dtype)
    width, mantissa = info.bits, info.nmant
    if width not in (8, 16, 32, 64):
        raise TypeError(f"uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got {dtype}.")
    drawn = 8 if mantissa < 8 else width  # few bits are enough for bfloat16
    raw = prng.random_bits(key, drawn, shape)
    unsigned = np.dtype(f"uint{width}")
    if drawn != width:
        raw = lax.convert_element_type(raw, unsigned)
    raw = lax.shift_right_logical(raw, np.asarray(drawn - mantissa, unsigned))
    one = np.asarray(1.0).astype(dtype)
    raw = lax.bitwise_or(raw, one.view(unsigned))
    floats = lax.sub(lax.bitcast_convert_type(raw, dtype), one)
    scaled = lax.add(lax.mul(floats, lax.sub(maxval, minval)), minval)
    return lax.max(minval, lax.reshape(scaled, shape))


@api_boundary
def randint(key: ArrayLike, shape: Sequence[int], minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None,
            *, out_sharding: ShardingLike | None = None) -> Array:
    """Uniform integers in `[minval, maxval)`.

    Args:
      key: a random key.
      shape: shape of the result.
      minval, maxval: integer bounds, broadcast to `shape`. Where `maxval <= minval` the result is
        `minval`.
      dtype: an integer dtype.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype` (by default the integer dtype in force).

    Raises:
      TypeError: for another dtype.

    Example:
      >>> import styrax as jax
      >>> jax.random.randint(jax.random.key(0), (5,), 0, 10)
      Array([9, 0, 2, 3, 1], dtype=int32)
    """
    key, _ = check_prng_key("randint", key)
    kind: np.dtype = dtypes.check_and_canonicalize_user_dtype(int if dtype is None else dtype)
    if not dtypes.issubdtype(kind, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {kind.name}")
    shape = canonical_shape(shape)
    info = dtypes.iinfo(kind)
    if info.bits < 32:
        # Few bits would make the remainders of the algorithm uneven: draw 32 and convert.
        from styrax.numpy.clipping import clip_between
        from styrax.numpy.conversion import asarray

        int32 = np.dtype(np.int32)
        low, high = (lax.convert_element_type(asarray(x), int32) for x in (minval, maxval))  # modulo 2 ** 32
        low = clip_between(low, min=int(info.min), max=int(info.max))
        high = clip_between(high, min=int(info.min), max=int(info.max) + 1)
        out = lax.convert_element_type(_randint(key, shape, low, high, int32), kind)
    else:
        out = _randint(key, shape, minval, maxval, kind)
    return placed(out, out_sharding)


def _clipped(x: Any, dtype: Any) -> Array:
    """Integers converted to a dtype; those out of its range become its extremes."""
    from styrax.numpy import clip

    aval = get_aval(x)
    own, wanted = dtypes.iinfo(aval.dtype), dtypes.iinfo(dtype)
    low: Any = max(int(own.min), int(wanted.min))
    high: Any = min(int(own.max), int(wanted.max))
    if not aval.weak_type:
        low, high = (np.asarray(bound, aval.dtype) for bound in (low, high))
    return lax.convert_element_type(clip(x, low, high), dtype)


@partial(jit, static_argnums=(1, 4))
def _randint(key: Any, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: Any) -> Array:
    info = dtypes.iinfo(dtype)
    minval, maxval = (
        x if dtypes.issubdtype(get_aval(x).dtype, np.integer)
        else lax.convert_element_type(x, dtypes.default_int_dtype())
        for x in (minval, maxval))
    lax.broadcast_shapes(shape, shape_of(minval), shape_of(maxval))
    # The range may reach one past the largest value, which the dtype cannot say.
    beyond = lax.gt(maxval, _clipped(np.asarray(int(info.max), dtype), get_aval(maxval).dtype))
    minval, maxval = _clipped(minval, dtype), _clipped(maxval, dtype)
    rank = len(shape)
    minval, maxval = lax.broadcast_to_rank(minval, rank), lax.broadcast_to_rank(maxval, rank)
    width = info.bits
    # Two draws make the number whose remainder is taken: its unevenness is at most 2**-width.
    first, second = split_apart(key, 2)
    higher, lower = prng.random_bits(first, width, shape), prng.random_bits(second, width, shape)
    unsigned = np.dtype(f"uint{width}")
    one = np.asarray(1, unsigned)
    span = lax.convert_element_type(lax.sub(maxval, minval), unsigned)
    span = lax.select(lax.le(maxval, minval), lax.full_like(span, 1), span)
    if rank and shape_of(beyond):
        beyond = lax.broadcast_to_rank(beyond, rank)
    wider = lax.bitwise_and(beyond, lax.gt(maxval, minval))
    span = lax.select(wider, lax.add(span, one), span)
    multiplier = lax.rem(np.asarray(2 ** (width // 2), unsigned), span)
    multiplier = lax.rem(lax.mul(multiplier, multiplier), span)
    offset = lax.add(lax.mul(lax.rem(higher, span), multiplier), lax.rem(lower, span))
    offset = lax.rem(offset, span)
    return lax.add(minval, lax.convert_element_type(offset, dtype))
