"""A plugin without a processor behind it: a table of functions in Python, with as many devices as one says.

Its clients in several processes find each other by the functions that they are given, as those for GPUs do. It keeps
buffers as NumPy arrays. A program that it "compiles" it does not read: what programs compute, `computes` says.
"""

from __future__ import annotations

import ctypes
import itertools
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from styrax.xla.pjrt.c_api import CODES, ELEMENTS, FIRST, FUNCTIONS, OLDEST, structure

from .asking import Asker, Refusal

DTYPES = {number: name for name, number in ELEMENTS.items()}
Blocks = list[np.ndarray]


class Failure(Exception):
    """What the plugin reports: a code of PJRT's and a text."""


class Thing(NamedTuple):
    """A device: its number, the process that has it, which it is there."""

    id: int
    process: int
    local: int


class Event:
    """What has happened already."""


class Program:
    """What has been compiled."""


class StandIn:
    """The library of such a plugin, as `ctypes.CDLL` gives one.

    Args:
      each: how many devices each process has.
      known: the options that it knows; others it refuses as plugins do.
      number, count: of the processes, where nobody tells it by options, as TPUs find that out.

    Attributes:
      options: what its clients were created with.
      compiled: the text and the options of each program.
      executed: of each call of a program the arguments, for each device of this process.
      computes: gives for a device's place among those of this process, and for its arguments, its results.
    """

    def __init__(self, each: int = 2, known: Sequence[str] = ("node_id", "num_nodes", "visible_devices"),
                 number: int = 0, count: int = 1):
        self.each, self.known, self.number, self.count = each, known, number, count
        self.options: list[dict[str, Any]] = []
        self.compiled: list[tuple[str, bytes]] = []
        self.executed: list[list[Blocks]] = []
        self.computes: Callable[[int, Blocks], Blocks] = lambda place, blocks: blocks
        self.asker: Asker | None = None
        self.devices: list[Thing] = []
        self._objects: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._kept: list[Any] = []
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        self._functions = {name: kind(self._guarded(name)) for name in FUNCTIONS if hasattr(self, name)}
        table = [ctypes.cast(self._functions[n], ctypes.c_void_p).value if n in self._functions else 0
                 for n in FUNCTIONS]
        size = FIRST + 8 * len(FUNCTIONS)
        versions = ctypes.c_int64.from_buffer_copy(np.array(OLDEST, np.int32).tobytes()).value
        self._table = (ctypes.c_int64 * (size // 8))(size, 0, 16, 0, versions, *table)
        self.GetPjrtApi = Entry(ctypes.addressof(self._table))

    def _guarded(self, name: str) -> Callable[[int], int | None]:
        function = getattr(self, name)

        def call(address: int) -> int | None:
            try:
                function(structure(name).from_address(address))
            except Failure as failure:
                return self._new(failure.args)
            except BaseException as error:
                return self._new((CODES.index("INTERNAL"), f"{type(error).__name__}: {error}"))
            return None

        return call

    def _new(self, value: Any) -> int:
        number = next(self._numbers)
        self._objects[number] = value
        return number

    def _text(self, told: Any, text: str) -> None:
        self._kept.append(ctypes.create_string_buffer(text.encode()))
        told.text, told.size = ctypes.addressof(self._kept[-1]), len(text.encode())

    def _list(self, told: Any, items: Sequence[int]) -> None:
        self._kept.append((ctypes.c_void_p * max(1, len(items)))(*items))
        told.items, told.count = ctypes.addressof(self._kept[-1]), len(items)

    def exchange(self, name: str, value: Any) -> list[Any]:
        """What each process says of something, by the functions that the client was given."""
        assert self.asker is not None
        self.asker.put(f"{name}/{self.number}".encode(), pickle.dumps(value))
        return [pickle.loads(self.asker.get(f"{name}/{i}".encode(), 20_000)) for i in range(self.count)]

    # -- functions of the table ------------------------------------------------------------------------------
    def Plugin_Initialize(self, told: Any) -> None:
        pass

    def Error_Message(self, told: Any) -> None:
        text = self._objects[told.error][1].encode()
        self._kept.append(ctypes.create_string_buffer(text))
        told.message, told.size = ctypes.addressof(self._kept[-1]), len(text)

    def Error_GetCode(self, told: Any) -> None:
        told.code = self._objects[told.error][0]

    def Error_Destroy(self, told: Any) -> None:
        del self._objects[told.handle]

    def Client_Create(self, told: Any) -> None:
        kind = structure("NamedValue")
        items = [kind.from_address(told.options + i * ctypes.sizeof(kind)) for i in range(told.count)]
        self.options.append({ctypes.string_at(i.name, i.name_size).decode(): _value(i) for i in items})
        wrong = [name for name in self.options[-1] if name not in self.known]
        if wrong:
            raise Failure(CODES.index("INVALID_ARGUMENT"),
                          f"Unexpected option name passed to PJRT_Client_Create: {wrong[0]}")
        self.count = self.options[-1].get("num_nodes", self.count)
        self.number = self.options[-1].get("node_id", self.number)
        if told.get:
            self.asker = Asker({"get": told.get, "put": told.put, "try_get": told.try_get}, True)
        try:
            counts = self.exchange("topology", self.each) if self.asker is not None else [self.each] * self.count
        except Refusal as refusal:
            raise Failure(CODES.index(refusal.code), refusal.text) from None
        places = [(process, i) for process, each in enumerate(counts) for i in range(each)]
        self.devices = [Thing(number, *place) for number, place in enumerate(places)]
        self.handles = [self._new(d) for d in self.devices]
        told.client = self._new("the client")

    def Client_PlatformVersion(self, told: Any) -> None:
        self._text(told, "stand-in")

    def Client_ProcessIndex(self, told: Any) -> None:
        told.process = self.number

    def Client_Devices(self, told: Any) -> None:
        self._list(told, self.handles)

    def Client_AddressableDevices(self, told: Any) -> None:
        self._list(told, [h for h in self.handles if self._objects[h].process == self.number])

    def Device_GetDescription(self, told: Any) -> None:
        told.description = told.device

    def Device_LocalHardwareId(self, told: Any) -> None:
        self._own(told.device)
        told.id = self._objects[told.device].local

    def DeviceDescription_Id(self, told: Any) -> None:
        told.id = self._objects[told.description].id

    def DeviceDescription_ProcessIndex(self, told: Any) -> None:
        told.process = self._objects[told.description].process

    def DeviceDescription_Kind(self, told: Any) -> None:
        self._text(told, "stand-in")

    def _own(self, handle: int) -> None:
        if self._objects[handle].process != self.number:
            raise Failure(CODES.index("INVALID_ARGUMENT"), f"device {self._objects[handle].id} is not addressable")

    def Client_BufferFromHostBuffer(self, told: Any) -> None:
        self._own(told.device)
        dtype = np.dtype(DTYPES[told.type])
        words = (ctypes.c_int64 * (2 * told.rank)).from_address(told.dims or ctypes.addressof(told))
        shape, strides = tuple(words[:told.rank]), tuple(words[told.rank:]) if told.strides else None
        size = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + dtype.itemsize if strides else (
            int(np.prod(shape, dtype=int)) * dtype.itemsize)
        memory = ctypes.string_at(told.data, size)
        told.buffer = self._new(np.ndarray(shape, dtype, memory, 0, strides).copy())
        told.done = self._new(Event())

    def Buffer_ReadyEvent(self, told: Any) -> None:
        told.event = self._new(Event())

    def Buffer_CopyToDevice(self, told: Any) -> None:
        self._own(told.device)
        told.copy = self._new(self._objects[told.buffer])

    def Buffer_ToHostBuffer(self, told: Any) -> None:
        value = np.ascontiguousarray(self._objects[told.buffer])
        ctypes.memmove(told.target, value.ctypes.data, value.nbytes)
        told.event = self._new(Event())

    def _let_go(self, handle: int, kind: type) -> None:
        assert isinstance(self._objects[handle], kind), self._objects[handle]
        del self._objects[handle]

    def Buffer_Destroy(self, told: Any) -> None:
        self._let_go(told.handle, np.ndarray)

    def Event_Destroy(self, told: Any) -> None:
        self._let_go(told.handle, Event)

    def LoadedExecutable_Destroy(self, told: Any) -> None:
        self._let_go(told.handle, Program)

    def Event_Await(self, told: Any) -> None:
        pass

    def Event_IsReady(self, told: Any) -> None:
        told.ready = True

    def Client_Compile(self, told: Any) -> None:
        program = structure("Program").from_address(told.program)
        self.compiled.append((ctypes.string_at(program.code, program.size).decode(),
                              ctypes.string_at(told.options, told.size)))
        told.executable = self._new(Program())

    def LoadedExecutable_Execute(self, told: Any) -> None:
        rows = (ctypes.c_void_p * told.devices).from_address(told.arguments)
        self.executed.append([[self._objects[h] for h in (ctypes.c_void_p * told.arguments_count).from_address(row)]
                              if told.arguments_count else [] for row in rows])
        targets = (ctypes.c_void_p * told.devices).from_address(told.results)
        for place, (blocks, target) in enumerate(zip(self.executed[-1], targets, strict=True)):
            results = self.computes(place, blocks)
            (ctypes.c_void_p * len(results)).from_address(target)[:] = [self._new(np.asarray(r)) for r in results]


class Entry:
    """The function of the library that gives the table."""

    def __init__(self, address: int):
        self.address = address

    def __call__(self) -> int:
        return self.address


def _value(item: Any) -> Any:
    if item.type == 0:
        return ctypes.string_at(item.value, item.size).decode()
    if item.type == 2:
        return list((ctypes.c_int64 * item.size).from_address(item.value))
    return item.value if item.type == 1 else bool(item.value)


def installed(platform: str = "cuda", **arguments: Any) -> StandIn:
    """Has this process find such a plugin for a platform from now on."""
    import os

    library, load = StandIn(**arguments), ctypes.CDLL
    os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"{platform}:stand_in.so"
    ctypes.CDLL = lambda name, *rest, **more: (  # type: ignore[misc,assignment]
        library if name == "stand_in.so" else load(name, *rest, **more))
    return library
