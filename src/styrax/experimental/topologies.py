"""Devices that programs can be compiled for: those at hand, and those that a plugin knows by a description."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import hooks
from ..core.arrays import backends
from ..core.arrays.devices import Device
from ..core.arrays.mesh import Mesh
from .mesh_utils import create_device_mesh


class TopologyDescription:
    """A set of devices."""

    def __init__(self, devices: list[Device]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices at hand, of a platform or of the default one."""
    return TopologyDescription(devices=list(backends.get(platform).devices()))


def get_topology_desc(topology_name: str = "", platform: str | None = None,
                      **kwargs: str | int | float | bool) -> TopologyDescription:
    """Devices by the name of their arrangement. CPUs have no such names; plugins for other platforms may, also where
    no such device is.

    Programs are compiled for them by shardings over their meshes:
    `jit(f).lower(ShapeDtypeStruct(shape, dtype, sharding=...)).compile()`.

    Args:
      topology_name: the arrangement's name, "v5e:2x4" for TPUs.
      platform: the platform, by default TPUs.
      kwargs: what else the plugin asks for. That of NVIDIA's GPUs wants `target_config`, the text of XLA's description
        of a GPU, and `topology`, "1x1x8" for eight of them in one process.

    Raises:
      NotImplementedError: the platform knows no arrangements.
      RuntimeError: there is no such platform here, or the plugin does not know the arrangement.
    """
    found = hooks.described_devices(platform or "tpu", topology_name, kwargs)
    if found is not None:
        backends.apart = True  # programs for them are no programs for the default device
        return TopologyDescription(devices=list(found))
    if platform in ("tpu", None):
        raise RuntimeError("TPU support is not installed: there are no arrangements of TPUs to look up")
    backends.get(platform)
    raise NotImplementedError(f"topology not implemented for {platform}")


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
              contiguous_submeshes: bool = False) -> Mesh:
    """A mesh of a topology's devices."""
    grid = create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, axis_names)


__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]
