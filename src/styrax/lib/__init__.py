"""The library below: its version, and clients of platforms."""

from __future__ import annotations

from ..lazy import names
from ..version import JAX as __version__

__getattr__, __dir__, __all__ = names(__name__, {}, modules=("xla_bridge", "xla_extension"))
