"""LLVM: IR text in, callable machine code out, kept on disk.

`load` looks the text up among the libraries of this process, then among the images on disk, and only then
loads LLVM, compiles, and stores the result. A hit on disk does not even open LLVM's library.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_void_p

from ..core.settings import config
from . import background, floating_point, instruction_sets, llvm_library, objects, store
from .llvm_library import handle, string, take

# Part of every key: raise it when the passes, the code generation options or the image format change.
PIPELINE_VERSION = 6

# Passes by level. 1 trusts the emitter for hoisting and common subexpressions and only tidies up; 2 is LLVM's
# own function simplification (early CSE, LICM, loop passes), several times slower, without its vectorisers.
BRIEF = -2  # the least that is needed, and fast code generation: for code that runs only for an instant, or at first
BRIEFEST = -3  # with fast register allocation, too
BARE = -4  # without any passes, too: for text that is as it should be
CALLING = -1  # as `BRIEF`, for code that leaves most of the work to functions that it calls, which are of level 1
_TIDY = {1: ("SROA", "InstCombine", "SimplifyCFG")} | dict.fromkeys((CALLING, BRIEF, BRIEFEST), ("SROA",))


class CompileError(RuntimeError):
    """LLVM refused the IR. The message has its complaint and the line of text."""


class Statistics:
    """Counters of this process: modules compiled, found on disk, found in memory; seconds spent compiling."""

    __slots__ = ("compiled", "disk_hits", "memory_hits", "seconds")

    def __init__(self) -> None:
        self.compiled = self.disk_hits = self.memory_hits = 0
        self.seconds = 0.0

    def __repr__(self) -> str:
        return (f"Statistics(compiled={self.compiled}, disk_hits={self.disk_hits}, "
                f"memory_hits={self.memory_hits}, seconds={self.seconds:.4f})")


compile_count = Statistics()


class Host:
    """What code is generated for: ``triple``, LLVM's ``cpu`` name, ``features`` ("+avx2,-sse4a,…"), the set
    of ``available`` features by LLVM's names, and ``vector_bytes``, the widest vector worth using."""

    __slots__ = ("available", "cpu", "features", "triple", "vector_bytes")

    def __init__(self, triple: str, cpu: str, features: str):
        self.triple, self.cpu, self.features = triple, cpu, features
        self.available = frozenset(f[1:] for f in features.split(",") if f[:1] == "+")
        if "avx512f" in self.available and "avx512vl" in self.available:
            self.vector_bytes = 64
        elif "avx" in self.available:
            self.vector_bytes = 32
        else:
            self.vector_bytes = 16

    def __repr__(self) -> str:
        return f"Host({self.triple!r}, {self.cpu!r}, vector_bytes={self.vector_bytes})"


class Library:
    """Loaded code. Addresses are valid while this object lives: whoever keeps one keeps the library too."""

    __slots__ = ("__weakref__", "_addresses", "_owner", "name", "source", "uses")

    def __init__(self, name: str, addresses: dict[str, int], owner: object):
        self.name, self._addresses, self._owner = name, addresses, owner
        self.uses: Sequence[Library] = ()  # what its code refers to
        self.source: tuple[str, int] = "", 0  # the text that it was compiled from, and the level

    def address(self, symbol: str) -> int:
        """Address of an exported function or variable; KeyError if the module does not define it."""
        return self._addresses[symbol]

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(self._addresses)


# ---------------------------------------------------------------------------------------------------------
# Loading
# ---------------------------------------------------------------------------------------------------------

_loaded: weakref.WeakValueDictionary[tuple, Library] = weakref.WeakValueDictionary()
_stores: dict[str, store.Store] = {}
_given: dict[bytes, bytes] = {}  # code from other processes, by its key


def load(ir_text: str, name: str = "module", symbols: Mapping[str, int] | None = None, level: int = 1,
         share: bool = True, blob: bytes | None = None) -> Library:
    """Compile ``ir_text`` (or find it compiled) and map it into the process.

    ir_text: LLVM IR. Target and data layout lines may be left out. Functions should be ``nounwind``.
    name: for messages only.
    symbols: addresses for undefined symbols; others are looked up by `resolve`.
    level: 1 for IR that is already in good shape, 2 for LLVM's full simplification, 0 for neither; below zero for
        code that is generated five times as fast and runs several times slower.
    share: give equal calls the same library. False for modules with state of their own.
    blob: the code, where it has been compiled already.

    Raises CompileError for IR that LLVM rejects and LookupError for undefined symbols.
    """
    key = key_of(ir_text, level)
    memory_key = (key, tuple(sorted(symbols.items())) if symbols else ())
    if share:
        library = _loaded.get(memory_key)
        if library is not None:
            compile_count.memory_hits += 1
            return library

    def find(symbol: str) -> int:
        if symbols is not None and symbol in symbols:
            return symbols[symbol]
        return resolve(symbol, level <= BRIEF)

    library = _from_blob(blob or _blob(key, ir_text, level), name, find)
    if library is None:
        library = _from_blob(_blob(key, ir_text, level, again=True), name, find)
        assert library is not None
    library.source = ir_text, level
    if share:
        # Two threads that compile the same at once both get a library; the later one stays.
        _loaded[memory_key] = library
    return library


