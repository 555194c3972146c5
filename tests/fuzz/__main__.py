"""`python -m tests.fuzz`: what `make fuzz` runs. A process of its own runs programs, and another follows where
XLA or we end it; the state and findings lie in a folder.

    python -m tests.fuzz --seed 1 --count 1000 --seconds 600 --folder /tmp/fuzz
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="of the programs; drawn and printed if it is missing")
    parser.add_argument("--count", type=int, default=200, help="programs in all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no more begin")
    parser.add_argument("--folder", type=Path, default=None, help="for the state and findings; an old state is resumed")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def work(options: argparse.Namespace) -> None:
    from tests.fuzz.campaign import Campaign
    from tools.primitives import primitives

    campaign = Campaign.open(options.seed, options.folder)
    campaign.run(options.count - campaign.generator.index, options.seconds)
    print(campaign.report([p.name for p in primitives()]), flush=True)


def main() -> int:
    options = arguments()
    if options.worker:
        work(options)
        return 0
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    folder = options.folder or Path(".fuzz") / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, findings and state in {folder}", flush=True)
    begin = time.monotonic()
    environment = {
        **os.environ,
        "STYRAX_CACHE_DIR": str(folder / "cache"),
        "XLA_FLAGS": os.environ.get(
            "XLA_FLAGS",
            "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
            "--xla_allow_excess_precision=false",
        ),
    }
    last: int | None = None
    while True:
        left = options.seconds - (time.monotonic() - begin)
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--worker",
            "--seed",
            str(seed),
            "--count",
            str(options.count),
            "--seconds",
            str(max(left, 0)),
            "--folder",
            str(folder),
        ]
        code = subprocess.run(command, env=environment).returncode
        state = folder / "state.json"
        inside = json.loads(state.read_text())["running"] if state.exists() else None
        if inside is None or inside == last:
            return code
        last = inside
        (folder / f"ended-{inside}.py").write_text((folder / "running.py").read_text())
        print(
            f"--- the process ended with {code} in one of the programs before {inside}: {folder}/ended-{inside}.py",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
