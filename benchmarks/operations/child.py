"""Measures operations in this process, one after another, as the standard input asks; `comparison` starts it.

    python [-m styrax] -m benchmarks.operations.child MODE ODD SEED

A line that is a number asks for a series of that many calls of the last row, any other is JSON that names a row and a
file for its results. Each gets a line of JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..child import clocks
from . import families
from .modes import LeftOut, prepared
from .rows import Row


class Bench:
    """The row that is being measured."""

    __slots__ = ("_arguments", "_call", "mode", "seed")

    def __init__(self, mode: str, seed: int):
        self.mode = mode
        self.seed = seed
        self._call: Callable[..., Any] | None = None
        self._arguments: list[Any] = []

    def begin(self, row: Row, output: str) -> dict[str, Any]:
        """The time of a row's first call, and the types of its results."""
        self._call, self._arguments = None, []
        gc.collect()
        rng = np.random.default_rng([self.seed, zlib.crc32(row.name.encode())])
        call, arguments = prepared(row, self.mode, rng)
        jax.block_until_ready(arguments)
        begin = time.perf_counter()
        results = jax.block_until_ready(call(*arguments))
        first = time.perf_counter() - begin
        leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(results)]
        types = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves]
        save(output, leaves)
        for _ in range(2):
            jax.block_until_ready(call(*arguments))
        if "styrax.cpu.tiers" in sys.modules:  # what is called again is optimised meanwhile
            sys.modules["styrax.cpu.tiers"].settle()
        self._call, self._arguments = call, arguments
        return {"first": first, "types": types}

    def series(self, number: int) -> tuple[float, float]:
        call, arguments, wait = self._call, self._arguments, jax.block_until_ready
        assert call is not None
        begin = clocks()
        for _ in range(number):
            wait(call(*arguments))
        now = clocks()
        return now[0] - begin[0], now[1] - begin[1]


def save(path: str, leaves: list[np.ndarray]) -> None:
    """Keeps the results for the comparison: all elements, or every so many of large arrays."""
    kept = {}
    for i, leaf in enumerate(leaves):
        flat = leaf.reshape(-1)
        flat = flat[:: max(1, flat.size // 50_000)]
        if flat.dtype.kind == "V" or flat.dtype.itemsize < 4:  # NumPy's files do not know them all
            flat = flat.astype(np.float32)
        kept[f"a{i}"] = flat
    np.savez(path, **kept)


def brief(error: Exception) -> str:
    """The first line of what an exception says, after its type."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def main(mode: str, odd: str, seed: str) -> None:
    if mode == "x64":
        jax.config.update("jax_enable_x64", True)
    rows = families.load(odd == "odd")
    by_name = {row.name: row for row in rows}
    bench = Bench(mode, int(seed))
    found = [{"name": row.name, "signless": row.signless, "loose": row.loose} for row in rows]
    print(json.dumps({"module": jax.__file__, "rows": found}), flush=True)
    for line in sys.stdin:
        answer: Any
        try:
            if line.strip().isdigit():
                answer = bench.series(int(line))
            else:
                asked = json.loads(line)
                answer = bench.begin(by_name[asked["row"]], asked["output"])
        except LeftOut as reason:
            answer = {"left out": str(reason)}
        except Exception as error:
            answer = {"error": brief(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
