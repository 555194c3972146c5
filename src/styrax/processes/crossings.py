"""The axes of a mesh over several processes: where a process's devices stand along them, and collectives over them.

A process maps a program over its own devices by name, axis after axis, as one process does. A collective over an axis
along which other processes have devices is then done in two steps: sums among the own devices first, then across; all
others gather the operands along the axis, are computed, and each process takes what its own devices get.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays.mesh import Mesh
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..lax.collectives.axis_reductions import pmax_p, pmin_p, psum_invariant_p, psum_p, take_rows
from ..lax.collectives.casts import pvary_p
from ..lax.collectives.named_axes import axis_index_p
from ..transforms import batching
from ..transforms.batching import AxisData
from .across import across_p
from .mesh_positions import Places
from .tilings import Combination

REDUCTIONS = {psum_p: "sum", psum_invariant_p: "sum", pmax_p: "max", pmin_p: "min"}


class Crossing:
    """An axis of a mesh, along which other processes have devices as well."""

    def __init__(self, mesh: Mesh, name: Hashable):
        self.mesh, self.name = mesh, name
        self.size: int = mesh.shape[name]
        places = Places.of(mesh)
        self.own = places.own[name]
        self.members = places.along(name)
        if sorted({i for each in self.members.values() for i in each}) != list(range(self.size)):
            raise NotImplementedError(f"along the axis {name!r} of {mesh} the processes' devices do not line up")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Crossing) and (self.mesh, self.name) == (other.mesh, other.name)

    def __hash__(self) -> int:
        return hash((self.mesh, self.name))

    # labels and keys are told to all processes alike: those of other groups stand apart by their members
    def _everywhere(self, of: Any) -> dict[int, list[Any]]:
        places = Places.of(self.mesh)
        out = {}
        for p, each in places.all.items():
            group = tuple(q for q, other in places.all.items()
                          if all(other[n] == each[n] for n in each if n != self.name))
            out[p] = of(group, p, each[self.name])
        return out

    def gather(self, rows: Any) -> Any:
        """The rows of all positions along the axis."""
        plan = _plan(self, None)
        return across_p.bind(rows, plan=plan)

    def reduce(self, x: Any, how: str) -> Any:
        """The reduction of all processes' values along the axis."""
        out = across_p.bind(hooks.lax.expand_dims(x, (0,)), plan=_plan(self, how))
        return hooks.lax.squeeze(out, (0,))

    def rule(self, axis_data: AxisData, primitive: Primitive, args: tuple[Any, ...], dims: tuple[int | None, ...],
             params: Mapping[str, Any]) -> tuple[Any, Any]:
        """The batching rule of a collective over the axis."""
        if primitive is pvary_p:
            return rules.fancy_batchers[primitive](axis_data, args, dims, **params)
        if primitive is axis_index_p:
            return np.asarray(self.own, np.int32), 0
        whole = axis_data._replace(size=self.size, across=None)
        if primitive in REDUCTIONS and params["axis_index_groups"] is None and dims[0] is not None:
            return self._reduction(axis_data, primitive, args[0], dims[0], params["axes"]), None
        given, at = [], []
        for x, d in zip(args, dims, strict=True):
            if d is not None:
                x, d = self.gather(batching.moveaxis(x, d, 0)), 0
            given.append(x)
            at.append(d)
        outs, out_dims = rules.fancy_batchers[primitive](whole, tuple(given), tuple(at), **params)
        if not primitive.multiple_results:
            return self._taken(outs, out_dims), out_dims if out_dims is None else 0
        return ([self._taken(x, d) for x, d in zip(outs, out_dims, strict=True)],
                [d if d is None else 0 for d in out_dims])

    def _taken(self, x: Any, d: int | None) -> Any:
        return x if d is None else take_rows(batching.moveaxis(x, d, 0), np.array(self.own))

    def _reduction(self, axis_data: AxisData, primitive: Primitive, x: Any, d: int, axes: Sequence[Any]) -> Any:
        """Among the own devices and along positional axes, then across, then along the other names."""
        here = tuple(a + (a >= d) if isinstance(a, int) else d for a in axes if isinstance(a, int) or a == self.name)
        rest = tuple(a for a in axes if not isinstance(a, int) and a != self.name)
        x = primitive.bind(x, axes=here, axis_index_groups=None)
        if len(self.members) > 1:
            x = self.reduce(x, REDUCTIONS[primitive])
        return primitive.bind(x, axes=rest, axis_index_groups=None) if rest else x


@lru_cache(maxsize=1024)
def _plan(crossing: Crossing, how: str | None) -> Combination:
    if how is None:
        return Combination(crossing._everywhere(lambda group, p, own: [((group, i), 0) for i in own]),
                           crossing._everywhere(lambda group, p, own: [(group, i) for i in range(crossing.size)]), None)
    return Combination(crossing._everywhere(lambda group, p, own: [(group, p)]),
                       crossing._everywhere(lambda group, p, own: [group]), how)


def crossings(mesh: Mesh, names: Sequence[Hashable]) -> dict[Hashable, Crossing]:
    """Those of a mesh's axes along which other processes have devices as well."""
    own = Places.of(mesh).own
    return {n: Crossing(mesh, n) for n in names if len(own[n]) < mesh.shape[n]}


__all__ = ["Crossing", "Places", "crossings"]
