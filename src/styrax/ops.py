"""Reductions over segments: elements that share an index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import resolved
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.programs.named import named
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import size_argument
from styrax.core.types.typing import ArrayLike, ShardingLike
from styrax.lax.indexing.dimension_numbers import GatherScatterMode
from styrax.numpy.conversion import asarray, with_result
from styrax.numpy.promotion import check_arraylike, convert, unwrap
from styrax.numpy.updates import scatter

__all__ = [
    "segment_max", "segment_min",
    "segment_prod", "segment_sum",
]

def _lowest(dtype: Any) -> Any:
    if dtype == np.bool_:
        return False
    return -np.inf if dtypes.issubdtype(dtype, np.inexact) else dtypes.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    if dtype == np.bool_:
        return True
    return np.inf if dtypes.issubdtype(dtype, np.inexact) else dtypes.iinfo(dtype).max


def _segment(name: str, kind: str, identity: Callable[[Any], Any], combine: str, data: Any, segment_ids: Any,
             num_segments: int | None, indices_are_sorted: bool, unique_indices: bool, bucket_size: int | None,
             mode: Any) -> Any:
    check_arraylike(name, data, segment_ids)
    data, segment_ids = asarray(unwrap(data)), asarray(unwrap(segment_ids))
    if num_segments is None:
        ids = concrete_or_error(np.asarray, segment_ids, f"segment_ids of {name}, whose number of segments is not "
                                                         f"given as num_segments")
        num_segments = int(ids.max()) + 1 if ids.size else 0
    num_segments = concrete_or_error(size_argument, num_segments, f"{name}() `num_segments` argument.")
    if num_segments < 0:
        raise ValueError("num_segments must be non-negative.")
    start = convert(identity(data.dtype), data.dtype)
    shape = (num_segments, *data.shape[segment_ids.ndim:])
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode,
               "wrap_negative_indices": False}
    if bucket_size is None:
        return scatter(lax.broadcast_in_dim(start, shape, ()), segment_ids, data, kind, **options)
    # Partial results over buckets of elements, combined at the end.
    count = data.shape[0]
    parts = []
    for first in range(0, max(count, 1), bucket_size):
        last = min(first + bucket_size, count)
        parts.append(scatter(lax.broadcast_in_dim(start, shape, ()), lax.slice_in_dim(segment_ids, first, last),
                             lax.slice_in_dim(data, first, last), kind, **options))
    from styrax.numpy import reductions

    return convert(getattr(reductions, combine)(lax.stack(parts, 0), axis=0), data.dtype)


def _function(name: str, kind: str, identity: Callable[[Any], Any], combine: str, text: str) -> Callable[..., Any]:
    def function(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                 mode: GatherScatterMode | str | None = None, out_sharding: ShardingLike | None = None) -> Array:
        if out_sharding is not None and kind != "add" and resolved(result_sharding(out_sharding, name)).spec.unreduced:
            raise NotImplementedError(f"unreduced for {combine} is not yet supported.")

        return with_result(
            partial(_segment, name, kind, identity, combine, num_segments=num_segments,
                    indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, bucket_size=bucket_size,
                    mode=mode),
            out_sharding, name)(data, segment_ids)

    named(function, name)
    function.__doc__ = f"""The {text} of the rows of `data` that share a segment.

    Args:
      data: an array.
      segment_ids: for each row of `data` the number of its segment. Negative and too large ones are left
        out, subject to `mode`.
      num_segments: how many segments there are; needed under `jit`. By default the largest number plus 1.
      indices_are_sorted, unique_indices: promises that make it faster.
      bucket_size: how many rows are reduced together before the results are combined.
      mode: what becomes of numbers out of range: dropped (the default) or "clip".

    Returns an array with one row per segment; that of an empty one is the {text} of nothing. Raises
    ConcretizationTypeError without `num_segments` for traced segments.
    """
    return function


segment_sum = _function("segment_sum", "add", lambda dtype: 0, "sum", "sum")
segment_prod = _function("segment_prod", "mul", lambda dtype: 1, "prod", "product")
segment_max = _function("segment_max", "max", _lowest, "max", "maximum")
segment_min = _function("segment_min", "min", _highest, "min", "minimum")
