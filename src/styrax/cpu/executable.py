"""Compiled programs as objects that are called with arrays, and the memory of arrays."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.arrays.array import Array, array_type
from ..core.arrays.backends import Elsewhere
from ..core.arrays.devices import Device
from ..core.settings import progress
from ..core.tracing.trace import Tracer, get_aval, raise_leak
from . import llvm, native_queue, runtime, stubs
from .dispatch import make_caller
from .interface import Interface
from .units import Units

if TYPE_CHECKING:
    from ..compile.program import Program
    from ..core.programs.places import Place
    from .clock import Clock
    from .tiers import Promotion

pool = runtime.pool
QUEUED = 10_000_000  # estimated instructions from which a program runs on the queue
PLENTY = 1 << 62  # fuel for ever: what loops of unknown length have there
QUEUED_BYTES = 16 << 20  # the same for programs whose sizes are known only when they are called
OWNERS = 4  # references to a memory that its array and this call hold: in lists, variables and questions


class Memory:
    """A block of the pool that holds an array's elements (by default a new one), or memory that someone else owns."""

    __slots__ = ("address", "nbytes", "device", "owner", "job", "__weakref__")

    def __init__(self, nbytes: int, device: Any, address: int = 0, owner: Any = None):
        self.job: tuple[Any, Executable] | None = None  # what is still writing it
        self.nbytes = nbytes
        self.device = device
        self.owner = owner
        self.address = address if address or owner is not None else pool.alloc(nbytes)

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

    def on(self, device: Any) -> Memory:
        """The same memory as another device has it."""
        if device is self.device:
            return self
        other = Memory(self.nbytes, device, self.address, self)
        other.job = self.job
        return other

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


def drain() -> None:
    """Waits for the programs on the queue."""
    if _queue:
        _queue[0].drain()


def calls_libraries(units: Sequence[str]) -> bool:
    """Whether a program calls BLAS or LAPACK."""
    return any("@blas_" in unit or "@lapack_" in unit for unit in units)


def load(units: Units, name: str) -> llvm.Library:
    """The code of a program, in the process."""
    if calls_libraries(units.texts):
        from . import libraries

        libraries.open_ahead()
    progress.stage = "machine code"
    return units.load(name)


class Compiled(NamedTuple):
    """A program of which LLVM is still to make machine code, or has made it before."""

    interface: Interface
    constants: Sequence[Any]
    units: Units  # its LLVM IR, for LLVM's effort of its first calls
    hasty: bool  # whether it is to be optimised when it proves hot
    calls_host: bool  # whether it calls Python functions of this process
    lowered: Callable[[], tuple[Program, str]] | None = None  # gives its loops, and its LLVM IR


