"""Quantiles, medians, covariances and correlations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.settings.config import numpy_dtype_promotion
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis, DTypeLike, ShardingLike
from styrax.lax.elementwise.families import check_dtype
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .binary import divide, greater_equal, multiply, subtract
from .broadcasting import choose_elements
from .clipping import clip
from .complex_parts import conj
from .concatenation import concatenate
from .conversion import asarray, place
from .dot_products import dot
from .float_tests import isnan
from .indexing import gather_elements
from .moments import average
from .promotion import (
    arrays,
    axis_indices,
    check_arraylike,
    convert,
    dtype_of,
    is_array,
    promote_args_inexact,
    promote_dtypes_inexact,
    static_axis,
    unwrap,
    user_dtype,
)
from .reductions import any as any_
from .reductions import sum as sum_
from .shaping import atleast_2d, diagonal, moveaxis

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _operands(a: Any, q: Any, skip_nan: bool) -> tuple[Array, Array]:
    """Elements as floats, and levels, which have to be floats."""
    # Places are computed in the dtype of q: a small dtype of the elements could not count them.
    a, q = arrays("quantile", a, q)
    a = asarray(promote_dtypes_inexact(a)[0])
    q = asarray(promote_dtypes_inexact(q)[0] if dtypes.issubdtype(dtype_of(q), np.inexact) else q)
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise ValueError("quantile does not support complex input, as the operation is poorly defined.")
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    check_dtype("sub" if skip_nan else "mul", q, (np.integer, np.floating, np.complexfloating), 0)
    check_dtype("floor", q, (np.floating,))
    return a, q


def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool, skip_nan: bool) -> Any:
    a, q = _operands(a, q, skip_nan)
    a, axis, keepshape = _one_axis(a, axis, keepdims)
    with numpy_dtype_promotion("standard"):  # that weights may be wider than the elements is not the caller's doing
        out = _between(method, *(_neighbours_of_numbers(a, q, axis, keepdims) if skip_nan else
                                 _neighbours(a, q, axis, keepdims and keepshape is None)))
    if keepshape is not None:
        out = lax.reshape(out, (*q.shape, *keepshape))
    return convert(out, a.dtype)


def _one_axis(a: Any, axis: Any, keepdims: bool) -> tuple[Any, int, list[int] | None]:
    """An array with the axes that are reduced made one, that axis, and the shape of a result with `keepdims` where
    that is not the axis of size 1 alone."""
    if axis is None:
        keepshape = [1] * a.ndim if keepdims else None
        return lax.reshape(a, (a.size,)) if a.ndim != 1 else a, 0, keepshape
    axes = axis_indices(axis, a.ndim)
    if not isinstance(axis, tuple):
        return a, axes[0], None
    keepshape = [1 if i in axes else d for i, d in enumerate(a.shape)] if keepdims else None
    # Several axes are put together at the end.
    kept = [i for i in range(a.ndim) if i not in axes]
    a = lax.transpose(a, (*kept, *axes))
    a = lax.reshape(a, (*a.shape[: len(kept)], math.prod(a.shape[len(kept):])))
    return a, a.ndim - 1, keepshape


def _neighbours_of_numbers(a: Any, q: Any, axis: int, keepdims: bool) -> tuple[Any, Any, Any, Any]:
    """The elements below and above each quantile and their weights, NaN left out."""
    lead = q.ndim
    invalid = lax.ne(a, a)
    a = lax.sort(choose_elements(invalid, np.nan, a), dimension=axis)
    counts = sum_(lax.bitwise_not(invalid), axis=axis, dtype=q.dtype, keepdims=keepdims)
    shape = counts.shape
    last = lax.sub(counts, convert(1, q.dtype))
    q = lax.expand_dims(q, tuple(range(lead, lead + len(shape))))
    counts = lax.expand_dims(counts, tuple(range(lead)))
    last = lax.expand_dims(last, tuple(range(lead)))
    place = multiply(q, subtract(counts, 1))
    low, high = lax.floor(place), lax.ceil(place)
    high_weight = lax.sub(place, low)
    low_weight = lax.sub(convert(1, place.dtype), high_weight)
    top = lax.max(last, convert(0, last.dtype))
    low = convert(_clamped(low, top), np.dtype(np.int32))
    high = convert(_clamped(high, top), np.dtype(np.int32))
    others = [lax.broadcasted_iota(np.dtype(np.int32), low.shape, lead + k) for k in range(len(shape))]
    index: list[Any] = []
    for i in range(a.ndim):
        if i == axis:
            index.append(None)
            if keepdims:
                others.pop(0)
        else:
            index.append(others.pop(0))
    low_value = gather_elements(a, tuple(low if i is None else i for i in index))
    high_value = gather_elements(a, tuple(high if i is None else i for i in index))
    return low_value, high_value, low_weight, high_weight


def _neighbours(a: Any, q: Any, axis: int, keepdims: bool) -> tuple[Any, Any, Any, Any]:
    """The elements below and above each quantile and their weights; NaN where there is one."""
    lead = q.ndim
    with_nan = any_(lax.ne(a, a), axis=axis, keepdims=True)
    size = a.shape[axis]
    a = lax.sort(choose_elements(with_nan, np.nan, a), dimension=axis)
    total = convert(size, q.dtype)
    one = convert(1, q.dtype)
    place = lax.mul(q, lax.sub(total, one))
    low, high = lax.floor(place), lax.ceil(place)
    high_weight = lax.sub(place, low)
    low_weight = lax.sub(one, high_weight)
    zero = convert(0, q.dtype)
    low = lax.clamp(zero, low, lax.sub(total, one))
    high = lax.clamp(zero, high, lax.sub(total, one))
    low, high = (convert(v, np.dtype(np.int32)) for v in (low, high))
    low_value, high_value = _rows(a, low, axis), _rows(a, high, axis)
    if keepdims:
        low_value, high_value = (lax.expand_dims(v, (axis + lead,)) for v in (low_value, high_value))
    if lead:
        column = (q.shape[0],) + (1,) * (low_value.ndim - 1)
        low_weight, high_weight = lax.reshape(low_weight, column), lax.reshape(high_weight, column)
    return low_value, high_value, low_weight, high_weight


def _between(method: str, low_value: Any, high_value: Any, low_weight: Any, high_weight: Any) -> Any:
    """A quantile between two neighbours."""
    if method == "linear":
        return lax.add(multiply(low_value, low_weight), multiply(high_value, high_weight))
    if method == "lower":
        return low_value
    if method == "higher":
        return high_value
    if method == "midpoint":
        return multiply(lax.add(low_value, high_value), 0.5)
    return choose_elements(lax.le(high_weight, convert(0.5, high_weight.dtype)), low_value, high_value)


def _clamped(x: Any, top: Any) -> Any:
    from .broadcasting import spread

    return lax.max(lax.min(x, spread(top, x.shape)), convert(0, x.dtype))


def _rows(a: Any, i: Any, axis: int) -> Any:
    """The slices of `a` along an axis at indices that are in range; their axis goes first."""
    rank = i.ndim
    start = lax.expand_dims(i, (rank,))
    offset = tuple(range(rank, rank + a.ndim - 1))
    return lax.gather(a, start, lax.GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=(axis,),
                                                           start_index_map=(axis,)),
                      tuple(1 if k == axis else d for k, d in enumerate(a.shape)),
                      mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _inverted_cdf(a: Any, q: Any, axis: Any, keepdims: bool, weights: Any, skip_nan: bool) -> Any:
    """The least elements up to which lies a share q of the weights (by default 1 each)."""
    from styrax.transforms.api import vmap

    from .accumulations import cumsum
    from .selection import take_along_axis
    from .sorting import argsort

    a, q = _operands(a, q, skip_nan)
    if weights is None:
        weights = lax.full_like(a, 1)
    else:
        (weights,) = arrays("quantile", weights)
        if dtypes.issubdtype(dtype_of(weights), np.complexfloating):
            raise ValueError("Weights cannot be complex types.")
        a, weights = (asarray(v) for v in promote_dtypes_inexact(a, weights))
        weights = _spread_weights(weights, a.shape, axis)
    weights = _one_axis(weights, axis, False)[0]
    a, at_axis, keepshape = _one_axis(a, axis, keepdims)
    a, weights = moveaxis(a, at_axis, -1), moveaxis(weights, at_axis, -1)
    unknown = any_(lax.bitwise_or(lax.ne(weights, weights), lax.lt(weights, lax.full_like(weights, 0))), axis=-1)
    if skip_nan:
        weights = choose_elements(isnan(a), 0, weights)
    else:
        unknown = lax.bitwise_or(unknown, any_(isnan(a), axis=-1))
    order = argsort(a, axis=-1)
    a, running = take_along_axis(a, order, -1), cumsum(take_along_axis(weights, order, -1), axis=-1)
    total = gather_elements(running, (..., slice(-1, None)))

    def one(level: Any) -> Any:
        reached = greater_equal(running, multiply(clip(level, 0, 1), total))
        place = lax.argmax(reached, reached.ndim - 1, np.dtype(np.int32))
        value = lax.squeeze(take_along_axis(a, lax.expand_dims(place, (place.ndim,)), -1), (a.ndim - 1,))
        return choose_elements(unknown, np.nan, value)

    out = vmap(one)(q) if q.ndim else one(q)
    if keepshape is not None:
        return lax.reshape(out, (*q.shape, *keepshape))
    return lax.expand_dims(out, (q.ndim + at_axis,)) if keepdims else out


def _spread_weights(weights: Any, shape: tuple, axis: Any) -> Any:
    """Weights of the elements, or of those along the reduced axes, for an array of a shape."""
    if weights.shape == shape:
        return weights
    if axis is None:
        raise ValueError("Weights shape must match 'a' shape when axis is None.")
    axes = axis_indices(axis, len(shape))
    if weights.shape != tuple(shape[i] for i in axes):
        raise ValueError(f"Weights shape {weights.shape} must match reduction axes {tuple(shape[i] for i in axes)}")
    order = tuple(int(i) for i in np.argsort(axes))
    return lax.broadcast_in_dim(lax.transpose(weights, order), shape, tuple(sorted(axes)))


def _entry(a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any, skip_nan: bool) -> Any:
    if method not in _METHODS:
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'")
    if method == "inverted_cdf":
        return _inverted_cdf(a, q, axis, keepdims, weights, skip_nan)
    if weights is not None:
        raise NotImplementedError(f"{method} does not support weights. Only method 'inverted_cdf' supports weights.")
    return _quantile(a, q, axis, method, keepdims, skip_nan)


def _check_options(name: str, overwrite_input: bool, out: Any) -> None:
    if overwrite_input or out is not None:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")


def _of_quantiles(name: str, skip_nan: bool) -> Callable[..., Array]:
    """What `quantile` and `nanquantile` run."""

    def traced(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: bool = False, *, weights: Any = None) -> Any:
        _check_options(name, overwrite_input, out)
        check_arraylike(name, a, q)
        return _entry(a, q, static_axis(axis), method, keepdims, weights, skip_nan)

    compiled = jit(named(traced, name, ""), static_argnames=("axis", "overwrite_input", "method", "keepdims"))

    def function(a: Any, q: Any, axis: Any, out: Any, overwrite_input: bool, method: str, keepdims: bool,
                 weights: Any) -> Array:
        check_arraylike(name, a, q)
        a, q = unwrap(a), unwrap(q)
        # A number becomes a constant here, not a traced weak one.
        q = convert(q, dtype_of(q)) if not is_array(q) else q
        return compiled(a, q, static_axis(axis), out, overwrite_input, method, keepdims, weights=weights)

    return function


_quantiles, _nanquantiles = _of_quantiles("quantile", False), _of_quantiles("nanquantile", True)


@fused(static_argnames=("axis", "out", "overwrite_input", "method", "keepdims"))
def quantile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
             method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The q-quantiles of the elements along `axis`; NaN where there is one.

    Args:
      a: an array of a real dtype; integers are taken as floats.
      q: a float or vector of floats between 0 and 1; numbers beyond count as the nearest of these.
      axis: an int, a tuple of ints, or None for all axes.
      out, overwrite_input: not supported, None and False only.
      method: how a quantile between two elements is found: in proportion to their distances ("linear"), as one of
        them ("lower", "higher", "nearest") or as their mean ("midpoint"); or, with "inverted_cdf", as the least
        element up to which lies a share q of all.
      keepdims: whether reduced axes stay, with size 1.
      weights: of the elements, with "inverted_cdf", of the shape of `a` or of that along `axis`; where one is negative
        or NaN the result is NaN.

    Returns:
      floats of the shape of `a` without the reduced axes; the quantiles of a vector q run along a new first axis.

    Raises:
      TypeError: for levels that are no floats.
      ValueError: for complex numbers, unknown methods, q of rank above 1, and weights of another shape.
      NotImplementedError: for weights with another method.
    """
    return _quantiles(a, q, axis, out, overwrite_input, method, keepdims, weights)


