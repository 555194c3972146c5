"""Functions that see axes of a mesh in another way than what is around: `smap`, `auto_axes`, `explicit_axes`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from ..core.arrays import mesh as meshes
from ..core.arrays.mesh import AbstractMesh, AxisType, use_abstract_mesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec, axes_of
from ..core.tracing.trace import get_aval
from ..core.trees import tree, tree_paths
from ..core.types.typing import AxisName, Function, PyTree, ShardingLike
from ..lax.collectives.placing import reshard, reshard_p
from ..transforms.mapping import flatten_axes
from ..transforms.naming import wraps
from .shard_mapping import Infer, shard_map


def smap(f: Function | None = None, /, *, in_axes: PyTree = Infer, out_axes: PyTree,
         axis_name: AxisName) -> Function:
    """`shard_map` over one axis of the mesh in force, which says by numbers along what the parts lie.

    Args:
      f: a function of trees of arrays; without it, a decorator.
      in_axes: for each argument the axis along which it is cut, None for arguments that all devices get whole; by
        default as they are spread already.
      out_axes: the axis of the results along which the devices' parts lie, None for equal ones.
      axis_name: the axis of the mesh.

    Raises:
      TypeError: axes that are neither integers nor None. ValueError: no mesh is in force.
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    _check_axes("in_axes", () if in_axes is Infer else in_axes)
    _check_axes("out_axes", out_axes)

    @wraps(f)
    def mapped(*args: Any) -> Any:
        def call(*given: Any) -> Any:
            outs = f(*given)
            flatten_axes("smap out_axes", out_axes, outs)
            return outs

        specs: Any = in_axes
        if in_axes is not Infer:
            specs = tuple(_specs(a, axis_name) for a in (
                in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)))
            if isinstance(in_axes, tuple) and len(in_axes) != len(args):
                raise ValueError(f"smap got {len(in_axes)} in_axes for {len(args)} arguments")
            args = _as_wanted(args, specs, axis_name)
        return shard_map(call, in_specs=specs, out_specs=_specs(out_axes, axis_name), axis_names={axis_name})(*args)

    return mapped


def _as_wanted(args: tuple[Any, ...], specs: Any, name: AxisName) -> tuple[Any, ...]:
    """Arguments that lie along an axis as is wanted, where types tell whether they do."""
    mesh = meshes.in_force().abstract_mesh
    if name not in mesh.explicit_axes:
        return args

    def lay(x: Any, spec: PartitionSpec) -> Any:
        told = getattr(get_aval(x), "given_sharding", None)
        parts = (None,) * get_aval(x).ndim if told is None else told.spec.partitions
        wanted = [*spec, *(None,) * (len(parts) - len(spec))]
        laid = [(*(n for n in axes_of(e) if n != name), *axes_of(w)) or None
                for e, w in zip(parts, wanted, strict=True)]
        return x if list(parts) == [e[0] if e and len(e) == 1 else e for e in laid] else reshard_p.bind(
            x, dst_sharding=NamedSharding(mesh, PartitionSpec(*laid)))

    leaves, structure = tree.tree_flatten(args)
    given = tree_paths.broadcast_prefix(specs, args, is_leaf=lambda s: isinstance(s, PartitionSpec))
    return structure.unflatten(map(lay, leaves, given))


def _check_axes(name: str, axes: Any) -> None:
    for axis in tree.tree_leaves(axes):
        if not isinstance(axis, int):
            raise TypeError(f"smap {name} must be an int, None, or (nested) container with those types as leaves, but "
                            f"got {axes}.")


def _specs(axes: Any, name: AxisName) -> Any:
    def spec(axis: int | None) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        if axis < 0:
            raise NotImplementedError("negative axes of smap, whose arguments' ranks are not known")
        return PartitionSpec(*(None,) * axis, name)

    return tree.tree_map(spec, axes, is_leaf=lambda a: a is None)


def auto_axes(f: Function | None = None, /, *, axes: AxisName | Iterable[AxisName] | None = None,
              out_sharding: ShardingLike | PyTree = None) -> Function:
    """A function inside which the compiler chooses how arrays are spread over axes of the mesh.

    Args:
      f: a function of trees of arrays; without it, a decorator.
      axes: the axes, by default all.
      out_sharding: how the results are spread for what is around; without it, the function takes it by this name.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @wraps(f)
    def automatic(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop("out_sharding", None)
        wanted = out_sharding if wanted is None else wanted
        if wanted is None:
            raise TypeError("Missing required keyword argument: 'out_sharding'")
        around = meshes.in_force().abstract_mesh
        if around.empty and isinstance(wanted, NamedSharding):
            around = wanted.mesh.abstract_mesh
        if around.empty:
            return f(*args, **kwargs)
        inside = _with_types(around, axes, AxisType.Auto)
        if inside == around:
            return f(*args, **kwargs)
        with use_abstract_mesh(inside):
            outs = f(*(tree.tree_map(lambda x: _seen(x, inside), a) for a in args), **kwargs)
        return reshard(outs, wanted)

    return automatic


def _with_types(mesh: AbstractMesh, axes: Any, kind: AxisType) -> AbstractMesh:
    """The mesh with some axes (None: all) of another type. KeyError for one that it lacks."""
    changed = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in changed:
        if name not in mesh.axis_names:
            raise KeyError(name)
    return mesh.update(axis_types=tuple(kind if n in changed else t
                                        for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True)))


def _seen(x: Any, mesh: AbstractMesh) -> Any:
    """An array whose type tells what is explicit on a mesh, which is the one that it is on with other types."""
    told = getattr(getattr(x, "aval", None), "given_sharding", None)  # a part of an index may be no array
    if told is None:
        return x
    if any(n not in mesh.explicit_axes for n in (*told.spec.unreduced, *told.spec.reduced)):
        told = told.update(spec=told.spec.update(unreduced=(), reduced=()))
        x = reshard_p.bind(x, dst_sharding=told)
    return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, told.spec))


def explicit_axes(f: Function | None = None, /, *, axes: AxisName | Iterable[AxisName] | None = None,
                  in_sharding: ShardingLike | PyTree = None) -> Function:
    """A function inside which types tell how arrays are spread over axes of the mesh.

    Args:
      f: a function of trees of arrays; without it, a decorator.
      axes: the axes, by default all.
      in_sharding: how the arguments are spread inside; without it, the function takes it by this name.

    Raises:
      ValueError: no mesh is in force.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @wraps(f)
    def explicit(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop("in_sharding", None)
        wanted = in_sharding if wanted is None else wanted
        around = meshes.in_force().abstract_mesh
        if around.empty:
            raise ValueError("Context mesh cannot be empty. Please use `jax.set_mesh` API to enter into a mesh context "
                             "when using `explicit_axes` API.")
        if wanted is None:
            raise TypeError("Missing required keyword argument: 'in_sharding'")
        with use_abstract_mesh(_with_types(around, axes, AxisType.Explicit)):
            outs = f(*reshard(args, wanted), **kwargs)
        return tree.tree_map(lambda x: _seen(x, around), outs)

    return explicit


__all__ = ["auto_axes", "explicit_axes", "smap"]
