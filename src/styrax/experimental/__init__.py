"""Parts whose interface may still change."""

from __future__ import annotations

from ..lazy import names

_HOMES = {
    "transforms.callbacks": "io_callback",
    "core.settings.config": "enable_x64",
    "experimental.hijax": "cur_qdd",
}

__getattr__, __dir__, __all__ = names(__name__, _HOMES)
