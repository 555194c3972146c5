"""Indices into references: what `ref[...]` becomes, and how it reads and writes an array.

An `NDIndexer` has one entry per dimension: a `Slice` of static size, or an integer or array of
integers, where arrays have one common shape. Views of views are sequences of indexers and of the
rearrangements of `ref_views`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays.array import Array
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree
from ..core.types import dtypes
from .ref_views import Rearrangement, TransposeTransform, Type


class Slice:
    """`size` positions from `start` on, `stride` apart. `start` may be a traced integer."""

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: Any, stride: Any = 1):
        self.start = start
        self.size = size
        self.stride = stride

    @classmethod
    def from_slice(cls, s: slice, size: int) -> Slice:
        start, stop, step = s.indices(size)
        if step < 1:
            raise ValueError(f"slice must have a step >= 1 (found: {step})")
        return cls(start, max((stop - start + step - 1) // step, 0), step)

    @property
    def is_static(self) -> bool:
        return isinstance(self.start, int) and isinstance(self.size, int) and isinstance(self.stride, int)

    def is_full(self, size: int) -> bool:
        return self.is_static and self.start == 0 and self.size == size and self.stride == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and (self.start, self.size, self.stride) == (
            other.start, other.size, other.stride)

    def __hash__(self) -> int:
        return hash((self.start, self.size, self.stride))

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride!r})"

    def __str__(self) -> str:
        """As jaxprs print it."""
        start = "" if isinstance(self.start, int) and self.start == 0 else str(self.start)
        if not self.is_static:
            return f"{start}:{start}+{self.size}"
        return f"{start}:{self.start + self.size}"


def ds(start: int | Array | None, size: int | None = None, stride: int | None = None) -> Slice | slice:
    """A slice of static size from a start that may be traced; `ds(n)` is the first `n`, `ds(None)` everything.

    Raises ValueError for a stride that is no static integer, or negative.
    """
    if start is None:
        return slice(None)
    if not isinstance(stride, (int, np.integer, type(None))):
        raise ValueError("Non-static stride in `dslice`")
    if stride is not None and stride < 0:
        raise ValueError("`stride` must be >= 0.")
    step = 1 if stride is None else stride
    return Slice(0, start, step) if size is None else Slice(start, size, step)


def _flatten_slice(x: Slice) -> tuple[list[Any], tuple]:
    static_start = isinstance(x.start, int)
    return [None if static_start else x.start, None], (x.start if static_start else None, x.size, x.stride)


def _unflatten_slice(data: tuple, children: Sequence[Any]) -> Slice:
    start, size, stride = data
    return Slice(children[0] if start is None else start, size, stride)


tree.register_pytree_node(Slice, _flatten_slice, _unflatten_slice)


class NDIndexer:
    """An index with one entry per dimension of `shape`."""

    __slots__ = ("indices", "int_indexer_shape", "shape")

    def __init__(self, indices: Sequence[Any], shape: Sequence[int], int_indexer_shape: Sequence[int]):
        self.indices = tuple(indices)
        self.shape = tuple(shape)
        self.int_indexer_shape = tuple(int_indexer_shape)

    @classmethod
    def make(cls, index: Any, shape: Sequence[int]) -> NDIndexer:
        """The indexer of what stands between the brackets of `ref[...]`.

        Raises ValueError for too many indices or concrete ones that are out of bounds.
        """
        indices = index if isinstance(index, tuple) else (index,)
        indices = tuple(x for x in indices)
        if any(x is Ellipsis for x in indices):
            at = next(i for i, x in enumerate(indices) if x is Ellipsis)
            if any(x is Ellipsis for x in indices[at + 1:]):
                raise ValueError("an index can only have a single ellipsis ('...')")
            missing = len(shape) - len(indices) + 1
            indices = (*indices[:at], *(slice(None),) * missing, *indices[at + 1:])
        if any(x is None for x in indices):
            raise ValueError("a reference cannot be indexed with None: reshape what was read instead")
        if len(indices) > len(shape):
            raise ValueError(f"`indices` must not be longer than `shape`: indices={indices}, shape={tuple(shape)}")
        indices = indices + (slice(None),) * (len(shape) - len(indices))
        entries: list[Any] = []
        arrays: list[tuple[int, ...]] = []
        for x, size in zip(indices, shape, strict=True):
            if isinstance(x, slice):
                entries.append(Slice.from_slice(x, size))
            elif isinstance(x, Slice):
                entries.append(x)
            else:
                entries.append(_integer_index(x, size))
                arrays.append(get_aval(entries[-1]).shape)
        common = np.broadcast_shapes(*arrays) if arrays else ()
        if common:
            entries = [x if isinstance(x, Slice) else _spread(x, common) for x in entries]
        return cls(entries, shape, common)

    def of(self, shape: tuple[int, ...], dtype: Any) -> Type:
        """The shape and dtype of what is selected from an array."""
        return _result(self)[0], dtype

    def read(self, x: Any) -> Any:
        """What is selected from an array. Positions out of bounds are clipped."""
        return _read_integers(_read_slices(x, self), self)

    def __repr__(self) -> str:
        return f"NDIndexer(indices={self.indices}, shape={self.shape}, int_indexer_shape={self.int_indexer_shape})"

    def __str__(self) -> str:
        entries = ",".join(
            (":" if x.is_full(d) else _slice_text(x, d)) if isinstance(x, Slice) else str(x)
            for x, d in zip(self.indices, self.shape, strict=True))
        return f"[{entries}]"


def _slice_text(x: Slice, size: int) -> str:
    if not x.is_static:
        return f"{x.start}:{x.start}+{x.size}"
    end = x.start + x.size
    return f"{x.start or ''}:{'' if end == size else end}"


def _integer_index(x: Any, size: int) -> Any:
    if isinstance(x, (list, bool)) or getattr(x, "dtype", None) == np.bool_:
        x = np.asarray(x) if not isinstance(x, Tracer) else x
        if get_aval(x).dtype == np.bool_:
            raise ValueError("a reference cannot be indexed with booleans: use jnp.where on what was read")
    aval = get_aval(x)
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"a reference is indexed with integers and slices, but got an index of dtype {aval.dtype}")
    if not isinstance(x, Tracer) and aval.shape == ():
        value = int(x)
        if not -size <= value < size:
            raise ValueError(f"Out of bound indexer: idx={value}, dim={size}.")
        return value
    return x


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    aval = get_aval(x)
    if aval.shape == shape:
        return x
    if isinstance(x, Tracer):
        return hooks.lax.broadcast_in_dim(
            x, shape, tuple(range(len(shape) - len(aval.shape), len(shape))))  # type: ignore[arg-type]
    return np.broadcast_to(np.asarray(x, aval.dtype), shape)


def _flatten_indexer(x: NDIndexer) -> tuple[tuple, tuple]:
    return (x.indices,), (x.shape, x.int_indexer_shape)


def _unflatten_indexer(data: tuple, children: Sequence[Any]) -> NDIndexer:
    return NDIndexer(children[0], *data)


tree.register_pytree_node(NDIndexer, _flatten_indexer, _unflatten_indexer)


def _result(indexer: NDIndexer) -> tuple[tuple[int, ...], int]:
    """The shape of what an indexer selects, and where the dimensions of its integer arrays go in it.

    As in NumPy: in place where the integers stand side by side, in front otherwise.
    """
    integers = [i for i, x in enumerate(indexer.indices) if not isinstance(x, Slice)]
    common = indexer.int_indexer_shape
    sizes = [x.size for x in indexer.indices if isinstance(x, Slice)]
    if not integers:
        return tuple(sizes), 0
    together = integers == list(range(integers[0], integers[-1] + 1))
    at = sum(isinstance(x, Slice) for x in indexer.indices[:integers[0]]) if together or not common else 0
    return (*sizes[:at], *common, *sizes[at:]), at


Transform = NDIndexer | Rearrangement


def view_type(shape: tuple[int, ...], dtype: Any, transforms: Sequence[Transform]) -> Type:
    """The shape and dtype of a view of an array."""
    for transform in transforms:
        shape, dtype = transform.of(shape, dtype)
    return shape, dtype


# Reading and writing arrays


def read(x: Any, transforms: Sequence[Transform]) -> Any:
    """What a view shows of an array. Positions out of bounds are clipped."""
    for transform in transforms:
        x = transform.read(x)
    return x


def write(x: Any, transforms: Sequence[Transform], value: Any, add: bool = False) -> Any:
    """The array with what a view shows replaced by (or increased by) `value`.

    Writes out of bounds are dropped.
    """
    if not transforms:
        return hooks.lax.add(x, value) if add else value
    indexer, *rest = transforms
    if not isinstance(indexer, NDIndexer):
        return indexer.restore(write(indexer.read(x), rest, value, add) if rest or add else value, x)
    block = _read_slices(x, indexer)
    if rest:
        value = write(_read_integers(block, indexer), rest, value, add)
        add = False
    return _write_slices(x, indexer, _write_integers(block, indexer, value, add))


def _normalize(index: Any, size: int) -> Any:
    """Counts negative positions from the end."""
    if isinstance(index, (int, np.integer)):
        return int(index + size if index < 0 else index)
    if not isinstance(index, Tracer):
        value = np.asarray(index)
        return np.where(value < 0, value + size, value).astype(np.int32)
    lax = hooks.lax
    index = lax.convert_element_type(index, np.int32)  # type: ignore[arg-type]
    return lax.select(lax.lt(index, np.int32(0)), lax.add(index, np.int32(size)), index)


def _slices(indexer: NDIndexer) -> list[tuple[Any, int, int]] | None:
    """(start, size, stride) by dimension, whole for integers; None where nothing is cut."""
    found = [(x.start, x.size, x.stride) if isinstance(x, Slice) else (0, d, 1)
             for x, d in zip(indexer.indices, indexer.shape, strict=True)]
    return None if all(isinstance(f[0], int) and f == (0, d, 1)
                       for f, d in zip(found, indexer.shape, strict=True)) else found


def _read_slices(x: Any, indexer: NDIndexer) -> Any:
    cuts = _slices(indexer)
    if cuts is None:
        return x
    lax = hooks.lax
    if all(isinstance(start, int) for start, _, _ in cuts):
        limits = [start + (size - 1) * stride + 1 if size else start for start, size, stride in cuts]
        return lax.slice(x, [s for s, _, _ in cuts], limits, [t for _, _, t in cuts])
    spans = [(size - 1) * stride + 1 if size else 0 for _, size, stride in cuts]
    x = lax.dynamic_slice(x, [_normalize(s, d) for (s, _, _), d in zip(cuts, indexer.shape, strict=True)], spans)
    if all(stride == 1 for _, _, stride in cuts):
        return x
    return lax.slice(x, [0] * len(cuts), spans, [t for _, _, t in cuts])


def _write_slices(x: Any, indexer: NDIndexer, block: Any) -> Any:
    cuts = _slices(indexer)
    if cuts is None:
        return block
    lax = hooks.lax
    if all(stride == 1 for _, _, stride in cuts):
        starts = [_normalize(s, d) if not isinstance(s, int) else s
                  for (s, _, _), d in zip(cuts, indexer.shape, strict=True)]
        return lax.dynamic_update_slice(x, block, starts)
    # a strided block: the positions between are taken from the array itself
    spans = [(size - 1) * stride + 1 if size else 0 for _, size, stride in cuts]
    starts = [_normalize(s, d) if not isinstance(s, int) else s
              for (s, _, _), d in zip(cuts, indexer.shape, strict=True)]
    between = lax.dynamic_slice(x, starts, spans)
    zero = np.zeros((), get_aval(x).dtype)
    spread = lax.pad(block, zero, [(0, 0, stride - 1) for _, _, stride in cuts])
    mark = np.zeros(spans, bool)
    mark[tuple(slice(None, None, stride) for _, _, stride in cuts)] = True
    return lax.dynamic_update_slice(x, lax.select(mark, spread, between), starts)


def _integers(indexer: NDIndexer) -> list[int]:
    return [i for i, x in enumerate(indexer.indices) if not isinstance(x, Slice)]


def _read_integers(block: Any, indexer: NDIndexer) -> Any:
    dims = _integers(indexer)
    if not dims:
        return block
    lax = hooks.lax
    if not indexer.int_indexer_shape:
        shape = get_aval(block).shape
        positions = {i: _normalize(indexer.indices[i], indexer.shape[i]) for i in dims}
        if all(isinstance(p, int) for p in positions.values()):
            starts = [positions.get(i, 0) for i in range(len(shape))]
            limits = [s + 1 if i in positions else d for i, (s, d) in enumerate(zip(starts, shape, strict=True))]
            piece = lax.slice(block, starts, limits)
        else:
            piece = lax.dynamic_slice(block, [positions.get(i, 0) for i in range(len(shape))],
                                      [1 if i in positions else d for i, d in enumerate(shape)])
        return lax.squeeze(piece, dims)
    indices, numbers, sizes = _gather_arguments(block, indexer, dims)
    return lax.gather(block, indices, lax.GatherDimensionNumbers(**numbers), sizes, mode="clip")


def _gather_arguments(block: Any, indexer: NDIndexer, dims: list[int]) -> tuple[Any, dict[str, Any], tuple]:
    lax = hooks.lax
    common = indexer.int_indexer_shape
    columns = [
        lax.reshape(_normalize(indexer.indices[i], indexer.shape[i]), (*common, 1)) for i in dims
    ]
    indices = columns[0] if len(columns) == 1 else lax.concatenate(columns, len(common))
    _, at = _result(indexer)
    shape = get_aval(block).shape
    rank = len(shape) - len(dims) + len(common)
    batch = range(at, at + len(common))
    numbers = dict(
        offset_dims=tuple(i for i in range(rank) if i not in batch),
        collapsed_slice_dims=tuple(dims),
        start_index_map=tuple(dims),
    )
    return indices, numbers, tuple(1 if i in dims else d for i, d in enumerate(shape))


def _write_integers(block: Any, indexer: NDIndexer, value: Any, add: bool) -> Any:
    dims = _integers(indexer)
    lax = hooks.lax
    if not dims:
        return lax.add(block, value) if add else value
    if not indexer.int_indexer_shape:
        shape = get_aval(block).shape
        positions = [_normalize(indexer.indices[i], indexer.shape[i]) if i in dims else 0 for i in range(len(shape))]
        piece_shape = [1 if i in dims else d for i, d in enumerate(shape)]
        piece = lax.reshape(value, piece_shape)
        if add:
            piece = lax.add(lax.dynamic_slice(block, positions, piece_shape), piece)
        return lax.dynamic_update_slice(block, piece, positions)
    indices, numbers, _ = _gather_arguments(block, indexer, dims)
    scatter = lax.ScatterDimensionNumbers(
        update_window_dims=numbers["offset_dims"], inserted_window_dims=numbers["collapsed_slice_dims"],
        scatter_dims_to_operand_dims=numbers["start_index_map"])
    return (lax.scatter_add if add else lax.scatter)(block, indices, value, scatter, mode="drop")


# Batching


def batch_view(transforms: Sequence[Transform], shape: tuple[int, ...], dtype: Any, ref_dim: int | None,
               dims: Sequence[Any], size: int) -> tuple[tuple[Transform, ...], int]:
    """The view of a reference with a mapped axis at `ref_dim`, or with mapped indices, or both.

    `shape` and `dtype` are the reference's without its axis; `dims` is like `transforms` with the positions of the
    mapped axis in place of indices. Returns the new view, and where the mapped axis is in what it shows.
    """
    found: list[Transform] = []
    dim = ref_dim
    for transform, transform_dims in zip(transforms, dims, strict=True):
        if isinstance(transform, NDIndexer):
            new, dim, order = _batch_indexer(transform, dim, transform_dims, size)
            found.append(new)
            if order is not None:
                found.append(TransposeTransform(order))
        elif dim is None:
            found.append(transform)
        else:
            if dim != 0:
                found.append(TransposeTransform.to_front(dim, len(shape) + 1))
            found.append(transform.batched(size))
            dim = 0
        shape, dtype = transform.of(shape, dtype)
    assert dim is not None
    return tuple(found), dim


def _batch_indexer(indexer: NDIndexer, ref_dim: int | None, dims: NDIndexer,
                   size: int) -> tuple[NDIndexer, int | None, tuple[int, ...] | None]:
    """The indexer with the mapped axis, where that is in what it selects, and where it is not simply inserted the
    permutation that brings it in front and the others in the order they had."""
    from .batch import broadcast, moveaxis

    lax = hooks.lax
    common = indexer.int_indexer_shape
    spread: list[Any] = list(indexer.indices)
    names: list[Any] = list(range(len(spread)))
    mapped = [not isinstance(x, Slice) and d is not None for x, d in zip(spread, dims.indices, strict=True)]
    for x, d in zip(spread, dims.indices, strict=True):
        if isinstance(x, Slice) and not isinstance(x.start, int) and d.start is not None:
            raise NotImplementedError(
                "vmap of a reference read or written at a slice whose start is mapped: index it with the "
                f"integers start + arange({x.size}) instead")
    if any(mapped):
        for i, (x, m) in enumerate(zip(spread, mapped, strict=True)):
            if not isinstance(x, Slice):
                spread[i] = moveaxis(x, dims.indices[i], 0) if m else broadcast(x, size, 0)
        common = (size, *common)
        added: Any = lax.broadcasted_iota(np.int32, common, 0)
        ints: list[Any] = ["mapped", *(f"int{k}" for k in range(len(common) - 1))]
    else:
        added = Slice(0, size, 1)
        ints = [f"int{k}" for k in range(len(common))]
    shape = indexer.shape
    if ref_dim is None and not any(mapped):
        return indexer, None, None
    if ref_dim is not None:
        spread.insert(ref_dim, added)
        names.insert(ref_dim, "mapped")
        shape = (*shape[:ref_dim], size, *shape[ref_dim:])
    new = NDIndexer(spread, shape, common)
    before = _selected_names(indexer, list(range(len(indexer.indices))),
                             [f"int{k}" for k in range(len(indexer.int_indexer_shape))])
    after = _selected_names(new, names, ints)
    out_dim = after.index("mapped")
    if [n for n in after if n != "mapped"] == before:
        return new, out_dim, None
    return new, 0, (out_dim, *(after.index(n) for n in before))


def _selected_names(indexer: NDIndexer, names: list[Any], ints: list[Any]) -> list[Any]:
    """The dimensions of what an indexer selects, by the names of those they come from."""
    _, at = _result(indexer)
    slices = [n for n, x in zip(names, indexer.indices, strict=True) if isinstance(x, Slice)]
    return [*slices[:at], *ints, *slices[at:]]
