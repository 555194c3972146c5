"""How results are spread over a mesh with explicit axes, by how the operands are: the trait `sharding`.

A rule `sharding(at, *operands, **params)` stands with its primitive. It gives, for each dimension of the result, the
mesh axis or axes that it is spread over (or None) as a tuple, or a sharding; where there are several results a list of
these, or one for all. `at` tells the mesh, the primitive's name and the results' types (see `Place`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays.explicit import is_replicated, resolved
from ..arrays.mesh import AbstractMesh, state
from ..arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..tracing.errors import ShardingTypeError
from ..types.avals import ShapedArray
from ..types.manual_axes import Sums
from .sums import NOTHING_KNOWN, Known, sums_of_results

Entries = tuple[Any, ...]  # of a `PartitionSpec`, one for each dimension

# How messages call what cuts dimensions, where it is not the primitive's name.
_CUTS = {"slice": "slicing", "pad": "padding", "reduce_window_sum": "reduce_window",
         "reduce_window_max": "reduce_window", "reduce_window_min": "reduce_window"}


class Place:
    """What a rule is told besides operands and parameters: the mesh, the primitive's name, the results' types."""

    __slots__ = ("mesh", "name", "outs")

    def __init__(self, mesh: AbstractMesh, name: str, outs: Sequence[Any]):
        self.mesh = mesh
        self.name = name
        self.outs = outs

    def refuse(self, reason: str) -> ShardingTypeError:
        """The error of operands that are not spread as the operation needs them."""
        return ShardingTypeError(reason)

    def parts(self, entry: Any) -> int:
        """How many parts a dimension is cut into."""
        count = 1
        for name in axes_of(entry):
            count *= self.mesh.shape[name]
        return count

    def divides(self, entries: Entries, operand: Any, out: Any) -> Entries:
        """The entries, where they divide the dimensions of the result. ShardingTypeError where they do not."""
        for entry, d in zip(entries, out.shape, strict=True):
            if entry is not None and d % self.parts(entry):
                raise self.refuse(f"{_CUTS.get(self.name, self.name)} on sharded dims where out dim ({d}) is not "
                                  f"divisible by mesh axes ({self.parts(entry)}) with spec ({entry}) is not "
                                  f"implemented. Got input type={operand.str_short(True)} and output "
                                  f"shape={out.shape}")
        return entries


def entries(aval: Any) -> tuple[Any, ...]:
    """The mesh axes by the dimensions of a type."""
    told = aval.given_sharding
    return (None,) * len(aval.shape) if told is None else told.spec.partitions


def elementwise(at: Place, *operands: Any, **_: Any) -> Entries:
    """Of operations on elements at the same index: each dimension as in the operands where it is spread."""
    ranked = [x for x in operands if x.shape]
    if not ranked:
        return ()
    found = list(entries(ranked[0]))
    for x in ranked[1:]:
        for d, entry in enumerate(entries(x)):
            if entry is None or entry == found[d]:
                continue
            if found[d] is not None:
                raise at.refuse(f"{at.name} got incompatible shardings for broadcasting: "
                                f"{', '.join(str(entries(x)) for x in ranked)}.")
            found[d] = entry
    return tuple(found)


def as_told(at: Place, *_: Any, **__: Any) -> list[Any]:
    """Of calls: the types of results, which their programs tell, are whole."""
    return list(at.outs)


def nowhere(at: Place, *_: Any, **__: Any) -> Entries:
    """Results are replicated."""
    return ()


def spread(primitive: Any, operands: Sequence[Any], out: Any, params: dict[str, Any]) -> Any:
    """The types of a primitive's results, told how they are spread.

    Raises:
      ShardingTypeError: the operands are not spread as the operation needs them.
      ValueError: operands are on different meshes, or not on the one in force.
    """
    mesh = _mesh(primitive.name, operands)
    if mesh is None:
        wanted = params.get("out_sharding") or params.get("sharding")
        if not isinstance(wanted, NamedSharding) or not wanted.mesh.explicit_axes:
            return out
        mesh = wanted.mesh.abstract_mesh
    outs = out if primitive.multiple_results else [out]
    traits = primitive.traits
    rule = traits.sharding or (elementwise if traits.elementwise else None)
    if rule is as_told:
        return out
    at = Place(mesh, primitive.name, outs)
    if rule is not None:
        found = rule(at, *operands, **params)
    elif all(is_replicated(getattr(x, "given_sharding", None)) for x in operands):
        found = ()
    else:
        raise at.refuse(f"{at.name} has no sharding rule: use it inside of `jax.sharding.auto_axes`, or reshard its "
                        "operands")
    known = sums_of_results(primitive, operands, [_known(x) for x in operands])
    each = found if isinstance(found, list) else [found] * len(outs)
    told = [_told(at, operands, x, e, known) for x, e in zip(outs, each, strict=True)]
    return told if primitive.multiple_results else told[0]


def _known(aval: Any) -> Known:
    """What the sharding of a type says along mesh axes."""
    told = getattr(aval, "given_sharding", None)
    if told is None:
        return NOTHING_KNOWN
    return Known(told.spec.unreduced, told.spec.reduced, frozenset(n for e in told.spec for n in axes_of(e)))


def _mesh(name: str, operands: Sequence[Any]) -> AbstractMesh | None:
    """The mesh that results are on; None where it has no explicit axes."""
    found: AbstractMesh | None = None
    first: Any = None
    for x in operands:
        told = getattr(x, "given_sharding", None)
        if told is None:
            continue
        if found is None:
            found, first = told.mesh, x
        elif told.mesh is not found and told.mesh != found:
            raise ValueError(f"Mesh for all inputs should be equal. Got one mesh: {found} and another mesh: "
                             f"{told.mesh}")
    around = state.abstract
    if found is None:
        return around if around.explicit_axes else None
    if not around.empty and around is not found and around != found:
        check_not_captured(first)
        raise ValueError(f"For primitive {name}, context mesh {around} should match the aval mesh {found} for shape "
                         f"{first.str_short()}")
    return found


def check_not_captured(aval: Any) -> None:
    """Raises NotImplementedError inside of a map over the mesh that a type tells of: its value came from outside."""
    around, told = state.abstract, getattr(aval, "given_sharding", None)
    if told is not None and around.manual_axes and not told.mesh.manual_axes and (
            around.shape_tuple == told.mesh.shape_tuple):
        raise NotImplementedError(
            "Closing over inputs to shard_map where the input is sharded on `Explicit` axes is not implemented. As a "
            "workaround, please pass those inputs as an argument to shard_map. Got input with shape "
            f"{aval.str_short(True, mesh_axis_types=True)}")


def _told(at: Place, operands: Sequence[Any], out: Any, found: Entries | NamedSharding | PartitionSpec,
          known: Sums) -> Any:
    """The type of a result with its sharding."""
    if type(out) is not ShapedArray:
        return out
    if isinstance(found, (NamedSharding, PartitionSpec)):
        return out.update(sharding=resolved(found))
    names = [n for e in found for n in axes_of(e)]
    if len(set(names)) != len(names):
        types = ", ".join(x.str_short(True) for x in operands)
        over = lambda e: e if isinstance(e, str) else f"({','.join(map(str, e))})"
        sizes = ",".join(str(d) if e is None else f"{d}@{over(e)}" for d, e in zip(out.shape, found, strict=True))
        raise ShardingTypeError(f"{at.name} operation with inputs: {types} produces an illegally sharded result: "
                                f"{out.update(shape=()).str_short(True).removesuffix('[]')}[{sizes}]")
    return out.update(sharding=NamedSharding(at.mesh, PartitionSpec(*found, unreduced=known.unreduced,
                                                                        reduced=known.reduced)))
