"""A plugin: a shared library that speaks PJRT's C API, and calls of its functions."""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from ...core import hooks
from ...core.tracing.errors import JaxRuntimeError, OutOfMemory
from .c_api import CODES, FIRST, FUNCTIONS, OLDEST, filled, structure

Call = Callable[[Any], "int | None"]  # takes the address of the arguments; gives an error or None
_ON_ADDRESS = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)  # (the GIL is released: programs call Python back)

Attribute = str | int | float | bool | list[int]


class PluginError(RuntimeError):
    """A file is no plugin, or one that cannot be used here."""


class Plugin:
    """The functions of a plugin.

    Attributes:
      path: the library's file.
      version: of PJRT's C API.
      extensions: the addresses of extensions by their types' numbers.
      destroy_buffer: lets go of a buffer, by its handle. It is read off the plugin at each use: a forked child has
        another.

    Raises PluginError for a file that cannot be loaded, is no plugin or is too old.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.forked = False
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # no tales of what goes well
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise PluginError(f"the PJRT plugin {path} cannot be loaded: {error}") from None
        try:
            entry = self._library.GetPjrtApi
        except AttributeError:
            raise PluginError(f"{path} is no PJRT plugin: it has no function GetPjrtApi") from None
        entry.restype = ctypes.c_void_p
        address = entry()
        if not address:
            raise PluginError(f"the PJRT plugin {path} gives no functions")
        size, extension = (ctypes.c_size_t * 2).from_address(address)
        self.version: tuple[int, ...] = tuple((ctypes.c_int * 2).from_address(address + FIRST - 8))
        if self.version < OLDEST:
            raise PluginError(f"the PJRT plugin {path} is of version {_dotted(self.version)} of the C API, and "
                              f"{_dotted(OLDEST)} is needed: install a newer one")
        count = min((size - FIRST) // 8, len(FUNCTIONS))
        table = (ctypes.c_void_p * count).from_address(address + FIRST)
        self._addresses = {name: pointer for name, pointer in zip(FUNCTIONS, table, strict=False) if pointer}
        self._functions: dict[str, Call] = {}
        self.extensions: dict[int, int] = {}
        while extension:
            _, kind, following = struct.unpack("<QixxxxQ", ctypes.string_at(extension, 24))
            self.extensions[kind] = extension
            extension = following
        self.destroy_buffer: Call = hooks.plugin_releaser(self.address("Buffer_Destroy"))
        self.call("Plugin_Initialize")
        _started.add(self)

    def address(self, name: str) -> int:
        """Where a function of the table is. JaxRuntimeError if there is none."""
        try:
            return self._addresses[name]
        except KeyError:
            raise JaxRuntimeError(f"UNIMPLEMENTED: the PJRT plugin {self.path} of version {_dotted(self.version)} has "
                                  f"no function {name}") from None

    def function(self, name: str) -> Call:
        """A function of the table, which takes the address of its arguments. JaxRuntimeError if there is none."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = _ON_ADDRESS(self.address(name))
        return found

    def call(self, name: str, **fields: object) -> Any:
        """Calls a function. Gives the structure of its arguments, results among them.

        Raises:
          JaxRuntimeError: what the plugin reports, or that it has no such function.
          RuntimeError: this process is a fork of the one that started the plugin.
        """
        if self.forked:
            self.refuse()
        arguments = filled(name, **fields)
        error = self.function(name)(ctypes.addressof(arguments))
        if error:
            self.fail(error)
        return arguments

    def text(self, name: str, **fields: object) -> str:
        """The text that a function gives."""
        found = self.call(name, **fields)
        return ctypes.string_at(found.text, found.size).decode(errors="replace")

    def fail(self, error: int) -> None:
        """Raises the JaxRuntimeError for an error of the plugin's."""
        told = filled("Error_Message", error=error)
        self.function("Error_Message")(ctypes.addressof(told))
        message = ctypes.string_at(told.message, told.size).decode(errors="replace")
        code = filled("Error_GetCode", error=error)
        self.function("Error_GetCode")(ctypes.addressof(code))
        self.destroy_error(error)
        name = CODES[code.code] if code.code < len(CODES) else str(code.code)
        raise (OutOfMemory if name == "RESOURCE_EXHAUSTED" else JaxRuntimeError)(f"{name}: {message}")

    def destroy_error(self, error: int) -> None:
        """Lets go of an error of the plugin's."""
        arguments = filled("Error_Destroy", handle=error)  # which has to live until the function is back
        self.function("Error_Destroy")(ctypes.addressof(arguments))

    def wait(self, event: int) -> None:
        """Waits for an event, and lets go of it. Raises JaxRuntimeError for the failure that it tells."""
        try:
            self.call("Event_Await", handle=event)
        finally:
            self.call("Event_Destroy", handle=event)

    def happened(self, event: int) -> bool:
        """Whether an event, which is let go of, has happened."""
        try:
            return self.call("Event_IsReady", event=event).ready
        finally:
            self.call("Event_Destroy", handle=event)

    @cached_property
    def attributes(self) -> Mapping[str, Attribute]:
        """What the plugin says of itself: the versions of XLA and StableHLO that it knows, …"""
        told = self.call("Plugin_Attributes")
        kind = structure("NamedValue")
        items = [kind.from_address(told.values + i * ctypes.sizeof(kind)) for i in range(told.count)]
        return {ctypes.string_at(item.name, item.name_size).decode(): _value(item) for item in items}

    @cached_property
    def fingerprint(self) -> bytes:
        """A hash of the library: programs that it compiled are good for no other."""
        with open(self.path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()

    # -- forks -------------------------------------------------------------------------------------
    def refuse(self) -> NoReturn:
        """Raises the RuntimeError for uses in a forked child."""
        raise RuntimeError(
            f"this process was forked from one that uses the PJRT plugin {self.path}, whose threads it lacks: start "
            "processes by multiprocessing's methods 'spawn' or 'forkserver', or use the plugin after the fork only")

    def abandon(self) -> None:
        """Has every use fail, in a forked child; what is let go of stays."""
        self.forked = True
        self.destroy_buffer = lambda _: None


def _value(item: Any) -> Attribute:
    """The value of a `PJRT_NamedValue`."""
    if item.type == 0:
        return ctypes.string_at(item.value, item.size).decode()
    if item.type == 2:
        return list((ctypes.c_int64 * item.size).from_address(item.value))
    if item.type == 1:
        return item.value
    at = ctypes.addressof(item) + type(item).value.offset
    return (ctypes.c_float if item.type == 3 else ctypes.c_bool).from_address(at).value


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


_started: weakref.WeakSet[Plugin] = weakref.WeakSet()


def _abandon_all() -> None:
    for plugin in list(_started):
        plugin.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
