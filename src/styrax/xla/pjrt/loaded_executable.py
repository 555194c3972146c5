"""Programs that a plugin has compiled."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...core import hooks
from ...core.arrays.array import array_type
from ...core.arrays.backends import Elsewhere
from ...core.programs.jaxpr import ClosedJaxpr
from ...core.tracing.trace import Tracer, raise_leak
from .c_api import filled
from .entry import Entry
from .inspected import Inspected
from .plugin_buffers import Buffer

if TYPE_CHECKING:
    from .plugin_devices import PluginDevice

BUFFER, TYPE, HANDLE, COMMITTED = map(attrgetter, ("buffer", "type", "handle", "committed"))
OWNERS = 4  # references to a buffer that its array and a call hold: in lists, variables and questions


class ArgumentBlock:
    """The memory for one call of a program at a time: the structures are written once, handles at each call.

    Attributes:
      launch: starts the program on buffers with these handles, constants' first, of several devices one device after
        the other. Gives the first result's handle, or the address of an error with a minus.
      results: the handles of the results, likewise.
      finished: the events of the end of each device's part, where they are wanted.
    """

    __slots__ = ("finished", "held", "kept", "launch", "options", "results")

    def __init__(self, program: Executable, devices: int = 1):
        arguments, results = len(program.entry.closed.in_avals), len(program.entry.closed.out_avals)
        handles = (ctypes.c_void_p * max(1, devices * arguments))()
        self.results = (ctypes.c_void_p * max(1, devices * results))()
        self.kept = (ctypes.c_int64 * max(1, arguments))()  # numbers of arguments that are not donated this time
        self.finished = (ctypes.c_void_p * devices)()
        self.options = filled("ExecuteOptions", kept=ctypes.addressof(self.kept))
        lists = [(ctypes.c_void_p * devices)(*(ctypes.addressof(part) + 8 * count * i for i in range(devices)))
                 for part, count in ((handles, arguments), (self.results, results))]
        call = filled("LoadedExecutable_Execute", executable=program.loaded, options=ctypes.addressof(self.options),
                      arguments=ctypes.addressof(lists[0]), devices=devices, arguments_count=arguments,
                      results=ctypes.addressof(lists[1]),
                      events=None if program.effects is None else ctypes.addressof(self.finished))
        record = (ctypes.c_size_t * 4)(program.plugin.address("LoadedExecutable_Execute"), *map(
            ctypes.addressof, (call, handles, self.results)))
        self.launch = hooks.plugin_launcher(ctypes.addressof(record))
        self.held = handles, lists, call, record


class Executable(Inspected):
    """A compiled program on one device: call it with arrays there, get arrays.

    Arguments on other devices raise `Elsewhere`, those of other types TypeError: a plugin would look at their sizes
    alone.
    """

    __slots__ = ("aliased", "blocks", "constant_handles", "constants", "device", "effects", "hollow", "in_types",
                 "loaded", "read", "results", "single", "reads_all")

    def __init__(self, closed: ClosedJaxpr, entry: Entry, loaded: int, chosen: bytes, device: PluginDevice,
                 name: str):
        client = device.client
        self.closed = closed
        self.entry = entry
        self.loaded = loaded
        self.device = device
        self.name = name
        self.chosen = chosen
        self.plugin = client.plugin
        of = lambda a: client.type_of(device, a.dtype, a.shape)
        self.read = entry.read
        self.constants = [client.buffer(c, device) for c in entry.constants]
        self.in_types = list(map(of, entry.closed.in_avals[len(self.constants):]))
        self.constant_handles = [b.handle for b in self.constants]
        avals = [closed.out_avals[k] for k in entry.kept]
        self.results = [(array_type(a), a, of(p)) for a, p in zip(avals, entry.closed.out_avals, strict=True)]
        self.single = self.results[0] if len(self.results) == 1 else None  # (most programs)
        self.reads_all = self.read == list(range(len(closed.in_avals)))  # whether each argument is read
        self.hollow = [(k, array_type(a)(a, None)) for k, a in enumerate(closed.out_avals) if k not in entry.kept]
        first = len(self.constants)
        self.aliased = [i - first for i in entry.aliases.values()]  # of `read`
        self.effects = client.effects if entry.callbacks.numbers else None
        self.blocks = [ArgumentBlock(self)]

    def __del__(self) -> None:
        try:
            if not self.plugin.forked:
                self.plugin.call("LoadedExecutable_Destroy", handle=self.loaded)
        except (AttributeError, TypeError):  # it was never made, or the interpreter ends
            pass

    def __call__(self, *args: Any) -> list[Any]:
        read = args if self.reads_all else [args[i] for i in self.read]
        try:
            buffers = list(map(BUFFER, read))
            same = list(map(TYPE, buffers)) == self.in_types
        except AttributeError:  # deleted, or of another backend
            same = False
        if not same:
            self._refuse(args)
        if self.plugin.forked:
            self.plugin.refuse()
        try:
            block = self.blocks.pop()  # nobody else has it now
        except IndexError:
            block = ArgumentBlock(self)
        if self.aliased:
            self._keep_seen(block, args)
        handle = block.launch(*self.constant_handles, *map(HANDLE, buffers))
        if handle < 0:
            self.plugin.fail(-handle)
        if self.effects is not None:
            self.effects.add(block.finished[0] or 0, self, bool(self.closed.effects))
        committed = True in map(COMMITTED, args)
        if self.single is not None:
            array, aval, kind = self.single
            outs = [array(aval, Buffer(handle, kind), committed)]
        else:
            outs = [array(aval, Buffer(handle, kind), committed)
                    for handle, (array, aval, kind) in zip(block.results, self.results)]
        self.blocks.append(block)
        for k, out in self.hollow:
            outs.insert(k, out)
        return outs

    def _keep_seen(self, block: ArgumentBlock, args: Sequence[Any]) -> None:
        """Has the plugin copy those donated arguments whose memory somebody else sees."""
        seen = []
        for i in self.aliased:
            array = args[self.read[i]]
            buffer = array.buffer
            if sys.getrefcount(buffer) > OWNERS or array._numpy is not None:
                seen.append(i)
        self.keep(block, seen)

    def keep(self, block: ArgumentBlock, seen: Sequence[int]) -> None:
        """Says for a call that the memory of these arguments, by their places among those that are read, is kept."""
        first = len(self.entry.constants)
        block.kept[:len(seen)] = [first + i for i in seen]
        block.options.kept_count = len(seen)

    def _refuse(self, args: Sequence[Any]) -> None:
        """Raises for arguments that the program does not take as they are."""
        for i, kind in zip(self.read, self.in_types, strict=True):
            x = args[i]
            if isinstance(x, Tracer):
                raise_leak(x)
            buffer = x._live()
            if type(buffer) is not Buffer or buffer.device is not self.device:
                raise Elsewhere(self.device)
            if buffer.type is not kind:
                raise TypeError(f"{self.name} was compiled for an argument of type {kind} and is called with "
                                f"{buffer.type}")

    def executable(self) -> int:
        return self.plugin.call("LoadedExecutable_GetExecutable", loaded=self.loaded).executable

    @property
    def key(self) -> bytes:
        return self.device.client.key(self.entry.text, self.chosen)


__all__ = ["ArgumentBlock", "Executable"]
