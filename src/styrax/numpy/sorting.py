"""Sorting, and searching in what is sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .binary import greater_equal, less
from .broadcasting import choose_elements, sharding_of
from .conversion import asarray
from .promotion import arrays, axis_index, check_arraylike, convert, default_int, is_array, promote_dtypes, shape_of
from .shaping import operand, ravel


def _ignored(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise TypeError(f"'kind' argument to {name} is not supported. Use stable=True or stable=False to specify sort "
                        "stability.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")


def _sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
          descending: bool = False) -> Array:
    """The elements in rising order along an axis. NaN comes last; complex numbers go by their real parts first.

    Args:
      a: an array.
      axis: the axis, or None for all elements as a vector.
      kind, order: not supported, None only.
      stable: whether equal elements stay in their order.
      descending: whether the order falls (NaN comes first then).

    Returns:
      an array of the shape and dtype of `a`, or a vector.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.sort(jnp.array([3, 1, 2]), descending=True)
      Array([3, 2, 1], dtype=int32)
    """
    a = operand("sort", a)
    _ignored("sort", kind, order)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_index(axis, a.ndim)
    out = lax.sort(a, dimension=axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


def _argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
             descending: bool = False, dtype: DTypeLike | None = None) -> Array:
    """The indices that sort an array along an axis.

    Args:
      a, axis, kind, order, stable, descending: as for `sort`. Equal elements stay in their order with
        `descending`, too.
      dtype: dtype of the indices; by default the default integer.

    Returns:
      integers of the shape of `a`, or a vector.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.argsort(jnp.array([3, 1, 2]))
      Array([1, 2, 0], dtype=int32)
    """
    a = operand("argsort", a)
    _ignored("argsort", kind, order)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_index(axis, a.ndim)
    index = default_int() if dtype is None else dtype
    size = a.shape[axis]
    if dtype is None and type(size) is int and size < 2**31:
        index = np.dtype(np.int32) if default_int().itemsize == 4 else default_int()
    iota = lax.broadcasted_iota(index, a.shape, axis, out_sharding=sharding_of(a))
    if not descending:
        return lax.sort((a, iota), dimension=axis, is_stable=stable, num_keys=1)[1]
    # Sorted from behind, so that equal elements come in their own order once it is reversed.
    _, found = lax.sort((lax.rev(a, (axis,)), lax.rev(iota, (axis,))), dimension=axis, is_stable=stable, num_keys=1)
    return lax.rev(found, (axis,))


sort = jit(
    named(_sort, "sort"), static_argnames=("axis", "kind", "order", "stable", "descending")
)
argsort = jit(named(_argsort, "argsort"),
              static_argnames=("axis", "kind", "order", "stable", "descending", "dtype"))


@jit
def sort_complex(a: ArrayLike) -> Array:
    """The elements along the last axis as complex numbers in rising order, by real parts, then imaginary ones.

    Args:
      a: an array of rank 1 at least.

    Returns:
      a complex array of the shape of `a`.
    """
    from .promotion import to_complex

    (a,) = arrays("sort_complex", a)
    a = asarray(a)
    return convert(lax.sort(a, dimension=axis_index(-1, a.ndim)), to_complex(a.dtype))


def top_k(x: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest") -> tuple[Array, Array]:
    """The `k` largest (or, with mode "smallest", smallest) elements along an axis, the extreme one first.

    Of equal elements the first comes first; NaN counts as greater than all numbers.

    Args:
      x: an array of a real dtype.

    Returns:
      the elements, and their int32 indices along the axis.

    Raises ValueError for another mode, an axis out of range and more elements than there are.
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"mode must be 'largest' or 'smallest', got {mode!r}")
    arr = operand("top_k", x)
    axis = axis_index(axis, arr.ndim)
    if mode == "largest":
        values, indices = lax.top_k(arr, k, axis=axis)
        return values, indices
    if not 0 <= k <= arr.shape[axis]:
        raise ValueError(f"k argument to top_k must lie between 0 and {arr.shape[axis]}, got {k}")
    iota = lax.broadcasted_iota(np.int32, arr.shape, axis, out_sharding=sharding_of(arr))
    values, indices = lax.sort((arr, iota), dimension=axis, num_keys=1)
    return lax.slice_in_dim(values, 0, k, axis=axis), lax.slice_in_dim(indices, 0, k, axis=axis)


