"""Sets: unique elements, membership, unions and differences."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .accumulations import cumsum
from .broadcasting import choose_elements
from .concatenation import append, concatenate
from .conversion import asarray
from .indexing import gather_elements
from .positions import nonzero
from .promotion import (
    arrays,
    axis_index,
    check_arraylike,
    convert,
    default_int,
    promote_dtypes,
    shape_of,
    typed,
    unwrap,
)
from .shaping import moveaxis, ravel
from .sorting import argsort, lexsort, searchsorted
from .updates import scatter


class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False, *,
         method: str = "auto") -> Array:
    """Whether each element of an array occurs in another. NaN does not.

    Args:
      element: an array or number.
      test_elements: an array, of any shape.
      assume_unique: without effect.
      invert: whether to tell instead that it does not occur.
      method: "compare_all" (with every element), "binary_search", "sort", or "auto".

    Returns:
      booleans of the shape of `element`.

    Raises:
      ValueError: for another method.
    """
    check_arraylike("isin", element, test_elements)
    element, test_elements = unwrap(element), unwrap(test_elements)
    out = _in1d(element, test_elements, invert, method, assume_unique)
    shape = shape_of(element)
    return lax.reshape(out, shape) if out.shape != shape else out


@partial(jit, static_argnames=("invert", "method", "assume_unique"))
def _in1d(ar1: Any, ar2: Any, invert: bool, method: str, assume_unique: bool) -> Any:
    a, b = (ravel(asarray(v)) for v in promote_dtypes(ar1, ar2))
    if not a.size or not b.size:
        return lax.full(a.shape, invert, np.dtype(np.bool_))
    if method not in ("compare_all", "binary_search", "sort", "auto"):
        raise ValueError(f"{method=} is not implemented; options are 'compare_all', 'binary_search', 'sort', and "
                         "'auto'")
    if method in ("compare_all", "auto"):
        from .binary import equal, not_equal

        table = (not_equal if invert else equal)(lax.expand_dims(a, (1,)), lax.expand_dims(b, (0,)))
        return convert((lax.reduce_and if invert else lax.reduce_or)(table, (1,)), table.dtype)
    b = lax.sort(b)
    at = searchsorted(b, a, method="scan" if method == "binary_search" else "sort")
    found = convert(lax.eq(gather_elements(b, lax.min(at, convert(b.shape[0] - 1, at.dtype))), a), np.dtype(np.bool_))
    return lax.bitwise_not(found) if invert else found


# -- unique ------------------------------------------------------------------------------------------------
def _rows_of(ar: Any, axis: int) -> Any:
    """The slices of an array along an axis as the rows of a matrix."""
    ar = moveaxis(ar, axis, 0)
    return lax.reshape(ar, (ar.shape[0], math.prod(ar.shape[1:])))


@partial(jit, static_argnames=("axis", "equal_nan"))
def _unique_sorted_mask(ar: Any, axis: int, equal_nan: bool) -> tuple[Any, Any, Any]:
    """The slices in order, where each differs from the one before, and the permutation."""
    if dtypes.issubdtype(ar.dtype, np.complexfloating):
        # A complex number with a NaN anywhere is NaN, so that all of them are sorted to the end.
        ar = convert(choose_elements(lax.ne(ar, ar), np.nan, ar), ar.dtype)
    rows = _rows_of(ar, axis)
    count, width = rows.shape
    perm = lexsort(lax.rev(lax.transpose(rows, (1, 0)), (0,))) if width else lax.iota(default_int(), count)
    out = gather_elements(ar, (*[slice(None)] * axis, perm))
    mask = lax.full((count,), True, np.dtype(np.bool_))
    if type(count) is not int or count > 1:
        kept = moveaxis(out, axis, 0)
        after, before = lax.slice_in_dim(kept, 1, count), lax.slice_in_dim(kept, 0, count - 1)
        differ = lax.ne(after, before)
        if equal_nan and dtypes.issubdtype(ar.dtype, np.inexact):
            differ = lax.bitwise_and(differ, lax.bitwise_or(lax.eq(after, after), lax.eq(before, before)))
        differ = lax.reduce_or(differ, tuple(range(1, differ.ndim))) if differ.ndim > 1 else differ
        mask = scatter(mask, slice(1, None), differ, "set")
    return out, mask, perm


def _filled_up(slices: Any, axis: int, valid: Any, fill_value: Any) -> Any:
    """The slices along `axis`, with the first or what `fill_value` broadcasts to in place of those that are not."""
    first = moveaxis(slices, axis, 0)
    if fill_value is None:
        filler = lax.slice_in_dim(first, 0, 1)
    else:
        filler = convert(arrays("unique", fill_value)[0], first.dtype)
    chosen = choose_elements(lax.expand_dims(valid, range(1, first.ndim)), first, filler)
    return moveaxis(chosen, 0, axis)


def _unique(ar: Any, axis: int, return_index: bool, return_inverse: bool, return_counts: bool, equal_nan: bool,
            size: int | None, fill_value: Any) -> Any:
    if ar.shape[axis] == 0 and size:
        # Nothing to choose from: everything is filled up.
        if fill_value is None:
            raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value must be "
                             "specified")
    if size is None:
        concrete_or_error(None, ar, "The error arose for the first argument of jnp.unique(). To make jnp.unique() "
                          "compatible with JIT and other transforms, you can specify a concrete value for the size "
                          "argument, which will determine the output size.")
    out, mask, perm = _unique_sorted_mask(ar, axis, equal_nan)
    count = ar.shape[axis]
    ind: Any = nonzero(mask, size=size)[0]
    if count or not size:
        result = gather_elements(out, (*[slice(None)] * axis, ind))
    else:
        result = lax.full_like(ar, fill_value, shape=tuple(size if i == axis else d for i, d in enumerate(ar.shape)))
    valid = None
    if size is not None and count and size:
        number = lax.reduce_sum(convert(mask, default_int()), (0,))
        valid = lax.lt(lax.iota(default_int(), size), number)
        result = _filled_up(result, axis, valid, fill_value)
    found: tuple = (result,)
    if return_index:
        # The sort is stable: the first of equal slices comes first.
        first = gather_elements(perm, ind) if count else ind
        if valid is not None:
            first = choose_elements(valid, first, gather_elements(first, slice(0, 1))) if fill_value is None else first
        found += (first,)
    if return_inverse:
        if count:
            rank = lax.sub(cumsum(mask), convert(1, default_int()))
            inverse = scatter(lax.full((count,), 0, default_int()), perm, rank, "set")
        else:
            inverse = lax.full((0,), 0, default_int())
        found += (inverse,)
    if return_counts:
        if count:
            if size is None:
                bounds = concatenate([ind, lax.full((1,), count, ind.dtype)])
                counts = lax.sub(lax.slice_in_dim(bounds, 1, bounds.shape[0]),
                                 lax.slice_in_dim(bounds, 0, bounds.shape[0] - 1))
            else:
                ends = nonzero(mask, size=size + 1, fill_value=count)[0]
                counts = lax.sub(lax.slice_in_dim(ends, 1, size + 1), lax.slice_in_dim(ends, 0, size))
        else:
            counts = lax.full((size or 0,), 0, default_int())
        found += (counts,)
    return found[0] if len(found) == 1 else found


@overload
def unique(ar: ArrayLike, return_index: Literal[False] = False, return_inverse: Literal[False] = False,
           return_counts: Literal[False] = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True) -> Array: ...
@overload
def unique(ar: ArrayLike, return_index: Literal[True], return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> tuple[Array, ...]: ...
@overload
def unique(ar: ArrayLike, return_index: bool = False, *, return_inverse: Literal[True], return_counts: bool = False,
           axis: int | None = None, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> tuple[Array, ...]: ...
@overload
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, *, return_counts: Literal[True],
           axis: int | None = None, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> tuple[Array, ...]: ...
@overload
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> Array | tuple[Array, ...]: ...
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> Array | tuple[Array, ...]:
    """The different elements of `ar` (or slices along `axis`), in rising order, NaN last.

    Args:
      ar: an array or number.
      return_index: whether the indices of their first occurrences are given, too.
      return_inverse: whether the indices that make `ar` of them are given, too.
      return_counts: whether the numbers of their occurrences are given, too.
      axis: the axis, or None for all elements in row order.
      equal_nan: whether NaN equals NaN.
      size: the number of elements in the result; needed under `jit`. Superfluous ones are cut off.
      fill_value: what missing ones are filled up with; by default the smallest.
      sorted: without effect: the elements are in order always.

    Returns:
      an array of the dtype of `ar`, or a tuple of it and integers as asked for. Filled up indices are those of the
      first element, counts 0.

    Raises:
      ConcretizationTypeError: for traced arguments without `size`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
      (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
      >>> jnp.unique(jnp.array([3, 1, 3]), size=3, fill_value=0)
      Array([1, 3, 0], dtype=int32)
    """
    check_arraylike("unique", ar)
    ar = asarray(unwrap(ar))
    if size is not None:
        size = concrete_or_error(operator.index, size, "The error arose in jnp.unique() argument `size`.")
    shape = ar.shape
    flat = axis is None
    if flat:
        ar, axis_ = ravel(ar), 0
    else:
        axis_ = axis_index(concrete_or_error(operator.index, axis, "axis argument of jnp.unique()"), ar.ndim)
    out = _unique(ar, axis_, return_index, return_inverse, return_counts, equal_nan, size, fill_value)
    if return_inverse and flat:
        found = list(out)
        at = 1 + return_index
        found[at] = lax.reshape(found[at], shape) if found[at].shape != shape else found[at]
        return tuple(found)
    return out


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueAllResult:
    """The different elements, in rising order, where they stand and how often. Every NaN is one of its own.

    Args:
      x: an array or number.
      size, fill_value: as for `unique`.

    Returns:
      a named tuple of `values`, the `indices` of their first occurrences, `inverse_indices` of the shape of `x`, and
      `counts`.
    """
    return _UniqueAllResult(*unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False,
                                    size=size, fill_value=fill_value))


def unique_counts(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> _UniqueCountsResult:
    """The different elements, in rising order, and how often they occur. Every NaN is one of its own.

    Args:
      x: an array or number.
      size, fill_value: as for `unique`.

    Returns:
      a named tuple of `values` and `counts`.
    """
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None,
                   fill_value: ArrayLike | None = None) -> _UniqueInverseResult:
    """The different elements, in rising order, and the indices that make `x` of them. Every NaN is one of its own.

    Args:
      x: an array or number.
      size, fill_value: as for `unique`.

    Returns:
      a named tuple of `values` and `inverse_indices` of the shape of `x`.
    """
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The different elements, in rising order. Every NaN is one of its own.

    Args:
      x: an array or number.
      size, fill_value: as for `unique`.

    Returns:
      a vector of the dtype of `x`.
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# -- operations on sets ----------------------------------------------------------------------------------------
def _static_size(size: Any, name: str) -> int | None:
    return None if size is None else concrete_or_error(operator.index, size, f"The error arose in jnp.{name}()")


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The elements that occur in one of two arrays.

    Args:
      ar1, ar2: arrays, taken as vectors.
      size, fill_value: as for `unique`.

    Returns:
      a vector of the common dtype, in rising order.
    """
    a, b = (asarray(v) for v in arrays("union1d", ar1, ar2))
    size = _static_size(size, "union1d")
    return unique(concatenate([ravel(a), ravel(b)]), size=size, fill_value=fill_value)


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
              fill_value: ArrayLike | None = None) -> Array:
    """The elements of the first array that do not occur in the second.

    Args:
      ar1, ar2: arrays, taken as vectors.
      assume_unique: whether the elements of `ar1` differ: it is not sorted then.
      size: as for `unique`.
      fill_value: what missing ones are filled up with; 0 by default.

    Returns:
      a vector of the dtype of `ar1`, in rising order, or in its own with `assume_unique`.
    """
    a, b = (asarray(v) for v in arrays("setdiff1d", ar1, ar2))
    size = _static_size(size, "setdiff1d")
    filler = 0 if fill_value is None else fill_value
    if size is None:
        values = a if assume_unique else unique(a)
        keep = isin(values, b, invert=True)
        return gather_elements(ravel(values), ravel(keep))
    flat = ravel(a)
    if flat.size == 0:
        return lax.full_like(flat, filler, shape=(size,))
    if assume_unique:
        keep, values = isin(flat, b, invert=True), flat
    else:
        values = unique(flat, size=flat.size)  # (filled up with the first)
        first = lax.eq(lax.iota(default_int(), flat.size), convert(0, default_int()))
        keep = lax.bitwise_and(isin(values, b, invert=True),
                               lax.bitwise_or(first, lax.ne(values, lax.broadcast(values[0], values.shape))))
    at = nonzero(keep, size=size)[0]
    number = lax.reduce_sum(convert(keep, default_int()), (0,))
    valid = lax.lt(lax.iota(default_int(), size), number)
    return choose_elements(valid, gather_elements(values, at), convert(unwrap(filler), *typed(values)))


