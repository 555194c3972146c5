"""Calling native code from Python in a tenth of a microsecond.

A ctypes call costs 0.3 µs plus 0.1 µs per pointer, several times what a small program runs. Here a few
trampolines are generated that CPython calls as built-in functions (``METH_FASTCALL``): they read the
addresses out of Python integers and call on. Everything they use of CPython is in its stable ABI
(``PyLong_AsSsize_t``, ``PyLong_FromSsize_t``, ``PyFloat_AsDouble``, …; ``PyMethodDef`` is public), so that
they hold for all versions from 3.11 on.

Addresses are Python integers; nothing here keeps buffers alive or checks what an address points to.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from . import background, buffer_protocol, floating_point, llvm

_METH_FASTCALL = 0x0080
_WORDS_AT_MOST = 8  # direct arguments of a native function that `function` can call

DECLARATIONS = """
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyLong_FromSsize_t(i64)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyErr_Occurred()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @PyErr_SetString(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyFloat_FromDouble(double)
@PyExc_TypeError = external global ptr
@count = internal constant [26 x i8] c"wrong number of arguments\\00"
@never = internal global i32 0, align 64

define internal ptr @wrong() nounwind noinline cold {
  %type = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %type, ptr @count)
  ret ptr null
}
"""

# The address that a built-in function belongs to.
OWN = """
  %self_word = call i64 @PyLong_AsSsize_t(ptr %self)
  %own = inttoptr i64 %self_word to ptr
"""

# Reads nargs integers into %block; continues at %ready.
READ = """
  %any = icmp sgt i64 %nargs, 0
  br i1 %any, label %reading, label %ready
reading:
  br label %read
read:
  %i = phi i64 [0, %reading], [%i1, %stored]
  %at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %at
  %word = call i64 @PyLong_AsSsize_t(ptr %object)
  %odd = icmp eq i64 %word, -1
  br i1 %odd, label %ask, label %stored
ask:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %fail, label %stored
fail:
  ret ptr null
stored:
  %to = getelementptr i64, ptr %block, i64 %i
  store i64 %word, ptr %to
  %i1 = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i1, %nargs
  br i1 %more, label %read, label %ready
ready:
"""



def entry(count: int) -> str:
    """The entry of a trampoline of so many arguments, which refuses other numbers of them."""
    return f"""entry:
  %fits = icmp eq i64 %nargs, {count}
  br i1 %fits, label %start, label %refuse
refuse:
  %none = call ptr @wrong()
  ret ptr %none
start:"""


SAVE = "  %state = call ptr @PyEval_SaveThread()\n"
RESTORE = "  call void @PyEval_RestoreThread(ptr %state)\n"


def _program_trampoline(name: str, release: bool) -> str:
    """``name(*words)`` → status of ``i32 program(ptr words, ptr cancel)``."""
    return f"""
define internal ptr @{name}(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:
  %block = alloca i64, i64 %nargs, align 8{OWN}{READ}{SAVE if release else ""}
  %mode = call i64 @flush_subnormals()
  %status = call i32 %own(ptr %block, ptr @never)
  call void @set_mode(i64 %mode)
{RESTORE if release else ""}  %wide = sext i32 %status to i64
  %result = call ptr @PyLong_FromSsize_t(i64 %wide)
  ret ptr %result
}}
"""


def _word_trampoline(name: str, release: bool) -> str:
    """``name(a, b, …)`` → result of ``i64 function(i64 a, i64 b, …)``. All eight words are passed always: in
    C's conventions the caller clears the stack, and a function does not see what it did not declare."""
    loads, words = "", []
    for i in range(_WORDS_AT_MOST):
        loads += f"  %p{i} = getelementptr i64, ptr %block, i64 {i}\n  %w{i} = load i64, ptr %p{i}\n"
        words.append(f"i64 %w{i}")
    return f"""
define internal ptr @{name}(ptr %self, ptr %args, i64 %nargs) nounwind {{
entry:
  %block = alloca [{_WORDS_AT_MOST} x i64], align 8
  store [{_WORDS_AT_MOST} x i64] zeroinitializer, ptr %block
  %fits = icmp sle i64 %nargs, {_WORDS_AT_MOST}
  br i1 %fits, label %start, label %refuse
refuse:
  %none = call ptr @wrong()
  ret ptr %none
start:{OWN}{READ}{loads}{SAVE if release else ""}
  %word_result = call i64 %own({", ".join(words)})
{RESTORE if release else ""}  %result = call ptr @PyLong_FromSsize_t(i64 %word_result)
  ret ptr %result
}}
"""