def _partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements along an axis rearranged around one: it stands where sorting puts it, none before it is larger and
    none after it smaller.

    Args:
      a: an array of a real dtype.
      kth: the place of that element; negative ones count from the end.
      axis: the axis.

    Returns:
      an array of the shape and dtype of `a`.

    Raises:
      NotImplementedError: for complex numbers.
    """
    a = operand("partition", a)
    axis, kth = axis_index(axis, a.ndim), axis_index(kth, a.shape[axis_index(axis, a.ndim)])
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise NotImplementedError("jnp.partition for complex dtype is not implemented.")
    if dtypes.issubdtype(a.dtype, np.unsignedinteger):
        bottom, _ = lax.top_k(lax.bitwise_not(a), kth + 1, axis=axis)
        bottom = lax.bitwise_not(bottom)
    else:
        bottom, _ = lax.top_k(lax.neg(a), kth + 1, axis=axis)
        bottom = lax.neg(bottom)
    top, _ = lax.top_k(a, a.shape[axis] - kth - 1, axis=axis)
    return lax.concatenate([bottom, top], axis)


def _argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices of a partition of an array along an axis.

    Args:
      a, kth, axis: as for `partition`.

    Returns:
      int32 indices of the shape of `a`.

    Raises:
      NotImplementedError: for complex numbers.
    """
    a = operand("argpartition", a)
    axis, kth = axis_index(axis, a.ndim), axis_index(kth, a.shape[axis_index(axis, a.ndim)])
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise NotImplementedError("jnp.argpartition for complex dtype is not implemented.")
    unsigned = dtypes.issubdtype(a.dtype, np.unsignedinteger)
    _, bottom = lax.top_k(lax.bitwise_not(a) if unsigned else lax.neg(a), kth + 1, axis=axis)
    from .updates import scatter

    # Those taken are marked with 0; the top ones of the marks are the others, in order.
    marks = lax.full(a.shape, 1.0, np.dtype(np.float32))
    mesh = [bottom if i == axis else lax.broadcasted_iota(np.dtype(np.int32), bottom.shape, i) for i in range(a.ndim)]
    marks = scatter(marks, tuple(mesh), 0.0, "set")
    _, top = lax.top_k(marks, a.shape[axis] - kth - 1, axis=axis)
    return lax.concatenate([bottom, top], axis)


partition = jit(named(_partition, "partition"), static_argnames=("kth", "axis"))
argpartition = jit(named(_argpartition, "argpartition"), static_argnames=("kth", "axis"))


