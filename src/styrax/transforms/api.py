"""The transformations as users call them."""

from __future__ import annotations

from .derivatives import grad, jvp, linear_transpose, linearize, value_and_grad
from .jacobians import hessian, jacfwd, jacrev
from .mapping import vmap
from .pullbacks import fwd_and_bwd, vjp
from .tracing import abstractify, eval_shape, make_jaxpr

__all__ = [
    "abstractify",
    "eval_shape",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "make_jaxpr",
    "value_and_grad",
    "vjp",
    "vmap",
]
