"""The store of keys and values that a program's processes share, as C functions that a plugin calls.

By it a plugin's clients in several processes find each other: they tell which devices they have when they are created,
and GPUs exchange what NCCL needs when programs first communicate.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ...core.arrays.host_devices import Store
from .c_api import CODES, structure

_Callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)  # takes the arguments; gives an error or None
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)  # makes one


class KeyValues:
    """A store as a plugin's client asks for it, on any thread. It has to live as long as the client.

    Args:
      store: where keys and values are.
      folder: what all keys begin with, so that several clients have keys of their own.

    Attributes:
      arguments: what `Client_Create` is to be told, by name.

    What the store raises becomes an error of the plugin's.
    """

    __slots__ = ("_callbacks", "_deleter", "_folder", "_lent", "_store", "arguments")

    def __init__(self, store: Store, folder: str):
        self._store = store
        self._folder = folder
        self._lent: dict[int, Any] = {}  # values that the plugin reads, by their addresses
        self._deleter = _Deleter(self._take_back)
        self._callbacks = {"get": _callback("KeyValueGet", self._get), "put": _callback("KeyValuePut", self._put),
                           "try_get": _callback("KeyValueTryGet", self._try_get)}
        self.arguments = {name: ctypes.cast(c, ctypes.c_void_p).value for name, c in self._callbacks.items()}

    def _get(self, asked: Any) -> None:
        self._lend(asked, self._store.blocking_key_value_get_bytes(self._key(asked), asked.milliseconds))

    def _try_get(self, asked: Any) -> None:
        self._lend(asked, self._store.key_value_try_get_bytes(self._key(asked)))

    def _put(self, told: Any) -> None:
        self._store.key_value_set_bytes(self._key(told), ctypes.string_at(told.value, told.value_size))

    def _key(self, asked: Any) -> str:
        return self._folder + ctypes.string_at(asked.key, asked.key_size).decode("latin-1")  # whatever bytes it has

    def _lend(self, asked: Any, value: bytes) -> None:
        memory = ctypes.create_string_buffer(value, len(value) + 1)  # of an empty value, too, there is some
        address = ctypes.addressof(memory)
        self._lent[address] = memory
        asked.value, asked.value_size = address, len(value)
        asked.deleter = ctypes.cast(self._deleter, ctypes.c_void_p).value

    def _take_back(self, address: int) -> None:
        self._lent.pop(address, None)


def _callback(name: str, answer: Callable[[Any], None]) -> Any:
    """The C function that answers with a structure of arguments. No exception passes it: there is C around it."""
    kind = structure(name)

    def call(address: int) -> int | None:
        asked: Any = kind.from_address(address)
        try:
            answer(asked)
        except BaseException as error:
            code, _, message = str(error).partition(": ")
            if code not in CODES:
                code, message = "INTERNAL", f"{type(error).__name__}: {error}"
            text = message.encode(errors="replace")
            make = ctypes.c_void_p.from_address(asked.error).value
            return _Error(make)(CODES.index(code), text, len(text))  # type: ignore[arg-type]
        return None

    return _Callback(call)


__all__ = ["KeyValues"]
