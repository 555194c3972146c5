"""The example of a sharded training run: the same losses in one process and in four, which go on with what the other
has kept."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from . import ended, free_port, start

SCRIPT = str(Path(__file__).resolve().parents[2] / "examples" / "sharded.py")


def losses(arguments: list[str], count: int) -> list[float]:
    """Those that the first process prints, with four by two devices."""
    port = free_port()
    said = [{"JAX_COORDINATOR_ADDRESS": f"localhost:{port}", "JAX_NUM_PROCESSES": str(count), "JAX_PROCESS_ID": str(i)}
            if count > 1 else {} for i in range(count)]
    jobs = [start([[SCRIPT, *arguments]], XLA_FLAGS=f"--xla_force_host_platform_device_count={8 // count}", **each)[0]
            for each in said]
    found = ended(jobs)
    assert all(status == 0 for status, _, _ in found), found
    return [float(x) for x in re.findall(r"eight devices (\S+)", found[0][1])]


def test_losses_are_the_same_and_weights_are_kept(tmp_path):
    one, four = tmp_path / "one", tmp_path / "four"
    first = losses(["3", str(one)], 1)
    shutil.copytree(one, four)
    on_one, on_four = losses(["2", str(one)], 1), losses(["2", str(four)], 4)
    assert on_one[0] < first[0] / 1.5
    assert all(abs(a - b) < 2e-5 for a, b in zip(on_one, on_four, strict=True)), (on_one, on_four)
    assert len(list(four.glob("*.npz"))) == 4
    again = losses(["1", str(one)], 1), losses(["1", str(four)], 1)
    assert abs(again[0][0] - again[1][0]) < 2e-5, again
