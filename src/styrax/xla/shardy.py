"""Shardings as Shardy's dialect writes them: meshes, `#sdy.sharding<@mesh, [{"x"}, {}]>`, constraints on values."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from styrax.core.arrays.devices import Sharding
from styrax.core.arrays.gspmd_sharding import GSPMDSharding
from styrax.core.arrays.shardings import NamedSharding
from styrax.core.types.physical import physical_aval


def _axes(names: Sequence[Any], more: Sequence[str] = ()) -> str:
    return "{" + ", ".join([*(json.dumps(str(n)) for n in names), *more]) + "}"


class Meshes:
    """The meshes that a module names, and how many devices it is for."""

    def __init__(self) -> None:
        self.names: dict[tuple[tuple[Any, int], ...], str] = {}
        self.devices = 1
        self.single = False  # whether some operation is done by one device alone

    def name(self, shape: tuple[tuple[Any, int], ...]) -> str:
        """`mesh`, `mesh_0`, …: the symbol of a mesh of these axes."""
        if shape not in self.names:
            self.names[shape] = f"mesh_{len(self.names) - 1}" if self.names else "mesh"
            self.devices = max(self.devices, math.prod(size for _, size in shape))
        return self.names[shape]

    def sharding(self, told: Sharding | None, ndim: int, of_type: bool = False) -> str:
        """`<@mesh, [{"x"}, {?}]>`, or nothing for what is no sharding over a mesh. That of a type leaves open what axes
        do that are not explicit."""
        if not isinstance(told, (NamedSharding, GSPMDSharding)) or isinstance(told, NamedSharding) and told.mesh.empty:
            return ""
        found = told._to_sdy_sharding(ndim)
        more = ["?"] if of_type and isinstance(told, NamedSharding) and (
            len(told.mesh.explicit_axes) < len(told.mesh.axis_names)) else []
        dims = ", ".join("{?}" if e is None else _axes(e, more) for e in found.dim_shardings)
        sums = f", unreduced={_axes(found.unreduced)}" if found.unreduced else ""
        return f"<@{self.name(found.mesh_shape)}, [{dims}]{sums}>"

    def attributes(self, notes: Sequence[str], told: Sequence[Sharding | None], avals: Sequence[Any]) -> list[str]:
        """The attributes of arguments or results: `notes`, and `sdy.sharding = …` for those that are spread."""
        found = []
        for note, s, aval in zip(notes, told, avals, strict=True):
            text = "" if s is None else self.sharding(s, len(physical_aval(aval).shape))
            found.append(", ".join(filter(None, (note, text and f"sdy.sharding = #sdy.sharding{text}"))))
        return found

    def on_first_device(self, results: int) -> list[str]:
        """The attributes of an operation with so many results that one of several devices does alone."""
        if self.devices == 1:
            return []
        self.single = True
        return [f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(['<@maximal_mesh_0, []>'] * max(1, results))}]>"]

    def definitions(self) -> list[str]:
        """The lines that define the meshes."""
        found = []
        for shape, name in self.names.items():
            axes = ", ".join(f"{json.dumps(str(n))}={size}" for n, size in shape)
            found.append(f"  sdy.mesh @{name} = <[{axes}]>")
        if self.single:
            found.append("  sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>")
        return found

