"""XLA's calling convention for foreign functions: structures in memory, and the functions that they may call back.

A function gets an `XLA_FFI_CallFrame*`: its operands and results as buffers, its attributes, and a table of functions
(errors, memory, threads, state). It returns null, or an error that the table's function made. The layout is that of
version 0.3 of the interface, which the C header describes.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p, sizeof
from functools import cache
from typing import Any

import numpy as np

from ..core.tracing.errors import CallFailed
from .targets import STAGES, Target, assign_type, pycapsule, register_ffi_target

VERSION = (0, 3)
CODES = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
         "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
         "UNAUTHENTICATED").split()
TYPES = {  # the interface's numbers of element types
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "complex64": 15, "bfloat16": 16, "complex128": 18, "float8_e5m2": 19,
    "float8_e4m3fn": 20, "int4": 21, "uint4": 22, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24,
    "float8_e4m3fnuz": 25, "int2": 26, "uint2": 27, "float8_e4m3": 28, "float8_e3m4": 29, "float4_e2m1fn": 32,
    "float8_e8m0fnu": 33,
}
BUFFER = 1
ARRAY, DICTIONARY, SCALAR, STRING = 1, 2, 3, 4  # kinds of attributes
UNIMPLEMENTED, NOT_FOUND, INVALID = CODES.index("UNIMPLEMENTED"), CODES.index("NOT_FOUND"), 3


def _structure(name: str, *fields: tuple[str, Any], headed: bool = True) -> Any:
    head = [("struct_size", c_size_t), ("extension_start", c_void_p)] if headed else []
    return type(name, (Structure,), {"_fields_": [*head, *fields]})


ByteSpan = _structure("ByteSpan", ("ptr", c_void_p), ("len", c_size_t), headed=False)
Scalar = _structure("Scalar", ("dtype", c_int), ("value", c_void_p), headed=False)
ArrayAttribute = _structure("ArrayAttribute", ("dtype", c_int), ("size", c_size_t), ("data", c_void_p), headed=False)
Buffer = _structure("Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", c_void_p))
Operands = _structure("Operands", ("size", c_int64), ("types", c_void_p), ("values", c_void_p))
Attributes = _structure("Attributes", ("size", c_int64), ("types", c_void_p), ("names", c_void_p),
                        ("values", c_void_p))
CallFrame = _structure("CallFrame", ("api", c_void_p), ("ctx", c_void_p), ("stage", c_int), ("args", Operands),
                       ("rets", Operands), ("attrs", Attributes), ("future", c_void_p))
ApiVersion = _structure("ApiVersion", ("major", c_int), ("minor", c_int))

ErrorCreate = _structure("ErrorCreate", ("message", c_char_p), ("code", c_int))
ErrorMessage = _structure("ErrorMessage", ("error", c_void_p), ("message", c_void_p))
ErrorDestroy = _structure("ErrorDestroy", ("error", c_void_p))
HandlerRegister = _structure("HandlerRegister", ("name", ByteSpan), ("platform", ByteSpan),
                             ("stages", c_void_p * len(STAGES)), ("traits", ctypes.c_uint32))
TypeRegister = _structure("TypeRegister", ("name", ByteSpan), ("type_id", c_void_p), ("type_info", c_void_p))
ContextGet = _structure("ContextGet", ("ctx", c_void_p), ("type_id", c_void_p), ("data", c_void_p))
State = _structure("State", ("ctx", c_void_p), ("stage", c_int), ("type_id", c_void_p), ("state", c_void_p))
StreamGet = _structure("StreamGet", ("ctx", c_void_p), ("stream", c_void_p))
Allocate = _structure("Allocate", ("ctx", c_void_p), ("size", c_size_t), ("alignment", c_size_t), ("data", c_void_p))
Free = _structure("Free", ("ctx", c_void_p), ("size", c_size_t), ("data", c_void_p))
Schedule = _structure("Schedule", ("ctx", c_void_p), ("task", c_void_p), ("data", c_void_p))
NumThreads = _structure("NumThreads", ("ctx", c_void_p), ("num_threads", POINTER(c_int64)))
FutureCreate = _structure("FutureCreate", ("future", c_void_p))
FutureError = _structure("FutureError", ("future", c_void_p), ("error", c_void_p))
RunId = _structure("RunId", ("ctx", c_void_p), ("run_id", c_int64))
DeviceOrdinal = _structure("DeviceOrdinal", ("ctx", c_void_p), ("ordinal", c_int32))

_Handler = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class _Handles:
    """Objects by the numbers that native code has of them."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        self.next = 0
        self.lock = threading.Lock()

    def add(self, thing: Any) -> int:
        with self.lock:
            self.next += 1
            self.objects[self.next] = thing
            return self.next

    def take(self, number: int | None) -> Any:
        return self.objects.pop(number, None) if number else None


