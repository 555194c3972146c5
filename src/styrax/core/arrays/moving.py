"""Arrays of several backends as arguments of one program: where it runs, and getting them there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import hooks
from ..tracing.trace import Tracer
from ..types.physical import physical_aval
from . import backends, differing, host_devices, mesh
from .array import Array
from .devices import Device, ManyDevices, together
from .shardings import NamedSharding

T = TypeVar("T")


def _buffer(x: Any) -> Any:
    """The memory of an argument, None for what is no array or has none."""
    return x.buffer if isinstance(x, Array) and not isinstance(x, Tracer) else None


def common_device(args: Sequence[Any], described: Callable[[int], str]) -> Any:
    """The device that arguments are committed to; None where none is.

    Raises ValueError for several devices; `described` says in the message which argument has a number.
    """
    first = None
    for i, x in enumerate(args):
        buffer = _buffer(x)
        if buffer is None or not x.committed:
            continue
        if first is None:
            first = i
        elif args[first].buffer.device is not buffer.device and not _alike(args[first].buffer.device, buffer.device):
            raise ValueError(f"Received incompatible devices for jitted computation. Got "
                             f"{_told(described, args, first)} and {_told(described, args, i)}")
    return None if first is None else args[first].buffer.device


def _alike(a: Device, b: Device) -> bool:
    """Whether two devices are of one backend that sees to its devices itself, since their memory is one."""
    return a.client is b.client and a.client.shared_memory


def _told(described: Callable[[int], str], args: Sequence[Any], i: int) -> str:
    device = args[i].buffer.device
    return (f"{described(i)} with shape {args[i].aval.str_short()} and with device ids [{device.id}] on platform "
            f"{device.platform.upper()}")


def elsewhere(args: Sequence[Any], client: object) -> bool:
    """Whether an argument is in the memory of another backend."""
    return any(b is not None and b.device.client is not client for b in map(_buffer, args))


def home(devices: tuple[Device, ...]) -> Device | ManyDevices | None:
    """Where a program for these devices runs; None where the default device will do."""
    first = devices[0]
    if not first.apart and first.client in (None, backends.get()):
        return None
    return together(devices) or first


def around() -> Device | ManyDevices | None:
    """The same for the devices of the mesh in force: what is on no others is on these."""
    grid = mesh.state.concrete
    return None if grid.empty else home(tuple(grid.devices.flat))


def spread_over(args: Sequence[Any]) -> Any:
    """The devices of several processes that an argument is spread over."""
    return next((b.device for b in map(_buffer, args) if b is not None and isinstance(b.device, ManyDevices)),
                None)


def moved(x: T, device: Device) -> T:
    """An array on a device; all else, deleted arrays among it, as it is."""
    buffer = _buffer(x)
    if buffer is None or buffer.device is device or isinstance(device, ManyDevices):
        return x  # (what spreads takes arrays of this process as they are)
    array: Any = x
    if buffer.device.client is device.client:
        return type(array)(array.aval, buffer.on(device), array.committed)
    aval = physical_aval(array.aval)
    buffer.wait()
    there = device.client.put(buffer.numpy(aval.dtype, aval.shape), aval, device)
    return type(array)(array.aval, there.buffer, array.committed)


def apply_where_arguments_are(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Runs one primitive on the device that its arguments are committed to, otherwise on the default backend."""
    backend = backends.get()
    if differing.used and differing.devices_of(args) is not None:
        return hooks.apply_stateful(primitive, args, params)
    device = common_device(args, lambda i: f"argument {'xyzuvw'[i % 6]} of {primitive.name}")
    if device is None:
        device = around()
        if device is None and host_devices.cohort is not None:
            device = hooks.home_of_operation(params)
    if device is None or device.client is backend and backend.shared_memory:
        if elsewhere(args, backend):
            args = tuple([moved(x, backend.devices()[0]) for x in args])
        return backend.apply_primitive(primitive, args, params)
    there = device.client
    return there.apply_primitive(primitive, tuple([moved(_as_array(x, there), device) for x in args]), params)


def _as_array(x: Any, client: Any) -> Any:
    return x if isinstance(x, Array) else client.operand(x)


def in_place_of(new: Any, old: Any) -> Any:
    """An array in place of another one, spread over the devices of a mesh as that was."""
    at = old.sharding
    return new.placed(at) if isinstance(at, NamedSharding) and old.committed and at != new.sharding else new
