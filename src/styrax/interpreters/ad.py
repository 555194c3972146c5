"""Rules of differentiation: a view of the tables that the transformations use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.types.typing import Function, PyTree
from ..extend.linear_util import WrappedFun
from ..transforms.ad import (
    JVPTrace,
    JVPTracer,
    UndefinedPrimal,
    Zero,
    add_jaxvals,
    add_jaxvals_p,
    add_tangents,
    backward_pass,
    defbilinear,
    defjvp,
    defjvp2,
    deflinear,
    deflinear2,
    get_primitive_transpose,
    instantiate_zeros,
    is_undefined_primal,
    jvp_flat,
    jvp_jaxpr,
    primitive_jvps,
    primitive_linearizations,
    primitive_transposes,
    zeros_like_aval,
)
from ..transforms.derivatives import linearize


def jvp(fun: WrappedFun | Function, primals: Sequence[Any] | None = None, tangents: Sequence[Any] | None = None,
        has_aux: bool = False, instantiate: bool = True, transform_stack: bool = True) -> PyTree:
    """The derivative of a function of flat arguments: `(results, their tangents)`.

    `fun` may be a function or a `linear_util.WrappedFun`. Tangents may be `Zero`s; those of the results are not, unless
    `instantiate` is false.
    """
    call: Any = getattr(fun, "call_wrapped", fun)

    def flat(*args: Any) -> Sequence[Any]:
        if not has_aux:
            return call(*args)
        outs, aux = call(*args)
        found.append(aux)
        return outs

    found: list[Any] = []
    outs, out_tangents = jvp_flat(flat, list(primals or ()), list(tangents or ()))
    if instantiate:
        out_tangents = [instantiate_zeros(t) for t in out_tangents]
    return (outs, out_tangents, found[0]) if has_aux else (outs, out_tangents)


__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents", "backward_pass",
    "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros",
    "is_undefined_primal", "jvp", "jvp_jaxpr", "linearize", "primitive_jvps", "primitive_linearizations",
    "primitive_transposes", "zeros_like_aval",
]
