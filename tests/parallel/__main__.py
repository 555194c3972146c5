"""Executes the rows under the package that `jax` is, and writes down what they give: see the package."""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tests.quick_oracle import quick_oracle

from . import SETUP, TABLE
from .outcomes import outcome
from .own import ROWS


def numbers(x: Any) -> tuple[str, np.ndarray]:
    """A NumPy array with the name of its type, which may be one that NumPy does not know."""
    x = np.asarray(x)
    if x.dtype == jax.dtypes.float0 or x.dtype == object:
        return str(x.dtype), np.zeros(x.shape, bool)
    return str(x.dtype), x if x.dtype.kind in "biufc" else x.astype(np.float32)


def place(sharding: Any) -> tuple[Any, ...]:
    spec = getattr(sharding, "spec", None)
    while spec and spec[-1] is None:
        spec = jax.P(*spec[:-1])
    mesh = getattr(sharding, "mesh", None)
    return (type(sharding).__name__, None if spec is None else str(spec),
            None if mesh is None else tuple(mesh.shape.items()), [d.id for d in sharding._device_assignment])


def described(x: Any) -> Any:
    """A result as plain data."""
    if isinstance(x, jax.core.Tracer):
        return "tracer", str(x.aval)
    if isinstance(x, jax.Array):
        data = jax.random.key_data if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray
        parts = [(s.device.id, str(s.index[:x.ndim]), s.replica_id, numbers(data(s.data)),
                  [d.id for d in s.data.devices()]) for s in x.addressable_shards]
        return ("array", str(x.dtype), bool(getattr(x, "weak_type", False)), numbers(data(x)), place(x.sharding),
                x.committed, parts)
    if isinstance(x, (np.ndarray, np.generic)):
        return "numpy", numbers(x)
    if isinstance(x, dict):
        return {k: described(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [described(v) for v in x]
    if isinstance(x, jax.sharding.Sharding):
        return place(x)
    return x if isinstance(x, (bool, int, float, str, type(None))) else repr(x)


def main(path: str, *ways: str) -> None:
    found: dict[tuple[str, str], Any] = {}
    space: dict[str, Any] = {}
    exec(SETUP, space)
    for way in ways:
        def shard(f: Any, ins: Any, outs: Any, mesh: Any = space["m8"], way: str = way, **options: Any) -> Any:
            mapped = jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)
            return jax.jit(mapped) if way == "compiled" else mapped

        space["shard"] = shard
        for family, rows in [*TABLE.items(), *([("own", ROWS)] if way == "called" else [])]:
            for row in rows:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    found[way, family, row] = outcome(row, dict(space), described)
    Path(path).write_bytes(pickle.dumps(found))


with quick_oracle():
    main(*sys.argv[1:])
