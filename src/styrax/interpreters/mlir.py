"""Lowerings of primitives that libraries define.

A lowering here is a rule `(context, *values, **params)`. The context is the builder of whatever is being
compiled (loops for CPUs, StableHLO for accelerators), and `lower_fun` makes a rule for both from a function of
arrays, which needs to know nothing of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import trace_to_jaxpr
from ..core.types.dims import NotGeneric
from ..core.types.effects import lowerable_effects
from ..core.types.typing import Function, PyTree


class LoweredFunction:
    """A lowering rule that traces a function of arrays and compiles its program in place."""

    __slots__ = ("fun", "multiple_results")

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: Any, *args: Any, **params: Any) -> list[Any]:
        def flat(*xs: Any) -> list[Any]:
            out = self.fun(*xs, **params)
            return list(out) if self.multiple_results else [out]

        if any(type(d) is not int for a in ctx.avals_in for d in getattr(a, "shape", ())):
            raise NotGeneric("a function that is traced where sizes are known only when it runs")
        wanted = list(ctx.avals_out)
        closed = trace_to_jaxpr(flat, ctx.avals_in)
        for found, aval in zip(closed.out_avals, wanted, strict=True):
            if (found.shape, found.dtype) != (aval.shape, aval.dtype):
                raise TypeError(f"the lowering {getattr(self.fun, '__name__', self.fun)} gives {found.str_short()} "
                                f"where the primitive's abstract evaluation says {aval.str_short()}")
        return ctx.inline(closed, *args)

    def __repr__(self) -> str:
        return f"lower_fun({self.fun!r})"


def lower_fun(fun: Function, multiple_results: bool = True) -> Callable[..., list[Any]]:
    """A lowering rule for a primitive that does what a function of arrays does.

    Args:
      fun: a function of the primitive's operands and parameters, in terms of other primitives.
      multiple_results: whether it returns a sequence of arrays rather than one array.
    """
    return LoweredFunction(fun, multiple_results)


class LoweringRuleContext:
    """What a library's rule gets: the builder of what is being compiled, as which it behaves."""

    __slots__ = ("_builder", "module_context")

    def __init__(self, builder: Any):
        self._builder = builder
        self.module_context = ModuleContext()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, name)


class ModuleContext:
    """What rules share in one program."""

    def add_keepalive(self, thing: Any) -> None:
        """Nothing is kept here: a program keeps the functions that it calls."""


def emit_python_callback(ctx: LoweringRuleContext, callback: Callable[..., Sequence[Any]], token: PyTree,
                         operands: Sequence[Any], operand_avals: Sequence[Any], result_avals: Sequence[Any], *,
                         has_side_effect: bool, returns_token: bool = True, partitioned: bool = False,
                         sharding: PyTree = None) -> tuple[Any, ...]:
    """A call of a Python function of arrays in the middle of a lowering, on CPUs.

    Returns:
      `(results, token, None)`: JAX has something to keep alive for the third.
    """
    from ..transforms.callbacks import as_arrays, checked

    def function(*views: Any) -> list[Any]:
        return checked(callback(*as_arrays(views)), result_avals)

    return ctx.host_call(function, [(a.shape, a.dtype) for a in result_avals], list(operands)), token, None


def register_lowering(prim: Primitive, rule: Function, platform: str | None = None, inline: bool = True,
                      cacheable: bool = True) -> Function:
    """Makes a rule the lowering of a primitive.

    Args:
      prim: the primitive.
      rule: what `lower_fun` gives, or a function that calls such with the context and values it is given. Rules that
        write MLIR operations through jaxlib's bindings cannot be used.
      platform: the platform the rule is for; None for all without a rule of their own.
    """
    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        out = rule(LoweringRuleContext(ctx), *args, **params)
        if prim.multiple_results:
            return list(out)
        return out[0] if isinstance(out, (list, tuple)) else out

    if platform in (None, "cpu"):
        rules.loops[prim] = lower
    if platform != "cpu":
        rules.stablehlos[prim] = lower
    return rule


__all__ = ["LoweredFunction", "LoweringRuleContext", "ModuleContext", "emit_python_callback", "lower_fun",
           "lowerable_effects", "register_lowering"]
