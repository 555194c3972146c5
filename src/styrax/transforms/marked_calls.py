"""Calls that say something to a compiler about the program that they call.

Such a call is one equation of a traced program, which computes what its program does; every transformation but staging
goes into the program and leaves the mark behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.programs import rules
from ..core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import hoist_tracers, trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.trees import tree
from .ad import backward_pass, jvp_flat
from .batching import AxisData, batch_flat
from .flattening import FlatFunction, positional
from .jit_rules import call_effects


def marked_call(name: str) -> Primitive:
    """A primitive that calls the program in its parameter `jaxpr`."""
    prim = Primitive(name, multiple_results=True)
    prim.declare(program=lambda params: params["jaxpr"])
    prim.def_effectful_abstract_eval(lambda *_, jaxpr, **params: (jaxpr.out_avals, call_effects(jaxpr)))
    prim.def_impl(lambda *args, jaxpr, **params: _run(jaxpr)(*args))
    rules.jvps[prim] = lambda primals, tangents, *, jaxpr, **params: jvp_flat(_run(jaxpr), primals, tangents)
    rules.transposes[prim] = lambda cts, *args, jaxpr, **params: backward_pass(jaxpr.jaxpr, jaxpr.consts, args, cts)
    rules.batchers[prim] = _batch
    rules.stablehlos[prim] = partial(_call, name)
    return prim


def _run(jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    return partial(eval_jaxpr, jaxpr.jaxpr, jaxpr.consts)


def _batch(args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    size = next(get_aval(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    return batch_flat(_run(jaxpr), args, dims, AxisData(None, size))


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
