"""The package of functions of networks, which has modules in JAX."""

from __future__ import annotations

from ... import nn as _public
from . import modules_below

__getattr__ = modules_below("jax._src.nn", _public)
