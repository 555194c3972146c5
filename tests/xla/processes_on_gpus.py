"""Programs over the devices of two processes: what came of each is printed as JSON, by the first process.

    PYTHONPATH=src:. python -m tests.xla.processes_on_gpus PLATFORM NUMBER ADDRESS LOCAL COMMUNICATE

`on_gpu` starts both. With one GPU they share it (LOCAL is 0 in both, COMMUNICATE is 0): NCCL refuses to communicate
then, so programs whose devices exchange nothing run alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import numpy as np

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import multihost_utils
from styrax.sharding import NamedSharding
from styrax.sharding import PartitionSpec as P

V = np.arange(4096, dtype=np.float32).reshape(64, 64) / 64


def alone(platform: str) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Checks that need no communication between devices."""
    devices, own = jax.devices(platform), jax.local_devices(backend=platform)
    other = next(d for d in devices if d not in own)
    mesh = jax.make_mesh((len(devices),), ("i",), (jax.sharding.AxisType.Auto,), devices=devices)
    rows = NamedSharding(mesh, P("i"))
    x = jax.make_array_from_callback(V.shape, rows, lambda index: V[index])
    large = np.full((64, 64), 2, np.float32)

    def same(y: jax.Array, wanted: np.ndarray) -> bool:
        return all(np.allclose(s.data, wanted[s.index], rtol=1e-3, atol=1e-3) for s in y.addressable_shards)

    def refused() -> bool:
        try:
            jax.device_put(V, other)
        except ValueError:
            return True
        return False

    yield "devices of both", lambda: len(devices) == 2 * len(own) and {d.process_index for d in devices} == {0, 1}
    yield "another's devices take nothing", refused
    yield "parts", lambda: same(x, V) and not x.is_fully_addressable
    yield "the same value in both", lambda: same(jax.device_put(V, rows), V)
    yield "a program", lambda: same(jax.jit(lambda a: jnp.sin(a) * 2)(x), np.sin(V) * 2)
    yield "with a large constant", lambda: same(jax.jit(lambda a: a * large)(x), V * 2)
    yield "a derivative", lambda: same(jax.jit(jax.grad(lambda a: (a * a).sum()))(x), 2 * V)
    yield "products of rows", lambda: same(jax.jit(jnp.dot)(x, jax.device_put(V, NamedSharding(mesh, P()))), V @ V)
    yield "a map", lambda: same(jax.jit(jax.shard_map(jnp.cos, mesh=mesh, in_specs=P("i"), out_specs=P("i")))(x),
                                np.cos(V))


def together(platform: str) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Checks of programs that communicate."""
    devices = jax.devices(platform)
    mesh = jax.make_mesh((len(devices),), ("i",), (jax.sharding.AxisType.Auto,), devices=devices)
    x = jax.device_put(V, NamedSharding(mesh, P("i")))
    close = lambda y, wanted: bool(np.allclose(y, wanted, rtol=1e-3, atol=1e-3))
    of_rows = lambda f, out: jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=out))
    yield "whole on all", lambda: close(jax.device_put(x, NamedSharding(mesh, P())), V)
    yield "gathered", lambda: close(multihost_utils.process_allgather(x, tiled=True), V)
    yield "by columns", lambda: close(multihost_utils.process_allgather(
        jax.device_put(x, NamedSharding(mesh, P(None, "i"))), tiled=True), V)
    yield "a sum", lambda: close(jnp.sum(x), V.sum())
    yield "a product", lambda: close(jax.jit(lambda a: a.T @ a, out_shardings=NamedSharding(mesh, P()))(x), V.T @ V)
    yield "psum", lambda: close(of_rows(lambda a: jax.lax.psum(a.sum(0), "i"), P())(x), V.sum(0))
    yield "ppermute", lambda: close(multihost_utils.process_allgather(of_rows(
        lambda a: jax.lax.ppermute(a, "i", [(k, (k + 1) % len(devices)) for k in range(len(devices))]), P("i"))(x),
        tiled=True), np.roll(V, 64 // len(devices), 0))


def main(platform: str, number: str, address: str, local: str, communicate: str) -> None:
    jax.distributed.initialize(address, 2, int(number), int(local))
    found = []
    for part in (alone, together)[:1 + int(communicate)]:
        for name, check in part(platform):
            try:
                good = bool(check())
                found.append((name, "equal" if good else "differs", good))
            except Exception as error:
                found.append((name, f"{type(error).__name__}: {error}".splitlines()[0][:100], False))
    if number == "0":
        print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
