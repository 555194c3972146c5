"""The benchmark harness: its arithmetic, its workloads, and one run of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import report, runner, workloads

ROOT = Path(runner.ROOT)


def test_ratio_is_the_median_over_pairs():
    row = runner.Row("name", (3,))
    for ours, theirs in ((1.0, 2.0), (6.0, 3.0), (3.0, 3.0)):
        row.add("styrax", {"steady": ours}, {"steady": "steady"})
        row.add("jax", {"steady": theirs}, {"steady": "steady"})
    assert row.ratio("styrax", "steady") == 1.0
    assert row.ratio("numpy", "steady") is None
    assert report.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert report.geometric_mean([]) is None


def test_results_are_compared(tmp_path):
    def save(name, **arrays):
        np.savez(tmp_path / name, **arrays)
        return tmp_path / f"{name}.npz"

    reference = save("a", x=np.array([1.0, 100.0, np.nan]))
    assert runner.agree(save("b", x=np.array([1.0, 100.001, np.nan])), reference, 1e-4)
    assert not runner.agree(save("c", x=np.array([1.0, 101.0, np.nan])), reference, 1e-4)
    assert not runner.agree(save("d", x=np.array([1.0, 100.0, 0.0])), reference, 1e-4)
    assert not runner.agree(save("e", x=np.array([1.0, 100.0])), reference, 1e-4)
    assert not runner.agree(save("f", y=np.array([1.0, 100.0, np.nan])), reference, 1e-4)


def test_drawn_shapes_follow_the_seed():
    for workload in workloads.load().values():
        shapes = workload.shapes_to_run(7, quick=False)
        assert shapes == workload.shapes_to_run(7, quick=False)
        assert workload.shapes_to_run(7, quick=True) == shapes[:1]
        small = min(shapes, key=lambda s: int(np.prod(s)))
        if np.prod(small) < 100_000:
            assert workload.arguments(small, np.random.default_rng(0))


def test_a_run(tmp_path):
    """Every engine in processes of its own, with a table and a plot."""
    plot = tmp_path / "plot.png"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--seconds", "0.05", "--plot", str(plot)]
    done = subprocess.run([*command, "eager add"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agree" in done.stdout and "geometric mean" in done.stdout
    assert plot.exists()