def load_kept(key: bytes, name: str, brief: bool) -> Library | None:
    """The library of a module whose key is known (`key_of`), where its code is at hand."""
    library = _loaded.get((key, ()))
    if library is None:
        disk = _store()
        blob = None if disk is None else disk.get(key)
        library = None if blob is None else _from_blob(blob, name, lambda symbol: resolve(symbol, brief))
        if library is not None:
            compile_count.disk_hits += 1
            _loaded[key, ()] = library
    return library


def code(ir_text: str, level: int) -> bytes | None:
    """The code of a module for `load`, which needs none where the library is in memory."""
    key = key_of(ir_text, level)
    return None if (key, ()) in _loaded else _blob(key, ir_text, level)


def at_hand(texts: Sequence[str], level: int) -> bool:
    """Whether `load` would find all code compiled."""
    disk = _store()
    return all((key, ()) in _loaded or key in _given or disk is not None and key in disk
               for key in (key_of(text, level) for text in texts))


def key_of(ir_text: str, level: int) -> bytes:
    machine = host()
    return store.digest(ir_text.encode(), machine.features.encode(), machine.cpu.encode(), machine.triple.encode(),
                        llvm_library.identity(), b"%d.%d" % (PIPELINE_VERSION, level))


def _blob(key: bytes, ir_text: str, level: int, again: bool = False) -> bytes:
    """The code of a module: from the disk, or compiled (`again` where what lay there was of no use)."""
    if key in _given and not again:
        return _given[key]
    disk = _store()
    blob = disk.get(key) if disk is not None and not again else None
    if blob is not None:
        compile_count.disk_hits += 1
        return blob
    obj = compile_object(ir_text, level)
    try:
        blob = b"I" + objects.link(obj).to_bytes()
    except objects.UnsupportedObject:
        blob = b"O" + _symbols_header(ir_text) + obj
    if disk is not None:
        disk.put(key, blob)
    return blob


def machine_code(library: Library) -> dict[bytes, bytes]:
    """The code of a library and of what it refers to, under keys that other processes on such machines find it by."""
    found = {}
    for part in (*library.uses, library):
        key = key_of(*part.source)
        found[key] = _blob(key, *part.source)
    return found


def accept(code: Mapping[bytes, bytes]) -> None:
    """Takes what `machine_code` gave in another process: programs that need it are not compiled."""
    _given.update(code)


def _from_blob(blob: bytes, name: str, find: Callable[[str], int]) -> Library | None:
    if blob[:1] == b"O":
        return _link_with_orc(blob[1:], name, find)
    if blob[:1] != b"I":
        return None
    image = objects.Image.from_bytes(blob[1:])
    mapping = objects.Mapping(image, find)
    base = mapping.base
    return Library(name, {symbol: base + offset for symbol, offset in image.exports.items()}, mapping)


def _store() -> store.Store | None:
    if not store.enabled():
        return None
    directory = config.cache_directory()
    if directory is None:
        return None
    found = _stores.get(directory)
    if found is None:
        found = _stores.setdefault(directory, store.Store(directory))
    return found


# ---------------------------------------------------------------------------------------------------------
# Symbols
# ---------------------------------------------------------------------------------------------------------

# Modules that provide the functions of a prefix; they are loaded when one is wanted.
_HOMES = {"panels": "microkernels", "pass": "butterflies", "tiles": "tiles", "turn": "turning"}
_known: dict[str, int] = {}
_resolvers: list[Callable[[str], int | None]] = []
_brief_resolvers: list[Callable[[str], int | None]] = []  # for modules of level `BRIEF`
_process: list[ctypes.CDLL] = []


def define(symbols: Mapping[str, int]) -> None:
    """Make addresses known under names to all modules loaded from now on."""
    _known.update(symbols)


