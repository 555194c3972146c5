"""Programs on several devices: libraries import the module; its names we lack."""

from __future__ import annotations

__all__: list[str] = []
