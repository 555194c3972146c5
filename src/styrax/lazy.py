"""Packages whose names are found where they are defined when they are first used."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `import styrax` loads this module: it imports next to nothing
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def names(package: str, homes: Mapping[str, str], aliases: Mapping[str, str] | None = None,
          modules: Iterable[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
      package: its `__name__`.
      homes: module, relative to `styrax` ("" for itself) -> the names it defines, with spaces between them.
        "name:its_name_there" for those that have another name there.
      aliases: further names of the same things.
      modules: submodules that can be used without being imported.
    """
    where: dict[str, tuple[str, str]] = {}
    for home, listed in homes.items():
        for entry in listed.split():
            name, _, there = entry.partition(":")
            where[name] = home, there or name
    for alias, name in (aliases or {}).items():
        where[alias] = where[name]
    submodules = frozenset(modules)
    public = sorted(name for name in where if not name.startswith("_"))

    def get(name: str) -> Any:
        found = where.get(name)
        if found is not None:
            value = getattr(importlib.import_module(f"styrax.{found[0]}" if found[0] else "styrax"), found[1])
            setattr(sys.modules[package], name, value)
            return value
        if name in submodules:
            path = f"{package}.{name}"
            try:
                return importlib.import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:
                    raise
        raise AttributeError(f"module {'jax' + package.removeprefix('styrax')!r} has no attribute {name!r}")

    def listing() -> list[str]:
        from importlib.machinery import PathFinder

        module = sys.modules[package]
        there = [name for name in submodules if PathFinder.find_spec(f"{package}.{name}", module.__path__) is not None]
        return sorted({*vars(module), *public, *there})

    return get, listing, public
