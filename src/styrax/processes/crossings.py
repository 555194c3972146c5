"""The axes of a mesh over several processes: where a process's devices stand along them, and collectives over them.

A process maps a program over its own devices by name, axis after axis, as one process does. A collective over an axis
along which other processes have devices is then done in two steps: sums among the own devices first, then across.
Permutations and exchanges send what is needed; all others gather the operands along the axis, are computed, and each
process takes what its own devices get.
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
from ..lax.collectives.communication import all_to_all_p, ppermute_p, reduce_scatter_p
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
        if dims[0] is not None and self._alone(params):
            found = self._direct(primitive, batching.moveaxis(args[0], dims[0], 0), params)
            if found is not None:
                return found, 0
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

    def _alone(self, params: Mapping[str, Any]) -> bool:
        """Whether a collective is over this axis alone, and all of it."""
        return params.get("axis_name") in (self.name, (self.name,)) and params.get("axis_index_groups") is None

    def _direct(self, primitive: Primitive, x: Any, params: Mapping[str, Any]) -> Any:
        """What sends to each position only what it gets; None for other collectives, and for what these refuse."""
        shape = np.shape(x)
        if primitive is ppermute_p:
            source = {b: a for a, b in params["perm"]}
            known = {*source, *source.values()} <= set(range(self.size))
            if not known or len(set(source.values())) < len(params["perm"]):
                return None
            return across_p.bind(x, plan=_permutation(self, params["perm"]))
        if primitive is reduce_scatter_p:
            at = params["scatter_dimension"]
            if shape[at + 1] % self.size or not params["tiled"] and shape[at + 1] != self.size:
                return None
            rows = self._dealt(hooks.lax.reduce_sum(x, (0,)), at)  # [to, …, block, …]
            out = across_p.bind(rows, plan=_scattering(self))
            return out if params["tiled"] else hooks.lax.squeeze(out, (at + 1,))
        if primitive is all_to_all_p:
            split, concat = params["split_axis"] + 1, params["concat_axis"]
            if shape[split] % self.size:
                return None
            rows = self._dealt(x, split)  # [to, from, …, block, …]
            rows = hooks.lax.reshape(rows, (self.size * len(self.own), *np.shape(rows)[2:]))
            out = across_p.bind(rows, plan=_exchange(self))  # the same with `from` from everywhere
            block = np.shape(out)[1:]
            out = batching.moveaxis(hooks.lax.reshape(out, (len(self.own), self.size, *block)), 1, concat + 1)
            return hooks.lax.reshape(out, (len(self.own), *(
                d * self.size if i == concat else d for i, d in enumerate(block))))
        return None

    def _dealt(self, x: Any, axis: int) -> Any:
        """An array with a dimension cut into a part for each position, which stands in front."""
        shape = np.shape(x)
        cut = (*shape[:axis], self.size, shape[axis] // self.size, *shape[axis + 1:])
        return batching.moveaxis(hooks.lax.reshape(x, cut), axis, 0)

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


@lru_cache(maxsize=1024)
def _permutation(crossing: Crossing, perm: tuple[tuple[int, int], ...]) -> Combination:
    source = {b: a for a, b in perm}
    return Combination(crossing._everywhere(lambda group, p, own: [((group, i), 0) for i in own]),
                       crossing._everywhere(lambda group, p, own: [(group, source.get(i, -1)) for i in own]), None)


@lru_cache(maxsize=256)
def _scattering(crossing: Crossing) -> Combination:
    return Combination(crossing._everywhere(lambda group, p, own: [((group, i), p) for i in range(crossing.size)]),
                       crossing._everywhere(lambda group, p, own: [(group, i) for i in own]), "sum")


@lru_cache(maxsize=256)
def _exchange(crossing: Crossing) -> Combination:
    every = range(crossing.size)
    return Combination(crossing._everywhere(lambda group, p, own: [((group, i, to), 0) for to in every for i in own]),
                       crossing._everywhere(lambda group, p, own: [(group, i, to) for to in own for i in every]), None)


def crossings(mesh: Mesh, names: Sequence[Hashable]) -> dict[Hashable, Crossing]:
    """Those of a mesh's axes along which other processes have devices as well."""
    own = Places.of(mesh).own
    return {n: Crossing(mesh, n) for n in names if len(own[n]) < mesh.shape[n]}


__all__ = ["Crossing", "Places", "crossings"]
