"""JAX's internal modules, as far as libraries use them (`jax._src`).

Most are other names of our own modules: see `ROOTS` in `compat.finder`. The others are here.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        from ..finder import own_name

        own = own_name(f"jax._src.{name}") or ""
        try:
            return importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
    raise AttributeError(f"module 'jax._src' has no attribute {name!r}")
