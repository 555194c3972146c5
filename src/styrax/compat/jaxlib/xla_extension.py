"""Classes of the runtime, by the names of older releases."""

from __future__ import annotations

from ...transforms.jit import PjitFunction
from ..former.xla_client import ArrayImpl, Device, PyTreeDef, XlaRuntimeError

__all__ = ["ArrayImpl", "Device", "PjitFunction", "PyTreeDef", "XlaRuntimeError"]
