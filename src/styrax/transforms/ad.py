"""Differentiation rules and their helpers, under the names of JAX's `interpreters.ad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.programs.primitive import Primitive
from ..core.programs.rules import jvps as primitive_jvps
from ..core.programs.rules import linearizations as primitive_linearizations
from ..core.programs.rules import transposes as primitive_transposes
from .jvp import (
    JVPTrace,
    JVPTracer,
    custom_lin_p,
    defjvp,
    defjvp2,
    defjvp_zero,
    jvp_flat,
    jvp_jaxpr,
    linear_jvp,
    zero_jvp,
)
from .linear import (
    CotangentRef,
    UndefinedPrimal,
    backward_pass,
    cotangent_reference,
    defbilinear,
    deflinear,
    deflinear2,
    is_linear,
    is_undefined_primal,
    linearize_flat,
    linearize_jaxpr,
    transpose_jaxpr,
)
from .zeros import (
    SymbolicZero,
    Zero,
    add_any,
    add_any_p,
    add_tangents,
    aval_zeros,
    instantiate_zeros,
    zeros_like_aval,
)

add_jaxvals = add_any
add_jaxvals_p = add_any_p
aval_zeros_likers = aval_zeros


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """The transpose rule of a primitive. Raises NotImplementedError where it has none."""
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented") from None


__all__ = [
    "CotangentRef",
    "JVPTrace",
    "JVPTracer",
    "SymbolicZero",
    "UndefinedPrimal",
    "Zero",
    "add_any",
    "add_any_p",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "aval_zeros",
    "aval_zeros_likers",
    "backward_pass",
    "cotangent_reference",
    "custom_lin_p",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "defjvp_zero",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_linear",
    "is_undefined_primal",
    "jvp_flat",
    "jvp_jaxpr",
    "linear_jvp",
    "linearize_flat",
    "linearize_jaxpr",
    "primitive_jvps",
    "primitive_linearizations",
    "primitive_transposes",
    "transpose_jaxpr",
    "zero_jvp",
    "zeros_like_aval",
]
