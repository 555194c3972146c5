"""NumPy's indexing on slices, dynamic slices and gathers.

An index is parsed once into a list of entries, one per indexed axis, with new axes in between.
Reads take the simplest way that can serve them: static ints and slices are slices of the array,
scalars known at run time are dynamic slices, and everything else is one gather. Updates
(`styrax.numpy.updates`) always scatter, by the same plan as the gather.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.settings import config
from styrax.core.tracing import errors
from styrax.core.tracing.source import hide_frames
from styrax.core.tracing.trace import Tracer, current_trace
from styrax.core.types import avals, dtypes
from styrax.core.types.dims import Dim, is_symbolic, larger, smaller

from .broadcasting import spread_all
from .conversion import asarray
from .promotion import convert, dtype_of, is_array, shape_of

_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)

ISSUE = "See https://github.com/jax-ml/jax/issues/4564 for more information."


class Slice:
    """A slice of an axis: `length` elements from `start` in steps of `step`.

    Its extent is static. Where it starts is an array if that is known at run time only, or out of bounds (`jax.ds`).
    """

    __slots__ = ("start", "step", "length", "size")

    def __init__(self, start: Any, step: int, length: int, size: int):
        self.start, self.step, self.length, self.size = start, step, length, size

    @property
    def full(self) -> bool:
        return self.step == 1 and self.length == self.size and not self.dynamic

    @property
    def dynamic(self) -> bool:
        return hasattr(self.start, "dtype")


class Index:
    """A parsed index.

    `entries` holds, in the order of the index, None for a new axis, a `Slice`, an int (static, as
    the user gave it) or an array of integers; every axis of the indexed array has one that is not None.
    `inserted` are the axes of size 1 that boolean scalars add to the array before it is indexed, and
    `shape` is its shape with them.
    """

    __slots__ = ("entries", "shape", "inserted")

    def __init__(self, entries: list[Any], shape: tuple, inserted: tuple[int, ...]):
        self.entries, self.shape, self.inserted = entries, shape, inserted

    def axes(self) -> list[tuple[int, Any]]:
        """The entries other than new axes, with the axis each one indexes."""
        return list(enumerate(e for e in self.entries if e is not None))

    def new_axes(self, kept: Any) -> list[int]:
        """Where the new axes are in a result, if `kept(entry)` says which entries leave an axis there."""
        places, out = [], 0
        for entry in self.entries:
            if entry is None:
                places.append(out)
            elif not kept(entry):
                continue
            out += 1
        return places


def parse(shape: tuple, idx: Any) -> Index:
    """An index into an array of a shape.

    Raises IndexError for too many indices, for slices that are not static, and for booleans that do
    not match; TypeError for what is no index; NonConcreteBooleanIndexError for traced booleans.
    """
    if type(idx) is not tuple:
        if isinstance(idx, list) or (isinstance(idx, Sequence) and not isinstance(idx, (tuple, str, bytes))):
            is_tuple = any(i is None or i is Ellipsis or isinstance(i, (slice, Sequence)) or shape_of(i) for i in idx)
            raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; use "
                            f"`arr[{'tuple' if is_tuple else 'array'}(seq)]` instead of `arr[seq]`. {ISSUE}")
        idx = tuple(idx) if isinstance(idx, tuple) else (idx,)
    items: list[Any] = []
    for item in idx:
        if type(item) is int or item is None or item is Ellipsis or type(item) is slice:
            items.append(item)
        else:
            items.extend(_item(item, len(items)))
    return _place(shape, items)


class _Mask:
    """A concrete boolean index: the coordinates where it holds, for as many axes as it has."""

    __slots__ = ("coordinates", "shape")

    def __init__(self, mask: np.ndarray):
        self.shape = mask.shape
        self.coordinates = np.nonzero(mask) if mask.ndim else ()


def _item(item: Any, position: int) -> list[Any]:
    """An entry of an index tuple, normalised: a list, because a boolean scalar stands for two."""
    if isinstance(item, (str, bytes)):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}")
    if isinstance(item, (bool, np.bool_)):
        # A new axis indexed by [0] or by nothing.
        return [_New(np.zeros(int(bool(item)), np.int64))]
    if isinstance(item, np.integer):
        return [int(item)]
    if isinstance(item, (list, tuple)):
        item = asarray(item) if len(item) else np.zeros(0, np.int64)
    if hasattr(item, "__jax_array__") and not is_array(item):
        item = item.__jax_array__()
    if type(item) is Array or isinstance(item, (Tracer, np.ndarray)):
        dtype = item.dtype
        if dtype == np.bool_:
            return [_boolean(item)]
        if dtypes.issubdtype(dtype, np.integer):
            return [item]
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {dtype}")
    if isinstance(item, (float, complex, np.generic)):
        raise TypeError("Indexer must have integer or boolean type, got indexer with type "
                        f"{np.asarray(item).dtype}")
    if isinstance(item, slice) or item is Ellipsis:
        return [item]
    if hasattr(item, "__index__"):
        return [operator.index(item)]
    if hasattr(item, "__array__"):
        return _item(np.asarray(item), position)
    from styrax.transforms.ref_indexing import Slice as Window

    if isinstance(item, Window):
        return [item]
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays "
                     f"are valid indices. Got {item!r}")


class _New:
    """A new axis that an array then indexes."""

    __slots__ = ("coordinates",)

    def __init__(self, coordinates: np.ndarray):
        self.coordinates = coordinates


def _boolean(item: Any) -> Any:
    if isinstance(item, Tracer):
        value = item.to_concrete_value() if hasattr(item, "to_concrete_value") else None
        if value is None:
            raise errors.NonConcreteBooleanIndexError(item)
        item = value
    value = np.asarray(item)
    return _Mask(value) if value.ndim else _New(np.zeros(int(value), np.int64))


def _span(item: Any) -> int:
    """How many axes an entry takes up."""
    if item is None or isinstance(item, _New):
        return 0
    return len(item.shape) if isinstance(item, _Mask) else 1


def _place(shape: tuple, items: list[Any]) -> Index:
    used = sum(_span(i) for i in items if i is not Ellipsis)
    dots = [n for n, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed")
    rest = [slice(None)] * (len(shape) - used)
    at = dots[0] if dots else len(items)
    items = items[:at] + rest + items[at + 1:] if dots else items + rest
    entries: list[Any] = []
    axis = 0
    inserted: list[int] = []
    for n, item in enumerate(items):
        if item is None:
            entries.append(None)
        elif isinstance(item, slice):
            entries.append(_static_slice(item, shape[axis], n))
            axis += 1
        elif isinstance(item, _Mask):
            want = shape[axis:axis + len(item.shape)]
            if len(item.shape) != len(want) or any(got not in (0, size) for got, size in zip(item.shape, want)):
                raise IndexError(f"boolean index did not match shape of indexed array in index {n}: got {item.shape}, "
                                 f"expected {list(want)}")
            entries.extend(item.coordinates)
            axis += len(item.shape)
        elif isinstance(item, _New):
            entries.append(item.coordinates)
            inserted.append(axis + len(inserted))
        elif hasattr(item, "stride"):
            entries.append(_window(item, shape[axis], _index_dtype(shape)))
            axis += 1
        else:
            if type(shape[axis]) is int and shape[axis] == 0 and shape_of(item) == ():
                raise IndexError(f"index is out of bounds for axis {axis} with size 0")
            entries.append(item)
            axis += 1
    full_shape = list(shape)
    for i in inserted:
        full_shape.insert(i, 1)
    return Index(entries, tuple(full_shape), tuple(inserted))


_PLAIN = frozenset((int, type(None)))  # of bounds that need no questions


def _static_slice(item: slice, size: Any, position: int) -> Slice:
    if type(size) is int and _PLAIN.issuperset((type(item.start), type(item.stop), type(item.step))):
        start, stop, step = item.indices(size)
    else:
        bounds = (item.start, item.stop, item.step)
        if any(isinstance(b, Tracer) and (not hasattr(b, "to_concrete_value") or b.to_concrete_value() is None)
               for b in bounds):
            raise IndexError(f"Slice entries must be static integers. Got {item!r} at position {position}")
        if item == slice(None) and type(size) is not int:
            return Slice(0, 1, size, size)
        if type(size) is not int or any(is_symbolic(b) for b in bounds):
            return _generic_slice(item, size)
        start, stop, step = slice(*(b if b is None else operator.index(b) for b in bounds)).indices(size)
    length = len(range(start, stop, step))
    return Slice(start if length else 0, step if length else 1, length, size)


def _generic_slice(item: slice, size: Any) -> Slice:
    """`slice.indices`, which takes integers only."""
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def bound(b: Any, default: Any) -> Any:
        if b is None:
            return default
        if not is_symbolic(b):
            b = operator.index(b)
        return larger(low, smaller(high, b + size if b < 0 else b))

    start, stop = bound(item.start, low if step > 0 else high), bound(item.stop, high if step > 0 else low)
    span = stop - start if step > 0 else start - stop
    if type(size) is not Dim:  # nothing can be asked
        return Slice(start, step, larger(0, (span + abs(step) - 1) // abs(step)), size)
    if span <= 0:
        return Slice(0, 1, 0, size)  # type: ignore[arg-type]
    return Slice(start, step, (span - 1) // abs(step) + 1, size)  # type: ignore[arg-type]


def _window(item: Any, size: Any, kind: np.dtype) -> Slice:
    """`jax.ds(start, length, stride)` on an axis of a size."""
    start, length, stride = item.start, operator.index(item.size), item.stride
    if stride == 1 and length == size:
        return Slice(0, 1, length, size)  # wherever it starts: there is one place for it
    if type(start) is int:
        last = start + stride * (length - 1)
        inside = type(size) is int and 0 <= start and start + length <= size and last < size
        return Slice(start if inside else np.asarray(start, kind), stride, length, size)
    if shape_of(start) != ():
        raise TypeError(f"a dynamic slice starts at an integer scalar, got {start!r}")
    return Slice(convert(start, kind), stride, length, size)


# -- reads -----------------------------------------------------------------------------------------
def getitem(x: Any, idx: Any) -> Any:
    """`x[idx]`."""
    try:
        if type(idx) is int:
            shape = x.shape
            if (shape and type(shape[0]) is int and -shape[0] <= idx < shape[0]
                    and not (avals.explicit and is_cut_apart(x, idx))):
                return _static_read(x, [idx if idx >= 0 else idx + shape[0],
                                        *[Slice(0, 1, d, d) for d in shape[1:]]], [])
        return gather_elements(x, idx)
    except Exception as error:
        hide_frames(error)
        raise


_CLAMPED = (None, lax.GatherScatterMode.PROMISE_IN_BOUNDS, lax.GatherScatterMode.CLIP)


def gather_mode(mode: Any) -> Any:
    """A mode as given by the user, for gathers and scatters. Raises ValueError for one that is unknown."""
    return None if mode is None else lax.GatherScatterMode.from_any(mode)


def gather_elements(
    x: Any,
    idx: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    fill_value: Any = None,
    wrap_negative_indices: bool = True,
) -> Any:
    """`x.at[idx].get(...)`: the elements of `x` at an index.

    Args:
      mode: what an index out of bounds reads: the nearest element ("clip", and the default),
        `fill_value` ("fill" and "drop"), or anything ("promise_in_bounds").
      wrap_negative_indices: whether negative indices count from the end.
    """
    index = parse(x.shape, idx)
    asked, mode = mode is not None, gather_mode(mode)
    if config.check_static_indices.value and mode in (None, lax.GatherScatterMode.PROMISE_IN_BOUNDS):
        _check_static(index)
    if mode in _CLAMPED and not index.inserted:
        entries = [e for e in index.entries if e is not None]
        kind = _simplest(entries, x.shape, wrap_negative_indices)
        if kind and not (avals.explicit and is_cut_apart(x, idx)):
            new = index.new_axes(lambda e: isinstance(e, Slice))
            if kind == "static":
                entries = [e + n if type(e) is int and e < 0 else e for e, n in zip(entries, x.shape)]
                return _static_read(x, entries, new)
            if asked:
                entries = [_canonical(e, _index_dtype(x.shape)) for e in entries]
            return _dynamic_read(x, entries, new)
    plan = Plan(index, wrap_negative_indices)
    if index.inserted:
        x = lax.expand_dims(x, index.inserted)
    if any(type(d) is int and d == 0 for d in plan.result):
        out = lax.full_like(x, 0, shape=plan.result)
    else:
        out = lax.gather(x, plan.indices, lax.GatherDimensionNumbers(
            offset_dims=plan.offset_dims, collapsed_slice_dims=plan.collapsed, start_index_map=plan.index_axes),
            plan.slice_sizes, unique_indices=unique_indices or plan.scalars_only,
            indices_are_sorted=indices_are_sorted or plan.scalars_only,
            mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else mode, fill_value=fill_value)
    if plan.reversed:
        out = lax.rev(out, plan.reversed)
    return lax.expand_dims(out, plan.new_axes) if plan.new_axes else out


def is_cut_apart(x: Any, idx: Any) -> bool:
    """Whether numbers and slices take a part of an array, no tracer, whose type tells that it is spread: a gather."""
    told = None if isinstance(x, Tracer) else getattr(getattr(x, "aval", None), "given_sharding", None)
    if told is None or told.mesh.size == 1 or not any(told.spec.partitions):
        return False
    taken = [e for e in parse(x.shape, idx).entries if e is not None]
    numbers = all(type(e) is int or isinstance(e, Slice) and type(e.start) is int for e in taken)
    return numbers and any(type(e) is int or e.length != n for e, n in zip(taken, x.shape))


def _check_static(index: Index) -> None:
    """Raises IndexError for a plain integer that is out of bounds."""
    for axis, (e, n) in enumerate(zip((e for e in index.entries if e is not None), index.shape)):
        if type(e) is int and not -n <= e < n:
            raise IndexError(f"index {e} out of bounds for axis {axis} with size {n}")


def _simplest(entries: list[Any], shape: tuple, wrap: bool) -> str:
    """Whether entries are a "static" or a "dynamic" slice of an array, else ""."""
    dynamic = False
    for e, n in zip(entries, shape):
        if isinstance(e, Slice):
            dynamic = dynamic or (type(e.start) is not int and e.dynamic)
        elif type(e) is int:
            if type(n) is not int or not (-n if wrap else 0) <= e < n:
                dynamic = True
        elif shape_of(e) == ():
            dynamic = True
        else:
            return ""
    if not dynamic:
        return "static"
    if not wrap or any(isinstance(e, Slice) and abs(e.step) != 1 for e in entries):
        return ""
    return "dynamic" if all(type(n) is not int or n > 0 for n in shape) else ""


def _static_read(x: Any, entries: list[Any], new: list[int]) -> Any:
    starts, limits, strides, reverse, drop = [], [], [], [], []
    for axis, e in enumerate(entries):
        if type(e) is int:
            starts.append(e)
            limits.append(e + 1)
            strides.append(1)
            drop.append(axis)
        elif e.step > 0:
            starts.append(e.start)
            # As JAX prints it: the limit of a strided slice is that of the user's range.
            limits.append(smaller(e.start + e.step * e.length, e.size) if e.step > 1 else e.start + e.length)
            strides.append(e.step)
        else:
            last = e.start + e.step * (e.length - 1)
            starts.append(last)
            limits.append(e.start + 1)
            strides.append(-e.step)
            reverse.append(axis)
    if any(starts) or tuple(limits) != tuple(x.shape) or any(s != 1 for s in strides):
        x = lax.slice(x, starts, limits, None if all(s == 1 for s in strides) else strides)
    if reverse:
        x = lax.rev(x, reverse)
    if drop:
        x = lax.squeeze(x, drop)
    return lax.expand_dims(x, new) if new else x


def _dynamic_read(x: Any, entries: list[Any], new: list[int]) -> Any:
    starts, sizes, reverse, drop = [], [], [], []
    staged = not current_trace().is_eval
    for axis, e in enumerate(entries):
        if isinstance(e, Slice):
            start: Any = e.start if e.step > 0 else e.start - e.length + 1
            sizes.append(e.length)
            if e.step < 0:
                reverse.append(axis)
        else:
            start = e
            sizes.append(1)
            drop.append(axis)
        kind = _index_dtype(x.shape)
        if type(start) is int:
            start = np.asarray(start, kind)  # with an OverflowError where it does not fit
        else:
            known = not isinstance(start, Tracer) and not (staged and type(start) is Array)
            start = np.asarray(start).astype(kind) if known else convert(start, kind)
        # While something is traced the numbers become part of the program, too, as JAX prints it.
        starts.append(_wrapped(start, x.shape[axis]) if staged else start)
    out = lax.dynamic_slice(x, starts, sizes, allow_negative_indices=not staged)
    if reverse:
        out = lax.rev(out, reverse)
    if drop:
        out = lax.squeeze(out, drop)
    return lax.expand_dims(out, new) if new else out


def _wrapped(i: Any, size: Any) -> Any:
    return lax.select(lax.lt(i, np.zeros((), i.dtype)), lax.add(i, convert(size, i.dtype)), i)


def _index_dtype(shape: tuple) -> np.dtype:
    return _INT64 if any(type(d) is int and d >= 2**31 for d in shape) else _INT32


# -- gathers and scatters ----------------------------------------------------------------------------
def wrap_negative(i: Any, size: Any) -> Any:
    """Indices with negative ones counted from the end of an axis."""
    if dtypes.issubdtype(dtype_of(i), np.unsignedinteger):
        return i
    if isinstance(i, np.ndarray):
        i = i.astype(dtypes.canonicalize_dtype(i.dtype))
        negative: Any = i < 0
    else:
        negative = lax.lt(i, convert(0, dtype_of(i)))
    return lax.select(negative, lax.add(i, convert(size, dtype_of(i))), i)


class Plan:
    """An index as a gather or scatter.

    Attributes:
      indices: index vectors, as the last axis of an integer array.
      index_axes: the axis that each component of an index vector is for.
      slice_sizes: the extent of what one index vector selects.
      collapsed: axes of the array that are not in the result.
      offset_dims: axes of the result that run within what an index vector selects.
      result: the shape of the result, without its new axes.
      reversed: axes of the result that run backwards.
      new_axes: where the new axes are in the final result.
      scalars_only: whether there is no array of indices, so that no element is met twice.
    """

    __slots__ = ("indices", "index_axes", "slice_sizes", "collapsed", "offset_dims", "result", "reversed", "new_axes",
                 "scalars_only")

    def __init__(self, index: Index, wrap: bool = True):
        kind = _index_dtype(index.shape)
        axes = index.axes()
        arrays = [e for _, e in axes if not isinstance(e, (Slice, int)) and shape_of(e) != ()]
        picks, common = self._picks(index, arrays, wrap)
        self.scalars_only = not arrays
        front = self._front(index, bool(arrays))
        # The axes of the result, in order: those of the picked indices, and one for each slice.
        places: list[Any] = ["picks"] if arrays and front else []
        for position, entry in _positions(index):
            if entry is None:
                places.append(None)
            elif isinstance(entry, Slice):
                places.append((position, entry))
            elif arrays and not front and "picks" not in places:
                places.append("picks")
        offset: list[Any] = []
        result: list[Any] = []
        reverse: list[int] = []
        new: list[Any] = []
        batch: list[Any] = []
        picked_at = 0
        strided: dict[int, int] = {}
        final = 0
        for place in places:
            if place is None:
                new.append(final)
                final += 1
                continue
            if place == "picks":
                picked_at = len(batch)
                batch.extend(common)
                result.extend(common)
                final += len(common)
                continue
            axis, e = place
            if e.step == 1:
                offset.append(len(result))
            else:
                strided[axis] = len(batch)
                batch.append(e.length)
                if e.step < 0:
                    reverse.append(len(result))
            result.append(e.length)
            final += 1
        vectors: list[tuple[Any, int]] = []  # index components, and the batch axis they begin at
        index_axes, collapsed, sizes = [], [], []
        for axis, e in axes:
            if isinstance(e, Slice):
                if e.step == 1:
                    sizes.append(e.length)
                    if not e.full:
                        vectors.append((convert(e.start, kind), 0))
                        index_axes.append(axis)
                    continue
                steps = lax.add(convert(e.start, kind), lax.mul(convert(e.step, kind), lax.iota(kind, e.length)))
                vectors.append((lax.rev(steps, (0,)) if e.step < 0 else steps, strided[axis]))
            else:
                vectors.append((picks[axis], picked_at))
            index_axes.append(axis)
            collapsed.append(axis)
            sizes.append(1)
        shape_ = tuple(batch)
        parts = [lax.broadcast_in_dim(v, (*shape_, 1), tuple(range(at, at + len(shape_of(v))))) for v, at in vectors]
        if not parts:
            self.indices: Any = asarray(np.zeros((*shape_, 0), kind))
        else:
            self.indices = parts[0] if len(parts) == 1 else lax.concatenate(parts, len(shape_))
        self.index_axes, self.collapsed = tuple(index_axes), tuple(collapsed)
        self.slice_sizes, self.offset_dims = tuple(sizes), tuple(offset)
        self.result, self.reversed, self.new_axes = tuple(result), tuple(reverse), tuple(new)

    @staticmethod
    def _picks(index: Index, arrays: list[Any], wrap: bool) -> tuple[dict[int, Any], tuple]:
        """The indices that pick from each axis, broadcast together if there are arrays among them, and their shape."""
        shape = index.shape
        kind = _index_dtype(shape)
        picks: dict[int, Any] = {}
        for axis, e in index.axes():
            if type(e) is int:
                picks[axis] = e + shape[axis] if e < 0 and wrap else e
            elif not isinstance(e, Slice):
                picks[axis] = wrap_negative(e, shape[axis]) if wrap else e
        common: tuple = ()
        if arrays:
            spreaded = spread_all(list(picks.values())) if len(picks) > 1 else list(picks.values())
            picks = dict(zip(picks, spreaded))
            common = tuple(shape_of(arrays[0])) if len(picks) == 1 else tuple(shape_of(spreaded[0]))
        return {axis: convert(_canonical(i, kind), kind) for axis, i in picks.items()}, common

    @staticmethod
    def _front(index: Index, arrays: bool) -> bool:
        """Whether the axes of index arrays come first, because slices stand between the arrays."""
        if not arrays:
            return False
        at = [n for n, e in enumerate(index.entries) if e is not None and not isinstance(e, Slice)]
        return at != list(range(at[0], at[0] + len(at)))


def _positions(index: Index) -> list[tuple[int, Any]]:
    axis, out = 0, []
    for e in index.entries:
        out.append((axis, e))
        axis += e is not None
    return out


def _canonical(i: Any, kind: np.dtype) -> Any:
    """An index in a dtype that holds the positions; a number beyond it is outside on the same side."""
    if type(i) is int:
        limits = np.iinfo(kind)
        return min(max(i, int(limits.min)), int(limits.max))
    return i


