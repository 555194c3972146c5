"""`shard_map`, by its former name."""

from __future__ import annotations

from ..parallel.device_mapping import shard_map

__all__ = ["shard_map"]
