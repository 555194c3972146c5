"""`associative_scan`: all prefixes of an associative operation, in parallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import get_aval
from styrax.core.trees import tree
from styrax.core.types.dims import is_named
from styrax.core.types.typing import PyTree


@api_boundary
def associative_scan(fn: Callable[[Any, Any], Any], elems: PyTree, reverse: bool = False, axis: int = 0) -> PyTree:
    """The running results of an associative operation along an axis.

    Element `i` of the result is `fn(... fn(fn(e0, e1), e2) ..., ei)`; the work is arranged in a tree
    of logarithmic depth.

    Args:
      fn: function of two trees of arrays, each a slice of `elems` along `axis` of any length, that
        combines them element by element and returns as many arrays of the same shapes, in any containers.
      elems: tree of arrays, all of one size along `axis`.
      reverse: combine from the end.
      axis: the axis to scan along.

    Returns:
      a tree of the structure of `elems`, of the shapes and dtypes of what `fn` returns for all of them: element `i`
      along `axis` combines all elements up to `i` (from `i` on with `reverse`).

    Raises:
      TypeError: `fn` is not callable.
      ValueError: the arrays differ in size along `axis`, or have no such axis, or `fn` returns more or fewer.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.associative_scan(jnp.multiply, jnp.arange(1, 5))
      Array([ 1,  2,  6, 24], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    flat, treedef = tree.tree_flatten(elems)
    if not flat:
        return elems
    ndim = get_aval(flat[0]).ndim
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    axis %= ndim
    if reverse:
        flat = [lax.rev(x, (axis,)) for x in flat]
    shapes = [get_aval(x).shape for x in flat]
    size = shapes[0][axis]
    if not all(s[axis] == size for s in shapes[1:]):
        raise ValueError(
            f"Array inputs to associative_scan must have the same first dimension. (saw: {shapes})"
        )

    if is_named(size):
        raise NotImplementedError(f"associative scan over axis of non-constant size: {size}")

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        out = fn(tree.tree_unflatten(treedef, a), tree.tree_unflatten(treedef, b))
        leaves = tree.tree_leaves(out)  # in the order of the arguments', whatever containers hold them
        if len(leaves) != len(a):
            raise ValueError("associative_scan: fn must return as many arrays as each argument has, "
                             f"expected {len(a)}, got {len(leaves)}")
        return leaves

    scanned = _scan(combine, flat, size, axis)
    if reverse:
        scanned = [lax.rev(x, (axis,)) for x in scanned]
    return tree.tree_unflatten(treedef, scanned)


def _scan(combine: Callable, elems: list[Any], size: int, axis: int) -> list[Any]:
    if size < 2:
        return elems

    def take(x: Any, start: int, limit: int, stride: int) -> Any:
        return lax.slice_in_dim(x, start, limit, stride=stride, axis=axis)

    # Neighbours combined, then scanned, are the results at odd positions; from these the even ones.
    half = size // 2
    pairs = combine(
        [take(x, 0, size - 1, 2) for x in elems],
        [take(x, 1, size, 2) for x in elems],
    )
    odd = _scan(combine, pairs, half, axis)
    before = [take(x, 0, half - 1, 1) for x in odd] if size % 2 == 0 else odd
    even = combine(before, [take(x, 2, size, 2) for x in elems])
    even = [lax.concatenate([take(x, 0, 1, 1), y], axis) for x, y in zip(elems, even, strict=True)]
    return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _interleave(a: Any, b: Any, axis: int) -> Any:
    """`a0 b0 a1 b1 …`, where `a` is as long as `b` or one longer."""
    aval = get_aval(a)
    longer = aval.shape[axis] - get_aval(b).shape[axis]

    def spread(x: Any, low: int, high: int) -> Any:
        widths = [(0, 0, 0)] * aval.ndim
        widths[axis] = (low, high, 1)
        return lax.pad(x, np.zeros((), aval.dtype)[()], widths)

    join = lax.bitwise_or if aval.dtype == np.bool_ else lax.add
    return join(spread(a, 0, 1 - longer), spread(b, 1, longer))


__all__ = ["associative_scan"]