# ``copy(to, at, count)``: so many bytes from the address that stands at ``at``.
COPY = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal ptr @copy(ptr %self, ptr %args, i64 %nargs) nounwind {{
{entry(3)}
  %block = alloca [3 x ptr], align 8{READ}
  %at_place = getelementptr ptr, ptr %block, i64 1
  %count_place = getelementptr ptr, ptr %block, i64 2
  %target = load ptr, ptr %block
  %there = load ptr, ptr %at_place
  %count = load i64, ptr %count_place
  %source = load ptr, ptr %there
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %count, i1 false)
  %result = call ptr @PyLong_FromSsize_t(i64 0)
  ret ptr %result
}}
"""

# Scalars in memory: name → IR type, and how to convert from and to i64 or double.
_SCALARS = {
    "bool": ("i8", "trunc i64", "zext i8"),
    "int8": ("i8", "trunc i64", "sext i8"),
    "uint8": ("i8", "trunc i64", "zext i8"),
    "int16": ("i16", "trunc i64", "sext i16"),
    "uint16": ("i16", "trunc i64", "zext i16"),
    "int32": ("i32", "trunc i64", "sext i32"),
    "uint32": ("i32", "trunc i64", "zext i32"),
    "int64": ("i64", "", ""),
    "uint64": ("i64", "", ""),
    "float32": ("float", "fptrunc double", "fpext float"),
    "float64": ("double", "", ""),
}


def _scalar_trampolines(name: str) -> str:
    kind, narrow, widen = _SCALARS[name]
    floating = kind in ("float", "double")
    wide = "double" if floating else "i64"
    read = "double @PyFloat_AsDouble" if floating else "i64 @PyLong_AsSsize_t"
    make = "@PyFloat_FromDouble(double" if floating else "@PyLong_FromSsize_t(i64"
    if name == "uint64":
        read, make = "i64 @PyLong_AsUnsignedLongLong", "@PyLong_FromUnsignedLongLong(i64"
    odd = "fcmp oeq double %wide, -1.0" if floating else "icmp eq i64 %wide, -1"
    narrowed = f"{narrow} %wide to {kind}" if narrow else f"bitcast {wide} %wide to {kind}"
    widened = f"{widen} %value to {wide}" if widen else f"bitcast {kind} %value to {wide}"
    address = """
  %first = load ptr, ptr %args
  %word = call i64 @PyLong_AsSsize_t(ptr %first)
  %bad = icmp eq i64 %word, -1
  br i1 %bad, label %fail, label %good
fail:
  ret ptr null
good:
  %place = inttoptr i64 %word to ptr
"""
    return f"""
