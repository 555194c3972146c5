"""Arrays over several devices of a plugin, and the backend that runs programs on them.

Of such an array each device has a buffer, of which a process keeps those of its own devices (`Parts`). To the rest of
the project it lives on a device of its own, `Together`, whose client compiles programs for all of the devices
(`spread_programs`). Programs for one device refuse such memory as they do that of another backend, so they pay nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import hooks
from ...core.arrays import host_devices
from ...core.arrays.array import Array, array_type
from ...core.arrays.devices import Device, ManyDevices
from ...core.arrays.mesh import Mesh
from ...core.arrays.moving import moved
from ...core.arrays.shardings import NamedSharding, PartitionSpec
from ...core.programs.jaxpr import ClosedJaxpr
from ...core.programs.primitive import Primitive
from ...core.tracing.staging import trace_to_jaxpr
from ...core.tracing.trace import get_aval
from ...core.types import physical
from ...core.types.avals import ShapedArray
from .options import NONE, Option
from .plugin_buffers import Buffer
from .spread_programs import SpreadProgram

if TYPE_CHECKING:
    from .plugin_client import PluginBackend
    from .plugin_devices import PluginDevice


class Together(ManyDevices):
    """The devices of a mesh in the place of one, in the mesh's order.

    `own` are those of this process. NotImplementedError where there are none.
    """

    __slots__ = ("client", "devices", "id", "mesh", "own", "platform")
    devices: tuple[PluginDevice, ...]  # type: ignore[assignment]

    def __init__(self, devices: tuple[PluginDevice, ...]):
        self.devices = devices
        self.own = host_devices.addressable(devices)
        if not self.own:
            raise NotImplementedError(f"arrays over devices of other processes alone: {', '.join(map(str, devices))}")
        self.platform = devices[0].platform
        self.id = ", ".join(str(d.id) for d in devices)
        self.client = MeshBackend(self.own[0].client)
        self.mesh = Mesh(np.array(devices), ("devices",))  # for what is whole everywhere

    @property
    def whole(self) -> NamedSharding:
        """Of what all devices have whole."""
        return NamedSharding(self.mesh, PartitionSpec())

    def put(self, x: Any, sharding: NamedSharding) -> Array:
        """A value under a sharding over these devices: what is there moves, all else is cut into its parts."""
        if not isinstance(x, Array):
            elements, aval = self.client.one.elements(x, get_aval(x))
            self._check_alike(elements, type(x))
            return self.memory(aval, sharding, self._copies(elements, sharding))
        memory = x._live()
        if memory.device is not self:
            if len(self.own) < len(self.devices):
                whole = physical.physical_aval(x.aval)
                memory.wait()
                self._check_alike(memory.numpy(whole.dtype, whole.shape), type(x))
            return self.memory(x.aval, sharding, self.cut(x, sharding))
        return x if x.sharding == sharding else _moving(x.aval.update(sharding=None), sharding)(x)[0]

    def _check_alike(self, elements: np.ndarray, kind: type) -> None:
        """Raises AssertionError where the other processes of these devices put something else there."""
        if len(self.own) < len(self.devices) and host_devices.cohort is not None:
            host_devices.cohort.check_alike(elements, kind)

    def cut(self, x: Array, sharding: NamedSharding) -> list[Buffer]:
        """The parts of an array that is on one device, or on others, as buffers on this process's."""
        memory = x._live()
        if sharding.is_fully_replicated and isinstance(memory, Buffer) and memory.device.client is self.client.one:
            return [memory.on(device) for device in self.own]
        whole = physical.physical_aval(x.aval)
        memory.wait()
        return self._copies(memory.numpy(whole.dtype, whole.shape), sharding)

    def _copies(self, elements: np.ndarray, sharding: NamedSharding) -> list[Buffer]:
        client: PluginBackend = self.client.one
        places = sharding.devices_indices_map(elements.shape)
        return [client.buffer(np.asarray(elements[places[device]]), device) for device in self.own]

    def memory(self, aval: ShapedArray, sharding: NamedSharding, parts: Sequence[Buffer]) -> Array:
        """An array of such parts."""
        told = hooks.sharding_of_type(sharding, aval.shape)
        if told is not aval.given_sharding:
            aval = aval.update(sharding=told)
        out = array_type(aval)(aval, Parts(self, sharding, parts), True)
        out._sharding = sharding
        return out

    def part(self, array: Any, device: Device) -> Array:
        parts: Parts = array._live()
        aval = array.aval.update(shape=parts.sharding.shard_shape(array.shape), sharding=None)
        return array_type(aval)(aval, parts.parts[self.own.index(device)], True)

    def of_parts(self, shape: tuple[int, ...], sharding: NamedSharding, parts: Mapping[Device, Any]) -> Array:
        buffers = [moved(parts[device], device)._live() for device in self.own]
        aval = next(iter(parts.values())).aval.update(shape=shape, sharding=None)
        return self.memory(aval, sharding, buffers)

    def __repr__(self) -> str:
        return f"Together({self.id})"