def add_resolver(resolver: Callable[[str], int | None], brief: bool = False) -> None:
    """Add a function from an unknown symbol's name to its address or None; asked before the process. `brief` ones are
    asked first, and anew each time, for modules of level `BRIEF`."""
    (_brief_resolvers if brief else _resolvers).append(resolver)


def resolve(symbol: str, brief: bool = False) -> int:
    """Address of an outside symbol: one that was defined, one that a resolver knows, or one of the process
    (C library, libm). Raises LookupError if nobody has it."""
    address = _asked_for(symbol, brief)
    home = _HOMES.get(symbol.partition("_")[0])
    if address is None and home is not None:
        importlib.import_module(f"{__package__}.{home}")
        address = _asked_for(symbol, brief)
    if address is None:
        address = _in_process(symbol)
        if address is None:
            raise LookupError(f"compiled code needs {symbol!r}, which is neither in the runtime nor in libc")
        _known[symbol] = address
    return address


def _asked_for(symbol: str, brief: bool) -> int | None:
    for resolver in _brief_resolvers if brief else ():
        address = resolver(symbol)
        if address is not None:
            return address
    address = _known.get(symbol)
    if address is not None:
        return address
    if symbol.startswith(("blas_", "lapack_")):
        from . import libraries

        return libraries.address(symbol.partition("_")[2])
    for resolver in _resolvers:
        address = resolver(symbol)
        if address is not None:
            _known[symbol] = address
            return address
    return None


def _in_process(symbol: str) -> int | None:
    if not _process:
        names = {"linux": (None, "libm.so.6", "libgcc_s.so.1"), "win32": ("ucrtbase", "msvcrt")}
        for name in names.get(sys.platform, (None,)):
            try:
                _process.append(ctypes.CDLL(name))
            except OSError:
                continue
    for library in _process:
        try:
            return ctypes.cast(getattr(library, symbol), c_void_p).value
        except AttributeError:
            continue
    return None


# ---------------------------------------------------------------------------------------------------------
# The host
# ---------------------------------------------------------------------------------------------------------

_host: list[Host] = []


def host() -> Host:
    """The machine this runs on, or what of it code may use. LLVM is asked once per kind of machine; the answer is kept
    on disk."""
    if not _host:
        disk, seen = _store(), _fingerprint()
        key = store.digest(b"host", seen, llvm_library.identity(), b"%d" % PIPELINE_VERSION) if seen else b""
        blob = disk.get(key) if disk is not None and seen else None
        found = _ask_host() if blob is None else Host(*blob.decode().split("\n"))
        if blob is None and disk is not None and seen:
            disk.put(key, f"{found.triple}\n{found.cpu}\n{found.features}".encode())
        _host.append(Host(found.triple, found.cpu, instruction_sets.lowered(
            found.features, instruction_sets.highest())))
    return _host[0]


def _fingerprint() -> bytes:
    """What the system says of the first processor, without LLVM; empty where it does not say."""
    if sys.platform != "linux":
        return b""
    wanted = (b"vendor_id", b"cpu family", b"model", b"model name", b"stepping", b"flags",
              b"CPU implementer", b"CPU architecture", b"CPU variant", b"CPU part", b"Features")
    try:
        fd = os.open("/proc/cpuinfo", os.O_RDONLY)
        try:
            head = os.read(fd, 8192)  # of the first processors only: the whole is long on big machines
        finally:
            os.close(fd)
    except OSError:
        return b""
    first = head.partition(b"\n\n")[0].split(b"\n")
    lines = [line for line in first if line.partition(b"\t")[0].strip() in wanted]
    if not any(line.startswith((b"flags", b"Features")) for line in lines):
        return b""
    system = os.uname()
    return b"\n".join([*lines, system.machine.encode(), system.release.encode()])


def _ask_host() -> Host:
    lib = handle()
    triple, cpu = string(lib.LLVMPY_GetDefaultTargetTriple), string(lib.LLVMPY_GetHostCPUName)
    features = {f[1:]: f[0] for f in sorted(string(lib.LLVMPY_GetHostCPUFeatures).split(",")) if f}
    if features.get("avx512f") == "+":
        features["prefer-256-bit"] = "-"  # our vectors are spelled out at full width
    if "sse4a" in features:  # INSERTQ has no AVX form: among instructions that have one, it took 0.1 µs (Zen 3)
        features["sse4a"] = "-"
    return Host(triple, cpu, ",".join(f"{sign}{name}" for name, sign in features.items()))


# ---------------------------------------------------------------------------------------------------------
# LLVM itself
# ---------------------------------------------------------------------------------------------------------

