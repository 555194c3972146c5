"""Programs in several processes, in tables: what each process gives is compared with what it gives under JAX.

A row is a block of code whose last expression is the result, or what it raises; all processes run the same rows. JAX's
processes talk through Gloo.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.compat.running import environment

from . import agreements, arrays, beginnings, maps, parts

SETUP = """
import pickle
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.experimental import multihost_utils as multihost
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
me, count = jax.process_index(), jax.process_count()
D, own = jax.devices(), jax.local_devices()
auto = jax.sharding.AxisType.Auto
m = jax.make_mesh((len(D),), ('i',), (auto,))
m2 = jax.make_mesh((2, len(D) // 2), ('x', 'y'), (auto,) * 2)
mt = Mesh(np.array(D).reshape(2, -1).T, ('x', 'y'))
v = np.arange(32, dtype=np.float32).reshape(4, 8)
S, S2 = NamedSharding(m, P(None, 'i')), NamedSharding(m2, P('x', 'y'))
def made(v, sharding):
    return jax.make_array_from_callback(v.shape, sharding, lambda index: v[index])
a = made(v, S2)
w = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8)
def value(x):
    return jax.tree.map(lambda y: multihost.process_allgather(y, tiled=True) if isinstance(y, jax.Array) and not
                        y.is_fully_addressable else np.asarray(y), x)
"""

TABLE: dict[str, list[str]] = {**beginnings.ROWS, **arrays.ROWS, **agreements.ROWS, **maps.ROWS, **parts.ROWS}
VALUES = ["parts", "placed", "eager"]  # which give values that are compared with those of one process


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(arguments: list[list[str]], *, plain: bool = False, **extra: str) -> list[subprocess.Popen[str]]:
    """`python -m styrax` (or, `plain`, `python`) with each of these lists of arguments, at the same time."""
    command = [sys.executable, *([] if plain else ["-m", "styrax"])]
    return [subprocess.Popen([*command, *each], env=environment(JAX_PLATFORMS="cpu", **extra), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for each in arguments]


def ended(processes: list[subprocess.Popen[str]], timeout: float = 300) -> list[tuple[int, str, str]]:
    """What became of processes: the status, what they printed, and the errors."""
    try:
        return [(p.returncode, out, err) for p, (out, err) in ((p, p.communicate(timeout=timeout)) for p in processes)]
    finally:
        for p in processes:
            p.kill()


def run_rows(folder: Path, families: list[str], *, count: int, devices: int, plain: bool = False) -> list[Path]:
    """Runs families of rows in processes: the files with what they found."""
    port = free_port()
    files = [folder / f"{'jax' if plain else 'own'}{i}" for i in range(count)]
    jobs = start([["-m", "tests.processes", str(files[i]), str(i), str(count), str(port), *families]
                  for i in range(count)], plain=plain, XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}")
    for status, out, err in ended(jobs):
        assert status == 0, out + err
    return files
