"""Notes for XLA on calls, among them the groups in which it schedules operations. The CPU compiler reads none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.programs.dead_code import dce_call, dce_closed
from ..core.programs.jaxpr import JaxprEqn
from ..core.programs.rules import dces
from ..core.types.typing import Function
from ..transforms.marked_calls import bind_marked, marked_call

xla_metadata_call_p = marked_call("xla_metadata_call")


def scheduling_group(name: str) -> Callable[[Function], Function]:
    """A decorator: what the function computes is scheduled together with all of the group of that name."""
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f: Function | None = None, **meta: str | int | float | bool) -> Function:
    """A function with notes on its call.

    Args:
      f: the function; without it, a decorator is returned.
      **meta: the notes, strings.
    """
    if f is None:
        return lambda fun: xla_metadata_call(fun, **meta)
    fun: Callable[..., Any] = f
    notes: dict[str, Any] = meta

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return bind_marked(xla_metadata_call_p, lambda args, kwargs: fun(*args, **kwargs), (args, kwargs), **notes)

    return wrapped


def dce_jaxpr_xla_metadata_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Drops what a call computes for results that nothing uses."""
    return dce_call(used_outputs, eqn, lambda: dce_closed(eqn.params["jaxpr"], used_outputs),
                    lambda new, _: {"params": {**eqn.params, "jaxpr": new}})


dces[xla_metadata_call_p] = dce_jaxpr_xla_metadata_rule

__all__ = ["dce_jaxpr_xla_metadata_rule", "scheduling_group", "xla_metadata_call", "xla_metadata_call_p"]