def _lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The indices that sort by several keys: by the last one, by the one before where that ties, and so on.

    Args:
      keys: arrays of one shape, in a sequence or along a first axis.
      axis: the axis of each key.

    Returns:
      integers of the shape of a key.

    Raises:
      TypeError: without keys.
      ValueError: for keys of different shapes.
    """
    whole = is_array(keys) or isinstance(keys, np.ndarray)
    members: list[Any] = list(lax.unstack(operand("lexsort", keys))) if whole else [operand("lexsort", k) for k in keys]
    if not members:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in members}) > 1:
        raise ValueError("all keys need to be the same shape")
    if members[0].ndim == 0:
        return lax.full((), 0, default_int())
    axis = axis_index(axis, members[0].ndim)
    iota = lax.broadcasted_iota(default_int(), members[0].shape, axis, out_sharding=sharding_of(members[0]))
    return lax.sort((*members[::-1], iota), dimension=axis, num_keys=len(members))[-1]


lexsort = jit(named(_lexsort, "lexsort"), static_argnames=("axis",))


# -- search --------------------------------------------------------------------------------------------
_PLACE = np.dtype(np.int32)  # of results, whatever the default integer is


def _before(dtype: Any, a: Any, b: Any) -> Any:
    """Whether a comes before b in the order of `sort`: NaN last, zeros equal."""
    if not dtypes.issubdtype(dtype, np.floating):
        return less(a, b)
    a_nan, b_nan = lax.ne(a, a), lax.ne(b, b)
    return lax.bitwise_or(lax.lt(a, b), lax.bitwise_and(lax.bitwise_not(a_nan), b_nan))


def _binary_search(sorted_arr: Any, query: Any, side: str) -> Any:
    from .selection import take

    size = sorted_arr.shape[0]
    kind = np.dtype(np.uint32)
    dtype = sorted_arr.dtype

    def step(state: tuple, _: Any) -> tuple:
        low, high = state
        middle = lax.add(low, lax.div(lax.sub(high, low), convert(2, kind)))
        value = take(sorted_arr, middle, mode="clip")
        right = _before(dtype, value, query) if side == "left" else lax.bitwise_not(_before(dtype, query, value))
        return (lax.select(right, middle, low), lax.select(right, high, middle)), ()

    start = (lax.full_like(query, 0, dtype=kind), lax.full_like(query, size, dtype=kind))
    levels = int(np.ceil(np.log2(int(size) + 1)))
    (_, found), _ = lax.scan(step, start, (), length=levels)
    return convert(found, _PLACE)


named(_binary_search, "_searchsorted_scan_impl")
_scan_inner = jit(_binary_search, static_argnames=("side",))


@partial(jit, static_argnames=("side",))
def _searchsorted_scan_impl(sorted_arr: Any, query: Any, side: str) -> Any:
    return _scan_inner(sorted_arr, query, side)


def _by_counting(sorted_arr: Any, query: Any, side: str) -> Any:
    a = lax.expand_dims(sorted_arr, tuple(range(1, query.ndim + 1)))
    b = lax.expand_dims(query, (0,))
    below = _before(sorted_arr.dtype, *_spread(a, b)) if side == "left" else lax.bitwise_not(
        _before(sorted_arr.dtype, *_spread(b, a)))
    return lax.reduce_sum(convert(below, _PLACE), (0,))


def _spread(a: Any, b: Any) -> list[Any]:
    from .broadcasting import spread_all

    return spread_all((a, b))


def _by_sorting(sorted_arr: Any, query: Any, side: str) -> Any:
    size = sorted_arr.shape[0]
    flat = ravel(query)
    both = lax.concatenate([flat, sorted_arr] if side == "left" else [sorted_arr, flat], 0)
    rank = argsort(argsort(both))
    kind = rank.dtype
    if side == "left":
        ranks = lax.slice_in_dim(rank, 0, flat.shape[0])
    else:
        ranks = lax.slice_in_dim(rank, size, size + flat.shape[0])
    # A query's rank among all counts the queries before it as well.
    among = argsort(argsort(flat))
    return lax.reshape(convert(lax.sub(ranks, convert(among, kind)), _PLACE), query.shape)


_METHODS: dict[str, Callable[..., Any]] = {
    "scan": _searchsorted_scan_impl, "scan_unrolled": _searchsorted_scan_impl, "default": _searchsorted_scan_impl,
    "compare_all": jit(named(_by_counting, "_searchsorted_compare_all_impl", ""), static_argnames=("side",)),
    "sort": jit(named(_by_sorting, "_searchsorted_sort_impl", ""), static_argnames=("side",)),
}


def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                 method: str = "scan") -> Array:
    """Where the elements of `v` go in a sorted vector `a` to keep it sorted. NaN goes last.

    Args:
      a: a vector in rising order.
      v: an array or number.
      side: "left" for the first such place, "right" for the last.
      sorter: indices that sort `a`, if it is not sorted.
      method: "scan" (binary search), "scan_unrolled", "sort" (for many queries) or "compare_all" (for
        short vectors).

    Returns:
      int32 indices between 0 and `a.size`, of the shape of `v`.

    Raises:
      ValueError: for an `a` that is no vector, and for unknown sides and methods.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 6]))
      Array([0, 1, 3], dtype=int32)
    """
    if sorter is None:
        check_arraylike("searchsorted", a, v)
    else:
        check_arraylike("searchsorted", a, v, sorter)
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument {side=}, expected 'left' or 'right'")
    if method not in _METHODS or method == "default":
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'. Expected one of "
                         "['compare_all', 'scan', 'scan_unrolled', 'sort'].")
    if len(shape_of(a)) != 1:
        raise ValueError("a should be 1-dimensional")
    return _searchsorted(a, v, sorter, side=side, method=method)


def _searchsorted_entry(a: Any, v: Any, sorter: Any = None, *, side: str, method: str) -> Any:
    from .selection import take

    a, v = (asarray(x) for x in promote_dtypes(*arrays("searchsorted", a, v)))
    if sorter is not None:
        a = take(a, sorter)
    if a.shape[0] == 0:
        return lax.full_like(v, 0, dtype=_PLACE)
    return _METHODS[method](a, v, side)


_searchsorted = jit(named(_searchsorted_entry, "searchsorted", ""), static_argnames=("side", "method"))


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin that each element of `x` lies in: bin i reaches from edge i - 1 to edge i.

    Args:
      x: an array or number.
      bins: a vector of edges that rise or fall.
      right: whether the greater of its edges belongs to a bin instead of the smaller one.
      method: as for `searchsorted`.

    Returns:
      int32 numbers between 0 and `bins.size`, of the shape of `x`.

    Raises:
      ValueError: for bins that are no vector.
    """
    x, bins = (asarray(v) for v in arrays("digitize", x, bins))
    if bins.ndim != 1:
        raise ValueError("digitize: bins must be a 1-dimensional array; got bins=" + str(bins))
    return _digitize(x, bins, right=right, method=method)


def _digitize_entry(x: Any, bins: Any, *, right: bool, method: str | None) -> Any:
    size = bins.shape[0]
    side = "left" if right else "right"
    options: dict[str, Any] = {} if method is None else {"method": method}
    if size == 0:
        return lax.full_like(x, 0, dtype=_PLACE)
    from .indexing import gather_elements

    rising = greater_equal(gather_elements(bins, -1), gather_elements(bins, 0))
    up = searchsorted(bins, x, side=side, **options)
    down = searchsorted(lax.rev(bins, (0,)), x, side=side, **options)
    return choose_elements(rising, up, lax.sub(convert(size, down.dtype), down))


_digitize = jit(named(_digitize_entry, "digitize", ""), static_argnames=("right", "method"))
