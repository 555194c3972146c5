"""Threefry-2x32, the counter-based generator behind the default random keys.

`threefry2x32` is the block function: it encrypts pairs of 32-bit counters under a 64-bit key. The
functions below build a key implementation (seed, split, fold in, bits) out of it; they work on the
raw `uint32[2]` data of one key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import factors, rules
from styrax.core.programs.primitive import Primitive, multiple_results
from styrax.core.programs.spreading import elementwise
from styrax.core.settings import config
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import batching

from ..casting import convert_element_type
from ..elementwise.bits import bitwise_and, bitwise_or, bitwise_xor, shift_left, shift_right_logical
from ..indexing.static_slicing import slice_in_dim
from ..shaping.broadcasting import broadcast_in_dim, broadcast_shapes, squeeze
from ..shaping.filling import iota
from ..shaping.joining import concatenate
from ..shaping.reshaping import reshape

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

UINT32 = np.dtype(np.uint32)
UINT64 = np.dtype(np.uint64)

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
KEY_PARITY = 0x1BD11BDA


def block(word: Any, k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The twenty rounds, in any arithmetic of 32-bit words that `word` offers."""
    keys = (k0, k1, word.xor(word.xor(k0, k1), word.const(KEY_PARITY)))
    x0, x1 = word.add(x0, keys[0]), word.add(x1, keys[1])
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x0 = word.add(x0, x1)
            x1 = word.xor(word.rotate_left(x1, distance), x0)
        x0 = word.add(x0, keys[(group + 1) % 3])
        x1 = word.add(word.add(x1, keys[(group + 2) % 3]), word.const(group + 1))
    return x0, x1


class LoopWords:
    """32-bit words as scalars of the loop builder."""

    def __init__(self, b: Any):
        self.b = b
        self.add = b.add
        self.xor = b.xor

    def const(self, value: int) -> Any:
        return self.b.const(value, UINT32)

    def rotate_left(self, x: Any, distance: int) -> Any:
        b = self.b
        return b.or_(b.shl(x, self.const(distance)), b.shr_logical(x, self.const(32 - distance)))

    def mul_wide(self, x: Any, factor: int) -> tuple[Any, Any]:
        """The high and the low word of a product."""
        b = self.b
        product = b.mul(b.cast(x, UINT64), b.const(factor, UINT64))
        return b.cast(b.shr_logical(product, b.const(32, UINT64)), UINT32), b.cast(product, UINT32)


class HloWords:
    """32-bit words as StableHLO arrays of one shape."""

    def __init__(self, m: Any, aval: ShapedArray):
        self.m = m
        self.aval = aval
        self.constants: dict[int, Any] = {}

    def _op(self, name: str, x: Any, y: Any) -> Any:
        return self.m.op(f"stablehlo.{name}", [x, y], [self.aval])[0]

    def add(self, x: Any, y: Any) -> Any:
        return self._op("add", x, y)

    def xor(self, x: Any, y: Any) -> Any:
        return self._op("xor", x, y)

    def const(self, value: int) -> Any:
        if value not in self.constants:
            self.constants[value] = hlo_scalar(self.m, value, self.aval)
        return self.constants[value]

    def rotate_left(self, x: Any, distance: int) -> Any:
        left = self._op("shift_left", x, self.const(distance))
        return self._op("or", left, self._op("shift_right_logical", x, self.const(32 - distance)))

    def mul_wide(self, x: Any, factor: int) -> tuple[Any, Any]:
        m, wide = self.m, ShapedArray(self.aval.shape, UINT64)
        product = m.op("stablehlo.multiply", [m.convert(x, UINT64), hlo_scalar(m, factor, wide)], [wide])[0]
        high = m.op("stablehlo.shift_right_logical", [product, hlo_scalar(m, 32, wide)], [wide])[0]
        return m.convert(high, UINT32), m.convert(product, UINT32)


def hlo_scalar(m: Any, value: Any, aval: ShapedArray) -> Any:
    """A constant spread over an array's shape."""
    scalar = m.const(np.asarray(value, aval.dtype), ShapedArray((), aval.dtype))
    return m.broadcast_in_dim(scalar, aval, ()) if aval.shape else scalar


# --- block functions as primitives


