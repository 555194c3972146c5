"""`pmap`: a function on all devices at once, each on its slice of the arguments."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.arrays import backends, host_devices
from ..core.arrays.array import Array
from ..core.arrays.devices import Device
from ..core.arrays.mesh import Mesh
from ..core.arrays.shardings import IndivisibleError, NamedSharding, PartitionSpec
from ..core.hooks import lax
from ..core.programs.following import spread_alike
from ..core.tracing.invalid_values import of_devices
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import Tracer, get_aval
from ..core.trees import tree, tree_paths
from ..core.types.typing import AxisName, Function, PyTree
from ..lax.collectives.placing import device_put
from ..transforms.batch import batch_flat, matchaxis, moveaxis
from ..transforms.flattening import FlatFunction
from ..transforms.jit import jit
from ..transforms.mapped_axis import Across, AxisData
from ..transforms.naming import check_callable, wraps
from .blocks import device_axes
from .differing_copies import own_blocks, with_own_copies
from .whereabouts import movable, spread_over


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
    _fun = _jitted(fun, given, donated)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if statics and max(statics) >= len(args):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={statics} but was called with only {len(args)} "
                f"positional argument{'s' if len(args) > 1 else ''}. All static broadcasted arguments must be passed "
                "positionally.")
        _refuse_nesting(axis_name)
        if not backends.several and devices is None:
            with of_devices():
                return _fun(*args, **kwargs)
        size = given.check(args, kwargs)
        moved = tuple(x if i in statics else tree.tree_map(movable, x) for i, x in enumerate(args))
        with of_devices():
            outs = _fun(*moved, **tree.tree_map(movable, kwargs))
        for i in (i for i in donated if i < len(args)):
            for x, y in zip(tree.tree_leaves(args[i]), tree.tree_leaves(moved[i]), strict=True):
                if isinstance(y, Array) and y.is_deleted():
                    x.delete()
        return given.spread(outs, size)

    @api_boundary
    @wraps(fun)
    def lower(*args: Any, **kwargs: Any) -> Any:
        if not backends.several or not args:
            return _fun.lower(*args, **kwargs)
        size = given.of(args, kwargs)[2]
        return _fun.lower(*given.placed(args, size), **kwargs)

    @wraps(fun)
    def trace(*args: Any, **kwargs: Any) -> Any:
        return _fun.trace(*args, **kwargs)

    mapped.lower = lower  # type: ignore[attr-defined]
    mapped.trace = trace  # type: ignore[attr-defined]
    return mapped


# function -> how it is mapped -> the function over all devices' blocks, jitted
_mapped: weakref.WeakKeyDictionary[Function, dict[Any, Any]] = weakref.WeakKeyDictionary()


def _jitted(fun: Function, given: _Layout, donated: tuple[int, ...]) -> Any:
    """The function over all devices' blocks at once, jitted: one for all wrappers of it that are alike, each of which
    keeps it alive."""
    key = given.key(), donated
    try:
        hash(key)
        known = _mapped.setdefault(fun, {}) if type(fun).__eq__ is object.__eq__ else None
    except TypeError:  # something without a hash, or a callable that cannot be referenced weakly
        known = None
    if known is None:
        return _over_blocks(lambda: fun, given, donated)
    if key not in known:
        known[key] = _over_blocks(weakref.ref(fun), given, donated)
    return known[key]


def _over_blocks(function: Callable[[], Any], given: _Layout, donated: tuple[int, ...]) -> Any:
    @functools.partial(jit, static_argnums=given.statics or None, donate_argnums=donated or None)
    def _fun(*args: Any, **kwargs: Any) -> Any:
        return given.over_blocks(function(), args, kwargs)

    return _fun


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

    def key(self) -> tuple[Any, ...]:
        """What tells it from others; it has a hash if all of that has."""
        devices = None if self.devices is None else tuple(self.devices)
        return self.axis_name, self.in_axes, self.out_axes, self.statics, devices, self.backend, self.axis_size

    def used(self, size: int) -> Sequence[Device]:
        """The devices for a mapped axis of a size, as far as there are so many."""
        if self.devices is None:
            found: Sequence[Device] = backends.get(self.backend).devices()
        else:
            found = host_devices.addressable(tuple(self.devices))
        return found[:max(size, 1)]

    def across(self) -> Across | None:
        """The mapped axis over the devices of all processes, of which each gives and gets the parts of its own.

        Raises NotImplementedError for devices of plugins.
        """
        if host_devices.cohort is None or self.axis_name is None:
            return None
        found = tuple(backends.all_devices(self.backend)) if self.devices is None else tuple(self.devices)
        if len(host_devices.addressable(found)) == len(found):
            return None
        if found[0].apart:
            raise NotImplementedError("pmap over devices of several processes on the platform "
                                      f"{found[0].platform}: use jax.shard_map")
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
        if found is None:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
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
        return tree.tree_unflatten(structure, [spread_over(x, s.spec, s.mesh)
                                               for x, s in zip(leaves, told, strict=True)])

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
            return spread_over(x if isinstance(x, Array) else device_put(x), told.spec, told.mesh)

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
        leaves = [x if s is None else spread_over(x, s.spec, s.mesh) for x, s in zip(leaves, told, strict=True)]
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
                 layout: _Layout) -> int | None:
    """The size of the mapped axes, None for none. ValueError where they do not fit each other or the devices."""
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
    if scalars and size is not None:
        raise ValueError(f"pmap was requested to map an argument along axis {scalars[0]} that is a scalar, over {size} "
                         "devices")
    return size


__all__ = ["pmap"]
