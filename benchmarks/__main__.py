"""`python -m benchmarks [--quick] [names]`: Styrax and JAX on the same programs, in one run.

With `--against COMMIT`, this tree of Styrax and that of a commit.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import sys
from pathlib import Path

from . import processes, report, runner, trees, workloads
from .workloads.catalog import Workload


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of workloads to run; all without any")
    parser.add_argument("--quick", action="store_true", help="one shape, one pair, no warm starts")
    parser.add_argument("--against", metavar="COMMIT", help="compare with that tree, not with other engines")
    parser.add_argument(
        "--pairs", type=int, help="pairs of processes for each row (3, or 1 with --quick; 8 or 6 with --against)"
    )
    parser.add_argument(
        "--limit", type=float, help="with --against: until when wide rows get more pairs, in seconds (60, or 0)"
    )
    parser.add_argument("--seconds", type=float, help="steady-state time for each process (0.5)")
    parser.add_argument("--cores", type=int, default=2, help="cores that all engines get (2)")
    parser.add_argument("--seed", type=int, help="for arguments and drawn shapes")
    parser.add_argument("--engines", default="styrax,jax,numpy,torch", help="comma-separated")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one process")
    parser.add_argument("--plot", default="benchmarks.png", help="where to write the plot")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = parse(argv)
    if options.against:  # the workloads import `jax`: whatever it is, the shapes are the same
        sys.path.insert(0, str(processes.ROOT / "src"))
        from styrax.compat.finder import install

        install()
    available = workloads.load()
    wanted = [n.lower() for n in options.names] or [""]
    chosen = [w for w in available.values() if any(n in w.name.lower() for n in wanted)]
    if options.list:
        print("\n".join(w.name for w in chosen))
        return 0
    if not chosen:
        print(f"no workload has a name with any of {options.names}", file=sys.stderr)
        return 2
    engines = [e for e in options.engines.split(",") if e != "torch" or importlib.util.find_spec("torch")]
    seed = random.SystemRandom().randrange(10_000) if options.seed is None else options.seed
    default = (6 if options.quick else 8) if options.against else (1 if options.quick else 3)
    settings = processes.Settings(
        engines,
        pairs=options.pairs or default,
        seconds=options.seconds if options.seconds is not None else (0.2 if options.quick else 0.5),
        cores=options.cores,
        seed=seed,
        warm=not options.quick,
        timeout=options.timeout,
    )
    cores = f"seed {seed}, {len(settings.cores)} of {os.cpu_count()} cores"
    if options.against:
        print(f"{cores}, this tree against {options.against}")
        limit = options.limit if options.limit is not None else (0.0 if options.quick else 60.0)
        try:
            return compare_trees(chosen, options.against, settings, limit, options.quick)
        except processes.Failed as error:
            print(error, file=sys.stderr)
            return 2
    print(f"{cores}, engines: {', '.join(engines)}")
    print(report.heading(engines), flush=True)
    rows = []
    for workload in chosen:
        for shape in workload.shapes_to_run(seed, options.quick):
            row = runner.measure(workload, shape, settings)
            rows.append(row)
            print(report.line(row, engines), flush=True)
    print("\n".join(report.summary(rows, engines)))
    path = Path(options.plot)
    if report.plot(rows, path):
        print(f"plot: {path}")
    wrong = any(not same for row in rows for same in row.matches.values())
    return 1 if wrong or any(row.errors for row in rows) else 0


def compare_trees(
    chosen: list[Workload], commit: str, settings: processes.Settings, limit: float, quick: bool
) -> int:
    rows = []
    with trees.checked_out(commit) as sources:
        print(trees.heading(), flush=True)
        for workload in chosen:
            for shape in workload.shapes_to_run(settings.seed, quick):
                rows.append(trees.measure(workload, shape, sources, settings, limit))
                print("\n".join(trees.lines(rows[-1])), flush=True)
    print("\n".join(trees.summary(rows)))
    return 0 if all(row.same for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
