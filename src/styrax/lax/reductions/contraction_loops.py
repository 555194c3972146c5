"""`dot_general` on the CPU: by a library or a kernel, or as loops; and the dtypes of products and of their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.types import dtypes

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def product_dtype(lhs: Any, rhs: Any) -> Any:
    """The dtype of a product of arrays of two dtypes."""
    if lhs == rhs:
        return lhs
    left, right = dtypes.kind(lhs), dtypes.kind(rhs)
    order = "biufc".replace("u", "i")
    left_rank, right_rank = order.index(left.replace("u", "i")), order.index(right.replace("u", "i"))
    if left_rank != right_rank:
        return lhs if left_rank > right_rank else rhs
    # Two of a kind: the wider one, and of equal widths the first that XLA lists.
    left_bits, right_bits = dtypes.itemsize_bits(lhs), dtypes.itemsize_bits(rhs)
    if left_bits != right_bits:
        return lhs if left_bits > right_bits else rhs
    names = list(dtypes.all_dtypes)
    if left in "iu":
        return lhs if left == "i" else rhs
    return max(lhs, rhs, key=names.index)


def _result_dtype(lhs: Any, rhs: Any, out: Any) -> Any:
    """The dtype of what becomes a product: of floats, their sum, also where integers are asked for."""
    if dtypes.kind(out) in "iub" and dtypes.kind(lhs) == dtypes.kind(rhs) == "f":
        return product_dtype(lhs, rhs)
    return out


def _accumulation_dtype(lhs: Any, rhs: Any, out: Any) -> Any:
    """The dtype in which the CPU adds up products."""
    if np.dtype(out) == np.bool_:
        return np.dtype(np.bool_)
    if dtypes.kind(out) != "c":
        complexes = [np.dtype(d) for d in (lhs, rhs) if dtypes.kind(d) == "c"]
        if complexes:  # (the real part is that of the product)
            return max(complexes, key=lambda d: d.itemsize)
    if dtypes.kind(out) == "f" and dtypes.itemsize_bits(out) < 32:
        return np.dtype(np.float32)
    return np.dtype(out)


def dot_loops(b: Builder, lhs: Any, rhs: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    out = b.avals_out[0]
    result = _result_dtype(lhs.dtype, rhs.dtype, out.dtype)
    total = _product(b, lhs, rhs, dimension_numbers, result)
    return total if total.dtype == out.dtype else b.value(
        out.shape, out.dtype, lambda i: b.cast(b.cast(total.at(i), result), out.dtype))


def _product(b: Builder, lhs: Any, rhs: Any, dimension_numbers: Any, result: Any) -> Any:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free, rhs_free = (
        [d for d in range(len(x.shape)) if d not in contract and d not in batch]
        for x, contract, batch in ((lhs, lhs_contract, lhs_batch), (rhs, rhs_contract, rhs_batch)))
    if lhs_free or rhs_free:
        again = [{d for d in (*batch, *free) if not _is_one(x.shape[d]) and b.repeats(x, [d])}
                 for x, batch, free in ((lhs, lhs_batch, lhs_free), (rhs, rhs_batch, rhs_free))]
        if any(again):
            return _of_repeated(b, [lhs, rhs], dimension_numbers, result, again)

    # of vectors: elementwise products, and a sum
    holds, chooses = (None if lhs_free or rhs_free else getattr(x, "condition", None) for x in (lhs, rhs))
    by_library = b.contract(lhs, rhs, dimension_numbers, result) if holds is None and chooses is None else None
    if by_library is not None:
        return by_library
    wide = _accumulation_dtype(lhs.dtype, rhs.dtype, result)
    batch_count = len(lhs_batch)
    lhs = b.materialize_if_reused(lhs, b.product([rhs.shape[d] for d in rhs_free]))
    rhs = b.materialize_if_reused(b.for_loops(lhs, rhs, dimension_numbers, result),
                                  b.product([lhs.shape[d] for d in lhs_free]))

    def where(ndim: int, batch: Any, contract: Any, free: Any, i: Any, r: Any, offset: int) -> list[Any]:
        index: list[Any] = [None] * ndim
        for k, d in enumerate(batch):
            index[d] = i[k]
        for k, d in enumerate(contract):
            index[d] = r[k]
        for k, d in enumerate(free):
            index[d] = i[offset + k]
        return index

    def body(i: Any, r: Any) -> Any:
        at_x = where(len(lhs.shape), lhs_batch, lhs_contract, lhs_free, i, r, batch_count)
        at_y = where(len(rhs.shape), rhs_batch, rhs_contract, rhs_free, i, r, batch_count + len(lhs_free))
        x, y = b.cast(lhs.at(at_x), wide), b.cast(rhs.at(at_y), wide)
        if holds is not None:
            return (b.select(holds.at(at_x), y, b.const(0, wide)),)
        if chooses is not None:
            return (b.select(chooses.at(at_y), x, b.const(0, wide)),)
        return (b.and_(x, y) if wide == np.bool_ else b.mul(x, y),)

    shape = [lhs.shape[d] for d in (*lhs_batch, *lhs_free)] + [rhs.shape[d] for d in rhs_free]
    ranges = b.few([lhs.shape[d] for d in lhs_contract])
    combine = "or" if wide == np.bool_ else "add"
    return b.reduce(shape, ranges, [wide], combine, (b.const(0, wide),), body)[0]


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _of_repeated(b: Builder, operands: Sequence[Any], dimension_numbers: Any, result: Any, again: Sequence[set[int]]
                 ) -> Any:
    """A product of operands that are the same all along some dimensions (`again`, of each), as what is broadcast or
    gathered from all devices is: the result is if it has the dimension from one operand alone, and where the other
    takes part in a batch, its dimension is a free one of one product."""
    contract, batch = dimension_numbers
    names: list[list[tuple]] = [[(number, d) for d in range(len(x.shape))] for number, x in enumerate(operands)]
    for kind, dims in (("contracted", contract), ("batch", batch)):
        for number in (0, 1):
            for k, d in enumerate(dims[number]):
                names[number][d] = kind, k
    sizes = {name: size for x, of in zip(operands, names, strict=True) for name, size in zip(of, x.shape, strict=True)}
    summed = [("contracted", k) for k in range(len(contract[0]))]
    together = [("batch", k) for k in range(len(batch[0]))]
    wanted = together + [name for number in (0, 1) for name in names[number] if name[0] == number]

    kept = [[name for d, name in enumerate(of) if d not in once] for of, once in zip(names, again, strict=True)]
    together = [name for name in together if all(name in of for of in kept)]
    lhs, rhs = (_without(b, *x) for x in zip(operands, names, kept, strict=True))
    numbers = [[[of.index(name) for name in shared] for of in kept] for shared in (summed, together)]
    total = _product(b, lhs, rhs, numbers, result)
    found = together + [name for of in kept for name in of if name not in summed and name not in together]
    return b.value([sizes[name] for name in wanted], total.dtype,
                   lambda i: total.at([i[wanted.index(name)] for name in found]))


def _without(b: Builder, x: Any, names: list[tuple], kept: list[tuple]) -> Any:
    """An operand without the dimensions along which it repeats."""
    return x if kept == names else b.value(
        [x.shape[names.index(name)] for name in kept], x.dtype,
        lambda i: x.at([i[kept.index(name)] if name in kept else b.int(0) for name in names]))
