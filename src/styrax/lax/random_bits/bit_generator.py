"""Bit generators of the compiler: `rng_bit_generator`, and the `rbg` key implementations on it.

On the CPU the default algorithm is Philox-4x32 with the 128-bit counter (low word of the state, then
the key), the bits XLA gives there. Accelerators use their own.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive, multiple_results
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.transforms import ad, batching
from styrax.transforms.alike import tells_apart

from .. import sharding_rules
from ..elementwise.bits import bitwise_xor
from ..indexing.slicing import dynamic_update_slice
from ..indexing.static_slicing import slice_in_dim
from ..shaping.broadcasting import broadcast, squeeze
from ..shaping.joining import concatenate
from ..shaping.reshaping import reshape
from .threefry import LoopWords, threefry_fold_in, threefry_seed, threefry_split
from .threefry import block as threefry_block

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

UINT8, UINT16, UINT32, UINT64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))


class RandomAlgorithm(enum.IntEnum):
    """The algorithm of `rng_bit_generator`."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


_HLO_NAMES = {
    RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    RandomAlgorithm.RNG_PHILOX: "PHILOX",
}

rng_bit_generator_p = multiple_results("rng_bit_generator")
rng_bit_generator_p.declare(sizes=frozenset(("shape",)), sharding=sharding_rules.bits_and_key)
ad.defjvp_zero(rng_bit_generator_p)


@rng_bit_generator_p.def_abstract_eval
def _rng_bit_generator_abstract(key: ShapedArray, *, shape: tuple[int, ...], dtype: Any, algorithm: Any,
                                out_sharding: Any) -> list[ShapedArray]:
    if (key.shape, key.dtype) not in (((4,), UINT32), ((2,), UINT64)):
        raise TypeError(
            f"rng_bit_generator: the key has to be uint32[4] or uint64[2], got {key.str_short()}")
    if dtype not in (UINT8, UINT16, UINT32, UINT64):
        raise TypeError(f"rng_bit_generator: unsupported dtype {np.dtype(dtype).name}")
    return [ShapedArray(key.shape, key.dtype), ShapedArray(shape, dtype)]


PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)


def _philox_block(b: Builder, counter: Sequence[Any], key: Sequence[Any]) -> list[Any]:
    """Ten rounds of Philox-4x32 on scalars of the loop builder."""
    x = list(counter)
    for round_number in range(10):
        k0, k1 = (
            b.add(k, b.const((round_number * weyl) & 0xFFFFFFFF, UINT32)) for k, weyl in zip(key, PHILOX_WEYL)
        )
        products = [b.mul(b.cast(v, UINT64), b.const(factor, UINT64)) for v, factor in zip(x[::2], PHILOX_FACTORS)]
        low = [b.cast(p, UINT32) for p in products]
        high = [b.cast(b.shr_logical(p, b.const(32, UINT64)), UINT32) for p in products]
        x = [b.xor(b.xor(high[1], x[1]), k0), low[1], b.xor(b.xor(high[0], x[3]), k1), low[0]]
    return x


def _state_words(b: Builder, key: Any) -> tuple[Any, Any]:
    """The two 64-bit words of the state: the key and the counter."""
    if key.dtype == UINT64:
        return key.at([b.index(0)]), key.at([b.index(1)])

    def wide(i: int) -> Any:
        high = b.shl(b.cast(key.at([b.index(2 * i + 1)]), UINT64), b.const(32, UINT64))
        return b.or_(high, b.cast(key.at([b.index(2 * i)]), UINT64))

    return wide(0), wide(1)


def _halves(b: Builder, x: Any) -> tuple[Any, Any]:
    return b.cast(x, UINT32), b.cast(b.shr_logical(x, b.const(32, UINT64)), UINT32)


def _linear(b: Builder, shape: Sequence[int], index: Sequence[Any]) -> Any:
    position = b.index(0)
    for size, i in zip(shape, index, strict=True):
        position = b.add(b.mul(position, b.index(size)), i)
    return position


