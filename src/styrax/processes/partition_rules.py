"""How operations are done on the blocks of arrays over several processes: which dimensions may be cut, and what of the
parameters changes. What is refused here (None) is computed whole."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..core.programs.jaxpr import JaxprEqn
from .partition import Entries, Partition, Rule, Split, Step, aval_of

REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod", "reduce_and": "and",
              "reduce_or": "or", "reduce_xor": "xor"}
# operations along a dimension, which alone may not be cut -> the parameter that names it
ALONG = {"cumsum": "axis", "cumprod": "axis", "cummax": "axis", "cummin": "axis", "cumlogsumexp": "axis",
         "sort": "dimension", "concatenate": "dimension", "split": "axis", "rev": "dimensions"}


def step(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    """How an operation with a split operand is done, None where it has to be done whole."""
    name = eqn.primitive.name
    if eqn.primitive.traits.elementwise or name in ("copy", "stop_gradient", "add_any"):
        return _elementwise(work, eqn, ins)
    if name in REDUCTIONS:
        return _reduction(work, eqn, ins)
    found: Rule | None = globals().get(f"_{name}")
    if found is not None:
        return found(work, eqn, ins)
    if name in ALONG:
        at = eqn.params[ALONG[name]]
        return _along(eqn, ins, at if isinstance(at, tuple) else (at,))
    return None


def _entries(x: Any) -> Entries:
    return x.entries if isinstance(x, Split) else ((),) * len(np.shape(x))


def _most(found: Sequence[Entries]) -> Entries:
    """The entries with the most mesh axes; the first of these."""
    return max(found, key=lambda e: sum(map(len, e)))


def _elementwise(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    shape = aval_of(eqn.outvars[0]).shape
    full = [x for x in ins if isinstance(x, Split) and x.shape == shape]
    if not full or any(aval_of(v).shape != shape for v in eqn.outvars):
        return None
    entries = _most([x.entries for x in full])
    each: list[Entries | None] = []
    for x in ins:  # dimensions of size 1 are repeated
        own = np_shape(x)
        if own and (len(own) != len(shape) or any(a not in (1, b) for a, b in zip(own, shape, strict=True))):
            return None
        each.append(tuple(e if a == b else () for e, a, b in zip(entries, own, shape, strict=True)) if own else None)
    return Step(each, [entries] * len(eqn.outvars), eqn.params)


def np_shape(x: Any) -> tuple[int, ...]:
    """The shape of a value, split or whole."""
    return x.shape if isinstance(x, Split) else np.shape(x)


def _along(eqn: JaxprEqn, ins: Sequence[Any], fixed: Sequence[int]) -> Step | None:
    """Operands alike but for some dimensions, which are not cut."""
    entries = list(_most([_entries(x) for x in ins]))
    for a in fixed:
        entries[a] = ()
    if not any(entries):
        return None
    return Step([tuple(entries)] * len(ins), [tuple(entries)] * len(eqn.outvars), eqn.params)


def _reduction(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    axes = eqn.params["axes"]
    entries = _entries(ins[0])
    sums = tuple(n for a in axes for n in entries[a])
    out = tuple(e for i, e in enumerate(entries) if i not in axes)
    return Step([entries], [out], _plain(eqn.params), (sums, REDUCTIONS[eqn.primitive.name]) if sums else None)


def _plain(params: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Parameters for blocks, which tell of no sharding."""
    return {k: None if k in ("sharding", "out_sharding") else v for k, v in {**params, **changes}.items()}


