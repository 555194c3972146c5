"""Classes of the runtime, by the names of older releases."""

from __future__ import annotations

from ...lib.xla_extension import ArrayImpl, Device, PyTreeDef, XlaRuntimeError

__all__ = ["ArrayImpl", "Device", "PyTreeDef", "XlaRuntimeError"]
