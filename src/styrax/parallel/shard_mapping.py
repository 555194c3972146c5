"""`shard_map`: one program, each device its part of the data, collectives between them.

The devices of a platform that shares their memory are mapped over as `vmap` maps (see `blocks`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from ..core.arrays import by_device, differing, host_devices
from ..core.arrays import mesh as meshes
from ..core.arrays.array import Array
from ..core.arrays.mesh import AbstractMesh, AxisType, Mesh, told_by_types, use_abstract_mesh
from ..core.arrays.moving import home
from ..core.arrays.shardings import NamedSharding, PartitionSpec
from ..core.hooks import lax
from ..core.tracing.invalid_values import of_devices
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import Tracer, get_aval, state
from ..core.trees import tree
from ..core.types.typing import AxisName, Function, PyTree
from ..lax.collectives.device_values import axes_apart, device_values_p
from ..lax.collectives.placing import device_put, untold
from ..transforms.flattening import FlatFunction
from ..transforms.jit import jit
from ..transforms.mapped_axis import Across
from ..transforms.naming import wraps
from ..transforms.references import Ref
from ..transforms.views import apart
from .blocks import NONE_ACROSS, cut, device_axes, joined, over_devices, shared
from .differing_copies import own_blocks, with_own_copies
from .held_contents import Contents
from .map_specifications import (
    Place,
    by_leaf,
    check_argument,
    check_inferred,
    check_result,
    check_results,
    check_specifications,
    check_spread,
    own_spec,
)
from .marked_sums import Marked
from .other_axes import entries_over, seen_along, with_entries
from .whereabouts import movable, spread_over, told_to_be


class _Infer:
    """Stands for specifications that are read off the arguments."""

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


Infer = _Infer()


@api_boundary
def shard_map(f: Function | None = None, /, *, out_specs: PyTree, in_specs: PyTree = Infer,
              mesh: Mesh | AbstractMesh | None = None, axis_names: Set[AxisName] = frozenset(),
              check_vma: bool = True) -> Function:
    """Runs a function on all devices of a mesh, each on its part of the arguments.

    Args:
      f: a function of trees of arrays; without it, a decorator.
      out_specs: a tree of `PartitionSpec`s, a prefix of the results: how the devices' parts make up the results.
      in_specs: the same for the arguments: how they are cut into parts. By default as they are spread already.
      mesh: the mesh; by default the one in force.
      axis_names: the axes of the mesh that the function knows of, by default all.
      check_vma: whether to check that results said to be equal on all devices are.

    Returns:
      A function of the same arguments.

    Raises:
      ValueError: there is no mesh, or a specification does not fit the mesh or an argument.
    """
    if f is None:
        return functools.partial(shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
                                 check_vma=check_vma)

    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got {f} of type {type(f)}.")
    if not isinstance(axis_names, (set, frozenset)):
        raise TypeError("`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: "
                        f"{type(axis_names)}")

    @wraps(f)
    def mapped(*args: Any) -> Any:
        used = _mesh(mesh)
        if not set(axis_names) <= set(used.axis_names):
            raise ValueError(f"jax.shard_map requires axis_names={frozenset(axis_names)} to be a subset of "
                             f"mesh.axis_names={frozenset(used.axis_names)}")
        names = [n for n in used.axis_names if not axis_names or n in axis_names]
        if in_specs is Infer:
            check_inferred(used, names)
        for what, told in (("in_specs", () if in_specs is Infer else in_specs), ("out_specs", out_specs)):
            check_specifications(what, told, used, names)
        args = apart(args)
        leaves, in_tree = tree.tree_flatten((args, {}))
        if any(type(x) is Ref for x in leaves) or _is_apart(used) and state.trace.is_eval:
            return jit(mapped)(*args)  # what references hold is changed by a program; devices are given one
        if isinstance(used, AbstractMesh) and meshes.in_force().empty:
            used = _mesh_of(leaves, used)
        specs = [own_spec(x, names) for x in leaves] if in_specs is Infer else by_leaf("in_specs", in_specs, args)
        with of_devices():
            return _Map(FlatFunction(f, in_tree), used, names, bool(check_vma)).over(leaves, specs, in_specs, out_specs)

    return mapped


class _Map:
    """A flat function over some axes of a mesh; `checked`: whether types tell along which of these values vary."""

    __slots__ = ("checked", "flat", "inside", "mesh", "names", "processes", "sizes")

    def __init__(self, flat: FlatFunction, mesh: Mesh | AbstractMesh, names: Sequence[AxisName], checked: bool):
        self.flat = flat
        self.mesh = mesh
        self.names = names
        self.checked = checked
        self.sizes: Mapping[AxisName, int] = {n: mesh.shape[n] for n in names}
        self.inside = mesh.abstract_mesh.update(axis_types=tuple(
            AxisType.Manual if n in self.sizes else t for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True)))
        self.processes = (mesh if isinstance(mesh, Mesh) and host_devices.cohort is not None and mesh.is_multi_process
                          and not mesh.devices.flat[0].apart else None)  # where this project parts their programs

    def over(self, leaves: list[Any], specs: Sequence[PartitionSpec | None], in_specs: Any, out_specs: Any) -> PyTree:
        """The function over the devices' parts of arguments under their specifications.

        Args:
          in_specs, out_specs: the specifications as they are given.
        """
        flat, mesh = self.flat, self.mesh
        for i, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
            check_argument(Place(flat, in_specs, i), get_aval(x), spec, mesh)
            check_spread(get_aval(x), spec, mesh, self.names)
        held = Contents(flat, leaves)
        leaves = held.read(leaves)
        # what devices have of sums is told apart by types
        alike = self.checked or any(s is not None and (s.unreduced or s.reduced) for s in specs)
        marked = Marked(flat, specs)
        blocks, across = self._blocks(leaves, specs, alike)
        with use_abstract_mesh(self.inside), by_device.over(_shown(mesh if self.processes is None else None, blocks)):
            blocks = held.referred(blocks)
            results = [self._apart(*r) for r in over_devices(
                marked if self.checked and self.processes is None else flat, blocks, self.sizes, self.checked, across)]
            contents = [(i, self._apart(*b)) for i, b in held.in_the_end()]
        whole = tree.tree_unflatten(flat.structure, [x for x, _, _ in results])
        wanted = by_leaf("out_specs", out_specs, whole, none=False)
        sums = marked.of_results(results)
        check_results(flat.__name__, [
            check_result(Place(flat, out_specs, i), x, varies, spec, mesh, self.checked, known)
            for i, ((x, varies, _), spec, known) in enumerate(zip(results, wanted, sums, strict=True))],
            mesh, all(not isinstance(x, Tracer) for x, _, _ in results))
        held.write([self._joined(*block, specs[i], True) for i, block in contents])
        return tree.tree_unflatten(flat.structure, [
            self._joined(*block, spec, alike) for block, spec in zip(results, wanted, strict=True)])

    def _blocks(self, leaves: Sequence[Any], specs: Sequence[PartitionSpec | None], alike: bool
                ) -> tuple[list[tuple[Any, tuple[AxisName, ...]]], Mapping[AxisName, Across]]:
        """The devices' blocks of arguments with the axes along which these vary in front, and the axes along which
        others have devices."""
        if self.processes is not None:
            from . import process_mapping

            self.sizes, across = process_mapping.local_sizes(self.processes, self.names)
            return [process_mapping.cut(x, s, self.processes) for x, s in zip(leaves, specs, strict=True)], across
        mesh, blocks = self.mesh, []
        for x, spec in zip(leaves, specs, strict=True):
            named = PartitionSpec() if spec is None else spec
            entries = entries_over(get_aval(x), set(mesh.explicit_axes) - set(self.names))
            own = None if alike else own_blocks(x, named, mesh, self.sizes)
            x = _given(x, spec, mesh, self.checked)
            with use_abstract_mesh(self.inside):
                x, varies = cut(x, named, self.sizes) if own is None else own
                if self.checked:
                    kept = told_by_types(varies, self.sizes)
                    x = lax.squeeze(x, [i for i, n in enumerate(varies) if n not in kept])
                    varies = kept
                blocks.append((seen_along(x, self.inside, (*(None,) * len(varies), *entries)), varies))
        return blocks, NONE_ACROSS

    def _apart(self, x: Any, varies: Sequence[AxisName]) -> tuple[Any, Sequence[AxisName], Sequence[Any]]:
        """Blocks whose type tells no sharding, the axes in front, and how blocks are spread over axes that the map
        leaves alone."""
        return untold(x), varies, entries_over(get_aval(x), set(self.inside.explicit_axes))[len(varies):]

    def _joined(self, x: Any, varies: Sequence[AxisName], entries: Sequence[Any], spec: PartitionSpec | None,
                alike: bool) -> Any:
        """The array of a result's blocks; `entries`: how these are spread over other axes; `alike`: whether copies that
        are told to be are."""
        mesh, sizes, named = self.mesh, self.sizes, PartitionSpec() if spec is None else spec
        if self.processes is not None:
            from . import process_mapping

            return process_mapping.joined(x, varies, spec, self.processes, sizes)
        if not self.checked:  # nobody knows what is a summand, and what a copy of it
            x = shared(x, math.prod(sizes[n] for n in named.unreduced))
        copies = None if alike else with_own_copies(x, varies, named, mesh, sizes)
        if copies is not None:
            return spread_over(copies, spec, mesh) if isinstance(copies, Tracer) else copies
        whole_spec = None if spec is None and not any(entries) else with_entries(spec, entries)
        return spread_over(joined(x, varies, named, sizes), whole_spec, mesh)


def _shown(mesh: Mesh | AbstractMesh | None, blocks: Sequence[tuple[Any, Any]]) -> Mesh | None:
    """The mesh, if the function runs at once on all its devices: what these have may be printed."""
    traced = not state.trace.is_eval or any(isinstance(x, Tracer) for x, _ in blocks)
    return mesh if isinstance(mesh, Mesh) and not traced else None


def _given(x: Any, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh, checked: bool) -> Any:
    """An argument, or its summands, as an array that may be moved, whose type tells nothing of a sharding.

    A traced one says how it is spread, and so does its derivative.
    """
    if not isinstance(x, Tracer):
        committed = isinstance(x, Array) and x.committed and state.trace.is_eval
        if committed and isinstance(mesh, Mesh) and x.devices() != set(mesh.devices.flat):
            raise ValueError("Received incompatible devices for jitted computation. Got an argument with shape "
                             f"{x.aval.str_short()} and with device ids {sorted(d.id for d in x.devices())} and "
                             f"shard_map with device ids {[d.id for d in mesh.devices.flat]}")
        x = movable(x if isinstance(x, Array) else device_put(x))
        if differing.differs(x):  # which nothing tells here
            x = differing.copy_on(x, x.buffer.device)
        if axes_apart(x.aval.given_sharding):
            return device_values_p.bind(x, equal=checked)
        return x if x.aval.given_sharding is None else Array(x.aval.update(sharding=None), x.buffer)
    aval = get_aval(x)
    if getattr(aval, "given_sharding", None) is None:
        x = told_to_be(x, PartitionSpec() if mesh.explicit_axes else spec, mesh)
    apart = axes_apart(getattr(get_aval(x), "given_sharding", None))
    return device_values_p.bind(x, equal=checked) if apart else untold(x)


def _mesh(mesh: Any) -> Mesh | AbstractMesh:
    """The mesh that is given, else the one in force. ValueError where there is none."""
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError("shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for "
                        f"its second argument, but got {mesh} of type {type(mesh)}.")
    used = mesh if mesh is not None else meshes.in_force()
    if used.empty:
        raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context")
    around = meshes.get_abstract_mesh()
    if mesh is not None and not around.empty and around.shape_tuple != used.shape_tuple:
        raise ValueError(f"The context mesh {around} should match the mesh passed to shard_map {used}")
    mapped = device_axes()
    if mapped and around.empty and not set(mapped) <= set(used.axis_names):
        raise ValueError(f"The context mesh, with axes {mapped}, should match the mesh passed to shard_map {used}")
    return used


def _mesh_of(leaves: Sequence[Any], mesh: AbstractMesh) -> Mesh | AbstractMesh:
    """The mesh over which arrays are spread, in place of one without its devices.

    Raises:
      ValueError: an array is spread over no mesh, or over another one.
    """
    found: Mesh | AbstractMesh = mesh
    for x in leaves:
        if isinstance(x, Tracer):
            continue
        told = getattr(x, "sharding", None)
        if not isinstance(told, NamedSharding):
            raise ValueError("Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing "
                             "`AbstractMesh` to the mesh argument.")
        if told.mesh.shape_tuple != mesh.shape_tuple:
            raise ValueError(f"Mesh shape of the input {told.mesh.shape_tuple} does not match the mesh shape passed to "
                             f"shard_map {mesh.shape_tuple} for shape {x.aval.str_short()}")
        found = told.mesh
    return found


def _is_apart(mesh: Mesh | AbstractMesh) -> bool:
    """Whether it is over devices that operations do not run on by default."""
    return isinstance(mesh, Mesh) and (host_devices.cohort is None or mesh.devices.flat[0].apart) and (
        home(tuple(mesh.devices.flat)) is not None)


__all__ = ["Infer", "shard_map"]
