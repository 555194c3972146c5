"""Devices, and the sharding of an array that lives on one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ..tracing.errors import JaxRuntimeError


class Device:
    """A processor with its memory. Attributes: `platform`, `id`, `process_index`, `device_kind`."""

    __slots__ = ("platform", "id", "process_index", "device_kind", "client", "local_hardware_id")

    def __init__(self, platform: str, id: int, device_kind: str, client: Any = None, process_index: int = 0,
                 local_hardware_id: int | None = -1):
        self.platform = platform
        self.id = id
        self.device_kind = device_kind
        self.client = client
        self.process_index = process_index
        self.local_hardware_id = id if local_hardware_id == -1 else local_hardware_id

    @property
    def apart(self) -> bool:
        """Whether the other devices of its kind do not see its memory."""
        return self.client is not None and not self.client.shared_memory

    @property
    def host_id(self) -> int:
        return self.process_index

    def memory_stats(self) -> dict[str, int] | None:
        return None

    def addressable_memories(self) -> list[Memory]:
        """The memories that the device reaches: its own, and the host's."""
        return [Memory(self, kind) for kind in MEMORY_KINDS]

    def default_memory(self) -> Memory:
        """The memory in which arrays lie unless something else is asked for."""
        return Memory(self, MEMORY_KINDS[0])

    def memory(self, kind: str) -> Memory:
        """The memory of a kind. Raises JaxRuntimeError where the device reaches none."""
        if kind not in MEMORY_KINDS:
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: Could not find memory addressable by device {self.device_kind}. Device "
                f"{self.device_kind} can address the following memory kinds: {', '.join(MEMORY_KINDS)}. Got memory "
                f"kind: {kind}")
        return Memory(self, kind)

    def __reduce__(self) -> Any:
        return _device, (self.platform, self.id)

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


class ManyDevices:
    """Several devices whose memories are apart, in the place of one: what arrays live on that are spread over them."""

    __slots__ = ()
    client: Any
    devices: tuple[Device, ...]
    id: str  # as messages tell it
    platform: str

    def put(self, x: Any, sharding: Any) -> Any:
        """A value as an array under a sharding over these devices."""
        raise NotImplementedError

    def part(self, array: Any, device: Device) -> Any:
        """What one of the devices has of an array, as an array on it."""
        raise NotImplementedError

    def of_parts(self, shape: tuple[int, ...], sharding: Any, parts: Mapping[Device, Any]) -> Any:
        """The array of a shape, under a sharding, whose parts the devices of this process hold."""
        raise NotImplementedError


def together(devices: tuple[Device, ...]) -> ManyDevices | None:
    """These devices in the place of one; None for one device, and for devices with one memory."""
    from .. import hooks

    first = devices[0]
    if first.apart:
        return hooks.devices_of_plugin(devices) if len(devices) > 1 or first.client is None else None
    if first.client is not None and all(d.client is first.client for d in devices):  # none is another process's
        return None
    return hooks.devices_of_processes(devices)


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")  # as XLA's clients for CPUs name them


class Memory:
    """A memory that a device reaches. Attributes: `kind`, `platform`, `process_index`."""

    __slots__ = ("_device", "kind")

    def __init__(self, device: Device, kind: str):
        self._device = device
        self.kind = kind

    @property
    def platform(self) -> str:
        return self._device.platform

    @property
    def process_index(self) -> int:
        return self._device.process_index

    def addressable_by_devices(self) -> list[Device]:
        """The devices that reach it."""
        return [self._device]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and (self._device, self.kind) == (other._device, other.kind)

    def __hash__(self) -> int:
        return hash((self._device, self.kind))

    def __repr__(self) -> str:
        name = "".join(word.capitalize() for word in self.kind.split("_"))
        return f"{self.platform.capitalize()}{name}Memory(id={self._device.id}, process_index={self.process_index})"


def _device(platform: str, id: int) -> Device:
    from . import backends

    for device in backends.all_devices(platform):
        if device.id == id:
            return device
    raise IndexError(f"there is no device {platform}:{id} here")


def checked_memory(kind: str, device: Device) -> str:
    """The kind of a memory that the device reaches. Raises ValueError for others."""
    if kind not in MEMORY_KINDS:
        raise ValueError(f"Could not find memory addressable by device {device.platform}. Device {device.platform} can "
                         f"address the following memory kinds: {', '.join(MEMORY_KINDS)}. Got memory kind: {kind}")
    return kind


class IndivisibleError(ValueError):
    """Mesh axes do not divide a dimension of an array into equal parts."""


class Sharding:
    """How an array is spread over devices."""

    __slots__ = ()
    device_set: set[Device]

    @property
    def is_fully_replicated(self) -> bool:
        raise TypeError(f"{type(self).__name__} does not say whether it is replicated")

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """The devices in the order of the parts, for libraries that save arrays."""
        raise TypeError(f"{type(self).__name__} does not say the order of its devices")

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        return self._device_assignment  # there is one process

    @property
    def addressable_devices(self) -> set[Device]:
        """Those of this process."""
        return set(self._addressable_device_assignment)

    def check_compatible_aval(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError for shapes that cannot be spread like this."""

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Device, tuple[slice, ...]]:
        """For each device, which part of an array of the shape it has."""
        raise TypeError(f"{type(self).__name__} does not say which device has which part")


class SingleDeviceSharding(Sharding):
    """All of an array on one device."""

    __slots__ = ("_device", "memory_kind")

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        if device is None:
            raise TypeError("SingleDeviceSharding(): incompatible function arguments: it is of a device, got None")
        self._device = device
        self.memory_kind = MEMORY_KINDS[0] if memory_kind is None else checked_memory(memory_kind, device)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same in another memory of the device."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def device_set(self) -> set[Device]:  # type: ignore[override]
        return {self._device}

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return (self._device,)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        from .hlo_shardings import HloSharding

        return HloSharding.replicate()

    @property
    def is_fully_replicated(self) -> bool:
        return True

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def num_devices(self) -> int:
        return 1

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
        return {self._device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of `ndim` dimensions lie alike."""
        if not isinstance(other, Sharding):
            raise AttributeError(f"{type(other).__name__!r} object has no attribute '_to_xla_hlo_sharding'")
        if isinstance(other, SingleDeviceSharding):
            return self == other
        return other._device_assignment == self._device_assignment and (
            getattr(other, "memory_kind", None) == self.memory_kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and (self._device, self.memory_kind) == (
            other._device, other.memory_kind)

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device.id, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


@functools.cache
def only_on(device: Device) -> SingleDeviceSharding:
    """The sharding of arrays that nobody has spread: one object for all of a device."""
    return SingleDeviceSharding(device)


class Shard:
    """The part of an array that one device holds: `device`, `index`, `replica_id`, `data`.

    `data` is an array on the device; it may be given as a function, which is called when it is asked for.
    """

    __slots__ = ("device", "_sharding", "_global_shape", "_data", "replica_id")

    def __init__(self, device: Device, sharding: Sharding, global_shape: tuple[int, ...], data: Any = None,
                 replica_id: int = 0):
        self.device = device
        self._sharding = sharding
        self._global_shape = global_shape
        self._data = data
        self.replica_id = replica_id

    @property
    def data(self) -> Any:
        if callable(self._data):
            self._data = self._data()
        return self._data

    @property
    def index(self) -> tuple[slice, ...]:
        return self._sharding.devices_indices_map(self._global_shape)[self.device]  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"
