"""Messages between the processes of a program: a connection for each pair of them.

Why not MPI: the collectives of several programs' processes share processors with the programs. Four processes on two
cores took 2.5 ms for an `MPI_Allreduce` of 32 bytes (MPICH 5) and used processors while they waited, since MPI's calls
look again and again; here they sleep in `poll`, and the same takes 0.2 ms. A connection also ends when its process
does, so whoever waits for a dead process knows it at once; with MPI all are killed, or wait for ever. Processes that
`mpirun` has started find each other by what it tells them (`clusters`) and then talk here.

Everything is one operation: `exchange` sends some blocks and receives others, in any pattern that both sides know.
Each block goes with a number for what is being done: processes that do different things are told so.
"""

from __future__ import annotations

import hmac
import json
import secrets
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from zlib import crc32

import numpy as np

from ..core.tracing.errors import JaxRuntimeError
from .coordinator import Client

HEAD = struct.Struct("<QQ")  # what is being done, and the length of the block
PATIENCE = 2.0  # seconds to wait for the coordinator's word on who died first
LARGE = 1 << 15  # bytes from which each process reduces a part

COMBINE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
           "or": np.bitwise_or, "xor": np.bitwise_xor}


class _Peer:
    """A connection to another process, and what is still to go over it."""

    __slots__ = ("head", "outgoing", "pieces", "socket")

    def __init__(self, connection: socket.socket):
        self.socket = connection
        self.outgoing: deque[memoryview] = deque()
        self.pieces: deque[memoryview] = deque()  # where to put what comes in: a head and a block
        self.head = memoryview(bytearray(HEAD.size))

    def events(self) -> int:
        return (select.POLLOUT if self.outgoing else 0) | (select.POLLIN if self.pieces else 0)

    def push(self) -> None:
        """Sends what goes without waiting."""
        with suppress(BlockingIOError):
            while self.outgoing:
                sent = self.socket.sendmsg(list(self.outgoing)[:16])
                while self.outgoing and sent >= len(self.outgoing[0]):
                    sent -= len(self.outgoing.popleft())
                if sent:
                    self.outgoing[0] = self.outgoing[0][sent:]

    def pull(self, number: int) -> int | None:
        """Receives what is there. EOFError at the end; the number of another operation where one has come."""
        with suppress(BlockingIOError):
            while self.pieces:
                count = self.socket.recv_into(self.pieces[0])
                if not count:
                    raise EOFError
                self.pieces[0] = self.pieces[0][count:]
                if not len(self.pieces[0]):
                    self.pieces.popleft()
                    if len(self.pieces) == 1:
                        found, size = HEAD.unpack(self.head)
                        if found != number or size != len(self.pieces[0]):
                            return found
                        if not size:
                            self.pieces.popleft()
        return None


