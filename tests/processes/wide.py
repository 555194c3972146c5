"""Executes the rows about eight devices of one process (`tests.parallel`) in several processes, or in one, and writes
down the values: `python -m tests.processes.wide FILE NUMBER COUNT PORT FAMILY…`."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from tests.parallel import SETUP, TABLE
from tests.parallel.outcomes import outcome


def whole(x: Any) -> np.ndarray:
    """All of an array."""
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return multihost_utils.process_allgather(x, tiled=True) if getattr(x, "is_fully_addressable", True) is False else (
        np.asarray(x))


class Numpy:
    """NumPy, whose `asarray` and `array` get all of an array."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    asarray = staticmethod(lambda x, *args: np.asarray(whole(x), *args))
    array = staticmethod(lambda x, *args: np.array(whole(x) if isinstance(x, jax.Array) else x, *args))


def value(x: Any) -> Any:
    """A result as plain data, the same in all processes."""
    if isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer):
        spec = getattr(x.sharding, "spec", None)
        while spec and spec[-1] is None:
            spec = jax.P(*spec[:-1])
        found = whole(x)
        return "array", str(x.dtype), str(spec) if spec else None, found if found.dtype.kind in "biufc" else (
            found.astype(np.float32))
    if isinstance(x, (np.ndarray, np.generic)):
        return ("numpy", str(x.dtype), np.asarray(x)) if x.dtype.kind in "biufc" else str(x)
    if isinstance(x, dict):
        return {k: value(y) for k, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [value(y) for y in x]
    return x if type(x) in (bool, int, float, str, type(None)) else type(x).__name__


def main(path: str, number: str, count: str, port: str, *families: str) -> None:
    if int(count) > 1:
        jax.distributed.initialize(f"localhost:{port}", int(count), int(number))
    space: dict[str, Any] = {}
    exec(SETUP, space)
    space["np"] = Numpy()
    found = {}
    for way in ("compiled",):
        def shard(f: Any, ins: Any, outs: Any, mesh: Any = space["m8"], way: str = way, **options: Any) -> Any:
            mapped = jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)
            return jax.jit(mapped) if way == "compiled" else mapped

        space["shard"] = shard
        for family in families:
            for row in TABLE[family]:
                found[way, family, row] = outcome(row, dict(space), value)
    Path(path).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
