"""What libraries ask of traces beyond what we do: names of older releases, and rules given wrapped functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.programs.primitive import Primitive
from ..core.tracing.trace import Trace
from .linear_util import wrap_init


def trace_attribute(trace: Trace, name: str) -> Any:
    """An attribute of traces in older releases. Raises AttributeError for others.

    `main` is what the traces of one use of a transformation have in common: there is one, itself. `full_raise(x)` is
    a value as one that the trace interprets: any is.
    """
    if name == "main":
        return trace
    if name == "full_raise":
        return lambda x: x
    raise AttributeError(f"{type(trace).__name__!r} object has no attribute {name!r}")


def adapt_trace(cls: type[Trace]) -> None:
    """Has the rules for custom derivatives of a library's trace called with `WrappedFun`s."""
    for name in ("process_custom_jvp_call", "process_custom_vjp_call"):
        if name in vars(cls):
            setattr(cls, name, _with_wrapped_functions(vars(cls)[name]))


def _with_wrapped_functions(process: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(process)
    def method(self: Trace, primitive: Primitive, *args: Any, **kwargs: Any) -> Any:
        return process(self, primitive, *(wrap_init(a) if callable(a) else a for a in args), **kwargs)

    return method
