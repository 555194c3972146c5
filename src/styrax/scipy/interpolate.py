"""Interpolation on grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.trees.tree import register_pytree_node_class
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.numpy.promotion import check_arraylike, promote_dtypes_inexact

_METHODS = ("linear", "nearest")


@register_pytree_node_class
class RegularGridInterpolator:
    """The function through values on a grid: `interpolator(xi)`.

    Args:
      points: n vectors, the coordinates of the grid along each axis, rising, of at least two.
      values: [m1, …, mn, …], the values there. Further axes are those of the values themselves.
      method: "linear" or "nearest".
      bounds_error: must be False: programs cannot raise errors for what they compute.
      fill_value: the result outside of the grid; None for extrapolation.

    Raises ValueError for more vectors than `values` has axes, unknown methods and values that `fill_value`'s type
    does not fit, NotImplementedError for `bounds_error`.
    """

    def __init__(self, points: Sequence[ArrayLike], values: ArrayLike, method: str = "linear",
                 bounds_error: bool = False, fill_value: ArrayLike | None = np.nan) -> None:
        _check_method(method)
        self.method = method
        self.bounds_error = bounds_error
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT")
        check_arraylike("RegularGridInterpolator", values)
        if len(points) > np.ndim(values):
            raise ValueError(f"there are {len(points)} point arrays, but values has {np.ndim(values)} dimensions")
        (samples,) = promote_dtypes_inexact(values)
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            fill_value = jnp.asarray(fill_value)
            if not dtypes.issubdtype(samples.dtype, np.complexfloating) and dtypes.issubdtype(
                    fill_value.dtype, np.complexfloating):
                raise ValueError("fill_value must be either 'None' or of a type compatible with values")
        self.fill_value = fill_value
        self.grid = tuple(jnp.asarray(p) for p in points)
        self.values = jnp.asarray(samples)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, bool]]:
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, options: tuple[str, bool], parts: tuple[Any, ...]) -> RegularGridInterpolator:
        self = object.__new__(cls)
        self.grid, self.values, self.fill_value = parts
        self.method, self.bounds_error = options
        return self

    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array:
        """The values at `xi`.

        Args:
          xi: [..., n], or a tuple of n arrays that broadcast to one shape; a vector is one point.
          method: instead of the interpolator's.

        Returns:
          an array of the points' shape, then the values' own.

        Raises ValueError for other numbers of coordinates and unknown methods.
        """
        method = self.method if method is None else method
        _check_method(method)
        n = len(self.grid)
        x = _coordinates(xi, n)
        if x.shape[-1] != n:
            raise ValueError(f"the requested sample points xi have dimension {x.shape[1]}, but this "
                             f"RegularGridInterpolator has dimension {n}")
        columns = [x[..., i].ravel() for i in range(n)]
        cells = [jnp.clip(jnp.searchsorted(g, c) - 1, 0, len(g) - 2) for g, c in zip(self.grid, columns)]
        places = [(c - g[i]) / (g[i + 1] - g[i]) for g, c, i in zip(self.grid, columns, cells)]
        result = _linear(self.values, cells, places) if method == "linear" else self.values[
            tuple(jnp.where(p <= 0.5, i, i + 1) for p, i in zip(places, cells))]
        if self.fill_value is not None:
            outside = jnp.zeros(columns[0].shape, bool)
            for g, c in zip(self.grid, columns):
                outside |= (c < g[0]) | (c > g[-1])
            result = jnp.where(outside.reshape(-1, *(1,) * (result.ndim - 1)), self.fill_value, result)
        return result.reshape(x.shape[:-1] + self.values.shape[n:])


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise ValueError(f"method {method!r} is not defined")


def _coordinates(xi: ArrayLike | tuple[ArrayLike, ...], n: int) -> Array:
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]  # coordinates along the only axis
    if isinstance(xi, tuple):
        return jnp.stack(jnp.broadcast_arrays(*xi), axis=-1)
    check_arraylike("RegularGridInterpolator", xi)
    x = jnp.asarray(xi)
    return x.reshape(-1, n) if x.ndim == 1 else x


def _linear(values: Array, cells: list[Array], places: list[Array]) -> Array:
    """The multilinear interpolation in cells at places from 0 to 1 along each axis."""
    own = (1,) * (values.ndim - len(cells))
    result: Array | float = 0.0
    for corner in itertools.product((0, 1), repeat=len(cells)):
        weight: Array | float = 1.0
        for upper, place in zip(corner, places):
            weight = weight * (place if upper else 1 - place)
        samples = values[tuple(i + upper for i, upper in zip(cells, corner))]
        result = result + samples * jnp.reshape(weight, (-1, *own))
    return jnp.asarray(result)
