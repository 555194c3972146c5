"""Where values of a program live: moving them to devices, and saying how they are spread over a mesh."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from styrax.core.arrays import backends, by_device, differing, host_devices, mesh, transfers
from styrax.core.arrays.array import Array
from styrax.core.arrays.devices import Device, Sharding, SingleDeviceSharding, together
from styrax.core.arrays.explicit import check_explicit, is_unsummed, on_devices, sharding_of_type, with_mapped_axis
from styrax.core.arrays.layouts import AutoLayout, Format, check_rank
from styrax.core.arrays.moving import moved
from styrax.core.arrays.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, axes_of
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.spreading import entries
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, get_aval, state
from styrax.core.trees import tree, tree_paths
from styrax.core.types.dims import is_symbolic
from styrax.core.types.effects import no_effects
from styrax.core.types.physical import physicals
from styrax.core.types.typing import DeviceLike, PyTree, ShardingLike
from styrax.transforms import ad
from styrax.transforms.batching import AxisData

from .. import factor_rules, sharding_rules
from ..elementwise.families import standard_primitive
from .named_axes import check_communication

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value


class ArrayCopySemantics(enum.IntEnum):
    """Whether moving an array may share, must copy, or may take over its memory."""

    REUSE_INPUT = 0
    ALWAYS_COPY = 1
    DONATE_INPUT = 2

    def __repr__(self) -> str:
        return f"ArrayCopySemantics.{self.name}"


class Space(enum.Enum):
    """Kinds of memory. On CPUs all are the same."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


_SPACES = {Space.Device: "device", Space.Host: "pinned_host"}

# -- device_put ---------------------------------------------------------------------------------------------

device_put_p = Primitive("device_put", multiple_results=True)


def _put_shardings(at: Any, *xs: Any, devices: Sequence[Any], **_: Any) -> list[Any]:
    return [d if isinstance(d, NamedSharding) else entries(x) for x, d in zip(xs, devices, strict=True)]


device_put_p.declare(movement=True, sharding=_put_shardings, factors=factor_rules.each)


@device_put_p.def_abstract_eval
def _put_avals(*xs: Any, **params: Any) -> list[Any]:
    return list(xs)


def _check_put(x: Any, sharding: NamedSharding) -> None:
    """Raises ValueError where an array of a type cannot be put under a sharding."""
    try:
        sharding.check_compatible_aval(x.shape)
    except ValueError as error:
        raise ValueError(f"One of device_put args is incompatible with its sharding annotation {sharding}: "
                         f"{error}") from None
    if not any(is_symbolic(d) for d in x.shape):
        sharding.shard_shape(x.shape)
    if varying := [n for n in sharding.mesh.axis_names if n in (x.vma or ())]:
        raise ValueError("what differs on the devices of a map cannot be put under a sharding over these: the axis "
                         f"{varying[0]} should be of type `Manual`, got {sharding}")


@device_put_p.def_impl
def _put(*xs: Any, devices: Sequence[Any], srcs: Sequence[Any], copy_semantics: Sequence[Any]) -> list[Any]:
    if transfers.used:
        with transfers.explicit():
            return [_put_one(x, d, c) for x, d, c in zip(xs, devices, copy_semantics, strict=True)]
    return [_put_one(x, d, c) for x, d, c in zip(xs, devices, copy_semantics, strict=True)]