class Context:
    """What belongs to one foreign call in a program: the states that its stages keep, and memory that it asked for."""

    def __init__(self) -> None:
        self.states: dict[int, int] = {}
        self.memory: dict[int, Any] = {}
        self.handle = _contexts.add(self)


_contexts = _Handles()
_errors = _Handles()
_futures = _Handles()


class _Future:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: tuple[str, int] | None = None


def _error(message: str, code: int) -> int:
    return _errors.add((message, code))


def _span(span: Any) -> str:
    return ctypes.string_at(span.ptr, span.len).decode()


def _error_message(args: Any) -> None:
    text = ctypes.create_string_buffer(_errors.objects[args.error][0].encode())
    _messages[args.error] = text
    args.message = ctypes.addressof(text)


_messages: dict[int, Any] = {}


def _error_destroy(args: Any) -> None:
    _errors.take(args.error)
    _messages.pop(args.error, None)


def _register_handler(args: Any) -> None:
    stages = {stage: pycapsule(address) for stage, address in zip(STAGES, args.stages) if address}
    register_ffi_target(_span(args.name), stages, _span(args.platform))


def _state_set(args: Any) -> None:
    _contexts.objects[args.ctx].states[args.stage] = args.state


def _state_get(args: Any) -> int | None:
    state = _contexts.objects[args.ctx].states.get(args.stage)
    if state is None:
        return _error(f"State is not set for the stage {STAGES[args.stage]}", NOT_FOUND)
    args.state = state
    return None


def _allocate(args: Any) -> None:
    block = ctypes.create_string_buffer(args.size + args.alignment)
    start = ctypes.addressof(block)
    args.data = start + -start % max(args.alignment, 1)
    _contexts.objects[args.ctx].memory[args.data] = block


def _free(args: Any) -> None:
    _contexts.objects[args.ctx].memory.pop(args.data, None)


def _schedule(args: Any) -> None:
    ctypes.CFUNCTYPE(None, c_void_p)(args.task)(args.data)


def _num_threads(args: Any) -> None:
    args.num_threads[0] = 1


def _future_create(args: Any) -> None:
    args.future = _futures.add(_Future())


def _future_available(args: Any) -> None:
    _futures.objects[args.future].done.set()


def _future_error(args: Any) -> None:
    future = _futures.objects[args.future]
    future.error = _errors.take(args.error)
    future.done.set()


# The table in the order of the interface: what a call's structure is, and what it does.
_FUNCTIONS: list[tuple[Any, Callable[[Any], int | None]]] = [
    (ErrorCreate, lambda args: _error(args.message.decode(), args.code)),
    (ErrorMessage, _error_message),
    (ErrorDestroy, _error_destroy),
    (HandlerRegister, _register_handler),
    (StreamGet, lambda args: _error("XLA FFI GPU context is not available", UNIMPLEMENTED)),
    (TypeRegister, lambda args: assign_type(_span(args.name), args.type_id)),
    (ContextGet, lambda args: _error("User data of this type is not in the execution context", NOT_FOUND)),
    (State, _state_set),
    (State, _state_get),
    (Allocate, _allocate),
    (Free, _free),
    (Schedule, _schedule),
    (NumThreads, _num_threads),
    (FutureCreate, _future_create),
    (FutureError, _future_available),
    (FutureError, _future_error),
    (RunId, lambda args: setattr(args, "run_id", 0)),
    (DeviceOrdinal, lambda args: setattr(args, "ordinal", 0)),
]


def _entry(kind: Any, function: Callable[[Any], int | None]) -> Any:
    def called(address: int) -> int | None:
        try:
            return function(kind.from_address(address))
        except Exception as error:
            return _error(str(error), CODES.index("INTERNAL"))

    return _Handler(called)


@cache
def _api() -> tuple[Any, list[Any]]:
    """The `XLA_FFI_Api`, and what must live as long as it."""
    entries = [_entry(*row) for row in _FUNCTIONS]
    kind = _structure("Api", ("version", ApiVersion), ("internal", c_void_p), ("functions", c_void_p * len(entries)))
    api = kind(struct_size=sizeof(kind))
    api.version = ApiVersion(sizeof(ApiVersion), None, *VERSION)
    for i, entry in enumerate(entries):
        api.functions[i] = ctypes.cast(entry, c_void_p).value
    return api, entries


