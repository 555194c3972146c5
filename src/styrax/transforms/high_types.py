"""Programs on values of libraries' own types as programs on the arrays that these consist of.

A type says which arrays its values consist of (`lo_ty`, `lower_val`, `raise_val`), a primitive on such values what it
does with other primitives (`core.programs.rules.expansions`). A program is run once under a trace that knows both:
there the values are Python objects that hold tracers of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ..core.programs import rules
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr, jaxprs_in_params
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import StagingTrace, trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.types.avals import AbstractValue
from .jit_rules import jit_p
from .memo import per_jaxpr
from .signature import as_operand

T = TypeVar("T")


def lowered_types(avals: Iterable[AbstractValue]) -> list[AbstractValue]:
    """The types of the arrays that values of these types consist of."""
    return [a for aval in avals for a in aval.lo_ty()]


def lowered_values(avals: Sequence[AbstractValue], values: Sequence[Any]) -> list[Any]:
    """The arrays that values consist of."""
    return [x for aval, value in zip(avals, values, strict=True) for x in aval.lower_val(value)]


def raised_values(avals: Sequence[AbstractValue], arrays: Iterable[Any]) -> list[Any]:
    """The values that consist of these arrays."""
    rest = iter(arrays)
    return [aval.raise_val(*[next(rest) for _ in aval.lo_ty()]) for aval in avals]


def spread(items: Sequence[T], avals: Sequence[AbstractValue]) -> tuple[T, ...]:
    """What is said of each value, for each of the arrays that it consists of."""
    return tuple(item for item, aval in zip(items, avals, strict=True) for _ in aval.lo_ty())


def count(avals: Sequence[AbstractValue]) -> int:
    """How many arrays values consist of."""
    return len(lowered_types(avals))


class LoweringTrace(StagingTrace):
    """Writes down what primitives on values of libraries' own types do with arrays."""

    __slots__ = ()

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        rule = rules.expansions.get(primitive)
        if rule is not None:
            outs = rule(*args, **params)
            if outs is not NotImplemented:
                return outs
        avals = [get_aval(x) for x in args]
        if not any(a.is_high for a in avals) and not any(p.is_high for p in jaxprs_in_params(params)):
            return super().process_primitive(primitive, args, params)
        found, _ = primitive.abstract_eval(*avals, **params)
        change = rules.flattenings.get(primitive)
        new = lowered_programs(params) if change is None else change(avals, **params)
        outs = primitive.bind(*lowered_values(avals, args), **new)
        if primitive.multiple_results:
            return raised_values(found, outs)
        return raised_values([found], [outs])[0]

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        return fun(*args)

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        return fun(*args)


def lowered_programs(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with the programs among them on arrays."""
    def change(x: Any) -> Any:
        if isinstance(x, ClosedJaxpr):
            return lowered(x)
        if isinstance(x, Jaxpr):
            return lowered(ClosedJaxpr(x)).jaxpr
        return type(x)(map(change, x)) if type(x) in (tuple, list) else x

    return {name: change(x) for name, x in params.items()}


def lowered(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program on the arrays that a program's values consist of; itself where they all are arrays."""
    return _lowered(closed) if closed.jaxpr.is_high else closed


@per_jaxpr
def _lowered(closed: ClosedJaxpr) -> ClosedJaxpr:
    def on_arrays(*arrays: Any) -> list[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *raised_values(closed.in_avals, arrays))
        return lowered_values(closed.out_avals, outs)

    info = closed.debug_info
    names = spread(info.arg_names, closed.in_avals) if len(info.arg_names) == len(closed.in_avals) else info.arg_names
    return trace_to_jaxpr(on_arrays, lowered_types(closed.in_avals), info.replace(arg_names=names), LoweringTrace)


def _of_jit(avals: Sequence[AbstractValue], **params: Any) -> dict[str, Any]:
    outs = params["jaxpr"].out_avals
    new = {name: spread(params[name], avals) for name in ("donated_invars", "in_layouts", "in_shardings")}
    return lowered_programs({**params, **new, "out_layouts": spread(params["out_layouts"], outs),
                             "out_shardings": spread(params["out_shardings"], outs)})


rules.flattenings[jit_p] = _of_jit


class OnValues:
    """Code that takes and gives arrays, as a function of the values that consist of them."""

    __slots__ = ("code", "in_avals", "out_avals")

    def __init__(self, code: Callable[..., list[Any]], in_avals: Sequence[AbstractValue],
                 out_avals: Sequence[AbstractValue]):
        self.code = code
        self.in_avals = in_avals
        self.out_avals = out_avals

    def __call__(self, *values: Any) -> list[Any]:
        arrays = lowered_values(self.in_avals, values)
        return raised_values(self.out_avals, self.code(*map(as_operand, arrays, lowered_types(self.in_avals))))


__all__ = ["LoweringTrace", "OnValues", "count", "lowered", "lowered_programs", "lowered_types", "lowered_values",
           "raised_values", "spread"]
