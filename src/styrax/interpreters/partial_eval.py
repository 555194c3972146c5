"""Programs split and traced: a view of what the transformations use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs import metadata
from ..core.programs.dead_code import dce_call, dce_closed, dce_jaxpr, dce_jaxpr_consts
from ..core.programs.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, close_jaxpr, no_debug_info
from ..core.programs.primitive import Primitive
from ..core.programs.rules import dces as dce_rules
from ..core.programs.rules import partial_eval_jaxpr_customs as partial_eval_jaxpr_custom_rules
from ..core.programs.rules import partial_evals as custom_partial_eval_rules
from ..core.tracing.source import SourceInfo
from ..core.tracing.staging import DynamicJaxprTracer, trace_to_jaxpr
from ..core.tracing.trace import get_aval, set_current_trace, state
from ..core.trees import tree
from ..core.types.avals import AbstractValue
from ..core.types.effects import Effects
from ..core.types.typing import PyTree
from ..extend.linear_util import WrappedFun
from ..transforms import high_types
from ..transforms.partial import (
    PartialTrace,
    PartialTracer,
    close_record,
    partial_eval_jaxpr_custom,
)
from ..transforms.partial import PartialTrace as JaxprTrace
from ..transforms.partial import (
    partial_eval_jaxpr as partial_eval_jaxpr_nounits,
)


class PartialVal(tuple):
    """A value that is known, `(None, value)`, or of which only the type is, `(aval, None)`."""

    __slots__ = ()

    def __new__(cls, pair: tuple[AbstractValue | None, Any]) -> PartialVal:
        return super().__new__(cls, pair)

    @classmethod
    def known(cls, value: Any) -> PartialVal:
        return cls((None, value))

    @classmethod
    def unknown(cls, aval: AbstractValue) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None where it is unknown."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> AbstractValue:
        return get_aval(self[1]) if self[0] is None else self[0]


class _TracerType(type):
    def __call__(cls, trace: PartialTrace, pval: PartialVal, recipe: JaxprEqn | None = None) -> Any:
        if pval.is_known():
            return pval.get_known()
        made = trace.new_arg(pval.get_aval())
        if recipe is not None:
            made.recipe = recipe
        return made

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, PartialTracer)


class JaxprTracer(metaclass=_TracerType):
    """An unknown value of a partial evaluation: `JaxprTracer(trace, PartialVal.unknown(aval), None)` makes one.

    A known one is the value itself. What a rule of a library says of where it comes from is its `recipe`.
    """


def new_eqn_recipe(trace: PartialTrace, in_tracers: Sequence[Any], out_tracers: Sequence[PartialTracer],
                   primitive: Primitive, params: dict[str, Any], effects: Effects,
                   source_info: SourceInfo | None = None, ctx: metadata.EquationContext | None = None) -> JaxprEqn:
    """Writes an equation into the record of a partial evaluation, for rules in `custom_partial_eval_rules`.

    Args:
      trace: the partial evaluation.
      in_tracers: the operands, known or unknown.
      out_tracers: new unknown values, which stand for the results.
      primitive: the primitive, with its `params` and `effects`.
      source_info: where in the user's program it comes from.
      ctx: the settings that it was called under; those in force where None is given.
    """
    eqn = JaxprEqn([trace.to_atom(x) for x in in_tracers], [t.var for t in out_tracers], primitive, params, effects,
                   source_info, metadata.current() if ctx is None else ctx)
    trace.eqns.append(eqn)
    return eqn


def lower_jaxpr(hi_jaxpr: ClosedJaxpr, lo_avals: PyTree) -> tuple[ClosedJaxpr, list[list[AbstractValue]]]:
    """A program on the arrays that a program's values consist of.

    Args:
      hi_jaxpr: the program.
      lo_avals: for each of its inputs the types of these arrays.

    Returns:
      The new program, and for each result of the old one the types of the arrays that it consists of.

    Raises:
      TypeError: the inputs consist of other arrays.
    """
    wanted = high_types.lowered_types(hi_jaxpr.in_avals)
    if tree.tree_leaves(lo_avals) != wanted:
        raise TypeError(f"the program's inputs consist of arrays of the types {wanted}, not {lo_avals}")
    return high_types.lowered(hi_jaxpr), [list(aval.lo_ty()) for aval in hi_jaxpr.out_avals]


def lower_jaxpr2(hi_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """The program on the arrays that a program's values consist of; itself where they all are arrays."""
    return high_types.lowered(hi_jaxpr)


