"""The store of a program's processes as C functions, called as a plugin calls them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from styrax.processes.coordinator import Client, Service
from styrax.xla.pjrt.key_values import KeyValues
from tests.processes import ended, free_port, start

from .asking import Asker, Refusal


@pytest.fixture
def client() -> Iterator[Client]:
    service = Service(("127.0.0.1", 0), 1, 100.0)
    client = Client(("127.0.0.1", service.port), 0, 1, 100.0, 10.0)
    yield client
    client.shutdown()
    service.close()


@pytest.fixture(params=[False, True], ids=["own thread", "foreign thread"])
def asker(client: Client, request: pytest.FixtureRequest) -> Iterator[Asker]:
    found = KeyValues(client, "cuda:")
    yield Asker(found.arguments, request.param)
    assert not found._lent, "each value was taken back"


@pytest.mark.parametrize("value", [b"", b"one", b"\0\1\xff" * 5, bytes(range(256)) * 8192], ids=len)
def test_values(asker, client, value):
    asker.put(b"key", value)
    assert asker.get(b"key", 1000) == asker.try_get(b"key") == value
    assert client.key_value_try_get_bytes("cuda:key") == value


@pytest.mark.parametrize("key", [b"", b"a/b c", b"\xff\0\xc3"])
def test_keys(asker, key):
    asker.put(key, b"value")
    assert asker.try_get(key) == b"value"


def test_a_key_without_a_value(asker):
    with pytest.raises(Refusal, match="NOT_FOUND: Config key cuda:nothing not found"):
        asker.try_get(b"nothing")
    before = time.monotonic()
    with pytest.raises(Refusal, match="DEADLINE_EXCEEDED: .* timed out with key: cuda:nothing and duration: 200ms"):
        asker.get(b"nothing", 200)
    assert 0.2 <= time.monotonic() - before < 5


def test_a_key_that_has_a_value(asker):
    asker.put(b"key", b"1")
    with pytest.raises(Refusal, match="ALREADY_EXISTS"):
        asker.put(b"key", b"2")
    assert asker.try_get(b"key") == b"1"


def test_a_value_is_waited_for(asker):
    found = []
    waiting = threading.Thread(target=lambda: found.append(asker.get(b"late", 20_000)))
    waiting.start()
    time.sleep(0.05)
    asker.put(b"late", b"value")
    waiting.join(20)
    assert found == [b"value"]


def test_many_threads(client):
    store = KeyValues(client, "")
    found: list[bytes] = []

    def ask(i: int) -> None:
        asker = Asker(store.arguments, True)
        asker.put(f"{i}".encode(), bytes([i]) * 1000)
        found.append(asker.get(f"{(i + 1) % 8}".encode(), 20_000))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(found) == [bytes([i]) * 1000 for i in range(8)] and not store._lent


def test_clients_have_keys_of_their_own(client):
    stores = [KeyValues(client, folder) for folder in ("cuda:", "rocm:")]
    one, two = (Asker(store.arguments) for store in stores)
    one.put(b"key", b"1")
    with pytest.raises(Refusal, match="NOT_FOUND"):
        two.try_get(b"key")


def test_what_a_store_raises_does_not_pass():
    class Broken:
        def stop(self, *_: object) -> bytes:
            raise KeyboardInterrupt("stop")

        key_value_set_bytes = blocking_key_value_get_bytes = key_value_try_get_bytes = stop

    store = KeyValues(Broken(), "")
    for foreign in (False, True):
        check_all_refused(Asker(store.arguments, foreign), "INTERNAL: KeyboardInterrupt: stop")


def test_a_store_that_was_left(client):
    store = KeyValues(client, "")
    client.shutdown()
    for foreign in (False, True):
        check_all_refused(Asker(store.arguments, foreign), "UNAVAILABLE")


def check_all_refused(asker: Asker, match: str) -> None:
    for ask in (lambda: asker.get(b"a", 50_000), lambda: asker.try_get(b"a"), lambda: asker.put(b"a", b"b")):
        with pytest.raises(Refusal, match=match):
            ask()


BEGIN = """
import os, sys, threading, time
sys.path.insert(0, {root!r})
import styrax as jax
from styrax.core.arrays import host_devices
from styrax.xla.pjrt.key_values import KeyValues
from tests.xla.asking import Asker, Refusal
me = int(sys.argv[1])
jax.distributed.initialize(sys.argv[2], 2, me)
store = KeyValues(host_devices.cohort.client, "cuda:")
asker = Asker(store.arguments, True)
"""


def run_both(text: str) -> list[tuple[int, str, str]]:
    address = f"localhost:{free_port()}"
    text = BEGIN.format(root=str(Path(__file__).parents[2])) + text
    return ended(start([["-c", text, str(i), address] for i in range(2)]), 60)


def test_two_processes():
    found = run_both("""
asker.put(f"from {me}".encode(), bytes([me]) * 3_000_000)
value = asker.get(f"from {1 - me}".encode(), 30_000)
print(len(value), set(value), len(store._lent))
""")
    assert [out for _, out, _ in found] == ["3000000 {1} 0\n", "3000000 {0} 0\n"], found


def test_the_process_with_the_store_dies():
    """Who waits for a value is told at once, and so is who asks later."""
    found = run_both("""
if me == 0:
    asker.get(b"ready", 30_000)
    time.sleep(0.5)  # the other is to be told that its key is set
    os.kill(os.getpid(), 9)
asker.put(b"ready", b"")
for ask in (lambda: asker.get(b"never", 50_000), lambda: asker.try_get(b"never"), lambda: asker.put(b"key", b"")):
    try:
        ask()
    except Refusal as refusal:
        print(refusal.code)
""")
    assert found[0][0] == -9
    assert found[1][:2] == (0, "UNAVAILABLE\n" * 3), found[1]
