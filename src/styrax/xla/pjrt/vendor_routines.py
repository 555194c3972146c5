"""Routines that a vendor's wheel has for programs of a plugin: NVIDIA's cuSOLVER, behind XLA's foreign functions.

The wheels' modules give handlers as capsules by name; they need no JAX. Programs call them by these names
(`lax.linalg.cusolver_calls`).
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator

from .foreign_functions import Registry
from .plugin import Plugin

# platform -> the packages that may carry routines for it, of which the first that is installed counts
_PACKAGES = {"cuda": ("jax_cuda13_plugin", "jax_cuda12_plugin")}
_MODULES = ("_solver", "_linalg")
NEEDED = frozenset(("cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"))  # from each module one

_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


def register(plugin: Plugin, platform: str) -> tuple[str, ...]:
    """Makes the routines for a platform known to its plugin. Gives the names of libraries that programs may call."""
    for package in _PACKAGES.get(platform, ()):
        handlers = dict(_handlers(package))
        if handlers.keys() >= NEEDED:
            registry = Registry(plugin)
            for name, handler in handlers.items():
                registry.add(name, "CUDA", handler)
            return ("cusolver",)
    return ()


def _handlers(package: str) -> Iterator[tuple[str, int]]:
    """Names and addresses of a package's handlers."""
    for module in _MODULES:
        try:
            found = importlib.import_module(f"{package}.{module}").registrations()
        except (ImportError, AttributeError):  # not installed, for another Python, or of another age
            continue
        for name, capsule in found.items():
            if type(capsule).__name__ == "PyCapsule":  # and not several, for the stages of a call
                yield name, _pointer(capsule, _name(capsule))
