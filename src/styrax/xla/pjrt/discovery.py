"""Which plugins there are on this machine, by platform."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ...core.arrays.backends import Backend
from .plugin import Plugin
from .plugin_client import PluginBackend

VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"  # "name:path,name:path", as JAX reads it


class Found(NamedTuple):
    """A plugin's file, and who told of it."""

    platform: str
    path: Path
    source: str


# package -> its library, the platform: wheels that carry a plugin. Of several for a platform the first one is taken.
WHEELS = {
    "lammps_jax_pjrt_cpu": ("pjrt_c_api_cpu_plugin.so", "xla_cpu"),
    "fastatomstruct_xla_cpu": ("libpjrt_cpu.so", "xla_cpu"),
    "jax_plugins.xla_cuda13": ("xla_cuda_plugin.so", "cuda"),
    "jax_plugins.xla_cuda12": ("xla_cuda_plugin.so", "cuda"),
    "jax_plugins.xla_rocm7": ("xla_rocm_plugin.so", "rocm"),
    "jax_plugins.xla_rocm60": ("xla_rocm_plugin.so", "rocm"),
    "jax_plugins.xla_oneapi": ("xla_oneapi_plugin.so", "oneapi"),
    "jax_plugins.intel_extension_for_openxla": ("pjrt_plugin_xpu.so", "xpu"),
    "libtpu": ("libtpu.so", "tpu"),
}
INSTANCES = {"gpu": ("cuda", "rocm")}  # names that stand for several platforms
_LIBRARIES = ("*pjrt*.so", "xla_*_plugin.so")  # what plugins of packages that are not listed call their files


def plugins() -> Iterator[Found]:
    """All plugins, the preferred one of a platform before others. Raises RuntimeError for a variable that says nothing.

    Nothing is loaded: packages are found by their files.
    """
    for part in filter(None, os.environ.get(VARIABLE, "").split(",")):
        name, colon, path = part.partition(":")
        if not colon or not path:
            raise RuntimeError(f"invalid value of the environment variable {VARIABLE}: {part!r} is not name:path")
        yield Found(name.strip().lower(), Path(path.strip()), f"the variable {VARIABLE}")
    if os.environ.get("TPU_LIBRARY_PATH"):
        yield Found("tpu", Path(os.environ["TPU_LIBRARY_PATH"]), "the variable TPU_LIBRARY_PATH")
    for package, (file, platform) in WHEELS.items():
        for folder in _folders(package):
            if (folder / file).exists():
                yield Found(platform, folder / file, f"the package {package}")
    for package in _announced():
        if package not in WHEELS:
            for folder in _folders(package):
                for pattern in _LIBRARIES:
                    for library in sorted(folder.glob(pattern)):
                        yield Found(package.rpartition(".")[2].removeprefix("xla_"), library, f"the package {package}")


def _announced() -> list[str]:
    """Packages that say that they are plugins: those in `jax_plugins`, and entry points of that group."""
    names = []
    for folder in _folders("jax_plugins"):
        names += [f"jax_plugins.{m.name}" for m in pkgutil.iter_modules([str(folder)])]
    names += [point.module for point in importlib.metadata.entry_points(group="jax_plugins")]
    return list(dict.fromkeys(names))


def _folders(package: str) -> list[Path]:
    """Where a package's files are, without importing it (but for namespaces around it, which are empty)."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(p) for p in spec.submodule_search_locations or ()] if spec is not None else []


def find(platform: str) -> Found | None:
    """The plugin that serves a platform."""
    names = INSTANCES.get(platform, (platform,))
    return next((p for p in plugins() if p.platform in names), None)


@cache
def backend(platform: str) -> Backend | None:
    """The backend of a platform that a plugin serves, None where there is no such plugin.

    Raises RuntimeError where there is one that does not work.
    """
    found = find(platform)
    if found is None:
        return None
    if found.platform != platform:
        return backend(found.platform)
    try:
        return PluginBackend(platform, Plugin(found.path))
    except RuntimeError as error:
        raise RuntimeError(f"Unable to initialize backend '{platform}': {error} (from {found.source}; set "
                           "JAX_PLATFORMS=cpu to do without)") from error


def serves(platform: str, wanted: list[str]) -> bool:
    """Whether a platform is one of those, of which some stand for several."""
    return any(platform == name or platform in INSTANCES.get(name, ()) or name in INSTANCES.get(platform, ())
               for name in wanted)
