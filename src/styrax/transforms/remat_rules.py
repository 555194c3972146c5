"""`remat_opt`: a forward rule of a `custom_vjp` whose residuals may turn out not to be needed.

Where a `checkpoint` computes again, it keeps the function itself in place of the rule if nothing reads the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs import rules
from ..core.programs.dead_code import dce_closed
from ..core.programs.jaxpr import ClosedJaxpr, JaxprEqn, call_effects, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import hoist_tracers, trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.types.effects import Effects
from .batch import AxisData, batch_jaxpr2, batch_jaxpr_axes, custom_rules
from .jvp import jvp_flat
from .linear import backward_pass
from .plain_calls import closed_call_p

remat_opt_p = Primitive("remat_opt", multiple_results=True)
remat_opt_p.declare(program=lambda params: params["fwd_jaxpr"])
custom_rules.add(remat_opt_p)


def run_forward(fun: Callable[..., Sequence[Any]], forward: Callable[..., tuple[list, list, Callable]],
                primals: Sequence[Any]) -> tuple[list[Any], list[Any], Callable]:
    """Runs a forward rule as one equation.

    Args:
      fun: the function itself, of flat lists.
      forward: the rule: gives results, residuals, and a function that pulls cotangents back.
      primals: the arguments.

    Returns:
      What `forward` gives.
    """
    avals = [get_aval(p) for p in primals]
    made: list[tuple[int, Callable]] = []

    def flat(*xs: Any) -> list[Any]:
        outs, residuals, pull = forward(*xs)
        made.append((len(residuals), pull))
        return [*residuals, *outs]

    closed, captured = hoist_tracers(trace_to_jaxpr(flat, avals), everything=True)
    (count, pull), = made
    found = remat_opt_p.bind(*captured, *primals, num_consts=len(captured), num_res=count, fwd_jaxpr=closed,
                             fun_jaxpr_thunk=lambda: hoist_tracers(trace_to_jaxpr(fun, avals)))
    return found[count:], found[:count], pull


@remat_opt_p.def_impl
def _run(*args: Any, fwd_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return eval_jaxpr(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, *args)


@remat_opt_p.def_effectful_abstract_eval
def _avals(*_: Any, fwd_jaxpr: ClosedJaxpr, **params: Any) -> tuple[list[Any], Effects]:
    return fwd_jaxpr.out_avals, call_effects(fwd_jaxpr)


def _discard(used_outputs: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    params = eqn.params
    if not any(used_outputs):
        return [False] * len(eqn.invars), None
    num_res, num_consts = params["num_res"], params["num_consts"]
    used_outs = list(used_outputs[num_res:])
    outvars = [v for v, u in zip(eqn.outvars, used_outputs, strict=True) if u]
    closed, captured = params["fun_jaxpr_thunk"]()
    if not captured and not any(used_outputs[:num_res]):
        fun, used_inputs = dce_closed(closed, used_outs)
        kept = [False] * num_consts + used_inputs
        return kept, eqn.replace(
            primitive=closed_call_p, invars=[a for a, u in zip(eqn.invars, kept, strict=True) if u], outvars=outvars,
            params=dict(call_jaxpr=fun), effects=call_effects(fun))
    fwd, _ = dce_closed(params["fwd_jaxpr"], used_outputs, True)
    return [True] * len(eqn.invars), eqn.replace(outvars=outvars, effects=call_effects(fwd), params=dict(
        num_consts=num_consts, num_res=sum(used_outputs[:num_res]), fwd_jaxpr=fwd,
        fun_jaxpr_thunk=lambda: (dce_closed(closed, used_outs, True)[0], captured)))


rules.dces[remat_opt_p] = _discard


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, fwd_jaxpr: ClosedJaxpr, **_: Any) -> Any:
    return jvp_flat(lambda *xs: eval_jaxpr(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, *xs), primals, tangents)


rules.jvps[remat_opt_p] = _jvp


def _transpose(cts: Sequence[Any], *args: Any, fwd_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return backward_pass(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, args, cts)


rules.transposes[remat_opt_p] = _transpose


def _batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, fwd_jaxpr: ClosedJaxpr,
           num_consts: int, num_res: int, fun_jaxpr_thunk: Callable[[], tuple[ClosedJaxpr, list[Any]]]) -> Any:
    new, out_dims = batch_jaxpr2(fwd_jaxpr, axis_data, dims)

    def batched_fun() -> tuple[ClosedJaxpr, list[Any]]:
        closed, captured = fun_jaxpr_thunk()
        if captured:
            return closed, captured
        return batch_jaxpr_axes(closed, axis_data, dims[num_consts:], out_dims[num_res:])[0], []

    return remat_opt_p.bind(*args, fwd_jaxpr=new, num_consts=num_consts, num_res=num_res,
                            fun_jaxpr_thunk=batched_fun), out_dims


rules.fancy_batchers[remat_opt_p] = _batch

__all__ = ["remat_opt_p", "run_forward"]