def version() -> str:
    """LLVM's version, "22.1.0"; loads LLVM."""
    packed, parts = handle().LLVMPY_GetVersionInfo(), []
    while packed:
        parts.append(str(packed & 255))
        packed >>= 8
    return ".".join(reversed(parts))


# Idle target machines by quality of code, each with its data layout. A machine remembers what it derived from
# the host's features, half a millisecond's work, but serves one thread at a time.
_machines: dict[int, list[tuple[int, str]]] = {0: [], 1: [], 2: []}


def _machine(quality: int) -> tuple[int, str]:
    try:
        return _machines[quality].pop()
    except IndexError:
        pass
    lib, target_of, message = handle(), host(), c_void_p()
    triple = target_of.triple.encode()
    target = lib.LLVMPY_GetTargetFromTriple(triple, byref(message))
    if not target:
        raise CompileError(take(message))
    own = _x86_elf(target_of)
    machine = lib.LLVMPY_CreateTargetMachine(
        target, triple, target_of.cpu.encode(), target_of.features.encode(), quality,
        b"pic" if own else b"default", b"small" if own else b"jitdefault", 0, int(not own), b"")
    if not machine:
        raise CompileError(f"LLVM cannot generate code for {target_of}")
    data = lib.LLVMPY_CreateTargetMachineData(machine)
    layout = string(lib.LLVMPY_CopyStringRepOfTargetData, data)
    lib.LLVMPY_DisposeTargetData(data)
    return machine, layout


def ready() -> None:
    """Opens LLVM, some 15 ms, and makes target machines for the first program and the functions that it calls."""
    quality = quality_of(BRIEF)
    _machines[quality] += [_machine(quality) for _ in range(2)]


class _Compilation:
    """One module in one context of its own, so that threads may compile side by side."""

    __slots__ = ("context", "layout", "lib", "machine", "module", "quality")

    def __init__(self, ir_text: str, quality: int = 1):
        self.context = self.module = self.machine = None
        lib = self.lib = handle()
        self.quality = quality
        self.machine, self.layout = _machine(quality)
        if "target triple" not in ir_text[:2000]:
            ir_text = f'target datalayout = "{self.layout}"\ntarget triple = "{host().triple}"\n{ir_text}'
        message = c_void_p()
        self.context = lib.LLVMPY_ContextCreate()
        self.module = lib.LLVMPY_ParseAssembly(self.context, floating_point.told(ir_text).encode(), byref(message))
        if not self.module or message.value:
            raise CompileError(_with_line(take(message), ir_text))
        message = c_void_p()
        if "verify" in config.config.debug and lib.LLVMPY_VerifyModule(self.module, byref(message)):
            raise CompileError("LLVM rejects the generated IR: " + take(message))

    def optimise(self, level: int) -> None:
        if level <= 0 and level not in _TIDY:
            return
        lib = self.lib
        options = lib.LLVMPY_CreatePipelineTuningOptions(1)
        for setting in ("LoopVectorization", "SLPVectorization", "LoopUnrolling", "LoopInterleaving"):
            getattr(lib, "LLVMPY_PTOSet" + setting)(options, False)
        builder = lib.LLVMPY_CreatePassBuilder(self.machine, options)
        if level in _TIDY:
            passes = lib.LLVMPY_CreateNewModulePassManager()
            for name in ("AlwaysInliner", *_TIDY[level]):
                getattr(lib, f"LLVMPY_module_Add{name}Pass")(passes)
            lib.LLVMPY_RunNewModulePassManager(passes, self.module, builder)
            lib.LLVMPY_DisposeNewModulePassManger(passes)
        else:
            inline = lib.LLVMPY_CreateNewModulePassManager()
            lib.LLVMPY_module_AddAlwaysInlinerPass(inline)
            lib.LLVMPY_RunNewModulePassManager(inline, self.module, builder)
            lib.LLVMPY_DisposeNewModulePassManger(inline)
            passes = lib.LLVMPY_buildFunctionSimplificationPipeline(builder, level - 1)
            functions = lib.LLVMPY_ModuleFunctionsIter(self.module)
            while function := lib.LLVMPY_FunctionsIterNext(functions):
                if not lib.LLVMPY_IsDeclaration(function):
                    lib.LLVMPY_RunNewFunctionPassManager(passes, function, builder)
            lib.LLVMPY_DisposeFunctionsIter(functions)
            lib.LLVMPY_DisposeNewFunctionPassManger(passes)
        lib.LLVMPY_DisposePassBuilder(builder)
        lib.LLVMPY_DisposePipelineTuningOptions(options)

    def text(self) -> str:
        return string(self.lib.LLVMPY_PrintModuleToString, self.module)

    def emit(self, as_object: bool, fast: bool = False) -> bytes:
        lib, message = self.lib, c_void_p()
        with llvm_library.lean(self.quality == 0, fast):
            buffer = lib.LLVMPY_TargetMachineEmitToMemory(self.machine, self.module, as_object, byref(message))
        if not buffer:
            raise CompileError(take(message))
        try:
            return ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(buffer)

    def __enter__(self) -> _Compilation:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self.machine is None:
            return
        lib = self.lib
        if self.module:
            lib.LLVMPY_DisposeModule(self.module)
        if self.context:
            lib.LLVMPY_ContextDispose(self.context)
        _machines[self.quality].append((self.machine, self.layout))
        self.module = self.context = self.machine = None


