"""Images between their samples."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence

import numpy as np

from styrax import lax
from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.promotion import check_arraylike
from styrax.transforms.jit import jit


def _mirrored(index: Array, size: int) -> Array:
    """Reflected at the middles of the first and last sample, which is the image's period."""
    half = size - 1
    return jnp.abs(jnp.remainder(index + half, 2 * half) - half) if half else jnp.zeros_like(index)


_INSIDE: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": jnp.remainder,
    "mirror": _mirrored,
    # at the outer edges: each sample stands for two in the middle of which it lies
    "reflect": lambda index, size: (_mirrored(2 * index + 1, 2 * size + 1) - 1) // 2,
}


def _neighbours(coordinate: Array, order: int) -> list[tuple[Array, Array | float]]:
    """The samples around a coordinate along one axis, with their weights."""
    if order == 0:
        nearest = coordinate if jnp.issubdtype(coordinate.dtype, np.integer) else lax.round(coordinate)
        return [(nearest.astype(np.int32), 1.0)]
    low = jnp.floor(coordinate)
    above = coordinate - low
    index = low.astype(np.int32)
    return [(index, 1 - above), (index + 1, above)]


@functools.partial(jit, static_argnames=("order", "mode", "cval"))
def _map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str,
                     cval: complex) -> Array:
    image = jnp.asarray(input)
    places = [jnp.asarray(c) for c in coordinates]
    if len(places) != image.ndim:
        raise ValueError(f"coordinates must be a sequence of length input.ndim, but {len(places)} != {image.ndim}")
    if mode not in _INSIDE:
        raise NotImplementedError(f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently "
                                  f"supported modes are {set(_INSIDE)}.")
    if order not in (0, 1):
        raise NotImplementedError("jax.scipy.ndimage.map_coordinates currently requires order<=1")
    axes = [[(_INSIDE[mode](index, size), weight, (index >= 0) & (index < size))
             for index, weight in _neighbours(place, order)] for place, size in zip(places, image.shape)]
    terms = []
    for corner in itertools.product(*axes):
        indices = tuple(index for index, _, _ in corner)
        if mode == "constant":
            inside = functools.reduce(operator.and_, [there for _, _, there in corner])
            samples = jnp.where(inside, image.at[indices].get(mode="clip"), jnp.asarray(cval).astype(image.dtype))
        else:
            samples = image.at[indices].get(mode="promise_in_bounds")
        terms.append(functools.reduce(operator.mul, [weight for _, weight, _ in corner]) * samples)
    result = functools.reduce(operator.add, terms)
    if jnp.issubdtype(image.dtype, np.integer) and jnp.issubdtype(result.dtype, np.inexact):
        result = lax.round(result)
    return result.astype(image.dtype)


def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant",
                    cval: complex = 0.0) -> Array:
    """The values of an image at coordinates between its samples.

    Args:
      input: the samples, of any rank n.
      coordinates: n arrays of one shape (after broadcasting), each of the coordinates along one axis.
      order: 0 for the nearest sample, 1 for linear interpolation.
      mode: what lies outside: "constant" (`cval`), "nearest" (the sample at the edge), "wrap", "mirror" (at
        the samples at the edges) or "reflect" (at the edges).
      cval: a Python number.

    Returns:
      an array of the coordinates' shape and the image's dtype; values for integers are rounded.

    Raises ValueError for other numbers of coordinates, NotImplementedError for other orders and modes.
    """
    check_arraylike("map_coordinates", cval)
    return _map_coordinates(input, coordinates, order, mode, cval)
