"""Devices that a plugin knows by a description alone: programs are compiled for them, and run elsewhere."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...core.arrays.devices import Device
from ...core.programs.jaxpr import ClosedJaxpr
from ...core.tracing.errors import JaxRuntimeError
from . import options
from .c_api import address_of, filled
from .discovery import find
from .entry import Entry
from .foreign_functions import Numbered
from .inspected import Inspected
from .plugin import Plugin
from .plugin_devices import PLATFORMS

if TYPE_CHECKING:
    from ...core.arrays.shardings import NamedSharding


class Described:
    """The client of an arrangement of devices.

    Args:
      platform: the platform's name.
      plugin: its plugin.
      arrangement: the arrangement's name.
      given: what else the plugin asks for, by name.

    Raises JaxRuntimeError for an arrangement that the plugin does not know.
    """

    shared_memory = False
    dlpack_type = 12  # kExtDev, something else
    libraries: tuple[str, ...] = ()  # their routines are bound where programs run

    def __init__(self, platform: str, plugin: Plugin, arrangement: str, given: Mapping[str, options.Option]):
        self.platform = platform
        self.plugin = plugin
        name = arrangement.encode()
        array, kept = options.named_values(given)
        self.handle = plugin.call(
            "TopologyDescription_Create", arrangement=address_of(name), arrangement_size=len(name),
            options=ctypes.addressof(array) if given else None, count=len(given)).topology
        del kept  # (the plugin has read them)
        self.platform_version = plugin.text("TopologyDescription_PlatformVersion", topology=self.handle)
        found = plugin.call("TopologyDescription_GetDeviceDescriptions", topology=self.handle)
        handles = (ctypes.c_void_p * found.count).from_address(found.items) if found.count else ()
        self._devices = [self._device(handle) for handle in handles]

    def _device(self, handle: int) -> Device:
        call = self.plugin.call
        return Device(
            PLATFORMS.get(self.platform, self.platform), call("DeviceDescription_Id", description=handle).id,
            self.plugin.text("DeviceDescription_Kind", description=handle), self,
            call("DeviceDescription_ProcessIndex", description=handle).process, None)

    def devices(self) -> Sequence[Device]:
        return self._devices

    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (),
                device: Any = None, compiler_options: Mapping[str, options.Option] = options.NONE) -> CompiledAhead:
        """A program for one of the devices, by default for the first."""
        entry = Entry(closed, name, donated, Numbered(self._callbacks), self.libraries)
        return CompiledAhead(closed, name, entry, self, [device or self._devices[0]], compiler_options)

    def compile_for_many(self, closed: ClosedJaxpr, name: str, devices: Any,
                         spread: tuple[Sequence[NamedSharding], Sequence[NamedSharding]], donated: Sequence[bool],
                         compiler_options: Mapping[str, options.Option]) -> CompiledAhead:
        """A program for several devices, for arguments and results under these shardings."""
        entry = Entry(closed, name, donated, Numbered(self._callbacks), self.libraries, spread, devices.whole)
        made = CompiledAhead(closed, name, entry, self, devices.devices, compiler_options)
        made.in_shardings, made.out_shardings = spread
        return made

    def _callbacks(self) -> NoReturn:
        raise NotImplementedError("programs that call Python functions are compiled for devices at hand only")

    def put(self, *_: Any) -> NoReturn:
        raise JaxRuntimeError("INVALID_ARGUMENT: arrays cannot be put on devices that are only described")

    buffer = elements = operand = adopt = apply_primitive = put


class CompiledAhead(Inspected):
    """A program for devices that are elsewhere: it can be looked at and kept."""

    __slots__ = ("_client", "_handle", "in_shardings", "out_shardings")
    in_shardings: Sequence[NamedSharding]
    out_shardings: Sequence[NamedSharding]

    def __init__(self, closed: ClosedJaxpr, name: str, entry: Entry, client: Described, devices: Sequence[Device],
                 compiler_options: Mapping[str, options.Option]):
        self.closed, self.name, self.entry = closed, name, entry
        self.plugin = client.plugin
        self._client = client
        self.chosen = chosen = options.compile_options([d.id for d in devices], compiler_options)
        code, form = entry.text.encode(), b"mlir"
        program = filled("Program", code=address_of(code), size=len(code), format=address_of(form),
                         format_size=len(form))
        self._handle = client.plugin.call(
            "Compile", topology=client.handle, program=ctypes.addressof(program), options=address_of(chosen),
            size=len(chosen)).executable

    @property
    def key(self) -> bytes:
        version, text = self._client.platform_version.encode(), self.entry.text.encode()
        parts = self.plugin.fingerprint, version, self.chosen, text
        return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()

    def executable(self) -> int:
        return self._handle

    def release(self, executable: int) -> None:
        pass

    def __call__(self, *_: Any) -> NoReturn:
        raise JaxRuntimeError(f"INVALID_ARGUMENT: {self.name} was compiled for devices that are only described, and "
                              "cannot be run here")

    def __del__(self) -> None:
        try:
            self.plugin.call("Executable_Destroy", handle=self._handle)
        except (AttributeError, TypeError, RuntimeError):  # it was never made, or the interpreter ends
            pass


def described(platform: str, arrangement: str, given: Mapping[str, options.Option]) -> Sequence[Device] | None:
    """The devices of an arrangement; None where no plugin serves the platform.

    Raises RuntimeError where there is one that does not work or that does not know the arrangement.
    """
    found = find(platform)
    return None if found is None else Described(found.platform, Plugin(found.path), arrangement, given).devices()


__all__ = ["CompiledAhead", "Described", "described"]