def _with_line(message: str, text: str) -> str:
    """LLVM's message, with the lines of ``text`` around the place it names."""
    parts = message.split(":")
    number = next((int(p) for p in parts if p.strip().isdigit()), 0)
    lines = text.split("\n")
    near = "\n".join(f"{i + 1:6} {lines[i]}" for i in range(max(number - 4, 0), min(number + 2, len(lines))))
    return f"LLVM rejects the generated IR: {message.strip()}\n{near}"


def quality_of(level: int) -> int:
    """The code generator's own level. "Less" compiles straight-line code twice as fast as "Default" and loops of
    vectors no worse; below zero, nothing is worth its time."""
    return 1 if level >= 0 else 0


def compile_object(ir_text: str, level: int = 1) -> bytes:
    """Object code of ``ir_text`` for the host, past all caches."""
    from time import perf_counter

    start = perf_counter()
    with background.Work(), _Compilation(ir_text, quality_of(level)) as job:
        job.optimise(level)
        obj = job.emit(True, fast=level == BRIEFEST)
    compile_count.compiled += 1
    compile_count.seconds += perf_counter() - start
    return obj


def optimised(ir_text: str, level: int = 1) -> str:
    """The IR after the passes of ``level``, for reading."""
    with background.Work(), _Compilation(ir_text) as job:
        job.optimise(level)
        return job.text()


def asm(ir_text: str, level: int = 1) -> str:
    """Assembly of ``ir_text`` for the host, for reading."""
    with background.Work(), _Compilation(ir_text, quality_of(level)) as job:
        job.optimise(level)
        return job.emit(False).decode()


# ---------------------------------------------------------------------------------------------------------
# Hosts that our own linker does not know
# ---------------------------------------------------------------------------------------------------------

_orc: list = []
_orc_lock = threading.Lock()


def _x86_elf(target_of: Host) -> bool:
    return sys.platform == "linux" and target_of.triple.startswith("x86_64") and "x32" not in target_of.triple


def _symbols_header(ir_text: str) -> bytes:
    """Names that the module defines and declares, a line each: only ELF's symbol table is read here."""
    import re

    name = r'@([\w.$]+)'
    local = r"(?!(?:internal|private)\b)"
    defined = re.findall(rf"^define {local}[^@\n]*{name}\(", ir_text, re.M)
    defined += re.findall(rf"^{name} = (?!external\b){local}[^\n]*\b(?:global|constant)\b", ir_text, re.M)
    wanted = re.findall(rf"^declare\b[^@\n]*{name}\(", ir_text, re.M)
    wanted = [n for n in wanted if not n.startswith("llvm.")]
    wanted += re.findall(rf"^{name} = external\b", ir_text, re.M)
    return f"{' '.join(defined)}\n{' '.join(wanted)}\n".encode()


def _link_with_orc(blob: bytes, name: str, find: Callable[[str], int]) -> Library:
    """Link with LLVM's ORC JIT, which knows every object format."""
    import llvmlite.binding as binding

    with background.Work(), _orc_lock:
        if not _orc:
            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            _orc.append(binding.create_lljit_compiler())
            _orc.append(0)
        _orc[1] += 1
        unit = f"{name}.{_orc[1]}"
    defined, undefined, obj = blob.split(b"\n", 2)
    builder = binding.JITLibraryBuilder().add_object_img(obj).add_current_process()
    for symbol in undefined.decode().split():
        builder.import_symbol(symbol, find(symbol))
    exports = defined.decode().split()
    for symbol in exports:
        builder.export_symbol(symbol)
    tracker = builder.link(_orc[0], unit)
    return Library(name, {symbol: tracker[symbol] for symbol in exports}, tracker)
