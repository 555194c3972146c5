"""How many devices the host's processors are seen as, and what is asked of other processes of the program."""

from __future__ import annotations

import os
import re
from typing import Any, Protocol, TypeVar

import numpy as np

from ..settings import config
from .devices import Device

D = TypeVar("D", bound=Device)
EACH = 2048  # numbers of devices that a process has to give
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


class Store(Protocol):
    """Keys and values that all processes of a program share. What fails raises JaxRuntimeError, its code in front."""

    def key_value_set_bytes(self, key: str, value: bytes) -> None:
        """Gives a key a value. ALREADY_EXISTS for one that has a value."""

    def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes:
        """The value of a key once it has one. DEADLINE_EXCEEDED after the time."""

    def key_value_try_get_bytes(self, key: str) -> bytes:
        """The value of a key. NOT_FOUND where it has none."""


class Cohort(Protocol):
    """The processes of a program."""

    number: int
    count: int

    @property
    def client(self) -> Store:
        """What all of them share."""

    def told(self, what: str, value: Any) -> list[Any]:
        """What each process says of something."""

    def check_alike(self, value: np.ndarray, kind: type) -> None:
        """Raises AssertionError in all processes where they do not have the same elements, of something of a type."""


cohort: Cohort | None = None  # where there are several processes
UNREACHABLE = (
    "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not possible. You can "
    "use `jax.experimental.multihost_utils.process_allgather` to print the global array or use `.addressable_shards` "
    "method of jax.Array to inspect the addressable (process local) shards.")


def devices(platform: str, client: Any) -> tuple[list[Device], list[Device]]:
    """The devices of this process, and those of all, whose other ones no client here reaches."""
    count = device_count(platform)
    if cohort is None:
        own = [Device(platform, i, platform, client) for i in range(count)]
        return own, own
    number = cohort.number
    found = [[Device(platform, process * EACH + i, platform, client if process == number else None, process,
                     i if process == number else None)
              for i in range(n)] for process, n in enumerate(cohort.told(f"{platform} devices", count))]
    return found[cohort.number], [d for each in found for d in each]


def addressable(found: tuple[D, ...]) -> tuple[D, ...]:
    """Those of some devices that are this process's."""
    return found if cohort is None else tuple([d for d in found if d.client is not None])


def fix() -> None:
    """Refuses other numbers from now on."""
    config.states["jax_num_cpu_devices"].fix(
        "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any JAX operation is "
        "executed. You should initialize this config immediately after `import jax`.")
