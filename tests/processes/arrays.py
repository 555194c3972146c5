"""Arrays over the devices of several processes."""

from __future__ import annotations

ROWS: dict[str, list[str]] = {"arrays": []}
