"""Calls that stand for what they call: bound, they run it, and no program has an equation of them.

Interpreters of programs have rules for these primitives, and libraries bind them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core import hooks
from ..core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.programs.traits import Traits

if TYPE_CHECKING:
    from ..extend.linear_util import WrappedFun


class PlainCall(Primitive):
    """A call of a program, or of a function of flat lists."""

    call_primitive = True
    traits = Traits(program=lambda params: params["call_jaxpr"])

    def bind(self, *args: Any, subfuns: tuple[WrappedFun] | None = None, **params: Any) -> Any:
        (fun,) = subfuns or self.get_bind_params(params)["subfuns"]
        return fun.call_wrapped(*args)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        rest = dict(params)
        program = rest.pop("call_jaxpr")
        jaxpr, consts = (program.jaxpr, program.consts) if isinstance(program, ClosedJaxpr) else (program, ())
        run: Callable[..., Any] = partial(eval_jaxpr, jaxpr, consts)
        return {**rest, "subfuns": (hooks.wrap_function(run),)}


class CallPrimitive(PlainCall):
    """A library's call of a function of flat lists."""

    def __init__(self, name: str):
        super().__init__(name, multiple_results=True)


call_p = PlainCall("call", multiple_results=True)
closed_call_p = PlainCall("closed_call", multiple_results=True)

__all__ = ["CallPrimitive", "PlainCall", "call_p", "closed_call_p"]
