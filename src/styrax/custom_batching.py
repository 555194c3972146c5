"""Batching rules that users give."""

from __future__ import annotations

from .transforms.custom_batching import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
