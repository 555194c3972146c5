"""Classes that JAX defines in native code."""

from __future__ import annotations

from ....core.array import Array
from ....core.devices import Device, Sharding
from ....core.errors import JaxRuntimeError

ArrayImpl = Array

__all__ = ["Array", "ArrayImpl", "Device", "JaxRuntimeError", "Sharding"]
