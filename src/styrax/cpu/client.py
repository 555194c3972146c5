"""The CPU backend: compiles jaxprs, keeps arrays in memory, runs programs."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import hooks
from ..core.arrays import backends, host_devices, transfers
from ..core.arrays.array import Array
from ..core.arrays.backends import Backend
from ..core.arrays.devices import Device
from ..core.arrays.number_operands import Operands
from ..core.arrays.tokens import Token
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.settings import config
from ..core.tracing import collector
from ..core.types import avals, physical
from ..core.types.avals import ShapedArray, canonical_value, canonicalizers, numpy_types, shaped
from ..core.types.dims import Recorder
from . import kept_programs, llvm, tiers
from .dispatch import copier
from .eager import Eager
from .executable import Executable, Memory, drain, load
from .units import Units

if TYPE_CHECKING:
    from ..compile.program import Program

NEAR = 1 << 16  # bytes that are copied in so short a time that other threads wait for it


class CpuBackend:
    """The host's processors as one or several devices, which share memory and threads."""

    platform = platform_version = "cpu"
    runtime_type = "styrax"  # by which libraries tell remote runtimes
    dlpack_type = 1
    shared_memory = True

    def __init__(self) -> None:
        self._devices, self._all_devices = host_devices.devices("cpu", self)
        backends.several = len(self._all_devices) > 1
        if len(self._all_devices) > len(self._devices):
            backends.everywhere[self.platform] = self._all_devices
        self._copy_near = copier()  # (loads what calls programs, and gives arrays the buffer protocol)
        self.eager = Eager(self.compile)
        self.for_all_shapes = self.eager.function
        self.operand = Operands(self._copy).operand

    def devices(self) -> list[Device]:
        return self._devices

    local_devices = devices

    def device_count(self) -> int:
        return len(self._all_devices)

    def local_device_count(self) -> int:
        return len(self._devices)

    def process_index(self) -> int:
        return 0 if host_devices.cohort is None else host_devices.cohort.number

    host_id = process_index

    def default_device(self) -> Device:
        """The device for what nobody has placed."""
        chosen = config.config.jax_default_device
        return chosen if isinstance(chosen, Device) and chosen.client is self else self._devices[0]

    accept = staticmethod(llvm.accept)

    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (),
                device: Device | None = None, compiler_options: Mapping[str, Any] = {},
                sizes: Recorder | None = None, **_: Any) -> Executable:
        """The machine code of a program, which is the same for all devices. With `sizes`, its shapes are known only
        when it is called."""
        out_avals = closed.out_avals
        if avals.explicit:
            closed = hooks.on_summands(closed)
        closed = physical.lower(closed)
        with collector.paused():
            request = kept_programs.Request(closed, name, donated, sizes)
            made = request.find()
            if made is None:
                from . import compilation  # loads the compiler

                made = compilation.compiled(closed, name, donated, sizes)
                request.keep(made)
            collector.age()
        kind = Executable
        if made.calls_host:
            from .host_symbols import CallingExecutable as kind  # type: ignore[assignment]
        hasty, units = made.hasty, made.units
        if hasty and llvm.at_hand(units.texts, 1):
            hasty, units = False, Units(1, units.texts)
        library = load(units, name)
        lowered = made.lowered or _lowering(closed, name, donated, sizes)
        executable = kind(made.interface, made.constants, library, self._devices[0], out_avals, lowered)
        if hasty:
            tiers.Promotion(executable, units.texts)
        return executable

    def apply_primitive(self, primitive: Any, args: tuple, params: dict[str, Any]) -> Any:
        """Runs one primitive: its program is compiled once for its parameters and argument types."""
        arrays: Sequence[Any] = args
        for x in args:
            if type(x) is not Array:
                arrays = [x if isinstance(x, Array) else self.operand(x) for x in args]
                break
        outs = self.eager.primitive(primitive, arrays, params)(*arrays)
        if backends.several:
            from ..core.programs import following

            following.of_primitive(primitive, arrays, outs, params)
        return outs if primitive.multiple_results else outs[0]

    def put(self, value: Any, aval: ShapedArray, device: Any) -> Array:
        """A NumPy array or scalar as an array of our own (copied)."""
        if type(value) is np.ndarray and value.dtype == aval.dtype and value.flags.c_contiguous and not transfers.used:
            return Array(shaped(value.shape, value.dtype, aval.weak_type), self._memory_of(value, device))
        if type(value) not in numpy_types and isinstance(value, (Array, Token)):
            return value  # type: ignore[return-value]
        return self._copy(value, aval, device)

    def _copy(self, value: Any, aval: ShapedArray, device: Any) -> Array:
        if transfers.used:
            transfers.check(aval)
        dtype = aval.dtype if isinstance(aval.dtype, np.dtype) else None
        rule = canonicalizers.get(type(value), canonical_value)
        if rule is not canonical_value:
            value = rule(value)
        source = np.asarray(value, dtype=dtype, order="C")
        return Array(shaped(source.shape, source.dtype, aval.weak_type), self._memory_of(source, device))

    def _memory_of(self, x: np.ndarray, device: Any) -> Memory:
        """A copy of an array of NumPy, contiguous."""
        nbytes = x.nbytes
        memory = Memory(nbytes, device or (self.default_device() if backends.several else self._devices[0]))
        if nbytes <= NEAR and _HEADER:
            self._copy_near(memory.address, id(x) + _HEADER, nbytes)
        else:  # others may run meanwhile
            ctypes.memmove(memory.address, x.ctypes.data, nbytes)
        return memory

    def barrier(self) -> None:
        """Waits for the programs that run."""
        drain()

    def adopt(self, address: int, aval: ShapedArray, owner: Any, device: Device | None = None) -> Array:
        """An array over memory of others, contiguous and aligned for its elements; `owner` keeps it."""
        memory = Memory(aval.size * aval.dtype.itemsize, device or self._devices[0], address, owner)
        return Array(shaped(aval.shape, aval.dtype, aval.weak_type), memory)


def _lowering(closed: ClosedJaxpr, name: str, donated: Sequence[bool], sizes: Recorder | None
              ) -> Callable[[], tuple[Program, str]]:
    """Gives the loops of a program whose code came from the disk."""
    closed = closed.replace(jaxpr=closed.jaxpr.replace())  # the other one keeps the code, which keeps this

    def lowered() -> tuple[Program, str]:
        from . import compilation

        again = compilation.compiled(closed, name, donated, sizes).lowered
        assert again is not None
        return again()

    return lowered


def _header() -> int:
    """The bytes of an object of CPython behind which arrays of NumPy have their address, which asking for takes ten
    times as long; 0 where they have not."""
    x, size = np.zeros(1), object.__basicsize__
    known = sys.implementation.name == "cpython" and ctypes.c_size_t.from_address(id(x) + size).value == x.ctypes.data
    return size if known else 0


_HEADER = _header()


backend = CpuBackend()
host_devices.fix()
if TYPE_CHECKING:
    _asked: Backend = backend

__all__ = ["CpuBackend", "Executable", "backend"]
