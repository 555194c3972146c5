"""First-order optimizers of trees of parameters, and schedules of their step sizes.

An optimizer is three functions: `init_fn(params) -> state`, `update_fn(i, grads, state) -> state` with the number of
the step, and `params_fn(state) -> params`. It is written for one array and made one of trees by `optimizer`.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from .. import numpy as jnp
from ..core.arrays.array import Array
from ..core.trees import tree
from ..core.types.typing import ArrayLike, PyTree

Params: TypeAlias = PyTree
State: TypeAlias = PyTree
Updates: TypeAlias = PyTree
Step: TypeAlias = int
InitFn: TypeAlias = Callable[[Params], "OptimizerState"]
UpdateFn: TypeAlias = Callable[[Step, Updates, "OptimizerState"], "OptimizerState"]
ParamsFn: TypeAlias = Callable[["OptimizerState"], Params]
Schedule: TypeAlias = Callable[[Step], ArrayLike]
OnArray: TypeAlias = tuple[Callable[[Params], State], Callable[[Step, Updates, State], State],
                           Callable[[State], Params]]


class OptimizerState(typing.NamedTuple):
    """What an optimizer keeps between its steps.

    Attributes:
      packed_state: the leaves of each parameter's own state, by parameter.
      tree_def: the structure of the parameters.
      subtree_defs: the structures of their states.
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree.register_pytree_node(
    OptimizerState, lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda structure, children: OptimizerState(*children, *structure))


class Optimizer(typing.NamedTuple):
    """The three functions of an optimizer."""

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


class JoinPoint:
    """Marks the border between the tree of parameters and the state of one of them."""

    def __init__(self, subtree: PyTree):
        self.subtree = subtree

    def __iter__(self) -> Iterator[PyTree]:
        yield self.subtree


def _packed(states: Sequence[State], tree_def: tree.PyTreeDef) -> OptimizerState:
    flat = [tree.tree_flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree_def, tuple(structure for _, structure in flat))


def _states(state: OptimizerState) -> list[State]:
    return [tree.tree_unflatten(d, leaves) for d, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


def optimizer(opt_maker: Callable[..., OnArray]) -> Callable[..., Optimizer]:
    """Makes an optimizer of one array one of trees of arrays.

    Args:
      opt_maker: gives `(init, update, get_params)`: `init(x) -> state`, any tree; `update(i, grad, state) -> state`;
        `get_params(state) -> x`.
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: Params) -> OptimizerState:
            leaves, tree_def = tree.tree_flatten(params)
            return _packed([init(x) for x in leaves], tree_def)

        def tree_update(i: Step, grads: Updates, state: OptimizerState) -> OptimizerState:
            leaves, grad_def = tree.tree_flatten(grads)
            if grad_def != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree "
                    f"structure with which it was initialized: parameter tree {state.tree_def} and grad tree "
                    f"{grad_def}.")
            new = _packed([update(i, g, s) for g, s in zip(leaves, _states(state), strict=True)], state.tree_def)
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError("optimizer update function produced an output structure that did not match its "
                                    f"input structure: input {before} and output {after}.")
            return new

        def tree_params(state: OptimizerState) -> Params:
            return tree.tree_unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(tree_init, tree_update, tree_params)

    return make


# -- optimizers --------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: float | Schedule) -> OnArray:
    """Gradient descent."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, x: Array) -> Array:
        return x - schedule(i) * g

    return lambda x: x, update, lambda x: x


@optimizer
def momentum(step_size: Schedule, mass: float) -> OnArray:
    """Gradient descent with a velocity, which keeps `mass` of itself at each step (Polyak 1964)."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: Schedule, mass: float) -> OnArray:
    """Gradient descent with Nesterov's momentum (1983)."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


def _inverse_root(x: Array) -> Array:
    """1 / sqrt(x), and 0 where x is 0."""
    return jnp.where(x > 0, 1.0 / jnp.sqrt(x), 0.0)


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> OnArray:
    """Adagrad with momentum (Duchi et al. 2011): steps are divided by the root of the sum of squared gradients."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, squares, velocity = state
        squares = squares + jnp.square(g)
        velocity = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * velocity
        return x - schedule(i) * velocity, squares, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> OnArray:
    """RMSProp (Tieleman and Hinton 2012): steps are divided by the root of a moving mean of squared gradients."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - schedule(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8,
                     momentum: float = 0.9) -> OnArray:
    """RMSProp with a velocity."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, mean, velocity = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + schedule(i) * g / jnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> OnArray:
    """Adam (Kingma and Ba 2014): moving means of gradients and of their squares, freed of their bias."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * jnp.square(g) + b2 * squares
        unbiased = mean / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        scale = squares / (1 - jnp.asarray(b2, mean.dtype) ** (i + 1))
        return x - schedule(i) * unbiased / (jnp.sqrt(scale) + eps), mean, squares

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> OnArray:
    """Adamax (Kingma and Ba 2014): Adam with a decaying maximum in place of the mean of squares."""
    schedule = make_schedule(step_size)

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        step = schedule(i) / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        return x - step * mean / (largest + eps), mean, largest

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> OnArray:
    """SM3 (Anil et al., Memory-Efficient Adaptive Optimization, 2019): Adagrad with one accumulator for each index of
    each axis.
    """
    schedule = make_schedule(step_size)

    def init(x: Array) -> tuple:
        shape = jnp.shape(x)
        x = jnp.atleast_1d(x)  # a scalar has one accumulator, too
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape], shape

    def update(i: Step, g: Array, state: tuple) -> tuple:
        x, velocity, accumulators, shape = state
        axes = range(x.ndim)
        covers = [jnp.expand_dims(a, tuple(k for k in axes if k != axis)) for axis, a in enumerate(accumulators)]
        squares = functools.reduce(jnp.minimum, covers) + jnp.square(g)
        velocity = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * velocity
        accumulators = [squares.max(tuple(k for k in axes if k != axis)) for axis in axes]
        return x - schedule(i) * velocity, velocity, accumulators, shape

    return init, update, lambda state: state[0].reshape(state[3])