class _Memory:
    """Native structures that live as long as a frame."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def keep(self, thing: Any) -> int:
        self.kept.append(thing)
        return ctypes.addressof(thing)

    def array(self, kind: Any, values: Sequence[Any]) -> int:
        return self.keep((kind * max(len(values), 1))(*values))

    def data(self, array: np.ndarray) -> int:
        array = np.ascontiguousarray(array)
        self.kept.append(array)
        return array.ctypes.data

    def bytes(self, text: bytes) -> Any:
        return ByteSpan(self.keep(ctypes.create_string_buffer(text)), len(text))

    def buffers(self, arrays: Sequence[np.ndarray]) -> Any:
        places = [self.keep(Buffer(sizeof(Buffer), None, type_number(a.dtype), a.ctypes.data, a.ndim,
                                   self.array(c_int64, a.shape))) for a in arrays]
        return Operands(sizeof(Operands), None, len(places), self.array(c_int, [BUFFER] * len(places)),
                        self.array(c_void_p, places))

    def attributes(self, given: Mapping[str, Any]) -> Any:
        names = sorted(given)
        pairs = [self.attribute(given[name]) for name in names]
        spans = [self.keep(self.bytes(name.encode())) for name in names]
        return Attributes(sizeof(Attributes), None, len(names), self.array(c_int, [kind for kind, _ in pairs]),
                          self.array(c_void_p, spans), self.array(c_void_p, [place for _, place in pairs]))

    def attribute(self, value: Any) -> tuple[int, int]:
        """An attribute's kind and place. Raises TypeError for what cannot be one."""
        if isinstance(value, (str, bytes)):
            return STRING, self.keep(self.bytes(value.encode() if isinstance(value, str) else value))
        if isinstance(value, dict):
            return DICTIONARY, self.keep(self.attributes(value))
        if isinstance(value, (np.ndarray, tuple)) and np.ndim(value):
            array = np.asarray(value)
            return ARRAY, self.keep(ArrayAttribute(type_number(array.dtype), array.size, self.data(array)))
        if not isinstance(value, (bool, int, float, np.generic, np.ndarray)):
            raise TypeError(f"No attribute handler defined for type: {type(value)}")
        array = np.asarray(value)
        array = array if array.dtype.itemsize else np.zeros((), np.bool_)
        return SCALAR, self.keep(Scalar(type_number(array.dtype), self.data(array)))


def type_number(dtype: Any) -> int:
    """The interface's number of a dtype. Raises TypeError for one that it has not."""
    try:
        return TYPES[dtype.name]
    except KeyError:
        raise TypeError(f"foreign functions know no elements of type {dtype}") from None


def invoke(target: Target, stage: str, context: Context, ins: Sequence[np.ndarray], outs: Sequence[np.ndarray],
           attributes: Mapping[str, Any]) -> None:
    """Calls a stage of a foreign function, if it has it. It reads `ins` and writes `outs` where they lie.

    Raises:
      CallFailed: the function returned an error.
    """
    address = target.stages.get(stage)
    if address is None:
        return
    memory = _Memory()
    size = CallFrame.future.offset  # handlers ask for the size without what they set
    frame = CallFrame(size, None, ctypes.addressof(_api()[0]), context.handle, STAGES.index(stage),
                      memory.buffers(ins), memory.buffers(outs), memory.attributes(attributes), None)
    number = _Handler(address)(ctypes.addressof(frame))
    error = _errors.take(number)
    if number and error is None:
        raise failed("a foreign function returned an unknown error", INVALID)
    if frame.future:
        future = _futures.take(frame.future)
        future.done.wait()
        error = error or future.error
    if error is not None:
        raise failed(*error)


def failed(message: str, code: int) -> CallFailed:
    """The exception for an error that a foreign function returned."""
    return CallFailed(f"{CODES[code]}: {message}")


def invoke_untyped(target: Target, ins: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
    """Calls a function of the older convention: `f(result or results, operands)`, addresses all of them."""
    places = (c_void_p * max(len(ins), 1))(*(x.ctypes.data for x in ins))
    results = (c_void_p * max(len(outs), 1))(*(x.ctypes.data for x in outs))
    out = outs[0].ctypes.data if len(outs) == 1 else ctypes.addressof(results)
    ctypes.CFUNCTYPE(None, c_void_p, c_void_p)(target.stages["execute"])(out, ctypes.addressof(places))
