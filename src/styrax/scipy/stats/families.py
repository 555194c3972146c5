"""How distributions are put together: namespaces of functions, and functions derived from others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.array import Array
from styrax.numpy.promotion import convert, dtype_of, promote_args_inexact

Function = Callable[..., Any]


def namespace(name: str, doc: str, **functions: Function) -> ModuleType:
    """The module `styrax.scipy.stats.<name>` with the given functions."""
    module = ModuleType(f"styrax.scipy.stats.{name}", doc)
    for key, function in functions.items():
        function.__name__ = function.__qualname__ = key
        setattr(module, key, function)
    sys.modules[module.__name__] = module
    return module


def documented(function: Function, doc: str) -> Function:
    function.__doc__ = doc
    return function


def _same_signature(function: Function, of: Function, doc: str) -> Function:
    function.__doc__ = doc
    function.__wrapped__ = of  # type: ignore[attr-defined]
    return function


def exp_of(function: Function, doc: str) -> Function:
    """exp(function(…)), with the same arguments: a density from its logarithm."""
    return _same_signature(lambda *args, **kwargs: lax.exp(function(*args, **kwargs)), function, doc)


def log_of(function: Function, doc: str) -> Function:
    """log(function(…)), with the same arguments."""
    return _same_signature(lambda *args, **kwargs: lax.log(function(*args, **kwargs)), function, doc)


def complement_of(function: Function, doc: str) -> Function:
    """1 - function(…), with the same arguments: a survival function from a distribution function."""

    def complement(*args: Any, **kwargs: Any) -> Array:
        value = function(*args, **kwargs)
        return lax.sub(convert(1, dtype_of(value)), value)

    return _same_signature(complement, function, doc)


def log1m_of(function: Function, doc: str) -> Function:
    """log1p(-function(…)), with the same arguments."""
    return _same_signature(lambda *args, **kwargs: lax.log1p(lax.neg(function(*args, **kwargs))), function, doc)


def inexact(name: str, *args: Any) -> list[Array]:
    """Arguments as floats of one dtype and of ranks that broadcast."""
    return promote_args_inexact(name, *args)


def number(x: Any, like: Any) -> Array:
    """A constant of the dtype of an operand."""
    return convert(x, dtype_of(like))


def standardised(x: Any, loc: Any, scale: Any) -> Array:
    """(x - loc) / scale."""
    return lax.div(lax.sub(x, loc), scale)


LOG_2PI = float(np.log(2 * np.pi))
