"""Random sparse arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import styrax.numpy as jnp
from styrax import random
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike, DTypeLike, Function, PyTree
from styrax.transforms.api import vmap

from .arrays import SparseInfo
from .bcoo.array import BCOO
from .bcoo.ordering import bcoo_sort_indices_p


def random_bcoo(key: ArrayLike, shape: tuple[int, ...], *, dtype: DTypeLike = np.float64,
                indices_dtype: DTypeLike | None = None, nse: float = 0.2, n_batch: int = 0, n_dense: int = 0,
                unique_indices: bool = True, sorted_indices: bool = False, generator: Function = random.uniform,
                **kwds: PyTree) -> BCOO:
    """A random BCOO array.

    Args:
      key: a random key.
      shape: of the array.
      dtype: of the elements.
      indices_dtype: of the indices, by default the default integer.
      nse: how many elements are stored in each batch; below 1, the part of all sparse elements that are.
      n_batch: the number of batch dimensions.
      n_dense: the number of dense dimensions.
      unique_indices: whether positions are to be distinct.
      sorted_indices: whether positions are to be in order.
      generator: `(key, shape, dtype, **kwds) -> elements`.
      **kwds: passed to `generator`.

    Raises:
      ValueError: the numbers do not fit the shape.
    """
    shape = tuple(map(operator.index, shape))
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid n_batch={n_batch}, n_dense={n_dense} for shape={shape}")
    n_sparse = len(shape) - n_batch - n_dense
    batch, sparse, dense = shape[:n_batch], shape[n_batch:n_batch + n_sparse], shape[n_batch + n_sparse:]
    size = math.prod(sparse)
    if not 0 <= nse < 1 and not 0 <= nse <= size:
        raise ValueError(f"got nse={nse}, expected to be between 0 and {size}")
    count = math.ceil(nse * size) if 0 < nse < 1 else int(nse)
    index_dtype = jnp.result_type(int) if indices_dtype is None else np.dtype(indices_dtype)

    data_key, indices_key = random.split(key)
    keys = random.split(indices_key, batch) if batch else indices_key
    draw: Callable[[Any], Array] = partial(_positions, sparse=sparse, count=count, unique=unique_indices,
                                           dtype=index_dtype)
    for _ in batch:
        draw = vmap(draw)
    indices = draw(keys)
    data = generator(data_key, shape=(*batch, count, *dense), dtype=dtype, **kwds)
    if sorted_indices:
        data, indices = bcoo_sort_indices_p.bind(data, indices, spinfo=SparseInfo(shape))
    return BCOO((data, indices), shape=shape, indices_sorted=sorted_indices, unique_indices=unique_indices)


def _positions(key: Any, sparse: tuple[int, ...], count: int, unique: bool, dtype: Any) -> Array:
    if not sparse:
        return jnp.zeros((count, 0), dtype)
    flat = random.choice(key, math.prod(sparse), (count,), replace=not unique)
    return jnp.stack(jnp.unravel_index(flat, sparse), axis=-1).astype(dtype)
