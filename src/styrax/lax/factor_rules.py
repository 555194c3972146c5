"""Which dimensions of operands and results are cut alike, by families of primitives: the trait `factors`.

Labels of factors are numbers of the operand's dimensions where there is one operand that results are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

from styrax.core.programs.factors import Dims, Factors, elementwise


def _own(*avals: Any) -> list[Dims]:
    """Dimensions that share nothing."""
    return [(None,) * len(x.shape) for x in avals]


def _numbered(aval: Any) -> list[Any]:
    return list(range(len(aval.shape)))


# -- dimensions that go, come and change places ----------------------------------------------------


def reduction(operands: Sequence[Any], results: Sequence[Any], *, axes: Sequence[int], **_: Any) -> Factors:
    """The dimensions that are left stay as they are; what has no dimensions begins the sum."""
    dims = [_numbered(x) for x in operands]
    left = [d for d in range(len(operands[0].shape)) if d not in axes]
    return Factors(dims, [left] * len(results), late=axes)


def broadcast(operands: Sequence[Any], results: Sequence[Any], *, broadcast_dimensions: Sequence[int],
              **_: Any) -> Factors:
    """Dimensions that are repeated share nothing."""
    shape = results[0].shape
    if operands[0].size == results[0].size:
        return reshape(operands, results)
    kept = [d if s == shape[d] else None for d, s in zip(broadcast_dimensions, operands[0].shape, strict=True)]
    out = [d if d in kept else None for d in range(len(shape))]
    return Factors([kept, *_own(*operands[1:])], [out], spread=True)


def transpose(operands: Sequence[Any], results: Sequence[Any], *, permutation: Sequence[int]) -> Factors:
    return Factors([_numbered(operands[0])], [permutation], passing=True)


def squeeze(operands: Sequence[Any], results: Sequence[Any], *, dimensions: Sequence[int]) -> Factors:
    return Factors([_numbered(operands[0])],
                   [[d for d in range(len(operands[0].shape)) if d not in dimensions]], passing=True)


def reshape(operands: Sequence[Any], results: Sequence[Any], *, dimensions: Any = None, **_: Any) -> Factors:
    """Dimensions are cut where those of either side end."""
    old, new = operands[0].shape, results[0].shape
    if dimensions is not None or 0 in old or not all(isinstance(d, int) for d in (*old, *new)):
        return Factors(_own(*operands), _own(*results))
    sides: tuple[list[list[int]], list[list[int]]] = ([[] for _ in old], [[] for _ in new])
    sizes: dict[int, int] = {}
    at = [0, 0]
    left = [1, 1]  # what is left of the dimension on either side
    while True:
        for side, shape in enumerate((old, new)):
            while left[side] == 1 and at[side] < len(shape):
                left[side] = shape[at[side]]
                at[side] += 1
        if left == [1, 1]:
            break
        common = gcd(*left)
        if common == 1 and 1 not in left:  # neither is a part of the other: what is left of both shares nothing
            common = 0
        for side in (0, 1):
            if common:
                sides[side][at[side] - 1].append(len(sizes))
                left[side] //= common
        if not common:
            return _reshape_to(operands, results, sides, sizes, at, left)
        sizes[len(sizes)] = common
    return _composed(operands, sides, sizes)


def _reshape_to(operands: Sequence[Any], results: Sequence[Any], sides: Any, sizes: dict[int, int], at: Any,
                left: Any) -> Factors:
    """Of a reshape whose dimensions have nothing in common from a place on: they are on their own from there."""
    for side in (0, 1):
        sizes[len(sizes)] = left[side]
        sides[side][at[side] - 1].append(len(sizes) - 1)
    return _composed(operands, sides, sizes)


def _composed(operands: Sequence[Any], sides: Any, sizes: dict[int, int]) -> Factors:
    before, after = ([d or None for d in side] for side in sides)
    return Factors([before, *_own(*operands[1:])], [after], sizes=sizes, passing=True)


def moved(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """Results are parts of the operand, or it with more around it: along dimensions that change elements wander."""
    dims = _numbered(operands[0])
    late = [d for d in dims if any(r.shape[d] != operands[0].shape[d] for r in results)]
    return Factors([dims, *_own(*operands[1:])], [dims] * len(results), late=late)


def along(name: str) -> Callable[..., Factors]:
    """Elements wander along the dimensions that a parameter names."""

    def rule(operands: Sequence[Any], results: Sequence[Any], **params: Any) -> Factors:
        dims = _numbered(operands[0])
        named = params[name]
        late = named if isinstance(named, (tuple, list)) else (named,)
        return Factors([dims if x.shape == operands[0].shape else (None,) * len(x.shape) for x in operands],
                       [dims] * len(results), late=[d % len(dims) for d in late])

    return rule


def fourier(operands: Sequence[Any], results: Sequence[Any], *, fft_lengths: Sequence[int], **_: Any) -> Factors:
    """Elements wander along the last dimensions."""
    shape = results[0].shape
    dims = [d if n == shape[d] else None for d, n in enumerate(operands[0].shape)]
    return Factors([dims], [dims], late=range(len(dims) - len(fft_lengths), len(dims)))


def windows(operands: Sequence[Any], results: Sequence[Any], *, window_dimensions: Sequence[int],
            **_: Any) -> Factors:
    """Elements wander along dimensions that windows are wider than one element in."""
    dims = _numbered(operands[0])
    late = [d for d in dims if window_dimensions[d] != 1 or results[0].shape[d] != operands[0].shape[d]]
    return Factors([dims if len(x.shape) == len(dims) else (None,) * len(x.shape) for x in operands],
                   [dims] * len(results), late=late)


def concatenation(operands: Sequence[Any], results: Sequence[Any], *, dimension: int) -> Factors:
    dims = _numbered(operands[0])
    return Factors([dims] * len(operands), [dims], late=[dimension])


def stack(operands: Sequence[Any], results: Sequence[Any], *, axis: int) -> Factors:
    dims = _numbered(operands[0])
    return Factors([dims] * len(operands), [[*dims[:axis], None, *dims[axis:]]])


def unstack(operands: Sequence[Any], results: Sequence[Any], *, axis: int) -> Factors:
    dims = _numbered(operands[0])
    return Factors([dims], [[d for d in dims if d != axis]] * len(results))


def tile(operands: Sequence[Any], results: Sequence[Any], *, reps: Sequence[int]) -> Factors:
    dims = _numbered(operands[0])
    kept = [d if r == 1 else None for d, r in zip(dims, reps, strict=True)]
    return Factors([kept], [kept], spread=True)


def whole(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """Dimensions that keep their size are alike, others share nothing."""
    shape = operands[0].shape
    dims = [[d if d < len(shape) and n == shape[d] else None for d, n in enumerate(r.shape)] for r in results]
    return Factors([_numbered(operands[0]), *_own(*operands[1:])], dims, passing=True)


def each(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """Each result is the operand at its place."""
    dims = [[("each", i, d) for d in range(len(getattr(x, "shape", ())))] for i, x in enumerate(operands)]
    return Factors(dims, dims[:len(results)], passing=True)


def sort(operands: Sequence[Any], results: Sequence[Any], *, dimension: int, **_: Any) -> Factors:
    """Where nothing else is there to be cut, results are whole."""
    shape = operands[0].shape
    if all(n == 1 for d, n in enumerate(shape) if d != dimension):
        return Factors(_own(*operands), _own(*results))
    dims = _numbered(operands[0])
    return Factors([dims] * len(operands), [dims] * len(results), late=[dimension])


def top_k(operands: Sequence[Any], results: Sequence[Any], *, axis: int = -1, reduction_dimension: int | None = None,
          **_: Any) -> Factors:
    dims = _numbered(operands[0])
    along = (axis if reduction_dimension is None else reduction_dimension) % len(dims)
    kept = [None if d == along and results[0].shape[d] != operands[0].shape[d] else d for d in dims]
    return Factors([kept], [kept] * len(results), late=[along])


# -- contractions ----------------------------------------------------------------------------------


def contraction(operands: Sequence[Any], results: Sequence[Any], *, dimension_numbers: Any, **_: Any) -> Factors:
    """Batch dimensions, those of the left, those of the right; what is summed over comes late."""
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = dimension_numbers
    left: list[Any] = [("left", d) for d in range(len(operands[0].shape))]
    right: list[Any] = [("right", d) for d in range(len(operands[1].shape))]
    for d, e in (*zip(lhs_sum, rhs_sum, strict=True), *zip(lhs_batch, rhs_batch, strict=True)):
        right[e] = left[d]
    out = [*(left[d] for d in lhs_batch),
           *(x for d, x in enumerate(left) if d not in lhs_sum and d not in lhs_batch),
           *(x for d, x in enumerate(right) if d not in rhs_sum and d not in rhs_batch)]
    return Factors([left, right], [out], late=[left[d] for d in lhs_sum])


def convolution(operands: Sequence[Any], results: Sequence[Any], *, dimension_numbers: Any,
                feature_group_count: int = 1, batch_group_count: int = 1, **_: Any) -> Factors:
    """Batch and features; along spatial dimensions elements wander, where windows leave most of them."""
    lhs, rhs, out = (list(spec) for spec in dimension_numbers)
    rank = len(lhs)
    left: list[Any] = [None] * rank
    right: list[Any] = [None] * rank
    result: list[Any] = [None] * rank
    left[lhs[0]] = result[out[0]] = "batch"
    if feature_group_count > 1:
        left[lhs[1]] = right[rhs[0]] = result[out[1]] = "features"
    elif batch_group_count == 1:
        left[lhs[1]] = right[rhs[1]] = "sum"
        right[rhs[0]] = result[out[1]] = "features"
    for d in range(2, rank):
        if operands[1].shape[rhs[d]] <= results[0].shape[out[d]]:
            left[lhs[d]] = result[out[d]] = d
    return Factors([left, right], [result], late=["sum", *range(2, rank)])


# -- indexing --------------------------------------------------------------------------------------


def static_slice(operands: Sequence[Any], results: Sequence[Any], *, fixed: bool = True, **_: Any) -> Factors:
    """At once, slices are read at places that the compiled program is told."""
    return moved(operands, results) if fixed else whole(operands, results)


def dynamic_slice(operands: Sequence[Any], results: Sequence[Any], *, fixed: bool = False, **_: Any) -> Factors:
    """Along dimensions that are read in part, nothing is alike, but for slices at constant places."""
    return moved(operands, results) if fixed else whole(operands, results)


def dynamic_update_slice(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """Along dimensions that are written in part, the operand and the result are alike."""
    operand, update = operands[0], operands[1]
    dims = _numbered(operand)
    part = [d if n == operand.shape[d] else None for d, n in enumerate(update.shape)]
    return Factors([dims, part, *_own(*operands[2:])], [dims], passing=True)


def gather(operands: Sequence[Any], results: Sequence[Any], *, dimension_numbers: Any, slice_sizes: Sequence[Any],
           mode: Any, **_: Any) -> list[Factors]:
    """Dimensions that slices run over whole are the operand's, those of batches both's, others the indices'. A mask of
    what is out of bounds is made of the indices."""
    dn = dimension_numbers
    operand, indices = operands[0], operands[1]
    left: list[Any] = [("operand", d) if slice_sizes[d] == n else None for d, n in enumerate(operand.shape)]
    right: list[Any] = [("index", d) for d in range(len(indices.shape) - 1)] + [None]
    for d, e in zip(dn.operand_batching_dims, dn.start_indices_batching_dims, strict=True):
        left[d] = right[e]
    dropped = {*dn.collapsed_slice_dims, *dn.operand_batching_dims}
    for d in dn.collapsed_slice_dims:
        left[d] = None
    window = iter([x for d, x in enumerate(left) if d not in dropped])
    rows = iter(right[:-1])
    out = [next(window) if d in dn.offset_dims else next(rows) for d in range(len(results[0].shape))]
    found = [Factors([left, right], [out])]
    if getattr(mode, "name", None) == "FILL_OR_DROP":
        found.insert(0, Factors([(None,) * len(left), right], [out]))
    return found


def scatter(operands: Sequence[Any], results: Sequence[Any], *, dimension_numbers: Any, **_: Any) -> Factors:
    """Operand and result are alike, and updates along windows that run over whole dimensions."""
    dn = dimension_numbers
    operand, indices, updates = operands[0], operands[1], operands[2]
    dims: list[Any] = [("operand", d) for d in range(len(operand.shape))]
    rows: list[Any] = [("index", d) for d in range(len(indices.shape) - 1)]
    for d, e in zip(dn.operand_batching_dims, dn.scatter_indices_batching_dims, strict=True):
        rows[e] = dims[d]
    dropped = {*dn.inserted_window_dims, *dn.operand_batching_dims}
    window = iter([d for d in range(len(dims)) if d not in dropped])
    rest = iter(rows)
    part: list[Any] = []
    for k, n in enumerate(updates.shape):
        if k in dn.update_window_dims:
            d = next(window)
            part.append(dims[d] if n == operand.shape[d] else None)
        else:
            part.append(next(rest))
    late = [x for x in rows if x[0] == "index"]
    return Factors([dims, [*rows, None], part], [dims], late=late)


def in_front(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """The dimensions that operand and result have in common stand in front."""
    dims = [[d if d < min(len(operands[0].shape), len(results[0].shape)) else None for d in range(len(x.shape))]
            for x in (operands[0], results[0])]
    return Factors([dims[0], *_own(*operands[1:])], [dims[1]] * len(results), passing=len(dims[0]) == len(dims[1]))


def behind_batch(*ranks: int) -> Callable[..., Factors]:
    """Batch dimensions in front are alike; as many behind as `ranks` tells of each operand (2 of others) share
    nothing."""

    def rule(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
        lead = min(len(x.shape) - (ranks[k] if k < len(ranks) else 2) for k, x in enumerate(operands))
        dims = lambda x: [d if d < lead else None for d in range(len(x.shape))]
        return Factors([dims(x) for x in operands], [dims(x) for x in results])

    return rule


__all__ = [
    "along", "behind_batch", "broadcast", "concatenation", "contraction", "convolution", "dynamic_slice",
    "dynamic_update_slice", "each", "elementwise", "fourier", "gather", "in_front", "moved", "reduction", "reshape",
    "scatter", "sort", "squeeze", "stack", "static_slice", "tile", "top_k", "transpose", "unstack", "whole", "windows",
]
