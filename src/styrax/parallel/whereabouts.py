"""Arrays over the devices of a mesh: what enters a map may be moved there, results tell where they are."""

from __future__ import annotations

from typing import Any

from ..core.arrays import backends
from ..core.arrays.array import Array
from ..core.arrays.devices import ManyDevices, together
from ..core.arrays.mesh import AbstractMesh, Mesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec
from ..core.tracing.trace import Tracer
from ..lax.collectives.device_values import of_device_values_p
from ..lax.collectives.placing import constrain, device_put, reshard_p


def movable(x: Any) -> Any:
    """An array that may be moved to where it is needed."""
    if not isinstance(x, Array) or isinstance(x, Tracer) or not x.committed or x.buffer is None or isinstance(
            x.buffer.device, ManyDevices):
        return x
    out = type(x)(x.aval, x.buffer)
    out._numpy = x._numpy  # by which donation sees that NumPy looks into the memory
    return out


def spread_over(x: Any, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh) -> Any:
    """A result that tells how it is spread; given by what devices have, where it is still to be summed, or was."""
    if spec is not None and (spec.unreduced or spec.reduced):
        return of_device_values_p.bind(x, sharding=NamedSharding(
            mesh.abstract_mesh if isinstance(x, Tracer) else mesh, spec))
    if isinstance(mesh, AbstractMesh) and spec is not None and mesh.explicit_axes and isinstance(x, Tracer):
        return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, spec))
    if spec is None or not isinstance(mesh, Mesh):
        return x
    if not isinstance(x, Tracer):
        return device_put(x, NamedSharding(mesh, spec))
    if mesh.explicit_axes:
        return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, spec))
    return told_to_be(x, spec, mesh)


def told_to_be(x: Tracer, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh) -> Any:
    """A traced value of which the program says on which devices it is, where there are several."""
    if spec is None or not isinstance(mesh, Mesh) or not (backends.several or together(tuple(mesh.devices.flat))):
        return x
    return constrain(x, NamedSharding(mesh, spec))


__all__ = ["movable", "spread_over", "told_to_be"]
