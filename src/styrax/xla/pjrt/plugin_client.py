"""The backend of a plugin: XLA compiles programs from StableHLO and keeps arrays in its buffers."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...core.arrays import backends, host_devices, transfers
from ...core.arrays.array import Array
from ...core.arrays.backends import HOST, Backend, params_key
from ...core.arrays.devices import Device
from ...core.arrays.dlpack import LEGACY
from ...core.arrays.number_operands import Operands
from ...core.arrays.tokens import Token
from ...core.programs.jaxpr import ClosedJaxpr
from ...core.programs.primitive import Primitive
from ...core.settings import config
from ...core.tracing.invalid_values import Watched, watching
from ...core.tracing.staging import trace_to_jaxpr
from ...core.types import dtypes
from ...core.types.avals import ShapedArray, canonical_value, canonicalizers, shaped
from . import options, vendor_routines
from .adoption import Adoption
from .c_api import address_of, filled
from .device_copies import copies
from .entry import Entry
from .foreign_functions import Callbacks, Numbered, callbacks
from .in_flight import Effects
from .key_values import KeyValues
from .loaded_executable import Executable
from .plugin import Plugin
from .plugin_buffers import Buffer, BufferType, element_type
from .plugin_devices import PluginDevice
from .spread_programs import SpreadExecutable

# The kinds of devices in DLPack's enumeration
_DLPACK = {"cuda": 2, "rocm": 10, "oneapi": 14, "xpu": 14}
_DURING_CALL, _ZERO_COPY = 0, 2  # how long a plugin reads the host's memory: PJRT_HostBufferSemantics
MANY = 8192  # eager operations that are kept


class PluginBackend:
    """A client of a plugin.

    Args:
      platform: the name under which it is known.
      plugin: the plugin.

    Raises JaxRuntimeError where the plugin finds no device.
    """

    runtime_type = "pjrt"
    shared_memory = False

    def __init__(self, platform: str, plugin: Plugin):
        self.platform = platform
        self.plugin = plugin
        on_host = platform.startswith("xla_cpu")
        given = options.of_client(platform, host_devices.device_count(platform) if on_host else 0)
        array, kept = options.named_values(given)
        cohort = host_devices.cohort
        self._store = None if cohort is None or not options.meets_others(platform) else KeyValues(
            cohort.client, f"{platform}:")
        self.handle = plugin.call(
            "Client_Create", options=ctypes.addressof(array) if given else None, count=len(given),
            **({} if self._store is None else self._store.arguments)).client
        del kept  # (the plugin has read them)
        host_devices.fix()
        self.platform_version = plugin.text("Client_PlatformVersion", client=self.handle)
        self.dlpack_type = HOST if on_host else _DLPACK.get(platform, 12)  # 12: kExtDev, something else
        self._devices = [PluginDevice(self, handle) for handle in self._handles("Client_AddressableDevices")]
        if cohort is not None:
            self._meet_others(cohort.number)
        self._types: dict[Any, BufferType] = {}
        self._eager: dict[Any, Executable | Watched] = {}
        self._accepted: dict[bytes, bytes] = {}
        self._adoption = Adoption(plugin)
        self.effects = Effects(plugin)
        self.operand = Operands(self._copy).operand

    # -- devices -------------------------------------------------------------------------------------
    def _handles(self, name: str) -> Sequence[int]:
        found = self.plugin.call(name, client=self.handle)
        return (ctypes.c_void_p * found.count).from_address(found.items) if found.count else ()

    def _meet_others(self, number: int) -> None:
        """Makes the devices of all processes known. RuntimeError where the plugin counts this process otherwise."""
        own = {device.id: device for device in self._devices}
        handles = self._handles("Client_Devices")
        if len(handles) == len(own):
            return
        found = [own.get(d.id, d) for d in [PluginDevice(self, handle, False) for handle in handles]]
        counted = self.plugin.call("Client_ProcessIndex", client=self.handle).process
        if counted != number:
            raise RuntimeError(f"the PJRT plugin {self.plugin.path} knows this process by the number {counted}, which "
                               f"joined the others by jax.distributed.initialize as number {number}")
        if config.config.jax_sort_devices_by_process_index:
            found.sort(key=lambda device: device.process_index)
        backends.everywhere[self.platform] = found

    def devices(self) -> list[PluginDevice]:
        return self._devices

    def default_device(self) -> PluginDevice:
        """The device for what nobody has placed."""
        chosen = config.config.jax_default_device
        return chosen if isinstance(chosen, PluginDevice) and chosen.client is self else self._devices[0]

    # -- arrays ----------------------------------------------------------------------------------------
    def type_of(self, device: PluginDevice, dtype: Any, shape: tuple[int, ...]) -> BufferType:
        """The one type of buffers of a dtype and shape on a device. NotImplementedError for dtypes that PJRT lacks."""
        key = device, dtype, shape
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = BufferType(device, dtype, shape)
        return found

    def put(self, value: Any, aval: ShapedArray, device: Device | None) -> Array:
        return value if isinstance(value, (Array, Token)) else self._copy(value, aval, device)  # type: ignore[return-value]

    def _copy(self, value: Any, aval: ShapedArray, device: Any) -> Array:
        source, aval = self.elements(value, aval)
        return Array(aval, self.buffer(source, device or self.default_device()))

    def elements(self, value: Any, aval: ShapedArray) -> tuple[np.ndarray, ShapedArray]:
        """What goes to a device of a value of NumPy's or Python's, and the type of the array there."""
        if transfers.used:
            transfers.check(aval)
        rule = canonicalizers.get(type(value), canonical_value)
        if rule is not canonical_value:
            value = rule(value)
        source = np.asarray(value, dtype=aval.dtype if isinstance(aval.dtype, np.dtype) else None)
        aval = shaped(source.shape, source.dtype, aval.weak_type)
        if source.dtype == dtypes.float0:  # nobody reads it, and PJRT has nothing of the kind
            source = np.zeros(source.shape, np.bool_)
        return source, aval

    def buffer(self, source: np.ndarray, device: PluginDevice) -> Buffer:
        """A copy of an array on a device."""
        handle, done = self._from_host(source, source.ctypes.data, device, _DURING_CALL)
        self.plugin.call("Event_Destroy", handle=done)
        return Buffer(handle, self.type_of(device, source.dtype, source.shape))

    def _from_host(self, source: Any, address: int, device: PluginDevice, semantics: int) -> tuple[int, int]:
        """A new buffer, and the event that the plugin needs the host's memory no longer."""
        rank = len(source.shape)
        words = (ctypes.c_int64 * (2 * rank))(*source.shape, *getattr(source, "strides", ()))
        dims = ctypes.addressof(words)
        dense = not isinstance(source, np.ndarray) or source.flags.c_contiguous
        told = self.plugin.call(
            "Client_BufferFromHostBuffer", client=self.handle, data=address, type=element_type(source.dtype),
            dims=dims, rank=rank, strides=None if dense else dims + 8 * rank, strides_count=0 if dense else rank,
            semantics=semantics, device=device.handle)
        return told.buffer, told.done

    def adopt(self, address: int, aval: ShapedArray, owner: object, device: Device | None = None) -> Array:
        there: Any = device or self._devices[0]
        if self.dlpack_type == HOST:
            handle, done = self._from_host(aval, address, there, _ZERO_COPY)
            self._adoption.hold(owner, done)
        else:
            copies(self.platform).wait(LEGACY)
            dims = (ctypes.c_int64 * max(1, len(aval.shape)))(*aval.shape)
            handle = self.plugin.call(
                "Client_CreateViewOfDeviceBuffer", client=self.handle, data=address, dims=ctypes.addressof(dims),
                rank=len(aval.shape), type=element_type(aval.dtype), device=there.handle,
                **self._adoption.told(owner)).buffer
        return Array(shaped(aval.shape, aval.dtype, aval.weak_type),
                     Buffer(handle, self.type_of(there, aval.dtype, aval.shape)))

    # -- programs ----------------------------------------------------------------------------------------
    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (),
                device: Device | None = None,
                compiler_options: Mapping[str, options.Option] = options.NONE) -> Executable:
        there: Any = device or self.default_device()
        entry = Entry(closed, name, donated, Numbered(self._callbacks), self.libraries)
        return Executable(closed, entry, *self.loaded(entry.text, (there,), compiler_options), there, name)

    def compile_for_many(self, closed: ClosedJaxpr, name: str, devices: Any,
                         spread: tuple[Sequence[Any], Sequence[Any]], donated: Sequence[bool],
                         compiler_options: Mapping[str, options.Option]) -> SpreadExecutable:
        """A program for several devices in the place of one, for arguments and results under these shardings."""
        return SpreadExecutable(closed, name, devices, spread, donated, compiler_options)

    def loaded(self, text: str, devices: Sequence[Device],
               compiler_options: Mapping[str, options.Option]) -> tuple[int, bytes]:
        """A program compiled for devices and loaded there, or loaded alone where it was accepted, and its options."""
        own = options.ON_HOST if self.dlpack_type == HOST else options.NONE
        chosen = options.compile_options([d.id for d in devices], {**own, **compiler_options})
        known = self._accepted.get(self.key(text, chosen)) if self._accepted else None
        return self._load(known, chosen) if known is not None else self._compile(text, chosen), chosen

    @cached_property
    def libraries(self) -> tuple[str, ...]:
        """Those whose routines programs may call."""
        return vendor_routines.register(self.plugin, self.platform)

    def _callbacks(self) -> Callbacks:
        """The Python functions that programs call. NotImplementedError where they would not see the memory."""
        return callbacks(self.plugin, copies(self.platform))

    def _compile(self, text: str, chosen: bytes) -> int:
        code, form = text.encode(), b"mlir"
        program = filled("Program", code=address_of(code), size=len(code),
                         format=address_of(form), format_size=len(form))
        return self.plugin.call("Client_Compile", client=self.handle, program=ctypes.addressof(program),
                                options=address_of(chosen), size=len(chosen)).executable

    def _load(self, data: bytes, chosen: bytes) -> int:
        return self.plugin.call(
            "Executable_DeserializeAndLoad", client=self.handle, data=address_of(data),
            size=len(data), options=address_of(chosen), options_size=len(chosen)).executable

    def key(self, text: str, chosen: bytes) -> bytes:
        """What a compiled program is kept under: a plugin would load one of another version without complaint."""
        parts = self.plugin.fingerprint, self.platform_version.encode(), chosen, text.encode()
        return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()

    def accept(self, code: Mapping[bytes, bytes]) -> None:
        self._accepted.update(code)

    def apply_primitive(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        arrays = [x if isinstance(x, Array) else self.operand(x) for x in args]
        held = next((x.buffer for x in arrays if type(x.buffer) is Buffer), None)
        device = self.default_device() if held is None else held.device
        avals = [x.aval for x in arrays]
        key = (primitive, device, *avals, params_key(params), config.trace_context())
        code: Executable | Watched | None = self._eager.get(key)
        if code is None:
            if len(self._eager) > MANY:
                self._eager.clear()
            code = self.compile(trace_to_jaxpr(_run(primitive, params), avals), name=primitive.name, device=device)
            if watching():
                code = Watched(code, primitive.name)
            self._eager[key] = code
        outs = code(*arrays)
        return outs if primitive.multiple_results else outs[0]

    def for_all_shapes(self, fun: Callable[..., Any], key: tuple[Any, ...], name: str,
                       trace: Callable[[tuple[Any, ...]], tuple[ClosedJaxpr, Any]],
                       specialise: Callable[[], None]) -> None:
        """None: XLA compiles for shapes alone."""

    def barrier(self) -> None:
        self.effects.wait()


def _run(primitive: Primitive, params: dict[str, Any]) -> Callable[..., list[Any]]:
    def run(*tracers: Any) -> list[Any]:
        out = primitive.bind(*tracers, **params)
        return list(out) if primitive.multiple_results else [out]

    return run


def _asked(backend: PluginBackend) -> Backend:  # for type checkers: it offers all that is asked
    return backend
