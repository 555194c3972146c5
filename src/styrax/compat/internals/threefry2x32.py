"""The generator of most keys, and its functions."""

from __future__ import annotations

from ...extend.random import threefry2x32_p, threefry_2x32, threefry_prng_impl
from ...lax.random_bits.threefry import threefry_fold_in, threefry_random_bits, threefry_seed, threefry_split

__all__ = [
    "threefry2x32_p", "threefry_2x32", "threefry_fold_in", "threefry_prng_impl", "threefry_random_bits",
    "threefry_seed", "threefry_split",
]
