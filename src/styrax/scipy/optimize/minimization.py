"""Minimization by a choice of methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from styrax.core.arrays.array import Array
from styrax.transforms.api import value_and_grad

from .results import OptimizeResults


def minimize(fun: Callable[..., Array], x0: Array, args: tuple[Any, ...] = (), *, method: str, tol: float | None = None,
             options: Mapping[str, Any] | None = None) -> OptimizeResults:
    """A local minimum of a function of a vector.

    Args:
      fun: function of a vector and `args`, of a real result, which can be differentiated.
      x0: where to begin, shape [n], floats.
      args: further arguments.
      method: "BFGS" or "l-bfgs-experimental-do-not-rely-on-this".
      tol: when to stop; the method's `gtol` (and for limited memory `ftol`) unless the options name it.
      options: those of the method: `quasi_newton.bfgs` and `limited_memory.lbfgs` list them.

    Returns:
      a named tuple: whether it converged, the minimum, the value and the gradient there, and counts of steps and calls.

    Raises TypeError for an `x0` that is no vector, arguments that are no tuple and unknown options, ValueError for
    other methods.

    Example:
      >>> import styrax.numpy as jnp
      >>> from styrax.scipy.optimize import minimize
      >>> minimize(lambda x: ((x - 2.0) ** 2).sum(), jnp.zeros(2), method="BFGS").success
      Array(True, dtype=bool)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if x0.ndim != 1:
        raise TypeError(f"x0 must be a vector, got shape {x0.shape}")
    value_and_gradient = value_and_grad(lambda x: fun(x, *args))
    chosen = dict(options or {})
    if method.lower() == "bfgs":
        from .quasi_newton import bfgs

        return bfgs(value_and_gradient, x0, **({} if tol is None else {"gtol": tol}) | chosen)
    if method.lower() == "l-bfgs-experimental-do-not-rely-on-this":
        from .limited_memory import lbfgs

        return lbfgs(value_and_gradient, x0, **({} if tol is None else {"ftol": tol, "gtol": tol}) | chosen)
    raise ValueError(f"Method {method} not recognized")
