"""The runtime's client: its version, its exception and its classes."""

from __future__ import annotations

from ...lib.xla_extension import ArrayImpl, Device, XlaRuntimeError

__all__ = ["ArrayImpl", "Device", "XlaRuntimeError"]
