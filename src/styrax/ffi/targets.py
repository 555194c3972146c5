"""Which native functions and types foreign calls can name."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from ..core.tracing.errors import JaxRuntimeError
from ..core.types.typing import PyTree

PyCapsule = Any  # `PyCapsule_New` makes them; they have no name in Python
STAGES = ("instantiate", "prepare", "initialize", "execute")
TYPED = 1  # the version of `register_ffi_target` whose functions take an `XLA_FFI_CallFrame*`
_CPU = ("cpu", "host")
_HEADER = Path("xla") / "ffi" / "api" / "c_api.h"


class TypeRegistration(TypedDict, total=False):
    """A type of user data: a capsule with an `XLA_FFI_TypeId*`, and one with an `XLA_FFI_TypeInfo*`."""

    type_id: PyCapsule
    type_info: PyCapsule


class Target:
    """A native function: the addresses of its stages, and the version of its calling convention."""

    __slots__ = ("api_version", "stages")

    def __init__(self, stages: Mapping[str, int], api_version: int):
        self.stages = dict(stages)
        self.api_version = api_version


targets: dict[tuple[str, str], Target] = {}  # (name, platform) -> function
type_ids: dict[str, int] = {}
batch_partitionable: set[str] = set()


def _api(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def pycapsule(funcptr: PyTree) -> PyCapsule:
    """A pointer, such as a function of a library that `ctypes` loaded, as a capsule for `register_ffi_target`."""
    new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def address_of(capsule: PyCapsule) -> int:
    """The pointer in a capsule. Raises ValueError for anything else."""
    if type(capsule).__name__ != "PyCapsule":
        raise ValueError(f"not a capsule: {capsule!r}")
    name = _api("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)(capsule)
    return _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(capsule, name)


def include_dir() -> str:
    """The folder with the headers that foreign functions are compiled with, for a compiler's `-I`.

    The header of the C interface is this package's own; where XLA's headers are installed, it is their folder, which
    has the C++ interface, too.
    """
    for folder in sys.path:
        installed = Path(folder) / "jaxlib" / "include"
        if (installed / _HEADER).exists():
            return str(installed)
    return str(Path(__file__).parent / "include")


def register_ffi_target(name: str, fn: PyTree, platform: str = "cpu", api_version: int = 1, **kwargs: PyTree) -> None:
    """Makes a native function known.

    Args:
      name: the name by which `ffi_call` finds it.
      fn: a capsule with its address (`pycapsule`), or a dictionary with capsules for some of the stages "instantiate",
        "prepare", "initialize" and "execute".
      platform: where it runs.
      api_version: 1 for functions of an `XLA_FFI_CallFrame*`; 0 for functions of the results' and the operands'
        addresses.

    Raises:
      JaxRuntimeError: `fn` is no capsule, or the name is taken by another function.
    """
    stages = fn if isinstance(fn, Mapping) else {"execute": fn}
    try:
        addresses = {stage: address_of(stages[stage]) for stage in STAGES if stages.get(stage) is not None}
    except ValueError:
        addresses = {}
    if "execute" not in addresses:
        raise JaxRuntimeError(f"INVALID_ARGUMENT: Unsupported custom call target type for api_version={api_version}")
    key = name, "cpu" if platform.lower() in _CPU else platform
    known = targets.get(key)
    if known is not None and known.stages != addresses:
        raise JaxRuntimeError(f"ALREADY_EXISTS: Duplicate FFI handler registration for {name} on a platform {platform}")
    targets[key] = Target(addresses, api_version)


def find(name: str) -> Target:
    """The function of a name on this machine's processors.

    Raises JaxRuntimeError where there is none.
    """
    found = targets.get((name, "cpu"))
    if found is None:
        raise JaxRuntimeError(f"NOT_FOUND: No FFI handler registered for {name} on a platform Host (canonical host)")
    return found


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Says that a function's leading dimensions are batches, which devices may share."""
    batch_partitionable.add(name)


def register_ffi_type(name: str, type_registration: TypeRegistration, platform: str = "cpu") -> None:
    """Makes a type of user data known: its number is written where the capsule `type_id` points to.

    Raises:
      ValueError: there is no such capsule.
    """
    if not isinstance(type_registration, Mapping) or "type_id" not in type_registration:
        raise ValueError(f"a type registration needs the capsule 'type_id', got {type_registration!r}")
    register_ffi_type_id(name, type_registration["type_id"], platform)


def register_ffi_type_id(name: str, obj: PyCapsule, platform: str = "cpu") -> None:
    """Makes the number of a type of user data known, by a capsule with an `XLA_FFI_TypeId*`.

    The number is written there; one that stands there already stays.

    Raises:
      ValueError: `obj` is no capsule.
    """
    assign_type(name, address_of(obj))


def assign_type(name: str, address: int) -> None:
    """Writes the number of a type to an `XLA_FFI_TypeId`."""
    number = ctypes.c_int64.from_address(address)
    if name not in type_ids:
        type_ids[name] = number.value or max(type_ids.values(), default=0) + 1
    number.value = type_ids[name]
