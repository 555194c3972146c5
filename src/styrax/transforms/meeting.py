"""Programs whose arguments may be on devices with memory of their own: compiled for the device where they meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.arrays import backends, mesh, moving
from ..core.arrays.devices import Device, ManyDevices, Sharding
from ..core.arrays.shardings import NamedSharding
from ..core.programs.following import read_arguments
from ..core.programs.jaxpr import ClosedJaxpr

Code = Callable[..., list[Any]]


class Meeting:
    """The code of a program for each device that it was called on.

    It runs on the device that the arguments that it reads are committed to, otherwise on those of the mesh in force, or
    on the default one; arguments that are not committed are moved there.

    Args:
      closed: the program.
      name: its name, for messages.
      compiled: gives the code for a device, None for the default one.
      home: the devices that the program itself names, in the place of one, where they are not the default backend's.
    """

    __slots__ = ("closed", "codes", "compiled", "home", "mesh", "name", "read", "recent")

    def __init__(self, closed: ClosedJaxpr, name: str, compiled: Callable[[Any], Code],
                 home: Device | ManyDevices | None = None):
        self.closed = closed
        self.home = home
        self.name = name
        self.compiled = compiled
        self.codes: dict[Device | ManyDevices | None, Code] = {}
        self.recent: Code | None = None
        self.mesh = mesh.state.concrete  # that was in force then
        self.read = read_arguments(closed)

    @property
    def code(self) -> Code:
        """That of the latest call."""
        return self.recent or self._code(self.home)

    def _code(self, device: Device | ManyDevices | None) -> Code:
        found = self.codes.get(device)
        if found is None:
            found = self.codes[device] = self.compiled(device)
        return found

    def expect(self, given: Sequence[Sharding | None]) -> None:
        """Prepares for arguments that are spread so."""
        told = next((s for s in given if s is not None and not (
            isinstance(s, NamedSharding) and isinstance(s.mesh, mesh.AbstractMesh))), None)
        device = self.home or (None if told is None else moving.home(told._device_assignment))
        self.recent = self._code(device)
        if isinstance(device, ManyDevices) and len(given) == len(self.closed.in_avals):
            self.recent.expect([s if isinstance(s, NamedSharding) else None for s in given])  # type: ignore[attr-defined]

    def __call__(self, *args: Any) -> list[Any]:
        if self.recent is not None and self.read and self.mesh is mesh.state.concrete:
            try:
                return self.recent(*args)
            except backends.Elsewhere:
                pass
        device = moving.common_device([args[i] for i in self.read], self._argument)
        if self.home is not None:
            if device is not None and device is not self.home and not (
                    device.client is self.home.client and device.client.shared_memory):
                raise ValueError("Received incompatible devices for jitted computation. Got an argument of "
                                 f"{self.name} with device ids [{device.id}] on platform {device.platform.upper()} and "
                                 f"a sharding inside jit with device ids [{self.home.id}]")
            device = self.home
        elif device is None:
            device = moving.spread_over(args) or moving.around()  # of an argument that is not read, or of none
        default = backends.get()
        if device is not None and device.client is default and default.shared_memory:
            device = None
        target = default.devices()[0] if device is None else device
        self.recent, self.mesh = self._code(device), mesh.state.concrete
        if device is not None or moving.elsewhere(args, default) or not default.shared_memory:
            args = tuple([moving.moved(x, target) for x in args])
        return self.recent(*args)

    def _argument(self, i: int) -> str:
        names: Sequence[str] = self.closed.jaxpr.debug_info.arg_names
        number = self.read[i]
        return f"argument {names[number] if number < len(names) else f'number {number}'} of {self.name}"
