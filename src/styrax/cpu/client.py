"""The CPU backend: compiles jaxprs, keeps arrays in memory, runs programs."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compile import costs
from ..compile.pipeline import Program, compile_to_loops, debugging
from ..core.arrays.array import Array, array_type
from ..core.arrays.devices import Device
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.tracing.trace import Tracer, get_aval, raise_leak
from ..core.types import physical
from ..core.types.avals import ShapedArray, canonical_value, canonicalizers, shaped
from ..core.types.dims import Recorder
from . import libraries, llvm, native_queue, runtime
from .dispatch import make_caller
from .eager import Eager
from .emit import Function, Module
from .frames import LONG

pool = runtime.pool


QUEUED = 10_000_000  # estimated instructions from which a program runs on the queue; loops of unknown length do, too
QUEUED_BYTES = 16 << 20  # the same for programs whose sizes are known only when they are called
SCALARS = frozenset((bool, int, float))
INSTANT = 1500  # instructions of a whole call for which optimised code is not worth its making


class Memory:
    """A block of the pool that holds an array's elements, or memory that someone else owns."""

    __slots__ = ("address", "nbytes", "device", "owner", "job", "__weakref__")

    def __init__(self, nbytes: int, device: Any, address: int = 0, owner: Any = None):
        self.job: tuple[Any, Executable] | None = None  # what is still writing it
        self.nbytes = nbytes
        self.device = device
        self.owner = owner
        self.address = address if owner is not None else pool.alloc(nbytes)

    def __del__(self) -> None:
        try:
            if self.owner is None and pool is not None:
                pool.free(self.address, self.nbytes)
        except AttributeError:  # there was no memory
            pass

    def wait(self) -> None:
        """Waits for the program that writes this memory; its failure is raised here. Ctrl-C is seen meanwhile."""
        if self.job is not None:
            job, program = self.job
            status = job.wait()
            queue().pending()  # lets go of what finished programs held
            if status:
                program.fail(status)
            self.job = None

    def ready(self) -> bool:
        return self.job is None or self.job[0].done()

    def numpy(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        view = _View(self, dtype, shape)
        out = np.asarray(view)
        if out.dtype != dtype:
            out = out.view(dtype)
        out.flags.writeable = False
        return out


class _View:
    """NumPy's door to a block; it keeps the block alive."""

    __slots__ = ("memory", "__array_interface__")

    def __init__(self, memory: Memory, dtype: np.dtype, shape: tuple[int, ...]):
        self.memory = memory
        bits = f"|u{dtype.itemsize}" if dtype.itemsize == 1 else f"<u{dtype.itemsize}"
        kind = dtype.str if dtype.isbuiltin == 1 else bits
        self.__array_interface__ = {"version": 3, "data": (memory.address, False), "shape": shape, "typestr": kind}


_queue: list[runtime.Queue] = []


def queue() -> runtime.Queue:
    """The queue of programs that take long: they run on a native thread, in the order of their calls."""
    if not _queue:
        _queue.append(runtime.Queue())
    return _queue[0]


class Executable:
    """A compiled program: call it with arrays, get arrays."""

    __slots__ = ("program", "library", "entry", "out_bytes", "constants", "constant_addresses", "ir", "device",
                 "name", "live_inputs", "taken", "workspace", "results", "queued", "address", "hollow")

    def __init__(self, program: Program, library: Any, ir: str, device: Device, out_avals: Sequence[Any]):
        self.program = program
        self.library = library
        self.ir = ir
        self.name = program.name
        self.device = device
        self.address = library.address("run")
        self.entry = make_caller(self.address)
        self.queued = program.work >= QUEUED
        self.results = [(a, array_type(a)) for a in out_avals]
        self.out_bytes = [b.size * b.dtype.itemsize if b is not None and isinstance(b.size, int) else 0
                          for b in program.outputs]
        self.constants = [_as_array(value).block_until_ready() for _, value in program.constants]
        self.constant_addresses = [c.buffer.address for c in self.constants]
        self.hollow = frozenset(k for k, b in enumerate(program.outputs) if b is None)  # results without memory
        self.live_inputs = [i for i, b in enumerate(program.inputs) if b is not None]
        self.workspace = program.workspace
        inputs = {b: i for i, b in enumerate(program.inputs) if b is not None}
        # results that take over the memory of a donated argument: result number -> argument number
        self.taken = {k: inputs[b.root] for k, b in enumerate(program.outputs) if b is not None and b.root in inputs}

    def __call__(self, *args: Any) -> list[Any]:
        memories = [args[i].buffer or args[i]._live() for i in self.live_inputs]
        addresses = [m.address for m in memories]
        addresses += self.constant_addresses
        outs: list[Any] = []
        device = self.device
        committed = True in [x.committed for x in args]
        for k, ((aval, kind), size) in enumerate(zip(self.results, self.out_bytes, strict=True)):
            if k in self.hollow:
                outs.append(kind(aval, None))
                continue
            if k in self.taken:
                memory = self._take(args[self.taken[k]], self.taken[k], addresses)
            else:
                memory = Memory(size, device)
            addresses.append(memory.address)
            outs.append(kind(aval, memory, committed))
        workspace = None
        if self.workspace:
            workspace = Memory(self.workspace, device)
            addresses.append(workspace.address)
        waiting = [m.job[0] for m in memories if m.job is not None]
        if waiting or self.queued:
            self.enqueue(addresses, waiting, outs, (memories, workspace))
            return outs
        status = self.entry(*addresses)
        if status:
            self.fail(status)
        return outs

    def enqueue(self, words: Sequence[int], waiting: Sequence[Any], outs: Sequence[Any], held: Any) -> None:
        """Runs the program on the queue's native thread, after what it waits for; its results know that it runs."""
        block = (ctypes.c_int64 * len(words))(*words)
        memories = [out.buffer for k, out in enumerate(outs) if k not in self.hollow]
        job = queue().submit(self.address, ctypes.addressof(block), waiting, (block, held, memories, self))
        for memory in memories:
            memory.job = (job, self)

    def fail(self, status: int) -> None:
        if status == runtime.CANCELLED:
            raise KeyboardInterrupt(f"{self.name} was cancelled")
        if status == native_queue.OUTSIDE:
            raise AssertionError(f"{self.name}: an access outside a buffer; STYRAX_DEBUG=loops,bounds shows where")
        raise MemoryError(f"{self.name}: no memory for intermediate results ({self.workspace} bytes planned)")

    def run_sized(self, args: Sequence[Any], out_avals: Sequence[Any], out_bytes: Sequence[int],
                  sizes: tuple[int, ...]) -> list[Any]:
        """Runs a program whose shapes are known only now."""
        memories = [args[i]._live() for i in self.live_inputs]
        addresses = [m.address for m in memories]
        addresses += self.constant_addresses
        committed = True in [x.committed for x in args]
        outs = []
        for k, (aval, size) in enumerate(zip(out_avals, out_bytes, strict=True)):
            if k in self.hollow:
                outs.append(array_type(aval)(aval, None))
                continue
            memory = Memory(size, self.device)
            addresses.append(memory.address)
            outs.append(array_type(aval)(aval, memory, committed))
        workspace = None
        if self.workspace:
            workspace = Memory(self.workspace, self.device)
            addresses.append(workspace.address)
        waiting = [m.job[0] for m in memories if m.job is not None]
        if waiting or sum(out_bytes) + sum([m.nbytes for m in memories]) >= QUEUED_BYTES:
            self.enqueue([*addresses, *sizes], waiting, outs, (memories, workspace))
            return outs
        status = self.entry(*addresses, *sizes)
        if status:
            self.fail(status)
        return outs

    def _take(self, array: Any, number: int, addresses: list[int]) -> Memory:
        """The memory of a donated argument; a copy of it where someone else still sees it."""
        memory = array._live()
        memory.wait()
        if memory.owner is not None or sys.getrefcount(memory) > OWNERS or array._numpy is not None:
            copy = Memory(memory.nbytes, self.device)
            ctypes.memmove(copy.address, memory.address, memory.nbytes)
            addresses[self.live_inputs.index(number)] = copy.address
            memory = copy
        array.delete()
        return memory

    def as_text(self, dialect: str) -> str:
        return llvm.asm(self.ir) if dialect == "asm" else self.ir

    def memory_analysis(self) -> tuple[int, int, int, int, int]:
        """Bytes of code, arguments, results, results in donated arguments, and workspace."""
        arguments = sum(int(b.nbytes) for b in self.program.inputs if b is not None)
        alias = sum(self.out_bytes[k] for k in self.taken)
        return 0, arguments, sum(self.out_bytes), alias, self.program.workspace

    def cost_analysis(self) -> dict[str, float]:
        """Estimates read off the loops: scalar operations, and bytes loaded and stored."""
        return costs.analyse(self.program)


OWNERS = 4  # references to a memory that its array and this call hold: in lists, variables and questions


def _as_array(x: Any) -> Any:
    if isinstance(x, Tracer):
        raise_leak(x)
    return x if type(x) is Array else backend.put(x, get_aval(x), None)


def generate(program: Program, sizes: int = 0) -> Module:
    """The program as LLVM IR: the function `run(ptr slots, ptr cancel)`, which gives a status, and the parts that
    threads share."""
    machine = llvm.host()
    module = Module(program.builder, machine.vector_bytes, bounds=debugging("bounds"),
                    long=sizes > 0 or program.work >= LONG)
    f = Function(module, "run", "ptr %slots, ptr %cancel", "i32")
    order = [b for b in program.inputs if b is not None] + [b for b, _ in program.constants]
    order += [b for b in program.outputs if b is not None]
    for i, buffer in enumerate(order):
        f.writer.entry.append(f"  %b{i}p = getelementptr ptr, ptr %slots, i64 {i}")
        f.writer.entry.append(f"  %b{i} = load ptr, ptr %b{i}p")
        if buffer.alias is None:
            f.values.pointers[buffer] = f"%b{i}"
    if program.workspace:
        f.writer.entry.append(f"  %wsp = getelementptr ptr, ptr %slots, i64 {len(order)}")
        f.writer.entry.append("  %ws = load ptr, ptr %wsp")
        for k, buffer in enumerate(program.builder.buffers):
            if buffer.offset is not None:
                f.writer.entry.append(f"  %t{k} = getelementptr i8, ptr %ws, i64 {buffer.offset}")
                f.values.pointers[buffer] = f"%t{k}"
    at = len(order) + bool(program.workspace)
    for number, size in program.builder.sizes.items():
        if number < sizes:
            f.writer.entry.append(f"  %n{number}p = getelementptr i64, ptr %slots, i64 {at + number}")
            f.writer.entry.append(f"  %n{number} = load i64, ptr %n{number}p")
            f.values.names[size] = f"%n{number}"
    f.frame.reserve(program.statements, temporaries=bool(sizes))
    f.run(program.statements)
    module.functions.append(f.frame.end())
    return module


class CpuBackend:
    """The host's processors as one device."""

    platform = "cpu"

    def __init__(self) -> None:
        self._devices = [Device("cpu", 0, "cpu", self)]
        make_caller(0)  # loads what calls programs, and gives arrays the buffer protocol
        runtime.prepare()  # while the first program is traced
        self.eager = Eager(self.compile)
        self._scalars: dict[Any, Array] = {}  # Python numbers as arrays: programs are called with few of them, often

    def devices(self) -> list[Device]:
        return self._devices

    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (),
                sizes: Recorder | None = None, **_: Any) -> Executable:
        """The machine code of a program. With `sizes`, its shapes are known only when it is called."""
        machine = llvm.host()
        out_avals = closed.out_avals
        program = compile_to_loops(physical.lower(closed), name, donated, machine.vector_bytes, sizes is not None)
        module = generate(program, 0 if sizes is None else sizes.inputs)
        ir = module.text()
        if debugging("llvm"):
            print(f"-- llvm {name}\n{ir}")
        if "@blas_" in ir or "@lapack_" in ir:
            libraries.open_ahead()
        level = llvm.BRIEF if program.work < INSTANT else 1
        if debugging("asm"):
            print(f"-- asm {name}\n{llvm.asm(ir)}")
        kind = Executable
        if program.builder.host_calls:
            from .host_symbols import CallingExecutable as kind  # type: ignore[assignment]
        units = module.units(runtime.num_threads())
        return kind(program, llvm.load_units(units, name, level), ir, self._devices[0], out_avals)

    def apply_primitive(self, primitive: Any, args: tuple, params: dict[str, Any]) -> Any:
        """Runs one primitive: its program is compiled once for its parameters and argument types."""
        arrays = [x if isinstance(x, Array) else self.operand(x) for x in args]
        outs = self.eager.primitive(primitive, arrays, params)(*arrays)
        return outs if primitive.multiple_results else outs[0]

    def put(self, value: Any, aval: ShapedArray, device: Any) -> Array:
        """A NumPy array or scalar as an array of our own (copied)."""
        return value if isinstance(value, Array) else self._copy(value, aval, device)

    def operand(self, value: Any) -> Array:
        """An argument of an operation as an array. Numbers are kept: whoever gets one must not hand it out, since its
        owner could delete it."""
        if isinstance(value, Array):
            return value
        kind, aval = type(value), get_aval(value)
        if kind not in SCALARS and not (kind is np.ndarray and value.ndim == 0):
            return self._copy(value, aval, None)
        bits = value.tobytes() if kind is np.ndarray else value.hex() if kind is float else value
        key = (kind, bits, aval)
        known = self._scalars.get(key)
        if known is None:
            if len(self._scalars) > 1024:
                self._scalars.clear()
            known = self._scalars[key] = self._copy(value, aval, None)
        return known

    def _copy(self, value: Any, aval: ShapedArray, device: Any) -> Array:
        dtype = aval.dtype if isinstance(aval.dtype, np.dtype) else None
        rule = canonicalizers.get(type(value), canonical_value)
        if rule is not canonical_value:
            value = rule(value)
        source = np.asarray(value, dtype=dtype, order="C")
        memory = Memory(source.nbytes, device or self._devices[0])
        if source.nbytes:
            ctypes.memmove(memory.address, _numpy_address(source), source.nbytes)
        return Array(shaped(source.shape, source.dtype, aval.weak_type), memory)

    def barrier(self) -> None:
        """Waits for the programs that run."""
        if _queue:
            _queue[0].drain()

    def adopt(self, address: int, aval: ShapedArray, owner: Any) -> Array:
        """An array over memory of others, contiguous and aligned for its elements; `owner` keeps it."""
        nbytes = aval.size * aval.dtype.itemsize
        return Array(shaped(aval.shape, aval.dtype, aval.weak_type), Memory(nbytes, self._devices[0], address, owner))


def _numpy_address(x: np.ndarray) -> int:
    if x.dtype.kind in "biufc":
        return x.__array_interface__["data"][0]
    return x.view(np.uint8 if x.ndim else x.dtype).ctypes.data


backend = CpuBackend()

__all__ = ["CpuBackend", "Executable", "backend"]
