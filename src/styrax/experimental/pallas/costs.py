"""`estimate_cost`: what a function costs, counted in its program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.programs.jaxpr import ClosedJaxpr, JaxprEqn
from ...core.types.typing import PyTree
from ...transforms.looking import make_jaxpr
from .specs import CostEstimate

_ONE_OPERATION = frozenset("add sub mul div max min and or xor not neg floor ceil round".split())
_TRANSCENDENTAL = frozenset(
    "cos sin tan cosh sinh tanh acos asin atan acosh asinh atanh exp log logistic sqrt".split())


def estimate_cost(fun: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> CostEstimate:
    """The cost of a function.

    Products count two operations for each pair that is multiplied, arithmetic one for each element, elementary
    functions one transcendental each. Loops and branches are not looked into. Bytes are those of arguments and results.

    Args:
      fun: the function.
      args, kwargs: its arguments: trees of arrays or `ShapeDtypeStruct`s.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental import pallas as pl
      >>> pl.estimate_cost(lambda x, y: jnp.exp(x @ y), jnp.ones((4, 5)), jnp.ones((5, 6)))
      CostEstimate(flops=240, transcendentals=24, bytes_accessed=296, remote_bytes_transferred=0)
    """
    closed = make_jaxpr(fun)(*args, **kwargs)
    flops, transcendentals = _counted(closed)
    moved = sum(math.prod(a.shape) * a.dtype.itemsize for a in (*closed.in_avals, *closed.out_avals))
    return CostEstimate(flops, transcendentals, moved)


def _counted(closed: ClosedJaxpr) -> tuple[int, int]:
    each = [_of_equation(eqn) for eqn in closed.jaxpr.eqns]
    return sum(f for f, _ in each), sum(t for _, t in each)


def _of_equation(eqn: JaxprEqn) -> tuple[int, int]:
    name = eqn.primitive.name
    if name == "jit":
        return _counted(eqn.params["jaxpr"])
    size = math.prod(getattr(eqn.outvars[0].aval, "shape", ())) if eqn.outvars else 0
    if name == "dot_general":
        left = eqn.invars[0].aval.shape
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return 2 * size * math.prod(left[i] for i in contracted), 0
    if name == "integer_pow":
        return size * abs(eqn.params["y"]), 0
    return size * (name in _ONE_OPERATION), size * (name in _TRANSCENDENTAL)
