"""How arrays are spread over the devices of a mesh."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np

from ..tracing.source import api_boundary
from . import host_devices
from .devices import MEMORY_KINDS, Device, IndivisibleError, Sharding, SingleDeviceSharding, checked_memory
from .gspmd_sharding import GSPMDSharding
from .hlo_shardings import HloSharding, OpSharding, SdyArray, entries_of, of_axes
from .mesh import AbstractMesh, Mesh, empty_abstract_mesh


class UnconstrainedSingleton:
    """Stands in a `PartitionSpec` for a dimension about which nothing is said."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> Any:
        return _unconstrained, ()


def _unconstrained() -> UnconstrainedSingleton:
    return UNCONSTRAINED


UNCONSTRAINED = UnconstrainedSingleton()


def _entry(p: Any) -> Any:
    if isinstance(p, (tuple, list)):
        for name in p:
            if isinstance(name, tuple):
                raise ValueError("A tuple inside PartitionSpec cannot contain a nested tuple. Got partition: "
                                 f"{p} and the nested tuple: {name}")
        return None if not p else p[0] if len(p) == 1 else tuple(p)
    return p or None  # also of an empty name


class UnreducedKind(enum.Enum):
    """How the parts of an unreduced value make up the value.

    The name is of newer releases of JAX than those that this one is measured by. Sums are the only kind here: a
    `PartitionSpec` takes `unreduced={'x': UnreducedKind.SUM}` for `unreduced={'x'}`.
    """

    SUM = "sum"


