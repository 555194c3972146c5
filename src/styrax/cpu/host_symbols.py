"""Python functions called by compiled programs: the symbols that programs call, and what becomes of exceptions.

After an exception the program is cancelled: loops of unknown length end, later calls do nothing and give zeros. The
exception is raised when the program returns.

No program holds the GIL while it runs, only the functions that it calls. So Python sees no signal meanwhile: where
Ctrl-C means KeyboardInterrupt, it cancels the program at once, and is raised when the program returns.
"""

from __future__ import annotations

import atexit
import ctypes
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..compile.ir.values import is_empty
from ..compile.lowering.host_calls import calls
from ..core.tracing.errors import callback_failed
from . import dispatch, floating_point, llvm
from .executable import PLENTY, Executable

_PREFIX = "hostcall_"

# The exception that is set goes to `_failed`.
_FAILED = floating_point.source(floating_point.processor()) + """
declare i32 @PyErr_CheckSignals()
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_Clear()
declare void @Py_DecRef(ptr)
@styrax_failed = external global i8
@object = internal constant [2 x i8] c"N\\00"

define internal void @failed() nounwind noinline cold {
  %kind_at = alloca ptr
  %value_at = alloca ptr
  %trace_at = alloca ptr
  call void @PyErr_Fetch(ptr %kind_at, ptr %value_at, ptr %trace_at)
  call void @PyErr_NormalizeException(ptr %kind_at, ptr %value_at, ptr %trace_at)
  %kind = load ptr, ptr %kind_at
  %value = load ptr, ptr %value_at
  %trace = load ptr, ptr %trace_at
  call void @Py_DecRef(ptr %kind)
  call void @Py_DecRef(ptr %trace)
  %result = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr @styrax_failed, ptr @object, ptr %value)
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr %result)
  ret void
}
"""

# Runs a program of the main thread. A signal that came before the handler was there is seen to by the first
# PyErr_CheckSignals, one that came later by the handler, and by the second. Programs nest, the handler does not.
_INTERRUPTIBLE = _FAILED + """
declare ptr @PyOS_setsig(i32, ptr)
declare ptr @PyOS_getsig(i32)
declare i64 @PyThread_get_thread_ident()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
@styrax_word = global ptr null, align 8       ; the cancel word of the program that runs, none while it is in Python
@styrax_main = global i64 0                   ; the thread whose program that is
@installed = internal global i32 0
@python_handler = internal global ptr null

define internal void @interrupted(i32 %signal) nounwind {
  %word = load atomic ptr, ptr @styrax_word monotonic, align 8
  %none = icmp eq ptr %word, null
  br i1 %none, label %on, label %cancel
cancel:
  store atomic i32 1, ptr %word monotonic, align 4
  br label %on
on:
  %handler = load ptr, ptr @python_handler
  call void %handler(i32 %signal)
  ret void
}

define internal i32 @flushing(ptr %program, ptr %words, ptr %cancel) nounwind {
  %mode = call i64 @flush_subnormals()
  %status = call i32 %program(ptr %words, ptr %cancel)
  call void @set_mode(i64 %mode)
  ret i32 %status
}

define i64 @run_elsewhere(ptr %program, ptr %words, ptr %cancel) nounwind {
  %status = call i32 @flushing(ptr %program, ptr %words, ptr %cancel)
  %wide = sext i32 %status to i64
  ret i64 %wide
}

define i64 @run(ptr %program, ptr %words, ptr %cancel) nounwind {
entry:
  %me = call i64 @PyThread_get_thread_ident()
  store i64 %me, ptr @styrax_main
  %outer = load ptr, ptr @styrax_word
  store atomic ptr %cancel, ptr @styrax_word monotonic, align 8
  %nested = load i32, ptr @installed
  %fresh = icmp eq i32 %nested, 0
  br i1 %fresh, label %install, label %check
install:
  %before = call ptr @PyOS_getsig(i32 SIGINT)
  store ptr %before, ptr @python_handler
  store i32 1, ptr @installed
  %ignored = call ptr @PyOS_setsig(i32 SIGINT, ptr @interrupted)
  br label %check
check:
  %early = call i32 @PyErr_CheckSignals()
  %fine = icmp eq i32 %early, 0
  br i1 %fine, label %start, label %wrong
start:
  %state = call ptr @PyEval_SaveThread()
  %status = call i32 @flushing(ptr %program, ptr %words, ptr %cancel)
  call void @PyEval_RestoreThread(ptr %state)
  %late = call i32 @PyErr_CheckSignals()
  %good = icmp eq i32 %late, 0
  br i1 %good, label %end, label %wrong
wrong:
  %given = phi i32 [0, %check], [%status, %start]
  call void @failed()
  br label %end
end:
  %result = phi i32 [%status, %start], [%given, %wrong]
  store atomic ptr %outer, ptr @styrax_word monotonic, align 8
  br i1 %fresh, label %remove, label %done
remove:
  %handler = load ptr, ptr @python_handler
  %own = call ptr @PyOS_setsig(i32 SIGINT, ptr %handler)
  store i32 0, ptr @installed
  br label %done
done:
  %wide = sext i32 %result to i64
  ret i64 %wide
}
""".replace("SIGINT", str(int(signal.SIGINT)))

