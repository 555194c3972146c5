"""Random number generators of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..lax.random_bits.key_arrays import PRNGImpl, register_prng
from ..lax.random_bits.prng import random_seed, rbg_prng_impl, threefry_prng_impl, unsafe_rbg_prng_impl
from ..lax.random_bits.threefry import threefry2x32_p, threefry_2x32


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Callable, split: Callable, random_bits: Callable,
                     fold_in: Callable, name: str = "<unnamed>", tag: str = "?") -> PRNGImpl:
    """Makes a random number generator known by its name.

    Args:
      key_shape: shape of the uint32 data of one key.
      seed: `seed(integer) -> key`.
      split: `split(key, shape) -> keys`.
      random_bits: `random_bits(key, bit_width, shape) -> bits`.
      fold_in: `fold_in(key, integer) -> key`.
      name: the name that `random.key(seed, impl=name)` takes.
      tag: the short name in key dtypes.

    Raises:
      ValueError: another generator has the name.
    """
    return register_prng(PRNGImpl(key_shape, seed, split, random_bits, fold_in, name, tag))


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Any:
    """A key of the generator `impl` from an integer."""
    return random_seed(seed, impl)


__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_2x32",
    "threefry_prng_impl", "unsafe_rbg_prng_impl",
]
