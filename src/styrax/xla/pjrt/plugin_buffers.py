"""The memory of arrays on a plugin's devices."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from ...core.arrays.backends import HOST
from ...core.arrays.dlpack import strided_view
from .c_api import ELEMENTS, PACKED, filled, structure
from .plugin import Plugin

if TYPE_CHECKING:
    from .plugin_devices import PluginDevice

_STRIDES = 1  # of a layout's two notations; this module uses the other, which is 0


class BufferType:
    """What buffers may have in common: device, dtype and shape. A client has one for each such, so that programs check
    their arguments by identity."""

    __slots__ = ("device", "dtype", "element", "nbytes", "plugin", "shape")

    def __init__(self, device: PluginDevice, dtype: np.dtype, shape: tuple[int, ...]):
        self.device = device
        self.plugin: Plugin = device.client.plugin
        self.dtype = dtype
        self.shape = shape
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.element = element_type(dtype)

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)} on {self.device}"


def element_type(dtype: np.dtype) -> int:
    """The number of a dtype among PJRT's. Raises NotImplementedError for one that it lacks."""
    number = ELEMENTS.get(dtype.name)
    if number is None:
        raise NotImplementedError(f"PJRT has no elements of dtype {dtype.name}")
    return number


class Buffer:
    """A buffer of a plugin, which is let go of with this object."""

    __slots__ = ("handle", "settled", "type", "__weakref__")

    def __init__(self, handle: int, type: BufferType):
        self.handle = handle
        self.type = type
        self.settled = False  # whether its elements are known to be there

    def __del__(self) -> None:
        try:
            self.type.plugin.destroy_buffer(self.handle)
        except (AttributeError, TypeError):  # there was none, or the interpreter ends
            pass

    @property
    def device(self) -> PluginDevice:
        return self.type.device

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    @property
    def address(self) -> int:
        """Where the elements lie on the device, once they are there."""
        self.wait()
        return self.type.plugin.call("Buffer_UnsafePointer", buffer=self.handle).address

    def wait(self) -> None:
        """Waits for the program that writes it. Raises JaxRuntimeError for the program's failure."""
        if not self.settled:
            plugin = self.type.plugin
            plugin.wait(plugin.call("Buffer_ReadyEvent", buffer=self.handle).event)
            self.settled = True

    def ready(self) -> bool:
        plugin = self.type.plugin
        return self.settled or plugin.happened(plugin.call("Buffer_ReadyEvent", buffer=self.handle).event)

    def on(self, device: PluginDevice) -> Buffer:
        """The elements on another device of the client."""
        kind = self.type
        if device is kind.device:
            return self
        copy = kind.plugin.call("Buffer_CopyToDevice", buffer=self.handle, device=device.handle).copy
        return Buffer(copy, device.client.type_of(device, kind.dtype, kind.shape))

    def numpy(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """The elements as NumPy's: in place where the host reads the device's memory, else copied."""
        kind = self.type
        if kind.device.client.dlpack_type == HOST and kind.dtype.name not in PACKED and kind.nbytes:
            out = strided_view(self.address, shape, dtype, None, self)
        else:
            out = self._copied().view(dtype).reshape(shape)
        out.flags.writeable = False
        return out

    def _copied(self) -> np.ndarray:
        kind = self.type
        out = np.empty(kind.shape, kind.dtype)
        if kind.nbytes:  # by rows, whatever order the device has
            order = (ctypes.c_int64 * out.ndim)(*reversed(range(out.ndim)))
            layout = filled("HostLayout", tiled_size=ctypes.sizeof(structure("HostLayout")) - 24, rank=out.ndim,
                            minor_to_major=ctypes.addressof(order))
            kind.plugin.wait(kind.plugin.call(
                "Buffer_ToHostBuffer", buffer=self.handle, layout=ctypes.addressof(layout), target=out.ctypes.data,
                size=out.nbytes).event)
        return out
