"""How arrays are spread over devices: meshes, and shardings over them."""

from __future__ import annotations

from .core.devices import Sharding, SingleDeviceSharding
from .core.mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from .core.shardings import NamedSharding, PartitionSpec, make_single_device_sharding
from .lax.placing import reshard
from .parallel.mapping import Infer

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Infer", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
    "SingleDeviceSharding", "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "reshard", "set_mesh",
    "use_abstract_mesh",
]
