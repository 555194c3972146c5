"""`pmap` and `shard_map`: one program, each device its part of the data, collectives between them.

The devices of a platform that shares their memory are mapped over as `vmap` maps (see `blocks`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from ..core.arrays import backends, by_device, differing, host_devices
from ..core.arrays import mesh as meshes
from ..core.arrays.array import Array
from ..core.arrays.devices import Device, ManyDevices, together
from ..core.arrays.mesh import AbstractMesh, AxisType, Mesh, use_abstract_mesh
from ..core.arrays.moving import home
from ..core.arrays.shardings import IndivisibleError, NamedSharding, PartitionSpec
from ..core.hooks import lax
from ..core.programs.following import spread_alike
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import Tracer, get_aval, state
from ..core.trees import tree, tree_paths
from ..core.types.avals import AbstractRef
from ..core.types.typing import AxisName, Function, PyTree
from ..lax.collectives.device_values import axes_apart, device_values_p, of_device_values_p
from ..lax.collectives.placing import constrain, device_put, reshard_p, untold
from ..transforms.batch import batch_flat, matchaxis, moveaxis
from ..transforms.flattening import FlatFunction
from ..transforms.jit import jit
from ..transforms.mapped_axis import Across, AxisData
from ..transforms.naming import check_callable, wraps
from ..transforms.references import Ref
from ..transforms.views import apart
from .blocks import NONE_ACROSS, cut, device_axes, joined, over_devices, shared
from .differing_copies import own_blocks, with_own_copies
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


class _Infer:
    """Stands for specifications that are read off the arguments."""

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


Infer = _Infer()


@api_boundary
def pmap(fun: Function, axis_name: AxisName | None = None, *, in_axes: int | None | Sequence[PyTree] = 0,
         out_axes: PyTree = 0, static_broadcasted_argnums: int | Iterable[int] = (),
         devices: Sequence[Device] | None = None, backend: str | None = None, axis_size: int | None = None,
         donate_argnums: int | Iterable[int] = ()) -> Function:
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
    if common := set(donated) & set(statics):
        raise ValueError(f"`static_argnums` {sorted(common)} and `donate_argnums` {sorted(common)} cannot intersect.")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if any(type(a) is not int for a in tree.tree_leaves(axes)):
            raise TypeError(f"pmap {name} must be an int, None, or (nested) container with those types as leaves, but "
                            f"got {axes}.")
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    if devices is not None and len(set(devices)) != len(devices):
        raise ValueError(f"'devices' argument to pmap must be different ones, got {list(devices)}")

    given = _Layout(axis_name, in_axes, out_axes, statics, devices, backend, axis_size)

    @functools.partial(jit, static_argnums=statics or None, donate_argnums=donated or None)
    def _fun(*args: Any, **kwargs: Any) -> Any:
        return given.over_blocks(fun, args, kwargs)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if statics and max(statics) >= len(args):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={statics} but was called with only {len(args)} "
                f"positional argument{'s' if len(args) > 1 else ''}. All static broadcasted arguments must be passed "
                "positionally.")
        _refuse_nesting(axis_name)
        if not backends.several and devices is None:
            return _fun(*args, **kwargs)
        size = given.check(args, kwargs)
        moved = tuple(x if i in statics else tree.tree_map(_anywhere, x) for i, x in enumerate(args))
        outs = _fun(*moved, **tree.tree_map(_anywhere, kwargs))
        for i in (i for i in donated if i < len(args)):
            for x, y in zip(tree.tree_leaves(args[i]), tree.tree_leaves(moved[i]), strict=True):
                if isinstance(y, Array) and y.is_deleted():
                    x.delete()
        return given.spread(outs, size)

    @api_boundary
    def lower(*args: Any, **kwargs: Any) -> Any:
        if not backends.several or not args:
            return _fun.lower(*args, **kwargs)
        size = given.of(args, kwargs)[2]
        return _fun.lower(*given.placed(args, size), **kwargs)

    mapped.lower = lower  # type: ignore[attr-defined]
    mapped.trace = _fun.trace  # type: ignore[attr-defined]
    return mapped


class _Layout:
    """How a `pmap` lays its arguments and results along the devices."""

    __slots__ = ("axis_name", "axis_size", "backend", "devices", "in_axes", "out_axes", "statics")

    def __init__(self, axis_name: AxisName | None, in_axes: Any, out_axes: PyTree, statics: Sequence[int],
                 devices: Sequence[Device] | None, backend: str | None, axis_size: int | None):
        self.axis_name = axis_name
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.statics = statics
        self.devices = devices
        self.backend = backend
        self.axis_size = axis_size

    def used(self, size: int) -> Sequence[Device]:
        """The devices for a mapped axis of a size, as far as there are so many."""
        if self.devices is None:
            found: Sequence[Device] = backends.get(self.backend).devices()
        else:
            found = host_devices.addressable(tuple(self.devices))
        return found[:max(size, 1)]

    def across(self) -> Across | None:
        """The mapped axis over the devices of all processes, of which each gives and gets the parts of its own."""
        if host_devices.cohort is None or self.axis_name is None:
            return None
        found = tuple(backends.all_devices(self.backend)) if self.devices is None else tuple(self.devices)
        if len(host_devices.addressable(found)) == len(found):
            return None
        from . import process_mapping

        return process_mapping.axis(found, self.axis_name)

    def of(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[int], list[Any], int]:
        """Which arguments are traced, the axes of all, and the size of the mapped axis."""
        axes = _axes_of(self.in_axes, tuple(args), self.statics)
        dynamic = [i for i in range(len(args)) if i not in self.statics]
        try:
            found = _check_sizes([args[i] for i in dynamic], [axes[i] for i in dynamic], kwargs, self)
        except IndivisibleError:
            raise
        except ValueError:
            _check_prefix(self.in_axes, tuple(args))
            raise
        if self.axis_size is not None and found != self.axis_size:
            raise ValueError(f"Specified axis_size {self.axis_size} doesn't match received axis_size {found}.")
        return dynamic, axes, found

    def along(self, size: int, x: Any, axis: int | None) -> NamedSharding:
        """Where an array is that lies along the devices so."""
        mesh = Mesh(np.array(self.used(size)), (_UNNAMED if self.axis_name is None else self.axis_name,))
        return NamedSharding(mesh, PartitionSpec() if axis is None else PartitionSpec(
            *(None,) * (axis % max(np.ndim(x), 1)), mesh.axis_names[0]))

    def spread(self, outs: PyTree, size: int) -> PyTree:
        """Results that tell that they are on the devices."""
        leaves, structure = tree.tree_flatten(outs)
        told = [self.along(size, x, a) for x, a in zip(leaves, _leaf_axes(self.out_axes, outs), strict=True)]
        return tree.tree_unflatten(structure, [_spread(x, s.spec, s.mesh) for x, s in zip(leaves, told, strict=True)])

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
        """The size of the mapped axis. ValueError for an argument that is committed to lie elsewhere."""
        dynamic, axes, size = self.of(args, kwargs)
        for i in dynamic:
            for x, axis in zip(tree.tree_leaves(args[i]), _leaf_axes(axes[i], args[i]), strict=True):
                if axis is None or not isinstance(x, Array) or isinstance(x, Tracer) or not x.committed:
                    continue
                wanted = self.along(size, x, axis)
                if not isinstance(x.sharding, NamedSharding) or not spread_alike(wanted, x.sharding, x.ndim):
                    raise ValueError("Sharding passed to jit does not match the sharding on the respective arg. Got "
                                     f"jit sharding: {wanted},\narg sharding: {x.sharding} for arg type: "
                                     f"{x.aval.str_short()}")
        return size

    def placed(self, args: Sequence[Any], size: int) -> list[Any]:
        """The positional arguments where they are expected."""
        axes = _axes_of(self.in_axes, tuple(args), self.statics)

        def one(x: Any, axis: int | None) -> Any:
            if not isinstance(x, (Array, np.ndarray)) or isinstance(x, Tracer):
                return x
            told = self.along(size, x, axis)
            return _spread(x if isinstance(x, Array) else device_put(x), told.spec, told.mesh)

        found: list[Any] = []
        for i, x in enumerate(args):
            leaves, structure = tree.tree_flatten(x)
            found.append(x if i in self.statics else tree.tree_unflatten(
                structure, map(one, leaves, _leaf_axes(axes[i], x))))
        return found

    def over_blocks(self, fun: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> PyTree:
        """The function mapped over all devices' blocks at once."""
        dynamic, axes, size = self.of(args, kwargs)

        def one(given: Sequence[Any], named: dict[str, Any]) -> Any:
            rest = iter(given)
            return fun(*(args[i] if i in self.statics else next(rest) for i in range(len(args))), **named)

        given, axes_in = [args[i] for i in dynamic], [axes[i] for i in dynamic]
        across = self.across()
        alone = size == 1 and across is None
        if alone:  # the device's part is an array like any other, for callbacks too
            given, kwargs = _part(given, axes_in, kwargs)
            axes_in = [None] * len(given)
        leaves, in_tree = tree.tree_flatten(((given, kwargs), {}))
        dims = _leaf_axes(axes_in, given) + [None if alone else 0] * len(tree.tree_leaves(kwargs))
        dims = [d if d is None or d >= 0 else d + get_aval(x).ndim for x, d in zip(leaves, dims, strict=True)]
        told = [None if d is None else self.along(size, x, d) for x, d in zip(leaves, dims, strict=True)]
        leaves = [x if s is None else _spread(x, s.spec, s.mesh) for x, s in zip(leaves, told, strict=True)]
        if not alone and across is None:
            leaves, dims = self._own_copies(leaves, dims, size)
        flat = FlatFunction(one, in_tree)
        outs, out_dims = batch_flat(flat, leaves, dims, AxisData(self.axis_name, size, devices=True, across=across))
        wanted = _leaf_axes(self.out_axes, tree.tree_unflatten(flat.structure, outs))
        return self.spread(tree.tree_unflatten(flat.structure, [
            self._along(x, d, w, size) for x, d, w in zip(outs, out_dims, wanted, strict=True)]), size)

    def _own_copies(self, leaves: Sequence[Any], dims: Sequence[int | None],
                    size: int) -> tuple[list[Any], list[int | None]]:
        """Arguments with their mapped axes, where those that all devices get whole are each device's own copy."""
        mesh = self.along(size, None, None).mesh
        own = [None if d is not None else own_blocks(x, PartitionSpec(), mesh, {mesh.axis_names[0]: size})
               for x, d in zip(leaves, dims, strict=True)]
        return ([x if o is None else o[0] for x, o in zip(leaves, own, strict=True)],
                [d if o is None else 0 for d, o in zip(dims, own, strict=True)])

    def _along(self, x: Any, dim: int | None, wanted: int | None, size: int) -> Any:
        """A result with the mapped axis where it is wanted; of one that is to be the same everywhere each device's own,
        or the first."""
        if wanted is None:
            if dim is None:
                return x
            told = self.along(size, x, None)
            names = told.mesh.axis_names
            copies = None if host_devices.cohort is not None else with_own_copies(
                moveaxis(x, dim, 0), names, told.spec, told.mesh, {names[0]: size})
            return lax.index_in_dim(x, 0, dim, keepdims=False) if copies is None else copies
        rank = get_aval(x).ndim + (dim is None)
        if not -rank <= wanted < rank:
            raise ValueError(f"axis {wanted} is out of bounds for array of dimension {rank}")
        return matchaxis(None, size, dim, wanted % rank, x)