def trace_to_jaxpr_dynamic(fun: WrappedFun, in_avals: Sequence[AbstractValue], *,
                           keep_inputs: Sequence[bool] | None = None, lower: bool = False,
                           auto_dce: bool = False) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Traces a wrapped function of flat arguments: its program, the types of its results, and its constants."""
    closed = trace_to_jaxpr(fun.call_wrapped, in_avals, fun.debug_info)
    return closed.jaxpr, closed.out_avals, closed.consts


def trace_to_jaxpr_nounits(fun: WrappedFun, pvals: Sequence[PartialVal],
                           instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Runs what is known of a wrapped function and traces the rest.

    Args:
      fun: a `linear_util.WrappedFun` of flat arguments.
      pvals: its arguments, known or unknown.
      instantiate: results that are to be results of the program even where they are known.

    Returns:
      `(jaxpr, results, constants)`; the program takes the unknown arguments and gives the unknown results.
    """
    trace = PartialTrace(state.trace)
    args = [p.get_known() if p.is_known() else trace.new_arg(p.get_aval()) for p in pvals]
    invars = [x.var for x in args if trace.is_unknown(x)]
    with set_current_trace(trace):
        outs = list(fun.call_wrapped(*args))
    wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
    results, atoms = [], []
    for out, forced in zip(outs, wanted, strict=True):
        if trace.is_unknown(out) or forced:
            atoms.append(trace.to_atom(out))
            results.append(PartialVal.unknown(get_aval(out)))
        else:
            results.append(PartialVal.known(out))
    jaxpr, residuals = close_record(trace.finish(), invars, atoms, fun.debug_info)
    n = len(residuals)
    return jaxpr.replace(constvars=jaxpr.invars[:n], invars=jaxpr.invars[n:]), results, residuals


def dce_jaxpr_closed_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """The rule of dead-code elimination for equations whose parameter `call_jaxpr` is a closed program."""
    return dce_call(used_outputs, eqn, lambda: dce_closed(eqn.params["call_jaxpr"], used_outputs),
                    lambda new, _: {"params": {**eqn.params, "call_jaxpr": new}, "effects": new.effects})


def dce_jaxpr_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """The rule of dead-code elimination for equations whose parameter `call_jaxpr` is a program without constants."""
    return dce_call(used_outputs, eqn, lambda: dce_jaxpr(eqn.params["call_jaxpr"], used_outputs),
                    lambda new, _: {"params": {**eqn.params, "call_jaxpr": new}, "effects": new.effects})


def abstract_eval_fun(fun: Callable[..., Sequence[Any]], *avals: AbstractValue, debug_info: DebugInfo = no_debug_info,
                      **params: Any) -> list[AbstractValue]:
    """The types of the results of a function of flat arguments."""
    return trace_to_jaxpr(lambda *xs: fun(*xs, **params), avals, debug_info).out_avals


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constants as leading arguments."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def move_binders_to_back(closed: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with the inputs that are marked after the others."""
    pairs = list(zip(closed.jaxpr.invars, to_move, strict=True))
    invars = [v for v, moved in pairs if not moved] + [v for v, moved in pairs if moved]
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars, debug_info=no_debug_info), closed.consts)


def prune_closed_jaxpr_outputs(closed: ClosedJaxpr, used_outputs: Sequence[bool]) -> ClosedJaxpr:
    """The program without some of its results; all of its inputs stay."""
    return dce_closed(closed, used_outputs, True)[0]


__all__ = [
    "DynamicJaxprTracer", "JaxprTrace", "JaxprTracer", "PartialVal", "abstract_eval_fun", "close_jaxpr",
    "convert_constvars_jaxpr", "custom_partial_eval_rules", "dce_jaxpr", "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts", "dce_rules", "lower_jaxpr", "lower_jaxpr2",
    "move_binders_to_back", "new_eqn_recipe", "partial_eval_jaxpr_custom", "partial_eval_jaxpr_custom_rules",
    "partial_eval_jaxpr_nounits", "prune_closed_jaxpr_outputs", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]
