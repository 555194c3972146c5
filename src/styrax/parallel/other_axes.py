"""The explicit axes of a mesh that a map leaves alone: inside, types go on telling of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..core.arrays.mesh import AbstractMesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..core.types.typing import AxisName
from ..lax.collectives.placing import reshard_p


def entries_over(aval: Any, axes: Collection[AxisName]) -> tuple[tuple[AxisName, ...], ...]:
    """For each dimension of a type, those of some axes that it is spread over."""
    told = getattr(aval, "given_sharding", None)
    if told is None:
        return ((),) * len(getattr(aval, "shape", ()))
    return tuple(tuple(n for n in axes_of(e) if n in axes) for e in told.spec)


def seen_along(x: Any, mesh: AbstractMesh, entries: Sequence[Any]) -> Any:
    """A value whose type tells how it is spread over a mesh that sees some axes in another way."""
    return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, PartitionSpec(*entries))) if any(entries) else x


def with_entries(spec: PartitionSpec | None, entries: Sequence[tuple[AxisName, ...]]) -> PartitionSpec:
    """A specification with further axes at its dimensions."""
    given = PartitionSpec() if spec is None else spec
    if not any(entries):
        return given
    parts = [*given, *(None,) * (len(entries) - len(given))]
    return given.update(partitions=tuple((*axes_of(p), *e) for p, e in zip(parts, entries, strict=True)))


__all__ = ["entries_over", "seen_along", "with_entries"]
