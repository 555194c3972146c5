"""Where the cache of compiled programs lies, and forgetting it."""

from __future__ import annotations

import os

from ...core.settings.config import config


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Sets the folder of the cache; None for none. Raises ValueError for what is no path."""
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Forgets the folder that the cache has used, so that the setting counts anew. Files stay."""


__all__ = ["reset_cache", "set_cache_dir"]
