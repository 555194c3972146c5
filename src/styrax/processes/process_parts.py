"""One process's part of a program on arrays over several processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.arrays.devices import Sharding
from ..core.arrays.mesh import Mesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.tracing.staging import trace_to_jaxpr
from ..core.types.avals import shaped
from .partition import Own, Partition, Split
from .partition_loops import flows
from .partition_rules import step
from .tilings import tiling


def partitioned(closed: ClosedJaxpr, mesh: Mesh, given: Sequence[NamedSharding | None],
                wanted: Sequence[Sharding | None]) -> tuple[ClosedJaxpr, list[NamedSharding | None]]:
    """A program's part for this process.

    Args:
      closed: the program.
      mesh: the mesh of what it computes.
      given: for each argument its sharding; it is given as the rows of its blocks. None for whole ones.
      wanted: for each result the sharding that was asked for.

    Returns:
      The program, and for each result its sharding, None for what is this process's own.
    """
    made: list[NamedSharding | None] = []
    work = Partition(mesh, step, flows)
    avals = [a if s is None else shaped((len(tiling(s, a.shape).own), *tiling(s, a.shape).block), a.dtype)
             for a, s in zip(closed.in_avals, given, strict=True)]

    def part(*args: Any) -> list[Any]:
        values = [x if s is None else Split(x, s, a.shape)
                  for x, s, a in zip(args, given, closed.in_avals, strict=True)]
        rows = []
        for x, want, aval in zip(work.run(closed.jaxpr, closed.consts, values), wanted, closed.out_avals, strict=True):
            if isinstance(x, Own):
                rows.append(x.value)
                made.append(None)
                continue
            told = aval.given_sharding
            if isinstance(want, NamedSharding):
                x = work.split(x, want)
            elif told is not None:
                x = work.split(x, NamedSharding(mesh, told.spec))
            elif not isinstance(x, Split):
                x = work.split(x, NamedSharding(mesh, PartitionSpec()))
            rows.append(x.rows)
            made.append(x.sharding)
        return rows

    return trace_to_jaxpr(part, avals, closed.jaxpr.debug_info), made


__all__ = ["partitioned"]
