"""What the processes of a program agree on: a store of keys and values, barriers, and who is still there.

The first process runs the `Service`, a thread that answers on a TCP port. Every process, the first one among them, is a
`Client` with one connection to it. A connection that ends without a farewell is a process that died: all others are
told at once. Messages are JSON behind their length in four bytes; values are bytes, as Latin-1 text.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..core.tracing.errors import JaxRuntimeError

Message = list[Any]
RETRY = 0.05  # seconds between attempts to reach the service


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `host:port`. ValueError for other texts."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"coordinator_address should be of the form host:port, got {text!r}")
    return host.strip("[]"), int(port)


def packed(message: Message) -> bytes:
    """A message as it goes over a connection."""
    text = json.dumps(message).encode()
    return struct.pack("<I", len(text)) + text


class _Line:
    """A connection of the service to a process."""

    __slots__ = ("heard", "incoming", "process", "socket")

    def __init__(self, connection: socket.socket):
        self.socket = connection
        self.incoming = bytearray()
        self.process: int | None = None
        self.heard = time.monotonic()

    def send(self, message: Message) -> None:
        with suppress(OSError):  # its end is seen where it is read
            self.socket.sendall(packed(message))

    def messages(self) -> list[Message]:
        """What has come in whole. EOFError at the connection's end."""
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        self.incoming += data
        self.heard = time.monotonic()
        found = []
        while len(self.incoming) >= 4 and len(self.incoming) >= 4 + (
                size := struct.unpack_from("<I", self.incoming)[0]):
            found.append(json.loads(bytes(self.incoming[4:4 + size])))
            del self.incoming[:4 + size]
        return found