define internal ptr @put_{name}(ptr %self, ptr %args, i64 %nargs) nounwind {{
{entry(2)}{address}
  %second = getelementptr ptr, ptr %args, i64 1
  %object = load ptr, ptr %second
  %wide = call {read}(ptr %object)
  %odd = {odd}
  br i1 %odd, label %ask, label %write
ask:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %fail, label %write
write:
  %value = {narrowed}
  store {kind} %value, ptr %place
  %result = call ptr @PyLong_FromSsize_t(i64 0)
  ret ptr %result
}}
define internal ptr @get_{name}(ptr %self, ptr %args, i64 %nargs) nounwind {{
{entry(1)}{address}
  %value = load {kind}, ptr %place
  %wide = {widened}
  %result = call ptr {make} %wide)
  ret ptr %result
}}
"""


def definition(name: str) -> str:
    """The structure by which CPython knows a built-in function."""
    return (f'@name_{name} = internal constant [{len(name) + 1} x i8] c"{name}\\00"\n'
            f"@def_{name} = global {{ptr, ptr, i32, ptr}} "
            f"{{ptr @name_{name}, ptr @{name}, i32 {_METH_FASTCALL}, ptr null}}, align 8\n")


def _calls_source() -> str:
    text = DECLARATIONS + floating_point.source(floating_point.processor()) + buffer_protocol.SOURCE
    for suffix, release in (("", False), ("_releasing", True)):
        text += _program_trampoline("program" + suffix, release) + definition("program" + suffix)
        text += _word_trampoline("word" + suffix, release) + definition("word" + suffix)
    return text + COPY + definition("copy")


def _scalars_source(dtype: str) -> str:
    return (DECLARATIONS + _scalar_trampolines(dtype) + definition("put_" + dtype)
            + definition("get_" + dtype))


_definitions: dict[str, int] = {}
_python: list = []
_lock = threading.Lock()


def built_in(name: str, target: int, source: Callable[[], str]) -> Callable[..., int]:
    """A built-in function that belongs to an address.

    Args:
      name: of the trampoline, which with others is compiled when the first of them is wanted.
      source: gives their IR.
    """
    found = _definitions.get(name)
    if found is None:
        with background.Work(), _lock:  # another thread may be at it
            if name not in _definitions:
                _define(source())
        found = _definitions[name]
    return _python[0].new(found, target, None)


def _define(source: str) -> None:
    if not _python:
        _python.append(_Python())
    python = _python[0]
    # Compiled in the first call of a process without a cache: 2 ms like this, 13 ms optimised, which
    # would save 5 ns per call.
    library = llvm.load(source, "dispatch", symbols=python.used, level=llvm.BARE)
    python.libraries.append(library)
    if "get_buffer" in library.symbols:
        buffer_protocol.install(library)
    for symbol in library.symbols:
        _definitions[symbol[4:]] = library.address(symbol)


class _Python:
    """What is used of CPython. The libraries are never unloaded: built-in functions point into them."""

    __slots__ = ("libraries", "new", "used")

    def __init__(self) -> None:
        api = ctypes.pythonapi
        self.libraries: list[llvm.Library] = []
        self.used = {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in _USED}
        self.used["PyExc_TypeError"] = ctypes.addressof(ctypes.c_void_p.in_dll(api, "PyExc_TypeError"))
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        self.new = make(ctypes.cast(api.PyCFunction_NewEx, ctypes.c_void_p).value or 0)


_USED = ("PyErr_Occurred", "PyErr_SetString", "PyEval_RestoreThread", "PyEval_SaveThread", "PyFloat_AsDouble",
         "PyFloat_FromDouble", "PyLong_AsSsize_t", "PyLong_AsUnsignedLongLong", "PyLong_FromSsize_t",
         "PyLong_FromUnsignedLongLong", *buffer_protocol.SYMBOLS)


def make_caller(fn_address: int, release: bool = False) -> Callable[..., int]:
    """A function of any number of integers that calls ``i32 program(ptr words, ptr cancel)`` at
    ``fn_address`` with them in an array, and returns its status. ``cancel`` points to a word that stays 0.

    With ``release`` the GIL is let go meanwhile: for programs of more than some 20 µs, which other threads
    should not wait for. Raises TypeError and OverflowError for arguments that are not 64-bit integers.
    """
    return built_in("program_releasing" if release else "program", fn_address, _calls_source)


def function(fn_address: int, release: bool = False) -> Callable[..., int]:
    """A function of up to 8 integers that calls ``i64 f(i64, …)`` at ``fn_address`` and returns its result.
    Pointers are integers here; an i32 result must be sign-extended by ``f`` itself."""
    return built_in("word_releasing" if release else "word", fn_address, _calls_source)


def copier() -> Callable[[int, int, int], int]:
    """A function ``copy(to, at, count)`` that copies so many bytes to an address from that which stands at another."""
    return built_in("copy", 0, _calls_source)


def put(dtype: str) -> Callable[[int, float], int]:
    """A function ``put(address, number)`` that stores a Python number as ``dtype`` ("float32", "int8", …)."""
    return built_in("put_" + dtype, 0, lambda: _scalars_source(dtype))


def get(dtype: str) -> Callable[[int], Any]:
    """A function ``get(address)`` that loads a Python number stored as ``dtype``."""
    return built_in("get_" + dtype, 0, lambda: _scalars_source(dtype))