def _new_in_sorted(a: Any, equal_nan: bool = True) -> Any:
    """Where each element of a sorted vector differs from the one before; NaN equals NaN or does not."""
    first = lax.full((min(a.shape[0], 1),), True, np.dtype(np.bool_))
    if a.shape[0] < 2:
        return first
    after, before = lax.slice_in_dim(a, 1, a.shape[0]), lax.slice_in_dim(a, 0, a.shape[0] - 1)
    differ = lax.ne(after, before)
    if equal_nan:
        differ = lax.bitwise_and(differ, lax.bitwise_or(lax.eq(after, after), lax.eq(before, before)))
    return concatenate([first, differ])


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
             fill_value: ArrayLike | None = None) -> Array:
    """The elements that occur in exactly one of two arrays.

    Args:
      ar1, ar2: arrays, taken as vectors.
      assume_unique: whether the elements of each differ.
      size, fill_value: as for `unique`.

    Returns:
      a vector of the common dtype, in rising order.
    """
    a, b = (ravel(asarray(v)) for v in arrays("setxor1d", ar1, ar2))
    size = _static_size(size, "setxor1d")
    a, b = promote_dtypes(a, b)
    if size is None and not assume_unique:
        a, b = unique(a), unique(b)
    if size is not None and not assume_unique:
        # NaN equals no other array's: each has one to give.
        a, b = lax.sort(a), lax.sort(b)
        keep = concatenate([lax.bitwise_and(_new_in_sorted(x), isin(x, other, invert=True))
                            for x, other in ((a, b), (b, a))])
        both = concatenate([a, b])
        order = argsort(both)
        return _sized_choice(gather_elements(both, order), gather_elements(keep, order), size, fill_value)
    both = lax.sort(concatenate([a, b]))
    new = _new_in_sorted(both, equal_nan=False)
    keep = lax.bitwise_and(new, append(gather_elements(new, slice(1, None)), asarray([True]))) if both.size else new
    return gather_elements(both, keep) if size is None else _sized_choice(both, keep, size, fill_value)


