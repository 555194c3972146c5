"""`jit`, and functions that see axes of a mesh in another way than what is around."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...parallel.axes import auto_axes, explicit_axes
from ...transforms import jit_rules as _own
from ...transforms.jit import jit
from ...transforms.jit_rules import UNSPECIFIED


def pjit(
    fun: Callable[..., Any], in_shardings: Any = UNSPECIFIED, out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None, **options: Any
) -> Any:
    """`jit`, whose shardings and static arguments may be given by place."""
    return jit(fun, in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums, **options)


def __getattr__(name: str) -> Any:
    return getattr(_own, name)


__all__ = ["auto_axes", "explicit_axes", "pjit"]
