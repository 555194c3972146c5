"""Python functions that programs call: through XLA's foreign function interface, on copies in the host's memory.

A program names one foreign function and, as an attribute, the number of the Python function behind it.
https://github.com/openxla/xla/blob/main/xla/ffi/api/c_api.h
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from .c_api import address_of
from .device_copies import Copies
from .plugin import Plugin

TARGET = "xla_ffi_python_cpu_callback"
EXTENSION = 5  # the type of PJRT's extension for foreign functions
VERSION = (0, 1)  # of the interface, as it is asked for when a function is registered
_INTERNAL = 13  # the code of errors that are nobody's
_TOKEN = 17

# Types of elements by their numbers in the interface
_DTYPES = {number: np.dtype(getattr(ml_dtypes, name, name)) for number, name in {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16", 18: "complex128", 19: "float8_e5m2",
    20: "float8_e4m3fn", 23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz",
    25: "float8_e4m3fnuz", 28: "float8_e4m3", 29: "float8_e3m4", 33: "float8_e8m0fnu"}.items()}

_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


class _Registration(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("name", _POINTER), ("name_size", _SIZE), ("handler", _POINTER),
                ("platform", _POINTER), ("platform_size", _SIZE), ("traits", ctypes.c_int)]


class _Values(ctypes.Structure):
    """Operands or results of a call."""

    _fields_ = [("struct_size", _SIZE), ("extension_start", _POINTER), ("count", ctypes.c_int64),
                ("types", _POINTER), ("values", _POINTER)]


class _Attributes(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("extension_start", _POINTER), ("count", ctypes.c_int64),
                ("types", _POINTER), ("names", _POINTER), ("values", _POINTER)]


class _CallFrame(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("extension_start", _POINTER), ("api", _POINTER), ("context", _POINTER),
                ("stage", ctypes.c_int), ("operands", _Values), ("results", _Values), ("attributes", _Attributes),
                ("future", _POINTER)]


class _Buffer(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("extension_start", _POINTER), ("type", ctypes.c_int), ("data", _POINTER),
                ("rank", ctypes.c_int64), ("dims", _POINTER)]


class _Error(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("extension_start", _POINTER), ("message", _POINTER), ("code", ctypes.c_int)]


class _StreamGet(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("extension_start", _POINTER), ("context", _POINTER), ("stream", _POINTER)]


# Functions of the interface, by where a call's table has them
_ERROR_CREATE, _STREAM_GET = 48, 80


class Registry:
    """The foreign functions of a plugin. NotImplementedError for a plugin that takes none."""

    def __init__(self, plugin: Plugin):
        extension = plugin.extensions.get(EXTENSION)
        if extension is None:
            raise NotImplementedError(f"the PJRT plugin {plugin.path} takes no foreign functions, so that its programs "
                                      "cannot call Python")
        self._plugin = plugin
        self._register = _Handler(_POINTER.from_address(extension + 40).value or 0)

    def add(self, name: str, platform: str, handler: int) -> None:
        """Makes a handler, which is at an address, known by a name to the programs for a platform."""
        words = name.encode(), platform.encode()
        told = _Registration(ctypes.sizeof(_Registration), address_of(words[0]), len(words[0]), handler,
                             address_of(words[1]), len(words[1]), 0)
        error = self._register(ctypes.addressof(told))
        if error:
            self._plugin.fail(error)


class Callbacks:
    """The Python functions that the programs of a plugin call, by numbers. Each program has a `Numbered`.

    Args:
      plugin: the plugin.
      copies: how the memory of its devices is reached.

    Raises NotImplementedError for a plugin that takes no foreign functions.
    """

    def __init__(self, plugin: Plugin, copies: Copies):
        self.functions: dict[int, Callable[..., Sequence[Any]]] = {}
        self.failures: dict[int, list[BaseException]] = {}  # of functions that a program goes on without
        self.next = 0
        self._copies = copies
        self._handler = _Handler(self._call)
        Registry(plugin).add(TARGET, copies.platform, ctypes.cast(self._handler, _POINTER).value or 0)

    def _call(self, address: int) -> int | None:
        """What the plugin calls, on any thread. Gives an error or None."""
        frame = _CallFrame.from_address(address)
        if frame.extension_start:  # it asks for the version when the function is registered
            metadata = _POINTER.from_address(frame.extension_start + 24).value or 0
            (ctypes.c_int * 2).from_address(metadata + 24)[:] = list(VERSION)
            return None
        try:
            self._run(frame)
        except BaseException as error:  # it must not pass through the plugin's frames
            message = f"{type(error).__name__}: {error}".encode() + b"\0"
            told = _Error(ctypes.sizeof(_Error), None, address_of(message), _INTERNAL)
            return _function(frame, _ERROR_CREATE)(ctypes.addressof(told))
        return None

    def _run(self, frame: _CallFrame) -> None:
        copies = self._copies
        stream = _stream(frame) if copies.streamed else 0
        number = _number(frame.attributes)
        operands = []
        for address in _pointers(frame.operands):
            source, operand = _memory(address)
            operands.append(operand)
            if operand.nbytes:
                copies.to_host(operand.ctypes.data, source, operand.nbytes, stream)
        copies.wait(stream)
        wanted = list(map(_memory, _pointers(frame.results)))
        try:
            values = zip(self.functions[number](*operands), wanted, strict=True)
            results = [_result(value, array, i) for i, (value, (_, array)) in enumerate(values)]
        except BaseException as error:
            if number not in self.failures:
                raise
            self.failures[number].append(error)
            results = [np.zeros_like(array) for _, array in wanted]
        for (target, _), result in zip(wanted, results, strict=True):
            if result.nbytes:
                copies.to_device(target, result.ctypes.data, result.nbytes, stream)
        copies.wait(stream)


_of_library: dict[Path, Callbacks] = {}


def callbacks(plugin: Plugin, copies: Copies) -> Callbacks:
    """Those of a plugin's library, which knows one function by that name, however many clients it has."""
    path = plugin.path.resolve()
    if path not in _of_library:
        _of_library[path] = Callbacks(plugin, copies)
    return _of_library[path]


