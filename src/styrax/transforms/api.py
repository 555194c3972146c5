"""The transformations as users call them."""

from __future__ import annotations

from .derivatives import grad, hessian, jacfwd, jacrev, jvp, linear_transpose, linearize, value_and_grad, vjp
from .mapping import vmap
from .tracing import abstractify, eval_shape, make_jaxpr

__all__ = [
    "abstractify",
    "eval_shape",
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
