"""The flags."""

from __future__ import annotations

from typing import Any

from ...core.settings import config as _config
from ...core.settings.config import config


def __getattr__(name: str) -> Any:
    return getattr(_config, name)


__all__ = ["config"]
