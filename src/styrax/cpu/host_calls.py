"""Python functions called by compiled programs: the symbols that programs call, and what becomes of exceptions.

After an exception the program is cancelled: loops of unknown length end, later calls do nothing and give zeros. The
exception is raised when the program returns.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..compile.lowering.host_calls import calls, is_empty
from ..core.errors import callback_failed
from . import dispatch, llvm
from .client import Executable

_PREFIX = "hostcall_"
_trampolines: list[Any] = []  # never freed: code that was loaded points at them


class _State(threading.local):
    error: BaseException | None = None
    cancel = ctypes.c_int32()  # the cancel word of the program that runs


_state = _State()


def _resolve(symbol: str) -> int | None:
    if not symbol.startswith(_PREFIX):
        return None
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * int(symbol[len(_PREFIX):]))
    trampoline = kind(_run)
    _trampolines.append(trampoline)
    return ctypes.cast(trampoline, ctypes.c_void_p).value


llvm.add_resolver(_resolve)


def _view(addresses: Iterator[int], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if is_empty(shape):
        return np.empty(shape, dtype)
    size = dtype.itemsize
    for d in shape:
        size *= d
    memory = (ctypes.c_char * size).from_address(next(addresses))
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)  # type: ignore[call-overload]


def _run(number: int, *addresses: int) -> None:
    call = calls[number]
    rest = iter(addresses)
    ins = [_view(rest, *spec) for spec in call.ins]
    outs = [_view(rest, *spec) for spec in call.outs]
    if _state.error is None:
        try:
            for out, result in zip(outs, call.function(*ins), strict=True):
                out[...] = result
            return
        except BaseException as error:
            _state.error = error
            _state.cancel.value = 1
    for out in outs:
        out[...] = np.zeros((), out.dtype)


class CallingExecutable(Executable):
    """A compiled program that calls Python functions."""

    __slots__ = ("start",)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.queued = False  # Python is called in the thread of the caller
        self.start = dispatch.function(self.address)
        self.entry = self._enter

    def _enter(self, *words: int) -> int:
        block = (ctypes.c_int64 * len(words))(*words)
        before, _state.cancel = _state.cancel, ctypes.c_int32()
        try:
            status = self.start(ctypes.addressof(block), ctypes.addressof(_state.cancel)) & 0xFFFFFFFF
        finally:
            _state.cancel = before
        return status if _state.error is None else 0

    def __call__(self, *args: Any) -> list[Any]:
        for x in args:
            x._live().wait()
        outs = super().__call__(*args)
        error, _state.error = _state.error, None
        if error is None:
            return outs
        if not isinstance(error, Exception):
            raise error  # an interrupt, or an exit
        raise callback_failed(error) from error