class Peers:
    """The other processes.

    Args:
      client: the connection to the coordinator.
      timeout: seconds within which all must have come.

    Raises JaxRuntimeError where they have not.
    """

    def __init__(self, client: Client, timeout: float):
        self.client = client
        self.number, self.count = client.process, client.count
        self._lock = threading.Lock()
        self._peers: dict[int, _Peer] = {}
        self._names: dict[int, str] = {}  # of operations, for messages
        self._closed = False
        self._connect(timeout)
        client.on_failure.append(self._give_up)
        if client.failure is not None:
            self._give_up()

    def _connect(self, timeout: float) -> None:
        """Each process connects to those before it, and takes in those behind."""
        milliseconds = int(timeout * 1e3)
        family = socket.AF_INET6 if ":" in self.client.host else socket.AF_INET
        with socket.create_server((self.client.host, 0), family=family, backlog=self.count) as listener:
            secret = secrets.token_bytes(16)
            address = [self.client.host, listener.getsockname()[1], secret.hex()]
            self.client.key_value_set(f"styrax/peers/{self.number}", json.dumps(address), allow_overwrite=True)
            for other in range(self.number):
                found = self.client.blocking_key_value_get(f"styrax/peers/{other}", milliseconds)
                host, port, token = json.loads(found)
                connection = socket.create_connection((host, port), timeout)
                connection.sendall(bytes.fromhex(token) + struct.pack("<I", self.number))
                self._keep(other, connection)
            listener.settimeout(timeout)
            while len(self._peers) < self.count - 1:
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    missing = sorted(set(range(self.count)) - {self.number} - set(self._peers))
                    raise JaxRuntimeError(f"DEADLINE_EXCEEDED: processes {missing} have not connected to process "
                                          f"{self.number} within {timeout:g} seconds") from None
                connection.settimeout(timeout)
                greeting = connection.recv(20, socket.MSG_WAITALL)
                if len(greeting) == 20 and hmac.compare_digest(greeting[:16], secret):
                    self._keep(struct.unpack("<I", greeting[16:])[0], connection)
                else:
                    connection.close()

    def _keep(self, number: int, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[number] = _Peer(connection)

    def close(self) -> None:
        """Ends all connections."""
        self._closed = True
        for peer in self._peers.values():
            peer.socket.close()
        self._peers.clear()

    def _give_up(self) -> None:
        """Wakes whoever waits, since a process has died."""
        for peer in list(self._peers.values()):
            with suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)

    def _lost(self, number: int) -> JaxRuntimeError:
        end = time.monotonic() + PATIENCE
        while self.client.failure is None and time.monotonic() < end:
            time.sleep(0.01)
        process, why = self.client.failure or (number, "its connection broke, or it has ended")
        return JaxRuntimeError(f"UNAVAILABLE: process {process} has died while process {self.number} waited for "
                               f"others: {why}")

    # -- communication -----------------------------------------------------------------------------------------
    def exchange(self, what: str, sends: Mapping[int, np.ndarray], receives: Mapping[int, np.ndarray]) -> None:
        """Sends blocks to processes and receives others.

        Args:
          what: what is being done, which both sides must call the same.
          sends: process -> contiguous array.
          receives: process -> contiguous array that is filled.

        Raises JaxRuntimeError: a process has died, or does something else.
        """
        number = crc32(what.encode())
        self._names[number] = what
        with self._lock:
            if self._closed:
                raise JaxRuntimeError("FAILED_PRECONDITION: jax.distributed.shutdown() has ended the connections to "
                                      "the other processes")
            busy: dict[int, int] = {}  # file -> process
            try:
                for other, block in sends.items():
                    data = _bytes(block)
                    self._peers[other].outgoing.append(memoryview(HEAD.pack(number, len(data))))
                    if len(data):
                        self._peers[other].outgoing.append(data)
                for other, block in receives.items():
                    self._peers[other].pieces += [self._peers[other].head, _bytes(block)]
                poll = select.poll()
                for other in {*sends, *receives}:
                    if self._move(other, number, what):
                        busy[self._peers[other].socket.fileno()] = other
                        poll.register(self._peers[other].socket, self._peers[other].events())
                while busy:
                    for file, _ in poll.poll():
                        other = busy[file]
                        if self._move(other, number, what):
                            poll.modify(file, self._peers[other].events())
                        else:
                            poll.unregister(file)
                            del busy[file]
            except BaseException:
                for peer in self._peers.values():  # nothing can be told from what comes next
                    peer.outgoing.clear()
                    peer.pieces.clear()
                raise

    def _move(self, other: int, number: int, what: str) -> bool:
        """Goes on with one process; whether there is more to do."""
        peer = self._peers[other]
        try:
            peer.push()
            found = peer.pull(number)
        except (EOFError, OSError):
            raise self._lost(other) from None
        if found is not None:
            raise JaxRuntimeError(
                f"FAILED_PRECONDITION: the processes do different things: process {self.number} is at {what}, process "
                f"{other} at {self._names.get(found, 'something that this process has not done')}. All processes must "
                "run the same programs in the same order.")
        return bool(peer.outgoing or peer.pieces)

    def reduce(self, what: str, block: np.ndarray, members: Sequence[int], how: str) -> np.ndarray:
        """The reduction of the blocks of some processes, this one among them: for all the same bits, since they are
        combined in the order of the processes."""
        combine = COMBINE[how]
        if block.nbytes < LARGE or len(members) == 2:
            return self._combined(self.gather(what, block, members), combine)
        flat = np.ascontiguousarray(block).reshape(-1)
        parts = np.array_split(flat, len(members))
        place = list(members).index(self.number)
        mine = {m: np.empty_like(parts[place]) for m in members if m != self.number}
        theirs = {m: p for m, p in zip(members, parts, strict=True) if m != self.number}
        self.exchange(f"{what}, in parts", theirs, mine)
        mine[self.number] = parts[place]
        own = self._combined([mine[m] for m in members], combine)
        out = np.empty_like(flat)
        targets = dict(zip(members, np.array_split(out, len(members)), strict=True))
        targets.pop(self.number)[...] = own
        self.exchange(f"{what}, whole", dict.fromkeys(targets, own), targets)
        return out.reshape(block.shape)

    @staticmethod
    def _combined(blocks: Sequence[np.ndarray], combine: np.ufunc) -> np.ndarray:
        dtype = blocks[0].dtype
        small = dtype.itemsize < 4 and dtype.kind not in "biu"  # floats whose sums are made in larger ones
        out = blocks[0].astype(np.float32 if small else dtype)
        for other in blocks[1:]:
            combine(out, other, out=out)
        return out.astype(dtype, copy=False)

    def gather(self, what: str, block: np.ndarray, members: Sequence[int]) -> list[np.ndarray]:
        """The blocks, alike in shape and dtype, of some processes, this one among them, in their order."""
        found = {m: np.empty_like(block, order="C") for m in members if m != self.number}
        self.exchange(what, dict.fromkeys(found, block), found)
        return [block if m == self.number else found[m] for m in members]

    def gather_bytes(self, what: str, data: bytes) -> list[bytes]:
        """Bytes of any length of all processes."""
        members = range(self.count)
        sizes = self.gather(f"{what}, sizes", np.array(len(data)), members)
        blocks = {m: np.empty(int(n), np.uint8) for m, n in zip(members, sizes, strict=True) if m != self.number}
        self.exchange(what, dict.fromkeys(blocks, np.frombuffer(data, np.uint8)), blocks)
        return [data if m == self.number else blocks[m].tobytes() for m in members]


def _bytes(block: np.ndarray) -> memoryview:
    flat = np.ascontiguousarray(block).reshape(-1)
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


__all__ = ["COMBINE", "Peers"]
