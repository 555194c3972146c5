"""What travels to the hosts of devices with functions. Meshes, devices and shardings pickle by rules of their own."""

from __future__ import annotations

from ...core.arrays.devices import Device


class DeviceList(tuple[Device, ...]):
    """Devices in order."""

    __slots__ = ()


__all__ = ["DeviceList"]