def _philox_element(b: Builder, key: Any, shape: Sequence[int], dtype: Any) -> tuple[Any, int]:
    """How an element of the output is made, and how far the counter moves for all of them."""
    per_element = 2 if dtype == UINT64 else 1

    def word(block: Any, which: Any) -> Any:
        k, c = _state_words(b, key)
        moved = b.add(c, b.cast(block, UINT64))
        carry = b.cast(b.lt(moved, c), UINT64)
        counter = [*_halves(b, moved), *_halves(b, b.add(k, carry))]
        out = _philox_block(b, counter, _halves(b, k))
        return [b.select(b.eq(which, b.index(0)), out[0], b.select(
            b.eq(which, b.index(1)), out[1], b.select(b.eq(which, b.index(2)), out[2], out[3])))] \
            if per_element == 1 else [
                b.select(b.eq(which, b.index(0)), out[i], out[i + 2]) for i in (0, 1)]

    def at(index: Sequence[Any]) -> Any:
        position = _linear(b, shape, index)
        if per_element == 1:
            (bits,) = word(b.shr_arith(position, b.index(2)), b.and_(position, b.index(3)))
            return bits if dtype == UINT32 else b.cast(b.and_(bits, b.const(2 ** (8 * dtype.itemsize) - 1, UINT32)),
                                                       dtype)
        low, high = word(b.shr_arith(position, b.index(1)), b.and_(position, b.index(1)))
        return b.or_(b.shl(b.cast(high, UINT64), b.const(32, UINT64)), b.cast(low, UINT64))

    return at, -(-math.prod(shape) * per_element // 4)


def _threefry_element(b: Builder, key: Any, shape: Sequence[int], dtype: Any) -> tuple[Any, int]:
    """As `_philox_element`. The pair of a block lies along the first dimension of even size, or along
    the largest one, padded, where there is none."""
    if dtype == UINT64:
        pairs, axis = list(shape), None
    elif not shape:
        pairs, axis = [], None
    else:
        even = [d for d, n in enumerate(shape) if n % 2 == 0]
        axis = even[0] if even else max(range(len(shape)), key=lambda d: (shape[d], -d))
        pairs = [(n + 1) // 2 if d == axis else n for d, n in enumerate(shape)]

    def at(index: Sequence[Any]) -> Any:
        k, c = _state_words(b, key)
        which = b.index(0)
        if axis is not None:
            which = b.and_(index[axis], b.index(1))
            index = [b.shr_arith(i, b.index(1)) if d == axis else i for d, i in enumerate(index)]
        moved = b.add(c, b.cast(_linear(b, pairs, index), UINT64))
        x0, x1 = threefry_block(LoopWords(b), *_halves(b, k), *_halves(b, moved))
        if dtype == UINT64:
            return b.or_(b.shl(b.cast(x1, UINT64), b.const(32, UINT64)), b.cast(x0, UINT64))
        bits = b.select(b.eq(which, b.index(0)), x0, x1)
        return bits if dtype == UINT32 else b.cast(b.and_(bits, b.const(2 ** (8 * dtype.itemsize) - 1, UINT32)), dtype)

    return at, math.prod(pairs)


def _rng_bit_generator_loops(b: Builder, key: Any, *, shape: tuple[int, ...], dtype: Any, algorithm: Any,
                             out_sharding: Any) -> list[Any]:
    element = _threefry_element if algorithm == RandomAlgorithm.RNG_THREE_FRY else _philox_element
    at, blocks = element(b, key, shape, dtype)

    def new_state(index: Sequence[Any]) -> Any:
        old_key, counter = _state_words(b, key)
        moved = b.add(counter, b.const(blocks, UINT64))
        if key.dtype == UINT64:
            return b.select(b.eq(index[0], b.index(0)), old_key, moved)
        low, high = _halves(b, moved)
        old = key.at(index)
        return b.select(b.lt(index[0], b.index(2)), old, b.select(b.eq(index[0], b.index(2)), low, high))

    return [b.value(key.shape, key.dtype, new_state), b.value(shape, dtype, at)]


rules.loops[rng_bit_generator_p] = _rng_bit_generator_loops


def _rng_bit_generator_stablehlo(m: Any, key: Any, *, shape: tuple[int, ...], dtype: Any, algorithm: Any,
                                 out_sharding: Any) -> list[Any]:
    wide_state = ShapedArray((2,), UINT64)
    state = key
    if key.aval.dtype == UINT32:
        state = m.op("stablehlo.bitcast_convert", [m.reshape(key, (2, 2))], [wide_state])[0]
    made = ShapedArray(shape, dtype if dtype.itemsize >= 4 else UINT32)
    attributes = f"rng_algorithm = #stablehlo<rng_algorithm {_HLO_NAMES[RandomAlgorithm(algorithm)]}>"
    state, bits = m.op("stablehlo.rng_bit_generator", [state], [wide_state, made], attributes=attributes)
    if key.aval.dtype == UINT32:
        state = m.reshape(
            m.op("stablehlo.bitcast_convert", [state], [ShapedArray((2, 2), UINT32)])[0], (4,))
    return [state, m.convert(bits, dtype) if made.dtype != dtype else bits]


rules.stablehlos[rng_bit_generator_p] = _rng_bit_generator_stablehlo


def _rng_bit_generator_batch(args: Sequence[Any], dims: Sequence[int], *, shape: tuple[int, ...], dtype: Any,
                             algorithm: Any, out_sharding: Any) -> tuple[list[Any], tuple[int, int]]:
    # One state serves the whole batch: the bits of a mapped call differ from those of separate calls.
    (keys,), (dim,) = args, dims
    keys = batching.moveaxis(keys, dim, 0)
    first = squeeze(slice_in_dim(keys, 0, 1), (0,))
    size = get_aval(keys).shape[0]
    state, bits = rng_bit_generator_p.bind(
        first, shape=(size, *shape), dtype=dtype, algorithm=algorithm, out_sharding=out_sharding)
    new_keys = dynamic_update_slice(keys, broadcast(state, (1,)), (np.int32(0), np.int32(0)))
    return [new_keys, bits], (0, 0)


rules.batchers[rng_bit_generator_p] = _rng_bit_generator_batch
tells_apart.add(rng_bit_generator_p)


def rng_bit_generator(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = np.uint32,
                      algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT, *,
                      out_sharding: ShardingLike | None = None) -> tuple[Array, Array]:
    """Random bits straight from the compiler's generator.

    Args:
      key: the state, uint32[4] or uint64[2].
      shape: shape of the result.
      dtype: an unsigned integer dtype of 8 to 64 bits.
      algorithm: a `RandomAlgorithm`.
      out_sharding: sharding of the result.

    Returns:
      `(new_state, bits)`.
    """
    dtype = np.dtype(dtypes.canonicalize_dtype(dtype))
    state, bits = rng_bit_generator_p.bind(
        key, shape=tuple(shape), dtype=dtype, algorithm=RandomAlgorithm(algorithm), out_sharding=out_sharding)
    return state, bits


# --- uniform numbers without a key

rng_uniform_p = Primitive("rng_uniform")
rng_uniform_p.declare(distinct=True, nan=True, sizes=frozenset(("shape",)))
ad.defjvp_zero(rng_uniform_p)
tells_apart.add(rng_uniform_p)


@rng_uniform_p.def_abstract_eval
def _rng_uniform_abstract(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    if a.dtype != b.dtype:
        raise ValueError(
            f"Arguments to rng_uniform must have identical dtypes, got {a.dtype} and {b.dtype}.")
    if a.shape != () or b.shape != ():
        raise ValueError(f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}.")
    return ShapedArray(shape, a.dtype)


def _rng_uniform_loops(b: Builder, low: Any, high: Any, *, shape: tuple[int, ...]) -> Any:
    dtype = b.avals_out[0].dtype
    integral = np.issubdtype(dtype, np.integer) or dtype == np.bool_

    def at(index: Sequence[Any]) -> Any:
        position = b.cast(_linear(b, shape, index), UINT64)
        zero = b.const(0, UINT32)
        x0, x1 = threefry_block(LoopWords(b), zero, zero, *_halves(b, position))
        lo, hi = low.at([]), high.at([])
        bits = b.xor(x0, x1)
        if integral:
            span = b.cast(b.sub(hi, lo), UINT64)
            return b.add(lo, b.cast(b.rem(b.cast(bits, UINT64), span), dtype))
        if dtype == np.float64:
            wide = b.or_(b.shl(b.cast(x0, UINT64), b.const(32, UINT64)), b.cast(x1, UINT64))
            unit = b.mul(b.cast(b.shr_logical(wide, b.const(11, UINT64)), dtype), b.const(2.0**-53, dtype))
        else:
            single = np.dtype(np.float32)
            unit = b.mul(b.cast(b.shr_logical(bits, b.const(8, UINT32)), single), b.const(2.0**-24, single))
            unit = b.cast(unit, dtype)
        return b.add(lo, b.mul(b.sub(hi, lo), unit))

    return b.value(shape, dtype, at)


rules.loops[rng_uniform_p] = _rng_uniform_loops


def _rng_uniform_stablehlo(m: Any, a: Any, b: Any, *, shape: tuple[int, ...]) -> Any:
    dims = m.const(np.asarray(shape, np.int64), ShapedArray((len(shape),), np.dtype(np.int64)))
    return m.op("stablehlo.rng", [a, b, dims], [m.avals_out[0]],
                attributes="rng_distribution = #stablehlo<rng_distribution UNIFORM>")[0]


rules.stablehlos[rng_uniform_p] = _rng_uniform_stablehlo


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Uniform numbers in `[a, b)` without a key.

    Which numbers come is left to the platform: two calls may or may not give the same ones. Use
    `styrax.random.uniform` for numbers that a key determines.

    Args:
      a, b: scalars of one dtype, the bounds.
      shape: shape of the result.

    Returns:
      an array of shape `shape` and the bounds' dtype.
    """
    return rng_uniform_p.bind(a, b, shape=tuple(shape))


# --- key implementations


def _key_halves(key: Any) -> tuple[Any, Any]:
    return slice_in_dim(key, 0, 2), slice_in_dim(key, 2, 4)


def rbg_seed(seed: Any) -> Any:
    """A key of two equal Threefry keys."""
    half = threefry_seed(seed)
    return concatenate([half, half], 0)


def rbg_split(key: Any, shape: tuple[int, ...]) -> Any:
    """Splits both halves of a key as Threefry keys."""
    return concatenate([threefry_split(half, shape) for half in _key_halves(key)], len(shape))


def rbg_fold_in(key: Any, data: Any) -> Any:
    return concatenate([threefry_fold_in(half, data) for half in _key_halves(key)], 0)


def rbg_random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    if bit_width not in (8, 16, 32, 64):
        raise TypeError("requires 8-, 16-, 32- or 64-bit field width.")
    return rng_bit_generator(key, shape, f"uint{bit_width}")[1]


def unsafe_rbg_split(key: Any, shape: tuple[int, ...]) -> Any:
    """New keys out of the generator itself, fast and of unproven independence."""
    _, keys = rng_bit_generator(key, (10 * math.prod(shape), 4), np.uint32)
    return reshape(slice_in_dim(keys, 0, None, 10), (*shape, 4))


def unsafe_rbg_fold_in(key: Any, data: Any) -> Any:
    _, bits = rng_bit_generator(rbg_seed(data), (10, 4), np.uint32)
    return bitwise_xor(key, squeeze(slice_in_dim(bits, 9, 10), (0,)))

