"""Descriptive statistics: modes, ranks, standard errors, density estimates."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.trees.tree import register_pytree_node_class
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.numpy.accumulations import cumsum, nanstd, nansum
from styrax.numpy.binary import add, divide, multiply, subtract
from styrax.numpy.broadcasting import choose_elements
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


def _check_nan_policy(name: str, policy: str) -> None:
    """Raises for every way to treat NaNs but that of letting them through."""
    if policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {policy!r}; expected one of {{'propagate', 'omit', 'raise'}}")
    if policy == "omit":
        raise NotImplementedError(f"Logic for `nan_policy` of {policy} is not implemented")
    if policy == "raise":
        raise NotImplementedError(f"In order to best JIT compile `{name}`, we cannot know whether `x` contains nans. "
                                  f"Look for them outside of the `{name}` function.")


@partial(jit, static_argnames=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, the smallest of several, and how often it occurs.

    Args:
      a: an array; NaNs count as equal and as largest.
      axis: an axis, or None for all elements.
      nan_policy: "propagate" alone.
      keepdims: whether the axes that go stay, with size 1.

    Returns:
      a pair (mode, count) of the shape of `a` without the axis, of the dtype of `a` and the default integer; along an
      axis without elements NaN and 0, both floats.

    Raises:
      NotImplementedError: for `nan_policy` "omit" and "raise".
      ValueError: for unknown policies.
    """
    (a,) = arrays("mode", a)
    a = asarray(a)
    _check_nan_policy("mode", nan_policy)
    a = atleast_1d(a)
    shape = a.shape
    if axis is None:
        a, place = lax.reshape(a, (a.size,)), 0
    else:
        place = axis_index(axis, a.ndim)
    value, number = _longest_run(moveaxis(a, place, -1))
    if keepdims:
        kept = (1,) * len(shape) if axis is None else tuple(1 if i == place else d for i, d in enumerate(shape))
        value, number = lax.reshape(value, kept), lax.reshape(number, kept)
    return ModeResult(value, number)


def _longest_run(a: Array) -> tuple[Array, Array]:
    """The smallest of the most frequent elements along the last axis, and its count; NaNs are equal."""
    *batch, size = a.shape
    last = len(batch)
    if not size:
        return lax.full(batch, np.nan, default_float()), lax.full(batch, 0, default_float())
    ordered = lax.sort(a, dimension=last)
    before = lax.slice_in_dim(ordered, 0, size - 1, axis=last)
    after = lax.slice_in_dim(ordered, 1, size, axis=last)
    new = lax.bitwise_and(lax.ne(before, after), lax.eq(before, before))  # NaNs come last
    new = lax.concatenate([lax.full((*batch, 1), True, np.bool_), new], last)
    place = lax.broadcasted_iota(default_int(), a.shape, last)
    start = lax.cummax(lax.select(new, place, lax.full_like(place, 0)), axis=last)
    lengths = add(subtract(place, start), 1)
    from styrax.numpy.selection import take_along_axis

    best = lax.expand_dims(lax.argmax(lengths, last, np.dtype(np.int32)), (last,))
    value = take_along_axis(ordered, take_along_axis(start, best, -1), -1)
    return lax.squeeze(value, (last,)), lax.squeeze(take_along_axis(lengths, best, -1), (last,))


