"""Arrays that are told to be alike on several devices, which have different copies of them nevertheless.

So are results of `shard_map` that nobody checked, and arrays put together of unlike copies. Such an array is kept as
the array of its copies: row i is all of it, as the i-th device sees it. Code for one copy refuses this memory as it
does that of another backend, so that programs on other arrays pay nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..types.avals import ShapedArray
from ..types.physical import physical_aval
from . import backends
from .array import Array, array_type
from .devices import Device, Sharding

used = False  # whether there was any such array
Devices = tuple[Device, ...]


class _Noticed(threading.local):
    """Devices of copies that programs were traced without a thought of, in a thread, since the last one at the top."""

    def __init__(self) -> None:
        self.devices: list[Devices] = []


noticed = _Noticed()


class Copies:
    """The memory of an array whose copies differ. NumPy sees the first device's."""

    __slots__ = ("device", "devices", "nbytes", "rows")

    def __init__(self, rows: Array, devices: Devices, device: Device):
        self.rows = rows
        self.devices = devices  # those of the rows
        self.device = device  # the first one by the array's sharding
        self.nbytes = rows.nbytes // len(devices)

    @property
    def address(self) -> int:
        """Where the first device's copy is."""
        return self.rows._live().address + self.devices.index(self.device) * self.nbytes

    def copied(self, array: Array) -> Array:
        """A copy of the array that has this memory."""
        return viewed(array, lambda rows: rows.copy())

    def wait(self) -> None:
        self.rows.block_until_ready()

    def ready(self) -> bool:
        return self.rows.is_ready()

    def on(self, device: Device) -> Copies:
        return self if device is self.device else Copies(self.rows, self.devices, device)

    def numpy(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        rows = self.rows._live().numpy(dtype, (len(self.devices), *shape))
        return rows[self.devices.index(self.device)]


def differs(x: Any) -> bool:
    """Whether it is an array whose copies differ."""
    return isinstance(x, Array) and type(getattr(x, "buffer", None)) is Copies


def devices_of(args: Iterable[Any]) -> Devices | None:
    """The devices of the first array among some whose copies differ."""
    return next((x.buffer.devices for x in args if differs(x)), None)


def in_order(devices: Iterable[Device]) -> Devices:
    """The devices of rows."""
    return tuple(sorted(devices, key=lambda d: d.id))


def of_rows(rows: Array, sharding: Sharding) -> Array:
    """The array of which the devices of a sharding, in their order, have these."""
    global used
    used = backends.apart = True
    memory = Copies(rows, in_order(sharding._device_assignment), sharding._device_assignment[0])
    aval: ShapedArray = rows.aval.update(shape=rows.shape[1:], sharding=None)
    out = array_type(aval)(aval, memory, True)
    out._sharding = sharding
    return out


def viewed(x: Array, view: Callable[[Array], Array]) -> Array:
    """The array of which each device's copy is a view of its own one."""
    return of_rows(view(x.buffer.rows), x.sharding)


def copy_on(x: Array, device: Device) -> Array:
    """All of an array as a device sees it; as the first one does where it is on others."""
    memory: Copies = x.buffer
    place = memory.devices.index(device if device in memory.devices else memory.device)
    rows = memory.rows
    rows.block_until_ready()
    buffer = rows._live()
    physical = physical_aval(x.aval)
    copy = device.client.adopt(buffer.address + place * memory.nbytes, physical, buffer, device)
    return copy if physical is x.aval else type(x)(x.aval, copy.buffer, copy.committed)


def moved(x: Array, target: Any) -> Array:
    """The array on a device or under a sharding: with its copies under its own, one of these elsewhere."""
    if target is None:
        return x
    if isinstance(target, Sharding) and target != x.sharding and target.is_fully_replicated and (
            x.sharding.is_fully_replicated and target.device_set == x.sharding.device_set):
        return of_rows(x.buffer.rows, target)
    if isinstance(target, Sharding) and target.is_equivalent_to(  # type: ignore[attr-defined]
            x.sharding, x.ndim):
        return x
    return copy_on(x, target if isinstance(target, Device) else target._device_assignment[0])


def of_unlike_parts(shape: tuple[int, ...], sharding: Sharding, parts: Mapping[Device, Array],
                    places: Mapping[Device, tuple[slice, ...]]) -> Array | None:
    """The array of which devices have these parts at these places; None where they have the same at the same place."""
    replicas: dict[Any, list[Array]] = {}
    number: dict[Device, int] = {}
    for device, index in places.items():
        group = replicas.setdefault(tuple([s.indices(d)[:2] for s, d in zip(index, shape, strict=True)]), [])
        number[device] = len(group)
        group.append(parts[device])
    if all(map(_alike, replicas.values())):
        return None
    devices = in_order(places)
    first = next(iter(parts.values()))
    rows = np.empty((len(devices), *shape), first.dtype)
    for device, index in places.items():
        for i, other in enumerate(devices):
            if number[other] == number[device]:
                rows[i][index] = parts[device]._value
    aval = first.aval.update(shape=rows.shape, sharding=None)
    return of_rows(devices[0].client.put(rows, aval, devices[0]), sharding)


def _alike(group: Sequence[Array]) -> bool:
    """Whether arrays have the same bits."""
    first = group[0]
    if any(x.shape != first.shape or x.dtype != first.dtype for x in group):
        return True  # the caller's fault, of which others tell
    return all(x._live().address == first._live().address or np.array_equal(_bytes(first), _bytes(x))
               for x in group[1:])


def _bytes(x: Array) -> np.ndarray:
    return np.ascontiguousarray(x._value).reshape(-1).view(np.uint8)


__all__ = ["Copies", "Devices", "copy_on", "devices_of", "differs", "in_order", "moved", "noticed", "of_rows",
           "of_unlike_parts", "used", "viewed"]