class Service:
    """The coordinator: answers requests `[number, what, *arguments]` with `[number, good, value]`.

    Args:
      address: host and port to listen on.
      count: the number of processes.
      silence: seconds after which a process of which nothing is heard counts as dead.

    Raises OSError where it cannot listen.
    """

    def __init__(self, address: tuple[str, int], count: int, silence: float):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listener = socket.create_server(address, family=family, backlog=128)
        self.port = self._listener.getsockname()[1]
        self._count = count
        self._silence = silence
        self._lines: dict[socket.socket, _Line] = {}
        self._joined: dict[int, _Line] = {}
        self._awaited: list[tuple[_Line, int]] = []  # who waits for all to have joined
        self._values: dict[str, str] = {}
        self._gets: dict[str, list[tuple[_Line, int]]] = {}
        self._barriers: dict[str, dict[int, tuple[_Line, int]]] = {}
        self._left: dict[int, str] = {}  # who has gone, in order, and why; those that died first
        self._steps: dict[int, int] | None = None  # while a step is sought at which all are to save their state
        self.empty = threading.Event()  # all others have left, or died
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="styrax-coordinator", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the service."""
        with suppress(OSError):
            self._wake.send(b"x")
        self._thread.join()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select(self._silence / 4):
                if key.fileobj is self._woken:
                    return self._end()
                if key.fileobj is self._listener:
                    connection, _address = self._listener.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._lines[connection] = _Line(connection)
                    self._selector.register(connection, selectors.EVENT_READ)
                else:
                    self._hear(self._lines[key.fileobj])  # type: ignore[index]
            limit = time.monotonic() - self._silence
            for line in list(self._joined.values()):
                if line.heard < limit and line.socket in self._lines:
                    self._drop(line, f"nothing was heard of it for {self._silence:g} seconds")

    def _end(self) -> None:
        for connection in (*self._lines, self._listener, self._wake, self._woken):
            connection.close()
        self._selector.close()

    def _hear(self, line: _Line) -> None:
        try:
            messages = line.messages()
        except EOFError:
            self._drop(line, "its connection to the coordinator broke")
            return
        for number, what, *arguments in messages:
            if what == "leave":
                self._left.setdefault(arguments[0], "it has ended")
                line.send([number, True, None])
            elif what != "alive":
                answer = getattr(self, f"_on_{what}")(line, number, *arguments)
                if answer is not None:
                    line.send([number, *answer])
        self._look_who_is_left()

    def _drop(self, line: _Line, why: str) -> None:
        self._selector.unregister(line.socket)
        del self._lines[line.socket]
        line.socket.close()
        process = line.process
        if process is None:
            return
        if process not in self._left:
            died = {p: w for p, w in self._left.items() if w != "it has ended"}
            self._left = {**died, process: why, **self._left}
            self._tell("failed", process, why)
        for name, waiting in list(self._barriers.items()):
            if process not in waiting:
                for other, number in waiting.values():
                    other.send([number, False, f"INTERNAL: Barrier {name!r} failed: process {process} has gone: {why}"])
                del self._barriers[name]
        self._look_who_is_left()

    def _look_who_is_left(self) -> None:
        if self._left.keys() >= set(range(1, self._count)):
            self.empty.set()

    # requests: an answer, or None where it comes later
    def _on_join(self, line: _Line, number: int, process: int, count: int) -> tuple[bool, Any] | None:
        if count != self._count:
            return False, f"INVALID_ARGUMENT: process {process} was started as one of {count}, not of {self._count}"
        if process in self._joined:
            return False, f"ALREADY_EXISTS: a process with the number {process} is there already"
        line.process = process
        self._joined[process] = line
        self._awaited.append((line, number))
        if len(self._joined) == self._count:
            for other, waiting in self._awaited:
                other.send([waiting, True, None])
        return None

    def _on_set(self, line: _Line, number: int, key: str, value: str, overwrite: bool) -> tuple[bool, Any]:
        if key in self._values and not overwrite:
            return False, f"ALREADY_EXISTS: key {key} already exists."
        self._values[key] = value
        for other, waiting in self._gets.pop(key, ()):
            other.send([waiting, True, value])
        return True, None

    def _on_get(self, line: _Line, number: int, key: str) -> tuple[bool, Any] | None:
        if key in self._values:
            return True, self._values[key]
        self._gets.setdefault(key, []).append((line, number))
        return None

    def _on_try(self, line: _Line, number: int, key: str) -> tuple[bool, Any]:
        if key in self._values:
            return True, self._values[key]
        return False, f"NOT_FOUND: Config key {key} not found."

    def _on_dir(self, line: _Line, number: int, folder: str) -> tuple[bool, Any]:
        folder = folder.rstrip("/") + "/"
        return True, [[k, v] for k, v in self._values.items() if k.startswith(folder)]

    def _on_delete(self, line: _Line, number: int, key: str) -> tuple[bool, Any]:
        for k in list(self._values):
            if k == key or k.startswith(key.rstrip("/") + "/"):
                del self._values[k]
        return True, None

    def _on_increment(self, line: _Line, number: int, key: str, by: int) -> tuple[bool, Any]:
        total = int(self._values.get(key, "0")) + by
        self._values[key] = str(total)
        return True, total

    def _on_barrier(self, line: _Line, number: int, name: str, members: list[int]) -> tuple[bool, Any] | None:
        for gone, why in self._left.items():
            if gone in members:
                return False, f"INTERNAL: Barrier {name!r} failed: process {gone} has gone: {why}"
        waiting = self._barriers.setdefault(name, {})
        if line.process is not None:
            waiting[line.process] = line, number
        if waiting.keys() >= set(members):
            del self._barriers[name]
            for other, their in waiting.values():
                other.send([their, True, None])
        return None

    def _on_preempted(self, line: _Line, number: int) -> tuple[bool, Any]:
        if self._steps is None:
            self._steps = {}
            self._tell("freeze")
        return True, None

    def _on_step(self, line: _Line, number: int, step: int) -> tuple[bool, Any]:
        if self._steps is not None and line.process is not None:
            self._steps[line.process] = step
            if self._steps.keys() >= set(range(self._count)) - self._left.keys():
                self._tell("save", max(self._steps.values()) + 1)
        return True, None

    def _tell(self, what: str, *arguments: Any) -> None:
        for line in self._joined.values():
            if line.socket in self._lines:
                line.send([0, what, *arguments])

    def _on_live(self, line: _Line, number: int, members: list[int]) -> tuple[bool, Any]:
        return True, sorted(set(members) - self._left.keys())


class Client:
    """A process's connection to the coordinator; the names of the methods are those of JAX's client.

    Args:
      address: host and port of the service.
      process, count: the number of this process, and how many there are.
      silence: seconds after which the service counts a process as dead of which it hears nothing.

    Raises JaxRuntimeError where not all processes have come within `timeout` seconds, or the service refuses this one.
    """

    def __init__(self, address: tuple[str, int], process: int, count: int, silence: float, timeout: float):
        self.process = process
        self.count = count
        self.failure: tuple[int, str] | None = None  # the first process that died, and why that is thought
        self.on_failure: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: dict[int, tuple[threading.Event, list[Any]]] = {}
        self._closed = False
        self._stepping = threading.Condition()
        self._step, self._frozen, self._save_at = -1, False, -1
        end = time.monotonic() + timeout
        self._socket = self._reach(address, end, timeout)
        self.host: str = self._socket.getsockname()[0]  # by which the others reach this process
        threading.Thread(target=self._listen, name="styrax-coordination", daemon=True).start()
        try:
            self._ask("join", process, count, timeout=end - time.monotonic(),
                      late=f"not all of the {count} processes have come within {timeout:g} seconds")
        except JaxRuntimeError:
            self._hang_up()
            raise
        self._stop = threading.Event()
        threading.Thread(target=self._sound, args=(silence / 4,), name="styrax-heartbeat", daemon=True).start()

    def _reach(self, address: tuple[str, int], end: float, timeout: float) -> socket.socket:
        while True:
            try:
                connection = socket.create_connection(address, max(end - time.monotonic(), RETRY))
            except OSError as error:
                if time.monotonic() + RETRY > end:
                    raise JaxRuntimeError(
                        f"DEADLINE_EXCEEDED: process {self.process} has not reached the coordinator at {address[0]}:"
                        f"{address[1]} within {timeout:g} seconds: {error}") from None
                time.sleep(RETRY)
            else:
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection

    def _sound(self, pause: float) -> None:
        while not self._stop.wait(pause):
            with suppress(OSError), self._lock:
                self._socket.sendall(packed([0, "alive"]))

    def _listen(self) -> None:
        stream = self._socket.makefile("rb")
        while True:
            try:
                head = stream.read(4)
                message = json.loads(stream.read(struct.unpack("<I", head)[0])) if len(head) == 4 else None
            except (OSError, ValueError):
                message = None
            if message is None:
                if not self._closed:
                    self._hear_failed(0, "its coordinator does not answer any more")
                return
            if message[0] == 0:
                getattr(self, f"_hear_{message[1]}")(*message[2:])
                continue
            with self._lock:
                waiting = self._waiting.pop(message[0], None)
            if waiting is not None:
                waiting[1].extend(message[1:])
                waiting[0].set()

    def _hear_freeze(self) -> None:
        with self._stepping:
            self._frozen = True
            with self._lock:
                self._number += 1
                self._socket.sendall(packed([self._number, "step", self._step]))

    def _hear_save(self, step: int) -> None:
        with self._stepping:
            self._frozen, self._save_at = False, step
            self._stepping.notify_all()

    def reached(self, step: int) -> bool:
        """Whether all processes are to save their state at this step, which comes after the last one of each."""
        with self._stepping:
            while self._frozen and self.failure is None:
                self._stepping.wait(1.0)
            self._step = max(step, self._step)
            return step == self._save_at

    def preempted(self) -> None:
        """Tells all that this process is to be stopped soon."""
        self._ask("preempted")

    def _hear_failed(self, process: int, why: str) -> None:
        """Has everything that waits fail, if another process has died."""
        if self.failure is None:
            self.failure = process, why
        for act in self.on_failure:
            act()
        if process == 0:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            for event, answer in waiting.values():
                answer.extend((False, f"UNAVAILABLE: process 0 has died: {why}"))
                event.set()

    def _ask(self, what: str, *arguments: Any, timeout: float | None = None, late: str = "") -> Any:
        event, answer = threading.Event(), list[Any]()
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = event, answer
            try:
                self._socket.sendall(packed([number, what, *arguments]))
            except OSError as error:
                del self._waiting[number]
                raise JaxRuntimeError(f"UNAVAILABLE: process 0, the coordinator, has gone: {error}") from None
        if self.failure is not None and self.failure[0] == 0:
            raise JaxRuntimeError(f"UNAVAILABLE: process 0 has died: {self.failure[1]}")
        if not event.wait(timeout):
            with self._lock:
                self._waiting.pop(number, None)
            raise JaxRuntimeError(f"DEADLINE_EXCEEDED: {late}")
        good, value = answer
        if not good:
            raise JaxRuntimeError(value)
        return value

    # -- as JAX's client has it ------------------------------------------------------------------------------
    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """Gives a key a value. JaxRuntimeError for one that has a value, unless it may be overwritten."""
        self.key_value_set_bytes(key, value.encode(), allow_overwrite)

    def key_value_set_bytes(self, key: str, value: bytes, allow_overwrite: bool = False) -> None:
        """The same for bytes."""
        self._ask("set", key, value.decode("latin-1"), allow_overwrite)

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        """The value of a key once it has one. JaxRuntimeError after the time."""
        return self.blocking_key_value_get_bytes(key, timeout_in_ms).decode()

    def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes:
        """The same as bytes."""
        late = f"GetKeyValue() timed out with key: {key} and duration: {timeout_in_ms}ms"
        return self._ask("get", key, timeout=timeout_in_ms / 1e3, late=late).encode("latin-1")

    def key_value_try_get(self, key: str) -> str:
        """The value of a key. JaxRuntimeError where it has none."""
        return self.key_value_try_get_bytes(key).decode()

    def key_value_try_get_bytes(self, key: str) -> bytes:
        """The same as bytes."""
        return self._ask("try", key).encode("latin-1")

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        """The keys below a folder `key`, with their values."""
        return [(k, v.decode()) for k, v in self.key_value_dir_get_bytes(key)]

    def key_value_dir_get_bytes(self, key: str) -> list[tuple[str, bytes]]:
        """The same with values as bytes."""
        return [(k, v.encode("latin-1")) for k, v in self._ask("dir", key)]

    def key_value_delete(self, key: str) -> None:
        """Forgets a key, and all below it."""
        self._ask("delete", key)

    def key_value_increment(self, key: str, increment: int) -> int:
        """Adds to a number, which begins with zero: the sum."""
        return self._ask("increment", key, increment)

    def wait_at_barrier(self, barrier_id: str, timeout_in_ms: int, process_ids: Sequence[int] | None = None) -> None:
        """Waits until all processes (or these) have come here. JaxRuntimeError after the time, or if one is dead."""
        members = list(range(self.count)) if process_ids is None else list(process_ids)
        self._ask("barrier", barrier_id, members, timeout=timeout_in_ms / 1e3,
                  late=f"Barrier timed out. Id: {barrier_id}, after {timeout_in_ms}ms.")

    def get_live_nodes(self, process_ids: Sequence[int]) -> dict[int, int]:
        """Those of some processes that are alive, each with the number of its life, which is its first."""
        return dict.fromkeys(self._ask("live", list(process_ids)), 0)

    def shutdown(self) -> None:
        """Says farewell."""
        if self._closed:
            return
        self._closed = True
        self._stop.set()
        with suppress(JaxRuntimeError):
            self._ask("leave", self.process, timeout=5.0)
        self._hang_up()

    def _hang_up(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


__all__ = ["Client", "Service", "address_of"]
