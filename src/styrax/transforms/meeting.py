"""Programs whose arguments may be on devices with memory of their own: compiled for the device where they meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.arrays import backends, moving
from ..core.arrays.devices import Device
from ..core.programs.jaxpr import ClosedJaxpr, Literal

Code = Callable[..., list[Any]]


class Meeting:
    """The code of a program for each device that it was called on.

    It runs on the device that the arguments that it reads are committed to, otherwise on the default one; arguments
    that are not committed are moved there.

    Args:
      closed: the program.
      name: its name, for messages.
      compiled: gives the code for a device, None for the default one.
      home: the devices that the program itself names, where they are several processes'.
    """

    __slots__ = ("closed", "codes", "compiled", "home", "name", "read", "recent")

    def __init__(self, closed: ClosedJaxpr, name: str, compiled: Callable[[Device | None], Code],
                 home: Device | None = None):
        self.closed = closed
        self.home = home
        self.name = name
        self.compiled = compiled
        self.codes: dict[Device | None, Code] = {}
        self.recent: Code | None = None
        used = {v for eqn in closed.eqns for v in eqn.invars if type(v) is not Literal}
        used |= {v for v in closed.outvars if type(v) is not Literal}
        self.read = [i for i, v in enumerate(closed.invars) if v in used]

    @property
    def code(self) -> Code:
        """That of the latest call."""
        return self.recent or self._code(None)

    def _code(self, device: Device | None) -> Code:
        found = self.codes.get(device)
        if found is None:
            found = self.codes[device] = self.compiled(device)
        return found

    def __call__(self, *args: Any) -> list[Any]:
        if self.recent is not None and self.read:
            try:
                return self.recent(*args)
            except backends.Elsewhere:
                pass
        device = moving.common_device([args[i] for i in self.read], self._argument)
        if self.home is not None:
            if device is not None and device is not self.home:
                raise ValueError("Received incompatible devices for jitted computation. Got an argument of "
                                 f"{self.name} with device ids [{device.id}] on platform {device.platform.upper()} and "
                                 f"a sharding inside jit with device ids [{self.home.id}]")
            device = self.home
        elif device is None:
            device = moving.spread_over(args)  # of an argument that is not read
        default = backends.get()
        if device is not None and device.client is default and default.shared_memory:
            device = None
        target = default.devices()[0] if device is None else device
        self.recent = self._code(device)
        if device is not None or moving.elsewhere(args, default) or not default.shared_memory:
            args = tuple([moving.moved(x, target) for x in args])
        return self.recent(*args)

    def _argument(self, i: int) -> str:
        names: Sequence[str] = self.closed.jaxpr.debug_info.arg_names
        number = self.read[i]
        return f"argument {names[number] if number < len(names) else f'number {number}'} of {self.name}"
