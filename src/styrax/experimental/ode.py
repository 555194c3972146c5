"""Initial value problems of ordinary differential equations, solved with adaptive steps.

The method is Dormand and Prince's of order 5 (J. Comput. Appl. Math. 6, 1980), with Shampine's formulas (Math. Comp.
46, 1986) of order 4 for the error and for the middle of a step, through which a polynomial gives dense output.
Gradients solve the adjoint equation backward in time (Chen et al., Neural Ordinary Differential Equations, 2018), so
memory does not grow with the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.arrays.array import Array
from ..core.tracing.trace import valid_jaxtype
from ..core.trees import tree
from ..core.types.typing import ArrayLike, Function, Object, PyTree
from ..flatten_util import ravel_pytree
from ..transforms.api import vjp, vmap
from ..transforms.custom import closure_convert, custom_vjp
from ..transforms.jit import jit

# Row i: the weights of the stages before stage i + 1, which is at the fraction `_NODES[i]` of the step.
_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_SOLUTION = (*_STAGES[-1], 0.0)
_LOWER_ORDER = (1951 / 21600, 0.0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60)
_ERROR = tuple(a - b for a, b in zip(_SOLUTION, _LOWER_ORDER, strict=True))
_MIDDLE = (
    6025192743 / 30085553152 / 2, 0.0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
)


def _combine(weights: Sequence[float], k: Array) -> Array:
    """The sum of the stages, weighted."""
    return jnp.dot(jnp.asarray(weights, k.dtype), k)


def ravel_first_arg(f: Function, unravel: Function, debug_info: Object) -> Function:
    """`f` with its first argument and its result as vectors.

    Args:
      f: a function of a tree, and of more arguments, that gives a tree.
      unravel: the function from a vector to the tree that `f` takes.
      debug_info: what messages call the function; not used.
    """

    def raveled(flat: Array, *args: Any) -> Array:
        return ravel_pytree(f(unravel(flat), *args))[0]

    return raveled


def abs2(x: ArrayLike) -> Array:
    """The squares of absolute values."""
    x = jnp.asarray(x)
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def fit_4th_order_polynomial(y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array, dt: Array
                             ) -> tuple[Array, Array, Array, Array, Array]:
    """The polynomial of degree 4 on [0, 1] with given values at 0, 1/2 and 1 and slopes at the ends.

    Args:
      y0, y1, y_mid: values at the start, the end and the middle, of one shape.
      dy0, dy1: derivatives at the ends, with respect to time.
      dt: the length of the step.

    Returns:
      its coefficients, that of the highest power first.
    """
    dt = dt.astype(y0.dtype)
    slope = dt * dy0
    rise, bend, middle = y1 - y0 - slope, dt * dy1 - slope, y_mid - y0 - slope / 2
    fourth = 16.0 * middle + 2.0 * bend - 8.0 * rise
    third = bend - 2.0 * rise - 2.0 * fourth
    return fourth, third, rise - fourth - third, slope, y0


def interp_fit_dopri(y0: Array, y1: Array, k: Array, dt: Array) -> Array:
    """Coefficients of dense output over a step of the method, those of the highest power first.

    Args:
      y0, y1: the state before and after the step, of shape (n,).
      k: the stages of the step, of shape (7, n).
      dt: the length of the step.
    """
    y_mid = y0 + dt.astype(y0.dtype) * _combine(_MIDDLE, k)
    return jnp.asarray(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def _root_of_squares(x: Array, reduce: Callable[[Array], Array]) -> Array:
    """The root of a sum or mean of squares; squares of 16 bits are taken in 32, where they do not overflow."""
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    return jnp.sqrt(reduce(abs2(wide))).astype(x.real.dtype)


def _norm(x: Array) -> Array:
    return _root_of_squares(x, jnp.sum)


def initial_step_size(fun: Function, t0: ArrayLike, y0: Array, order: float, rtol: float, atol: float, f0: Array
                      ) -> Array:
    """A step to begin with: Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.4.

    Args:
      fun: the right-hand side `fun(y, t)`.
      t0, y0, f0: time, state and derivative at the start.
      order: the order of the method.
      rtol, atol: tolerances.
    """
    scale = atol + jnp.abs(y0) * rtol
    size, speed = _norm(y0 / scale), _norm(f0 / scale)
    first = jnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / speed)
    f1 = fun(y0 + first.astype(y0.dtype) * f0, t0 + first)
    curvature = _norm((f1 - f0) / scale) / first
    second = jnp.where((speed <= 1e-15) & (curvature <= 1e-15), jnp.maximum(1e-6, first * 1e-3),
                       (0.01 / jnp.maximum(speed, curvature)) ** (1.0 / (order + 1.0)))
    return jnp.minimum(100.0 * first, second)


def runge_kutta_step(func: Function, y0: Array, f0: Array, t0: Array, dt: Array) -> tuple[Array, Array, Array, Array]:
    """One step of the method.

    Args:
      func: the right-hand side `func(y, t)`.
      y0, f0: state and derivative at the start, of shape (n,).
      t0: the time there.
      dt: the length of the step.

    Returns:
      `(y1, f1, error, k)`: state and derivative at the end, the estimated error, and the stages, of shape (7, n).
    """
    h = dt.astype(y0.dtype)
    stages = [f0]
    for node, weights in zip(_NODES, _STAGES, strict=True):
        y1 = y0 + h * _combine(weights, jnp.stack(stages))
        stages.append(func(y1, t0 + dt * node))
    k = jnp.stack(stages)  # the last stage's state is the solution
    return y1, stages[-1], h * _combine(_ERROR, k), k


def mean_error_ratio(error_estimate: Array, rtol: float, atol: float, y0: Array, y1: Array) -> Array:
    """The root mean square of errors measured by their tolerances: up to one for a step that is good enough."""
    tolerance = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return _root_of_squares(error_estimate / tolerance, jnp.mean)


def optimal_step_size(last_step: ArrayLike, mean_error_ratio: ArrayLike, safety: float = 0.9, ifactor: float = 10.0,
                      dfactor: float = 0.2, order: float = 5.0) -> Array:
    """The step to take after one of `last_step` whose error was `mean_error_ratio` times what is tolerated.

    Args:
      safety: how much of the step that would just do is taken.
      ifactor, dfactor: by what a step grows at most, and shrinks at most; one that was good enough never shrinks.
      order: the order of the method.
    """
    ratio = jnp.asarray(mean_error_ratio)
    shrink = jnp.where(ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(ratio ** (-1.0 / order) * safety, shrink))
    return jnp.where(ratio == 0, last_step * ifactor, last_step * factor)


def odeint(func: Function, y0: PyTree, t: ArrayLike, *args: PyTree, rtol: float = 1.4e-8, atol: float = 1.4e-8,
           mxstep: float = np.inf, hmax: float = np.inf) -> PyTree:
    """Solves `dy/dt = func(y, t, *args)` from `y0` at `t[0]` on.

    Reverse-mode gradients with respect to `y0`, `t`, `args` and what `func` closes over solve the adjoint equation.

    Args:
      func: the right-hand side: it gives a tree like `y0`.
      y0: the state at the start, a tree of arrays.
      t: times, of shape (m,), increasing.
      *args: further arguments of `func`: trees of arrays.
      rtol, atol: tolerated relative and absolute error of a step.
      mxstep: how many steps are taken at most from one time to the next.
      hmax: the longest step.

    Returns:
      a tree like `y0`, whose arrays have a leading axis for the times.

    Raises:
      TypeError: leaves of `args` are no arrays or scalars, or `t` is not of floats.

    Example:
      >>> import styrax.numpy as jnp
      >>> from styrax.experimental.ode import odeint
      >>> abs(odeint(lambda y, t: -y, jnp.array(1.0), jnp.array([0.0, 1.0]), rtol=1e-6)[1] - jnp.exp(-1.0)) < 1e-5
      Array(True, dtype=bool)
    """
    for leaf in tree.tree_leaves(args):
        if not valid_jaxtype(leaf):
            raise TypeError(f"The contents of odeint *args must be arrays or scalars, but got {leaf!r}.")
    times = jnp.asarray(t)
    if not jnp.issubdtype(times.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    converted, consts = closure_convert(func, y0, times[0], *args)
    return _odeint_wrapper(converted, _Options(rtol, atol, mxstep, hmax), y0, times, *args, *consts)


class _Options(NamedTuple):
    rtol: float
    atol: float
    mxstep: float
    hmax: float


@partial(jit, static_argnums=(0, 1))
def _odeint_wrapper(func: Callable, options: _Options, y0: PyTree, ts: Array, *args: PyTree) -> PyTree:
    flat, unravel = ravel_pytree(y0)
    return vmap(unravel)(_solve(ravel_first_arg(func, unravel, None), options, flat, ts, *args))


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _solve(func: Callable, options: _Options, y0: Array, ts: Array, *args: Any) -> Array:
    """The states at `ts`, of shape (m, n), for a state that is a vector."""
    return _integrate(func, options, y0, ts, *args)


@partial(jit, static_argnums=(0, 1))
def _integrate(func: Callable, options: _Options, y0: Array, ts: Array, *args: Any) -> Array:
    rtol, atol, mxstep, hmax = options

    def slope(y: Array, t: Array) -> Array:
        return func(y, t, *args)

    def advance(carry: tuple, target: Array) -> tuple[tuple, Array]:
        def unfinished(state: tuple) -> Array:
            i, _, _, t, dt, _, _ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def step(state: tuple) -> tuple:
            i, y, f, t, dt, last_t, fit = state
            y1, f1, error, k = runge_kutta_step(slope, y, f, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, y1)
            accepted = ratio <= 1.0
            next_dt = jnp.clip(optimal_step_size(dt, ratio), 0.0, hmax).astype(dt.dtype)
            new = (y1, f1, t + dt, t, interp_fit_dopri(y, y1, k, dt))
            y, f, t, last_t, fit = (jnp.where(accepted, a, b) for a, b in zip(new, (y, f, t, last_t, fit), strict=True))
            return i + 1, y, f, t, next_dt, last_t, fit

        _, *carry = lax.while_loop(unfinished, step, (0, *carry))
        _, _, t, dt, last_t, fit = carry
        # where no step was taken: NaN, where the step is
        place = jnp.where(t == last_t, 0.0 * dt, (target - last_t) / jnp.where(t == last_t, 1.0, t - last_t))
        return tuple(carry), jnp.polyval(fit, place.astype(fit.dtype))

    f0 = slope(y0, ts[0])
    dt = jnp.clip(initial_step_size(slope, ts[0], y0, 4, rtol, atol, f0), 0.0, hmax).astype(ts.dtype)
    fit = jnp.zeros((5, *y0.shape), y0.dtype).at[-1].set(y0)
    _, ys = lax.scan(advance, (y0, f0, ts[0], dt, ts[0], fit), ts[1:])
    return jnp.concatenate([y0[None], ys])


def _forward(func: Callable, options: _Options, y0: Array, ts: Array, *args: Any) -> tuple[Array, tuple]:
    ys = _solve(func, options, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(func: Callable, options: _Options, residuals: tuple, cotangent: Array) -> tuple:
    """Runs the adjoint state back from each time to the one before it, and adds the cotangents that enter there."""
    ys, ts, args = residuals

    def adjoint(state: tuple, negative_t: Array, *args: Any) -> tuple:
        """The augmented right-hand side, in reversed time."""
        y, y_bar, *_ = state
        f, pull = vjp(func, y, -negative_t, *args)
        return (-f, *pull(y_bar))

    def back(carry: tuple, here: tuple) -> tuple[tuple, Array]:
        y_bar, t0_bar, args_bar = carry
        y, t, entering, before, entering_before = here
        t_bar = jnp.dot(func(y, t, *args), entering)
        state = (y, y_bar, t0_bar - t_bar.astype(ts.dtype), args_bar)
        out = odeint(lambda s, t, *args: _regroup(adjoint(s, t, *args)), state, jnp.stack([-t, -before]), *args,
                     **options._asdict())
        _, y_bar, t0_bar, args_bar = tree.tree_map(lambda x: x[1], out)
        return (y_bar + entering_before, t0_bar, args_bar), t_bar.astype(ts.dtype)

    start = (cotangent[-1], jnp.zeros((), ts.dtype), tree.tree_map(jnp.zeros_like, args))
    steps = (ys[1:], ts[1:], cotangent[1:], ts[:-1], cotangent[:-1])
    (y_bar, t0_bar, args_bar), ts_bar = lax.scan(back, start, steps, reverse=True)
    return (y_bar, jnp.concatenate([t0_bar[None], ts_bar]), *args_bar)


def _regroup(slopes: tuple) -> tuple:
    """The augmented state's tree: its last entry holds all arguments' cotangents."""
    minus_f, y_bar, t_bar, *args_bar = slopes
    return minus_f, y_bar, t_bar, tuple(args_bar)


_solve.defvjp(_forward, _backward)

__all__ = [
    "abs2", "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri", "mean_error_ratio", "odeint",
    "optimal_step_size", "ravel_first_arg", "runge_kutta_step",
]
