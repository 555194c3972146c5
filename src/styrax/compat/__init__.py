"""Programs written for JAX, unchanged. See README.md."""

from __future__ import annotations

from .finder import install, installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    if name == "internals":
        import importlib

        return importlib.import_module(f"{__name__}.internals")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["install", "installed"]
