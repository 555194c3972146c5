"""`shard_map` and `pmap` where a mesh has devices of several processes: each maps the body over its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays.array import Array
from ..core.arrays.devices import Device
from ..core.arrays.mesh import Mesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec
from ..core.tracing.trace import Tracer
from ..processes.across import cut_p, join_p, named
from ..processes.crossings import Crossing, crossings
from ..processes.mesh_positions import Places
from ..transforms.mapped_axis import Across
from .blocks import along


def local_sizes(mesh: Mesh, names: Sequence[Hashable]) -> tuple[dict[Hashable, int], Mapping[Hashable, Across]]:
    """How many positions this process's devices have along axes, and those along which others have devices, too."""
    own = Places.of(mesh).own
    return {n: len(own[n]) for n in names}, crossings(mesh, names)


@lru_cache(maxsize=64)
def axis(devices: tuple[Device, ...], name: Hashable) -> Across:
    """An axis along devices of several processes."""
    return Crossing(Mesh(np.array(devices), (name,)), name)


def cut(x: Any, spec: PartitionSpec | None, mesh: Mesh) -> tuple[Any, tuple[Hashable, ...]]:
    """This process's blocks of an argument, and the mesh axes in front of them.

    Raises ValueError for an array that is committed to other devices.
    """
    if isinstance(x, Array) and not isinstance(x, Tracer) and x.committed and x.devices() != set(mesh.devices.flat):
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got an argument with shape {x.aval.str_short()} "
            f"and with device ids {sorted(d.id for d in x.devices())} and shard_map with device ids "
            f"{[d.id for d in mesh.devices.flat]}")
    sharding = NamedSharding(mesh, PartitionSpec() if spec is None else spec)
    return cut_p.bind(x, sharding=sharding), named(sharding)


def joined(x: Any, varies: Sequence[Hashable], spec: PartitionSpec | None, mesh: Mesh,
           sizes: Mapping[Hashable, int]) -> Any:
    """The array of all processes' blocks `[*varies, *block]`."""
    sharding = NamedSharding(mesh, PartitionSpec() if spec is None else spec)
    names = named(sharding)
    x, kept = along(x, varies, names, sizes)
    order = [kept.index(n) for n in names]
    if order != sorted(order):
        x = hooks.lax.transpose(x, (*order, *range(len(order), np.ndim(x))))
    return join_p.bind(x, sharding=sharding, total=False)


__all__ = ["axis", "cut", "joined", "local_sizes"]
