"""Operands on several meshes: refused once one of these has explicit axes, whether types tell them or arrays alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays.mesh import AbstractMesh, state
from ..arrays.shardings import NamedSharding
from ..types import avals
from .equation_mesh import in_its_mesh
from .jaxpr import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params
from .propagation import told_sharding

On = AbstractMesh | None  # the mesh that a value is on, as far as it is known


def mesh_of(sharding: Any) -> On:
    """The mesh of a sharding, if it is over one that programs see from outside."""
    mesh = sharding.mesh.abstract_mesh if isinstance(sharding, NamedSharding) else None
    return None if mesh is None or mesh.empty or mesh.manual_axes else mesh


def told() -> bool:
    """Whether explicit sharding is in use, and axes of the mesh in force are not seen in another way (`auto_axes`)."""
    return avals.explicit and (
        state.abstract.empty if state.concrete.empty else state.abstract == state.concrete.abstract_mesh)


def check_operands(name: str, on: Sequence[On], types: Sequence[Any], at_once: bool = False) -> On:
    """The mesh that the results of an operation are on. ValueError for operands on several, or not on that in force;
    what runs `at_once` may see axes of that mesh in another way."""
    around = state.abstract
    same = _same_shape if at_once and not around.empty else _same
    found: On = None
    for mesh, aval in zip(on, types, strict=True):
        if mesh is None:
            continue
        if not (around.empty or around.manual_axes or same(mesh, around) or _automatic(mesh, around)):
            raise ValueError(f"For primitive {name}, context mesh {around} should match the aval mesh {mesh} for shape "
                             f"{aval.str_short()}")
        if found is None:
            found = mesh
        elif not (same(mesh, found) or _automatic(mesh, found)):
            raise ValueError(f"Mesh for all inputs should be equal. Got one mesh: {found} and another mesh: {mesh}")
    return found


def _automatic(a: AbstractMesh, b: AbstractMesh) -> bool:
    return a.are_all_axes_auto and b.are_all_axes_auto


def _same_shape(a: AbstractMesh, b: AbstractMesh) -> bool:
    return a.shape_tuple == b.shape_tuple


def _same(a: AbstractMesh, b: AbstractMesh) -> bool:
    return a.shape_tuple == b.shape_tuple and a.axis_types == b.axis_types


def check_program(closed: ClosedJaxpr, on: Sequence[On], constants: Sequence[On]) -> None:
    """Raises ValueError for a program that combines values of several meshes.

    Args:
      on: the meshes of the arguments.
      constants: those of the constants.
    """
    if any(m is not None and m.explicit_axes for m in (*on, *constants, state.abstract)):
        _through(closed.jaxpr, on, constants)


def _through(jaxpr: Jaxpr, on: Sequence[On], constants: Sequence[On] = ()) -> list[On]:
    """The meshes of a program's results."""
    env: dict[Any, On] = dict(zip(jaxpr.invars, on, strict=True))
    env.update(zip(jaxpr.constvars, constants, strict=False))

    def known(v: Any) -> On:
        own = mesh_of(getattr(v.aval, "given_sharding", None))
        if own is not None:  # another view of a mesh than arrays have (`auto_axes`) says nothing
            return own if own.are_all_axes_explicit else None
        return None if isinstance(v, Literal) else env.get(v)

    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, _of_equation(eqn, [known(v) for v in eqn.invars]), strict=True))
    return [known(v) for v in jaxpr.outvars]


def _of_equation(eqn: Any, on: list[On]) -> Sequence[On]:
    params, count = eqn.params, len(eqn.outvars)
    wanted = told_sharding(params)
    if wanted is not None:
        viewed = eqn.primitive.name == "reshard" and not wanted.mesh.are_all_axes_explicit
        return [None if viewed else mesh_of(wanted)] * count
    inner = list(jaxprs_in_params(params))
    if "branches" in params:
        return [_through(branch, on[1:]) for branch in inner][0]
    if inner and len(inner[0].invars) == len(on) and len(inner[0].outvars) == count:
        return _through(inner[0], on)
    if inner:
        return [None] * count
    with in_its_mesh(eqn):
        return [check_operands(eqn.primitive.name, on, [v.aval for v in eqn.invars])] * count


__all__ = ["check_operands", "check_program", "mesh_of", "told"]