def _put_one(x: Any, device: Any, semantics: ArrayCopySemantics) -> Any:
    aval = get_aval(x)
    if host_devices.cohort is not None and isinstance(x, Array) and not x.is_fully_addressable:
        return _put_spanning(x, device)
    array = x if isinstance(x, Array) else backends.get().put(x, aval, None)
    if semantics == ArrayCopySemantics.ALWAYS_COPY and differing.differs(x):
        array = differing.viewed(x, lambda rows: rows.copy())
    elif semantics == ArrayCopySemantics.ALWAYS_COPY and array is x:
        array = x.copy() if is_unsummed(aval.given_sharding) else backends.get().put(x._value, aval, None)
    if isinstance(device, Space) and isinstance(array, Array):
        kind = _SPACES.get(device)
        return array if kind is None else array.placed(array.sharding.with_memory_kind(kind))
    if device is None or isinstance(device, Space):
        return array
    if isinstance(device, NamedSharding):
        if any(e is UNCONSTRAINED for e in device.spec):
            device = device.update(spec=device.spec.update(
                partitions=tuple(None if e is UNCONSTRAINED else e for e in device.spec)))
        if isinstance(device.mesh, mesh.AbstractMesh) and type(array) is Array:
            if device.mesh.empty:
                if not state.trace.is_eval:  # a constant of a program
                    return array
                raise ValueError("is_fully_addressable is not implemented for `jax.sharding.AbstractMesh`.")
            device = on_devices(device, array._live().device)
        device.check_compatible_aval(aval.shape)
        device.shard_shape(aval.shape)
        if device.spec.unreduced and not isinstance(x, Array):  # what is read on the host is put where parts are to be
            device.devices_indices_map(aval.shape)
        if (many := together(device._device_assignment)) is not None:
            return many.put(x, device)
    if array is x and x.committed and isinstance(device, Sharding) and x.sharding == device:
        return x
    if not isinstance(array, Array):
        return array
    if differing.differs(array):
        moved_copy = differing.moved(array, device._device if isinstance(device, SingleDeviceSharding) else device)
        if moved_copy is array:
            return array
        array = moved_copy
    if is_unsummed(aval.given_sharding) and not (isinstance(device, NamedSharding) and device.spec.unreduced):
        return array._value  # raises an error
    target = device._device if isinstance(device, SingleDeviceSharding) else device
    if isinstance(target, Device):
        if target.client is None:
            raise ValueError(f"{target} is a device of process {target.process_index}: no other process puts arrays on "
                             "it")
        if target.client is not array._live().device.client:
            array = moved(array, target)
        if target is not array._live().device:
            device = SingleDeviceSharding(target, memory_kind=getattr(device, "memory_kind", None))
    return array.placed(device if isinstance(device, Sharding) else None)


def _put_spanning(x: Array, device: Any) -> Array:
    """An array over several processes elsewhere. ValueError for what is not over the same devices."""
    if device is None or isinstance(device, Space):
        return x
    if isinstance(device, NamedSharding):
        if isinstance(device.mesh, mesh.AbstractMesh):
            device = NamedSharding(x.sharding.mesh, device.spec)
        device.shard_shape(x.shape)
        if device.device_set == x.sharding.device_set:
            return x._live().device.put(x, device)
    raise ValueError("an array over several processes can be put under shardings over the same devices only, got "
                     f"{device} for one under {x.sharding}")


def _put_transpose(cts: Sequence[Any], *xs: Any, devices: Sequence[Any], srcs: Sequence[Any],
                   copy_semantics: Sequence[Any]) -> list[Any]:
    given = [i for i, ct in enumerate(cts) if type(ct) is not ad.Zero]
    out = list(cts)
    if given:
        moved = device_put_p.bind(*(cts[i] for i in given), devices=tuple(srcs[i] for i in given),
                                  srcs=tuple(devices[i] for i in given),
                                  copy_semantics=(ArrayCopySemantics.REUSE_INPUT,) * len(given))
        for i, ct in zip(given, moved, strict=True):
            out[i] = ct
    return out


def _put_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    given = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    out = list(tangents)
    if given:
        kept = {k: tuple(v[i] for i in given) for k, v in params.items()}
        for i, t in zip(given, device_put_p.bind(*(tangents[i] for i in given), **kept), strict=True):
            out[i] = t
    return device_put_p.bind(*primals, **params), out


def _put_loops(b: Builder, *xs: Value, **_: Any) -> list[Value]:
    return list(xs)


