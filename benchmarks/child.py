"""Measures one workload in this process and writes what it found; `runner` starts it.

    [python -m styrax] child.py ENGINE FAMILY WORKLOAD SHAPE SEED OUTPUT

ENGINE is `program` for the JAX program under whatever `import jax` is here, or `numpy` or `torch`. Then calls are
repeated as the standard input says, a number of them per line, and each line gets one with their times.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable


def clocks() -> tuple[float, float]:
    """What the clock says, and the time that cores have spent on this process."""
    return time.perf_counter(), time.process_time()


def measure(
    engine: str, family: str, name: str, shape: tuple, seed: int, output: str
) -> tuple[dict, Callable[[int], tuple[float, float]]]:
    """What was found, and a function that measures a series of further calls."""
    import numpy as np

    found: dict = {}

    def keep(what: str, begin: tuple[float, float]) -> None:
        now = clocks()
        found[what], found[f"{what} cpu"] = now[0] - begin[0], now[1] - begin[1]

    if family == "devices":  # before anyone counts them
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    begin = clocks()
    import jax
    import jax.numpy

    keep("import", begin)
    found["module"] = jax.__file__
    from benchmarks import workloads

    workload = workloads.load(family)[name]
    arguments = workload.arguments(shape, np.random.default_rng(seed))
    if engine == "numpy":
        call, convert, wait = workload.numpy, lambda x: x, lambda x: x
    elif engine == "torch":
        import torch

        torch.set_num_threads(len(available_cores()))
        call, convert, wait = workload.torch, tensor, lambda x: x
    else:
        call, convert, wait = workload.program, jax.numpy.asarray, jax.block_until_ready
    begin = clocks()
    arguments = wait(jax.tree_util.tree_map(convert, arguments))
    if workload.place is not None:
        arguments = wait(workload.place(arguments))
    keep("convert", begin)

    begin = clocks()
    result = wait(call(*arguments))
    keep("first", begin)
    for clock in ("", " cpu"):
        found[f"start{clock}"] = sum(found[f"{what}{clock}"] for what in ("import", "convert", "first"))
    save(output, jax.tree_util.tree_leaves(result))

    def series(number: int) -> tuple[float, float]:
        begin = clocks()
        if workload.block:
            for _ in range(number):
                wait(call(*arguments))
        else:
            for _ in range(number):
                result = call(*arguments)
            wait(result)
        now = clocks()
        return now[0] - begin[0], now[1] - begin[1]

    for _ in range(2):
        wait(call(*arguments))
    if "styrax.cpu.tiers" in sys.modules:  # what is called again is optimised meanwhile
        sys.modules["styrax.cpu.tiers"].settle()
    return found, series


def tensor(x):
    """A NumPy array as PyTorch's, which does not know NumPy's bfloat16."""
    import torch

    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(x)


def save(path: str, leaves: list) -> None:
    """Keeps the results for the comparison: all elements, or every so many of large arrays."""
    import numpy as np

    kept = {}
    for i, leaf in enumerate(leaves):
        if str(getattr(leaf, "dtype", "")) == "torch.bfloat16":
            leaf = leaf.float()
        flat = np.asarray(leaf).reshape(-1)
        step = max(1, flat.size // 50_000)
        kept[f"a{i}"] = flat[::step].astype(np.float64)
    np.savez(path, **kept)


def available_cores() -> set[int]:
    import os

    return os.sched_getaffinity(0)


if __name__ == "__main__":
    engine, family, name, shape, seed, output = sys.argv[1:]
    report, series = measure(engine, family, name, tuple(json.loads(shape)), int(seed), output)
    print(json.dumps(report), flush=True)
    for line in sys.stdin:
        print(json.dumps(series(int(line))), flush=True)
