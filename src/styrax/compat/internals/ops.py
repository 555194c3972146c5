"""The package of sums and extrema of segments, which has modules in JAX."""

from __future__ import annotations

from ... import ops as _public
from . import modules_below

__getattr__ = modules_below("jax._src.ops", _public)