@fused(static_argnames=("axis", "out", "overwrite_input", "method", "keepdims"))
def nanquantile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
                method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The q-quantiles of the elements along `axis` that are not NaN; NaN where all are.

    Args:
      a, q, axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.

    Returns:
      what `quantile` gives.
    """
    return _nanquantiles(a, q, axis, out, overwrite_input, method, keepdims, weights)


def _hundredths(name: str, a: Any, q: Any) -> Any:
    """Percentages as levels of quantiles."""
    check_arraylike(name, a, q)
    (q,) = promote_dtypes_inexact(unwrap(q))
    return divide(q, 100) if is_array(q) else np.asarray(q, dtype_of(q)) / np.asarray(100, dtype_of(q))


@fused(static_argnames=("axis", "out", "overwrite_input", "method", "keepdims", "out_sharding"))
def percentile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
               out_sharding: ShardingLike | None = None) -> Array:
    """The q-th percentiles of the elements along `axis`, q/100-quantiles; NaN where there is one.

    Args:
      a, axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.
      q: a number or vector between 0 and 100.
      out_sharding: sharding of the result.

    Returns:
      what `quantile` gives.
    """
    return place(
        quantile(a, _hundredths("percentile", a, q), axis, out, overwrite_input, method, keepdims, weights=weights),
        out_sharding)


@fused(static_argnames=("axis", "out", "overwrite_input", "method", "keepdims"))
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
                  method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The q-th percentiles of the elements along `axis` that are not NaN; NaN where all are.

    Args:
      a, axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.
      q: a number or vector between 0 and 100.

    Returns:
      what `quantile` gives.
    """
    level = _hundredths("nanpercentile", a, q)
    return nanquantile(a, level, axis, out, overwrite_input, method, keepdims, weights=weights)


