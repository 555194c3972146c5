"""`composite`: an operation named for a compiler, with the program that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.spreading import as_told
from styrax.core.tracing.staging import hoist_tracers, trace_to_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.trees import tree
from styrax.transforms import batching
from styrax.transforms.flattening import FlatFunction, positional

composite_p = Primitive("composite", multiple_results=True)
composite_p.declare(program=lambda params: params["jaxpr"], sharding=as_told)


@composite_p.def_abstract_eval
def _composite_avals(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return jaxpr.out_avals


composite_p.def_impl(lambda *args, jaxpr, **_: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args))


def _jvp(primals: Any, tangents: Any, **_: Any) -> Any:
    raise ValueError(
        "JVP rule for composite not implemented: the operation is a name for a compiler. Give the function a "
        "derivative with custom_jvp."
    )


def _transpose(*args: Any, **_: Any) -> Any:
    raise ValueError("Transpose rule for composite not implemented.")


def _batch(args: Any, dims: Any, *, jaxpr: ClosedJaxpr, **_: Any) -> Any:
    # The name stands for the operation on unmapped arrays alone: a mapped one is its decomposition.
    size = next(get_aval(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    outs = batching.batch_flat(
        lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *xs), args, dims, batching.AxisData(None, size)
    )
    return outs


def _attribute_text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return f"{int(value)} : i64"
    if isinstance(value, (float, np.floating)):
        return f"{float(value)!r} : f64" if "." in repr(float(value)) else f"{float(value):.17e} : f64"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _hlo(m: Any, *xs: Any, name: str, attributes: tuple, version: int, jaxpr: ClosedJaxpr) -> list[Any]:
    function = m.module.private_function(jaxpr, name)
    inside = ", ".join(f"{key} = {_attribute_text(value)}" for key, value in attributes)
    return m.op(
        "stablehlo.composite",
        list(xs),
        list(m.avals_out),
        f'name = "{name}", composite_attributes = {{{inside}}}, decomposition = @{function}, version = {version} : i32',
    )


rules.jvps[composite_p] = _jvp
rules.transposes[composite_p] = _transpose
rules.batchers[composite_p] = _batch
rules.stablehlos[composite_p] = _hlo


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """Give a function a name under which a compiler may know a faster way to compute it.

    Args:
      decomposition: what the operation computes. Its positional arguments are arrays, its keyword
        arguments attributes.
      name: the name, such as "my.softmax".
      version: changes with the meaning of the name.

    Returns:
      a function that computes the same as `decomposition`. It has no derivative of its own.
    """

    @wraps(decomposition)
    def apply(*args: Any, **attributes: Any) -> Any:
        leaves, structure = tree.tree_flatten(args)
        flat = FlatFunction(decomposition, positional(structure), named=tuple(attributes.items()))
        closed, captured = hoist_tracers(trace_to_jaxpr(flat, [get_aval(x) for x in leaves]))
        outs = composite_p.bind(
            *captured,
            *leaves,
            name=name,
            attributes=tuple((k, v) for k, v in attributes.items() if v is not None),
            version=version,
            jaxpr=closed,
        )
        return tree.tree_unflatten(flat.structure, outs)

    return apply
