"""Counting: histograms and occurrences of integers."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import resolved
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.tracing.errors import ShardingTypeError
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import size_argument
from styrax.core.types.typing import ArrayLike, ShardingLike

from .binary import add, divide, multiply, subtract
from .broadcasting import choose_elements
from .calculus import diff
from .clipping import clip
from .conversion import asarray, place
from .indexing import gather_elements
from .promotion import (
    check_arraylike,
    convert,
    default_int,
    dtype_of,
    is_array,
    promote_dtypes_inexact,
    shape_of,
    to_inexact,
    unwrap,
)
from .ranges import linspace
from .reductions import max as max_
from .reductions import min as min_
from .reductions import ptp
from .reductions import sum as sum_
from .shaping import ravel, transpose
from .sorting import searchsorted
from .updates import scatter


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None,
             out_sharding: ShardingLike | None = None) -> Array:
    """How often each integer occurs in a vector, or the sum of its weights.

    Args:
      x: a vector of integers or booleans.
      weights: what each element counts, of the shape of `x`.
      minlength: the least length of the result.
      length: its length; needed under `jit`. Larger integers are left out, negative ones count as 0.
      out_sharding: the sharding of the result.

    Returns:
      a vector of max(x) + 1 elements by default: integers, or of the dtype of the weights.

    Raises:
      TypeError: for other dtypes.
      ValueError: for other ranks, and for weights of another shape.
      ConcretizationTypeError: for a traced `x` without `length`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.bincount(jnp.array([0, 1, 1, 3]))
      Array([1, 2, 0, 1], dtype=int32)
    """
    check_arraylike("bincount", x)
    x = asarray(unwrap(x))
    if x.dtype == np.bool_:
        x = convert(x, np.dtype(np.int32))
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = concrete_or_error(operator.index, minlength, "The error occurred because of argument "
                                                                      "'minlength' of jnp.bincount.")
    if length is None:
        values = concrete_or_error(np.asarray, x, "The error occurred because of argument 'x' of jnp.bincount. To "
                                                  "avoid this error, pass a static `length` argument.")
        length = max(minlength, max(0, int(values.max())) + 1 if values.size else 0)
    else:
        length = concrete_or_error(size_argument, length, "The error occurred because of argument 'length' "
                                                                    "of jnp.bincount.")
    if weights is None:
        amounts: Any = np.ones((), default_int())
    else:
        if shape_of(weights) != x.shape:
            raise ValueError("shape of weights must match shape of x.")
        amounts = asarray(unwrap(weights))
    zeros = lax.full((length,), 0, dtype_of(amounts))
    told = None if out_sharding is None else resolved(result_sharding(out_sharding, "jnp.bincount"))
    if told is not None and (any(told.spec) or told.spec.unreduced not in (frozenset(), set(told.mesh.axis_names))):
        raise ShardingTypeError("out_sharding passed to `jnp.bincount` can only be fully replicated or fully unreduced "
                                "along all mesh axes")
    return place(scatter(zeros, clip(x, 0), amounts, "add", mode="drop"), out_sharding)


def histogram_bin_edges(a: ArrayLike, bins: ArrayLike = 10, range: None | Array | Sequence[ArrayLike] = None,
                        weights: ArrayLike | None = None) -> Array:
    """The edges of the bins of a histogram.

    Args:
      a: the data.
      bins: the number of equal bins, or the edges themselves.
      range: the lowest and highest edge: by default the extrema of `a`, or 0 and 1 where it is empty. Where both are
        equal they are moved apart by 1/2 each.
      weights: without effect.

    Returns:
      a vector of one element more than there are bins, of the float dtype of `a`.

    Raises:
      NotImplementedError: for the names of NumPy's rules.
      ValueError: for a range of other than two numbers.
    """
    del weights  # only rules for the number of bins would need them
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    check_arraylike("histogram_bin_edges", a, bins)
    a = ravel(asarray(unwrap(a)))
    kind = to_inexact(a.dtype)
    if len(shape_of(bins)) == 1:
        return asarray(bins, dtype=kind)
    number = concrete_or_error(operator.index, bins, "bins argument of histogram_bin_edges")
    if range is None:
        limits = lax.stack([min_(a), max_(a)], 0) if a.size else asarray(np.array([0, 1], kind))
    else:
        limits = asarray(range, dtype=kind) if not isinstance(range, (tuple, list)) else lax.stack(
            [convert(unwrap(r), kind) for r in range], 0)
    limits = convert(limits, kind)
    if shape_of(limits) != (2,):
        raise ValueError(f"`range` must be either None or a sequence of scalars, got {range}")
    half = convert(0.5, kind)
    empty = lax.eq(ptp(limits), convert(0, kind))
    low, high = gather_elements(limits, 0), gather_elements(limits, 1)
    low = choose_elements(empty, lax.sub(low, half), low)
    high = choose_elements(empty, lax.add(high, half), high)
    return linspace(low, high, number + 1, dtype=kind)


def histogram(a: ArrayLike, bins: ArrayLike = 10, range: Sequence[ArrayLike] | None = None,
              weights: ArrayLike | None = None, density: bool | None = None) -> tuple[Array, Array]:
    """How many elements lie in each bin, and the edges of the bins.

    Args:
      a: the data, taken in row order.
      bins: a number of equal bins, or their rising edges. A bin includes its lower edge, the last one its upper edge,
        too.
      range: the lowest and highest edge; by default the extrema of `a`. What is outside does not count.
      weights: what each element counts, of the shape of `a`.
      density: whether the counts are divided so that the histogram has integral 1.

    Returns:
      the counts, a vector, and the edges, one more; both of the float dtype that `a` and the weights promote to.

    Raises:
      ValueError: for weights of another shape.

    Example:
      >>> import styrax.numpy as jnp
      >>> counts, edges = jnp.histogram(jnp.array([0.0, 1.0, 1.0, 4.0]), bins=2)
      >>> counts, edges
      (Array([3., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    if weights is None:
        check_arraylike("histogram", a, bins)
        (a,) = promote_dtypes_inexact(asarray(unwrap(a)))
        amounts: Any = lax.full_like(a, 1)
    else:
        check_arraylike("histogram", a, bins, weights)
        if shape_of(a) != shape_of(weights):
            raise ValueError("weights should have the same shape as a.")
        a, amounts = (asarray(v) for v in promote_dtypes_inexact(unwrap(a), unwrap(weights)))
    edges = histogram_bin_edges(a, bins, range, weights)
    flat, amounts = ravel(a), ravel(amounts)
    bin_ = searchsorted(edges, flat, side="right")
    bin_ = choose_elements(lax.eq(flat, gather_elements(edges, -1)), edges.shape[0] - 1, bin_)
    counts = gather_elements(scatter(lax.full((edges.shape[0],), 0, amounts.dtype), bin_, amounts, "add"),
                             slice(1, None))
    if density:
        counts = divide(divide(counts, sum_(counts)), convert(diff(edges), counts.dtype))
    return counts, edges


def histogram2d(x: ArrayLike, y: ArrayLike, bins: ArrayLike | Sequence[ArrayLike] = 10,
                range: Sequence[None | Array | Sequence[ArrayLike]] | None = None, weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, Array, Array]:
    """How many points (x, y) lie in each bin of a plane, and the edges along both axes.

    Args:
      x, y: the coordinates: vectors of one size.
      bins: a number of bins for both axes or one for each, or a vector of edges for both or one for each; two elements
        are two numbers.
      range: pairs of lowest and highest edges, or None, for each axis.
      weights: what each point counts: a vector.
      density: whether the counts are divided so that the histogram has integral 1.

    Returns:
      the counts, shape [bins along x, bins along y], and two vectors of edges.
    """
    check_arraylike("histogram2d", x, y)
    try:
        n = len(bins)  # type: ignore[arg-type]
    except TypeError:
        n = 1
    if n not in (1, 2):
        bins = [asarray(bins), asarray(bins)]
    sample = transpose(asarray([asarray(unwrap(x)), asarray(unwrap(y))]))
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(sample: ArrayLike, bins: ArrayLike | Sequence[ArrayLike] = 10,
                range: Sequence[None | Array | Sequence[ArrayLike]] | None = None, weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, list[Array]]:
    """How many points lie in each bin of space, and the edges along each axis.

    Args:
      sample: the points as rows, shape [n, d].
      bins: a number of bins, or one number or vector of edges per axis.
      range: pairs of lowest and highest edges, or None, per axis.
      weights: what each point counts: a vector of size n.
      density: whether the counts are divided so that the histogram has integral 1.

    Returns:
      the counts, an array of rank d (integers without weights and density), and a list of d vectors of edges.

    Raises:
      ValueError: for arguments of other lengths.
    """
    if weights is None:
        check_arraylike("histogramdd", sample)
        (sample,) = promote_dtypes_inexact(asarray(unwrap(sample)))
    else:
        check_arraylike("histogramdd", sample, weights)
        sample, weights = (asarray(v) for v in promote_dtypes_inexact(unwrap(sample), unwrap(weights)))
    count, rank = sample.shape
    if weights is not None and weights.shape != (count,):
        raise ValueError("should have one weight for each sample.")
    if range is not None and (len(range) != rank or any(r is not None and shape_of(r) != (2,) and len(r) != 2
                                                        for r in range)):
        raise ValueError(f"For sample.shape={(count, rank)}, range must be a sequence of {rank} pairs or Nones; got "
                         f"{range=}")
    try:
        per_axis: list[Any] = list(bins) if not is_array(bins) or bins.ndim else [bins] * rank  # type: ignore[arg-type]
        if len(per_axis) != rank:
            raise ValueError("should be a bin for each dimension.")
    except TypeError:
        per_axis = [bins] * rank
    bins_along, edges, widths = [], [], []
    for i in builtins.range(rank):
        column = gather_elements(sample, (slice(None), i))
        limits = None if range is None else range[i]
        edge = histogram_bin_edges(column, per_axis[i], limits, weights)
        bin_ = searchsorted(edge, column, side="right")
        bins_along.append(choose_elements(lax.eq(column, gather_elements(edge, -1)), subtract(bin_, 1), bin_))
        edges.append(edge)
        widths.append(diff(edge))
    shape = tuple(e.shape[0] + 1 for e in edges)
    flat: Any = None
    for bin_, size in zip(bins_along, shape):
        flat = bin_ if flat is None else add(multiply(flat, size), bin_)
    amounts = np.ones((), default_int()) if weights is None else weights
    counts = scatter(lax.full((math.prod(shape),), 0, dtype_of(amounts)), flat, amounts, "add", mode="drop")
    counts = gather_elements(lax.reshape(counts, shape), (slice(1, -1),) * rank)
    if density:
        counts = divide(convert(counts, sample.dtype), sum_(convert(counts, sample.dtype)))
        for i, width in enumerate(widths):
            column_shape = tuple(width.shape[0] if i == k else 1 for k in np.arange(rank))
            counts = divide(counts, lax.reshape(convert(width, counts.dtype), column_shape))
    return counts, edges