def _median(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
            keepdims: bool = False) -> Array:
    """The median of the elements along `axis`: the middle one, or the mean of two; NaN where there is one.

    Args:
      a, axis, out, overwrite_input, keepdims: as for `quantile`.

    Returns:
      floats of the shape of `a` without the reduced axes.
    """
    check_arraylike("median", a)
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _nanmedian(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
               keepdims: bool = False) -> Array:
    """The median of the elements along `axis` that are not NaN; NaN where all are.

    Args:
      a, axis, out, overwrite_input, keepdims: as for `quantile`.

    Returns:
      floats of the shape of `a` without the reduced axes.
    """
    check_arraylike("nanmedian", a)
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


median = jit(named(_median, "median"), static_argnames=("axis", "overwrite_input", "keepdims"))
nanmedian = jit(named(_nanmedian, "nanmedian"), static_argnames=("axis", "overwrite_input", "keepdims"))


# -- covariance ------------------------------------------------------------------------------------------
def _cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
         fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, dtype: DTypeLike | None = None) -> Array:
    """The covariances of variables.

    Args:
      m: observations: a vector, or a matrix with a variable in each row. Integers are taken as floats.
      y: more variables, of the same form.
      rowvar: False for variables in the columns.
      bias: whether to divide by the number of observations n instead of n - 1.
      ddof: divide by n - ddof.
      fweights: how often each observation counts, integers.
      aweights: weights of the observations. The divisor is w - ddof · Σ w·aweights / w, where w adds up both weights'
        products.
      dtype: float or complex dtype of the result.

    Returns:
      a symmetric (for complex numbers Hermitian) matrix, or a scalar for one variable.

    Raises:
      ValueError: for ranks above 2, and a `dtype` of integers.
      RuntimeError: for weights of another shape.
      TypeError: for `fweights` that are no integers.
    """
    kind = None if dtype is None else user_dtype(dtype, "cov")
    if kind is not None and not dtypes.issubdtype(kind, np.inexact):
        raise ValueError(f"cov: dtype must be a subclass of float or complex; got {dtype=}")
    if y is not None:
        m, y = promote_args_inexact("cov", m, y)
        y = asarray(y)
        if y.ndim > 2:
            raise ValueError("y has more than 2 dimensions")
    else:
        (m,) = promote_dtypes_inexact(*arrays("cov", m))
    m = asarray(m)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if kind is not None:
        m = convert(m, kind)
        y = None if y is None else convert(y, kind)
    x = atleast_2d(m)
    if not rowvar and m.ndim != 1:
        x = lax.transpose(x, (1, 0))
    if x.shape[0] == 0:
        return lax.full((0, 0), 0, x.dtype)
    if y is not None:
        other = atleast_2d(y)
        if not rowvar and other.shape[0] != 1:
            other = lax.transpose(other, (1, 0))
        x = concatenate([x, other], axis=0)
    if ddof is None:
        ddof = 1 if not bias else 0
    w: Any = None
    if fweights is not None:
        (fweights,) = arrays("cov", fweights)
        fweights = asarray(fweights)
        if fweights.ndim > 1:
            raise RuntimeError("cannot handle multidimensional fweights")
        if fweights.shape[0] != x.shape[1]:
            raise RuntimeError("incompatible numbers of samples and fweights")
        if not dtypes.issubdtype(fweights.dtype, np.integer):
            raise TypeError("fweights must be integer.")
        w = lax.abs(fweights)
    if aweights is not None:
        (aweights,) = arrays("cov", aweights)
        aweights = asarray(aweights)
        if aweights.ndim > 1:
            raise RuntimeError("cannot handle multidimensional aweights")
        if aweights.shape[0] != x.shape[1]:
            raise RuntimeError("incompatible numbers of samples and aweights")
        w = lax.abs(aweights) if w is None else multiply(w, lax.abs(aweights))
    mean_, total = average(x, axis=1, weights=w, returned=True)
    total = gather_elements(total, 0)
    if w is None:
        number: Any = convert(x.shape[1] - ddof, dtype_of(total))
    elif ddof == 0:
        number = total
    elif aweights is None:
        number = subtract(total, ddof)
    else:
        number = subtract(total, divide(multiply(ddof, sum_(multiply(w, aweights))), total))
    x = subtract(x, lax.expand_dims(mean_, (1,)))
    weighted = x if w is None else multiply(x, lax.expand_dims(w, (0,)))
    product = dot(x, conj(lax.transpose(weighted, (1, 0))))
    out = divide(product, number if x.shape[1] else np.nan)
    return lax.squeeze(out, tuple(i for i, d in enumerate(out.shape) if d == 1)) if 1 in out.shape else out


