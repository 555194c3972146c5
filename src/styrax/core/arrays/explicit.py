"""Explicit sharding: how an array is spread over axes of type `Explicit` is a part of its type.

Types name explicit axes only, over meshes without their devices: a type is known before there are arrays. Which spread
the results of a primitive have is told by its trait `sharding` (see `core.programs.spreading`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..types.dims import is_symbolic
from .devices import Device, ManyDevices
from .mesh import AbstractMesh, AxisType, Mesh, state, told_by_types
from .shardings import NamedSharding, PartitionSpec, axes_of, over_no_mesh


def sharding_of_type(sharding: Any, shape: tuple[Any, ...]) -> NamedSharding | None:
    """What the type of an array of a shape tells of its sharding; None where no axis of the mesh is explicit.

    Raises:
      ValueError: the sharding is of more dimensions than the array, or does not divide one evenly.
    """
    if not isinstance(sharding, NamedSharding) or not sharding.mesh.explicit_axes:
        return None
    told = _over_explicit(sharding.mesh.abstract_mesh, sharding.spec, len(shape))
    check_divides(told, shape)
    return told


def _over_explicit(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> NamedSharding:
    return _told(mesh, spec, ndim, told_by_types(mesh.explicit_axes, mesh.shape))


@lru_cache(4096)
def _told(mesh: AbstractMesh, spec: PartitionSpec, ndim: int, explicit: tuple[Any, ...]) -> NamedSharding:
    if len(spec) > ndim:
        raise ValueError(f"the partition {spec} has {len(spec)} entries for an array of rank {ndim}")
    entries = [tuple(n for n in axes_of(e) if n in explicit) or None for e in spec]
    return NamedSharding(mesh, spec.update(partitions=(*entries, *(None,) * (ndim - len(spec)))))


def check_divides(sharding: NamedSharding, shape: tuple[Any, ...]) -> None:
    """Raises ValueError for a dimension that the axes at it do not divide evenly."""
    sizes = sharding.mesh.shape
    for i, (entry, d) in enumerate(zip(sharding.spec, shape, strict=False)):
        if entry is None:
            continue
        parts = 1
        for name in axes_of(entry):
            parts *= sizes[name]
        if not is_symbolic(d) and d % parts:
            raise ValueError(f"Sharding spec {tuple(axes_of(entry))} implies that array axis {i} is partitioned {parts}"
                             f" times, but does not evenly divide the dimension size {d}. Got shape: {shape} and "
                             f"sharding {sharding}")


def is_replicated(sharding: NamedSharding | None) -> bool:
    """Whether a type says nothing but, at most, which mesh the array is on."""
    return sharding is None or not any(sharding.spec) and not sharding.spec.unreduced and not sharding.spec.reduced


def is_unsummed(sharding: NamedSharding | None) -> bool:
    """Whether a type says that sums along mesh axes are still to be made."""
    return sharding is not None and bool(sharding.spec.unreduced)


def by_default(ndim: int) -> NamedSharding:
    """The sharding of arrays of a rank about which nothing is said: replicated over the mesh in force."""
    mesh = state.abstract
    return over_no_mesh(ndim) if mesh.empty else _over_explicit(mesh, PartitionSpec(), ndim)


def sharding_text(sharding: NamedSharding, shape: tuple[Any, ...]) -> list[str]:
    """The dimensions of a type as text: `8@X` for one of size 8 that is spread over axis X."""
    return [str(d) if e is None else f"{d}@{e}" if not isinstance(e, tuple) else f"{d}@({','.join(map(str, e))})"
            for d, e in zip(shape, sharding.spec, strict=True)]


def axes_text(axes: Iterable[Any]) -> str:
    """Axes as text, in brackets where there are several."""
    names = sorted(map(str, axes))
    return names[0] if len(names) == 1 else f"({','.join(names)})"


def on_devices(sharding: NamedSharding, device: Device | ManyDevices) -> NamedSharding:
    """The sharding of an array on a device, or on it and others of its platform, by what its type tells. ValueError for
    a mesh of more devices than there are."""
    mesh = state.concrete
    if mesh.abstract_mesh != sharding.mesh:
        count, devices = sharding.mesh.size, [device]
        if count > 1:
            devices = list(device.devices if isinstance(device, ManyDevices) else device.client.devices())
            if count > len(devices):
                raise ValueError(f"an array over {sharding.mesh} needs {count} devices; there are {len(devices)}")
        grid = np.empty(count, object)
        grid[:] = devices[:count]
        mesh = Mesh(grid.reshape(sharding.mesh.axis_sizes), sharding.mesh.axis_names, sharding.mesh.axis_types)
    return NamedSharding(mesh, sharding.spec)


def tells_sharding(avals: Iterable[Any], params: Iterable[Any] = ()) -> bool:
    """Whether operands of these types, parameters or the mesh in force tell how results are spread."""
    return (bool(state.abstract.explicit_axes) or any(a.given_sharding is not None for a in avals)
            or any(isinstance(p, NamedSharding) and p.mesh.explicit_axes for p in params))


def along(axis: int, ndim: int, entry: Any) -> NamedSharding | None:
    """The sharding along one dimension, over the mesh in force; None where that has no explicit axes."""
    mesh = state.abstract
    if not mesh.explicit_axes:
        return None
    return NamedSharding(mesh, PartitionSpec(*(None,) * axis, entry, *(None,) * (ndim - axis - 1)))


def permuted(sharding: NamedSharding | None, order: Sequence[int]) -> NamedSharding | None:
    """The sharding of an array whose dimensions stand in another order."""
    if sharding is None:
        return None
    spec = sharding.spec
    parts = (*spec, *(None,) * (max(order, default=-1) + 1 - len(spec)))
    return sharding.update(spec=spec.update(partitions=tuple(parts[d] for d in order)))


def with_mapped_axis(sharding: Any, position: int, x: Any, dim: int | None) -> Any:
    """What is asked for of the results of a mapped operation, given what is asked for of one: a dimension more at
    `position`, spread as dimension `dim` of the type `x` of an operand is. None stays None."""
    if sharding is None:
        return None
    told = None if dim is None else getattr(x, "given_sharding", None)
    spec = sharding.spec if isinstance(sharding, NamedSharding) else sharding
    parts = (*spec, *(None,) * (position - len(spec)))
    spec = spec.update(partitions=(*parts[:position], None if told is None else told.spec[dim], *parts[position:]))
    return sharding.update(spec=spec) if isinstance(sharding, NamedSharding) else spec


class Committed:
    """Code whose results are committed to the mesh that their types tell of."""

    __slots__ = ("code",)

    def __init__(self, code: Callable[..., list[Any]]):
        self.code = code

    def __call__(self, *arrays: Any) -> list[Any]:
        outs = self.code(*arrays)
        for x in outs:
            x.committed = True
        return outs


def resolved(sharding: Any) -> Any:
    """A `PartitionSpec` over the mesh in force; shardings as they are. ValueError where no mesh is in force."""
    if not isinstance(sharding, PartitionSpec):
        return sharding
    mesh = state.abstract
    if mesh.empty:
        raise ValueError("Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
                         f"NamedSharding instance or set the mesh with jax.set_mesh. Got {sharding}")
    return NamedSharding(mesh, sharding)


def check_explicit(sharding: NamedSharding, where: str = "") -> None:
    """Raises ValueError for a partition over axes whose use the types do not tell."""
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    for name in (n for e in sharding.spec for n in axes_of(e)):
        if types[name] is not AxisType.Explicit:
            raise ValueError(f"PartitionSpec {where}cannot contain axis names that are of type Auto or Manual. Got "
                             f"PartitionSpec: {sharding.spec} with axis name: {name} of type: {types[name]}.")


__all__ = ["Committed", "along", "axes_text", "by_default", "check_divides", "check_explicit", "is_replicated",
           "is_unsummed", "on_devices", "permuted", "resolved", "sharding_of_type", "sharding_text",
           "tells_sharding", "with_mapped_axis"]
