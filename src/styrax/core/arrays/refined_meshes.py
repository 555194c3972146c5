"""Several meshes over the same devices in the same order, told in the axes of one that has parts of all their axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from .mesh import AbstractMesh, Mesh
from .shardings import UNCONSTRAINED, axes_of

Parts = dict[Any, tuple[Any, ...]]  # axis -> the axes of the refined mesh that it is made of


def refined(meshes: Sequence[Mesh]) -> AbstractMesh | None:
    """The mesh of the fewest axes of which those of all meshes are made; None where there is none."""
    edges = sorted({n for m in meshes for n in _edges(m)})
    if any(b % a for a, b in pairwise(edges)) or any(m.size != meshes[0].size for m in meshes):
        return None
    sizes = [b // a for a, b in pairwise(edges)][::-1]
    return AbstractMesh(sizes, [f"part {i}" for i in range(len(sizes))])


def _edges(mesh: Mesh | AbstractMesh) -> list[int]:
    """How many devices lie between two that are neighbours along an axis, from the last axis on."""
    return list(accumulate(reversed(mesh.axis_sizes), operator.mul, initial=1))


def parts_of(mesh: Mesh | AbstractMesh, fine: AbstractMesh) -> Parts:
    """For each axis of a mesh those of a refinement that it is made of; itself where that is none."""
    if mesh.axis_names == fine.axis_names:
        return {name: (name,) for name in mesh.axis_names}
    ends = dict(zip(_edges(fine), [len(fine.axis_names) - i for i in range(len(fine.axis_names) + 1)], strict=True))
    found = {}
    for name, (inner, outer) in zip(reversed(mesh.axis_names), pairwise(_edges(mesh)), strict=True):
        if inner not in ends or outer not in ends:
            return {n: (n,) for n in mesh.axis_names}
        found[name] = fine.axis_names[ends[outer]:ends[inner]]
    return found


def told_in(entries: Sequence[Any], mesh: Mesh | AbstractMesh, fine: AbstractMesh) -> tuple[Any, ...]:
    """Entries of a specification over a mesh, in the axes of a refinement."""
    parts = parts_of(mesh, fine)
    return tuple(e if e is UNCONSTRAINED else tuple(p for name in axes_of(e) for p in parts.get(name, (name,))) or None
                 for e in entries)


def told_by(entries: Sequence[Any], mesh: Mesh, fine: AbstractMesh) -> tuple[Any, ...] | None:
    """Entries over a refinement in the axes of a mesh; None where an axis would have to be cut."""
    parts = {p: name for name, p in parts_of(mesh, fine).items() if p}
    out: list[Any] = []
    for entry in entries:
        rest, names = axes_of(entry), []
        while rest:
            found = next((p for p in parts if rest[:len(p)] == p), None)
            if found is None:
                return None
            names.append(parts[found])
            rest = rest[len(found):]
        out.append(tuple(names) if len(names) > 1 else names[0] if names else None)
    return tuple(out)


__all__ = ["refined", "told_by", "told_in"]
