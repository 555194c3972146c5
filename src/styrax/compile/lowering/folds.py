"""Reductions: written out where they are short, else operations of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ...core.types.index_type import ScalarType, scalar_type
from ..ir.expr import Expr, Index
from ..ir.loads import copied
from ..ir.values import Reduce, Scalar, Shape, Stored, Value
from . import float_bits
from .number_types import NARROW_INTS, is_complex

if TYPE_CHECKING:
    from .builder import Builder

HALVES = frozenset((np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)))
UNROLLED = 8  # reductions over so few elements are written out


def reduce(b: Builder, shape: Sequence[Index], ranges: Sequence[Index], dtypes: Sequence[Any], combine: Any,
           init: Sequence[Expr], body: Callable[[tuple[Expr, ...], tuple[Expr, ...]], Any]) -> list[Value]:
    """Folds `body(i, r)` over all r in `ranges`, for every i in `shape`. See the module's guide in README.md."""
    shape, ranges = tuple(shape), tuple(ranges)
    dtypes = [scalar_type(d) for d in dtypes]
    name = combine if isinstance(combine, str) else "fold"
    if name in ("max", "min") and dtypes[0] in HALVES and _is_read(b, shape, ranges, body):
        keys, scalars = float_bits.Keys(dtypes[0], name == "max"), b.scalars
        (found,) = reduce(b, shape, ranges, [keys.dtype], combine, [keys.of(scalars, *init)],
                          lambda i, r: keys.of(scalars, *_as_tuple(body(i, r))))
        return [b.value(shape, dtypes[0], lambda i: keys.half_of(scalars, found.at(i)))]
    fold = _named_combine(b, combine) if isinstance(combine, str) else (
        lambda accs, elems: _as_tuple(combine(b, tuple(accs), tuple(elems))))
    if isinstance(combine, str):  # small floats accumulate in float32
        wide = [np.dtype(np.float32) if d.itemsize < 4 and d.kind not in "iub" and not _narrow(d) else d
                for d in dtypes]
    else:
        wide = dtypes
    init = [b.cast(e, w) for e, w in zip(init, wide, strict=True)]

    def elements(i: tuple[Expr, ...], r: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(b.cast(e, w) for e, w in zip(_as_tuple(body(i, r)), wide, strict=True))

    count = b.product(ranges)
    if isinstance(count, int) and count <= UNROLLED:
        return _unrolled(b, shape, ranges, dtypes, fold, init, elements)
    return _fold(b, shape, ranges, dtypes, wide, fold, name, init, elements)


def _is_read(b: Builder, shape: Shape, ranges: Shape, body: Callable[..., Any]) -> bool:
    """Whether the one value that is folded is read as it is, and is not made of numbers that are wider already."""
    values = _as_tuple(body(b.loop_vars(shape), b.loop_vars(ranges, "r")))
    return len(values) == 1 and copied(values[0]) is not None


def _fold(b: Builder, shape: Shape, ranges: Shape, dtypes: Sequence[ScalarType], wide: Sequence[ScalarType],
          fold: Callable[..., Any], name: str, init: Sequence[Expr], elements: Callable[..., tuple[Expr, ...]]
          ) -> list[Value]:
    """Appends a reduction."""
    outer, inner = b.loop_vars(shape), b.loop_vars(ranges, "r")
    values = elements(outer, inner)
    targets = [b.mutable(w, "a") for w in wide]
    flat_targets = [p for t in targets for p in b.parts(t)]
    flat_init = [p for e in init for p in b.parts(e)]
    flat_values = [p for e in values for p in b.parts(e)]

    def flat_fold(accs: Sequence[Expr], elems: Sequence[Expr]) -> list[Expr]:
        out = fold(_regroup(b, accs, wide), _regroup(b, elems, wide))
        return [p for e in out for p in b.parts(e)]

    results: list[Value] = []
    stores = []
    for target, dtype in zip(targets, dtypes, strict=True):
        final = b.cast(target, dtype)
        if shape == ():
            results.append(Scalar(final))
        else:
            stored = Stored(b, b.buffer(dtype, b.product(shape)), shape, dtype)
            stores.append((stored.buffer, stored.place(outer), final))
            results.append(stored)
    if not any(isinstance(d, int) and d == 0 for d in shape):
        b.ops.append(Reduce([v for v in outer if v.op == "var"], [v for v in inner if v.op == "var"],
                               flat_targets, flat_init, flat_fold, name, flat_values, stores))
    return results


def _unrolled(b: Builder, shape: Shape, ranges: Shape, dtypes: Sequence[ScalarType], fold: Callable[..., Any],
              init: Sequence[Expr], elements: Callable[..., tuple[Expr, ...]]) -> list[Value]:
    def at(i: tuple[Expr, ...]) -> tuple[Expr, ...]:
        accs: Sequence[Expr] | None = None
        for r in np.ndindex(*ranges):  # type: ignore[arg-type]
            values = elements(i, tuple(map(b.int, r)))
            accs = fold(tuple(init) if accs is None else accs, values)
        return tuple(init) if accs is None else tuple(accs)

    known: dict[tuple[Expr, ...], tuple[Expr, ...]] = {}

    def element(k: int) -> Callable[[tuple[Expr, ...]], Expr]:
        def one(i: tuple[Expr, ...]) -> Expr:
            if b.probing:  # what is only looked at may stand for something else
                return b.cast(at(i)[k], dtypes[k])
            if i not in known:
                known[i] = at(i)
            return b.cast(known[i][k], dtypes[k])

        return one

    return [b.value(shape, d, element(k)) for k, d in enumerate(dtypes)]


def _as_tuple(x: Any) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _narrow(dtype: ScalarType) -> bool:
    return dtype in NARROW_INTS


def _regroup(b: Builder, parts: Sequence[Expr], dtypes: Sequence[ScalarType]) -> tuple[Expr, ...]:
    out = []
    it = iter(parts)
    for d in dtypes:
        out.append(b.complex(next(it), next(it)) if is_complex(d) else next(it))
    return tuple(out)


def _named_combine(b: Builder, name: str) -> Callable[[Sequence[Expr], Sequence[Expr]], tuple[Expr, ...]]:
    method = getattr(b, {"and": "and_", "or": "or_"}.get(name, name))
    return lambda accs, elems: tuple(method(x, y) for x, y in zip(accs, elems, strict=True))
