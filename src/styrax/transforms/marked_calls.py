"""Calls that say something to a compiler about the program that they call.

Such a call is one equation of a traced program, which computes what its program does; every transformation but staging
goes into the program and leaves the mark behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.programs import rules
from ..core.programs.jaxpr import ClosedJaxpr, call_effects, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import hoist_tracers, trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from .ad import backward_pass, jvp_flat
from .batching import AxisData, batch_flat
from .flattening import FlatFunction, positional


def marked_call(name: str) -> Primitive:
    """A primitive that calls the program in its parameter `jaxpr`."""
    prim = Primitive(name, multiple_results=True)
    register_call_primitive_rules(prim)
    return prim


def register_call_primitive_rules(prim: Primitive) -> None:
    """Has a primitive of several results call the `ClosedJaxpr` in its parameter `jaxpr`, with its operands.

    It is evaluated, staged, differentiated, batched and compiled as the program is.
    """
    prim.declare(program=lambda params: params["jaxpr"])
    prim.def_effectful_abstract_eval(lambda *_, jaxpr, **params: (jaxpr.out_avals, call_effects(jaxpr)))
    prim.def_impl(lambda *args, jaxpr, **params: _run(jaxpr)(*args))
    rules.jvps[prim] = lambda primals, tangents, *, jaxpr, **params: jvp_flat(_run(jaxpr), primals, tangents)
    rules.transposes[prim] = eval_jaxpr_transpose
    rules.fancy_batchers[prim] = _batch
    rules.stablehlos[prim] = partial(_call, prim.name)


def eval_jaxpr_transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """Evaluates the transpose of a program: the rule of primitives that call it.

    Args:
      cts: the cotangents of its results, which may be symbolic `Zero`s.
      args: for each input its value, or an `UndefinedPrimal` where the program is linear in it.
      jaxpr: the program.

    Returns:
      For each input its cotangent, a `Zero` where nothing contributes, and None for those that have a value.
    """
    return backward_pass(jaxpr.jaxpr, jaxpr.consts, args, cts)


def _run(jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    return partial(eval_jaxpr, jaxpr.jaxpr, jaxpr.consts)


def _batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr,
           **params: Any) -> Any:
    return batch_flat(_run(jaxpr), args, dims, axis_data)


def _call(name: str, m: Any, *xs: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    return m.call(jaxpr, *xs, name=name)


def bind_marked(prim: Primitive, fun: Callable[..., Any], args: tuple,
                of_results: Callable[[tree.PyTreeDef], dict[str, Any]] = lambda _: {}, **params: Any) -> Any:
    """Calls `fun(*args)` by one equation of the primitive; `of_results` gives parameters by the results' structure."""
    leaves, structure = tree.tree_flatten(args)
    flat = FlatFunction(fun, positional(structure), traced_for=prim.name)
    closed, captured = hoist_tracers(trace_to_jaxpr(flat, [get_aval(x) for x in leaves]))
    params.update(of_results(flat.structure))
    return tree.tree_unflatten(flat.structure, prim.bind(*captured, *leaves, jaxpr=closed, **params))
