"""Arrays sent between processes: for platforms whose runtime has a server for it, which the CPU's has not."""

from __future__ import annotations

from ..core.arrays.array import Array
from ..core.types.avals import ShapedArray
from ..core.types.typing import Object, PyTree


class TransferConnection:
    """A connection to another process's server."""

    def pull(self, uuid: int, x: Object) -> Object:
        """The arrays that the other process lends under a number."""
        raise NotImplementedError("the platform has no transfer server")


class TransferServer:
    """A process's server of arrays."""

    def address(self) -> str:
        """Where others can reach it."""
        raise NotImplementedError("the platform has no transfer server")

    def await_pull(self, uuid: int, arrays: Object) -> None:
        """Lends arrays under a number."""
        raise NotImplementedError("the platform has no transfer server")

    def connect(self, address: str) -> TransferConnection:
        """A connection to the server at an address."""
        raise NotImplementedError("the platform has no transfer server")


def start_transfer_server(*args: PyTree, **kwargs: PyTree) -> TransferServer:
    """Starts this process's server.

    Args:
      *args: the backend's client, then addresses.

    Raises:
      TypeError: without a client.
      NotImplementedError: the platform has none.
    """
    if not args and "client" not in kwargs:
        raise TypeError("start_transfer_server() needs the client of a backend: `jax.devices()[0].client`")
    raise NotImplementedError("the platform has no transfer server")


def make_error_array(aval: ShapedArray, message: str) -> Array:
    """An array whose computation has failed.

    Raises:
      NotImplementedError: the platform has no such arrays.
    """
    raise NotImplementedError("the platform has no arrays that hold an error")


__all__ = ["TransferConnection", "TransferServer", "make_error_array", "start_transfer_server"]
