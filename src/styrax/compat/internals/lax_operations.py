"""The module of most operations, with a private one that libraries call."""

from __future__ import annotations

from ... import lax as _public
from ...lax.casting import _convert_element_type as _convert_element_type
from . import modules_below

__getattr__ = modules_below("jax._src.lax.lax", _public)
