"""Python functions that programs call: through XLA's foreign function interface, on the host's memory.

A program names one foreign function and, as an attribute, the number of the Python function behind it.
https://github.com/openxla/xla/blob/main/xla/ffi/api/c_api.h
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .c_api import address_of
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


class Callbacks:
    """The Python functions that the programs of a client call, by numbers. Each program has a `Numbered`.

    Raises NotImplementedError for a plugin that takes no foreign functions.
    """

    def __init__(self, plugin: Plugin):
        extension = plugin.extensions.get(EXTENSION)
        if extension is None:
            raise NotImplementedError(f"the PJRT plugin {plugin.path} takes no foreign functions, so that its programs "
                                      "cannot call Python")
        self.functions: dict[int, Callable[..., Sequence[Any]]] = {}
        self.next = 0
        self._handler = _Handler(self._call)
        name, host = TARGET.encode(), b"Host"
        told = _Registration(ctypes.sizeof(_Registration), address_of(name), len(name),
                             ctypes.cast(self._handler, _POINTER), address_of(host), len(host), 0)
        register = _Handler(_POINTER.from_address(extension + 40).value or 0)
        error = register(ctypes.addressof(told))
        if error:
            plugin.fail(error)

    def _call(self, address: int) -> int | None:
        """What the plugin calls, on any thread. Gives an error or None."""
        frame = _CallFrame.from_address(address)
        if frame.extension_start:  # it asks for the version when the function is registered
            metadata = _POINTER.from_address(frame.extension_start + 24).value or 0
            (ctypes.c_int * 2).from_address(metadata + 24)[:] = list(VERSION)
            return None
        try:
            number = _number(frame.attributes)
            operands = [_array(p).copy() for p in _pointers(frame.operands)]
            results = self.functions[number](*operands)
            for i, (p, result) in enumerate(zip(_pointers(frame.results), results, strict=True)):
                _store(_array(p), result, i)
        except BaseException as error:  # it must not pass through the plugin's frames
            message = f"{type(error).__name__}: {error}".encode() + b"\0"
            told = _Error(ctypes.sizeof(_Error), None, address_of(message), _INTERNAL)
            create = _Handler(_POINTER.from_address(frame.api + 48).value or 0)
            return create(ctypes.addressof(told))
        return None


class Numbered:
    """The functions of one program, as a module numbers them: by how many there were before. They go with this object.

    Args:
      of_client: gives the `Callbacks`, for a program that has some.
    """

    __slots__ = ("_all", "_of_client", "numbers")

    def __init__(self, of_client: Callable[[], Callbacks]):
        self._of_client = of_client
        self._all: Callbacks | None = None
        self.numbers: list[int] = []

    def __len__(self) -> int:
        return self._all.next if self._all is not None else 0

    def append(self, function: Callable[..., Sequence[Any]]) -> None:
        self._all = found = self._all or self._of_client()
        found.functions[found.next] = function
        self.numbers.append(found.next)
        found.next += 1

    def __del__(self) -> None:
        for number in self.numbers:
            if self._all is not None:
                self._all.functions.pop(number, None)


def _pointers(values: Any) -> list[int]:
    return list((_POINTER * values.count).from_address(values.values)) if values.count else []


def _number(attributes: Any) -> int:
    """The attribute `index`, the only one: a scalar, which is a type and an address."""
    scalar = _POINTER.from_address(attributes.values).value or 0
    return struct.unpack("<Q", ctypes.string_at(_POINTER.from_address(scalar + 8).value or 0, 8))[0]


def _array(address: int) -> np.ndarray:
    """An operand's or result's memory."""
    buffer = _Buffer.from_address(address)
    shape = tuple((ctypes.c_int64 * buffer.rank).from_address(buffer.dims)) if buffer.rank else ()
    if buffer.type == _TOKEN:
        return np.empty(0, np.bool_)
    dtype = _DTYPES.get(buffer.type)
    if dtype is None:
        raise TypeError(f"Python functions in programs take no arrays of XLA's type {buffer.type}")
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(buffer.data)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


def _store(target: np.ndarray, value: Any, number: int) -> None:
    """Writes a result. Raises RuntimeError for another shape or dtype than the program's."""
    array = np.asarray(value)
    if array.shape != target.shape:
        raise RuntimeError(f"Incorrect output shape for return value #{number}: Expected: {target.shape}, "
                           f"Actual: {array.shape}")
    if array.dtype != target.dtype:
        raise RuntimeError(f"Incorrect output dtype for return value #{number}: Expected: {target.dtype}, "
                           f"Actual: {array.dtype}")
    target[...] = array