cov = jit(named(_cov, "cov"), static_argnames=("rowvar", "bias", "ddof", "dtype"))


def _corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """Pearson's correlation coefficients of variables: their covariances by the product of their deviations.

    Args:
      x, y, rowvar, dtype: as for `cov`, where `x` is `m`.

    Returns:
      a matrix with elements in [-1, 1] (for complex numbers both parts), 1 on its diagonal, or a scalar for one
      variable; NaN for variables that are constant.
    """
    check_arraylike("corrcoef", x)
    c = cov(x, y, rowvar, dtype=dtype)
    if len(c.shape) == 0:
        return divide(c, c)
    deviation = lax.sqrt(lax.real(diagonal(c)) if dtypes.issubdtype(c.dtype, np.complexfloating) else diagonal(c))
    c = divide(c, convert(lax.expand_dims(deviation, (1,)), c.dtype))
    c = divide(c, convert(lax.expand_dims(deviation, (0,)), c.dtype))
    if dtypes.issubdtype(c.dtype, np.complexfloating):
        return lax.complex(clip(lax.real(c), -1, 1), clip(lax.imag(c), -1, 1))
    return clip(c, -1, 1)


corrcoef = jit(named(_corrcoef, "corrcoef"), static_argnames=("rowvar", "dtype"))
