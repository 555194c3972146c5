"""Broyden, Fletcher, Goldfarb and Shanno's method.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithm 6.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from styrax import lax
from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes

from .line_search import ValueAndGradient, line_search, slope
from .results import OptimizeResults


class _State(NamedTuple):
    x: Array
    value: Array
    gradient: Array
    inverse: Array
    previous: Array  # the value one step before
    turns: Array | int
    evaluations: Array | int
    converged: Array
    search: Array | int  # the line search's status


def _updated(inverse: Array, s: Array, y: Array) -> Array:
    """The estimate of the inverse Hessian after a step `s` that changed the gradient by `y` (6.17)."""
    curvature = slope(jnp.conj(y), s)
    rho = jnp.where(curvature > 0, 1 / jnp.where(curvature > 0, curvature, 1), 0).astype(inverse.dtype)
    left = jnp.eye(s.size, dtype=inverse.dtype) - rho * jnp.outer(s, jnp.conj(y))
    return jnp.where(rho != 0, left @ inverse @ jnp.conj(left.T) + rho * jnp.outer(s, jnp.conj(s)), inverse)


def _first(inverse: Array, s: Array, y: Array) -> Array:
    """The estimate before the first update: the identity, or the Hessian's size along the step (6.20) where that is so
    different that an updated identity would lose it to rounding."""
    scale = slope(jnp.conj(y), s) / jnp.real(jnp.vdot(y, y))
    least = float(dtypes.finfo(inverse.dtype).eps) ** 0.5
    far = ((scale > 0) & (scale < least)) | ((scale > 1 / least) & (scale < np.inf))
    return jnp.where(far, scale, 1).astype(inverse.dtype) * inverse


def bfgs(value_and_gradient: ValueAndGradient, x0: Array, maxiter: int | None = None, norm: float | str = np.inf,
         gtol: float = 1e-5, line_search_maxiter: int = 10) -> OptimizeResults:
    """A local minimum by BFGS.

    Args:
      value_and_gradient: of a vector.
      x0: where to begin, shape [n].
      maxiter: of iterations; 200 n if None.
      norm: of the gradient, as for `jax.numpy.linalg.norm`; success is a gradient of less than `gtol` in it.
      line_search_maxiter: how often a step is doubled.

    The status is 0 for success, 1 for too many iterations, 3 and 5 for a line search without a good step: because the
    steps between which it lies come too close, or because all lengths are good.
    """
    limit = x0.size * 200 if maxiter is None else maxiter

    def turn(s: _State) -> _State:
        direction = -(s.inverse @ jnp.conj(s.gradient))
        # The step for which the last decrease would come again (3.60).
        guess = 2.02 * (s.value - s.previous) / slope(s.gradient, direction).astype(s.value.dtype)
        found = line_search(value_and_gradient, s.x, s.value, s.gradient, direction,
                            jnp.where((guess > 0) & (guess < 1), guess, 1), line_search_maxiter)
        end = found.step
        moved = end.length.astype(s.x.dtype) * direction
        change = jnp.conj(end.gradient - s.gradient)
        inverse = jnp.where(s.turns == 0, _first(s.inverse, moved, change), s.inverse)
        inverse = _updated(inverse, moved, change)
        converged = jnp.linalg.norm(end.gradient, ord=norm) < gtol
        return _State(s.x + moved, end.value, end.gradient, inverse, s.value, s.turns + 1,
                      s.evaluations + found.evaluations, converged, found.status)

    value, gradient = value_and_gradient(x0)
    converged = jnp.linalg.norm(gradient, ord=norm) < gtol
    # As though the step before had decreased the function by half of the gradient's length.
    previous = value + (jnp.linalg.norm(gradient) / 2).astype(value.dtype)
    s = lax.while_loop(
        lambda s: ~s.converged & (s.search == 0) & (s.turns < limit), turn,
        _State(x0, value, gradient, jnp.eye(x0.size, dtype=x0.dtype), previous, 0, 1, converged, 0))
    status = jnp.where(s.converged, 0, jnp.where(s.search != 0, 2 + s.search, jnp.where(s.turns >= limit, 1, -1)))
    return OptimizeResults(s.x, s.converged, status, s.value, s.gradient, s.inverse, s.evaluations, s.evaluations,
                           s.turns)