def _argmax(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    entries, axes = _entries(ins[0]), eqn.params["axes"]
    kept = tuple(() if i in axes else e for i, e in enumerate(entries))
    return Step([kept], [tuple(e for i, e in enumerate(kept) if i not in axes)], eqn.params) if any(kept) else None


_argmin = _argmax


def _transpose(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    entries = _entries(ins[0])
    return Step([entries], [tuple(entries[i] for i in eqn.params["permutation"])], eqn.params)


def _squeeze(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    entries, gone = _entries(ins[0]), eqn.params["dimensions"]
    return Step([entries], [tuple(e for i, e in enumerate(entries) if i not in gone)], eqn.params)


def _broadcast_in_dim(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    if len(ins) > 1:
        return None
    entries, shape = _entries(ins[0]), eqn.params["shape"]
    out: list[Any] = [()] * len(shape)
    for e, d in zip(entries, eqn.params["broadcast_dimensions"], strict=True):
        out[d] = e
    return Step([entries], [tuple(out)], _plain(eqn.params, shape=_block(work, shape, out)))


def _parts(work: Partition, entry: Any) -> int:
    return math.prod(work.mesh.shape[n] for n in entry)


def _block(work: Partition, shape: Sequence[int], entries: Sequence[Any]) -> tuple[int, ...]:
    return tuple(d // _parts(work, e) for d, e in zip(shape, entries, strict=True))


def _reshape(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    """Groups of dimensions of equal size become one another; of a group the first may be cut."""
    if eqn.params.get("dimensions") is not None or len(ins) > 1:
        return None
    old, new, entries = ins[0].shape, eqn.params["new_sizes"], list(_entries(ins[0]))
    if 0 in old:
        return None
    out: list[Any] = [()] * len(new)
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = i, j
        m, i = (old[i], i + 1) if i < len(old) else (1, i)
        n, j = (new[j], j + 1) if j < len(new) else (1, j)
        while m != n:
            if m < n:
                m, i = m * old[i], i + 1
            else:
                n, j = n * new[j], j + 1
        firsts = [k for k in range(a, i) if old[k] > 1], [k for k in range(b, j) if new[k] > 1]
        cut = [k for k in range(a, i) if entries[k]]
        if not cut:
            continue
        parts = _parts(work, entries[cut[0]])
        if cut != firsts[0][:1] or new[firsts[1][0]] % parts:
            return None
        out[firsts[1][0]] = entries[cut[0]]
    return Step([tuple(entries)], [tuple(out)], _plain(eqn.params, new_sizes=_block(work, new, out)))


def _slice(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    params, shape = eqn.params, ins[0].shape
    strides = params["strides"] or (1,) * len(shape)
    entries = tuple(e if (a, b, s) == (0, d, 1) else () for e, a, b, s, d in zip(
        _entries(ins[0]), params["start_indices"], params["limit_indices"], strides, shape, strict=True))
    if not any(entries):
        return None
    block = _block(work, shape, entries)
    limits = tuple(n if e else b for n, b, e in zip(block, params["limit_indices"], entries, strict=True))
    return Step([entries], [entries], {**params, "limit_indices": limits})


def _pad(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    entries = tuple(e if tuple(c) == (0, 0, 0) else () for e, c in zip(
        _entries(ins[0]), eqn.params["padding_config"], strict=True))
    return Step([entries, None], [entries], eqn.params) if any(entries) else None


def _select_n(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    return _elementwise(work, eqn, ins)


def _clamp(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    return _elementwise(work, eqn, ins)


def _gather(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    """The indices may be cut, and dimensions of the operand of which windows have all."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    indices = _entries(ins[1])
    if indices[-1] != ():
        return None
    used = {n for e in indices for n in e}
    shape = np_shape(ins[0])
    alike = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    fixed = {*numbers.collapsed_slice_dims, *numbers.start_index_map, *alike}
    operand = tuple(indices[alike[i]] if i in alike else e if s == d and i not in fixed and not used & set(e) else ()
                    for i, (e, s, d) in enumerate(zip(_entries(ins[0]), sizes, shape, strict=True)))
    if not any(indices) and not any(operand):
        return None
    batch = iter(indices[:-1])
    windows = iter(e for i, e in enumerate(operand) if i not in (*numbers.collapsed_slice_dims, *alike))
    out = tuple(next(windows) if i in numbers.offset_dims else next(batch) for i in range(aval_of(eqn.outvars[0]).ndim))
    return Step([operand if any(operand) else None, indices if any(indices) else None], [out],
                {**eqn.params, "slice_sizes": tuple(s if i in alike else s // _parts(work, e)
                                                    for i, (s, e) in enumerate(zip(sizes, operand, strict=True)))})


def _dynamic_slice(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    sizes = eqn.params["slice_sizes"]
    entries = tuple(e if s == d else () for e, s, d in zip(_entries(ins[0]), sizes, np_shape(ins[0]), strict=True))
    if not any(entries) or any(isinstance(x, Split) for x in ins[1:]):
        return None
    return Step([entries, *[None] * (len(ins) - 1)], [entries],
                {**eqn.params, "slice_sizes": _block(work, sizes, entries)})


def _dynamic_update_slice(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    whole = [a == b for a, b in zip(np_shape(ins[0]), np_shape(ins[1]), strict=True)]
    entries = tuple(e if w else () for e, w in zip(_most([_entries(x) for x in ins[:2]]), whole, strict=True))
    if not any(entries) or any(isinstance(x, Split) for x in ins[2:]):
        return None
    return Step([entries, entries, *[None] * (len(ins) - 2)], [entries], eqn.params)


def _leading(work: Partition, eqn: JaxprEqn, ins: Sequence[Any], inner: int) -> Step | None:
    """Operations on the last dimensions: those before may be cut."""
    kept = _most([_entries(x)[:-inner] for x in ins])
    if not any(kept):
        return None
    return Step([(*kept, *[()] * inner) for _ in ins],
                [(*kept, *[()] * (aval_of(v).ndim - len(kept))) for v in eqn.outvars], eqn.params)


def _fft(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    return _leading(work, eqn, ins, len(eqn.params["fft_lengths"]))


def _cholesky(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    return _leading(work, eqn, ins, 2)


_triangular_solve = _cholesky


def _dot_general(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> Step | None:
    """Free and batch dimensions stay cut, each mesh axis at one of them; sums over cut dimensions are partial."""
    ((lc, rc), (lb, rb)) = eqn.params["dimension_numbers"]
    left, right = list(_entries(ins[0])), list(_entries(ins[1]))
    taken: set[Hashable] = set()

    def free(entries: list[Any], dims: Sequence[int]) -> None:
        for d in dims:
            entries[d] = () if taken & set(entries[d]) else entries[d]
            taken.update(entries[d])

    for a, b in zip(lb, rb, strict=True):
        left[a] = right[b] = left[a] or right[b]
    free(left, lb)
    for a, b in zip(lb, rb, strict=True):
        right[b] = left[a]
    free(left, [i for i in range(len(left)) if i not in (*lc, *lb)])
    contracted: list[Hashable] = []
    others = {n for i in range(len(right)) if i not in (*rc, *rb) for n in right[i]}
    for a, b in zip(lc, rc, strict=True):
        shared = left[a] if left[a] == right[b] else left[a] or right[b]
        if taken & set(shared) or left[a] != right[b] and others & set(shared):
            shared = ()
        left[a] = right[b] = shared
        taken.update(shared)
        contracted += shared
    free(right, [i for i in range(len(right)) if i not in (*rc, *rb)])
    if not any(left) and not any(right):
        return None
    out = (*(left[i] for i in lb), *(left[i] for i in range(len(left)) if i not in (*lc, *lb)),
           *(right[i] for i in range(len(right)) if i not in (*rc, *rb)))
    return Step([tuple(left) if any(left) else None, tuple(right) if any(right) else None], [out], _plain(eqn.params),
                (tuple(contracted), "sum") if contracted else None)


__all__ = ["step"]
