"""Shardings as Shardy's dialect writes them: meshes, `#sdy.sharding<@mesh, [{"x"}, {}]>`, constraints on values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from styrax.core.arrays.devices import Sharding
from styrax.core.arrays.mesh import AbstractMesh, Mesh
from styrax.core.arrays.shardings import UNCONSTRAINED, NamedSharding, axes_of
from styrax.core.types.physical import physical_aval


def _axes(names: Sequence[Any], more: Sequence[str] = ()) -> str:
    return "{" + ", ".join([*(json.dumps(str(n)) for n in names), *more]) + "}"


class Meshes:
    """The meshes that a module names, and how many devices it is for."""

    def __init__(self) -> None:
        self.names: dict[tuple[tuple[Any, int], ...], str] = {}
        self.devices = 1
        self.single = False  # whether some operation is done by one device alone

    def name(self, mesh: Mesh | AbstractMesh) -> str:
        """`mesh`, `mesh_0`, …: the symbol of a mesh."""
        shape = tuple(mesh.shape_tuple)
        if shape not in self.names:
            self.names[shape] = f"mesh_{len(self.names) - 1}" if self.names else "mesh"
            self.devices = max(self.devices, mesh.size)
        return self.names[shape]

    def sharding(self, told: Sharding | None, ndim: int, of_type: bool = False) -> str:
        """`<@mesh, [{"x"}, {?}]>`, or nothing for what is no sharding over a mesh. That of a type leaves open what axes
        do that are not explicit."""
        if not isinstance(told, NamedSharding) or told.mesh.empty:
            return ""
        spec = told.spec
        entries = [*spec, *(None,) * (ndim - len(spec))]
        more = ["?"] if of_type and len(told.mesh.explicit_axes) < len(told.mesh.axis_names) else []
        dims = ", ".join("{?}" if e is UNCONSTRAINED else _axes(axes_of(e), more) for e in entries)
        sums = f", unreduced={_axes(sorted(spec.unreduced, key=str))}" if spec.unreduced else ""
        return f"<@{self.name(told.mesh)}, [{dims}]{sums}>"

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

