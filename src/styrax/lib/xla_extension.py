"""Classes of the runtime, by the names of older releases."""

from __future__ import annotations

from ..core.array import Array as ArrayImpl
from ..core.devices import Device
from ..core.errors import XlaRuntimeError
from ..core.treedef import PyTreeDef

__all__ = ["ArrayImpl", "Device", "PyTreeDef", "XlaRuntimeError"]