# What a program calls. The calling of `_call` itself may fail, too: where a signal came just before, its handler runs
# there, outside of any `try`. One that came as the function ended is seen to here.
_TRAMPOLINE = _FAILED + """
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i64 @PyThread_get_thread_ident()
@styrax_call = external global i8
@styrax_word = external global ptr
@styrax_main = external global i64
@words = internal constant [3 x i8] c"nn\\00"

define void @SYMBOL(PARAMETERS) nounwind {
  %block = alloca [COUNT x ptr]
STORES  %state = call i32 @PyGILState_Ensure()
  %me = call i64 @PyThread_get_thread_ident()
  %main = load i64, ptr @styrax_main
  %own = icmp eq i64 %me, %main
  %nowhere = alloca ptr
  %word = select i1 %own, ptr @styrax_word, ptr %nowhere
  %running = load ptr, ptr %word
  store atomic ptr null, ptr %word monotonic, align 8
  %address = ptrtoint ptr %block to i64
  %mode = call i64 @keep_subnormals()
  %result = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr @styrax_call, ptr @words, i64 %number, i64 %address)
  %none = icmp eq ptr %result, null
  br i1 %none, label %wrong, label %back
wrong:
  call void @failed()
  br label %back
back:
  call void @Py_DecRef(ptr %result)
  store atomic ptr %running, ptr %word monotonic, align 8
  %late = call i32 @PyErr_CheckSignals()
  %fine = icmp eq i32 %late, 0
  br i1 %fine, label %end, label %interrupted
interrupted:
  call void @failed()
  br label %end
end:
  call void @PyGILState_Release(i32 %state)
  call void @set_mode(i64 %mode)
  ret void
}
"""

_libraries: dict[str, llvm.Library] = {}  # never unloaded: code that was loaded points into them


def _library(name: str, text: str, **symbols: int) -> llvm.Library:
    for symbol in re.findall(r"@(Py\w+)\(", text):
        symbols[symbol] = ctypes.cast(getattr(ctypes.pythonapi, symbol), ctypes.c_void_p).value or 0
    library = _libraries[name] = llvm.load(text, name, {**symbols, "styrax_failed": id(_failed)}, -1, share=False)
    return library


def _interruptible() -> llvm.Library:
    return _libraries.get("interruptible") or _library("interruptible", _INTERRUPTIBLE)


def _resolve(symbol: str) -> int | None:
    if not symbol.startswith(_PREFIX):
        return None
    count = int(symbol[len(_PREFIX):])
    stores = "".join(f"  %at{i} = getelementptr ptr, ptr %block, i64 {i}\n  store ptr %p{i}, ptr %at{i}\n"
                     for i in range(count))
    text = _TRAMPOLINE.replace("SYMBOL", symbol).replace("COUNT", str(count)).replace("STORES", stores)
    text = text.replace("PARAMETERS", ", ".join(["i64 %number", *(f"ptr %p{i}" for i in range(count))]))
    shared = {name: _interruptible().address(name) for name in ("styrax_word", "styrax_main")}
    library = _library(symbol, text, styrax_call=id(_call), **shared)
    return library.address(symbol)


