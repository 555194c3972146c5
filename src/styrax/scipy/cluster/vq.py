"""Vector quantization: observations are named after the nearest of a few vectors."""

from __future__ import annotations

from styrax import numpy as jnp
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.promotion import arrays, promote_dtypes_inexact


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The code of each observation.

    Args:
      obs: [M, N], or [M] for numbers.
      code_book: [K, N], or [K].
      check_finite: ignored.

    Returns:
      [M] indices (int32) of the nearest rows of the code book, and [M] Euclidean distances to them.

    Raises ValueError for other ranks and for an empty code book.
    """
    del check_finite
    obs, code_book = (jnp.asarray(v) for v in promote_dtypes_inexact(*arrays("scipy.cluster.vq.vq", obs, code_book)))
    if obs.ndim != code_book.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if obs.ndim not in (1, 2):
        raise ValueError("ndim different than 1 or 2 are not supported")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    distances = jnp.linalg.norm(obs[:, None] - code_book[None], axis=-1)
    codes = jnp.argmin(distances, axis=1)
    return codes, jnp.take_along_axis(distances, codes[:, None], axis=1).squeeze(1)
