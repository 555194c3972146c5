"""What there is of plugins on this machine, and what is missing, for people who look for the reason of an error."""

from __future__ import annotations

from collections.abc import Iterator

from .discovery import WHEELS, Found, plugins
from .plugin import Plugin
from .plugin_client import PluginBackend

# Platform -> what to install for it
_PACKAGES = {"xla_cpu": "lammps-jax-pjrt-cpu (with pip's --no-deps)", "cuda": "jax-cuda13-pjrt and jax-cuda13-plugin",
             "rocm": "jax-rocm7-pjrt and jax-rocm7-plugin", "tpu": "libtpu"}
_DRIVERS = {"cuda": "nvidia-smi", "rocm": "rocm-smi"}  # what shows whether a platform's devices are there


def lines() -> Iterator[str]:
    """A line for each plugin that was found, in the order of preference, and for each platform without one.

    Plugins are loaded and their devices started, which may take seconds.
    """
    found = list(plugins())
    preferred: set[str] = set()
    for plugin in found:
        state = _state(plugin) if plugin.platform not in preferred else "not used: another one comes first"
        preferred.add(plugin.platform)
        yield f"{plugin.platform}: {plugin.path}, of {plugin.source}: {state}"
    for platform in dict.fromkeys(platform for _, platform in WHEELS.values()):
        if platform in _PACKAGES and platform not in preferred:
            yield f"{platform}: no plugin; install {_PACKAGES[platform]}"


def _state(found: Found) -> str:
    try:
        plugin = Plugin(found.path)
    except RuntimeError as error:
        return f"does not load: {error}"
    stablehlo = plugin.attributes.get("stablehlo_current_version", ())
    told = f"PJRT {'.'.join(map(str, plugin.version))}"
    if isinstance(stablehlo, list):
        told += f", StableHLO {'.'.join(map(str, stablehlo))}"
    try:
        devices = PluginBackend(found.platform, plugin).devices()
    except RuntimeError as error:
        driver = _DRIVERS.get(found.platform)
        return f"{told}, no devices: {error}" + (f"; see whether `{driver}` shows them" if driver else "")
    kinds = sorted({device.device_kind for device in devices})
    return f"{told}, {len(devices)} device{'s' * (len(devices) != 1)} ({', '.join(kinds)})"
