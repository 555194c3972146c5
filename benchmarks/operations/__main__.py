"""`python -m benchmarks.operations [--mode MODE] [--odd] [names]`: single operations under Styrax and under JAX.

With `--other SRC`, under this tree of Styrax and under that whose package lies in the folder SRC.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import processes
from . import comparison, listing

MODES = ("f32", "x64", "bf16", "f16", "grad", "eager", "vmap")


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of rows to run; all without any")
    parser.add_argument("--mode", choices=MODES, default="f32", help="types and transformations (f32)")
    parser.add_argument("--odd", action="store_true", help="sizes that are primes")
    parser.add_argument("--start", type=int, default=1, metavar="N", help="begin with the N-th row of the table")
    parser.add_argument("--quick", action="store_true", help="one turn each, for whether rows run and agree")
    parser.add_argument("--other", type=Path, metavar="SRC", help="compare with another tree of Styrax, not with JAX")
    parser.add_argument("--seconds", type=float, default=0.03, help="steady-state time for each engine in a row (0.03)")
    parser.add_argument("--cores", type=int, default=2, help="cores that both engines get (2)")
    parser.add_argument("--seed", type=int, default=0, help="for arguments (0)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a first call or a series of calls (60)")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = parse(argv)
    other = options.other.resolve() if options.other else None
    base = comparison.OTHER if other else comparison.JAX
    settings = processes.Settings(
        [comparison.OURS, base],
        pairs=1,
        seconds=options.seconds,
        cores=options.cores,
        seed=options.seed,
        warm=False,
        timeout=options.timeout,
    )
    print(listing.heading(base), flush=True)
    rows = []
    try:
        for row in comparison.compare(
            options.names, options.start, settings, options.mode, options.odd, options.quick, other
        ):
            rows.append(row)
            if not row.left_out:
                print(listing.line(row), flush=True)
    except processes.Failed as error:
        print(error, file=sys.stderr)
        return 2
    if not rows:
        print(f"no row has a name with any of {options.names}", file=sys.stderr)
        return 2
    print("\n".join(listing.summary(rows)))
    return 1 if any(row.differs or len(row.errors) == 1 for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
