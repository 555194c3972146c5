"""The processes of this program as the rest of the project asks for them."""

from __future__ import annotations

import atexit
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.arrays import host_devices
from .coordinator import Client, Service, address_of
from .peers import Peers

SOON = 5.0  # seconds


class Cohort:
    """All processes of a program.

    Args:
      coordinator: host and port of the coordinator.
      count, number: how many processes there are, and the number of this one.
      bind: host and port on which the coordinator listens, by default its port on all interfaces, or on the loopback
        one where it is known by that.
      timeout: seconds within which all must have come.
      silence: seconds after which a process of which nothing is heard counts as dead.
      farewell: seconds that the first process waits for the others at its end.
    """

    def __init__(self, coordinator: str, count: int, number: int, bind: str | None, timeout: float, silence: float,
                 farewell: float):
        self.number, self.count = number, count
        self._timeout, self._farewell = timeout, farewell
        self._peers: Peers | None = None
        self._rounds = 0
        self.service: Service | None = None
        host, port = address_of(coordinator)
        if number == 0:
            default = host if host in ("localhost", "127.0.0.1", "::1") else ""
            self.service = Service(address_of(bind) if bind else (default, port), count, silence)
        try:
            self.client = Client((host, port), number, count, silence, timeout)
        except BaseException:
            if self.service is not None:
                self.service.close()
            raise
        atexit.register(self.leave)

    @property
    def peers(self) -> Peers:
        """The connections to the others, which are made when they are first needed, by all at the same time."""
        if self._peers is None:
            self._peers = Peers(self.client, self._timeout)
        return self._peers

    def told(self, what: str, value: Any) -> list[Any]:
        """What each process says of something, as JSON has it: by way of the coordinator, all at the same time."""
        self._rounds += 1
        folder = f"styrax/told/{self._rounds}/{what}"
        self.client.key_value_set(f"{folder}/{self.number}", json.dumps(value))
        milliseconds = int(self._timeout * 1e3)
        return [json.loads(self.client.blocking_key_value_get(f"{folder}/{i}", milliseconds))
                for i in range(self.count)]

    def check_alike(self, value: np.ndarray, kind: type) -> None:
        """Raises AssertionError in all processes where they do not have the same elements, of something of a type."""
        found = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).digest()
        if len(set(self.peers.gather_bytes("a value that is put on all processes", found))) > 1:
            raise AssertionError(f"{kind} passed to device_put is not the same on each process. Make sure you are "
                                 f"passing the same value of {kind} on each process.")

    def leave(self) -> None:
        """Leaves the others. The first process, which coordinates, waits until they have left, too."""
        atexit.unregister(self.leave)
        if self._peers is not None:  # first: who still waits for this process is told so
            self.client.on_failure.clear()
            self._peers.close()
        self.client.shutdown()
        if self.service is not None:
            if self.count > 1:  # where one has died, the others end soon
                self.service.empty.wait(self._farewell if self.client.failure is None else min(self._farewell, SOON))
            self.service.close()
            self.service = None


def current() -> Cohort:
    """The processes of this program. RuntimeError where there is this one alone."""
    found = host_devices.cohort
    if not isinstance(found, Cohort):
        raise RuntimeError("this program runs in one process: jax.distributed.initialize() was not called")
    return found


def everyone() -> Sequence[int]:
    """The numbers of all processes."""
    return range(host_devices.cohort.count) if host_devices.cohort is not None else (0,)


__all__ = ["Cohort", "current", "everyone"]