rules.loops[device_put_p] = _put_loops
rules.stablehlos[device_put_p] = lambda m, *xs, **params: list(xs)
rules.jvps[device_put_p] = _put_jvp
rules.transposes[device_put_p] = _put_transpose
rules.batchers[device_put_p] = lambda args, dims, **params: (device_put_p.bind(*args, **params), list(dims))
physicals[device_put_p] = lambda _, *xs, **params: device_put_p.bind(*xs, **params)


def _sharding(device: Any, leaf: Any) -> Any:
    """The sharding of a format; others as they are. Arrays lie row after row whatever layout is asked for.

    Raises ValueError for a layout of another number of dimensions than the array's.
    """
    if not isinstance(device, Format):
        return device
    aval = get_aval(leaf)
    if isinstance(device.layout, AutoLayout):
        raise ValueError("sharding and layout in `Layout` instance should be concrete. Got layout: "
                         f"{device} for input {aval.str_short()}")
    check_rank("One of device_put arguments", device, aval.shape)
    return device.sharding


def _in_the_mesh(device: Any) -> Any:
    """A partition as a sharding of the mesh in force; others as they are. Raises ValueError where there is no mesh."""
    if not isinstance(device, PartitionSpec):
        return device
    current = mesh.in_force()
    if current.empty:
        raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put")
    return NamedSharding(current, device)


@api_boundary
def device_put(x: PyTree, device: DeviceLike | ShardingLike | PyTree | None = None, *,
               src: DeviceLike | ShardingLike | PyTree | None = None, donate: bool | PyTree = False,
               may_alias: bool | PyTree | None = None) -> PyTree:
    """Puts the arrays of a tree on a device.

    Args:
      x: a tree of arrays, NumPy arrays and scalars.
      device: a device, sharding or format, or a tree of them that is a prefix of `x`. None for the default device,
        which does not commit the arrays to it.
      src: where the values come from, for derivatives.
      donate: whether the memory of the arrays may be taken over; they are not to be used afterwards.
      may_alias: False for memory of the results' own.

    Returns:
      A tree of arrays.

    Raises:
      ValueError: a sharding that does not fit the shape of an array, or both `donate` and `may_alias`.
      TypeError: what is neither device nor sharding.

    Example:
      >>> import styrax as jax
      >>> jax.device_put([1.0, 2.0])
      [Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True)]
    """
    leaves, treedef = tree.tree_flatten(x)
    devices = [_in_the_mesh(_sharding(d, leaf))
               for d, leaf in zip(_spread("device_put device", device, x, len(leaves)), leaves, strict=True)]
    for d in devices:
        if not (d is None or isinstance(d, (Device, Sharding, Space))):
            raise ValueError("`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, "
                             "`jax.memory.Space` or a pytree of these values. Received invalid value: "
                             f"{d}")
        if isinstance(d, Device) and by_device.running.mesh is not None:  # which runs at once; programs ignore it
            raise ValueError("device_put with explicit device not allowed within shard_map-decorated functions, but "
                             f"got device {d}")
        if (isinstance(d, NamedSharding) and not isinstance(d.mesh, mesh.Mesh) and mesh.state.abstract.empty
                and state.trace.is_eval and not any(isinstance(leaf, Tracer) for leaf in leaves)):
            raise ValueError("is_fully_addressable is not implemented for `jax.sharding.AbstractMesh`.")
    semantics = map(_copy_semantics, _spread("device_put donate", donate, x, len(leaves)),
                    _spread("device_put may_alias", may_alias, x, len(leaves)))
    params = dict(devices=tuple(devices), srcs=tuple(_spread("device_put source", src, x, len(leaves))),
                  copy_semantics=tuple(semantics))
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        for leaf, d in zip(leaves, devices, strict=True):
            if isinstance(d, NamedSharding) and isinstance(d.mesh, mesh.Mesh):
                _check_put(get_aval(leaf), d)
        return tree.tree_unflatten(treedef, device_put_p.bind(*leaves, **params))
    return tree.tree_unflatten(treedef, _put(*leaves, **params))


