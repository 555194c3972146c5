"""How arrays are spread over devices: meshes, and shardings over them."""

from __future__ import annotations

from .core.arrays.devices import Sharding, SingleDeviceSharding
from .core.arrays.mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from .core.arrays.shardings import NamedSharding, PartitionSpec, UnreducedKind, make_single_device_sharding
from .core.types.manual_axes import ManualAxisType
from .lax.collectives.named_axes import no_collectives
from .lax.collectives.placing import reshard
from .parallel.axes import auto_axes, explicit_axes
from .parallel.shard_mapping import Infer

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Infer", "ManualAxisType", "Mesh", "NamedSharding", "PartitionSpec",
    "Sharding", "SingleDeviceSharding", "UnreducedKind", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
    "make_single_device_sharding", "no_collectives", "reshard", "set_mesh", "use_abstract_mesh",
]
