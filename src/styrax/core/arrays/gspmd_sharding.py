"""An array spread over devices by tiles, of which nothing is said but which device has which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import host_devices
from .devices import Device, IndivisibleError, Sharding, checked_memory
from .hlo_shardings import (
    HloSharding,
    OpSharding,
    SdyArray,
    are_hlo_shardings_equal,
    entries_of,
    get_num_ways_dim_sharded,
    is_hlo_sharding_replicated,
    op_sharding_to_indices,
)


class GSPMDSharding(Sharding):
    """An array spread over devices as XLA says it.

    Args:
      devices: the devices, in the order of the numbers in `op_sharding`.
      op_sharding: which of them has which tile.
      memory_kind: the kind of memory.
    """

    __slots__ = ("_devices", "_hlo_sharding", "memory_kind")

    def __init__(self, devices: Sequence[Device], op_sharding: OpSharding | HloSharding, *,
                 memory_kind: str | None = None):
        if not isinstance(op_sharding, (OpSharding, HloSharding)):
            raise TypeError("GSPMDSharding(): incompatible function arguments: they are devices and an OpSharding or "
                            f"HloSharding, got {op_sharding!r}")
        self._devices = tuple(devices)
        told = HloSharding.from_proto(op_sharding) if isinstance(op_sharding, OpSharding) else op_sharding
        self._hlo_sharding = told
        self.memory_kind = "device" if memory_kind is None else checked_memory(memory_kind, self._devices[0])

    @classmethod
    def get_replicated(cls, device_assignment: Sequence[Device], *, memory_kind: str | None = None) -> GSPMDSharding:
        """All of an array on each device."""
        return cls(device_assignment, HloSharding.replicate(), memory_kind=memory_kind)

    @property
    def device_set(self) -> set[Device]:  # type: ignore[override]
        return set(self._devices)

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def num_devices(self) -> int:
        return len(self._devices)

    @property
    def is_fully_replicated(self) -> bool:
        return is_hlo_sharding_replicated(self._hlo_sharding)

    @property
    def is_fully_addressable(self) -> bool:
        return len(host_devices.addressable(self._devices)) == len(self._devices)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> HloSharding:
        return self._hlo_sharding

    def axes(self) -> dict[str, int]:
        """Axes of a mesh of the devices, from which the tiles come."""
        if not self._hlo_sharding.is_tiled():
            return {"_axis_0": len(self._devices)}
        return {f"_axis_{i}": n for i, n in enumerate(self._hlo_sharding.get_axis_sizes())}

    def _to_sdy_sharding(self, num_dimensions: int) -> SdyArray:
        entries = entries_of(self._hlo_sharding, self.axes())
        return SdyArray(tuple(self.axes().items()), [*entries, *[()] * (num_dimensions - len(entries))])

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The same in another memory of the devices."""
        return GSPMDSharding(self._devices, self._hlo_sharding, memory_kind=kind)

    def check_compatible_aval(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError for shapes that cannot be spread like this."""
        parts, _ = get_num_ways_dim_sharded(self._hlo_sharding)
        if len(shape) < len(parts):
            raise ValueError(f"Sharding {self} is only valid for values of rank at least {len(parts)}, but was applied "
                             f"to a value of rank {len(shape)}")

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part that one device holds. ValueError where a dimension cannot be divided."""
        parts, _ = get_num_ways_dim_sharded(self._hlo_sharding)
        parts = [*parts, *[1] * (len(global_shape) - len(parts))]
        for i, (d, n) in enumerate(zip(global_shape, parts, strict=True)):
            if d % n:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {i} is partitioned {n} times, but the dimension size is "
                    f"{d} (full shape: {tuple(global_shape)}, per-dimension tiling factors: {parts} should evenly "
                    "divide the shape)")
        return tuple(d // n for d, n in zip(global_shape, parts, strict=True))

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
        """For each device, which part of the array it holds."""
        self.shard_shape(global_shape)
        found = op_sharding_to_indices(self._hlo_sharding, global_shape, len(self._devices))
        return dict(zip(self._devices, found, strict=True))

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
        """The same for the devices of this process."""
        found = self.devices_indices_map(global_shape)
        return {d: found[d] for d in host_devices.addressable(self._devices)}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of `ndim` dimensions are spread alike."""
        return self._devices == tuple(other._device_assignment) and self.memory_kind == other.memory_kind and (
            are_hlo_shardings_equal(self._hlo_sharding, other._to_xla_hlo_sharding(ndim)))

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, GSPMDSharding) and self.is_equivalent_to(other, 0)

    def __hash__(self) -> int:
        same = is_hlo_sharding_replicated(self._hlo_sharding)
        return hash((self._devices, None if same else self._hlo_sharding, self.memory_kind))

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r}, memory_kind={self.memory_kind})"


__all__ = ["GSPMDSharding"]
