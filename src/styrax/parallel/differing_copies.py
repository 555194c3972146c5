"""Programs on arrays whose copies differ by device (`core.arrays.differing`): what each device makes of its own.

A program runs for all copies at once, mapped over an axis of the devices that has a name of its own (`DevicesAxis`).
While that axis is in scope, what enters a `shard_map` unchecked is gathered along it, so that each device gets its own
copy, and what leaves it differing is mapped along it. A program is traced with the axis in scope where it is called
with such arrays, or makes some.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.arrays import differing
from ..core.arrays.array import Array
from ..core.arrays.devices import Device, SingleDeviceSharding
from ..core.arrays.differing import Devices, differs, in_order
from ..core.arrays.mesh import AbstractMesh, Mesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..core.arrays.shards import part, whole
from ..core.hooks import lax
from ..core.programs.following import Following, put, sharding_of
from ..core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import Tracer, extend_axis_env, get_aval, state
from ..core.types.effects import Effects, NamedAxisEffect
from ..lax.collectives.axis_reductions import take_rows
from ..lax.collectives.own_copies import DevicesAxis, every_copy_p, own_copy_p
from ..transforms.batch import batch_flat, moveaxis
from ..transforms.machine_code import compiled
from ..transforms.mapped_axis import AxisData
from .blocks import joined


def in_scope(devices: Devices) -> Any:
    """A context in which programs are traced for copies that differ."""
    return extend_axis_env(DevicesAxis(devices), len(devices))


def scope(effects: Effects) -> Devices | None:
    """The devices of copies that a program with some effects tells apart, or that are in scope."""
    named = (e.name for e in effects if isinstance(e, NamedAxisEffect))
    return next((n.devices for n in (*named, *state.axis_sizes) if isinstance(n, DevicesAxis)), None)


# -- at the boundary of `shard_map` -------------------------------------------------------------------------


def own_blocks(x: Any, spec: PartitionSpec, mesh: Mesh | AbstractMesh, sizes: Mapping[Hashable, int]) -> Any:
    """What enters a `shard_map` of an array whose copies differ, or may: `[*axes, *block]`, and these axes.

    None for others; of constants of a program the first device's copy is taken, as everywhere.
    """
    if not isinstance(mesh, Mesh) or not isinstance(x, Tracer) and not differs(x):
        return None
    axis = DevicesAxis(in_order(mesh.devices.flat))
    if differs(x) and x.buffer.devices == axis.devices and state.trace.is_eval:
        rows = x.buffer.rows
    elif isinstance(x, Tracer) and axis in state.axis_sizes:
        rows = every_copy_p.bind(x, axis=axis)
    else:
        return None
    x = _in_order(rows, axis.devices, list(mesh.devices.flat))
    x = lax.reshape(x, (*mesh.devices.shape, *get_aval(x).shape[1:]))
    axes = list(mesh.axis_names)
    for i, n in reversed(list(enumerate(axes))):
        if n not in sizes:  # an axis that the map leaves alone
            x = lax.index_in_dim(x, 0, i, keepdims=False)
            axes.remove(n)
    for dim, entry in enumerate(spec):
        for n in axes_of(entry):  # of each device's copy its part
            at = len(axes) + dim
            shape = get_aval(x).shape
            x = lax.reshape(x, (*shape[:at], sizes[n], shape[at] // sizes[n], *shape[at + 1:]))
            x = _diagonal(x, axes.index(n), at)
    return x, tuple(axes)


def _diagonal(x: Any, axis: int, other: int) -> Any:
    """The elements whose indices in two dimensions of a size are alike, without the second one, which comes later."""
    size = get_aval(x).shape[axis]
    x = moveaxis(moveaxis(x, other, 0), axis + 1, 0)
    rest = get_aval(x).shape[2:]
    rows = take_rows(lax.reshape(x, (size * size, *rest)), np.arange(size) * (size + 1))
    return moveaxis(rows, 0, axis)


def _in_order(rows: Any, given: Sequence[Device], wanted: Sequence[Device]) -> Any:
    """Rows of devices for them in another order."""
    order = [given.index(d) for d in wanted]
    return rows if order == sorted(order) else take_rows(rows, np.array(order))


def with_own_copies(x: Any, varies: Sequence[Hashable], spec: PartitionSpec, mesh: Mesh | AbstractMesh,
                    sizes: Mapping[Hashable, int]) -> Any:
    """The array that devices have blocks `[*varies, *block]` of, different ones along axes that its specification does
    not name. None where there are no such axes, or only the first copy is wanted."""
    others = [n for n in sizes if n in varies and n not in {m for e in spec for m in axes_of(e)}]
    if not others or spec.unreduced or spec.reduced or not isinstance(mesh, Mesh):
        return None
    axis = DevicesAxis(in_order(mesh.devices.flat))
    if isinstance(x, Tracer) and axis not in state.axis_sizes:
        differing.noticed.devices.append(axis.devices)
        return None
    shape = get_aval(x).shape
    ones = lax.reshape(x, (*shape[:len(varies)], *(1,) * len(others), *shape[len(varies):]))
    copies = joined(ones, varies, PartitionSpec(*others, *spec), sizes)
    inner = get_aval(copies).shape[len(others):]
    grid = tuple(mesh.devices.shape)
    at = tuple(mesh.axis_names.index(n) for n in others)
    at = (*at, *range(len(grid), len(grid) + len(inner)))
    copies = lax.broadcast_in_dim(copies, (*grid, *inner), at)
    rows = _in_order(lax.reshape(copies, (len(axis.devices), *inner)), list(mesh.devices.flat), axis.devices)
    if isinstance(x, Tracer):
        return own_copy_p.bind(rows, axis=axis)
    return differing.of_rows(rows, NamedSharding(mesh, spec))


# -- programs -----------------------------------------------------------------------------------------------


class OnCopies:
    """The code of a program on arrays whose copies differ, which gives such arrays where results depend on them."""

    __slots__ = ("closed", "codes", "devices", "donated", "name", "places")

    def __init__(self, closed: ClosedJaxpr, name: str, donated: Sequence[bool] | None,
                 said: tuple[Sequence[Any], Sequence[Any]], devices: Devices):
        self.closed = closed
        self.name = name
        self.donated = donated or (False,) * len(closed.in_avals)
        self.devices = devices
        self.places = Following(_no_code, closed, name, *said)
        self.codes: dict[tuple[bool, ...], tuple[Callable[..., list[Any]], list[bool]]] = {}

    def __call__(self, *args: Any) -> list[Any]:
        where = self.places.where([sharding_of(x) for x in args])
        mapped = tuple([differs(x) and x.buffer.devices == self.devices for x in args])
        if mapped not in self.codes:
            self.codes[mapped] = self._compiled(args, mapped)
        code, kinds = self.codes[mapped]
        outs = code(*[x.buffer.rows if m else type(x)(x.aval, x.buffer) if isinstance(x, Array) else x
                      for x, m in zip(args, mapped, strict=True)])
        told = where or [None] * len(outs)
        if where is not None:
            one = [i for i, varies in enumerate(kinds) if not varies]
            put([outs[i] for i in one], [where[i] for i in one])
        outs = [self._spread(x, at) if varies else x for x, varies, at in zip(outs, kinds, told, strict=True)]
        for x, gone in zip(args, self.donated, strict=True):
            if gone and isinstance(x, Array):
                x.delete()
        return outs

    def _spread(self, rows: Array, where: Any) -> Array:
        """The array of which devices have these copies, or parts of these under a sharding that spreads it."""
        everywhere = NamedSharding(Mesh(np.array(self.devices), ("devices",)), PartitionSpec())
        if isinstance(where, NamedSharding) and not where.is_fully_replicated:
            x = differing.of_rows(rows, everywhere)
            places = where.addressable_devices_indices_map(x.shape)
            return whole(x.shape, where, {d: part(x, index, d) for d, index in places.items()})
        x = differing.of_rows(rows, where if isinstance(where, NamedSharding) else everywhere)
        return differing.copy_on(x, where._device) if isinstance(where, SingleDeviceSharding) else x

    def _compiled(self, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[Callable[..., list[Any]], list[bool]]:
        kinds: list[bool] = []
        closed = self.closed
        axis = AxisData(DevicesAxis(self.devices), len(self.devices))

        def each(*xs: Any) -> list[Any]:
            return eval_jaxpr(closed.jaxpr, closed.consts, *xs)

        def of_all(*xs: Any) -> list[Any]:
            outs, dims = batch_flat(each, xs, [0 if m else None for m in mapped], axis)
            kinds[:] = [d is not None for d in dims]
            return [x if d is None else moveaxis(x, d, 0) for x, d in zip(outs, dims, strict=True)]

        avals = [(x.buffer.rows if m else x) for x, m in zip(args, mapped, strict=True)]
        return compiled(trace_to_jaxpr(of_all, [get_aval(x) for x in avals]), self.name), kinds


def _no_code(*args: Any) -> list[Any]:
    raise AssertionError("it only tells where results are")


def on_copies(closed: ClosedJaxpr, name: str, donated: Sequence[bool] | None,
              said: tuple[Sequence[Any], Sequence[Any]], args: Iterable[Any] = ()) -> OnCopies | None:
    """The code of a program for arrays whose copies differ; None where there are none, and it makes none."""
    devices = differing.devices_of(args) or scope(closed.effects)
    return None if devices is None else OnCopies(closed, name, donated, said, devices)


__all__ = ["DevicesAxis", "OnCopies", "in_scope", "on_copies", "own_blocks", "scope", "with_own_copies"]
