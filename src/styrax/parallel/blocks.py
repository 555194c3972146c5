"""A function over the devices of a mesh as one over all their blocks at once.

An array that is cut along mesh axes becomes one with these axes in front, `[*axes, *block]`, and the function is mapped
over them by name, one after the other, as `vmap` maps: collectives become operations along these dimensions, and the
whole is one program. What does not depend on an axis is not repeated along it; so the mapping knows along which axes
each result varies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays.shardings import PartitionSpec, axes_of
from ..core.tracing.trace import Tracer, get_aval, state
from ..core.types import avals, dtypes
from ..transforms.batch import batch_flat, moveaxis
from ..transforms.linear_call import linear_call
from ..transforms.mapped_axis import Across, AxisData

Flat = Callable[..., Sequence[Any]]
NONE_ACROSS: Mapping[Hashable, Across] = {}


def cut(x: Any, spec: PartitionSpec, sizes: Mapping[Hashable, int]) -> tuple[Any, tuple[Hashable, ...]]:
    """An array with the mesh axes along which it is cut in front, in the mesh's order, and these axes.

    One that is still to be summed along axes, or was, is given by what devices have of it, with these axes in front.
    """
    own = [n for n in sizes if n in spec.unreduced or n in spec.reduced]
    entries = [*((n,) for n in own), *(axes_of(e) for e in spec)]
    names = [n for e in entries for n in e]
    if not names:
        return x, ()
    shape = get_aval(x).shape
    cuts: list[int] = []  # the shape with each cut dimension as (*axes, block)
    at: dict[Hashable, int] = {}
    for d, entry in zip(shape, entries + [()] * (len(shape) - len(entries)), strict=True):
        for n in entry:
            at[n] = len(cuts)
            cuts.append(sizes[n])
        cuts.append(d // math.prod(sizes[n] for n in entry))
    order = tuple(n for n in sizes if n in at)
    front = [at[n] for n in order]
    rest = [i for i in range(len(cuts)) if i not in front]
    x = hooks.lax.transpose(hooks.lax.reshape(x, tuple(cuts)), (*front, *rest))
    return hooks.lax.squeeze(x, tuple(range(len(order), len(order) + len(own)))) if own else x, order


def joined(x: Any, varies: Sequence[Hashable], spec: PartitionSpec, sizes: Mapping[Hashable, int]) -> Any:
    """The array of blocks `[*varies, *block]` that a specification puts together: along axes that it does not name the
    first block is taken. All are said to be equal there, so the derivative is shared among them.

    Where it is still to be summed along axes, or was, it is what devices have of it, with these axes in front.
    """
    own = [n for n in sizes if n in spec.unreduced or n in spec.reduced]
    x, kept = along(x, varies, [*own, *(n for e in spec for n in axes_of(e))], sizes)
    shape = get_aval(x).shape[len(kept):]
    entries = [axes_of(e) for e in spec] + [()] * (len(shape) - len(spec))
    order = [kept.index(n) for n in own]
    for i, entry in enumerate(entries):
        order += [kept.index(n) for n in entry]
        order.append(len(kept) + i)
    whole = (*(sizes[n] for n in own),
             *(d * math.prod(sizes[n] for n in entry) for d, entry in zip(shape, entries, strict=True)))
    return hooks.lax.reshape(hooks.lax.transpose(x, tuple(order)), whole) if kept else x


def along(x: Any, varies: Sequence[Hashable], named: Sequence[Hashable],
          sizes: Mapping[Hashable, int]) -> tuple[Any, list[Hashable]]:
    """Blocks `[*varies, *block]` along named axes alone, and these in order: of others the first block is taken."""
    kept = [n for n in varies if n in named]
    for i, n in reversed(list(enumerate(varies))):
        if n not in named:
            x = _first(x, i)
    for n in named:  # equal along an axis that it is cut along
        if n not in kept:
            x = hooks.lax.broadcast(x, (sizes[n],))
            kept.insert(0, n)
    return x, kept


def _first(x: Any, axis: int) -> Any:
    def first(_: Any, x: Any) -> Any:
        return hooks.lax.index_in_dim(x, 0, axis, keepdims=False)

    aval = get_aval(x)
    if not isinstance(x, Tracer) or not dtypes.issubdtype(aval.dtype, np.inexact):
        return first((), x)

    def shares(_: Any, ct: Any) -> Any:
        share = hooks.lax.div(ct, hooks.lax.full_like(ct, aval.shape[axis]))
        return hooks.lax.broadcast_in_dim(share, aval.shape, tuple(k for k in range(len(aval.shape)) if k != axis))

    return linear_call(first, shares, (), x)


def shared(x: Any, count: int) -> Any:
    """The same value, of whose cotangent each of some devices has a share."""
    if count == 1 or not isinstance(x, Tracer) or not dtypes.issubdtype(get_aval(x).dtype, np.inexact):
        return x
    return linear_call(lambda _, x: x, lambda _, ct: hooks.lax.div(ct, hooks.lax.full_like(ct, count)), (), x)


def over_devices(fun: Flat, blocks: Sequence[tuple[Any, tuple[Hashable, ...]]], sizes: Mapping[Hashable, int],
                 varying: bool, across: Mapping[Hashable, Across] = NONE_ACROSS) -> list[tuple[Any, list[Hashable]]]:
    """Runs a flat function on blocks, as `cut` gives them, over all devices.

    Args:
      varying: whether types tell along which axes values vary, and derivatives are summed where they do not.
      across: the axes along which other processes have devices; `sizes` counts those of this one.

    Returns:
      for each result its blocks, with the axes along which they vary in front, and these axes.
    """
    levels: list[list[bool]] = []
    for name in reversed(sizes):
        fun = _mapped(fun, AxisData(name, sizes[name], devices=True, varying=varying, across=across.get(name)),
                      [name in names for _, names in blocks], levels)
    avals.manual += varying
    try:
        outs = fun(*(x for x, _ in blocks))
    finally:
        avals.manual -= varying
    # the innermost level is noted first
    found = list(zip(sizes, reversed(levels), strict=True))
    return [(x, [name for name, batched in found if batched[i]]) for i, x in enumerate(outs)]


def _mapped(fun: Flat, axis: AxisData, batched: Sequence[bool], levels: list[list[bool]]) -> Flat:
    def mapped(*leaves: Any) -> Sequence[Any]:
        outs, dims = batch_flat(fun, leaves, [0 if b else None for b in batched], axis)
        levels.append([d is not None for d in dims])
        return [x if d is None else moveaxis(x, d, 0) for x, d in zip(outs, dims, strict=True)]

    return mapped


def device_axes() -> tuple[Hashable, ...]:
    """The names of the mesh axes over whose devices a program is being mapped."""
    found: list[Hashable] = []
    trace: Any = state.trace
    while trace is not None:
        axis = getattr(trace, "axis_data", None)
        if axis is not None and axis.devices:
            found.insert(0, axis.name)
        trace = getattr(trace, "parent", None)
    return tuple(found)


__all__ = ["along", "cut", "device_axes", "joined", "over_devices", "shared"]
