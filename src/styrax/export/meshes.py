"""Exported programs on several devices: their shardings are over meshes without devices, until a mesh is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.arrays.array import Array
from ..core.arrays.devices import Sharding
from ..core.arrays.gspmd_sharding import GSPMDSharding
from ..core.arrays.mesh import AbstractMesh, AxisType, Mesh, get_mesh
from ..core.arrays.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, as_named, axes_of
from ..core.programs.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxprs_in_params
from ..core.programs.propagation import told_sharding
from ..core.tracing.trace import Tracer
from ..lax.collectives.placing import sharding_constraint_p


def without_devices(x: Any) -> Any:
    """A mesh or a sharding over one without its devices; anything else as it is."""
    if isinstance(x, Mesh):
        return x.abstract_mesh
    if isinstance(x, GSPMDSharding):
        x = as_named(x)
    if isinstance(x, NamedSharding):
        return NamedSharding(x.mesh.abstract_mesh, x.spec, memory_kind=x.memory_kind or "device")
    return x


def over(sharding: Sharding | None, mesh: Mesh) -> Sharding | None:
    """A sharding of an exported program over the devices of a mesh.

    Raises:
      ValueError: the mesh has other axes than that of the export.
    """
    if not isinstance(sharding, NamedSharding):
        return sharding
    if mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export {sharding.mesh}.")
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


def constrained(closed: ClosedJaxpr, ins: Sequence[Sharding | None], outs: Sequence[Sharding | None]) -> ClosedJaxpr:
    """The program with the shardings of its arguments and results as constraints in it."""
    if not any(isinstance(s, NamedSharding) for s in (*ins, *outs)):
        return closed
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []

    def constrain(x: Atom, sharding: Sharding | None, into: Var | None = None) -> Atom:
        if not isinstance(sharding, NamedSharding):
            return x
        out = into or Var(x.aval)
        eqns.append(JaxprEqn([x], [out], sharding_constraint_p, {
            "sharding": without_devices(sharding), "layout": None, "unconstrained_dims": frozenset(),
            "context_mesh": AbstractMesh((), ())}))
        return out

    invars = [Var(v.aval) if isinstance(s, NamedSharding) else v for v, s in zip(jaxpr.invars, ins, strict=True)]
    for given, v, s in zip(invars, jaxpr.invars, ins, strict=True):
        constrain(given, s, v)
    eqns.extend(jaxpr.eqns)
    results = [constrain(v, s) for v, s in zip(jaxpr.outvars, outs, strict=True)]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, results, eqns, jaxpr.effects, jaxpr.debug_info), closed.consts)


def device_count(jaxpr: Jaxpr) -> int:
    """How many devices a program is for: those of the first mesh in it, else one."""
    for eqn in jaxpr.eqns:
        told = told_sharding(eqn.params)
        mesh = told.mesh if told is not None else eqn.params.get("mesh")
        if isinstance(mesh, (Mesh, AbstractMesh)) and not mesh.empty:
            return mesh.size
        for inner in jaxprs_in_params(eqn.params):
            if (count := device_count(inner)) > 1:
                return count
    return 1


def check_devices(name: str, count: int, args: Sequence[Any]) -> None:
    """Raises ValueError where arrays are spread over another number of devices than a program of several is for."""
    if count == 1 or any(isinstance(x, Tracer) for x in args):
        return
    given = max((len(x.devices()) for x in args if isinstance(x, Array) and x.committed), default=max(
        get_mesh().size, 1))
    if given != count:
        raise ValueError(f"Function {name} was exported for {count} devices and is called in a context with {given} "
                         "devices, which is not allowed.")


def to_data(sharding: Sharding | None) -> dict[str, Any] | None:
    """A sharding over a mesh as JSON holds it; None for others."""
    if not isinstance(sharding, NamedSharding):
        return None
    mesh = sharding.mesh
    return {"names": mesh.axis_names, "sizes": mesh.axis_sizes, "types": [t.name for t in mesh.axis_types],
            "spec": ["?" if e is UNCONSTRAINED else e if e is None else axes_of(e) for e in sharding.spec],
            "memory": sharding.memory_kind}


def from_data(data: dict[str, Any] | None) -> NamedSharding | None:
    """The sharding of `to_data`."""
    if data is None:
        return None
    mesh = AbstractMesh(data["sizes"], data["names"], tuple(AxisType[name] for name in data["types"]))
    entries = [UNCONSTRAINED if e == "?" else None if e is None else e[0] if len(e) == 1 else tuple(e)
               for e in data["spec"]]
    return NamedSharding(mesh, PartitionSpec(*entries), memory_kind=data["memory"])
