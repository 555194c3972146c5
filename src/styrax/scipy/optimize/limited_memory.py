"""BFGS with the last few steps instead of a matrix.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from styrax import lax
from styrax import numpy as jnp
from styrax.core.arrays.array import Array

from .line_search import ValueAndGradient, line_search, slope
from .results import OptimizeResults


class _State(NamedTuple):
    x: Array
    value: Array
    gradient: Array
    steps: Array  # [memory, n], the last one last
    changes: Array  # of the gradient, in these steps
    weights: Array  # [memory], 1 / (step · change), 0 where there is none yet
    scale: Array  # of the first estimate of the inverse Hessian
    turns: Array | int
    evaluations: Array | int
    status: Array | int


_RUNNING = -1


def _direction(s: _State) -> Array:
    """The estimate of the inverse Hessian times -gradient: algorithm 7.4."""
    def backwards(q: Array, past: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        step, change, weight = past
        a = weight * slope(jnp.conj(step), q)
        return q - a.astype(q.dtype) * change, a

    def forwards(r: Array, past: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        step, change, weight, a = past
        b = weight * slope(jnp.conj(change), r)
        return r + (a - b).astype(r.dtype) * step, None

    past = s.steps, s.changes, s.weights
    q, factors = lax.scan(backwards, -jnp.conj(s.gradient), past, reverse=True)
    return lax.scan(forwards, s.scale.astype(q.dtype) * q, (*past, factors))[0]


def _remembered(past: Array, new: Array) -> Array:
    return jnp.concatenate([past[1:], new[None]])


def lbfgs(value_and_gradient: ValueAndGradient, x0: Array, maxiter: float | None = None, norm: float | str = np.inf,
          maxcor: int = 10, ftol: float = 2.220446049250313e-09, gtol: float = 1e-05, maxfun: float | None = None,
          maxgrad: float | None = None, maxls: int = 20) -> OptimizeResults:
    """A local minimum by BFGS with limited memory.

    Args:
      value_and_gradient: of a vector.
      x0: where to begin, shape [n].
      maxiter, maxfun, maxgrad: of iterations, values and gradients, after which one more turn is the last; None for
        any number.
      norm: of the gradient, as for `jax.numpy.linalg.norm`; success is a gradient of less than `gtol` in it.
      maxcor: how many steps are remembered.
      ftol: relative decrease of the value that is too small to go on.
      maxls: how often a step is doubled.

    The status is 0 for success, 1 to 3 where there were too many iterations, values and gradients, 4 where the decrease
    is too small, 5 for a line search without a good step. There is no estimate of the inverse Hessian.
    """
    iterations, values, gradients = (np.inf if m is None else m for m in (maxiter, maxfun, maxgrad))

    def turn(s: _State) -> _State:
        direction = _direction(s)
        found = line_search(value_and_gradient, s.x, s.value, s.gradient, direction, 1.0, maxls)
        end = found.step
        step = end.length.astype(s.x.dtype) * direction
        change = jnp.conj(end.gradient - s.gradient)
        curvature = slope(jnp.conj(change), step)
        useful = curvature > 0
        safe = jnp.where(useful, curvature, 1)
        evaluations = s.evaluations + found.evaluations
        converged = jnp.linalg.norm(end.gradient, ord=norm) < gtol
        decrease = (s.value - end.value) / jnp.maximum(jnp.maximum(jnp.abs(s.value), jnp.abs(end.value)), 1)
        status = jnp.where(decrease < ftol, 4, _RUNNING)
        status = jnp.where(s.evaluations >= gradients, 3, status)
        status = jnp.where(s.evaluations >= values, 2, status)
        status = jnp.where(s.turns >= iterations, 1, status)
        status = jnp.where(found.status != 0, 5, status)
        status = jnp.where(converged, 0, status)
        return _State(
            s.x + step, end.value, end.gradient, _remembered(s.steps, step), _remembered(s.changes, change),
            _remembered(s.weights, jnp.where(useful, 1 / safe, 0)),
            jnp.where(useful, safe / jnp.real(jnp.vdot(change, change)), s.scale), s.turns + 1, evaluations, status)

    value, gradient = value_and_gradient(x0)
    memory = jnp.zeros((maxcor, x0.size), x0.dtype)
    weights = jnp.zeros(maxcor, jnp.real(x0).dtype)
    status = jnp.where(jnp.linalg.norm(gradient, ord=norm) < gtol, 0, _RUNNING)
    s = lax.while_loop(lambda s: s.status == _RUNNING, turn,
                       _State(x0, value, gradient, memory, memory, weights, jnp.ones((), weights.dtype), 0, 1, status))
    return OptimizeResults(s.x, jnp.asarray(s.status == 0, bool), s.status, s.value, s.gradient, None, s.evaluations,
                           s.evaluations, s.turns)
