"""Functions by what they mean, so that a kernel defined anew at each call is traced and compiled once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...core.programs.primitive import Primitive


class _Unknown(Exception):
    """What a function reads can change."""


def function_key(fun: Callable[..., Any]) -> Hashable:
    """A key common to functions of the same code that read equal values; where these can change, the function."""
    try:
        return _of_function(fun)
    except _Unknown:
        return fun


def _of_function(fun: Callable[..., Any]) -> Hashable:
    if isinstance(fun, functools.partial):
        named = tuple((k, _of_value(v)) for k, v in sorted(fun.keywords.items()))
        return "partial", _of_function(fun.func), tuple(map(_of_value, fun.args)), named
    if not isinstance(fun, FunctionType) or hasattr(fun, "__wrapped__"):
        return fun
    try:
        cells = tuple(_of_value(cell.cell_contents) for cell in fun.__closure__ or ())
    except ValueError:  # not assigned yet
        raise _Unknown from None
    defaults = tuple(map(_of_value, fun.__defaults__ or ()))
    named = tuple((k, _of_value(v)) for k, v in sorted((fun.__kwdefaults__ or {}).items()))
    there = fun.__globals__
    read = tuple((name, _of_global(there[name])) for name in sorted(set(_names(fun.__code__))) if name in there)
    return fun.__code__, cells, defaults, named, read


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _of_value(x: Any) -> Hashable:
    if isinstance(x, (FunctionType, functools.partial)):
        return _of_function(x)
    return _of_global(x)


def _of_global(x: Any) -> Hashable:
    if x is None or isinstance(x, (bool, int, str, bytes)):
        return type(x), x
    if isinstance(x, (float, complex, np.number, np.bool_)):
        return type(x), repr(x)
    if isinstance(x, (type, ModuleType, FunctionType, BuiltinFunctionType, np.dtype, np.ufunc, Primitive)):
        return x
    if type(x) is tuple:
        return tuple(map(_of_value, x))
    if callable(x) and type(x).__module__.startswith("styrax."):  # library functions wrapped by `jit` and the like
        return x
    raise _Unknown
