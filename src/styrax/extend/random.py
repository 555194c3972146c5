"""Random number generators of one's own."""

from __future__ import annotations

from ..core.arrays.array import Array
from ..core.types.typing import ArrayLike, Function
from ..lax.random_bits.key_arrays import PRNGImpl, PRNGSpec, resolve_prng_impl
from ..lax.random_bits.prng import random_seed, rbg_prng_impl, threefry_prng_impl, unsafe_rbg_prng_impl
from ..lax.random_bits.threefry import threefry2x32_p, threefry_2x32


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Function, split: Function, random_bits: Function,
                     fold_in: Function, name: str = "<unnamed>", tag: str = "?") -> PRNGSpec:
    """A random number generator as five functions; what is returned goes where names of generators go.

    Args:
      key_shape: shape of the uint32 data of one key.
      seed: `seed(integer) -> key`.
      split: `split(key, shape) -> keys`.
      random_bits: `random_bits(key, bit_width, shape) -> bits`.
      fold_in: `fold_in(key, integer) -> key`.
      name: how it is printed.
      tag: the short name in key dtypes.
    """
    return PRNGSpec(PRNGImpl(key_shape, seed, split, random_bits, fold_in, name, tag))


def seed_with_impl(impl: PRNGImpl | PRNGSpec, seed: ArrayLike) -> Array:
    """A key of the generator `impl` from an integer."""
    return random_seed(seed, resolve_prng_impl(impl))


__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_2x32",
    "threefry_prng_impl", "unsafe_rbg_prng_impl",
]