def _sized_choice(ordered: Any, keep: Any, size: int, fill_value: Any) -> Any:
    """The chosen elements of a sorted vector as a vector of a given size, filled up with the least of them, which is
    NaN if one is, or 0."""
    if ordered.size == 0:
        return lax.full_like(ordered, 0 if fill_value is None else unwrap(fill_value), shape=(size,))
    number = lax.reduce_sum(convert(keep, default_int()), (0,))
    valid = lax.lt(lax.iota(default_int(), size), number)
    values = gather_elements(ordered, nonzero(keep, size=size)[0])
    if fill_value is not None:
        filler = convert(unwrap(fill_value), values.dtype)
    elif size == 0:
        return values
    else:
        least = lax.reduce_min(choose_elements(valid, values, gather_elements(values, slice(0, 1))), (0,))
        filler = choose_elements(lax.eq(number, convert(0, number.dtype)), convert(0, values.dtype), least)
    return choose_elements(valid, values, filler)


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
                size: int | None = None, fill_value: ArrayLike | None = None) -> Array | tuple[Array, Array, Array]:
    """The elements that occur in both of two arrays.

    Args:
      ar1, ar2: arrays, taken as vectors.
      assume_unique: whether the elements of each differ.
      return_indices: whether the indices of their first occurrences in each are given, too.
      size, fill_value: as for `unique`.

    Returns:
      a vector of the common dtype, in rising order, or a tuple of it and two vectors of integers.
    """
    a, b = (ravel(asarray(v)) for v in arrays("intersect1d", ar1, ar2))
    a, b = promote_dtypes(a, b)
    size = _static_size(size, "intersect1d")
    if size is not None:
        both = lax.sort(concatenate([a, b]))
        common = _common(both, a, b)
        out = _sized_choice(both, common, size, fill_value)
        if not return_indices:
            return out
        in_both = lax.lt(lax.iota(default_int(), size), lax.reduce_sum(convert(common, default_int()), (0,)))
        found = []
        for x in (a, b):
            if x.size == 0:
                found.append(lax.full((size,), 0, default_int()))
                continue
            order = argsort(x)
            at = gather_elements(order, lax.min(searchsorted(gather_elements(x, order), out),
                                                convert(x.shape[0] - 1, default_int())))
            found.append(choose_elements(in_both, at, x.shape[0]))
        return out, found[0], found[1]
    ind1 = ind2 = None
    if not assume_unique:
        if return_indices:
            a, ind1 = unique(a, return_index=True)
            b, ind2 = unique(b, return_index=True)
        else:
            a, b = unique(a), unique(b)
    both = concatenate([a, b])
    order = argsort(both)
    both = gather_elements(both, order)
    if both.size == 0:
        return (both, order, order) if return_indices else both
    mask = lax.eq(lax.slice_in_dim(both, 1, both.shape[0]), lax.slice_in_dim(both, 0, both.shape[0] - 1))
    out = gather_elements(both, slice(0, -1))
    out = gather_elements(out, mask)
    if not return_indices:
        return out
    at1 = gather_elements(gather_elements(order, slice(0, -1)), mask)
    at2 = lax.sub(gather_elements(gather_elements(order, slice(1, None)), mask), convert(a.shape[0], order.dtype))
    if not assume_unique:
        at1, at2 = gather_elements(ind1, at1), gather_elements(ind2, at2)
    return out, at1, at2


def _common(ordered: Any, a: Any, b: Any) -> Any:
    """Which elements of a sorted vector are the first of their kind and occur in both others."""
    return lax.bitwise_and(_new_in_sorted(ordered), lax.bitwise_and(isin(ordered, a), isin(ordered, b)))
