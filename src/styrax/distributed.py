"""Programs that run in several processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .core.arrays import backends, host_devices
from .core.settings import config
from .core.types.typing import PyTree

if TYPE_CHECKING:
    from .processes.cohort import Cohort


class State:
    """What this process knows of the others."""

    __slots__ = ("client", "cohort", "coordinator_address", "num_processes", "partition_index",
                 "preemption_sync_manager", "process_id", "service")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.process_id = 0
        self.num_processes: int | None = None
        self.coordinator_address: str | None = None
        self.client: Any = None
        self.service: Any = None
        self.cohort: Cohort | None = None
        self.partition_index: int | None = None
        self.preemption_sync_manager: Any = None


global_state = State()


def initialize(coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None,
               local_device_ids: int | Sequence[int] | None = None, cluster_detection_method: str | None = None,
               initialization_timeout: int = 300, heartbeat_timeout_seconds: int = 100,
               shutdown_timeout_seconds: int = 300, coordinator_bind_address: str | None = None,
               **kwargs: PyTree) -> None:
    """Joins this process with the others of a program.

    What is not given is read from the environment: `JAX_COORDINATOR_ADDRESS`, `JAX_COORDINATOR_BIND_ADDRESS`,
    `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID` and `JAX_LOCAL_DEVICE_IDS`, else what Slurm, Open MPI or MPICH tell the
    processes that they start.

    Args:
      coordinator_address: host and port of the first process, which coordinates.
      num_processes: how many processes there are.
      process_id: the number of this process.
      local_device_ids: which GPUs of its host this process uses: all, or one where a launcher tells which process of
        the host it is. Without effect on CPUs.
      cluster_detection_method: the only way to look for a launcher: "slurm", "ompi", "pmi" (MPICH), "mpi4py";
        "deactivate" for none.
      initialization_timeout: seconds within which all processes must have come.
      heartbeat_timeout_seconds: seconds after which a process of which nothing is heard counts as dead.
      shutdown_timeout_seconds: seconds that the first process waits at its end for the others.
      coordinator_bind_address: host and port on which the first process listens.

    Raises:
      RuntimeError: it was called before, or devices have been used already.
      ValueError: something is neither given nor found, or the numbers do not fit.
      JaxRuntimeError: the processes have not found each other in time.
    """
    if global_state.num_processes is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    if backends.in_use():
        raise RuntimeError("jax.distributed.initialize() must be called before any JAX calls that might initialise the "
                           "XLA backend. This includes any computation, but also calls to jax.devices, jax.device_put, "
                           "and others.")
    env = os.environ
    address = coordinator_address or env.get("JAX_COORDINATOR_ADDRESS")
    count = _number(num_processes, "JAX_NUM_PROCESSES")
    number = _number(process_id, "JAX_PROCESS_ID")
    local = _numbers(local_device_ids, "JAX_LOCAL_DEVICE_IDS")
    if address is None or count is None or number is None or local is None:
        from .processes.clusters import detected

        cluster = None if count == 1 else detected(cluster_detection_method)
        if cluster is not None:
            address = cluster.address() if address is None else address
            count = cluster.processes if count is None else count
            number = cluster.number if number is None else number
            local = [cluster.local] if local is None and cluster.local is not None else local
    if local:
        for platform in ("cuda", "rocm"):
            config.config.update(f"jax_{platform}_visible_devices", ",".join(map(str, local)))
    if count == 1 and address is None and number in (None, 0):
        global_state.num_processes = 1
        return
    if address is None:
        raise ValueError("coordinator_address should be defined.")
    if count is None:
        raise ValueError("Number of processes must be defined.")
    if number is None:
        raise ValueError("The process id of the current process must be defined.")
    if not 0 <= number < count:
        raise ValueError("process_id and num_processes must be nonnegative, with process_id < num_processes. Got "
                         f"process_id={number}, num_processes={count}.")
    from .processes.cohort import Cohort

    cohort = Cohort(address, count, number, coordinator_bind_address or env.get("JAX_COORDINATOR_BIND_ADDRESS"),
                    initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds)
    global_state.coordinator_address, global_state.num_processes, global_state.process_id = address, count, number
    global_state.cohort, global_state.client, global_state.service = cohort, cohort.client, cohort.service
    global_state.partition_index = kwargs.get("partition_index", kwargs.get("slice_index"))
    host_devices.cohort = cohort if count > 1 else None


def _number(given: int | None, variable: str) -> int | None:
    if given is not None or not os.environ.get(variable):
        return given
    return int(os.environ[variable])


def _numbers(given: int | Sequence[int] | None, variable: str) -> Sequence[int] | None:
    if given is None and os.environ.get(variable):
        return [int(text) for text in os.environ[variable].split(",")]
    return [given] if isinstance(given, int) else given


def is_initialized() -> bool:
    """Whether `initialize` has been called."""
    return global_state.num_processes is not None


def shutdown() -> None:
    """Leaves the other processes."""
    if global_state.cohort is not None:
        global_state.cohort.leave()
    global_state.clear()
