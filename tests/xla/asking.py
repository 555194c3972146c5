"""Asking for keys and values as a plugin does: by C functions at addresses, from threads that Python does not know."""

from __future__ import annotations

import ctypes
from typing import Any

from styrax.xla.pjrt.c_api import CODES, address_of, filled

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)


class Refusal(Exception):
    """An error that a function gave: `code` and `text`."""

    def __init__(self, code: int, text: str):
        super().__init__(f"{CODES[code]}: {text}")
        self.code, self.text = CODES[code], text


class Asker:
    """Calls the functions with these addresses.

    Args:
      foreign: on a new thread of the system for each call.
    """

    def __init__(self, functions: dict[str, int], foreign: bool = False):
        self.functions = functions
        self.foreign = foreign
        self.made: list[Refusal] = []
        self._make = _ERROR(self._error)
        self._place = ctypes.c_void_p(ctypes.cast(self._make, ctypes.c_void_p).value)

    def _error(self, code: int, message: int, size: int) -> int:
        self.made.append(Refusal(code, ctypes.string_at(message, size).decode()))
        return len(self.made)

    def _call(self, function: str, name: str, key: bytes, **fields: object) -> Any:
        asked: Any = filled(name, key=address_of(key), key_size=len(key), error=ctypes.addressof(self._place), **fields)
        asked.struct_size = 0  # as XLA leaves it
        outcome = self._run(self.functions[function], ctypes.addressof(asked))
        if outcome:
            raise self.made[outcome - 1]
        return asked

    def _run(self, function: int, argument: int) -> int | None:
        if not self.foreign:
            return _FUNCTION(function)(argument)
        system, thread, result = ctypes.CDLL(None), ctypes.c_void_p(), ctypes.c_void_p()
        system.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(function), ctypes.c_void_p(argument))
        system.pthread_join(thread, ctypes.byref(result))
        return result.value

    def _taken(self, told: Any) -> bytes:
        value = ctypes.string_at(told.value, told.value_size)
        self._run(told.deleter, told.value)
        return value

    def get(self, key: bytes, milliseconds: int) -> bytes:
        return self._taken(self._call("get", "KeyValueGet", key, milliseconds=milliseconds))

    def try_get(self, key: bytes) -> bytes:
        return self._taken(self._call("try_get", "KeyValueTryGet", key))

    def put(self, key: bytes, value: bytes) -> None:
        self._call("put", "KeyValuePut", key, value=address_of(value), value_size=len(value))