# -- schedules ----------------------------------------------------------------------------------------


def constant(step_size: ArrayLike) -> Schedule:
    """The same step size always."""

    def schedule(i: Step) -> ArrayLike:
        return step_size

    return schedule


def exponential_decay(step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike) -> Schedule:
    """`step_size * decay_rate ** (i / decay_steps)`."""

    def schedule(i: Step) -> ArrayLike:
        return step_size * decay_rate ** (i / decay_steps)

    return schedule


def inverse_time_decay(step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike, staircase: bool = False
                       ) -> Schedule:
    """`step_size / (1 + decay_rate * i / decay_steps)`, with `staircase` for whole quotients only."""

    def schedule(i: Step) -> ArrayLike:
        return step_size / (1 + decay_rate * (jnp.floor(i / decay_steps) if staircase else i / decay_steps))

    return schedule


def polynomial_decay(step_size: float | Array, decay_steps: ArrayLike, final_step_size: float | Array,
                     power: ArrayLike = 1.0) -> Schedule:
    """From `step_size` down to `final_step_size` within `decay_steps`, as a power of what is left."""

    def schedule(i: Step) -> ArrayLike:
        left = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Sequence[int] | ArrayLike, values: Sequence[float] | ArrayLike) -> Schedule:
    """`values[k]` up to `boundaries[k]`, and the last value after all of them.

    Raises:
      ValueError: there is not one value more than boundaries, or they are no vectors.
    """
    ends, levels = jnp.asarray(boundaries), jnp.asarray(values)
    if not ends.ndim == levels.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if ends.shape[0] != levels.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")

    def schedule(i: Step) -> ArrayLike:
        return levels[jnp.sum(i > ends)]

    return schedule


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """A schedule of a step size, or one that is given.

    Raises:
      TypeError: it is neither a scalar nor a function.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# -- trees -------------------------------------------------------------------------------------------


def l2_norm(tree: PyTree) -> Array:
    """The Euclidean norm of all arrays of a tree as one vector."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in _leaves(tree)))


_leaves = tree.tree_leaves


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> PyTree:
    """Gradients scaled down so that their norm is at most `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """The state as a tree like the parameters, with a `JoinPoint` around each parameter's state; for saving."""
    return tree.tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """The state of which `unpack_optimizer_state` made the tree."""
    marks, tree_def = tree.tree_flatten(marked_pytree)
    if not all(isinstance(m, JoinPoint) for m in marks):
        raise TypeError("pack_optimizer_state takes a tree whose leaves are JoinPoints")
    return _packed([m.subtree for m in marks], tree_def)


__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "Step", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
    "unpack_optimizer_state",
]
