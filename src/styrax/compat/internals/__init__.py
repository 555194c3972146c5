"""JAX's internal modules, as far as libraries use them (`jax._src`).

Most are other names of our own modules: see `ROOTS` in `compat.finder`. The others are here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any


def modules_below(package: str, public: ModuleType) -> Callable[[str], Any]:
    """A module's `__getattr__` for a package of JAX that has modules which stand for ours (`ROOTS` in `compat.finder`),
    and what is public. Our own packages inside are none of JAX's."""
    def find(name: str) -> Any:
        from ..finder import ROOTS

        home = ROOTS.get(f"{package}.{name}")
        if home is not None:
            return importlib.import_module(home)
        found = None if name.startswith("__") else getattr(public, name)  # (not where its own modules lie)
        if found is None or isinstance(found, ModuleType):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return found

    return find


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
