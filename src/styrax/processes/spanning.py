"""Arrays over the devices of several processes, and the backend that runs programs on them.

Of such an array a process keeps the blocks of its devices (`Parts`). To the rest of the project it lives on a device of
its own, `Everyone`, whose client parts programs (`partition`) and has the local backend compile this process's part.
Code for local memory refuses such memory as it does that of another backend, so programs of one process pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import hooks
from ..core.arrays import backends, host_devices
from ..core.arrays.array import Array, array_type
from ..core.arrays.devices import Device, ManyDevices
from ..core.arrays.mesh import Mesh
from ..core.arrays.shardings import NamedSharding
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import get_aval
from ..core.types import physical
from ..core.types.avals import ShapedArray, shaped
from .cohort import current
from .partition import spanning_mesh, spans
from .process_parts import partitioned
from .tilings import tiling

if TYPE_CHECKING:
    from ..core.arrays.backends import Backend


def local() -> Backend:
    """The backend of this process's own devices."""
    return backends.get("cpu")


class Everyone(ManyDevices):
    """The devices of a mesh over several processes, in the place of one device."""

    platform = "cpu"

    def __init__(self, devices: tuple[Device, ...]):
        self.devices = devices
        self.id = ", ".join(str(d.id) for d in devices)  # as messages tell it
        self.client = client

    @property
    def mesh(self) -> Mesh:
        """A mesh of one axis, for what is whole everywhere."""
        return Mesh(np.array(self.devices), ("devices",))

    def put(self, x: Any, sharding: NamedSharding) -> Array:
        return put(x, sharding)

    def part(self, array: Array, device: Device) -> Array:
        return part(array, device)

    def of_parts(self, shape: tuple[int, ...], sharding: NamedSharding, parts: Mapping[Device, Array]) -> Array:
        return of_parts(shape, sharding, parts)

    def __repr__(self) -> str:
        return f"Everyone({self.id})"


@lru_cache(maxsize=256)
def everyone(devices: tuple[Device, ...]) -> Everyone:
    """The same for the same devices."""
    return Everyone(devices)


