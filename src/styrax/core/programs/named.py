"""Functions that are made from rows of a table get a name and a docstring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def named(function: F, name: str, doc: str | None = None, module: str | None = None) -> F:
    """The function itself, with another name, and another docstring and module if they are given."""
    function.__name__ = function.__qualname__ = name
    if doc is not None:
        function.__doc__ = doc
    if module is not None:
        function.__module__ = module
    return function
