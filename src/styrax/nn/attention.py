"""Scaled dot-product attention, and products of block-scaled matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.lax.reductions.contractions import DotDimensionNumbers
from styrax.numpy.binary import add, logical_and, multiply
from styrax.numpy.broadcasting import choose_elements, spread, spread_all
from styrax.numpy.conversion import asarray
from styrax.numpy.einsums import einsum
from styrax.numpy.patterns import tril, triu
from styrax.numpy.promotion import convert, is_array, promote_dtypes
from styrax.transforms.jit import jit_for_all_shapes as jit

from .exponentials import logsumexp, softmax

_BOOL = np.dtype(np.bool_)


def dot_product_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
                          mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
                          query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
                          local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
                          return_residual: bool = False) -> Array | tuple[Array, Array]:
    """softmax(scale · query · keyᵀ + bias) · value, for every head.

    Args:
      query: (B, T, N, H), or (T, N, H) without a batch: T positions, N heads of H components.
      key, value: (B, S, K, H), or without a batch; K divides N, and every key head serves N/K query heads.
      bias: is added to the logits; broadcasts to (B, N, T, S).
      mask: booleans that broadcast to (B, N, T, S): logits where they are False do not count.
      scale: factor of the logits, by default 1/sqrt(H).
      is_causal: whether position t sees only keys up to t.
      query_seq_lengths, key_value_seq_lengths: how many positions count in each batch element.
      local_window_size: an int or a pair: position t sees keys from t - left to t + right alone.
      implementation: "xla", "cudnn" or None; all compute the same here.
      return_residual: whether the result is a pair with the logarithms of the sums of exponentials, (B, T, N).

    Returns an array of the shape of `query`. Raises ValueError for shapes that do not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> q = jnp.ones((2, 5, 3, 4))  # batch, time, heads, features
      >>> jax.nn.dot_product_attention(q, q, q).shape
      (2, 5, 3, 4)
    """

    def batched(x: Any) -> Any:
        if x is None:
            return None
        x = asarray(x)
        if x.ndim > 4:
            raise ValueError(f"dot_product_attention takes arrays of 4 dimensions at most, got shape {x.shape}")
        return lax.expand_dims(x, tuple(range(4 - x.ndim)))

    shape = np.shape(query)
    q, k, v = batched(query), batched(key), batched(value)
    added, allowed = batched(bias), batched(mask)
    batch, _, groups, size = k.shape
    _check_operand("value", v, k.shape, k.dtype)
    _check_operand("query", q, (batch, None, None, size), k.dtype)
    _check_operand("mask", allowed, (None,) * 4, _BOOL)
    _check_operand("bias", added, (None,) * 4, None)
    q_lengths, kv_lengths = (None if n is None else asarray(n) for n in (query_seq_lengths, key_value_seq_lengths))
    _check_operand("query_seq_lengths", q_lengths, (batch,), np.dtype(np.int32))
    _check_operand("key_value_seq_lengths", kv_lengths, (batch,), np.dtype(np.int32))
    if q.shape[2] % groups:
        raise ValueError("The number of query heads must be a multiple of key/value heads, but got "
                         f"{q.shape[2]} vs {groups}")
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    window = (local_window_size, local_window_size) if isinstance(local_window_size, int) else local_window_size
    factor = 1.0 / math.sqrt(size) if scale is None else scale
    out = _attention(q, k, v, added, allowed, q_lengths, kv_lengths, factor, is_causal, window, return_residual)
    if return_residual:
        result, residual = out
        return lax.reshape(result, shape), residual if len(shape) == 4 else lax.squeeze(residual, (0,))
    return lax.reshape(out, shape) if tuple(out.shape) != tuple(shape) else out


def _check_operand(name: str, x: Any, shape: tuple[int | None, ...], dtype: Any) -> None:
    """Raises ValueError for an operand of another rank, dtype or size than what is given (None: any)."""
    if x is None:
        return
    have = x.shape
    if len(have) != len(shape):
        raise ValueError(f"{name} ndim should be {len(shape)}, but got {len(have)}")
    if dtype is not None and x.dtype != dtype:
        raise ValueError(f"{name} dtype should be {dtype}, but got {x.dtype}")
    if any(want is not None and want != d for want, d in zip(shape, have)):
        raise ValueError(f"{name} shape should be {[-1 if d is None else d for d in shape]}: but got {have}")


def _allowed(mask: Any, shape: tuple, is_causal: bool, q_lengths: Any, kv_lengths: Any, window: Any) -> Array | None:
    """Booleans (B, N, T, S): which keys each position sees. None for all."""
    if mask is None and not is_causal and q_lengths is None and kv_lengths is None and window is None:
        return None
    _, _, length, keys = shape
    allowed = lax.full(shape, True, _BOOL)
    if mask is not None:
        allowed = logical_and(allowed, spread(mask, shape))
    if is_causal:
        allowed = logical_and(allowed, lax.expand_dims(tril(lax.full((length, keys), True, _BOOL)), (0, 1)))
    index = np.dtype(np.int32)
    if window is not None:
        left, right = window
        plane = lax.full((length, keys), True, _BOOL)
        near = logical_and(triu(plane, k=-left), tril(plane, k=right))
        allowed = logical_and(allowed, lax.expand_dims(near, (0, 1)))
    if q_lengths is not None:
        rows = lax.broadcasted_iota(index, (1, 1, length, 1), 2)
        allowed = logical_and(
            allowed, lax.lt(*spread_all((rows, lax.expand_dims(asarray(q_lengths, dtype=index), (1, 2, 3)))))
        )
    if kv_lengths is not None:
        columns = lax.broadcasted_iota(index, (1, 1, 1, keys), 3)
        allowed = logical_and(allowed, lax.lt(*spread_all((columns, lax.expand_dims(
            asarray(kv_lengths, dtype=index), (1, 2, 3))))))
    return allowed


def _attention(query: Any, key: Any, value: Any, bias: Any, mask: Any, q_lengths: Any, kv_lengths: Any, scale: Any,
               is_causal: bool, window: Any, residual: bool) -> Any:
    batch, length, heads, size = query.shape
    keys, groups = key.shape[1], key.shape[2]
    per = heads // groups
    query = lax.reshape(query, (batch, length, groups, per, size))
    accumulate = np.dtype(np.float32) if query.dtype.itemsize < 4 else query.dtype
    logits = einsum("btkgh,bskh->bkgts", query, key, preferred_element_type=accumulate)
    logits = multiply(logits, np.asarray(scale).astype(logits.dtype) if not is_array(scale) else scale)
    grouped = (batch, groups, per, length, keys)
    if bias is not None:
        wide = spread(bias, (batch, heads, length, keys)) if bias.shape[1] != 1 else lax.expand_dims(bias, (2,))
        logits = add(logits, convert(lax.reshape(wide, grouped) if wide.ndim == 4 else wide, logits.dtype))
    allowed = _allowed(mask, (batch, heads, length, keys), is_causal, q_lengths, kv_lengths, window)
    if allowed is not None:
        lowest = -0.7 * float(dtypes.finfo(logits.dtype).max)
        logits = choose_elements(lax.reshape(allowed, grouped), logits, convert(lowest, logits.dtype))
    weights = convert(softmax(logits, axis=-1), key.dtype)
    out = einsum("bkgts,bskh->btkgh", weights, value)
    out = lax.reshape(out, (batch, length, heads, size))
    if q_lengths is not None:
        rows = lax.broadcasted_iota(np.dtype(np.int32), (1, length, 1, 1), 1)
        valid = lax.lt(*spread_all((rows, lax.expand_dims(asarray(q_lengths, dtype=np.int32), (1, 2, 3)))))
        out = choose_elements(valid, out, lax.full_like(out, 0))
    if not residual:
        return out
    sums = lax.reshape(logsumexp(logits, axis=-1), (batch, heads, length))
    return out, lax.transpose(sums, (0, 2, 1))


@partial(jit, static_argnames=("preferred_element_type",))
def scaled_matmul(lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
                  preferred_element_type: DTypeLike = np.float32) -> Array:
    """The products of matrices whose elements come in blocks with a scale each.

    Args:
      lhs, rhs: (B, M, K) and (B, N, K).
      lhs_scales, rhs_scales: (B, M, K / block) and (B, N, K / block).
      preferred_element_type: the dtype of the result, float32 by default.

    Returns (B, M, N). Raises ValueError for ranks other than 3 and sizes that do not divide.
    """
    kind = np.dtype(np.float32) if preferred_element_type is None else np.dtype(preferred_element_type)
    lhs, rhs, lhs_scales, rhs_scales = (asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales))
    for x in (lhs, rhs, lhs_scales, rhs_scales):
        if x.ndim != 3:
            raise ValueError(f"scaled_matmul requires all inputs to be 3-dimensional arrays, got shape {x.shape}")
    if lhs.shape[2] != rhs.shape[2] or lhs.shape[0] != rhs.shape[0]:
        raise ValueError("lhs and rhs must have the same batch and contraction sizes, got "
                         f"{lhs.shape} and {rhs.shape}")

    def scaled(x: Any, scales: Any) -> Array:
        if x.shape[2] % scales.shape[2]:
            raise ValueError(f"the contraction size {x.shape[2]} is no multiple of the number of scales "
                             f"{scales.shape[2]}")
        block = x.shape[2] // scales.shape[2]
        wide = lax.broadcast_in_dim(convert(scales, kind), (*scales.shape, block), (0, 1, 2))
        return lax.mul(convert(x, kind), lax.reshape(wide, x.shape))

    out = lax.dot_general(scaled(lhs, lhs_scales), scaled(rhs, rhs_scales), (((2,), (2,)), ((0,), (0,))),
                          preferred_element_type=kind)
    return convert(out, kind)


@dataclass(slots=True)
class BlockScaleConfig:
    """How `scaled_dot_general` quantises its operands: element type, scale type, block size."""

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: ArrayLike | None = None
    infer_only: bool = False


def get_scaled_dot_general_config(mode: str, global_scale: Array | None = None) -> BlockScaleConfig:
    """The settings of a block-scaled format: "nvfp4" (blocks of 16) or "mxfp8" (blocks of 32).

    Raises ValueError for other modes.

    Args:
      mode: the format.
      global_scale: a scalar of float32 by which all blocks are scaled besides, for "nvfp4" alone.

    Returns:
      the settings, for the argument `configs` of `scaled_dot_general`.
    """
    if mode == "nvfp4":
        one = np.ones((1,), np.float32)
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn,
                                one if global_scale is None else global_scale)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu)
    raise ValueError(f"Unsupported mode: {mode}")


def _power_of_two_above(x: Any) -> Array:
    """The least power of two that is not less, for positive numbers of float32."""
    bits = lax.add(lax.bitcast_convert_type(x, np.int32), np.int32((1 << 23) - 1))
    return lax.bitcast_convert_type(lax.bitwise_and(bits, np.int32(0xFF << 23)), np.float32)


def _quantised(x: Any, config: BlockScaleConfig) -> Array:
    """`x` rounded to a block-scaled format along its last axis, as floats."""
    kind = np.dtype(np.float32)
    if x.shape[-1] % config.block_size:
        raise ValueError(f"the contraction size {x.shape[-1]} is no multiple of the block size {config.block_size}")
    blocks = lax.reshape(convert(x, kind), (*x.shape[:-1], x.shape[-1] // config.block_size, config.block_size))
    axis = blocks.ndim - 1
    top = float(dtypes.finfo(config.data_type).max)
    scales = lax.div(lax.reduce_max(lax.abs(blocks), (axis,)), convert(top, kind))
    if dtypes.finfo(config.scale_type).nmant == 0:  # a nearer power of two below would make elements overflow
        scales = _power_of_two_above(lax.max(scales, convert(2.0**-126, kind)))
    scales = convert(convert(scales, np.dtype(config.scale_type)), kind)
    wide = lax.broadcast_in_dim(scales, blocks.shape, tuple(range(axis)))
    safe = choose_elements(lax.eq(wide, convert(0, kind)), lax.full_like(wide, 1), wide)
    scaled = lax.clamp(convert(-top, kind), lax.div(blocks, safe), convert(top, kind))
    rounded = convert(convert(scaled, np.dtype(config.data_type)), kind)
    return lax.reshape(lax.mul(rounded, wide), x.shape)


def scaled_dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
                       preferred_element_type: DTypeLike = np.float32,
                       configs: Sequence[BlockScaleConfig] | None = None, implementation: str | None = None) -> Array:
    """`lax.dot_general` of operands rounded to block-scaled formats along the contracted axis.

    `configs` is a list of settings (`get_scaled_dot_general_config`), for the left and the right operand
    and those of the derivatives; without it nothing is rounded. Raises ValueError for several
    contracted axes with `configs`.

    Args:
      lhs, rhs: arrays of floats.
      dimension_numbers: as for `lax.dot_general`.
      preferred_element_type: dtype of the result.
      configs: settings for both operands and their derivatives, or None.
      implementation: "cudnn" or None; both compute the same here.

    Returns:
      an array of dtype `preferred_element_type`, of the shape that `lax.dot_general` gives.
    """
    kind = np.dtype(np.float32) if preferred_element_type is None else np.dtype(preferred_element_type)
    lhs, rhs = (asarray(x) for x in promote_dtypes(lhs, rhs))
    (l_contract, r_contract), batch = dimension_numbers
    if configs:
        if len(l_contract) != 1:
            raise ValueError("scaled_dot_general requires exactly one contracted axis")
        lhs = _rounded(lhs, l_contract[0], configs[0])
        rhs = _rounded(rhs, r_contract[0], configs[1])
    return convert(lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=kind), kind)


def _rounded(x: Any, axis: int, config: BlockScaleConfig) -> Array:
    from styrax.numpy.shaping import moveaxis

    value = moveaxis(_quantised(moveaxis(x, axis, -1), config), -1, axis)
    # The derivative is that of the operand before rounding.
    return add(convert(x, value.dtype), lax.stop_gradient(lax.sub(value, convert(x, value.dtype))))


