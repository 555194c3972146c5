"""The devices of a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.arrays import host_devices
from ...core.arrays.devices import Device
from ...core.tracing.errors import JaxRuntimeError

if TYPE_CHECKING:
    from .plugin_client import PluginBackend

# What a device's platform is called where that is not the name of its backend
PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}


class PluginDevice(Device):
    """A device of a plugin, which has the plugin's `handle` for it.

    Args:
      backend: that of the plugin.
      own: whether it is this process's. Another's has no client, and nothing can be put there.
    """

    __slots__ = ("backend", "handle")

    client: PluginBackend

    def __init__(self, backend: PluginBackend, handle: int, own: bool = True):
        call, text = backend.plugin.call, backend.plugin.text
        description = call("Device_GetDescription", device=handle).description
        cohort = host_devices.cohort
        super().__init__(
            PLATFORMS.get(backend.platform, backend.platform),
            call("DeviceDescription_Id", description=description).id,
            text("DeviceDescription_Kind", description=description), backend if own else None,
            cohort.number if own and cohort is not None else  # whether or not the plugin knows of others
            call("DeviceDescription_ProcessIndex", description=description).process,
            call("Device_LocalHardwareId", device=handle).id if own else None)
        self.backend = backend
        self.handle = handle

    @property
    def apart(self) -> bool:
        return True

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes in use, the most so far, the limit, … as far as the plugin counts them; None where it does not.

        Raises JaxRuntimeError for a device of another process.
        """
        if self.client is None:
            raise JaxRuntimeError("INVALID_ARGUMENT: MemoryStats is only supported for addressable PjRt devices.")
        try:
            told = self.client.plugin.call("Device_MemoryStats", device=self.handle)
        except JaxRuntimeError:
            return None
        names = [name for name, *_ in told._fields_[3:] if not name.startswith("has_")]
        return {name: getattr(told, name) for name in names if getattr(told, f"has_{name}", True)}

    def __repr__(self) -> str:
        name = "".join(word.capitalize() for word in self.backend.platform.split("_"))
        return f"{name}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.backend.platform}:{self.id}"

    def __reduce__(self) -> tuple[object, ...]:
        return _device, (self.backend.platform, self.id)


def _device(platform: str, id: int) -> Device:
    from ...core.arrays import backends

    return next(d for d in backends.all_devices(platform) if d.id == id)
