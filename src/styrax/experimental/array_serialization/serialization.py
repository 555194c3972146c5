"""What a manager of checkpoints does. Libraries bring managers of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ...core.arrays.array import Array
from ...core.arrays.devices import Sharding
from ...core.types.typing import DTypeLike, Object, Shape


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


__all__ = ["GlobalAsyncCheckpointManagerBase"]
