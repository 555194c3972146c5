"""How scatters become loops and StableHLO."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs.jaxpr import ClosedJaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import is_symbolic

from ..elementwise.comparisons import clamp
from ..elementwise.scalar_programs import scalar_program
from ..reductions.reduce import greatest, least
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import full
from ..shaping.sizes import size_vector
from .dimension_numbers import GatherScatterMode, ScatterDimensionNumbers, shape_of, starts

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest


# What one element becomes, of the element that stands there and the update.
_COMBINERS: dict[str, str] = {
    "scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul", "scatter-min": "min", "scatter-max": "max",
}


def _nothing(dtype: np.dtype) -> Any:
    """What any number can be added to and stays as it is: zeros have signs."""
    return -np.zeros((), dtype)


# Of those that may be combined in another order: what leaves any element as it is, and how parts are joined.
_FOLDED: dict[str, tuple[Callable[[np.dtype], Any], str]] = {
    "scatter-add": (_nothing, "add"), "scatter-sub": (_nothing, "add"), "scatter-min": (greatest, "min"),
    "scatter-max": (least, "max"),
}


def window_sizes(operand_shape: Sequence[int], updates_shape: Sequence[int], dnums: ScatterDimensionNumbers
                 ) -> tuple[int, ...]:
    """For each dimension of the operand, the size of a window."""
    dropped = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    window = iter(dnums.update_window_dims)
    return tuple(1 if d in dropped else updates_shape[next(window)] for d in range(len(operand_shape)))


class _Places:
    """Where the updates of a scatter go: its dimension numbers, for the loops."""

    __slots__ = ("batch", "batched", "clip", "indices", "limits", "numbers", "rank", "scatter_dims", "sizes",
                 "windowed")

    def __init__(self, operand: Any, indices: Any, updates: Any, numbers: ScatterDimensionNumbers, clip: bool):
        self.indices, self.numbers, self.clip, self.rank = indices, numbers, clip, len(operand.shape)
        dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        kept = [d for d in range(self.rank) if d not in dropped]
        self.scatter_dims = [u for u in range(len(updates.shape)) if u not in numbers.update_window_dims]
        self.windowed = dict(zip(kept, numbers.update_window_dims, strict=True))  # dimensions of updates
        self.batched = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
        self.batch = {self.scatter_dims[k] for k in self.batched.values()}  # dimensions of updates
        self.sizes = window_sizes(operand.shape, updates.shape, numbers)
        self.limits = [operand.shape[d] - self.sizes[d] for d in numbers.scatter_dims_to_operand_dims]

    def origin(self, b: Builder, position: Sequence[Any]) -> tuple[list[Any], Any]:
        """Where the window of an index begins, None where it has the whole dimension; and the condition that it lies
        inside, None if it does."""
        components, inside = starts(b, self.indices, position, self.limits, clamp=self.clip)
        start_of = dict(zip(self.numbers.scatter_dims_to_operand_dims, components, strict=True))
        where = [position[self.batched[d]] if d in self.batched else start_of.get(d) for d in range(self.rank)]
        return [b.index(0) if w is None and d not in self.windowed else w for d, w in enumerate(where)], inside


Combine = Callable[[Callable[[], Any], Any], Any]  # of what stands there, which is read if need be, and an update


def scatter_loops(b: Builder, name: str, operand: Any, indices: Any, updates: Any, *,
                  dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
                  mode: GatherScatterMode, update_jaxpr: Any, update_consts: Any) -> Any:
    out = b.avals_out[0]
    updates_rank, window_dims = len(updates.shape), list(dimension_numbers.update_window_dims)
    places = _Places(operand, indices, updates, dimension_numbers, mode == GatherScatterMode.CLIP)
    combine = _combiner(b, name, out.dtype, update_jaxpr, update_consts)
    if all(updates.shape[u] == 1 for u in places.scatter_dims) and (name in _COMBINERS or update_jaxpr is None):
        return _one_window(b, places, operand, updates, combine, replaces=name == "scatter")
    if not window_dims and all(isinstance(d, int) for d in updates.shape) and (
            b.cost(updates) * math.prod(updates.shape) >= SHARED):
        updates = b.in_memory(updates)
    unique = bool(unique_indices) and places.clip
    shared = math.prod(d if isinstance(d, int) else 1 for d in updates.shape) >= APART
    pieces = _pieces(name, out.dtype, out.shape, updates.shape, places.scatter_dims)

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        (target,) = outs
        at: dict[int, Any] = {}
        piece: list[Any] = []

        def write(where: list[Any]) -> None:
            place = [where[d] if d not in places.windowed else
                     at[places.windowed[d]] if where[d] is None else b.add(where[d], at[places.windowed[d]])
                     for d in range(places.rank)]
            new = updates.at([at[u] for u in range(updates_rank)])
            place = [*piece, *place]
            n.store(target, place, combine(lambda: n.load(target, place), new))

        def windows(remaining: list[int], where: list[Any]) -> None:
            if not remaining:
                write(where)
                return
            contiguous = len(remaining) == 1 and places.windowed.get(places.rank - 1) == remaining[0]
            with n.loop(updates.shape[remaining[0]], vector=contiguous) as i:
                at[remaining[0]] = i
                windows(remaining[1:], where)

        def each_index(remaining: Sequence[int]) -> None:
            # members of a batch have places of their own
            parallel = unique or shared and not at and bool(remaining) and remaining[0] in places.batch
            if len(remaining) == 1 and not window_dims and pieces == 1 and b.cost(updates) and (
                    _many(updates.shape[remaining[0]])):
                _by_blocks(b, n, places, target, updates, combine, at, remaining[0], parallel)
                return
            if remaining:
                with n.loop(updates.shape[remaining[0]], parallel=parallel) as i:
                    at[remaining[0]] = i
                    each_index(remaining[1:])
                return
            where, inside = places.origin(b, [at[u] for u in places.scatter_dims])
            with nullcontext() if inside is None else n.if_(inside):
                windows(window_dims, where)

        if pieces == 1:
            each_index(sorted(places.scatter_dims, key=lambda u: u not in places.batch))
            return
        first, *rest = places.scatter_dims
        for number, update in _in_pieces(b, n, pieces, updates.shape, first):
            piece[:], at[first] = [number], update
            each_index(rest)

    if pieces == 1:
        return b.nest([(out.shape, out.dtype, operand)], body)[0]
    neutral, join = _FOLDED[name]
    start = neutral(out.dtype)
    shape = (pieces, *_apart(out.shape, out.dtype, _together(updates.shape, places.scatter_dims[0])))
    starts_of_pieces = b.value(shape, out.dtype, lambda i: b.const(start, out.dtype))
    (folded,) = b.nest([(shape, out.dtype, starts_of_pieces)], body)
    return _total_of_pieces(b, getattr(b, join), operand, folded, pieces)


def _by_blocks(b: Builder, n: Nest, places: _Places, target: Any, updates: Any, combine: Combine, at: dict[int, Any],
               u: int, parallel: bool) -> None:
    """A loop over single elements whose updates are computed in lanes, a block before they are written."""
    rank = len(updates.shape)
    with n.loop(-(-updates.shape[u] // BLOCK), parallel=parallel) as block:
        first = b.imul(block, BLOCK)
        count = b.min(b.int(BLOCK), b.isub(b.int(updates.shape[u]), first))
        waiting = n.scratch((BLOCK,), updates.dtype)
        with n.loop(count, vector=True) as i:
            at[u] = b.iadd(first, i)
            n.store(waiting, [i], updates.at([at[d] for d in range(rank)]))
        with n.loop(count) as i:
            at[u] = b.iadd(first, i)
            where, inside = places.origin(b, [at[d] for d in places.scatter_dims])
            with nullcontext() if inside is None else n.if_(inside):
                n.store(target, where, combine(lambda: n.load(target, where), waiting.at([i])))


def _one_window(b: Builder, places: _Places, operand: Any, updates: Any, combine: Combine, replaces: bool) -> Any:
    """A window updated. If it lies outside, it is moved inside, and what stands there stays as it is."""
    where, inside = places.origin(b, [b.index(0)] * len(places.scatter_dims))
    first = [b.index(0) if w is None else w for w in where]
    if inside is not None:
        for d, limit in zip(places.numbers.scatter_dims_to_operand_dims, places.limits, strict=True):
            first[d] = b.min(b.max(first[d], b.index(0)), b.index(limit))

    def element(old: Any, new: Any) -> Any:
        made = combine(lambda: old, new)
        return made if inside is None else b.select(inside, made, old)

    dims = {u: d for d, u in places.windowed.items()}
    window = b.value(places.sizes, updates.dtype, lambda i: updates.at(
        [i[dims[u]] if u in dims else b.index(0) for u in range(len(updates.shape))]))
    return b.update(operand, window, first, None if replaces and inside is None else element)


def _combiner(b: Builder, name: str, dtype: Any, update_jaxpr: Any, update_consts: Any) -> Combine:
    """What becomes of an element and an update."""
    def combine(old: Callable[[], Any], new: Any) -> Any:
        if name in _COMBINERS:
            if dtype == np.bool_ and name != "scatter-add":
                return {"scatter-min": b.and_, "scatter-max": b.or_, "scatter-mul": b.and_}[name](old(), new)
            return getattr(b, _COMBINERS[name])(old(), new)
        if update_jaxpr is None:
            return new
        return scalar_program(b, ClosedJaxpr(update_jaxpr, list(update_consts)), [old(), new])[0]

    return combine


def _in_pieces(b: Builder, n: Nest, pieces: int, shape: Sequence[int], first: int) -> Iterator[tuple[Any, Any]]:
    """Loops over all updates: the piece and the place in the first dimension of each that is written in them."""
    extent = shape[first]
    size = -(-extent // pieces)
    together = _together(shape, first)
    with n.loop(pieces // together, parallel=True) as group, n.loop(size) as i:
        for k in range(together):
            piece = b.iadd(b.imul(group, together), k)
            update = b.iadd(b.imul(piece, size), i)
            with n.if_(b.lt(update, b.int(extent))) if extent % pieces else nullcontext():
                yield piece, update


def _together(shape: Sequence[int], first: int) -> int:
    """How many pieces a thread has at a time: some, of single elements."""
    return TOGETHER if math.prod(shape) == shape[first] else 1


def _apart(shape: Sequence[int], dtype: np.dtype, together: int) -> tuple[int, ...]:
    """The shape of one piece of the results, with as many rows more as keep threads off each other's lines of memory
    (false sharing): of single elements, off those that their processors fetch ahead, too."""
    rows, *rest = shape
    apart = PAGE // together if together > 1 else LINES
    whole = apart // math.gcd(apart, math.prod(rest) * dtype.itemsize)
    return (-(-rows // whole) * whole, *rest)


def _total_of_pieces(b: Builder, combine: Callable[[Any, Any], Any], operand: Any, folded: Any, pieces: int) -> Any:
    """An array combined with what the updates of each piece come to."""
    def total(index: Sequence[Any]) -> Any:
        terms = [folded.at([b.int(p), *index]) for p in range(pieces)]
        while len(terms) > 1:
            terms = [combine(x, y) for x, y in zip(terms[::2], terms[1::2], strict=True)]
        return combine(operand.at(index), terms[0])

    out = b.avals_out[0]
    return b.value(out.shape, out.dtype, total)


PIECES = 8  # a power of two
TOGETHER = 4  # pieces of single elements whose updates a thread makes in turns
MANY = 1 << 12  # updates from which it pays
APART = 1 << 17  # elements of updates from which threads share the members of a batch
LINES, PAGE = 128, 4096  # bytes: two lines of memory, and those within which processors fetch ahead
BLOCK = 256  # single elements whose updates are computed together
SHARED = 1 << 19  # instructions, about, for all of them from which threads share these, before one writes


def _many(updates: Any) -> bool:
    return isinstance(updates, int) and updates >= MANY


def _pieces(name: str, dtype: np.dtype, shape: Sequence[Any], updates: Sequence[Any], scatter_dims: Sequence[int]
            ) -> int:
    """Into how many parts to divide the updates, each of which is combined in an array of its own: threads share the
    parts, and an update waits less often for the one before. It pays where many updates meet in few places."""
    if name not in _FOLDED or dtype == np.bool_ or not scatter_dims or not all(
            isinstance(n, int) for n in (*shape, *updates)):
        return 1
    many = math.prod(updates)
    few = math.prod(shape)
    return PIECES if many >= MANY and 2 * PIECES * few <= many and updates[scatter_dims[0]] >= 8 * PIECES else 1


def _clip_indices(operand_shape: Sequence[int], indices: Any, updates_shape: Sequence[int],
                  dnums: ScatterDimensionNumbers) -> Any:
    sizes = window_sizes(operand_shape, updates_shape, dnums)
    dtype = get_aval(indices).dtype
    largest = int(dtypes.iinfo(dtype).max)
    room = [operand_shape[d] - sizes[d] for d in dnums.scatter_dims_to_operand_dims]
    limits = size_vector([n if is_symbolic(n) else min(n, largest) for n in room], dtype)
    shape = shape_of(indices)
    spread = broadcast_in_dim(limits, shape, (len(shape) - 1,))
    return clamp(full(shape, 0, dtype), indices, spread)


def scatter_stablehlo(m: Any, operand: Any, indices: Any, updates: Any, *,
                      dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
                      mode: GatherScatterMode, update_jaxpr: Any, update_consts: Any) -> Any:
    dn = dimension_numbers
    out = m.avals_out[0]
    if mode == GatherScatterMode.CLIP:
        indices = m.call_traced(
            lambda i: _clip_indices(operand.aval.shape, i, updates.aval.shape, dn), indices)[0]
    scalar = ShapedArray((), out.dtype)

    def combine(m2: Any, old: Any, new: Any) -> list[Any]:
        if update_jaxpr is None:
            return [new]
        return m2.inline(ClosedJaxpr(update_jaxpr, list(update_consts)), old, new)

    fields = (
        ("update_window_dims", dn.update_window_dims), ("inserted_window_dims", dn.inserted_window_dims),
        ("input_batching_dims", dn.operand_batching_dims),
        ("scatter_indices_batching_dims", dn.scatter_indices_batching_dims),
        ("scatter_dims_to_operand_dims", dn.scatter_dims_to_operand_dims),
    )
    text = ", ".join(f"{name} = [{', '.join(map(str, dims))}]" for name, dims in fields if dims)
    text += f"{', ' if text else ''}index_vector_dim = {len(indices.aval.shape) - 1}"
    attributes = (f"scatter_dimension_numbers = #stablehlo.scatter<{text}>, "
                  f"indices_are_sorted = {str(indices_are_sorted).lower()}, "
                  f"unique_indices = {str(unique_indices).lower()}")
    region = m.region([scalar, scalar], combine)
    return m.op("stablehlo.scatter", [operand, indices, updates], [out], attributes=attributes, regions=[region])
