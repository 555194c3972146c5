"""Programs that run in several processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .core.types.typing import PyTree


class State:
    """What this process knows of the others."""

    __slots__ = ("client", "coordinator_address", "num_processes", "preemption_sync_manager", "process_id", "service")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.process_id = 0
        self.num_processes: int | None = None
        self.coordinator_address: str | None = None
        self.client: Any = None
        self.service: Any = None
        self.preemption_sync_manager: Any = None


global_state = State()


def initialize(coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None,
               local_device_ids: int | Sequence[int] | None = None, cluster_detection_method: str | None = None,
               initialization_timeout: int = 300, heartbeat_timeout_seconds: int = 100,
               shutdown_timeout_seconds: int = 300, coordinator_bind_address: str | None = None,
               **kwargs: PyTree) -> None:
    """Joins this process with the others of a program.

    Args:
      coordinator_address: host and port of the first process.
      num_processes: how many processes there are. One is possible.
      process_id: the number of this process.

    Raises:
      RuntimeError: it was called before. ValueError: arguments that do not describe a program of one process.
    """
    if global_state.num_processes is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    if num_processes is None:
        raise ValueError("The number of processes must be given: it cannot be found out here (num_processes=1 for a "
                         "program that runs alone).")
    if num_processes != 1 or process_id not in (None, 0):
        raise ValueError(f"programs of several processes cannot be run (num_processes={num_processes}, "
                         f"process_id={process_id})")
    global_state.num_processes = 1
    global_state.process_id = 0
    global_state.coordinator_address = coordinator_address


def is_initialized() -> bool:
    """Whether `initialize` has been called."""
    return global_state.num_processes is not None


def shutdown() -> None:
    """Leaves the other processes."""
    global_state.clear()
