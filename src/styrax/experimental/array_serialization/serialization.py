"""Managers of checkpoints: arrays are written while the program goes on."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ...core.arrays import host_devices
from ...core.arrays.array import Array
from ...core.arrays.devices import Sharding
from ...core.types.typing import DTypeLike, Object, Shape
from .storage import (
    Future,
    Placed,
    async_deserialize,
    async_serialize,
    get_tensorstore_spec,
    run_deserialization,
    run_serialization,
)


class GlobalAsyncCheckpointManagerBase(ABC):
    """Writes and reads arrays while the program goes on."""

    @abstractmethod
    def check_for_errors(self) -> None:
        """Raises what went wrong in the background."""

    @abstractmethod
    def wait_until_finished(self) -> None:
        """Blocks until all is written."""

    @abstractmethod
    def serialize(self, arrays: Sequence[Array], tensorstore_specs: Sequence[dict[str, Object]], *,
                  on_commit_callback: Callable[[], None]) -> None:
        """Begins to write the arrays to the places that the specifications tell."""

    @abstractmethod
    def deserialize(self, shardings: Sequence[Sharding], tensorstore_specs: Sequence[dict[str, Object]],
                    global_shapes: Sequence[Shape] | None = None,
                    dtypes: Sequence[DTypeLike] | None = None) -> Sequence[Array]:
        """The arrays at these places."""


_commits = itertools.count()  # alike in all processes, which write the same checkpoints


class AsyncManager:
    """Waits in a thread until writes are done, and says so then.

    Args:
      timeout_secs: how long the processes wait for each other, where there are several.
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def _commit(self, futures: Sequence[Future], done: Callable[[], None] | None, number: int) -> None:
        try:
            for future in futures:
                future.result()
            if host_devices.cohort is not None:
                from ...processes.cohort import current

                wait = current().client.wait_at_barrier
                wait(f"styrax/checkpoint/{number}", self._timeout * 1000)
            if done is not None and (host_devices.cohort is None or host_devices.cohort.number == 0):
                done()
        except BaseException as error:
            self._error = error

    def _start(self, futures: Sequence[Future], done: Callable[[], None] | None) -> None:
        self._thread = threading.Thread(target=self._commit, args=(futures, done, next(_commits)))
        self._thread.start()

    def check_for_errors(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays by TensorStore in the background, and reads them.

    One write follows another: `serialize` waits for what was begun before.
    """

    def serialize(self, arrays: Sequence[Array], tensorstore_specs: Sequence[dict[str, Object]], *,
                  on_commit_callback: Callable[[], None] | None = None) -> None:
        """Begins to write; the arrays may be donated or deleted when it returns.

        Args:
          arrays: what is written.
          tensorstore_specs: where each goes (`get_tensorstore_spec`).
          on_commit_callback: called in the thread, of the first process, when all of all processes is written.
        """
        self.wait_until_finished()
        futures: list[list[Future]] = [[] for _ in arrays]
        run_serialization(arrays, tensorstore_specs, futures)
        self._start([future for each in futures for future in each], on_commit_callback)

    def serialize_with_paths(self, arrays: Sequence[Array], paths: Sequence[str], *,
                             on_commit_callback: Callable[[], None] | None = None) -> None:
        """`serialize` to paths."""
        self.serialize(arrays, [get_tensorstore_spec(path) for path in paths], on_commit_callback=on_commit_callback)

    def deserialize(self, shardings: Sequence[Placed], tensorstore_specs: Sequence[dict[str, Object]],
                    global_shapes: Sequence[Shape] | None = None, dtypes: Sequence[DTypeLike] | None = None,
                    concurrent_gb: int = 32) -> list[Array]:
        """Reads arrays, with `run_deserialization`, when what was begun before is written."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(self, shardings: Sequence[Placed], paths: Sequence[str],
                               global_shapes: Sequence[Shape] | None = None,
                               dtypes: Sequence[DTypeLike] | None = None, concurrent_gb: int = 32) -> list[Array]:
        """`deserialize` from paths."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)


__all__ = [
    "AsyncManager", "GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase", "async_deserialize",
    "async_serialize", "get_tensorstore_spec", "run_deserialization", "run_serialization",
]
