"""The transformations as users call them: each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..lazy import names as _names

_HOMES = {
    "transforms.derivatives": "grad jvp linear_transpose linearize value_and_grad",
    "transforms.jacobians": "hessian jacfwd jacrev",
    "transforms.mapping": "vmap",
    "transforms.pullbacks": "fwd_and_bwd vjp",
    "transforms.looking": "eval_shape make_jaxpr",
    "transforms.tracing": "abstractify",
}

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from .derivatives import grad, jvp, linear_transpose, linearize, value_and_grad
    from .jacobians import hessian, jacfwd, jacrev
    from .looking import eval_shape, make_jaxpr
    from .mapping import vmap
    from .pullbacks import fwd_and_bwd, vjp
    from .tracing import abstractify

    __all__ = [
        "abstractify", "eval_shape", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacrev", "jvp", "linear_transpose",
        "linearize", "make_jaxpr", "value_and_grad", "vjp", "vmap",
    ]
else:
    __getattr__, __dir__, __all__ = _names(__name__, _HOMES)
