"""The registry of backends: who runs eager primitives and compiles jaxprs.

Nothing below this module knows a backend; each registers itself under its platform name, and is
imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from .. import hooks


class Backend(Protocol):
    """What a platform offers."""

    platform: str

    def devices(self) -> list[Any]: ...

    def apply_primitive(self, primitive: Any, args: tuple, params: dict[str, Any]) -> Any: ...

    def compile(self, jaxpr: Any, **options: Any) -> Callable[..., list[Any]]: ...

    def put(self, value: Any, aval: Any, device: Any) -> Any: ...

    def operand(self, value: Any) -> Any: ...


# platform -> module that defines `backend`
modules: dict[str, str] = {"cpu": "styrax.cpu.client"}
_loaded: dict[str, Backend] = {}
_default: Backend | None = None


def get(platform: str | None = None) -> Backend:
    """The backend of a platform, or the default one.

    Raises RuntimeError for a platform that is unknown.
    """
    global _default
    if platform is None:
        if _default is None:
            _default = get("cpu")
        return _default
    backend = _loaded.get(platform)
    if backend is None:
        if platform not in modules:
            raise RuntimeError(
                f"Unknown backend {platform}. Backends known here: {', '.join(sorted(modules))}"
            )
        backend = _loaded[platform] = importlib.import_module(modules[platform]).backend
    return backend


def backend_compile_and_load(backend: Backend, program: Any, **options: Any) -> Callable[..., list[Any]]:
    """Compiles a program for a backend. Tools that watch or restrict compilation replace this function."""
    return backend.compile(program, **options)


def stablehlo_text(closed: Any, name: str) -> str:
    """A program as the text of a StableHLO module."""
    return hooks.stablehlo_text(closed, name)


def set_default(backend: Backend | None) -> None:
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
    return get().apply_primitive(primitive, args, params)
