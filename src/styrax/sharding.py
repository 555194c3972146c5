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

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
    "SingleDeviceSharding",
    "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "set_mesh", "use_abstract_mesh",
]
