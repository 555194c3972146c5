"""`import jax` and its submodules resolve to Styrax: one module object under both names."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

VERSION = "0.10.2"  # the JAX release whose interface this is


class Loader(importlib.abc.Loader):
    """Gives the Styrax module of the same path."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module("styrax" + spec.name[3:])
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # it stays the module that it is


class Finder(importlib.abc.MetaPathFinder):
    """Finds `jax` and `jax.*`, installed or not."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name != "jax" and not name.startswith("jax."):
            return None
        own = "styrax" + name[3:]
        if own != "styrax" and own not in sys.modules and importlib.util.find_spec(own) is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, Loader(), is_package=True)
        spec.submodule_search_locations = []
        return spec


_finder = Finder()


def install() -> None:
    """Makes `jax` mean Styrax in this process. RuntimeError if the real JAX has been imported already."""
    import styrax

    present = sys.modules.get("jax")
    if present is not None and present is not styrax:
        raise RuntimeError("jax has been imported already: install Styrax's drop-in first")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    styrax.__version__ = VERSION
    sys.modules["jax"] = styrax