class Parts:
    """The memory of an array over several processes: rows of this process's blocks."""

    __slots__ = ("device", "nbytes", "rows", "whole")

    def __init__(self, rows: Array, device: Everyone, whole: bool):
        self.rows = rows
        self.device = device
        self.whole = whole  # whether the row is all of the array
        self.nbytes = rows.nbytes

    def wait(self) -> None:
        self.rows.block_until_ready()

    def ready(self) -> bool:
        return self.rows.is_ready()

    def on(self, device: Any) -> Parts:
        return self

    def numpy(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        if not self.whole:
            raise RuntimeError(host_devices.UNREACHABLE)
        return self.rows._live().numpy(dtype, shape)


def array(aval: ShapedArray, rows: Array, sharding: NamedSharding) -> Array:
    """An array of this process's blocks."""
    told = hooks.sharding_of_type(sharding, aval.shape)
    if told is not aval.given_sharding:
        aval = aval.update(sharding=told)
    device = everyone(sharding._device_assignment)
    out = array_type(aval)(aval, Parts(rows, device, sharding.is_fully_replicated), True)
    out._sharding = sharding
    return out


def own(aval: ShapedArray, x: Array) -> Array:
    """What this process has for itself, of an extended dtype where that is so."""
    return array_type(aval)(aval, x.buffer, x.committed) if physical.is_extended(aval) else x


def part(x: Array, device: Device) -> Array:
    """What a device of this process has of an array."""
    parts, sharding = x._live(), x.sharding
    aval = physical.physical_aval(x.aval.update(sharding=None))
    tiles = tiling(sharding, aval.shape)
    rows: Array = parts.rows
    rows.block_until_ready()
    memory = rows._live()
    block = shaped(tiles.block, aval.dtype, x.aval.weak_type)
    address = memory.address + tiles.row[device] * block.size * aval.dtype.itemsize
    out = device.client.adopt(address, block, memory, device)
    logical = x.aval.update(shape=sharding.shard_shape(x.shape), sharding=None)
    return array_type(logical)(logical, out.buffer, True)


def of_parts(shape: tuple[int, ...], sharding: NamedSharding, parts: Mapping[Device, Array]) -> Array:
    """The array whose parts this process's devices hold."""
    first = next(iter(parts.values()))
    aval = first.aval.update(shape=shape, sharding=None)
    tiles = tiling(sharding, physical.physical_aval(aval).shape)
    blocks: list[Any] = [None] * len(tiles.own)
    for device, x in parts.items():
        whole = physical.physical_aval(x.aval)
        x.block_until_ready()
        blocks[tiles.row[device]] = x._live().numpy(whole.dtype, whole.shape)
    rows = np.stack(blocks)
    return array(aval, local().put(rows, shaped(rows.shape, rows.dtype), None), sharding)


def put(x: Any, sharding: NamedSharding) -> Array:
    """A value under a sharding over several processes: an array over them moves, another is the same in all of them.

    Raises AssertionError where it is not.
    """
    if isinstance(x, Array) and isinstance(x._live(), Parts):
        if x.sharding == sharding:
            return x
        return _moving(x.aval.update(sharding=None), sharding)(x)[0]
    aval = get_aval(x)
    given = x if isinstance(x, Array) else local().put(x, aval, None)
    whole = physical.physical_aval(given.aval)
    given.block_until_ready()
    value = given._live().numpy(whole.dtype, whole.shape)
    current().check_alike(value, type(x))
    tiles = tiling(sharding, value.shape)
    rows = np.stack([value[tuple(slice(*ends) for ends in place)] for place in tiles.own])
    return array(given.aval.update(sharding=None), local().put(rows, shaped(rows.shape, rows.dtype), None), sharding)


@lru_cache(maxsize=1024)
def _moving(aval: ShapedArray, sharding: NamedSharding) -> Part:
    closed = trace_to_jaxpr(lambda x: [x], [aval])
    return Part(closed, "device_put", everyone(sharding._device_assignment), ((), (sharding,)))


class Part:
    """A program on arrays over several processes.

    Args:
      closed: the program.
      device: the devices that it runs on.
      said: what was said of arguments' and results' shardings; what is no sharding says nothing.
    """

    def __init__(self, closed: ClosedJaxpr, name: str, device: Everyone, said: tuple[Sequence[Any], Sequence[Any]]):
        self.closed = closed
        self.name = name
        self.device = device
        self.in_shardings = said[0] or (None,) * len(closed.in_avals)
        self.out_shardings = said[1] or (None,) * len(closed.out_avals)
        self.home = home(closed, said) is not None
        self.codes: dict[Any, tuple[Callable[..., list[Any]], list[NamedSharding | None]]] = {}

    def expect(self, given: Sequence[Any]) -> None:
        """Nothing: parts are made when it is called."""

    def __call__(self, *args: Any) -> list[Any]:
        given: list[NamedSharding | None] = []
        rows = []
        for x, said in zip(args, self.in_shardings, strict=True):
            parts = x.buffer if isinstance(x, Array) else None
            if isinstance(parts, Parts):
                if isinstance(said, NamedSharding) and said != x._sharding:
                    if not said.is_equivalent_to(x._sharding, x.ndim):
                        raise ValueError("Sharding passed to jit does not match the sharding on the respective arg. "
                                         f"Got jit sharding: {said},\narg sharding: {x._sharding} for arg type: "
                                         f"{x.aval.str_short()}")
                given.append(x._sharding)
                rows.append(parts.rows)
                continue
            if _spans(said):
                if not said.is_fully_replicated:
                    raise ValueError("Passing non-trivial shardings for numpy inputs is not allowed. To fix this "
                                     "error, either specify a replicated sharding explicitly or use "
                                     "`jax.make_array_from_process_local_data(...)` or "
                                     "`jax.make_array_from_callback(...) to create a `jax.Array` which you can pass to "
                                     f"jit. Got arg type: {x.aval.str_short()}")
                x = put(x, said)
                given.append(said)
                rows.append(x.buffer.rows)
                continue
            given.append(None)
            rows.append(x)
        if not self.home and not any(given):
            raise backends.Elsewhere
        key = tuple(given)
        found = self.codes.get(key)
        if found is None:
            found = self.codes[key] = self._for(given)
        code, shardings = found
        return [own(a, y) if s is None else array(a, y, s)
                for y, s, a in zip(code(*rows), shardings, self.closed.out_avals, strict=True)]

    def _for(self, given: Sequence[NamedSharding | None]) -> Any:
        lowered = physical.lower(self.closed)
        named = [s for s in (*given, *self.out_shardings, *self.in_shardings) if _spans(s)]
        mesh = named[0].mesh if named else spans(lowered.jaxpr) or self.device.mesh
        program, shardings = partitioned(lowered, mesh, given, self.out_shardings)  # type: ignore[arg-type]
        return local().compile(program, name=self.name), shardings

    @property
    def code(self) -> Any:
        """This process's program of the latest kind of call."""
        return next(reversed(self.codes.values()))[0]

    def __getattr__(self, name: str) -> Any:
        if name in ("as_text", "cost_analysis", "machine_code", "memory_analysis") and self.codes:
            return getattr(self.code, name)
        raise AttributeError(name)


def _spans(sharding: Any) -> bool:
    """Whether it is a sharding over devices of several processes."""
    return isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh) and (
        not sharding.is_fully_addressable)


def home(closed: ClosedJaxpr, said: tuple[Sequence[Any], Sequence[Any]]) -> Everyone | None:
    """The devices over several processes that a program names, or that is said of its arguments and results."""
    for s in (*said[0], *said[1]):
        if _spans(s):
            return everyone(s._device_assignment)
    mesh = spans(closed.jaxpr)
    return None if mesh is None else everyone(tuple(mesh.devices.flat))


def home_of_operation(params: dict[str, Any]) -> Everyone | None:
    """The same for one operation."""
    mesh = spanning_mesh(params)
    return None if mesh is None else everyone(tuple(mesh.devices.flat))


class SpanningBackend:
    """The client of all processes' devices together."""

    platform = "cpu"
    dlpack_type = 1
    shared_memory = False

    def devices(self) -> Sequence[Device]:
        """The devices of this process."""
        return local().devices()

    def operand(self, value: Any) -> Array:
        return local().operand(value)

    def apply_primitive(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Runs one operation."""
        return hooks.apply_stateful(primitive, args, params)

    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (), device: Any = None,
                said: tuple[Sequence[Any], Sequence[Any]] = ((), ()), **_: Any) -> Part:
        """A program that is parted when it is called, for the shardings of its arguments."""
        return Part(closed, name, device, said)

    def barrier(self) -> None:
        local().barrier()


client = SpanningBackend()

__all__ = ["Everyone", "Part", "Parts", "array", "client", "everyone", "home", "home_of_operation", "of_parts", "part",
           "put"]
