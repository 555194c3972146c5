"""Batching rules for the common shapes of primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import hooks
from ..core.programs.primitive import Primitive
from ..core.programs.rules import batchers
from ..core.tracing.trace import get_aval
from ..core.types.typing import PyTree
from .batch import all_at_front, broadcast, moveaxis
from .zeros import add_any_p


def defvectorized(prim: Primitive) -> None:
    """A primitive of arrays that works element by element: the axis stays where it is."""

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, Any]:
        return prim.bind(*args, **params), dims[0]

    batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """A primitive of several arrays of one rank whose axes of size 1 are repeated, or of scalars."""
    batchers[prim] = lambda args, dims, **params: broadcast_batcher(prim, args, dims, **params)


def broadcast_batcher(primitive: Primitive, args: Sequence[Any], dims: Sequence[int | None],
                      **params: Any) -> tuple[Any, Any]:
    avals = [get_aval(x) for x in args]
    first, first_dim = next((a, d) for a, d in zip(avals, dims, strict=True) if d is not None)
    if all((a.shape == first.shape and d == first_dim) or (d is None and not a.shape)
           for a, d in zip(avals, dims, strict=True)):
        out = primitive.bind(*args, **params)
        return out, [first_dim] * len(out) if primitive.multiple_results else first_dim
    ndim = max(a.ndim + (d is None) for a, d in zip(avals, dims, strict=True) if a.ndim or d is not None)
    aligned = [
        _align(x, a, d, ndim) for x, a, d in zip(args, avals, dims, strict=True)
    ]
    out = primitive.bind(*aligned, **params)
    return out, [0] * len(out) if primitive.multiple_results else 0


def _align(x: Any, aval: Any, dim: int | None, ndim: int) -> Any:
    """An operand of rank `ndim` with the mapped axis (or one of size 1) in front; scalars stay scalars."""
    if dim is None:
        if not aval.ndim:
            return x
        shape = (1,) * (ndim - aval.ndim) + aval.shape
        return hooks.lax.broadcast_in_dim(x, shape, tuple(range(ndim - aval.ndim, ndim)))
    x = moveaxis(x, dim, 0)
    if aval.ndim == ndim:
        return x
    rest = aval.shape[:dim] + aval.shape[dim + 1:]
    ones = ndim - aval.ndim
    return hooks.lax.broadcast_in_dim(
        x, (aval.shape[dim], *(1,) * ones, *rest), (0, *range(ones + 1, ndim)))


def defreducer(prim: Primitive, ident: PyTree = None) -> None:
    """A reduction of arrays over its parameter `axes`."""

    def rule(args: Sequence[Any], dims: Sequence[int | None], *, axes: Sequence[int], **params: Any) -> Any:
        bdim = next(d for d in dims if d is not None)
        aligned = [x if d == bdim else broadcast(x, args[0].shape[bdim], bdim) if d is None else moveaxis(x, d, bdim)
                   for x, d in zip(args, dims, strict=True)]
        moved = tuple(a + (a >= bdim) for a in axes)
        out = prim.bind(*aligned, axes=moved, **params)
        out_dim = bdim - sum(a < bdim for a in moved)
        return out, [out_dim] * len(out) if prim.multiple_results else out_dim

    batchers[prim] = rule


def _add_any_batch(args: Any, dims: Any) -> Any:
    x, y = args
    x_dim, y_dim = dims
    if x_dim is not None and x_dim == y_dim:
        return add_any_p.bind(x, y), x_dim
    size = x.shape[x_dim] if x_dim is not None else y.shape[y_dim]
    return add_any_p.bind(*all_at_front(args, dims, size)), 0


batchers[add_any_p] = _add_any_batch


__all__ = ["broadcast_batcher", "defbroadcasting", "defreducer", "defvectorized"]
