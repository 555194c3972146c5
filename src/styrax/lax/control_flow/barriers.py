"""Identities that say something to a compiler or a trace: barriers, sinks, staging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.trees import tree
from styrax.core.types.effects import Effect, control_flow_allowed_effects, lowerable_effects
from styrax.core.types.physical import physicals
from styrax.core.types.typing import PyTree
from styrax.transforms import ad

from .. import factor_rules, sharding_rules
from ..casting import as_array

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value

optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True)
optimization_barrier_p.declare(distinct=True, sharding=sharding_rules.each, factors=factor_rules.each)
optimization_barrier_p.def_abstract_eval(lambda *avals: list(avals))


def _barrier_loops(b: Builder, *xs: Value) -> list[Value]:
    return [b.materialize(x) for x in xs]


rules.loops[optimization_barrier_p] = _barrier_loops
rules.stablehlos[optimization_barrier_p] = lambda m, *xs: (
    m.op("stablehlo.optimization_barrier", list(xs), list(m.avals_out)) if xs else []
)
rules.batchers[optimization_barrier_p] = lambda args, dims: (optimization_barrier_p.bind(*args), dims)
physicals[optimization_barrier_p] = lambda context, *xs: optimization_barrier_p.bind(*xs)


def _barrier_jvp(primals: Any, tangents: Any) -> Any:
    outs = optimization_barrier_p.bind(*primals)
    moving = [k for k, t in enumerate(tangents) if type(t) is not ad.Zero]
    results = [ad.Zero.from_primal_value(x) for x in outs]
    if moving:
        for k, t in zip(moving, optimization_barrier_p.bind(*[tangents[k] for k in moving]), strict=True):
            results[k] = t
    return outs, results


def _barrier_transpose(cts: Any, *primals: Any) -> list[Any]:
    moving = [k for k, ct in enumerate(cts) if type(ct) is not ad.Zero]
    results = list(cts)
    if moving:
        for k, ct in zip(moving, optimization_barrier_p.bind(*[cts[k] for k in moving]), strict=True):
            results[k] = ct
    return results


rules.jvps[optimization_barrier_p] = _barrier_jvp
rules.transposes[optimization_barrier_p] = _barrier_transpose


def optimization_barrier(operand: PyTree, /) -> PyTree:
    """The argument itself, which no optimisation moves computations across.

    Everything in `operand` is computed before anything that uses the result; what is computed on both
    sides is not merged.

    Args:
      operand: a pytree of arrays.

    Returns:
      the same pytree.
    """
    leaves, structure = tree.tree_flatten(operand)
    if not leaves:
        return operand
    return tree.tree_unflatten(structure, optimization_barrier_p.bind(*leaves))


def stage(x: PyTree, /) -> PyTree:
    """A value, such as a Python number or NumPy array, as a value of the program being traced.

    Args:
      x: an array or number.

    Returns:
      a tracer, or outside of all transformations an array.
    """
    return as_array(x)


class SinkEffect(Effect):
    """Keeps what a sink uses from being dropped."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NoDCE"


_sink = SinkEffect()
lowerable_effects.add_type(SinkEffect)
control_flow_allowed_effects.add_type(SinkEffect)

dce_sink_p = Primitive("dce_sink", multiple_results=True)
dce_sink_p.def_effectful_abstract_eval(lambda x, *, prevent_mlir_dce: ([], {_sink}))
dce_sink_p.def_impl(lambda x, *, prevent_mlir_dce: [])


def _sink_loops(b: Builder, x: Value, *, prevent_mlir_dce: bool) -> list[Value]:
    return []


rules.loops[dce_sink_p] = _sink_loops
rules.stablehlos[dce_sink_p] = lambda m, x, *, prevent_mlir_dce: []
rules.batchers[dce_sink_p] = lambda args, dims, **params: (dce_sink_p.bind(*args, **params), [])
rules.jvps[dce_sink_p] = lambda primals, tangents, **params: (dce_sink_p.bind(*primals, **params), [])


def dce_sink(val: PyTree, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the computation of a value, although nothing uses it.

    Args:
      val: a pytree of arrays.
      prevent_mlir_dce: also keep an accelerator's compiler from dropping it.
    """
    for leaf in tree.tree_leaves(val):
        if hasattr(get_aval(leaf), "dtype"):
            dce_sink_p.bind(leaf, prevent_mlir_dce=prevent_mlir_dce)

