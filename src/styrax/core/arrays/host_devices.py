"""How many devices the host's processors are seen as."""

from __future__ import annotations

import os
import re

from ..settings import config

COUNT = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


def device_count(platform: str) -> int:
    """The number of devices of a platform of the host's processors: as the settings say, otherwise one. RuntimeError
    for none."""
    wanted = config.config.jax_num_cpu_devices
    if wanted < 0:
        found = COUNT.findall(os.environ.get("XLA_FLAGS", ""))
        wanted = int(found[-1]) if found else 1
    if not wanted:
        raise RuntimeError(f"Unable to initialize backend '{platform}': jax_num_cpu_devices or "
                           "--xla_force_host_platform_device_count asks for 0 devices")
    return wanted


def fix() -> None:
    """Refuses other numbers from now on."""
    config.states["jax_num_cpu_devices"].fix(
        "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any JAX operation is "
        "executed. You should initialize this config immediately after `import jax`.")
