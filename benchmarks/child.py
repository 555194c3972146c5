"""Measures one workload in this process and writes what it found; `runner` starts it.

    [python -m styrax] child.py ENGINE FAMILY WORKLOAD SHAPE SEED SECONDS OUTPUT

ENGINE is `program` for the JAX program under whatever `import jax` is here, or `numpy` or `torch`.
"""

from __future__ import annotations

import json
import sys
import time


def measure(
    engine: str, family: str, name: str, shape: tuple, seed: int, seconds: float, output: str
) -> dict:
    import numpy as np

    found: dict = {}
    begin = time.perf_counter()
    import jax
    import jax.numpy

    found["import"] = time.perf_counter() - begin
    found["module"] = jax.__file__
    from benchmarks import workloads

    workload = workloads.load(family)[name]
    arguments = workload.arguments(shape, np.random.default_rng(seed))
    if engine == "numpy":
        call, convert, wait = workload.numpy, lambda x: x, lambda x: x
    elif engine == "torch":
        import torch

        torch.set_num_threads(len(available_cores()))
        call, convert, wait = workload.torch, torch.from_numpy, lambda x: x
    else:
        call, convert, wait = workload.program, jax.numpy.asarray, jax.block_until_ready
    begin = time.perf_counter()
    arguments = wait(jax.tree_util.tree_map(convert, arguments))
    found["convert"] = time.perf_counter() - begin

    begin = time.perf_counter()
    result = wait(call(*arguments))
    found["first"] = time.perf_counter() - begin
    found["start"] = found["import"] + found["convert"] + found["first"]
    save(output, jax.tree_util.tree_leaves(result))
    found["steady"] = steady(call, arguments, wait, workload.block, seconds)
    return found


def steady(call, arguments, wait, block: bool, seconds: float) -> float:
    """The median time of a call, over series long enough for the clock."""

    def series(number: int) -> float:
        begin = time.perf_counter()
        if block:
            for _ in range(number):
                wait(call(*arguments))
        else:
            for _ in range(number):
                result = call(*arguments)
            wait(result)
        return time.perf_counter() - begin

    number, taken = 1, series(1)
    while taken < 2e-3:
        number *= 2
        taken = series(number)
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 1000):
        times.append(series(number) / number)
        if len(times) >= 3 and time.perf_counter() > end + seconds:
            break
    return sorted(times)[len(times) // 2]


def save(path: str, leaves: list) -> None:
    """Keeps the results for the comparison: all elements, or every so many of large arrays."""
    import numpy as np

    kept = {}
    for i, leaf in enumerate(leaves):
        flat = np.asarray(leaf).reshape(-1)
        step = max(1, flat.size // 50_000)
        kept[f"a{i}"] = flat[::step].astype(np.float64)
    np.savez(path, **kept)


def available_cores() -> set[int]:
    import os

    return os.sched_getaffinity(0)


if __name__ == "__main__":
    engine, family, name, shape, seed, seconds, output = sys.argv[1:]
    report = measure(engine, family, name, tuple(json.loads(shape)), int(seed), float(seconds), output)
    print(json.dumps(report))