class PartitionSpec:
    """For each dimension of an array, the mesh axis or axes that it is spread over, None for none.

    `unreduced` and `reduced` name axes over which sums are still to be made, or have been.
    """

    __slots__ = ("__weakref__", "_partitions", "reduced", "unreduced")
    UNCONSTRAINED = UNCONSTRAINED
    _partitions: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __init_subclass__(cls, **_: Any) -> NoReturn:
        raise TypeError("Subclassing `jax.P` is prohibited.")

    @api_boundary
    def __new__(cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> PartitionSpec:
        if isinstance(unreduced, Mapping):
            if any(kind is not UnreducedKind.SUM for kind in unreduced.values()):
                raise ValueError(f"unreduced values are sums of their parts (UnreducedKind.SUM). Got {unreduced}")
            unreduced = frozenset(unreduced)
        key = tuple([_entry(p) for p in partitions]), frozenset(unreduced), frozenset(reduced)
        if unreduced or reduced:
            _check_sums(key[0], unreduced, reduced)
        try:
            self = _specs.get(key)
        except TypeError:  # an entry without a hash is refused where the specification is used
            self = None
        if self is None:
            self = object.__new__(cls)
            self._partitions, self.unreduced, self.reduced = key
            with suppress(TypeError):
                _specs[key] = self
        return self

    @property
    def partitions(self) -> tuple:
        return self._partitions

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(*self, *other, unreduced=self.unreduced | other.unreduced,
                                 reduced=self.reduced | other.reduced)
        if isinstance(other, tuple):
            self._refuse_sums("__add__")
            return self.update(partitions=(*self, *other))
        raise NotImplementedError(f"a PartitionSpec is joined with specs and tuples, not with {other!r}")

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            raise NotImplementedError(f"a PartitionSpec is joined with specs and tuples, not with {other!r}")
        self._refuse_sums("__radd__")
        return self.update(partitions=(*other, *self))

    def _refuse_sums(self, method: str) -> None:
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                raise TypeError(f"a tuple cannot be joined with {self}, which has {name} in `{method}` of "
                                "PartitionSpec: join PartitionSpecs instead.")

    def index(self, value: Any) -> int:
        return self._partitions.index(_entry(value))

    def count(self, value: Any) -> int:
        return self._partitions.count(_entry(value))

    def update(self, *, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> PartitionSpec:
        """The specification with some of its parts replaced."""
        return PartitionSpec(*(self._partitions if partitions is None else partitions),
                             unreduced=self.unreduced if unreduced is None else unreduced,
                             reduced=self.reduced if reduced is None else reduced)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and (self._partitions, self.unreduced, self.reduced) == (
            other._partitions, other.unreduced, other.reduced)

    def __hash__(self) -> int:
        return hash((self._partitions, self.unreduced, self.reduced))

    def __getnewargs_ex__(self) -> tuple[tuple, dict[str, Any]]:
        return self._partitions, {"unreduced": self.unreduced, "reduced": self.reduced}

    def __getstate__(self) -> None:
        return None

    def __repr__(self) -> str:
        text = repr(self._partitions)[1:-1]
        if self.unreduced or self.reduced:
            text = text.rstrip(",")
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                text += f"{', ' if text else ''}{name}={set(axes)!r}"
        return f"P({text})"


def _check_sums(partitions: tuple, unreduced: Any, reduced: Any) -> None:
    """Raises TypeError or ValueError for names of axes of sums that are no sets, overlap, or stand at dimensions."""
    for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
        if not isinstance(axes, (set, frozenset)):
            raise TypeError(f"{name} argument of PartitionSpec should of type `frozenset` or `set`. Got type {axes}")
        if None in axes:
            raise ValueError(f"{name} cannot contain None. All elements in {name} should refer to the mesh axes.")
        if any(axis in axes for entry in partitions for axis in axes_of(entry)):
            raise ValueError(f"partitions cannot overlap with {name} axes passed to PartitionSpec. Got partitions: "
                             f"{partitions} and {name} axes: {frozenset(axes)}")
    if unreduced & reduced:
        raise ValueError("`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got unreduced: "
                         f"{frozenset(unreduced)} and reduced: {frozenset(reduced)}")


_specs: WeakValueDictionary[tuple[Any, ...], PartitionSpec] = WeakValueDictionary()  # equal ones are one object


class DuplicateSpecError(Exception):
    """A mesh axis stands at two dimensions of a specification."""


def axes_of(entry: Any) -> tuple:
    """The mesh axes of an entry of a specification."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class NamedSharding(Sharding):
    """An array spread over a mesh by a `PartitionSpec`.

    Raises:
      ValueError: the specification names an axis that the mesh lacks, or one axis twice.
    """

    __slots__ = ("_memory_kind", "mesh", "spec")

    @api_boundary
    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None,
                 _logical_device_ids: Any = None):
        if spec is None or mesh is None:
            raise TypeError("NamedSharding(): incompatible function arguments: they are a mesh and a PartitionSpec, "
                            f"got {type(mesh).__name__} and {type(spec).__name__}")
        if not isinstance(spec, PartitionSpec):
            raise AttributeError(f"{type(spec).__name__!r} object has no attribute 'partitions': the specification of "
                                 f"a NamedSharding must be a PartitionSpec, got {spec!r}")
        self.mesh = mesh
        self.spec = spec
        if memory_kind is not None and isinstance(mesh, Mesh):
            checked_memory(memory_kind, mesh.devices.flat[0])
        elif memory_kind is not None and memory_kind not in MEMORY_KINDS:
            raise ValueError(f"Got invalid memory kind: {memory_kind}. Valid memory kinds are: "
                             f"{', '.join(MEMORY_KINDS)}")
        if UNCONSTRAINED in spec.partitions and mesh.axis_names and not mesh.auto_axes:
            raise ValueError(f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh "
                             f"axis_types: {mesh.axis_types}")
        self._memory_kind = memory_kind
        seen: set[Any] = set()
        for entry in spec:
            for name in axes_of(entry):
                repeated = name in seen
                if name not in mesh.axis_names:
                    raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}.")
                if repeated:
                    raise DuplicateSpecError(
                        "A single NamedSharding spec specification can map every mesh axis to at most one positional "
                        f"dimension, but {spec} has duplicate entries for `{name}`")
                seen.add(name)
        if spec.unreduced or spec.reduced:
            _check_mesh_of_sums(mesh, spec)

    @property
    def memory_kind(self) -> str | None:  # type: ignore[override]
        """The kind of memory; over a mesh without devices None unless it is given."""
        return self._memory_kind or (None if isinstance(self.mesh, AbstractMesh) else "device")

    @property
    def device_set(self) -> set[Device]:  # type: ignore[override]
        return set(self._devices().flat)

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return tuple(self._devices().flat)

    def _devices(self) -> Any:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("a sharding over an AbstractMesh has no devices")
        return self.mesh.devices

    @property
    def addressable_devices(self) -> set[Device]:
        """Those of this process."""
        return set(self._addressable_device_assignment)

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        return host_devices.addressable(self._device_assignment)

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh along which all devices have the same."""
        used = {n for e in self.spec for n in axes_of(e)}
        return frozenset(self.mesh.axis_names) - used - self.spec.unreduced - self.spec.reduced

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def is_fully_addressable(self) -> bool:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("is_fully_addressable is not implemented for `jax.sharding.AbstractMesh`.")
        return host_devices.cohort is None or len(self._addressable_device_assignment) == self.num_devices

    @property
    def is_fully_replicated(self) -> bool:
        return not self.spec.unreduced and all(
            self.mesh.shape[name] == 1 for entry in self.spec for name in axes_of(entry))

    def _parts(self, shape: tuple[int, ...]) -> list[int]:
        if len(self.spec) > len(shape):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was applied to a "
                f"value of rank {len(shape)}." + ("" if shape else " For scalars the PartitionSpec should be P()"))
        parts = [math.prod(self.mesh.shape[name] for name in axes_of(entry)) for entry in self.spec]
        return parts + [1] * (len(shape) - len(parts))

    def check_compatible_aval(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError for shapes that cannot be spread like this."""
        self._parts(shape)

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part that one device holds.

        Raises:
          ValueError: a dimension cannot be divided. IndexError: it spreads more dimensions than there are.
        """
        if len(self.spec) > len(global_shape):
            self._check_rank(len(global_shape))
            return tuple(global_shape)
        out = []
        for i, (d, n) in enumerate(zip(global_shape, self._parts(global_shape), strict=True)):
            if d % n:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {i} is partitioned {n} times, but the dimension size is "
                    f"{d} (full shape: {tuple(global_shape)}, per-dimension tiling factors: "
                    f"{self._parts(global_shape)} should evenly divide the shape)")
            out.append(d // n)
        return tuple(out)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
        """For each device, which part of the array it holds. NotImplementedError for summands, which are no parts."""
        if self.spec.unreduced:
            raise NotImplementedError("devices_indices_map of arrays that are still to be summed along mesh axes, of "
                                      f"which devices hold no parts: {self}")
        self._check_rank(len(global_shape))
        return self._indices(tuple(global_shape))

    def _check_rank(self, ndim: int) -> None:
        """Raises IndexError where dimensions are spread that arrays of a rank do not have."""
        if any(self.mesh.shape[name] > 1 for entry in self.spec.partitions[ndim:] for name in axes_of(entry)):
            raise IndexError(f"{self.spec} spreads dimension {len(self.spec) - 1} of an array of rank {ndim}")

    def _indices(self, shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
        """For each device, which part it holds of an array, or of a summand."""
        local = self.shard_shape(shape)
        entries = [axes_of(e) for e in self.spec] + [()] * (len(shape) - len(self.spec))
        devices = self._devices()
        out = {}
        for place in np.ndindex(*devices.shape):
            where = dict(zip(self.mesh.axis_names, place, strict=True))
            index = []
            for names, parts, size in zip(entries, self._parts(shape), local, strict=True):
                k = 0
                for name in names:
                    k = k * self.mesh.shape[name] + where[name]
                index.append(slice(None) if parts == 1 else slice(k * size, (k + 1) * size))
            out[devices[place]] = tuple(index)
        return out

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
        """The same for the devices of this process."""
        found = self.devices_indices_map(global_shape)
        return {d: found[d] for d in host_devices.addressable(tuple(found))}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of `ndim` dimensions are spread alike. IndexError where it spreads more dimensions."""
        if not isinstance(other, Sharding):
            raise AttributeError(f"{type(other).__name__!r} object has no attribute '_to_xla_hlo_sharding'")
        self._check_rank(ndim)
        if any(isinstance(getattr(s, "mesh", None), AbstractMesh) for s in (self, other)):
            return isinstance(other, NamedSharding) and type(self.mesh) is type(other.mesh) and (
                self.mesh.axis_sizes == other.mesh.axis_sizes) and (
                self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim))
        if self.num_devices <= 1:
            return self.device_set == other.device_set
        if isinstance(other, GSPMDSharding):
            return other.is_equivalent_to(self, ndim)
        if not isinstance(other, NamedSharding):
            return False
        if self.memory_kind != other.memory_kind:
            return False
        if self._device_assignment != other._device_assignment or max(len(self.spec), len(other.spec)) > ndim:
            return False
        pad = (1,) * ndim
        shape = tuple(math.lcm(a, b) for a, b in zip(self._parts(pad), other._parts(pad), strict=True))
        return self.spec.unreduced == other.spec.unreduced and self._indices(shape) == other._indices(shape)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> HloSharding:
        return named_sharding_to_xla_hlo_sharding(self, num_dimensions)

    def _to_sdy_sharding(self, num_dimensions: int) -> SdyArray:
        entries = [None if e is UNCONSTRAINED else axes_of(e) for e in self.spec]
        return SdyArray(self.mesh.shape_tuple, [*entries, *[()] * (num_dimensions - len(entries))],
                        sorted(self.spec.unreduced, key=str))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with some of its parts replaced: `mesh`, `spec`, `memory_kind`."""
        return NamedSharding(changes.get("mesh", self.mesh), changes.get("spec", self.spec),
                             memory_kind=changes.get("memory_kind", self._memory_kind))

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, NamedSharding) and (self.mesh, self.spec, self.memory_kind) == (
            other.mesh, other.spec, other.memory_kind)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec, self.memory_kind))

    def __reduce__(self) -> Any:
        return _named, (self.mesh, self.spec, self._memory_kind)

    def __repr__(self) -> str:
        memory = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{memory})"