_UNNAMED = "_internal_pmap_axis_name"


def _refuse_nesting(axis_name: AxisName | None) -> None:
    """ValueError for a `pmap` inside another."""
    around = device_axes()
    if around:
        raise ValueError(f"The context mesh, with axes {around}, should match the mesh passed to shard_map, with axes "
                         f"{(_UNNAMED if axis_name is None else axis_name,)}: maps over devices do not nest")


def _anywhere(x: Any) -> Any:
    """An array that may be moved to where it is needed."""
    if not isinstance(x, Array) or isinstance(x, Tracer) or not x.committed or x.buffer is None or isinstance(
            x.buffer.device, ManyDevices):
        return x
    out = type(x)(x.aval, x.buffer)
    out._numpy = x._numpy  # by which donation sees that NumPy looks into the memory
    return out


def _leaf_axes(axes: Any, values: Any) -> list[Any]:
    """Axes by leaf of `values`, of which they are a prefix; None is one of them."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(tree.tree_leaves(values))
    return tree_paths.broadcast_prefix(axes, values, is_leaf=lambda a: a is None)


def _axes_of(in_axes: Any, args: tuple, statics: Sequence[int]) -> list[Any]:
    if isinstance(in_axes, list):  # the arguments are a tuple
        _check_prefix(in_axes, args)
    if isinstance(in_axes, tuple):
        if len(in_axes) == len(args):
            return list(in_axes)
        if len(in_axes) != len(args) - len(statics):
            _check_prefix(in_axes, args)
            raise ValueError(f"pmap in_axes has {len(in_axes)} elements, for {len(args)} positional arguments")
        rest = iter(in_axes)  # given for the arguments that are not static
        return [None if i in statics else next(rest) for i in range(len(args))]
    return [in_axes] * len(args)


def _check_prefix(in_axes: Any, args: tuple) -> None:
    """Raises ValueError for axes that are no prefix of the arguments."""
    for problem in tree_paths.prefix_errors((in_axes,), (args,))[:1]:
        raise ValueError(f"{problem('pmap in_axes')}\n\nThe 'full pytree' here is the tuple of arguments passed "
                         "positionally to the pmapped function, and the value of `in_axes` must be a tree prefix of "
                         "that tuple. But it was not a prefix.\n\nCheck that the value of the `in_axes` argument to "
                         "`pmap` is a tree prefix of the tuple of arguments passed positionally to the pmapped "
                         "function.")


def _part(args: Sequence[Any], axes: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments without their mapped axes, which are of size 1."""
    def one(a: Any, x: Any) -> Any:
        return x if a is None else lax.squeeze(x, (a,))

    def spread(axis: Any, arg: Any) -> Any:
        leaves, structure = tree.tree_flatten(arg)
        return tree.tree_unflatten(structure, map(one, _leaf_axes(axis, arg), leaves))

    return ([spread(axis, arg) for axis, arg in zip(axes, args, strict=True)],
            {k: spread(0, v) for k, v in kwargs.items()})


