"""What minimizations find."""

from __future__ import annotations

from typing import NamedTuple

from styrax.core.arrays.array import Array


class OptimizeResults(NamedTuple):
    """What `minimize` found.

    Attributes:
      x: the point.
      success: whether the gradient there is small enough.
      status: 0 for success; 1 for too many iterations, otherwise as the method says.
      fun, jac: the function's value and gradient there.
      hess_inv: an estimate of the inverse Hessian there; None where the method has none.
      nfev, njev, nit: numbers of values, gradients and iterations.
    """

    x: Array
    success: Array
    status: Array | int
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array | int
    njev: Array | int
    nit: Array | int