def _check_mesh_of_sums(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    """Raises ValueError for axes of sums that the mesh lacks, or whose use types do not tell."""
    for kind, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for name in axes:
            if name not in mesh.axis_names:
                raise ValueError(f"{kind} axes {set(axes)} of {spec} are not found in mesh: {mesh.axis_names}.")
        if any(name in mesh.auto_axes for name in axes):
            raise ValueError(f"{kind} axes can only refer to mesh axes that is of type `Explicit`. Got "
                             f"{kind.lower()} axes: {axes} and mesh: {mesh}")


@lru_cache(4096)
def named_sharding_to_xla_hlo_sharding(sharding: NamedSharding, num_dimensions: int) -> HloSharding:
    """The tiles of arrays of a rank, by the numbers of the mesh's devices."""
    mesh, spec = sharding.mesh, sharding.spec
    entries = [axes_of(e) for e in spec]
    return of_axes(mesh.shape, [*entries, *[()] * (num_dimensions - len(entries))], mesh.manual_axes,
                   tuple(spec.unreduced))


def parse_flatten_op_sharding(hlo_sharding: HloSharding | OpSharding, mesh: Mesh | AbstractMesh) -> list[PartitionSpec]:
    """The specifications over a mesh's axes of what tiles say; several for several arrays."""
    found = HloSharding.from_proto(hlo_sharding) if isinstance(hlo_sharding, OpSharding) else hlo_sharding
    if found.tuple_elements():
        return [spec for inner in found.tuple_elements() for spec in parse_flatten_op_sharding(inner, mesh)]
    entries: list[Any] = list(entries_of(found, mesh.shape))
    while entries and not entries[-1]:
        entries.pop()
    return [PartitionSpec(*entries)]


def as_named(sharding: GSPMDSharding) -> NamedSharding:
    """The same sharding over a mesh whose axes its tiles come from."""
    sizes = sharding.axes()
    grid = np.empty(sharding.num_devices, object)
    grid[:] = sharding._device_assignment
    mesh = Mesh(grid.reshape(tuple(sizes.values())), tuple(sizes))
    entries = entries_of(sharding._to_xla_hlo_sharding(0), sizes)
    return NamedSharding(mesh, PartitionSpec(*entries), memory_kind=sharding.memory_kind)


def _named(mesh: Mesh, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


@cache
def over_no_mesh(ndim: int) -> NamedSharding:
    """The sharding of arrays of a rank about which nothing is said: replicated over a mesh without axes."""
    return NamedSharding(empty_abstract_mesh, PartitionSpec(*[None] * ndim))


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """All of an array on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)
