"""Descriptive statistics: modes, ranks, standard errors, density estimates."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.numpy.accumulations import cumsum, nanstd, nansum
from styrax.numpy.binary import add, divide, multiply, subtract
from styrax.numpy.concatenation import concatenate
from styrax.numpy.conversion import asarray
from styrax.numpy.dot_products import dot
from styrax.numpy.indexing import gather_elements
from styrax.numpy.moments import std
from styrax.numpy.promotion import (
    arrays,
    axis_index,
    check_arraylike,
    convert,
    default_float,
    default_int,
    promote_dtypes_inexact,
    shape_of,
    unwrap,
)
from styrax.numpy.shaping import atleast_1d, atleast_2d, moveaxis
from styrax.numpy.sorting import argsort
from styrax.numpy.updates import scatter
from styrax.transforms.jit import jit_for_all_shapes as jit


class ModeResult(NamedTuple):
    """The most frequent values and how often they occur."""

    mode: Any
    count: Any


@partial(jit, static_argnames=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along `axis` (of all, for None), the smallest of several, and its count.

    Raises NotImplementedError for `nan_policy` "omit", ValueError for unknown ones.
    """
    (a,) = arrays("mode", a)
    a = asarray(a)
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of {{'propagate', 'omit', 'raise'}}")
    if nan_policy != "propagate":
        raise NotImplementedError(f"Logic for `nan_policy` of {nan_policy} is not implemented")
    shape = a.shape
    if axis is None:
        a, place = lax.reshape(a, (a.size,)), 0
    else:
        place = axis_index(axis, a.ndim)
    moved = moveaxis(a, place, -1)
    size = moved.shape[-1]
    if size == 0:
        raise ValueError("mode of an empty array")
    ordered = lax.sort(moved, dimension=moved.ndim - 1)
    # Counts of equal elements before the end of each run.
    left, right = lax.expand_dims(ordered, (ordered.ndim,)), lax.expand_dims(ordered, (ordered.ndim - 1,))
    table = (*ordered.shape, size)
    equal_ = lax.eq(lax.broadcast_in_dim(left, table, tuple(range(len(table)))),
                    lax.broadcast_in_dim(right, table, tuple(range(len(table)))))
    counts = lax.reduce_sum(convert(equal_, default_int()), (len(table) - 1,))
    best = lax.argmax(counts, counts.ndim - 1, np.dtype(np.int32))
    from styrax.numpy.selection import take_along_axis

    index = lax.expand_dims(best, (best.ndim,))
    value = lax.squeeze(take_along_axis(ordered, index, -1), (ordered.ndim - 1,))
    number = lax.squeeze(take_along_axis(counts, index, -1), (counts.ndim - 1,))
    if keepdims:
        kept = (1,) * len(shape) if axis is None else tuple(1 if i == place else d for i, d in enumerate(shape))
        value, number = lax.reshape(value, kept), lax.reshape(number, kept)
    return ModeResult(value, number)