@lru_cache(maxsize=256)
def together(devices: tuple[PluginDevice, ...]) -> Together:
    """The same for the same devices."""
    return Together(devices)


class Parts:
    """The memory of an array over several devices: a buffer of each that is this process's, in their order."""

    __slots__ = ("device", "nbytes", "parts", "sharding")

    def __init__(self, device: Together, sharding: NamedSharding, parts: Sequence[Buffer]):
        self.device = device
        self.sharding = sharding
        self.parts = parts
        self.nbytes = sum(part.nbytes for part in parts)

    def wait(self) -> None:
        """Waits for the program that writes them. Raises JaxRuntimeError for the program's failure."""
        for part in self.parts:
            part.wait()

    def ready(self) -> bool:
        return all([part.ready() for part in self.parts])

    def on(self, device: Any) -> Parts:
        return self

    def numpy(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """The elements as NumPy's. RuntimeError where other processes have some."""
        if self.sharding.is_fully_replicated:
            return self.parts[0].numpy(dtype, shape)
        if len(self.parts) < self.sharding.num_devices:
            raise RuntimeError(host_devices.UNREACHABLE)
        out = np.empty(shape, dtype)
        local = self.sharding.shard_shape(shape)
        seen = set()
        for part, index in zip(self.parts, self.sharding.devices_indices_map(shape).values(), strict=True):
            place = tuple([(s.start, s.stop) for s in index])
            if place not in seen:
                seen.add(place)
                out[index] = part.numpy(dtype, local)
        out.flags.writeable = False
        return out


@lru_cache(maxsize=1024)
def _moving(aval: ShapedArray, sharding: NamedSharding) -> SpreadProgram:
    """The program that brings an array under a sharding."""
    devices: Any = sharding._device_assignment
    return SpreadProgram(trace_to_jaxpr(lambda x: [x], [aval]), "device_put", together(devices), ((), (sharding,)))


class MeshBackend:
    """The client of several devices together."""

    shared_memory = False

    def __init__(self, client: PluginBackend):
        self.one = client  # that of each of them
        self.platform = client.platform
        self.dlpack_type = client.dlpack_type

    def devices(self) -> Sequence[Device]:
        """All of this process."""
        return self.one.devices()

    def operand(self, value: Any) -> Array:
        return self.one.operand(value)

    def apply_primitive(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Runs one operation."""
        return hooks.apply_stateful(primitive, args, params)

    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (), device: Any = None,
                compiler_options: Mapping[str, Option] = NONE,
                said: tuple[Sequence[Any], Sequence[Any]] = ((), ())) -> SpreadProgram:
        """A program that is compiled when it is called, for the shardings of its arguments."""
        return SpreadProgram(closed, name, device, said, donated, compiler_options)

    def barrier(self) -> None:
        self.one.barrier()


__all__ = ["Parts", "Together", "together"]
