"""`linear_call`: a linear function with a transpose of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.programs.check import same_type
from ..core.programs.jaxpr import ClosedJaxpr, Var, call_effects, eval_jaxpr, no_debug_info
from ..core.programs.primitive import Primitive
from ..core.programs.rules import dces, fancy_batchers, jvps, transposes
from ..core.tracing.staging import hoist_tracers
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from ..core.types.effects import Effects
from ..core.types.typing import Function, PyTree
from .batch import AxisData, batch_jaxpr, bdim_at_front
from .custom_calls import discard_unused
from .linear import is_undefined_primal
from .tracing import trace_function
from .zeros import Zero, instantiate_zeros

linear_call_p = Primitive("linear_call", multiple_results=True)
linear_call_p.declare(program=lambda params: params["callee"])


def linear_call(fun: Function, fun_transpose: Function, residual_args: PyTree, linear_args: PyTree) -> PyTree:
    """Calls a linear function that has a transpose of its own.

    Args:
      fun: `fun(residual_args, linear_args)`, linear in the second argument.
      fun_transpose: `fun_transpose(residual_args, cotangent)`, its transpose in that argument.
      residual_args: container of arrays that both functions may use.
      linear_args: container of arrays.

    Returns:
      `fun(residual_args, linear_args)`.

    Raises:
      TypeError: the transpose's result has not the structure of `linear_args`.
      ValueError: it is transposed, and the result has not their types.
    """
    residuals, _ = tree.tree_flatten(residual_args)
    linear, in_tree = tree.tree_flatten(linear_args)
    callee, out_tree = trace_function(fun, (residual_args, linear_args), {}, (), "linear_call")
    callee, captured = hoist_tracers(callee, True)
    example = tree.tree_unflatten(out_tree, [_Shape(a) for a in callee.out_avals])
    transpose, back_tree = trace_function(fun_transpose, (residual_args, example), {}, (), "linear_call transpose")
    transpose, captured_back = hoist_tracers(transpose, True)
    if back_tree != in_tree:
        raise TypeError(f"transpose output pytree structure must match that of linear inputs, got output structure "
                        f"{back_tree} and input structure {in_tree}.")
    # what either function captured is a residual of both
    callee = _with_inputs(callee, len(captured), captured_back)
    transpose = _with_inputs(transpose, 0, captured)
    residuals = [*captured, *captured_back, *residuals]
    outs = linear_call_p.bind(*residuals, *linear, callee=callee, transpose=transpose, num_callee_consts=0,
                              num_transpose_consts=0, num_res=len(residuals))
    return tree.tree_unflatten(out_tree, outs)


def _with_inputs(closed: ClosedJaxpr, at: int, values: Sequence[Any]) -> ClosedJaxpr:
    """The program with inputs added for values that it does not use."""
    jaxpr = closed.jaxpr
    added = [Var(get_aval(x)) for x in values]
    return closed.replace(jaxpr=jaxpr.replace(
        invars=[*jaxpr.invars[:at], *added, *jaxpr.invars[at:]], debug_info=no_debug_info))


class _Shape:
    """A value known by its abstract value alone."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, aval: Any):
        self.shape = aval.shape
        self.dtype = aval.dtype
        self.weak_type = aval.weak_type


@linear_call_p.def_effectful_abstract_eval
def _avals(*_: Any, callee: ClosedJaxpr, **params: Any) -> tuple[list[Any], Effects]:
    return callee.out_avals, call_effects(callee)


@linear_call_p.def_impl
def _run(*args: Any, callee: ClosedJaxpr, **params: Any) -> list[Any]:
    return eval_jaxpr(callee.jaxpr, callee.consts, *args)


def _jvp(primals: Any, tangents: Any, *, num_res: int, **params: Any) -> Any:
    if any(type(t) is not Zero for t in tangents[:num_res]):
        raise NotImplementedError("linear_call is not differentiated with respect to its residual arguments")
    outs = linear_call_p.bind(*primals, num_res=num_res, **params)
    if all(type(t) is Zero for t in tangents):
        return outs, [Zero.from_primal_value(x) for x in outs]
    return outs, linear_call_p.bind(*primals[:num_res], *map(instantiate_zeros, tangents[num_res:]), num_res=num_res,
                                    **params)


def _transpose(cts: Any, *args: Any, callee: ClosedJaxpr, transpose: ClosedJaxpr, num_res: int,
               **params: Any) -> list[Any]:
    for var, aval in zip(callee.jaxpr.invars[num_res:], transpose.out_avals, strict=True):
        wanted = var.aval.to_cotangent_aval()
        if not same_type(aval, wanted):
            raise ValueError(f"Expected cotangent type {wanted.str_short()} but got {aval.str_short()} from the "
                             "transpose of linear_call")
    found = linear_call_p.bind(*args[:num_res], *map(instantiate_zeros, cts), callee=transpose, transpose=callee,
                               num_res=num_res, **params)
    return [*(None,) * num_res,
            *(ct if is_undefined_primal(x) else None for x, ct in zip(args[num_res:], found, strict=True))]


def _batch(axis_data: AxisData, args: Any, dims: Any, *, callee: ClosedJaxpr, transpose: ClosedJaxpr, num_res: int,
           **params: Any) -> Any:
    size = axis_data.size
    args = [x if d is None and i < num_res else bdim_at_front(x, d, size)
            for i, (x, d) in enumerate(zip(args, dims, strict=True))]
    residuals = [d is not None for d in dims[:num_res]]
    new, _ = batch_jaxpr(callee, axis_data, residuals + [True] * (len(args) - num_res), True)
    back, _ = batch_jaxpr(transpose, axis_data, residuals + [True] * len(callee.out_avals), True)
    outs = linear_call_p.bind(*args, callee=new, transpose=back, num_res=num_res, **params)
    return outs, [0] * len(outs)


jvps[linear_call_p] = _jvp
transposes[linear_call_p] = _transpose
fancy_batchers[linear_call_p] = _batch
dces[linear_call_p] = discard_unused

__all__ = ["linear_call", "linear_call_p"]
