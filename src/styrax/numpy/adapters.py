"""Methods of arrays and tracers whose arguments are not quite those of the function that they call.

`core.hooks.METHODS` names those that are defined here.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike, DTypeLike

from . import binary, clipping, conversion, dot_products, positions, reductions, rounding, selection, sorting
from .promotion import is_array, is_arraylike


def __round__(self: Array, ndigits: int | None = None) -> Array:
    if ndigits is None:
        out = rounding.round(self)
        return conversion.astype(out, int)
    return rounding.round(self, decimals=operator.index(ndigits))


def __contains__(self: Array, query: ArrayLike) -> Array:
    if np.ndim(query) != 0 if not is_array(query) else query.ndim != 0:
        raise ValueError(f"Array.__contains__: query value must be a scalar, got query.shape={np.shape(query)}")
    if self.ndim != 1:
        raise ValueError(f"Array.__contains__: search array must be one-dimensional, got arr.shape={self.shape}.")
    if not is_arraylike(query):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(query)}.")
    return reductions.any(binary.equal(self, query))


def clip(self: Array, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The elements kept between two bounds. See `clip`."""
    return clipping.clip_between(self, min=min, max=max)


def dot(self: Array, b: ArrayLike, *, precision: lax.PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """The product with another array. See `dot`."""
    return dot_products.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def argpartition(self: Array, kth: int, axis: int = -1) -> Array:
    """The indices of a partition. See `argpartition`."""
    return sorting.argpartition(self, kth, axis)


def choose(self: Array, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None,
           mode: str = "raise") -> Array:
    """The members of `choices` that the elements name. See `choose`."""
    return selection.choose(self, choices, out=out, mode=mode)


def compress(self: Array, condition: ArrayLike, axis: int | None = None, *, out: None = None, size: int | None = None,
             fill_value: ArrayLike = 0) -> Array:
    """The slices where `condition` holds. See `compress`."""
    return positions.compress(condition, self, axis=axis, out=out, size=size, fill_value=fill_value)


def searchsorted(self: Array, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                 method: str = "scan") -> Array:
    """Where the elements of `v` go in this sorted vector. See `searchsorted`."""
    return sorting.searchsorted(self, v, side=side, sorter=sorter, method=method)