@partial(jit, static_argnames=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The ranks of the elements, from 1, along `axis` (of all, for None).

    `method` is what equal elements get: the "average", "min" or "max" of their ranks, ranks without gaps
    ("dense"), or ranks in their order ("ordinal"). Raises ValueError for others, NotImplementedError for
    other `nan_policy`.
    """
    (a,) = arrays("rankdata", a)
    a = asarray(a)
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of {{'propagate', 'omit', 'raise'}}")
    if nan_policy != "propagate":
        raise NotImplementedError(f"Logic for `nan_policy` of {nan_policy} is not implemented")
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    if axis is not None:
        from styrax.numpy.vectorization import apply_along_axis

        return apply_along_axis(lambda x: rankdata(x, method), axis, a)
    flat = lax.reshape(a, (a.size,))
    n = flat.shape[0]
    order = argsort(flat)
    inverse = scatter(lax.full((n,), 0, default_int()), order, lax.iota(default_int(), n), "set")
    if method == "ordinal":
        return convert(add(inverse, 1), default_float())
    ordered = gather_elements(flat, order)
    new = concatenate([asarray([True]), lax.ne(gather_elements(ordered, slice(1, None)),
                                               gather_elements(ordered, slice(0, -1)))]) if n else lax.full(
        (0,), True, np.dtype(np.bool_))
    dense = gather_elements(cumsum(new), inverse) if n else inverse
    if method == "dense":
        return convert(dense, default_float())
    from styrax.numpy.positions import nonzero

    bounds = nonzero(new, size=n + 1, fill_value=n)[0]
    if method == "max":
        return convert(gather_elements(bounds, dense), default_float())
    low = add(gather_elements(bounds, subtract(dense, 1)), 1)
    if method == "min":
        return convert(low, default_float())
    kind = default_float()
    return divide(convert(add(gather_elements(bounds, dense), low), kind), 2)


@partial(jit, static_argnames=("axis", "nan_policy", "keepdims"))
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of the mean along `axis` (of all, for None).

    `nan_policy` "omit" leaves NaN out. Raises ValueError for policies other than that and "propagate".
    """
    (a,) = promote_dtypes_inexact(*arrays("sem", a))
    a = asarray(a)
    if nan_policy == "propagate":
        size = a.size if axis is None else a.shape[axis]
        return divide(std(a, axis, ddof=ddof, keepdims=keepdims), lax.sqrt(convert(size, a.dtype)))
    if nan_policy == "omit":
        number = nansum(convert(lax.eq(a, a), a.dtype), axis=axis, keepdims=keepdims)
        return divide(nanstd(a, axis, ddof=ddof, keepdims=keepdims), lax.sqrt(number))
    raise ValueError(f"{nan_policy} is not supported")


class gaussian_kde:
    """A density estimated from points by a sum of normal densities.

    Args:
      dataset: points as columns, or a vector of numbers.
      bw_method: the width: "scott" (the default), "silverman", a number, or a function of the estimate.
      weights: of the points.

    Raises ValueError for fewer than two points and for weights that do not fit.
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None):
        check_arraylike("gaussian_kde", dataset)
        dataset = atleast_2d(asarray(unwrap(dataset)))
        if dtypes.issubdtype(dataset.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if dataset.size <= 1:
            raise ValueError("`dataset` input should have multiple elements.")
        (dataset,) = promote_dtypes_inexact(dataset)
        self.dataset = dataset
        self.d, self.n = dataset.shape
        if weights is not None:
            weights = atleast_1d(convert(asarray(unwrap(weights)), dataset.dtype))
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if weights.shape[0] != self.n:
                raise ValueError("`weights` input should be of length n")
            self.weights = divide(weights, lax.reduce_sum(weights, (0,)))
        else:
            self.weights = lax.full((self.n,), 1.0 / self.n, dataset.dtype)
        self.neff = divide(1, lax.reduce_sum(lax.square(self.weights), (0,)))
        self.set_bandwidth(bw_method)

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Sets the width of the normal densities, as for the constructor."""
        if bw_method is None or bw_method == "scott":
            self.factor = lax.pow(self.neff, convert(-1.0 / (self.d + 4), self.dataset.dtype))
        elif bw_method == "silverman":
            base = multiply(self.neff, (self.d + 2) / 4.0)
            self.factor = lax.pow(base, convert(-1.0 / (self.d + 4), self.dataset.dtype))
        elif callable(bw_method):
            self.factor = bw_method(self)
        elif np.ndim(bw_method) == 0 and not isinstance(bw_method, str):
            self.factor = asarray(bw_method)
        else:
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        from styrax.numpy.linalg import inv
        from styrax.numpy.statistics import cov

        data_covariance = atleast_2d(cov(self.dataset, rowvar=True, bias=False, aweights=self.weights))
        self.covariance = multiply(data_covariance, lax.square(asarray(self.factor)))
        self.inv_cov = divide(inv(data_covariance), lax.square(asarray(self.factor)))

    def _log_terms(self, points: Any) -> Array:
        """The logarithms of the normal densities of all pairs of a data point (rows) and a point (columns)."""
        from styrax.numpy.linalg import slogdet

        points = atleast_2d(asarray(unwrap(points)))
        d, m = points.shape
        if d != self.d:
            if d == 1 and m == self.d:
                points = lax.reshape(points, (self.d, 1))
            else:
                raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
        difference = subtract(lax.expand_dims(convert(points, self.dataset.dtype), (1,)),
                              lax.expand_dims(self.dataset, (2,)))
        flat = lax.reshape(difference, (self.d, math.prod(difference.shape[1:])))
        energy = lax.reduce_sum(lax.mul(flat, dot(self.inv_cov, flat)), (0,))
        normaliser = add(multiply(self.d, np.log(2 * np.pi)), slogdet(self.covariance)[1])
        return lax.reshape(multiply(-0.5, add(energy, normaliser)), difference.shape[1:])

    def evaluate(self, points: Any) -> Array:
        """The estimated density at points, given as columns."""
        return dot(self.weights, lax.exp(self._log_terms(points)))

    __call__ = evaluate

    def pdf(self, x: Any) -> Array:
        """The estimated density at points, given as columns."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the estimated density at points, given as columns."""
        from styrax.nn.exponentials import logsumexp

        return logsumexp(self._log_terms(x), axis=0, b=lax.expand_dims(self.weights, (1,)))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the estimate times a normal density."""
        from .mass_functions import multivariate_normal

        mean = atleast_1d(asarray(mean))
        total = add(self.covariance, atleast_2d(asarray(cov)))
        values = lax.exp(multivariate_normal.logpdf(lax.transpose(self.dataset, (1, 0)), mean, total))
        return dot(self.weights, values)

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """The integral of a one-dimensional estimate between two bounds. Raises ValueError in more dimensions."""
        from styrax.scipy.special import ndtr

        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if shape_of(low) or shape_of(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        width = lax.sqrt(gather_elements(self.covariance, (0, 0)))
        data = gather_elements(self.dataset, 0)
        values = subtract(ndtr(divide(subtract(high, data), width)), ndtr(divide(subtract(low, data), width)))
        return dot(self.weights, values)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two estimates."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        from .mass_functions import multivariate_normal

        total = add(self.covariance, other.covariance)
        points = lax.transpose(self.dataset, (1, 0))
        centers = lax.transpose(other.dataset, (1, 0))
        table = lax.exp(
            multivariate_normal.logpdf(lax.expand_dims(points, (1,)), lax.expand_dims(centers, (0,)), total)
        )
        return dot(dot(self.weights, table), other.weights)

    def resample(self, key: Any, shape: tuple = ()) -> Array:
        """Random points drawn from the estimate, along the first axis of the result."""
        from styrax import random

        key_index, key_noise = random.split(key)
        index = random.choice(key_index, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(key_noise, lax.full((self.d,), 0, self.dataset.dtype), self.covariance,
                                           shape=shape, dtype=self.dataset.dtype)
        picked = gather_elements(self.dataset, (slice(None), index))
        return add(picked, moveaxis(noise, -1, 0))
