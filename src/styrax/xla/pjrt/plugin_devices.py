"""The devices of a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.arrays.devices import Device

if TYPE_CHECKING:
    from .plugin_client import PluginBackend

# What a device's platform is called where that is not the name of its backend
PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}


class PluginDevice(Device):
    """A device of a plugin, which has the plugin's `handle` for it."""

    __slots__ = ("handle",)

    client: PluginBackend

    def __init__(self, client: PluginBackend, handle: int):
        call = client.plugin.call
        description = call("Device_GetDescription", device=handle).description
        super().__init__(
            PLATFORMS.get(client.platform, client.platform),
            call("DeviceDescription_Id", description=description).id,
            client.plugin.text("DeviceDescription_Kind", description=description), client,
            call("DeviceDescription_ProcessIndex", description=description).process)
        self.handle = handle
        self.local_hardware_id = call("Device_LocalHardwareId", device=handle).id

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes in use, the most so far, the limit, … as far as the plugin counts them; None where it does not."""
        from ...core.tracing.errors import JaxRuntimeError

        try:
            told = self.client.plugin.call("Device_MemoryStats", device=self.handle)
        except JaxRuntimeError:
            return None
        names = [name for name, *_ in told._fields_[3:] if not name.startswith("has_")]
        return {name: getattr(told, name) for name in names if getattr(told, f"has_{name}", True)}

    def __repr__(self) -> str:
        name = "".join(word.capitalize() for word in self.client.platform.split("_"))
        return f"{name}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.client.platform}:{self.id}"

    def __reduce__(self) -> tuple[object, ...]:
        return _device, (self.client.platform, self.id)


def _device(platform: str, id: int) -> Device:
    from ...core.arrays import backends

    return next(d for d in backends.get(platform).devices() if d.id == id)
