"""`python -m styrax -m benchmarks.roofline [names]`: what the nests of workloads take of the machine.

Each workload that is one jitted function is run with `jit(f).explain`. With `--below`, only nests that take less than
that share of what the machine can do, and a part of their program's time that is worth it, are printed: where to look.
"""

from __future__ import annotations

import argparse
import sys

import jax
import numpy as np

from . import workloads

WORTH = 0.05  # of a program's time


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m styrax -m benchmarks.roofline", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of workloads; all without any")
    parser.add_argument("--below", type=float, help="print only nests below this share (0.5)")
    parser.add_argument("--seed", type=int, default=0, help="for arguments")
    options = parser.parse_args(argv)
    wanted = [n.lower() for n in options.names] or [""]
    for workload in workloads.load().values():
        if workload.family == "devices" or not any(n in workload.name.lower() for n in wanted):
            continue
        if not hasattr(workload.program, "explain"):
            print(f"{workload.name}: no single jitted function", file=sys.stderr)
            continue
        shape = workload.shapes[0]
        arguments = jax.tree.map(jax.numpy.asarray, workload.arguments(shape, np.random.default_rng(options.seed)))
        if workload.place is not None:
            arguments = workload.place(arguments)
        found = workload.program.explain(*arguments)
        if options.below is None:
            print(f"-- {workload.name} {shape}\n{found}\n", flush=True)
            continue
        inside = sum(n.seconds for n in found.nests)
        for n in found.nests:
            if n.seconds >= WORTH * inside and n.share < options.below:
                print(f"{workload.name} {shape}: {n.seconds * 1e6:.0f} µs, {100 * n.seconds / inside:.0f} % of all, "
                      f"{100 * n.share:.0f} % of the machine's ({n.limit}): {', '.join(n.primitives)} "
                      f"{n.lines[0] if n.lines else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
