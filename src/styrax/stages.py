"""The steps from a Python function to a compiled one: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from .transforms.stages import ArgInfo, Compiled, CompiledMemoryStats, Lowered, Traced

CompilerOptions = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """A function that `jit` has wrapped: it can be called, traced and lowered."""

    __call__: Callable[..., Any]

    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...


__all__ = ["ArgInfo", "Compiled", "CompiledMemoryStats", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
