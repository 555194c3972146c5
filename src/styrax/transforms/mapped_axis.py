"""What a batching knows of the axis that it maps over."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

from ..core.programs.primitive import Primitive


class AxisData(NamedTuple):
    """The axis that a batching maps over; `name` is None for one without a name.

    `devices` says that it is an axis of a mesh, `varying` that types tell which values vary along it. Where other
    processes have devices along it, `size` is the number of this one's, and `across` knows of the others. `alike` tells
    a rule that its operands are the same all along the axis, those that have it.
    """

    name: Hashable
    size: Any
    spmd_name: Any = None
    explicit_mesh_axis: Any = None
    devices: bool = False
    varying: bool = False
    across: Across | None = None
    alike: bool = False


class Across(Protocol):
    """An axis along which other processes have devices."""

    size: int

    def rule(self, axis_data: AxisData, primitive: Primitive, args: tuple, dims: tuple,
             params: dict[str, Any]) -> tuple[Any, Any]:
        """The batching rule of a collective over the axis."""


__all__ = ["Across", "AxisData"]