def _copy_semantics(donated: bool, may_alias: bool | None) -> ArrayCopySemantics:
    if donated and may_alias:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if donated:
        return ArrayCopySemantics.DONATE_INPUT
    return ArrayCopySemantics.ALWAYS_COPY if may_alias is False else ArrayCopySemantics.REUSE_INPUT


def _spread(name: str, prefix: Any, full: Any, count: int) -> list[Any]:
    if prefix is None or isinstance(prefix, (bool, Device, Sharding, Space)):
        return [prefix] * count
    try:
        return tree_paths.broadcast_prefix(prefix, full, is_leaf=lambda d: d is None)
    except ValueError:
        raise ValueError(tree_paths.not_a_prefix(name, prefix, full, lambda d: d is None)) from None


def reshard(xs: PyTree, out_shardings: ShardingLike | PyTree) -> PyTree:
    """The arrays of a tree under other shardings: shardings or `PartitionSpec`s over the mesh in force, as a
    prefix of it.

    Raises:
      TypeError: something else in their place.
      ValueError: None in their place, a specification without a mesh, or axes that are not explicit.
    """
    if isinstance(out_shardings, PartitionSpec) and mesh.in_force().empty:
        raise ValueError("Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
                         f"NamedSharding instance or set the mesh with jax.set_mesh. Got {out_shardings}")
    leaves, treedef = tree.tree_flatten(xs)
    if isinstance(out_shardings, (Sharding, PartitionSpec)):
        found = [out_shardings] * len(leaves)
    else:
        found = tree_paths.broadcast_prefix(out_shardings, xs, is_leaf=lambda s: s is None)
    for sharding in found:
        if sharding is None or isinstance(sharding, NamedSharding) and sharding.mesh.empty:
            raise ValueError("Reshard should only be used with out_shardings which are non-None and have a non-empty "
                             f"mesh. Got sharding {sharding}.")
        if not isinstance(sharding, (NamedSharding, PartitionSpec)):
            raise TypeError("`out_sharding` argument of reshard only supports instances of `NamedSharding` or "
                            f"`PartitionSpec`. Got {sharding} of type: {type(sharding)}")
        if isinstance(sharding, NamedSharding):
            check_explicit(sharding, "passed to reshard ")
    return tree.tree_unflatten(treedef, [_resharded(x, s) for x, s in zip(leaves, found, strict=True)])


def _resharded(x: Any, sharding: Any) -> Any:
    told = over_mesh(sharding)
    if isinstance(sharding, PartitionSpec):
        check_explicit(told, "passed to reshard ")
    if isinstance(told, NamedSharding) and told.mesh.explicit_axes:
        ndim = get_aval(x).ndim
        parts = (*told.spec, *(None,) * (ndim - len(told.spec)))
        while len(parts) > ndim and parts[-1] is None:
            parts = parts[:-1]
        return reshard_p.bind(x, dst_sharding=NamedSharding(
            told.mesh.abstract_mesh, told.spec.update(partitions=parts)))
    own = getattr(get_aval(x), "given_sharding", None)
    if own is not None and isinstance(told, NamedSharding) and isinstance(x, Tracer):
        x = reshard_p.bind(x, dst_sharding=told.update(mesh=told.mesh.abstract_mesh))  # whose type tells nothing then
    return device_put(x, told)


def spread_as(x: Any, told: NamedSharding | None) -> Any:
    """An array spread as a type tells."""
    return x if told is None or get_aval(x).given_sharding == told else reshard_p.bind(x, dst_sharding=told)


def untold(x: Any) -> Any:
    """A value whose type tells nothing of a sharding."""
    told = getattr(get_aval(x), "given_sharding", None)
    if told is None:
        return x
    automatic = told.mesh.update(axis_types=(mesh.AxisType.Auto,) * len(told.mesh.axis_names))
    return reshard_p.bind(x, dst_sharding=NamedSharding(automatic, PartitionSpec()))


