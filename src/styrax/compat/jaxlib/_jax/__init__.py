"""Classes that JAX defines in native code."""

from __future__ import annotations

from ....core.arrays.array import Array
from ....core.arrays.devices import Device, Sharding
from ....core.tracing.errors import JaxRuntimeError
from ....transforms.jit import PjitFunction

ArrayImpl = Array

__all__ = ["Array", "ArrayImpl", "Device", "JaxRuntimeError", "PjitFunction", "Sharding"]
