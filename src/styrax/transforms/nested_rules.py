"""A function with a custom rule around one with another: the inner rule is set through the outer function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class NestedRules:
    """A function with a custom rule, wrapped around `fun`.

    What it lacks itself is looked up in `fun` if that has a custom rule, too, so that decorators can be stacked:
    `custom_vjp(custom_vmap(f)).def_vmap(rule)`.
    """

    fun: Callable

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("fun")
        if isinstance(inner, NestedRules):
            return getattr(inner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