def _check_sizes(args: Sequence[Any], axes: Sequence[Any], kwargs: dict[str, Any],
                 layout: _Layout) -> int:
    """The size of the mapped axes. ValueError where there are none, or they do not fit each other or the devices."""
    size: int | None = None
    scalars: list[int] = []
    for arg, axis in [*zip(args, axes, strict=True), *((v, 0) for v in kwargs.values())]:
        for x, a in zip(tree.tree_leaves(arg), _leaf_axes(axis, arg), strict=True):
            shape = np.shape(x)
            if a is None:
                continue
            if not shape:
                scalars.append(a)
                continue
            if not -len(shape) <= a < len(shape):
                raise IndexError(f"pmap was requested to map its argument along axis {a}, which implies that its rank "
                                 f"should be at least {a + 1 if a >= 0 else -a}, but is only {len(shape)} (its shape "
                                 f"is {shape})")
            if size is None:
                size = shape[a]
            count = len(layout.used(size))
            if shape[a] != count:
                layout.along(size, x, a).shard_shape(shape)
                raise IndivisibleError(
                    f"pmap over {count} devices got an array of shape {shape} to be spread along axis {a}: compiling "
                    f"computation that requires {shape[a]} logical devices, where {count} are available or used by "
                    "another argument")
    if size is None:
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    for a in scalars:
        raise ValueError(f"pmap was requested to map an argument along axis {a} that is a scalar, over {size} devices")
    return size


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
        flat = FlatFunction(f, in_tree)
        specs = [own_spec(x, names) for x in leaves] if in_specs is Infer else by_leaf("in_specs", in_specs, args)
        for i, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
            check_argument(Place(flat, in_specs, i), get_aval(x), spec, used)
            check_spread(get_aval(x), spec, used, names)
        sizes = {n: used.shape[n] for n in names}
        checked = bool(check_vma)
        inside = used.abstract_mesh
        spread = used if isinstance(used, Mesh) and host_devices.cohort is not None and used.is_multi_process else None
        if spread is not None:
            from . import process_mapping

            sizes, across = process_mapping.local_sizes(spread, names)
            blocks = [process_mapping.cut(x, s, spread) for x, s in zip(leaves, specs, strict=True)]
        else:
            across = NONE_ACROSS
            explicit = [entries_over(get_aval(x), set(used.explicit_axes) - set(names)) for x in leaves]
            # what devices have of sums is told apart by types
            alike = checked or any(s is not None and (s.unreduced or s.reduced) for s in specs)
            own = [None if alike else own_blocks(x, PartitionSpec() if s is None else s, used, sizes)
                   for x, s in zip(leaves, specs, strict=True)]
            leaves = [_given(x, s, used, checked) for x, s in zip(leaves, specs, strict=True)]
        inside = inside.update(axis_types=tuple(AxisType.Manual if n in sizes else t for n, t in zip(
            inside.axis_names, inside.axis_types, strict=True)))
        with use_abstract_mesh(inside), by_device.over(_shown(used, leaves) if spread is None else None):
            if spread is None:
                blocks = [cut(x, PartitionSpec() if s is None else s, sizes) if o is None else o
                          for x, s, o in zip(leaves, specs, own, strict=True)]
                blocks = [(seen_along(x, inside, (*(None,) * len(varies), *entries)), varies)
                          for (x, varies), entries in zip(blocks, explicit, strict=True)]
            marked = Marked(flat, specs)
            results = over_devices(marked if checked and spread is None else flat, blocks, sizes, checked, across)
            explicit = [entries_over(get_aval(x), set(inside.explicit_axes))[len(varies):] for x, varies in results]
            results = [(untold(x), varies) for x, varies in results]
        whole = tree.tree_unflatten(flat.structure, [x for x, _ in results])
        wanted = by_leaf("out_specs", out_specs, whole, none=False)
        outs = []
        known = list(zip(results, wanted, explicit, marked.of_results(results), strict=True))
        check_results(flat.__name__, [check_result(Place(flat, out_specs, i), x, varies, spec, used, checked, sums)
                                      for i, ((x, varies), spec, _, sums) in enumerate(known)], used,
                      all(not isinstance(x, Tracer) for x, _ in results))
        for (x, varies), spec, entries, _ in known:
            if spread is not None:
                outs.append(process_mapping.joined(x, varies, spec, spread, sizes))
            else:
                if not checked and spec is not None:  # nobody knows what is a summand, and what a copy of it
                    x = shared(x, math.prod(sizes[n] for n in spec.unreduced))
                outs.append(_result(x, varies, spec, entries, used, sizes, alike))
        return tree.tree_unflatten(flat.structure, outs)

    return mapped


