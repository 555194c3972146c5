"""Classes of the runtime, by the names of older releases."""

from __future__ import annotations

from ...core.arrays.array import Array as ArrayImpl
from ...core.arrays.devices import Device
from ...core.tracing.errors import XlaRuntimeError
from ...core.trees.treedef import PyTreeDef

__all__ = ["ArrayImpl", "Device", "PyTreeDef", "XlaRuntimeError"]
