"""Loads and stores under masks, and updates that read and write at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.arrays.array import Array
from ...core.hooks import lax, numpy
from ...core.tracing.trace import get_aval
from ...core.types.typing import ArrayLike, Index
from ...transforms.ref_indexing import NDIndexer, Slice
from ...transforms.refs import Ref, TransformedRef, ref_addupdate, ref_get, ref_set
from .loop_nests import uninitialized

RefLike = Ref | TransformedRef


def load(ref: RefLike, *, mask: Array | None = None, other: ArrayLike | None = None) -> Array:
    """Reads a reference, or a view of one such as `x_ref.at[pl.ds(start, 8)]`.

    Args:
      mask: boolean array that can be broadcast to what is read. Where it is False, what lies there does not matter; it
        may be outside of the reference.
      other: what is given where the mask is False; without it, any value.

    Raises:
      ValueError: `other` without a mask, or a mask that does not fit.
    """
    if mask is None:
        if other is not None:
            raise ValueError("`other` requires a `mask`")
        return ref_get(ref, ...)
    found = _shifted(ref)
    out = ref_get(ref, ...) if found is None else found[0]
    if other is None:
        return out
    return lax.select(_spread(mask, out.shape), out, _spread(lax.convert_element_type(other, out.dtype), out.shape))


def store(ref: RefLike, val: ArrayLike, *, mask: Array | None = None) -> None:
    """Writes a reference, or a view of one, where a mask is True; nothing is written outside of it.

    Args:
      val: array that can be broadcast to the shape of what is written.
      mask: boolean array that can be broadcast to it; None for True.

    Raises:
      ValueError: shapes or dtypes do not fit.
    """
    shape = get_aval(ref).shape if not isinstance(ref, TransformedRef) else ref.shape
    val = _spread(val, shape)
    if mask is None:
        ref_set(ref, ..., val)
        return
    mask = _spread(mask, shape)
    by_number = _elsewhere(ref, mask)
    if by_number is not None:
        ref_set(by_number, ..., val)
        return
    found = _shifted(ref)
    if found is None:
        ref_set(ref, ..., lax.select(mask, val, ref_get(ref, ...)))
        return
    _, window, move = found
    ref_set(window, ..., lax.select(move(mask, False), move(val, np.zeros((), get_aval(val).dtype)),
                                    ref_get(window, ...)))


def _spread(x: ArrayLike, shape: tuple[int, ...]) -> Array:
    aval = get_aval(x)
    return x if aval.shape == shape and hasattr(x, "aval") else numpy.broadcast_to(x, shape)  # type: ignore[return-value]


def _last_indexer(view: TransformedRef) -> NDIndexer | None:
    """The last step of a view if that is an index."""
    last = view.transforms[-1] if view.transforms else None
    return last if isinstance(last, NDIndexer) else None


def _elsewhere(ref: RefLike, mask: Array) -> TransformedRef | None:
    """A view by arrays of integers with those out of bounds for which the mask is False: writes there are dropped."""
    if not isinstance(ref, TransformedRef) or (indexer := _last_indexer(ref)) is None:
        return None
    if not indexer.int_indexer_shape or any(isinstance(x, Slice) for x in indexer.indices):
        return None
    first, *rest = indexer.indices
    moved = lax.select(mask, _spread(first, mask.shape), lax.full(mask.shape, indexer.shape[0], get_aval(first).dtype))
    return TransformedRef(ref.ref, [*ref.transforms[:-1], NDIndexer([moved, *rest], indexer.shape, mask.shape)])


def _shifted(ref: RefLike) -> tuple[Array, TransformedRef, Callable[[Any, Any], Array]] | None:
    """For slices that may reach out of bounds: what they select, the window within bounds that they are read from, and
    a function that brings values to where that window begins. None where slices are within bounds for certain."""
    if not isinstance(ref, TransformedRef) or (indexer := _last_indexer(ref)) is None:
        return None
    if indexer.int_indexer_shape or all(
            not isinstance(x, Slice) or isinstance(x.start, int) and x.start + x.size <= n or x.stride != 1
            for x, n in zip(indexer.indices, indexer.shape, strict=True)):
        return None
    entries: list[Any] = []
    shifts: list[Any] = []
    for x, n in zip(indexer.indices, indexer.shape, strict=True):
        if isinstance(x, Slice) and x.stride == 1 and x.size <= n:
            start = lax.convert_element_type(x.start, np.int32)
            inside = lax.clamp(np.int32(0), start, np.int32(n - x.size))
            entries.append(Slice(inside, x.size))
            shifts.append(lax.sub(start, inside))
        else:
            entries.append(x)
            if isinstance(x, Slice):
                shifts.append(np.int32(0))
    window = TransformedRef(ref.ref, [*ref.transforms[:-1], NDIndexer(entries, indexer.shape, ())])
    sizes = window.shape

    def move(x: Any, fill: Any, sign: int = -1) -> Array:
        padded = lax.pad(x, lax.convert_element_type(fill, get_aval(x).dtype), [(n, n, 0) for n in sizes])
        return lax.dynamic_slice(padded, [n + sign * s for n, s in zip(sizes, shifts, strict=True)], sizes)

    return move(ref_get(window, ...), uninitialized((), ref.dtype), 1), window, move


# Updates


def _update(name: str, what: str, combine: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def update(x_ref_or_view: RefLike, idx: Index, val: ArrayLike, *, mask: Array | None = None) -> Array:
        view = x_ref_or_view.at[idx]
        old = ref_get(view, ...)
        val = _spread(lax.convert_element_type(val, old.dtype), old.shape)
        store(view, combine(old, val), mask=mask)
        return old

    update.__name__ = update.__qualname__ = name
    update.__doc__ = f"""Writes {what} of what is at an index and a value, and gives what was there.

    Args:
      idx: an index as in `x_ref[idx]`, of different elements.
      val: array that can be broadcast to what the index selects.
      mask: boolean array; where it is False, nothing is written.
    """
    return update


def atomic_add(x_ref_or_view: RefLike, idx: Index, val: ArrayLike, *, mask: Array | None = None) -> Array:
    """Adds to the elements at an index, also to one that stands in it several times, and gives what was there.

    Args:
      idx: an index as in `x_ref[idx]`.
      val: array that can be broadcast to what the index selects.
      mask: boolean array; where it is False, nothing is added.
    """
    view = x_ref_or_view.at[idx]
    old = ref_get(view, ...)
    val = _spread(lax.convert_element_type(val, old.dtype), old.shape)
    if mask is not None:
        val = lax.select(_spread(mask, old.shape), val, lax.full_like(val, 0))
    ref_addupdate(view, None, val)
    return old


atomic_and = _update("atomic_and", "the bits in both", lambda old, val: lax.bitwise_and(old, val))
atomic_or = _update("atomic_or", "the bits in either", lambda old, val: lax.bitwise_or(old, val))
atomic_xor = _update("atomic_xor", "the bits in one only", lambda old, val: lax.bitwise_xor(old, val))
atomic_max = _update("atomic_max", "the greater", lambda old, val: lax.max(old, val))
atomic_min = _update("atomic_min", "the smaller", lambda old, val: lax.min(old, val))
atomic_xchg = _update("atomic_xchg", "the latter", lambda old, val: val)


def atomic_cas(ref: RefLike, cmp: ArrayLike, val: ArrayLike) -> Array:
    """Writes `val` to a reference to one element if `cmp` is what it holds, and gives what it held."""
    old = ref_get(ref, ...)
    new = lax.convert_element_type(val, old.dtype)
    ref_set(ref, ..., lax.select(lax.eq(old, lax.convert_element_type(cmp, old.dtype)), new, old))
    return old


