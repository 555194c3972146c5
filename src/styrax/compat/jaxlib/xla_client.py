"""The runtime's client: its version, its exception and its classes."""

from __future__ import annotations

from ...core.arrays.hlo_shardings import HloSharding, OpSharding
from ..former.xla_client import ArrayImpl, Device, XlaRuntimeError

__all__ = ["ArrayImpl", "Device", "HloSharding", "OpSharding", "XlaRuntimeError"]
