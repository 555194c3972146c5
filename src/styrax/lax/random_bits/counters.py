"""Counter-based generators beside the default one: Philox-2x32, Philox-4x32 and Threefry-4x32.

Each is a block function, which encrypts counters under a key, and one row of `_generator`, which
makes a key implementation of it. The functions work on the raw uint32 data of one key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax.core.programs.named import named
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval

from ..casting import convert_element_type
from ..elementwise.bits import bitwise_xor
from ..shaping.broadcasting import broadcast_in_dim
from .key_arrays import PRNGImpl
from .threefry import (
    KEY_PARITY,
    block_primitive,
    iota_2x32_shape_p,
    join_words,
    key_words,
    stack_words,
    threefry_seed,
)

UINT32 = np.dtype(np.uint32)

PHILOX_2_FACTOR = 0xD256D193
PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def philox_2x32_block(word: Any, key: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The ten rounds, in any arithmetic of 32-bit words that `word` offers."""
    for turn in range(10):
        high, low = word.mul_wide(x0, PHILOX_2_FACTOR)
        k = word.add(key, word.const(turn * PHILOX_WEYL[0] & 0xFFFFFFFF))
        x0, x1 = word.xor(word.xor(high, x1), k), low
    return x0, x1


def philox_4x32_block(word: Any, *words: Any) -> Sequence[Any]:
    """The ten rounds on two key words and four counters."""
    key, x = words[:2], words[2:]
    for turn in range(10):
        k = [word.add(w, word.const(turn * weyl & 0xFFFFFFFF)) for w, weyl in zip(key, PHILOX_WEYL, strict=True)]
        (high0, low0), (high1, low1) = (word.mul_wide(v, f) for v, f in zip(x[::2], PHILOX_FACTORS, strict=True))
        x = (word.xor(word.xor(high1, x[1]), k[0]), low1, word.xor(word.xor(high0, x[3]), k[1]), low0)
    return x


def threefry_4x32_block(word: Any, *words: Any) -> Sequence[Any]:
    """The twenty rounds on four key words and four counters."""
    parity = word.const(KEY_PARITY)
    for k in words[:4]:
        parity = word.xor(parity, k)
    keys = (*words[:4], parity)
    x = [word.add(v, k) for v, k in zip(words[4:], keys)]
    for turn in range(20):
        first, second = ROTATIONS[turn % 8]
        partners = (1, 3) if turn % 2 == 0 else (3, 1)
        for target, partner, distance in zip((0, 2), partners, (first, second), strict=True):
            x[target] = word.add(x[target], x[partner])
            x[partner] = word.xor(word.rotate_left(x[partner], distance), x[target])
        if turn % 4 == 3:
            group = turn // 4 + 1
            x = [word.add(v, keys[(group + i) % 5]) for i, v in enumerate(x)]
            x[3] = word.add(x[3], word.const(group))
    return x


philox2x32_p = block_primitive("philox2x32", 2, philox_2x32_block)
philox4x32_p = block_primitive("philox4x32", 4, philox_4x32_block)
threefry4x32_p = block_primitive("threefry4x32", 4, threefry_4x32_block)


def _xor_all(words: Sequence[Any]) -> Any:
    out = words[0]
    for w in words[1:]:
        out = bitwise_xor(out, w)
    return out


def _generator(primitive: Primitive, tag: str, key_size: int, block_size: int,
               seed_words: Callable[[Any, Any], Sequence[Any]],
               halves: Callable[[Sequence[Any]], tuple[Any, Any]]) -> PRNGImpl:
    """A key implementation.

    Args:
      primitive: the block function.
      key_size, block_size: words of a key and of a block.
      seed_words: key and counter of the block that becomes the key of a seed of two words.
      halves: two words of a block for 64 random bits.
    """

    def run(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
        shape = next(get_aval(c).shape for c in counter if c is not None)
        spread = [broadcast_in_dim(np.uint32(0), shape, ()) if c is None else c for c in counter]
        return primitive.bind(*key, *spread)

    zeros: list[Any] = [None] * (block_size - 2)  # the words of a counter that stay 0

    def seed(value: Any) -> Any:
        words = seed_words(*key_words(threefry_seed(value)))
        return stack_words(run(words[:key_size], words[key_size:])[:key_size])

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        return stack_words(run(key_words(key), [*zeros, *iota_2x32_shape_p.bind(shape=shape)])[:key_size])

    def fold_in(key: Any, data: Any) -> Any:
        return stack_words(run(key_words(key), [*zeros, None, data])[:key_size])

    def random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
        if bit_width not in (8, 16, 32, 64):
            raise TypeError("requires 8-, 16-, 32- or 64-bit field width.")
        words = run(key_words(key), [*iota_2x32_shape_p.bind(shape=shape), *zeros])
        if bit_width == 64:
            return join_words(*halves(words))
        bits = _xor_all(words)
        return bits if bit_width == 32 else convert_element_type(bits, np.dtype(f"uint{bit_width}"))

    for function in (seed, split, fold_in, random_bits):
        named(function, f"{primitive.name}_{function.__name__}")
    return PRNGImpl((key_size,), seed, split, random_bits, fold_in, primitive.name, tag)


ZERO = np.uint32(0)

philox2x32_prng_impl = _generator(
    philox2x32_p, "phx2", 1, 2, lambda high, low: (ZERO, high, low), lambda words: (words[0], words[1]))
philox4x32_prng_impl = _generator(
    philox4x32_p, "phx4", 2, 4, lambda high, low: (ZERO, ZERO, high, low, ZERO, ZERO),
    lambda words: (words[0], words[1]))
threefry4x32_prng_impl = _generator(
    threefry4x32_p, "fry4", 4, 4, lambda high, low: (high, low, *[ZERO] * 6),
    lambda words: (bitwise_xor(words[0], words[2]), bitwise_xor(words[1], words[3])))