@partial(jit, static_argnames=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The ranks of the elements, from 1.

    Args:
      a: an array; where it has NaN, all ranks along the axis are NaN.
      method: what equal elements get: the "average", "min" or "max" of their ranks, ranks without gaps ("dense"), or
        ranks in their order ("ordinal").
      axis: an axis along which elements are ranked, or None for all together.
      nan_policy: "propagate" alone.

    Returns:
      an array of the default float: of the shape of `a`, or a vector for no axis.

    Raises:
      NotImplementedError: for `nan_policy` "omit" and "raise".
      ValueError: for unknown policies and methods.
    """
    (a,) = arrays("rankdata", a)
    a = asarray(a)
    _check_nan_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    if axis is not None:
        from styrax.numpy.vectorization import apply_along_axis

        return apply_along_axis(lambda x: rankdata(x, method), axis, a)
    flat = lax.reshape(a, (a.size,))
    ranks = convert(_ranks(flat, method), default_float())
    if not dtypes.issubdtype(flat.dtype, np.inexact):
        return ranks
    return choose_elements(lax.reduce_or(lax.ne(flat, flat), (0,)), np.nan, ranks)


def _ranks(flat: Array, method: str) -> Array:
    n = flat.shape[0]
    order = argsort(flat)
    inverse = scatter(lax.full((n,), 0, default_int()), order, lax.iota(default_int(), n), "set")
    if method == "ordinal":
        return add(inverse, 1)
    ordered = gather_elements(flat, order)
    new = concatenate([asarray([True]), lax.ne(gather_elements(ordered, slice(1, None)),
                                               gather_elements(ordered, slice(0, -1)))]) if n else lax.full(
        (0,), True, np.dtype(np.bool_))
    dense = gather_elements(cumsum(new), inverse) if n else inverse
    if method == "dense":
        return dense
    from styrax.numpy.positions import nonzero

    bounds = nonzero(new, size=n + 1, fill_value=n)[0]
    if method == "max":
        return gather_elements(bounds, dense)
    low = add(gather_elements(bounds, subtract(dense, 1)), 1)
    if method == "min":
        return low
    kind = default_float()
    return divide(convert(add(gather_elements(bounds, dense), low), kind), 2)


@partial(jit, static_argnames=("axis", "nan_policy", "keepdims"))
def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of the mean: the standard deviation divided by √n, for n elements.

    Args:
      a: an array; integers are taken as floats.
      axis: an axis, or None for all elements.
      ddof: the squared deviations are divided by n - ddof.
      nan_policy: "propagate", or "omit", which leaves NaN out.
      keepdims: whether the axes that go stay, with size 1.

    Returns:
      a float array of the shape of `a` without the axis; NaN for n ≤ ddof.

    Raises:
      ValueError: for other policies.
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


_KDE_ARRAYS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from points by a sum of normal densities. It is a pytree of the arrays that it holds.

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
        if weights is None:
            (self.dataset,) = promote_dtypes_inexact(dataset)
            self.weights = lax.full((self.n,), 1.0 / self.n, self.dataset.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            self.dataset, weights = promote_dtypes_inexact(dataset, atleast_1d(asarray(unwrap(weights))))
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if weights.shape[0] != self.n:
                raise ValueError("`weights` input should be of length n")
            self.weights = divide(weights, lax.reduce_sum(weights, (0,)))
        self.neff = divide(1, lax.reduce_sum(lax.square(self.weights), (0,)))
        self._set_width(bw_method)

    @property
    def d(self) -> int:
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        return self.dataset.shape[1]

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        return tuple(getattr(self, name) for name in _KDE_ARRAYS), None

    @classmethod
    def tree_unflatten(cls, aux: None, arrays: tuple[Any, ...]) -> gaussian_kde:
        self = object.__new__(cls)
        for name, x in zip(_KDE_ARRAYS, arrays, strict=True):
            setattr(self, name, x)
        return self

    def __repr__(self) -> str:
        return f"gaussian_kde({', '.join(f'{name}={getattr(self, name)!r}' for name in _KDE_ARRAYS)})"

    def set_bandwidth(self, bw_method: Any = None) -> NoReturn:
        """Raises NotImplementedError: an estimate does not change; the constructor takes the width."""
        del bw_method
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> NoReturn:
        """Raises NotImplementedError: there is `integrate_box_1d`."""
        del low_bounds, high_bounds, maxpts
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def _set_width(self, bw_method: Any) -> None:
        if bw_method is None or bw_method == "scott":
            factor = lax.pow(self.neff, convert(-1.0 / (self.d + 4), self.dataset.dtype))
        elif bw_method == "silverman":
            base = multiply(self.neff, (self.d + 2) / 4.0)
            factor = lax.pow(base, convert(-1.0 / (self.d + 4), self.dataset.dtype))
        elif callable(bw_method):
            factor = bw_method(self)
        elif np.ndim(bw_method) == 0 and not isinstance(bw_method, str):
            factor = asarray(bw_method)
        else:
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        from styrax.numpy.linalg import inv
        from styrax.numpy.statistics import cov

        data_covariance = atleast_2d(cov(self.dataset, rowvar=True, bias=False, aweights=self.weights))
        self.covariance = multiply(data_covariance, lax.square(asarray(factor)))
        self.inv_cov = divide(inv(data_covariance), lax.square(asarray(factor)))

    def _log_terms(self, name: str, points: Any) -> Array:
        """The logarithms of the normal densities of all pairs of a data point (rows) and a point (columns)."""
        from styrax.numpy.linalg import slogdet

        check_arraylike(name, points)
        points = atleast_2d(asarray(unwrap(points)))
        if dtypes.issubdtype(points.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex coordinates")
        d, m = points.shape
        if d != self.d:
            if d == 1 and m == self.d:
                points = lax.reshape(points, (self.d, 1))
            else:
                raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
        difference = subtract(lax.expand_dims(points, (1,)), lax.expand_dims(self.dataset, (2,)))
        flat = lax.reshape(difference, (self.d, math.prod(difference.shape[1:])))
        energy = lax.reduce_sum(lax.mul(flat, dot(self.inv_cov, flat)), (0,))
        normaliser = add(self.d * math.log(2 * math.pi), slogdet(self.covariance)[1])
        return lax.reshape(multiply(-0.5, add(energy, normaliser)), difference.shape[1:])

    def evaluate(self, points: Any) -> Array:
        """The estimated density at points, given as columns."""
        return dot(self.weights, lax.exp(self._log_terms("evaluate", points)))

    __call__ = evaluate

    def pdf(self, x: Any) -> Array:
        """The estimated density at points, given as columns."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the estimated density at points, given as columns."""
        from styrax.nn.exponentials import logsumexp

        return logsumexp(self._log_terms("logpdf", x), axis=0, b=lax.expand_dims(self.weights, (1,)))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the estimate times a normal density. Raises ValueError for one of other dimensions."""
        from . import multivariate_normal

        check_arraylike("integrate_gaussian", mean, cov)
        mean, cov = atleast_1d(asarray(mean)), atleast_2d(asarray(cov))
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        total = add(self.covariance, cov)
        values = lax.exp(multivariate_normal.logpdf(lax.transpose(self.dataset, (1, 0)), atleast_2d(mean), total))
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
        from . import multivariate_normal

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
