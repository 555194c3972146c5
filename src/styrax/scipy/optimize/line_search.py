"""Steps along a direction that satisfy the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from styrax import lax
from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes

ValueAndGradient = Callable[[Array], tuple[Array, Array]]

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
_ZOOM_TURNS = 30


class Step(NamedTuple):
    """A step: its length, the function's value and gradient at its end, and the slope along the direction there."""

    length: Array
    value: Array
    gradient: Array
    slope: Array


class Found(NamedTuple):
    """The step to take, the evaluations spent, and 0, or why there is no better step.

    1: the interval shrank to nothing; 3: too many evaluations.
    """

    step: Step
    evaluations: Array | int
    status: Array | int


class _State(NamedTuple):
    trial: Array
    low: Step  # in the search for a bracket the last step; then the better end of the interval
    high: Step  # the other end
    left: Step  # the end that the interval lost last
    best: Step
    zooming: Array
    turns: Array | int
    turns_of_zoom: Array | int
    accepted: Array
    failed: Array


def slope(gradient: Array, direction: Array) -> Array:
    """The derivative along a direction; gradients of complex variables are conjugate to their directions."""
    return jnp.real(jnp.sum(gradient * direction))


def _choose(condition: Array, a: Step, b: Step) -> Step:
    return Step(*(jnp.where(condition, x, y) for x, y in zip(a, b)))


def _cubic(low: Step, high: Step, left: Step) -> Array:
    """The minimum of the cubic with the value and slope at `low` and the values at the other two."""
    b, c = high.length - low.length, left.length - low.length
    fb = high.value - low.value - low.slope * b
    fc = left.value - low.value - low.slope * c
    scale = (b * c) ** 2 * (b - c)
    cube = (c**2 * fb - b**2 * fc) / scale
    square = (b**3 * fc - c**3 * fb) / scale
    return low.length + (jnp.sqrt(square**2 - 3 * cube * low.slope) - square) / (3 * cube)


def _quadratic(low: Step, high: Step) -> Array:
    """The minimum of the parabola with the value and slope at `low` and the value at `high`."""
    b = high.length - low.length
    return low.length - low.slope * b**2 / (2 * (high.value - low.value - low.slope * b))


def _within(low: Step, high: Step, left: Step, first: Array) -> Array:
    """A length in the interval: the cubic's minimum, unless near an end; else the parabola's; else the middle."""
    start, end = jnp.minimum(low.length, high.length), jnp.maximum(low.length, high.length)
    width = end - start
    cubic, quadratic = _cubic(low, high, left), _quadratic(low, high)
    near_cubic = ~first & (cubic > start + 0.2 * width) & (cubic < end - 0.2 * width)
    near_quadratic = (quadratic >= start + 0.1 * width) & (quadratic <= end - 0.1 * width)
    return jnp.where(near_cubic, cubic, jnp.where(near_quadratic, quadratic, start + 0.5 * width))


def line_search(value_and_gradient: ValueAndGradient, x: Array, value: Array, gradient: Array, direction: Array,
                first: Array | float, maxiter: int) -> Found:
    """A step from `x` along a direction of descent, with the first trial `first`.

    Each turn evaluates the function once: while lengths double, until a bracket is found, at most `maxiter` times;
    then within the bracket. Where there is no bracket, the step is none; where the bracket shrinks to nothing, it is
    the best one that decreased the function sufficiently.
    """
    start = Step(jnp.zeros_like(value), value, gradient, slope(gradient, direction).astype(value.dtype))
    narrowest = 4 * float(dtypes.finfo(value.dtype).eps)

    def turn(s: _State) -> _State:
        f, g = value_and_gradient(x + s.trial.astype(x.dtype) * direction)
        new = Step(s.trial, f, g, slope(g, direction).astype(f.dtype))
        decreased = f <= value + SUFFICIENT_DECREASE * s.trial * start.slope
        worse = ~decreased | (f >= s.low.value) & ((s.turns > 0) | s.zooming)
        accepted = ~worse & (jnp.abs(new.slope) <= -CURVATURE * start.slope)
        rising = new.slope * jnp.where(s.zooming, s.high.length - s.low.length, 1.0) >= 0
        # The bracket after this turn: [low, new], or [new, low], or [new, high].
        high = _choose(worse, new, _choose(rising, s.low, s.high))
        left = _choose(worse | rising, s.high, s.low)
        low = _choose(worse, s.low, new)
        zooming = s.zooming | worse | rising
        trial = jnp.where(zooming, _within(low, high, left, jnp.logical_not(s.zooming)), 2 * s.trial)
        turns_of_zoom = s.turns_of_zoom + jnp.where(zooming, 1, 0)
        narrow = zooming & (jnp.abs(high.length - low.length) <= narrowest * jnp.maximum(low.length, high.length))
        exhausted = jnp.where(zooming, turns_of_zoom >= _ZOOM_TURNS, s.turns + 1 >= maxiter)
        best = _choose(accepted | decreased & (f < s.best.value), new, s.best)
        return _State(trial, low, high, left, best, zooming, s.turns + 1, turns_of_zoom, accepted,
                      ~accepted & (narrow | exhausted))

    no = jnp.asarray(False)
    state = lax.while_loop(
        lambda s: ~(s.accepted | s.failed), turn,
        _State(jnp.asarray(first, value.dtype), start, start, start, start, no, 0, 0, no, no))
    status = jnp.where(state.accepted, 0, jnp.where(state.zooming, 1, 3))
    return Found(_choose(status == 3, start, state.best), state.turns, status)
