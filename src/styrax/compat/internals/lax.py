"""The package of operations, which has modules in JAX."""

from __future__ import annotations

from ... import lax as _public
from . import modules_below

__getattr__ = modules_below("jax._src.lax", _public)