reshard_p = Primitive("reshard")
reshard_p.declare(movement=True, printed=lambda params: {})


@reshard_p.def_effectful_abstract_eval
def _reshard_abstract(x: Any, *, dst_sharding: NamedSharding) -> tuple[Any, Any]:
    given, told = x.given_sharding, NamedSharding(dst_sharding.mesh.abstract_mesh, dst_sharding.spec)
    if given is not None and given != told and any(axes is not None for axes in given.spec):
        check_communication("reshard")
    return x.update(sharding=told), no_effects


@reshard_p.def_impl
def _reshard(x: Any, *, dst_sharding: NamedSharding) -> Any:
    array = x if isinstance(x, Array) else backends.get().put(x, get_aval(x), None)
    if not array.is_fully_addressable:
        return _put_spanning(array, dst_sharding)
    return array.placed(on_devices(dst_sharding, array._live().device))


def resummed(x: Array, sharding: Sharding | None) -> Array:
    """An array under a sharding, where one of them says that sums along mesh axes are still to be made."""
    told = sharding if isinstance(sharding, NamedSharding) else NamedSharding(x.sharding.mesh, PartitionSpec())
    if (many := together(told._device_assignment)) is not None:
        return many.put(x, told)
    out = reshard_p._backend_impl(x, dst_sharding=told.update(mesh=told.mesh.abstract_mesh))
    if sharding is not told:
        return out.placed(sharding)
    out.committed, out._sharding = True, told
    return out


def _reshard_transpose(ct: Any, x: Any, *, dst_sharding: NamedSharding) -> list[Any]:
    told = x.aval.cotangent_sharding
    return [ct if told is None or type(ct) is ad.Zero else reshard_p.bind(ct, dst_sharding=told)]


def _reshard_batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int], *,
                   dst_sharding: NamedSharding) -> Any:
    (x,), (d,) = args, dims
    aval = get_aval(x)
    told = with_mapped_axis(dst_sharding, d, aval, d)
    around = axis_data.explicit_mesh_axis
    if aval.given_sharding is None and set(axes_of(around)) <= set(dst_sharding.mesh.explicit_axes):
        told = told.update(spec=told.spec.update(partitions=(*told.spec[:d], around, *told.spec[d + 1:])))
    return reshard_p.bind(x, dst_sharding=told), d


rules.loops[reshard_p] = rules.same_value
rules.stablehlos[reshard_p] = lambda m, x, **_: x
rules.fancy_batchers[reshard_p] = _reshard_batch
ad.deflinear2(reshard_p, _reshard_transpose)
physicals[reshard_p] = lambda _, x, **params: x


def over_mesh(sharding: Any) -> Any:
    """A `PartitionSpec` as a sharding over the mesh in force; shardings as they are. RuntimeError without a mesh."""
    if not isinstance(sharding, PartitionSpec):
        return sharding
    current = mesh.in_force()
    if current.empty:
        raise RuntimeError(
            "with_sharding_constraint requires a non-empty mesh in context if you are passing `PartitionSpec`s to "
            "shardings. You can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
            "shardings and then the mesh context manager is not required.")
    return NamedSharding(current, sharding)


# -- sharding constraints -----------------------------------------------------------------------------------

sharding_constraint_p = standard_primitive(
    "sharding_constraint",
    lambda x, **_: x.shape,
    lambda x, **_: x.dtype,
    loops=rules.same_value,
    hlo=lambda m, x, *, sharding, **_: m.constrained(x, sharding),
)
sharding_constraint_p.declare(movement=True, sharding=sharding_rules.same, factors=factor_rules.elementwise)
ad.deflinear2(sharding_constraint_p, lambda ct, x, **params: [sharding_constraint_p.bind(ct, **params)])
physicals[sharding_constraint_p] = lambda _, x, **params: x


