"""Primitives that are functions of dense buffers: rules follow from the function and from what it is linear in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import styrax.numpy as jnp
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.interpreters import ad, mlir
from styrax.transforms.api import linear_transpose, vmap
from styrax.transforms.zeros import zero_from_primal


def traceable(name: str, fun: Callable[..., Any], *, linear: Sequence[int] = (),
              multiple_results: bool = False) -> Primitive:
    """A primitive that does what `fun(*buffers, **params)` does.

    Types are those of `fun`'s results, it is batched by mapping `fun`, and lowered by tracing it.

    Args:
      name: its name.
      fun: a function of arrays in terms of other primitives, which gives an array or, with `multiple_results`, a list.
      linear: positions of operands in each of which the first result is linear; further results are integers that do
        not depend on them. Derivatives are then the primitive itself on tangents, and its transpose is that of `fun`.
        Without any, `fun` is differentiated.
      multiple_results: whether there are several results.
    """
    primitive = Primitive(name, multiple_results=multiple_results)

    @primitive.def_impl
    def run(*args: Any, **params: Any) -> Any:
        return fun(*map(jnp.asarray, args), **params)  # NumPy's arrays may be among them

    def listed(*args: Any, **params: Any) -> list[Any]:
        out = run(*args, **params)
        return list(out) if multiple_results else [out]

    def abstract_eval(*avals: Any, **params: Any) -> Any:
        out = trace_to_jaxpr(partial(listed, **params), avals).out_avals
        return list(out) if multiple_results else out[0]

    def batch(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        out = vmap(partial(run, **params), tuple(dims))(*args)
        return (list(out), [0] * len(out)) if multiple_results else (out, 0)

    def differentiate(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs, out_tangents = ad.jvp_flat(partial(listed, **params), primals, tangents)
        return (outs, out_tangents) if multiple_results else (outs[0], out_tangents[0])

    def differentiate_linear(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = primitive.bind(*primals, **params)
        first = outs[0] if multiple_results else outs
        tangent: Any = zero_from_primal(first)
        for i in linear:
            if not isinstance(tangents[i], ad.Zero):
                part = primitive.bind(*primals[:i], tangents[i], *primals[i + 1:], **params)
                tangent = ad.add_tangents(tangent, part[0] if multiple_results else part)
        if not multiple_results:
            return outs, tangent
        return outs, [tangent, *map(zero_from_primal, outs[1:])]

    def transpose(cts: Any, *args: Any, **params: Any) -> list[Any]:
        ct = cts[0] if multiple_results else cts
        unknown = [i for i, x in enumerate(args) if ad.is_undefined_primal(x)]

        def of_unknown(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(unknown, values, strict=True):
                full[i] = value
            return listed(*full, **params)[0]

        out: list[Any] = [None] * len(args)
        if isinstance(ct, ad.Zero):
            for i in unknown:
                out[i] = ad.Zero(args[i].aval)
            return out
        for i, value in zip(unknown, linear_transpose(of_unknown, *(args[i].aval for i in unknown))(ct), strict=True):
            out[i] = value
        return out

    primitive.def_abstract_eval(abstract_eval)
    rules.batchers[primitive] = batch
    if linear:
        ad.primitive_jvps[primitive] = differentiate_linear
        ad.primitive_transposes[primitive] = transpose
    else:
        ad.primitive_jvps[primitive] = differentiate
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results))
    return primitive