class Numbered:
    """The functions of one program, as a module numbers them: by how many there were before. They go with this object.

    Args:
      of_client: gives the `Callbacks`, for a program that has some.
      failures: where exceptions go that do not end the program: one on several devices, of which XLA ends the process
        when a device waits in vain for another.
    """

    __slots__ = ("_all", "_of_client", "failures", "numbers")

    def __init__(self, of_client: Callable[[], Callbacks], failures: list[BaseException] | None = None):
        self._of_client = of_client
        self.failures = failures
        self._all: Callbacks | None = None
        self.numbers: list[int] = []

    def __len__(self) -> int:
        return self._all.next if self._all is not None else 0

    def append(self, function: Callable[..., Sequence[Any]]) -> None:
        self._all = found = self._all or self._of_client()
        found.functions[found.next] = function
        if self.failures is not None:
            found.failures[found.next] = self.failures
        self.numbers.append(found.next)
        found.next += 1

    def __del__(self) -> None:
        for number in self.numbers:
            if self._all is not None:
                self._all.functions.pop(number, None)
                self._all.failures.pop(number, None)


def _pointers(values: Any) -> list[int]:
    return list((_POINTER * values.count).from_address(values.values)) if values.count else []


def _number(attributes: Any) -> int:
    """The attribute `index`, the only one: a scalar, which is a type and an address."""
    scalar = _POINTER.from_address(attributes.values).value or 0
    return struct.unpack("<Q", ctypes.string_at(_POINTER.from_address(scalar + 8).value or 0, 8))[0]


def _function(frame: _CallFrame, offset: int) -> Callable[[int], int | None]:
    return _Handler(_POINTER.from_address(frame.api + offset).value or 0)


def _stream(frame: _CallFrame) -> int:
    """The stream on which the program runs."""
    told = _StreamGet(ctypes.sizeof(_StreamGet), None, frame.context, None)
    if _function(frame, _STREAM_GET)(ctypes.addressof(told)):
        raise RuntimeError("XLA does not tell the stream of the program")
    return told.stream or 0


def _memory(address: int) -> tuple[int, np.ndarray]:
    """Where an operand or result lies, and an array like it."""
    buffer = _Buffer.from_address(address)
    shape = tuple((ctypes.c_int64 * buffer.rank).from_address(buffer.dims)) if buffer.rank else ()
    if buffer.type == _TOKEN:
        return 0, np.empty(0, np.bool_)
    dtype = _DTYPES.get(buffer.type)
    if dtype is None:
        raise TypeError(f"Python functions in programs take no arrays of XLA's type {buffer.type}")
    return buffer.data or 0, np.empty(shape, dtype)


def _result(value: Any, wanted: np.ndarray, number: int) -> np.ndarray:
    """A result without gaps. Raises RuntimeError for another shape or dtype than the program's."""
    array = np.asarray(value)
    if array.shape != wanted.shape:
        raise RuntimeError(f"Incorrect output shape for return value #{number}: Expected: {wanted.shape}, "
                           f"Actual: {array.shape}")
    if array.dtype != wanted.dtype:
        raise RuntimeError(f"Incorrect output dtype for return value #{number}: Expected: {wanted.dtype}, "
                           f"Actual: {array.dtype}")
    return np.ascontiguousarray(array)