class Executable:
    """A compiled program: call it with arrays, get arrays."""

    trial = QUEUED  # the fuel of a first try
    __slots__ = ("_lowered", "interface", "library", "entry", "out_bytes", "constants", "constant_addresses", "device",
                 "name", "live_inputs", "taken", "workspace", "results", "special", "queued", "fuelled", "address",
                 "hollow", "promotion", "__weakref__")

    def __init__(self, interface: Interface, constants: Sequence[Any], library: Any, device: Device,
                 out_avals: Sequence[Any], lowered: Callable[[], tuple[Program, str]]):
        self._lowered = lowered
        self.interface = interface
        self.name = interface.name
        self.device = device
        self.take_code(library)
        self.out_bytes = interface.out_bytes
        self.constants = [_as_array(value, device.client).block_until_ready() for value in constants]
        self.constant_addresses = [c.buffer.address for c in self.constants]
        self.hollow = interface.hollow
        self.live_inputs = interface.live_inputs
        self.workspace = interface.given_workspace
        self.taken = interface.taken
        self.special = self.hollow.union(self.taken)
        self.results = [(k, a, array_type(a), size)
                        for k, (a, size) in enumerate(zip(out_avals, self.out_bytes, strict=True))]
        self.fuelled = interface.fuelled
        self.queued = interface.queued

    @property
    def program(self) -> Program:
        """Its loops. Where the code came from the disk, they are made for who asks."""
        return self._lowered()[0]

    @property
    def ir(self) -> str:
        """Its LLVM IR."""
        return self._lowered()[1]

    def take_code(self, library: Any) -> None:
        """From now on runs this code."""
        self.promotion: Promotion | None = None
        self.library = library
        self.address = library.address("run")
        self.entry = make_caller(self.address)

    def promote(self) -> None:
        """From now on runs optimised code (see `tiers`)."""
        promotion = self.promotion
        if promotion is not None:
            promotion.finish()

    def __call__(self, *args: Any) -> list[Any]:
        memories = [args[i].buffer or args[i]._live() for i in self.live_inputs]
        try:
            waiting = [m.job[0] for m in memories if m.job is not None]
        except AttributeError:  # memory of another backend
            raise Elsewhere from None
        addresses = [m.address for m in memories]
        addresses += self.constant_addresses
        outs: list[Any] = []
        device = self.device
        committed = True in [x.committed for x in args]
        for k, aval, kind, size in self.results:
            if k in self.special:
                if k in self.hollow:
                    outs.append(kind(aval, None))
                    continue
                memory = self._take(args[self.taken[k]], self.taken[k], addresses)
            else:
                memory = Memory(size, device)
            addresses.append(memory.address)
            outs.append(kind(aval, memory, committed))
        workspace = None
        if self.workspace:
            workspace = Memory(self.workspace, device)
            addresses.append(workspace.address)
        if waiting and self.taken:  # those that were taken have been waited for
            waiting = [m.job[0] for m in memories if m.job is not None]
        if waiting or self.queued or self.fuelled:
            self._start(addresses, waiting, outs, (memories, workspace), bool(waiting) or self.queued)
            return outs
        status = self.entry(*addresses)
        if status:
            self.fail(status)
        return outs

    @property
    def straight(self) -> bool:
        """Whether a call stub can call it: it runs at once, or is tried so, and wants memory for its results alone."""
        return not (type(self) is not Executable or self.queued or self.special or self.workspace)

    def direct(self) -> Callable[..., list[Any]]:
        """What calls it in the fewest steps."""
        count = self.interface.arguments
        if not self.straight or self.interface.generic or count + len(self.results) > stubs.MANY:
            return self
        _, avals, kinds, sizes = zip(*self.results) if self.results else ((),) * 4
        return stubs.stub(self, self, Memory, avals, sizes, kinds, count, (self.trial,) if self.fuelled else ())

    def _start(self, words: list[int], waiting: Sequence[Any], outs: Sequence[Any], held: Any, queued: bool) -> None:
        """Runs the program on the queue; but one with loops of unknown length, unless it is `queued`, here with the
        fuel of a short one, and only if that does not last, there: from then on always."""
        if self.fuelled:
            if not queued:
                status = self.entry(*words, self.trial)
                if status != native_queue.OUT_OF_FUEL:
                    if status:
                        self.fail(status)
                    return
                self.queued = True
            words = [*words, PLENTY]
            self.promote()  # it may be long
        self.enqueue(words, waiting, outs, held)

    def enqueue(self, words: Sequence[int], waiting: Sequence[Any], outs: Sequence[Any], held: Any) -> None:
        """Runs the program on the queue's native thread, after what it waits for; its results know that it runs."""
        block = (ctypes.c_int64 * len(words))(*words)
        memories = [out.buffer for k, out in enumerate(outs) if k not in self.hollow]
        promotion = self.promotion
        if promotion is not None:
            promotion.count()
        library, address = self.library, self.address
        job = queue().submit(address, ctypes.addressof(block), waiting, (block, held, memories, self, library))
        for memory in memories:
            memory.job = (job, self)

    def fail(self, status: int) -> None:
        if status == runtime.CANCELLED:
            raise KeyboardInterrupt(f"{self.name} was cancelled")
        if status == native_queue.OUTSIDE:
            raise AssertionError(f"{self.name}: an access outside a buffer; STYRAX_DEBUG=loops,bounds shows where")
        planned = self.interface.workspace
        raise MemoryError(f"{self.name}: no memory for intermediate results ({planned} bytes planned)")

    def sized(self, args: Sequence[Any], out_avals: Sequence[Any], out_bytes: Sequence[int],
              sizes: tuple[int, ...]) -> Callable[..., list[Any]]:
        """What calls a program whose shapes are known only now, with arrays of the sizes of `args`."""
        touched = sum(out_bytes) + sum([args[i].nbytes for i in self.live_inputs])
        step_by_step = lambda *args: self.run_sized(args, out_avals, out_bytes, sizes)
        if not self.straight or self.fuelled or touched >= QUEUED_BYTES or len(args) + len(out_avals) > stubs.MANY:
            return step_by_step
        kinds = [array_type(a) for a in out_avals]
        return stubs.stub(self, step_by_step, Memory, out_avals, out_bytes, kinds, len(args), sizes)

    def run_sized(self, args: Sequence[Any], out_avals: Sequence[Any], out_bytes: Sequence[int],
                  sizes: tuple[int, ...]) -> list[Any]:
        """Runs a program whose shapes are known only now."""
        memories = [args[i]._live() for i in self.live_inputs]
        try:
            waiting = [m.job[0] for m in memories if m.job is not None]
        except AttributeError:
            raise Elsewhere from None
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
        long = bool(waiting) or sum(out_bytes) + sum([m.nbytes for m in memories]) >= QUEUED_BYTES
        if long or self.fuelled:
            self._start([*addresses, *sizes], waiting, outs, (memories, workspace), long or self.queued)
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

    @contextmanager
    def clocked(self) -> Iterator[tuple[Sequence[Place], Clock]]:
        """While it is open, calls tell how long each nest of the program takes (`clock`)."""
        from .clock import clocked

        with clocked(self) as found:
            yield found

    @contextmanager
    def running(self, library: Any) -> Iterator[None]:
        """Runs other code for the same program meanwhile."""
        self.promote()
        own = self.library
        drain()
        self.take_code(library)
        try:
            yield
        finally:
            drain()
            self.take_code(own)

    def as_text(self, dialect: str | None = None) -> str:
        """Loop IR; "llvm" and "asm" show what follows."""
        if dialect == "asm":
            return llvm.asm(self.ir)
        return self.ir if dialect == "llvm" else str(self.program)

    def machine_code(self) -> dict[bytes, bytes]:
        """The code, optimised, for `Backend.accept` in another process."""
        self.promote()
        return llvm.machine_code(self.library)

    def memory_analysis(self) -> tuple[int, int, int, int, int]:
        """Bytes of code, arguments, results, results in donated arguments, and workspace."""
        alias = sum(self.out_bytes[k] for k in self.taken)
        return 0, self.interface.in_bytes, sum(self.out_bytes), alias, self.interface.workspace

    def cost_analysis(self) -> dict[str, float]:
        """Estimates read off the loops: scalar operations, and bytes loaded and stored."""
        from ..compile import costs

        return costs.analyse(self.program)


def _as_array(x: Any, client: Any) -> Any:
    if isinstance(x, Tracer):
        raise_leak(x)
    if type(x) is Array and x._live().device.client is not client:
        x = np.asarray(x)
    return x if type(x) is Array else client.put(x, get_aval(x), None)
