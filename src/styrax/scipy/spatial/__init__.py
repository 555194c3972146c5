"""Geometry."""

from __future__ import annotations

from . import transform as transform
