"""The package of random numbers, which has modules in JAX."""

from __future__ import annotations

from ... import random as _public
from . import modules_below

__getattr__ = modules_below("jax._src.random", _public)