def block_primitive(name: str, results: int, block: Callable[..., Sequence[Any]]) -> Primitive:
    """The primitive of a block function: uint32 key and counter words that broadcast, `results` words of each block."""
    primitive = multiple_results(name)
    primitive.declare(sharding=elementwise, factors=factors.elementwise)
    batching.defbroadcasting(primitive)

    @primitive.def_abstract_eval
    def abstract(*avals: ShapedArray) -> list[ShapedArray]:
        if any(a.dtype != UINT32 for a in avals):
            raise TypeError(f"Arguments to {name} must have uint32 type, got {avals}")
        ranks = {len(a.shape) for a in avals if a.shape}
        if len(ranks) > 1:
            raise TypeError(f"{name}: arrays must have the same number of dimensions, got {ranks}")
        try:
            shape = broadcast_shapes(*(a.shape for a in avals))
        except ValueError:
            shapes = ", ".join(str(a.shape) for a in avals)
            raise TypeError(f"{name} got incompatible shapes for broadcasting: {shapes}.") from None
        return [ShapedArray(shape, UINT32)] * results

    def loops(b: Builder, *operands: Any) -> list[Any]:
        words = LoopWords(b)

        def element(value: Any, index: Sequence[Any]) -> Any:
            dims = value.shape
            return value.at([b.index(0) if d == 1 else i for d, i in zip(dims, index)] if dims else [])

        def result(which: int) -> Any:
            return lambda index: block(words, *(element(v, index) for v in operands))[which]

        return [b.value(b.avals_out[0].shape, UINT32, result(i)) for i in range(results)]

    def stablehlo(m: Any, *operands: Any) -> list[Any]:
        aval = m.avals_out[0]
        ndim = len(aval.shape)
        spread = [
            x if x.aval.shape == aval.shape
            else m.broadcast_in_dim(x, aval, tuple(range(ndim - len(x.aval.shape), ndim)))
            for x in operands
        ]
        return list(block(HloWords(m, aval), *spread))

    rules.loops[primitive] = loops
    rules.stablehlos[primitive] = stablehlo
    return primitive


threefry2x32_p = block_primitive("threefry2x32", 2, block)
threefry2x32_p.declare(elementwise=True)


# --- counters

iota_2x32_shape_p = multiple_results("iota_2x32_shape")
iota_2x32_shape_p.declare(sizes=frozenset(("shape",)))


@iota_2x32_shape_p.def_abstract_eval
def _iota_2x32_shape_abstract(*, shape: tuple[int, ...]) -> list[ShapedArray]:
    return [ShapedArray(shape, UINT32)] * 2


def _iota_2x32_shape_loops(b: Builder, *, shape: tuple[int, ...]) -> list[Any]:
    def linear(index: Sequence[Any]) -> Any:
        position = b.index(0)
        for size, i in zip(shape, index):
            position = b.add(b.mul(position, b.index(size)), i)
        return position

    def high(index: Sequence[Any]) -> Any:
        if math.prod(shape) <= 2**32:
            return b.const(0, UINT32)
        return b.cast(b.shr_logical(b.cast(linear(index), UINT64), b.const(32, UINT64)), UINT32)

    return [b.value(shape, UINT32, high), b.value(shape, UINT32, lambda index: b.cast(linear(index), UINT32))]


rules.loops[iota_2x32_shape_p] = _iota_2x32_shape_loops


def _iota_2x32_shape_stablehlo(m: Any, *, shape: tuple[int, ...]) -> list[Any]:
    wide = ShapedArray(shape, UINT64)
    if not shape:
        zero = m.const(np.uint32(0), m.avals_out[0])
        return [zero, zero]
    position = None
    stride = 1
    for dimension in reversed(range(len(shape))):
        along = m.op("stablehlo.iota", [], [wide], attributes=f"iota_dimension = {dimension} : i64")[0]
        along = m.op("stablehlo.multiply", [along, hlo_scalar(m, stride, wide)], [wide])[0]
        position = along if position is None else m.op("stablehlo.add", [position, along], [wide])[0]
        stride *= shape[dimension]
    high = m.op("stablehlo.shift_right_logical", [position, hlo_scalar(m, 32, wide)], [wide])[0]
    return [m.convert(high, UINT32), m.convert(position, UINT32)]


rules.stablehlos[iota_2x32_shape_p] = _iota_2x32_shape_stablehlo


# --- a key implementation


def threefry_2x32(keypair: tuple[ArrayLike, ArrayLike], count: ArrayLike) -> Array:
    """Encrypts an array of uint32 counters under a key given as two uint32 scalars.

    The counters are taken in two halves, the first and second words of each block; an odd count is
    padded. Raises TypeError for other dtypes.
    """
    k0, k1 = keypair
    aval = get_aval(count)
    if any(get_aval(x).dtype != UINT32 for x in (k0, k1, count)):
        found = [get_aval(x).dtype for x in (k0, k1, count)]
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {found}")
    size = math.prod(aval.shape)
    flat = reshape(count, (size,)) if len(aval.shape) != 1 else count
    odd = size % 2
    if odd:
        flat = concatenate([flat, np.zeros(1, UINT32)], 0)
    half = (size + odd) // 2
    x0, x1 = slice_in_dim(flat, 0, half), slice_in_dim(flat, half, size + odd)
    out = concatenate(threefry2x32_p.bind(k0, k1, x0, x1), 0)
    if odd:
        out = slice_in_dim(out, 0, size)
    return reshape(out, aval.shape)


