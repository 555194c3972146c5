"""The module `jax.config` of old, which is the object of that name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ...core.settings.config import config


class _Config(ModuleType):
    """Importing a submodule puts it into the package, over the object of the same name: so it does what that does."""

    config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(config, name)


sys.modules[__name__].__class__ = _Config
