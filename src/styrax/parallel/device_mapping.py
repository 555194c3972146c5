"""`pmap` and `shard_map`: one program, each device its part of the data, collectives between them.

There is one device, so every mapped axis has one element: the parts are the whole, and the axes are there for
collectives to name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core import hooks
from ..core.arrays import mesh as meshes
from ..core.arrays.array import Array
from ..core.arrays.devices import Device
from ..core.arrays.mesh import AbstractMesh, Mesh
from ..core.arrays.shardings import NamedSharding, PartitionSpec
from ..core.hooks import lax
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import get_aval
from ..core.trees import tree, tree_paths
from ..core.types.typing import AxisName, Function, PyTree, Shape
from ..lax.collectives.placing import device_put
from ..transforms.jit import jit
from ..transforms.mapping import vmap
from ..transforms.naming import check_callable, wraps


class _Infer:
    """Stands for specifications that are read off the arguments."""

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


Infer = _Infer()


@api_boundary
def pmap(fun: Function, axis_name: AxisName | None = None, *, in_axes: int | None | Sequence[PyTree] = 0,
         out_axes: PyTree = 0, static_broadcasted_argnums: int | Iterable[int] = (),
         devices: Sequence[Device] | None = None, backend: str | None = None, axis_size: int | None = None,
         donate_argnums: int | Iterable[int] = (), global_arg_shapes: Sequence[Shape] | None = None) -> Function:
    """Runs a function on all devices at once, each on its slice of the arguments.

    Args:
      fun: a function of trees of arrays.
      axis_name: a name of the mapped axis, for collectives.
      in_axes: for each argument the axis that is spread over the devices, None for arguments that all devices
        get whole.
      out_axes: the axis of the results along which the devices' parts lie, None for one device's part.
      static_broadcasted_argnums: arguments that are passed to `fun` as they are.
      devices: the devices to use.
      backend: the platform to use.
      axis_size: the size of the mapped axis.
      donate_argnums: arguments whose memory the results may take.

    Returns:
      A function of the same arguments; it is compiled.

    Raises:
      ValueError: no argument has a mapped axis, or the axis is larger than the number of devices.
    """
    check_callable(fun)
    statics = ((static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int)
               else tuple(static_broadcasted_argnums))
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if any(type(a) is not int for a in tree.tree_leaves(axes)):
            raise TypeError(f"pmap {name} must be an int, None, or (nested) container with those types as leaves, but "
                            f"got {axes}.")
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")

    @functools.partial(jit, static_argnums=statics or None, donate_argnums=donated or None)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        from ..core.arrays.backends import get

        count = len(devices) if devices is not None else len(get(backend).devices())
        axes = _axes_of(in_axes, args, statics)
        dynamic = [i for i in range(len(args)) if i not in statics]
        found = _check_sizes([args[i] for i in dynamic], [axes[i] for i in dynamic], kwargs, count)
        if axis_size is not None and found is not None and found != axis_size:
            raise ValueError(f"Specified axis_size {axis_size} doesn't match received axis_size {found}.")

        def one(given: Sequence[Any], named: dict[str, Any]) -> Any:
            rest = iter(given)
            return fun(*(args[i] if i in statics else next(rest) for i in range(len(args))), **named)

        given, axes_in = [args[i] for i in dynamic], [axes[i] for i in dynamic]
        axes_out = tree.tree_map(lambda axis: axis or 0, out_axes, is_leaf=lambda axis: axis is None)
        part = _part(given, axes_in, kwargs) if axis_size in (None, 1) else None
        if part is not None:  # the device's part is an array like any other, for callbacks too
            outs = vmap(one, in_axes=None, out_axes=axes_out, axis_name=axis_name, axis_size=1)(*part)
        else:
            outs = vmap(one, in_axes=(axes_in, 0 if kwargs else None), out_axes=axes_out, axis_name=axis_name,
                        axis_size=axis_size or 1)(given, kwargs)
        return _first_where_none(out_axes, outs)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if statics and max(statics) >= len(args):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={statics} but was called with only {len(args)} "
                f"positional argument{'s' if len(args) > 1 else ''}. All static broadcasted arguments must be passed "
                "positionally.")
        return compiled(*args, **kwargs)

    mapped.lower = compiled.lower  # type: ignore[attr-defined]
    mapped.trace = compiled.trace  # type: ignore[attr-defined]
    return mapped


def _first_where_none(out_axes: PyTree, outs: PyTree) -> PyTree:
    """The results, of those with `out_axes` None that of the first device."""
    leaves, structure = tree.tree_flatten(outs)
    wanted = tree_paths.broadcast_prefix(out_axes, outs, is_leaf=lambda axis: axis is None)
    return tree.tree_unflatten(structure, [
        lax.index_in_dim(x, 0, keepdims=False) if axis is None else x for x, axis in zip(leaves, wanted, strict=True)])


def _axes_of(in_axes: Any, args: tuple, statics: Sequence[int]) -> list[Any]:
    if isinstance(in_axes, tuple):
        if len(in_axes) == len(args):
            return list(in_axes)
        if len(in_axes) != len(args) - len(statics):
            raise ValueError(f"pmap in_axes has {len(in_axes)} elements, for {len(args)} positional arguments")
        rest = iter(in_axes)  # given for the arguments that are not static
        return [None if i in statics else next(rest) for i in range(len(args))]
    return [in_axes] * len(args)


def _part(args: Sequence[Any], axes: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
    """The arguments without their mapped axes; None where one of them is not of size 1."""
    fits = True

    def one(a: Any, x: Any) -> Any:
        nonlocal fits
        if a is None:
            return x
        shape = np.shape(x)
        if not -len(shape) <= a < len(shape) or shape[a] != 1:
            fits = False
            return x
        return hooks.lax.squeeze(x, (a,))

    def spread(axis: Any, arg: Any) -> Any:
        leaves, structure = tree.tree_flatten(arg)
        found = ([axis] * len(leaves) if axis is None or isinstance(axis, int)
                 else tree_paths.broadcast_prefix(axis, arg, is_leaf=lambda a: a is None))
        return tree.tree_unflatten(structure, map(one, found, leaves))

    parts = [spread(axis, arg) for axis, arg in zip(axes, args, strict=True)]
    named = {k: spread(0, v) for k, v in kwargs.items()}
    return (parts, named) if fits else None


def _check_sizes(args: Sequence[Any], axes: Sequence[Any], kwargs: dict[str, Any], count: int) -> int | None:
    """The size of the mapped axes. ValueError where there are none, or they are larger than the number of devices."""
    size: int | None = None
    for arg, axis in [*zip(args, axes, strict=True), *((v, 0) for v in kwargs.values())]:
        leaves = tree.tree_leaves(arg)
        spread = ([axis] * len(leaves) if axis is None or isinstance(axis, int)
                  else tree_paths.broadcast_prefix(axis, arg, is_leaf=lambda a: a is None))
        for x, a in zip(leaves, spread, strict=True):
            shape = np.shape(x)
            if a is None or not shape:
                continue
            size = shape[a]
            if size > count:
                raise ValueError(f"compiling computation that requires {size} logical devices, but only {count} "
                                 "XLA devices "
                                 f"are available: pmap got an array of shape {shape} to be spread along axis {a}")
    if size is None:
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    return size


@api_boundary
def shard_map(f: Function | None = None, /, *, out_specs: PyTree, in_specs: PyTree = Infer,
              mesh: Mesh | AbstractMesh | None = None, axis_names: Iterable[AxisName] = frozenset(),
              check_vma: bool = True, check_rep: bool = True, auto: Iterable[AxisName] = frozenset()) -> Function:
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
                                 check_vma=check_vma, check_rep=check_rep, auto=auto)

    @wraps(f)
    def mapped(*args: Any) -> Any:
        if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError("shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for "
                            f"its second argument, but got {mesh} of type {type(mesh)}.")
        used = mesh if mesh is not None else meshes.current_mesh()
        if used.empty:
            raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context, "
                             "or pass `mesh=`")
        if used.size != 1:
            raise ValueError(f"shard_map over {used} needs {used.size} devices; there is one")
        if not set(axis_names) <= set(used.axis_names):
            raise ValueError(f"jax.shard_map requires axis_names={frozenset(axis_names)} to be a subset of "
                             f"mesh.axis_names={frozenset(used.axis_names)}")
        names = [n for n in used.axis_names if (not axis_names or n in axis_names) and n not in auto]
        if in_specs is not Infer:
            _check_specs(in_specs, args, used)

        def inner(given: tuple) -> Any:
            return f(*given)

        for name in reversed(names):
            inner = vmap(inner, in_axes=None, out_axes=0, axis_name=name, axis_size=1)
        outs = inner(args)
        outs = tree.tree_map(lambda x: x.reshape(x.shape[len(names):]), outs)
        leaves, structure = tree.tree_flatten(outs)
        specs = _check_specs(out_specs, outs, used)
        return tree.tree_unflatten(structure, [_spread(x, spec, used) for x, spec in zip(leaves, specs, strict=True)])

    return mapped


def _spread(x: Any, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh) -> Any:
    """A result that tells how it is spread, where it is there already."""
    if spec is None or not isinstance(x, Array) or not isinstance(mesh, Mesh):
        return x
    return device_put(x, NamedSharding(mesh, spec))


def _check_specs(specs: Any, values: Any, mesh: Mesh | AbstractMesh) -> list[PartitionSpec | None]:
    """The specifications by leaf. ValueError where one does not fit its value."""
    leaves, _ = tree.tree_flatten(values)
    is_leaf = lambda s: s is None or isinstance(s, PartitionSpec)
    found = [specs] * len(leaves) if is_leaf(specs) else tree_paths.broadcast_prefix(specs, values, is_leaf=is_leaf)
    for x, spec in zip(leaves, found, strict=True):
        if spec is None:
            continue
        NamedSharding(mesh, spec)
        ndim = len(get_aval(x).shape)
        if len(spec) > ndim:
            raise ValueError(f"shard_map got the specification {spec}, of length {len(spec)}, for an array of rank "
                             f"{ndim}")
    return found