@sharding_constraint_p.def_impl
def _constrain(x: Any, *, sharding: Any, **params: Any) -> Any:
    if differing.used and differing.differs(x):  # of each device's copy its part
        return sharding_constraint_p._backend_impl(x, sharding=sharding, **params)
    if isinstance(x, Array) and x.committed:
        refuse_other_devices(x, sharding)
    return _put_one(x, sharding, ArrayCopySemantics.REUSE_INPUT)


def refuse_other_devices(x: Array, sharding: Sharding) -> None:
    """ValueError for an array that is committed to other devices than a sharding's."""
    if not backends.several or isinstance(getattr(sharding, "mesh", None), mesh.AbstractMesh):
        return
    devices, wanted = (s._device_assignment for s in (x.sharding, sharding))  # type: ignore[attr-defined]
    if devices != wanted:
        raise ValueError("Received incompatible devices for jitted computation. Got argument x of _identity_fn with "
                         f"shape {x.aval.str_short()} and with device ids {[d.id for d in devices]} on platform "
                         f"{devices[0].platform.upper()} and explicit output sharding with device ids "
                         f"{[d.id for d in wanted]} on platform {wanted[0].platform.upper()}")


def constrain(x: Any, sharding: Sharding, unconstrained: frozenset[int] = frozenset()) -> Any:
    """A value of which the program being written says how it is spread, or on which device it is."""
    around = mesh.state.concrete if mesh.state.abstract.empty else mesh.state.abstract
    return sharding_constraint_p.bind(x, sharding=sharding, layout=None, context_mesh=around,
                                      unconstrained_dims=unconstrained)


def _constraint_batch(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None], *, sharding: Any,
                      unconstrained_dims: frozenset[int], **params: Any) -> Any:
    (x,), (d,) = args, dims
    if axis_data.spmd_name is not None and not isinstance(sharding, NamedSharding):
        raise ValueError("If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your jitted "
                         "function inside the mesh context manager. Only `jax.lax.with_sharding_constraint` with "
                         "`jax.sharding.NamedSharding` as an input can be transformed with spmd_axis_name batching "
                         f"rules outside of an explicit mesh context manager scope. Got {sharding!r}")
    if d is not None and isinstance(sharding, NamedSharding):
        entries = list(sharding.spec) + [None] * max(0, d - len(sharding.spec))
        own = axis_data.spmd_name
        if own is not None and any(n in own for e in entries for n in axes_of(e)):
            raise ValueError(f"vmap spmd_axis_name {own} cannot appear in with_sharding_constraint spec, but got spec "
                             f"{sharding.spec}. vmap spmd_axis_name cannot appear in in_specs or out_specs of "
                             "shard_map, either.")
        entry: Any = UNCONSTRAINED if own is None else own[0] if len(own) == 1 else own
        sharding = sharding.update(spec=sharding.spec.update(partitions=(*entries[:d], entry, *entries[d:])))
        unconstrained_dims = frozenset(i + (i >= d) for i in unconstrained_dims) | ({d} if own is None else set())
    return sharding_constraint_p.bind(x, sharding=sharding, unconstrained_dims=unconstrained_dims, **params), d


rules.fancy_batchers[sharding_constraint_p] = _constraint_batch


