"""`jit`, and functions that see axes of a mesh in another way than what is around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...parallel.axes import auto_axes, explicit_axes
from ...transforms import jit_rules as _own
from ...transforms.jit import jit

_UNSPECIFIED: Any = object()


def pjit(
    fun: Callable[..., Any], in_shardings: Any = _UNSPECIFIED, out_shardings: Any = _UNSPECIFIED, **options: Any
) -> Any:
    """`jit`, whose shardings may be given by place."""
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    return jit(fun, **{name: x for name, x in given.items() if x is not _UNSPECIFIED}, **options)


def __getattr__(name: str) -> Any:
    return getattr(_own, name)


__all__ = ["auto_axes", "explicit_axes", "pjit"]