def key_words(key: Any) -> tuple[Any, ...]:
    """The words of one key as scalars."""
    return tuple(squeeze(slice_in_dim(key, i, i + 1), (0,)) for i in range(get_aval(key).shape[0]))


def stack_words(words: Sequence[Any]) -> Any:
    """Arrays of one shape as the last axis of one array."""
    shape = get_aval(words[0]).shape
    columns = [broadcast_in_dim(w, (*shape, 1), tuple(range(len(shape)))) for w in words]
    return concatenate(columns, len(shape))


def threefry_seed(seed: Any) -> Any:
    """A key from an integer scalar: its high and its low 32 bits.

    Seeds of 32 bits or fewer have zero high bits, negative ones too.
    """
    aval = get_aval(seed)
    if aval.shape:
        raise TypeError(f"PRNG key seed must be a scalar; got {seed!r}.")
    if not np.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    if aval.dtype.itemsize < 8:
        low = convert_element_type(seed, UINT32)
        high = bitwise_xor(low, low)
    else:
        bits = convert_element_type(seed, UINT64)
        high = convert_element_type(shift_right_logical(bits, np.uint64(32)), UINT32)
        low = convert_element_type(bitwise_and(bits, np.uint64(0xFFFFFFFF)), UINT32)
    return stack_words([high, low])


def threefry_split(key: Any, shape: tuple[int, ...]) -> Any:
    """`shape` new keys from one: uint32[*shape, 2]."""
    k0, k1 = key_words(key)
    if config.config.jax_threefry_partitionable:
        return stack_words(threefry2x32_p.bind(k0, k1, *iota_2x32_shape_p.bind(shape=shape)))
    count = math.prod(shape)
    return reshape(threefry_2x32((k0, k1), iota(UINT32, 2 * count)), (*shape, 2))


def threefry_fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and 32 bits of data."""
    return threefry_2x32(key_words(key), threefry_seed(data))


def threefry_random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned integers of 8, 16, 32 or 64 random bits.

    With `jax_threefry_partitionable` the bits at an index depend on that index alone; without it
    they are those of the older generator, which encrypts the two halves of the output together.
    """
    if bit_width not in (8, 16, 32, 64):
        raise TypeError("requires 8-, 16-, 32- or 64-bit field width.")
    dtype = np.dtype(f"uint{bit_width}")
    if config.config.jax_threefry_partitionable:
        return _bits_by_index(key, dtype, shape)
    return _bits_by_halves(key, dtype, shape)


def _bits_by_index(key: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    high, low = threefry2x32_p.bind(*key_words(key), *iota_2x32_shape_p.bind(shape=shape))
    if dtype.itemsize == 8:
        return join_words(high, low)
    bits = bitwise_xor(high, low)
    return bits if dtype == UINT32 else convert_element_type(bits, dtype)


def join_words(high: Any, low: Any) -> Any:
    """64 bits of their high and low words."""
    wide = convert_element_type(high, UINT64)
    shape = get_aval(high).shape
    distance = broadcast_in_dim(np.uint64(32), shape, ())
    return bitwise_or(shift_left(wide, distance), convert_element_type(low, UINT64))


# The counters of one run of the older generator are 32-bit; larger outputs take one subkey per run.
_RUN = 2**32 - 1


def _bits_by_halves(key: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    size = math.prod(shape)
    width = 8 * dtype.itemsize
    words = -(-width * size // 32)
    runs, rest = divmod(words, _RUN)
    if runs == 0:
        bits = threefry_2x32(key_words(key), iota(UINT32, rest))
    else:
        keys = threefry_split(key, (runs + 1,))
        subkeys = [squeeze(slice_in_dim(keys, i, i + 1), (0,)) for i in range(runs + 1)]
        counts = [_RUN] * runs + [rest]
        bits = concatenate(
            [threefry_2x32(key_words(k), iota(UINT32, n)) for k, n in zip(subkeys, counts, strict=True)], 0)
    if width == 64:
        bits = join_words(slice_in_dim(bits, 0, words // 2), slice_in_dim(bits, words // 2, words))
    elif width < 32:
        parts = 32 // width
        spread = broadcast_in_dim(bits, (words, parts), (0,))
        distance = broadcast_in_dim(np.arange(0, 32, width, dtype=UINT32), (words, parts), (1,))
        bits = convert_element_type(shift_right_logical(spread, distance), dtype)
        bits = slice_in_dim(reshape(bits, (words * parts,)), 0, size)
    return reshape(bits, shape)
