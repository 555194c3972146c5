"""The package of functions of NumPy's names, which has modules in JAX."""

from __future__ import annotations

from ... import numpy as _public
from . import modules_below

__getattr__ = modules_below("jax._src.numpy", _public)