def _result(x: Any, varies: Sequence[AxisName], spec: PartitionSpec | None, entries: Sequence[Any],
            mesh: Mesh | AbstractMesh, sizes: dict[AxisName, int], alike: bool) -> Any:
    """A result of blocks `[*varies, *block]` under a specification; `entries`: how it is spread over other axes;
    `alike`: whether copies that are told to be are."""
    copies = None if alike else with_own_copies(x, varies, PartitionSpec() if spec is None else spec, mesh, sizes)
    if copies is not None:
        return _spread(copies, spec, mesh) if isinstance(copies, Tracer) else copies
    whole_spec = None if spec is None and not any(entries) else with_entries(spec, entries)
    return _spread(joined(x, varies, PartitionSpec() if spec is None else spec, sizes), whole_spec, mesh)


def _shown(mesh: Mesh | AbstractMesh, leaves: Sequence[Any]) -> Mesh | None:
    """The mesh, if the function runs at once on all its devices: what these have may be printed."""
    traced = not state.trace.is_eval or any(isinstance(x, Tracer) for x in leaves)
    return None if traced or isinstance(mesh, AbstractMesh) else mesh


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
        x = _anywhere(x if isinstance(x, Array) else device_put(x))
        if differing.differs(x):  # which nothing tells here
            x = differing.copy_on(x, x.buffer.device)
        if axes_apart(x.aval.given_sharding):
            return device_values_p.bind(x, equal=checked)
        return x if x.aval.given_sharding is None else Array(x.aval.update(sharding=None), x.buffer)
    aval = get_aval(x)
    if getattr(aval, "given_sharding", None) is None and not isinstance(aval, AbstractRef):
        x = _told(x, PartitionSpec() if mesh.explicit_axes else spec, mesh)
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
    return isinstance(mesh, Mesh) and host_devices.cohort is None and home(tuple(mesh.devices.flat)) is not None


def _spread(x: Any, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh) -> Any:
    """A result that tells how it is spread; given by what devices have, where it is still to be summed, or was."""
    if spec is not None and (spec.unreduced or spec.reduced):
        return of_device_values_p.bind(x, sharding=NamedSharding(
            mesh.abstract_mesh if isinstance(x, Tracer) else mesh, spec))
    if isinstance(mesh, AbstractMesh) and spec is not None and mesh.explicit_axes and isinstance(x, Tracer):
        return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, spec))
    if spec is None or not isinstance(mesh, Mesh):
        return x
    if not isinstance(x, Tracer):
        return device_put(x, NamedSharding(mesh, spec))
    if mesh.explicit_axes:
        return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, spec))
    return _told(x, spec, mesh)


def _told(x: Tracer, spec: PartitionSpec | None, mesh: Mesh | AbstractMesh) -> Any:
    """A traced value of which the program says on which devices it is, where there are several."""
    if spec is None or not isinstance(mesh, Mesh) or not (backends.several or together(tuple(mesh.devices.flat))):
        return x
    return constrain(x, NamedSharding(mesh, spec))