llvm.add_resolver(_resolve)


class _Run:
    """One run of a program: its cancel word, the exception that ended it."""

    __slots__ = ("cancel", "error", "in_python")

    def __init__(self) -> None:
        self.cancel = ctypes.c_int32()
        self.error: BaseException | None = None
        self.in_python = False

    def fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        self.cancel.value = 1

    def perform(self, number: int, block: int) -> None:
        """Calls a function on what the addresses in the block point to."""
        call = calls[number]
        count = sum([not is_empty(shape) for shape, _ in (*call.ins, *call.outs)])
        addresses = iter((ctypes.c_void_p * count).from_address(block))
        ins = [_view(addresses, *spec) for spec in call.ins]
        outs = [_view(addresses, *spec) for spec in call.outs]
        if self.error is None:
            try:
                if call.in_place:
                    call.function(ins, outs)
                    return
                for out, result in zip(outs, call.function(*ins), strict=True):
                    out[...] = result
                return
            except BaseException as error:
                self.fail(error)
        for out in outs:
            out[...] = np.zeros((), out.dtype)


class _State(threading.local):
    run: _Run | None = None  # what this thread runs


_state = _State()
_runs: set[_Run] = set()


def _call(number: int, block: int) -> None:
    run = _state.run
    assert run is not None
    run.in_python = True
    try:
        run.perform(number, block)
    finally:
        run.in_python = False


def _failed(error: BaseException) -> None:
    if _state.run is not None:
        _state.run.fail(error)


def _view(addresses: Iterator[int | None], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if is_empty(shape):
        return np.empty(shape, dtype)
    size = dtype.itemsize
    for d in shape:
        size *= d
    memory = (ctypes.c_char * size).from_address(next(addresses) or 0)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)  # type: ignore[call-overload]


@cache
def _run(how: str) -> Callable[..., int]:
    return dispatch.function(_interruptible().address(how), release=how != "run")  # which lets go of the GIL itself


class CallingExecutable(Executable):
    """A compiled program that calls Python functions."""

    __slots__ = ()
    trial = PLENTY

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.queued = False  # Python is called in the thread of the caller

    def take_code(self, library: Any) -> None:
        super().take_code(library)
        self.entry = self._enter

    def _enter(self, *words: int) -> int:
        block = (ctypes.c_int64 * len(words))(*words)
        run, before = _Run(), _state.run
        places = ctypes.addressof(block), ctypes.addressof(run.cancel)
        try:
            _state.run = run
            _runs.add(run)
            if (threading.current_thread() is threading.main_thread()
                    and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
                status = _run("run")(self.address, *places)
            else:
                status = _run("run_elsewhere")(self.address, *places)
        finally:
            _state.run = before
            _runs.discard(run)
        if run.error is None:
            return status
        if not isinstance(run.error, Exception):
            raise run.error  # an interrupt, or an exit
        raise callback_failed(run.error) from run.error

    def enqueue(self, words: Sequence[int], waiting: Sequence[Any], outs: Sequence[Any], held: Any) -> None:
        """Not on the queue, whose thread cannot call Python: runs the program when what it waits for has ended."""
        for job in waiting:
            status = job.wait()
            if status:
                self.fail(status)
        status = self._enter(*words)
        if status:
            self.fail(status)


def _at_exit() -> None:
    # What still runs does so in daemon threads, for which nobody waits. Their programs must not go on while the
    # interpreter takes their buffers apart; a function that one of them has called may never return.
    for run in list(_runs):
        run.cancel.value = 1
    while any(not run.in_python for run in list(_runs)):
        time.sleep(1e-3)


atexit.register(_at_exit)
