"""Executes rows as one of several processes, under the package that `jax` is, and writes down what they give."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tests.parallel.outcomes import outcome
from tests.quick_oracle import quick_oracle

from . import SETUP, TABLE


def place(sharding: Any) -> Any:
    spec = getattr(sharding, "spec", None)
    while spec and spec[-1] is None:
        spec = jax.P(*spec[:-1])
    return type(sharding).__name__, str(spec), [d.id for d in sharding._device_assignment]


def described(x: Any) -> Any:
    """A result as plain data: of an array what this process has of it."""
    if isinstance(x, jax.Array):
        parts = [(s.device.id, str(s.index), s.replica_id, np.asarray(s.data)) for s in x.addressable_shards]
        return (x.shape, str(x.dtype), x.is_fully_addressable, x.is_fully_replicated, place(x.sharding),
                sorted(parts, key=lambda part: part[0]))
    if isinstance(x, (np.ndarray, np.generic)):
        return str(x.dtype), np.asarray(x)
    if isinstance(x, dict):
        return {k: described(y) for k, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [described(y) for y in x]
    if isinstance(x, jax.sharding.Sharding):
        return place(x)
    return x if isinstance(x, (bool, int, float, str, type(None))) else repr(x)


def main(path: str, number: str, count: str, port: str, *families: str) -> None:
    if int(count) > 1:
        jax.distributed.initialize(f"localhost:{port}", int(count), int(number))
    space: dict[str, Any] = {}
    exec(SETUP, space)
    found = {(family, row): outcome(row, dict(space), described) for family in families for row in TABLE[family]}
    Path(path).write_bytes(pickle.dumps(found))


with quick_oracle():
    main(*sys.argv[1:])
