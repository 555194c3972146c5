"""Clustering."""

from __future__ import annotations

from . import vq as vq
