"""LLVM's shared library, from the llvmlite wheel, by ctypes.

``import llvmlite.binding`` loads 40 ms of Python modules that are not needed here; opening the library costs
7 ms, most of it page faults of its relocations.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p

from . import background

_identity: list[bytes] = []
_opened: list[ctypes.CDLL] = []
_opening = threading.Lock()
_P = c_void_p

# Name after LLVMPY_: result, arguments.
_PROTOTYPES: dict[str, tuple] = {
    "GetDefaultTargetTriple": (None, POINTER(_P)),
    "GetHostCPUName": (None, POINTER(_P)),
    "GetHostCPUFeatures": (c_int, POINTER(_P)),
    "DisposeString": (None, _P),
    "InitializeNativeTarget": (c_int,),
    "InitializeNativeAsmPrinter": (c_int,),
    "ContextCreate": (_P,),
    "ContextDispose": (None, _P),
    "ParseAssembly": (_P, _P, c_char_p, POINTER(_P)),
    "VerifyModule": (c_bool, _P, POINTER(_P)),
    "DisposeModule": (None, _P),
    "PrintModuleToString": (None, _P, POINTER(_P)),
    "ModuleFunctionsIter": (_P, _P),
    "FunctionsIterNext": (_P, _P),
    "DisposeFunctionsIter": (None, _P),
    "IsDeclaration": (c_int, _P),
    "GetTargetFromTriple": (_P, c_char_p, POINTER(_P)),
    "CreateTargetMachine": (_P, _P, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int,
                            c_char_p),
    "CreateTargetMachineData": (_P, _P),
    "CopyStringRepOfTargetData": (None, _P, POINTER(_P)),
    "DisposeTargetData": (None, _P),
    "TargetMachineEmitToMemory": (_P, _P, _P, c_int, POINTER(_P)),
    "GetBufferStart": (_P, _P),
    "GetBufferSize": (c_size_t, _P),
    "DisposeMemoryBuffer": (None, _P),
    "CreatePipelineTuningOptions": (_P, c_int),
    "PTOSetLoopVectorization": (None, _P, c_bool),
    "PTOSetSLPVectorization": (None, _P, c_bool),
    "PTOSetLoopUnrolling": (None, _P, c_bool),
    "PTOSetLoopInterleaving": (None, _P, c_bool),
    "DisposePipelineTuningOptions": (None, _P),
    "CreatePassBuilder": (_P, _P, _P),
    "DisposePassBuilder": (None, _P),
    "CreateNewModulePassManager": (_P,),
    "DisposeNewModulePassManger": (None, _P),  # spelled so in the library
    "RunNewModulePassManager": (None, _P, _P, _P),
    "module_AddAlwaysInlinerPass": (None, _P),
    "module_AddSROAPass": (None, _P),
    "module_AddInstCombinePass": (None, _P),
    "module_AddSimplifyCFGPass": (None, _P),
    "buildFunctionSimplificationPipeline": (_P, _P, c_int),
    "RunNewFunctionPassManager": (None, _P, _P, _P),
    "DisposeNewFunctionPassManger": (None, _P),
    "GetVersionInfo": (c_uint,),
    "SetCommandLine": (None, c_char_p, c_char_p),
}


# Those that let other threads run Python meanwhile: waiting for one's turn again costs up to 5 ms.
_LONG = {f"LLVMPY_{name}" for name in (
    "InitializeNativeTarget", "InitializeNativeAsmPrinter", "ParseAssembly", "TargetMachineEmitToMemory",
    "RunNewModulePassManager", "RunNewFunctionPassManager")}


def identity() -> bytes:
    """Says which library it is without opening it: path, size and time of its file."""
    if not _identity:
        file = path()
        info = os.stat(file)
        _identity.append(f"{file} {info.st_size} {info.st_mtime_ns}".encode())
    return _identity[0]


def path() -> str:
    """The file. ImportError if llvmlite is not installed."""
    from importlib.util import find_spec

    spec = find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("styrax compiles with LLVM, from the llvmlite package, which is not installed")
    names = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}
    file = names.get(sys.platform, "libllvmlite.so")
    return os.path.join(spec.submodule_search_locations[0], "binding", file)


def loaded() -> bool:
    """Whether the library is open."""
    return bool(_opened)


def handle() -> ctypes.CDLL:
    """The library, opened and told of the host's processor at the first call."""
    if not _opened:
        with background.Work(), _opening:  # another thread may be at it
            if not _opened:
                _open()
    return _opened[0]


def _open() -> None:
    lib, brief = ctypes.CDLL(path()), ctypes.PyDLL(path())
    for name, (result, *arguments) in _PROTOTYPES.items():
        name = f"LLVMPY_{name}"
        if name not in _LONG:
            setattr(lib, name, getattr(brief, name))
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    lib.LLVMPY_InitializeNativeTarget()
    lib.LLVMPY_InitializeNativeAsmPrinter()
    lib.LLVMPY_SetCommandLine(b"styrax", _REGISTERS[False])
    _opened.append(lib)


# Where code is generated quickly, too, what loops carry stays in registers, unless `fast` register allocation is asked
# for: that costs a quarter of the time and is worth a factor of up to five.
_REGISTERS = {False: b"-optimize-regalloc=true", True: b"-optimize-regalloc=false"}

_lean_lock = threading.Lock()
_lean_users: list[None] = []
_fast = [False]  # how registers are allocated now
# What switches are meanwhile, and afterwards. (The scheduler looks at every pair of stores of a block; processors that
# execute out of order run what it leaves and what it changes at the same speed, register pressure included.)
_LEAN = {"disable-lsr": ("true", "false"), "disable-mergeicmps": ("true", "false"), "enable-misched": ("false", "true")}
_turned: Counter[str] = Counter()  # how many want them so


@contextmanager
def lean(brief: bool = False, fast: bool = False) -> Iterator[None]:
    """Without passes of the code generator that cost a quarter of its time and find nothing in IR whose loops and
    addresses are already written as they should be; `brief` code generation has one of them only. With `fast` register
    allocation, which has none, if no other thread is at it, whose code may be for good. The switches are the library's,
    which others may use (Numba): they are turned back. Each turn costs 30 µs."""
    with _lean_lock:
        fast = fast and (_fast[0] or not _lean_users)
        names = () if fast else ("enable-misched",) if brief else tuple(_LEAN)
        _allocate(fast)
        _lean_users.append(None)
        for name in names:
            _turned[name] += 1
            if _turned[name] == 1:
                _switch(name, 0)
    try:
        yield
    finally:
        with _lean_lock:
            _lean_users.pop()
            for name in names:
                _turned[name] -= 1
                if not _turned[name]:
                    _switch(name, 1)
            if not _lean_users:
                _allocate(False)


def _allocate(fast: bool) -> None:
    if fast != _fast[0]:
        handle().LLVMPY_SetCommandLine(b"styrax", _REGISTERS[fast])
        _fast[0] = fast


def _switch(name: str, when: int) -> None:
    handle().LLVMPY_SetCommandLine(b"styrax", f"-{name}={_LEAN[name][when]}".encode())


def take(pointer: c_void_p) -> str:
    """The text of a string that LLVM allocated, which is freed."""
    if not pointer.value:
        return ""
    text = ctypes.string_at(pointer.value).decode(errors="replace")
    handle().LLVMPY_DisposeString(pointer)
    return text


def string(function: Callable[..., object], *arguments: object) -> str:
    """The text that a function of the library leaves in its last argument."""
    out = c_void_p()
    function(*arguments, byref(out))
    return take(out)
