"""A generator of random numbers that has a state: each draw takes a new key."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import numpy as jnp
from .. import random
from ..core.arrays.array import Array
from ..core.tracing.trace import get_aval, state
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import AbstractRef
from ..core.types.typing import ArrayLike, DTypeLike
from ..transforms.refs import Ref, new_ref


def _shape(size: int | Sequence[int] | None, *args: ArrayLike) -> tuple[int, ...]:
    """The shape of a draw: `size`, or that of its parameters together."""
    given = () if size is None else (operator.index(size),) if np.ndim(size) == 0 else tuple(size)  # type: ignore
    return np.broadcast_shapes(given, *map(np.shape, args))


class StatefulPRNG:
    """A generator of random numbers: a key, and a counter of the keys made of it, in a reference.

    Made by `stateful_rng`. It is a tree, so that functions that are traced take it as an argument.

    Raises:
      ValueError: the base key is no typed key, or the counter no reference to integers.
    """

    _base_key: Array
    _counter: Ref

    def __init__(self, _base_key: Array, _counter: Ref):
        if not hasattr(_base_key, "dtype") or not dtypes.issubdtype(_base_key.dtype, dtypes.prng_key):
            raise ValueError(f"Expected base_key to be a typed PRNG key; got {_base_key}")
        aval = get_aval(_counter)
        if not isinstance(aval, AbstractRef) or not dtypes.issubdtype(aval.dtype, np.integer):
            raise ValueError(f"Expected counter to be a scalar integer ref; got {_counter}")
        self._base_key = _base_key
        self._counter = _counter

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key, or an array of them."""
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator")
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        shape = _shape(shape)
        return random.split(key, shape) if shape else key

    def random(self, size: int | Sequence[int] | None = None, dtype: DTypeLike = float) -> Array:
        """Uniform draws from [0, 1)."""
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(self, low: ArrayLike = 0, high: ArrayLike = 1, size: int | Sequence[int] | None = None, *,
                dtype: DTypeLike = float) -> Array:
        """Uniform draws from [low, high)."""
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: int | Sequence[int] | None = None, *,
               dtype: DTypeLike = float) -> Array:
        """Normal draws of mean `loc` and standard deviation `scale`."""
        draws = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return (draws * jnp.asarray(scale, draws.dtype) + jnp.asarray(loc, draws.dtype)).astype(draws.dtype)

    def integers(self, low: ArrayLike, high: ArrayLike | None = None, size: int | Sequence[int] | None = None, *,
                 dtype: DTypeLike = int) -> Array:
        """Integers from [low, high), or from [0, low)."""
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Independent generators in one value, to be mapped over."""
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(jnp.zeros(keys.shape, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Independent generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def _rebuilt(_: None, children: Sequence[Any]) -> StatefulPRNG:
    """The generator of leaves that need be no keys: transformations put other things there."""
    made = object.__new__(StatefulPRNG)
    made._base_key, made._counter = children
    return made


tree.register_pytree_node(StatefulPRNG, lambda rng: ((rng._base_key, rng._counter), None), _rebuilt)


def stateful_rng(seed: ArrayLike | None = None, *, impl: str | None = None) -> StatefulPRNG:
    """A generator of random numbers.

    Args:
      seed: an integer; without it, one is drawn by chance.
      impl: the name of the algorithm.

    Raises:
      TypeError: there is no seed, and a function is being traced.
    """
    if seed is None:
        if not state.trace.is_eval:
            raise TypeError("When used within transformed code, jax.experimental.random.stateful_rng() requires an "
                            "explicit seed to be set.")
        seed = np.random.SeedSequence().generate_state(1)[0] >> 1
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


__all__ = ["StatefulPRNG", "stateful_rng"]
