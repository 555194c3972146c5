"""Backends: what a platform offers, and the registry of platforms.

`Backend` says everything that the rest of the project asks of one: `jit` and its stages, eager operations, arrays,
devices and DLPack. Nothing here knows a backend. Those of the project are imported when they are first asked for;
others are registered as objects.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .. import hooks

if TYPE_CHECKING:
    from ..programs.jaxpr import ClosedJaxpr
    from ..programs.primitive import Primitive
    from ..types.avals import ShapedArray
    from .array import Array
    from .devices import Device


class Elsewhere(Exception):
    """A program was called with an array in memory that its device does not see. It is moved, or the program compiled
    for where it is (`moving`)."""


class Executable(Protocol):
    """A compiled program: what `Backend.compile` gives, and `runtime_executable()` of a compiled function."""

    def __call__(self, *args: Array) -> list[Any]:
        """The results for arguments that live on this backend.

        May come back before the work is done: each result's buffer then waits for it (`Buffer.wait`). A result
        without memory (a token, a `float0`) is what `array_type` makes of its abstract value and None.

        Raises `Elsewhere`, before anything has happened, for an argument whose memory the program's device does not
        see.
        """

    def as_text(self, dialect: str | None = None) -> str:
        """The program as the backend has it: in its favourite form, or in a dialect that it knows."""

    def cost_analysis(self) -> dict[str, float]:
        """Estimates by name: "flops", "bytes accessed", …"""

    def machine_code(self) -> dict[bytes, bytes]:
        """The code in pieces, by keys, for `Backend.accept` in another process."""

    def memory_analysis(self) -> tuple[int, int, int, int, int]:
        """Bytes of code, arguments, results, results in donated arguments, and workspace."""


@runtime_checkable
class Backend(Protocol):
    """What a platform offers.

    Arrays are `core.arrays.array.Array`s, whose memory is a `Buffer` of the backend's own. The `client` of a device
    is its backend.
    """

    @property
    def platform(self) -> str:
        """The name under which the backend is known: `jax.devices(name)`."""

    @property
    def dlpack_type(self) -> int:
        """The kind of its devices in DLPack's enumeration (1: memory that the host reads)."""

    @property
    def shared_memory(self) -> bool:
        """Whether its devices have one memory: then programs run wherever their arguments are said to be."""

    def devices(self) -> Sequence[Device]:
        """Its devices in the order of their numbers. The first is the default one."""

    def put(self, value: Any, aval: ShapedArray, device: Device | None) -> Array:
        """A NumPy array or a scalar as a new array of a type, on a device (None: the first); an array as it is."""

    def operand(self, value: Any) -> Array:
        """An argument of an operation as an array, one that may be shared: whoever gets it does not hand it out."""

    def adopt(self, address: int, aval: ShapedArray, owner: object, device: Device | None = None) -> Array:
        """An array over memory of others, contiguous and aligned, on a device (None: the first); it keeps `owner`, who
        keeps the memory."""

    def apply_primitive(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Runs one primitive at once: its result, a list of them if it has `multiple_results`."""

    def compile(self, closed: ClosedJaxpr, *, name: str = "program", donated: Sequence[bool] = (),
                device: Device | None = None, compiler_options: Mapping[str, Any] = {}) -> Executable:
        """Compiles a program.

        Args:
          name: the program's name, for messages and profiles.
          donated: which arguments' memory it may write results to; empty for none.
          device: where it runs, None for the default device.
          compiler_options: options of XLA, for backends that have it compile.
        """

    def accept(self, code: Mapping[bytes, bytes]) -> None:
        """Takes machine code that an `Executable` gave: programs that need it are not compiled."""

    def for_all_shapes(self, fun: Callable[..., Any], key: tuple[Any, ...], name: str,
                       trace: Callable[[tuple[Any, ...]], tuple[ClosedJaxpr, Any]],
                       specialise: Callable[[], None]) -> Any:
        """A program that serves calls of a library function at other shapes, too, or None: one is compiled for each.

        Args:
          fun: the function.
          key: what distinguishes its calls, with the abstract values of its arguments.
          name: the function's name.
          trace: gives the program for a key whose abstract values have generic sizes, and something to keep as the
            attribute `extra` of what is returned.
          specialise: is to be called when a program for these sizes alone would have paid.
        """

    def barrier(self) -> None:
        """Waits for all programs that run, and for their effects."""



# platform -> module that defines `backend`; the first is the default platform
modules: dict[str, str] = {"cpu": "styrax.cpu.startup"}
_loaded: dict[str, Backend] = {}
_default: Backend | None = None
everywhere: dict[str, Sequence[Device]] = {}  # platform -> the devices of all processes, where there are several
HOST = 1  # the kind of devices in DLPack's enumeration whose memory the host reads
several = False  # whether the host's processors are several devices: then results are placed as arguments are
apart = False  # whether there are devices of which one does not see the memory of another


def register(backend: Backend) -> None:
    """Makes a backend known under its platform's name. Raises ValueError for a name that is taken."""
    if backend.platform in platforms():
        raise ValueError(f"the platform {backend.platform} has a backend already")
    _keep(backend)


def _keep(backend: Backend) -> None:
    global apart
    _loaded[backend.platform] = backend
    devices = backend.devices()
    apart = apart or len(_loaded) > 1 or backend.platform in everywhere or not backend.shared_memory and (
        len(devices) > 1 or backend.platform != next(iter(hooks.platforms_wanted()), next(iter(modules))))


def in_use() -> bool:
    """Whether some backend has been asked for."""
    return bool(_loaded)


def all_devices(platform: str | None = None) -> Sequence[Device]:
    """The devices of a platform in all processes."""
    backend = get(platform)
    return everywhere.get(backend.platform) or backend.devices()


def platforms() -> list[str]:
    """The names of all platforms."""
    return list(dict.fromkeys([*modules, *_loaded]))


def get(platform: str | None = None) -> Backend:
    """The backend of a platform, or the default one: the first that the settings name.

    Platforms that are not the project's own are looked for among plugins, unless the settings name others.
    Raises RuntimeError for a platform that is unknown, or whose plugin does not work.
    """
    global _default
    if platform is None:
        if _default is None:
            _default = _first()
        return _default
    backend = _loaded.get(platform)
    if backend is None:
        if platform in modules:
            backend = importlib.import_module(modules[platform]).backend
        else:
            backend = _of_plugin(platform)
        if backend is None:
            if platform == "gpu":  # a name of several platforms
                raise RuntimeError("Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are "
                                   f"present. Platforms present are: {','.join(sorted(platforms()))}")
            raise RuntimeError(f"Unknown backend {platform}. Available backends are {sorted(platforms())}")
        _keep(backend)
        for module in hooks.COMMON:  # not left to a program's first call: a backend may prepare itself meanwhile
            importlib.import_module(module)
    return backend


def _of_plugin(platform: str) -> Backend | None:
    wanted = hooks.platforms_wanted()
    found = hooks.plugin_backend(platform) if not wanted or hooks.plugin_serves(platform, wanted) else None
    return found if found is None else _loaded.get(found.platform, found)


def _first() -> Backend:
    """The backend of the first platform that the settings name."""
    name = next(iter(hooks.platforms_wanted()), next(iter(modules)))
    if name in modules or name in _loaded:
        return get(name)
    found = _of_plugin(name)
    if found is None:
        raise RuntimeError(f"Unable to initialize backend '{name}': Backend '{name}' is not in the list of known "
                           f"backends: {sorted(platforms())}. (you may need to install a plugin for it, or set "
                           "JAX_PLATFORMS=cpu to skip this backend.)")
    return get(found.platform)


def backend_compile_and_load(backend: Backend, program: ClosedJaxpr, **options: Any) -> Executable:
    """Compiles a program for a backend. Tools that watch or restrict compilation replace this function."""
    if for_platform is not None:
        program = for_platform(program, name_of(backend))
    return backend.compile(program, **options)


# the program without what it does on other platforms, from when there are programs that do
for_platform: Callable[[ClosedJaxpr, str], ClosedJaxpr] | None = None


def name_of(backend: Backend) -> str:
    """A backend's platform. Whoever compiles for the host's processors, that is the project's own platform."""
    return next(iter(modules)) if backend.dlpack_type == HOST else backend.platform


def stablehlo_text(closed: Any, name: str, symbolic: Any = None, located: bool = False,
                   platforms: Sequence[str] = ("cpu",), told: Any = None, names: Sequence[str] = ()) -> str:
    """A program as the text of a StableHLO module, for clients of these platforms; `symbolic` says how sizes are found,
    `located` whether operations tell where they come from, `told` what it tells of arguments and of results,
    `names` the arguments' names: see `xla.stablehlo`."""
    libraries = ("lapack",) if tuple(platforms) == ("cpu",) else ()  # JAX's clients for CPUs have it
    if for_platform is not None:
        closed = for_platform(closed, platforms[0])
    return hooks.stablehlo_text(closed, name, symbolic=symbolic, located=located, libraries=libraries, told=told,
                                names=names)


def set_default(backend: Backend | None) -> None:
    """Runs programs on a backend from now on; None: on the first platform's. Compiled programs stay where they are."""
    global _default
    _default = backend


def params_key(params: dict[str, Any]) -> Any:
    """An equation's parameters as a dictionary key."""
    if not params:
        return ()
    key = tuple(sorted(params.items()))
    try:
        hash(key)
    except TypeError:
        return tuple((k, v if _is_hashable(v) else _freeze(v)) for k, v in sorted(params.items()))
    return key


def _is_hashable(v: Any) -> bool:
    try:
        hash(v)
    except TypeError:
        return False
    return True


def _freeze(v: Any) -> Any:
    if isinstance(v, (list, tuple)):
        return tuple(map(_freeze, v))
    if isinstance(v, dict):
        return tuple(sorted((k, _freeze(x)) for k, x in v.items()))
    return v if _is_hashable(v) else id(v)


def apply_primitive(primitive: Any, args: tuple, params: dict[str, Any]) -> Any:
    """Runs one primitive on concrete arguments."""
    if primitive.higher_order:
        return hooks.apply_stateful(primitive, args, params)
    if apart:
        return hooks.apply_where_arguments_are(primitive, args, params)
    return get().apply_primitive(primitive, args, params)
