"""Compiles the table of operations, one program each, for an H100 that need not be here: `python -m
tests.xla.pjrt.compile_for_h100 [seconds] [name …]` prints how many programs XLA compiles, and which it refuses and why.

Asks for the packages jax-cuda13-pjrt (or 12) and, of a CUDA toolkit, `ptxas`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import styrax.lax as lax
from styrax.experimental import topologies
from styrax.xla.pjrt import discovery
from styrax.xla.pjrt.described_devices import Described
from tests.lax.harness import Case, stage
from tests.lax.operations import CASES

TARGET = (Path(__file__).parent / "h100.txtpb").read_text()


def is_missing() -> str:
    """What this machine lacks for it."""
    return "" if discovery.find("cuda") else "there is no plugin for CUDA: install jax-cuda13-pjrt"


def described(count: int = 1) -> topologies.TopologyDescription:
    """So many GPUs in one process."""
    return topologies.get_topology_desc("h100", "cuda", target_config=TARGET, topology=f"1x1x{count}")


def refused(cases: Sequence[Case], client: Described) -> Iterator[tuple[Case, Exception | None]]:
    """Each case with the error of compiling it, None for those that compile."""
    for case in cases:
        try:
            client.compile(stage(case.function(lax), case.args), name=case.name)
            yield case, None
        except Exception as error:
            yield case, error


def main(arguments: Sequence[str]) -> None:
    if reason := is_missing():
        sys.exit(reason)
    limit = float(arguments[0]) if arguments else float("inf")
    cases = [c for c in CASES if not arguments[1:] or c.name in arguments[1:]]
    start, compiled, failed = time.monotonic(), 0, 0
    for case, error in refused(cases, described().devices[0].client):
        if error is None:
            compiled += 1
        else:
            failed += 1
            print(f"{case.name}: {type(error).__name__}: {str(error).splitlines()[0]}")
        if time.monotonic() - start > limit:
            break
    print(f"{compiled} of {compiled + failed} programs compile for an H100, {len(cases) - compiled - failed} not tried")


if __name__ == "__main__":
    main(sys.argv[1:])
