"""For libraries that extend the system: programs as data, primitives of their own, random number generators."""

from __future__ import annotations

from ..lazy import names

__getattr__, __dir__, __all__ = names(
    __name__, {}, modules=("backend", "core", "linear_util", "random", "sharding", "source_info_util"))