@api_boundary
def with_sharding_constraint(x: PyTree, shardings: ShardingLike | PyTree) -> PyTree:
    """Says how the arrays of a tree are to be spread over a mesh.

    Args:
      x: a tree of arrays.
      shardings: shardings, or `PartitionSpec`s over the mesh in force, as a tree that is a prefix of `x`.

    Returns:
      The same values, placed so.

    Raises:
      RuntimeError: a `PartitionSpec` while no mesh is in force.
      ValueError: a sharding that does not fit the array, or None.
      TypeError: something else in place of shardings.
    """
    leaves, treedef = tree.tree_flatten(x)
    found = _spread("with_sharding_constraint shardings", shardings, x, len(leaves))
    out = []
    for leaf, sharding in zip(leaves, found, strict=True):
        if sharding is None:
            raise ValueError("One of with_sharding_constraint arguments got sharding None which is not allowed. Please "
                             "only pass `jax.sharding.Sharding` instances.")
        sharding = over_mesh(_sharding(sharding, leaf))
        if not isinstance(sharding, Sharding):
            raise TypeError("shardings leaf specifications are expected to be PartitionSpec instances or None, but got "
                            f"{sharding}")
        if isinstance(sharding, NamedSharding):
            if sharding.mesh.empty:
                raise ValueError(f"One of shardings leaf specifications got an empty NamedSharding: {sharding} which "
                                 "is not allowed.")
            sharding.check_compatible_aval(get_aval(leaf).shape)
            manual = tuple(n for e in sharding.spec for n in axes_of(e) if n in mesh.state.abstract.manual_axes)
            if manual and set(manual) <= set(sharding.mesh.manual_axes):
                raise ValueError("The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto "
                                 f"axes of the mesh. Got spec={sharding.spec} and mesh={sharding.mesh}. You probably "
                                 "meant to use `reshard` API?")
            if manual:
                raise ValueError(f"pspec {sharding.spec} contains a manual axes {manual} of mesh which is not allowed. "
                                 "If you are using a with_sharding_constraint under a shard_map, only use the mesh "
                                 "axis in PartitionSpec which are not manual.")
            if sharding.mesh.are_all_axes_explicit and mesh.state.abstract.are_all_axes_explicit:
                _assert_sharding(get_aval(leaf), sharding)
                out.append(leaf)
                continue
            if any(n in sharding.mesh.explicit_axes for e in sharding.spec for n in axes_of(e)):
                raise ValueError("The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto "
                                 f"axes of the mesh. Got spec={sharding.spec} and mesh={sharding.mesh.abstract_mesh}. "
                                 "You probably meant to use `reshard` API?")
            if isinstance(sharding.mesh, mesh.AbstractMesh) and state.trace.is_eval:
                _check_has_mesh(leaf, sharding)
        spec = sharding.spec if isinstance(sharding, NamedSharding) else ()
        unconstrained = frozenset(i for i, p in enumerate(spec) if p is UNCONSTRAINED)
        out.append(constrain(leaf, sharding, unconstrained))
    return tree.tree_unflatten(treedef, out)


def _check_has_mesh(x: Any, sharding: NamedSharding) -> None:
    """Raises an error for what does not tell the devices of a mesh that is given without them."""
    if not isinstance(x, Array):
        raise ValueError("Target sharding contains a `jax.sharding.AbstractMesh` which requires the input passed "
                         f"should be a `jax.Array`. Got {type(x)} with shape {get_aval(x).str_short()}")
    if not isinstance(x.sharding, NamedSharding):
        raise TypeError("The sharding on the input must be a `NamedSharding` since the target sharding has an "
                        f"`AbstractMesh` in it. Got sharding type {type(x.sharding)} for shape {x.aval.str_short()}")
    if x.sharding.mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(f"Mesh shape of the input {x.sharding.mesh.shape_tuple} does not match the mesh shape of the "
                         f"target sharding {sharding.mesh.shape_tuple} for shape {x.aval.str_short()}")


def _assert_sharding(aval: Any, sharding: NamedSharding) -> None:
    """What is explicit is not the compiler's to choose. AssertionError where the type tells something else."""
    wanted = sharding_of_type(sharding, aval.shape)
    assert wanted is not None
    if aval.sharding.spec != wanted.spec:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
            f"sharding: {aval.sharding.spec} did not match the sharding provided: {wanted.spec}. Please use "
            "`jax.sharding.reshard` to shard your input to the sharding you want.")


__all__ = [
    "ArrayCopySemantics", "Space", "constrain", "device_put", "device_put_p", "over_mesh", "refuse_other_devices",
    "reshard", "reshard_p", "sharding_constraint_p", "spread_as", "untold", "with_sharding_constraint",
]
