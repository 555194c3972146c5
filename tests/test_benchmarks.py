"""The benchmark harness: its arithmetic, its workloads, and one run of it."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from time import sleep

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

from benchmarks import intervals, processes, report, runner, trees, workloads
from benchmarks.operations import arguments, comparison, listing

ROOT = Path(processes.ROOT)


def test_ratio_is_the_median_over_pairs():
    row = runner.Row("name", (3,))
    for ours, theirs in ((1.0, 2.0), (6.0, 3.0), (3.0, 3.0)):
        row.add("styrax", {"steady": ours}, {"steady": "steady"})
        row.add("jax", {"steady": theirs}, {"steady": "steady"})
    assert row.ratio("styrax", "steady") == 1.0
    assert row.ratio("numpy", "steady") is None
    assert report.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert report.geometric_mean([]) is None


def test_engines_take_turns_and_rows_above_one_are_named():
    called = []

    def series(engine, factor):
        def run(calls):
            called.append(engine)
            return factor * calls * 1e-3 * (1 + len(called) // 40 % 3), 0.0

        return run

    row = runner.Row("slow", (3,))
    runner.steady(row, {"styrax": series("styrax", 1.5), "jax": series("jax", 1.0)}, 0.0)
    row.add("jax", {"first": 1.0}, {"first": "first"})
    row.add("styrax", {"first": 0.5}, {"first": "first"})
    assert len(row.times["jax"]["steady"]) == runner.TURNS
    assert "".join(e[0] for e in called[-8:]) == "ssjjjjss"
    found = row.interval("styrax")
    assert found.low == found.median == pytest.approx(1.5)
    text = "\n".join(report.summary([row], ["styrax", "jax"]))
    assert "95 % interval above 1: slow [3]" in text and "first call: 1 of 1 faster" in text
    assert report.line(row, ["styrax", "jax"]).split()[6:9] == ["1.50", "[1.50,", "1.50]"]


def test_a_process_that_fails_says_why():
    settings = processes.Settings([], pairs=1, seconds=0, cores=1, seed=0, warm=False, timeout=20)
    with pytest.raises(processes.Failed, match="ZeroDivisionError"):
        processes.Process([sys.executable, "-c", "1 / 0"], dict(os.environ), settings)


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


@pytest.mark.parametrize("n", [1, 5, 6, 8, 9, 20, 25, 200])
def test_order_statistics_are_those_of_the_binomial_distribution(n):
    k = intervals.outside(n)
    assert 2 * scipy.stats.binom.cdf(k - 1, n, 0.5) <= 0.05 < 2 * scipy.stats.binom.cdf(k, n, 0.5)


@pytest.mark.parametrize("n", [6, 9, 20])
@pytest.mark.parametrize(
    "distribution",
    [scipy.stats.lognorm(0.5, scale=1.1), scipy.stats.expon(0.9), scipy.stats.cauchy(1, 0.1), scipy.stats.uniform(0.5)],
    ids=lambda d: d.dist.name,
)
def test_intervals_hold_the_median(distribution, n):
    """In 95 of 100 samples at least, of skewed distributions and of one without a mean."""
    samples = distribution.rvs(size=(1000, n), random_state=3)
    estimates = [intervals.estimate(sample) for sample in samples.tolist()]
    held = np.mean([e.low <= distribution.median() <= e.high for e in estimates])
    expected = 1 - 2 * scipy.stats.binom.cdf(intervals.outside(n) - 1, n, 0.5)
    assert abs(held - expected) < 4 * np.sqrt(expected * (1 - expected) / 1000)
    assert all(e.low <= e.median <= e.high for e in estimates)
    assert estimates[0].median == statistics.median(samples[0])


def test_verdicts():
    def verdict(low, high, n=10):
        return intervals.estimate(np.linspace(low, high, n).tolist()).verdict

    assert verdict(1.05, 1.5) == "slower"
    assert verdict(0.5, 0.95) == "faster"
    assert verdict(0.99, 1.03) == "same"
    assert verdict(0.9, 1.2) == "unclear"
    assert verdict(1.0, 1.2) == "unclear"
    assert verdict(1.5, 1.5, n=5) == "unclear"  # too few for any interval
    assert not intervals.estimate([1.5] * 5).decided


@pytest.mark.parametrize("number, turns", [(0, "paappaap"), (1, "appaappa")])
def test_trees_take_turns(number, turns):
    called = []

    def series(tree, factor):
        def run(calls):
            called.append((tree, calls))
            disturbance = 1 + len(called) % 3  # of other work; it never makes anything faster
            return factor * calls * 1e-3 * disturbance, factor * calls * 0.5e-3

        return run

    row = trees.Row("name", (3,))
    trees.steady(row, number, {"present": series("present", 1.5), "against": series("against", 1.0)}, 0.0)
    calls = called[-1][1]
    measured = "".join(tree[0] for tree, n in called[-4 * trees.TURNS :] if n == calls)
    assert calls > 1 and measured == turns
    for clock in trees.CLOCKS:
        assert row.estimate(f"steady{clock}").median == pytest.approx(1.5)


def test_a_run_of_two_trees(tmp_path):
    """This tree against the last commit, where there is no JAX."""
    for name in ("jax", "jaxlib"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not needed here')")
    command = [sys.executable, "-m", "benchmarks", "--quick", "--pairs", "1", "--seconds", "0", "--against"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}

    def run(commit):
        return subprocess.run(
            [*command, commit, "eager add"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )

    done = run("HEAD")
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("steady", "first call", "warm start"):
        assert re.search(rf"\n  {what} .*\[.*unclear .*unclear +1\n", done.stdout), done.stdout
    assert "geometric means, CPU time: steady" in done.stdout and "cannot run" not in done.stdout
    assert run("no-such-commit").returncode == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["jax", "jaxlib"]


def test_what_cannot_run_or_differs_is_listed():
    good, failed, wrong = trees.Row("good", (3,)), trees.Row("failed", ()), trees.Row("wrong", (2, 2))
    for row in (good, wrong):
        for ours, theirs in zip(np.linspace(1.2, 1.3, 8), np.linspace(1.0, 1.01, 8)):
            for tree, time in (("present", ours), ("against", theirs)):
                for what in (*trees.MEASURED, "import"):
                    found = {"wall": time if row is good else 1.0, "cpu": 1.0}
                    row.add(tree, found, {"wall": what, "cpu": f"{what} cpu"})
    failed.errors["against"] = "AttributeError: no such function"
    wrong.matches["present"] = False
    text = "\n".join(trees.summary([good, failed, wrong]))
    assert "by wall time 0 of 6 are unclear, 3 slower\n  good [3] (steady, 1.24)" in text
    assert "by CPU time 0 of 6 are unclear, 0 slower" in text
    assert "the against tree cannot run: 1\n  failed [scalar]: AttributeError: no such function" in text
    assert "values differ: wrong [2×2]" in text
    assert f"steady {np.sqrt(good.estimate('steady').median):.3f}" in text
    assert "VALUES DIFFER" in trees.lines(wrong)[0] and "VALUES" not in trees.lines(good)[0]


TRACE = """
import jax
from benchmarks.operations import families, modes
for odd in (False, True):
    rows = families.load(odd)
    assert len({row.name for row in rows}) == len(rows) > 700
    for row in rows:
        try:
            jax.eval_shape(row.function, *modes.structures(row, "f32"))
        except Exception as error:
            raise AssertionError(row.name) from error
"""


def test_operations_have_names_of_their_own_and_can_be_traced():
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "styrax", "-c", TRACE]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options, left", [((), 3), (("--mode", "grad", "--odd"), 2)], ids=["f32", "odd gradients"])
def test_a_run_of_operations(options, left):
    """Rows under both engines, of which one has no gradient."""
    names = ["haversine", "hinge loss", "checkerboard"]
    command = [sys.executable, "-m", "benchmarks.operations", "--quick", *options, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{left} rows, {3 - left} left out in this mode; 0 run in one engine only, 0 in neither" in done.stdout
    assert re.search(r"^steady: geometric mean \d", done.stdout, re.M) and "differ" not in done.stdout


def test_arguments_are_what_they_are_said_to_be():
    rng = np.random.default_rng(0)
    matrix, index, scalar, factor = arguments.parse("30,4 20:int<7 ():seed 8,8:spd")
    assert matrix.draw(arguments.BFLOAT16, rng).dtype == ml_dtypes.bfloat16
    assert matrix.odd().shape == (31, 4) and scalar.draw(arguments.SINGLE, rng).shape == ()
    drawn = index.draw(arguments.DOUBLE, rng, (3,))
    assert drawn.dtype == np.int64 and drawn.shape == (3, 20) and 0 <= drawn.min() and drawn.max() < 7
    assert np.linalg.eigvalsh(factor.draw(arguments.DOUBLE, rng)).min() > 0
    with pytest.raises(ValueError, match="no kind 'nothing'"):
        arguments.parse("30:nothing")


def test_operations_that_differ_or_fail_are_listed():
    def found(a, b, type="float32[3]", loose=1.0):
        return comparison.difference(np.array(a), np.array(b), type, loose)

    assert found([1.0, np.nan, np.inf], [1.0001, np.nan, np.inf]) == ""
    assert found([1.0, 2.0], [1.0, 2.1]) == "differs by 4.8e-02"
    assert found([1.0, 2.0], [1.0, 2.1], "bfloat16[2]") == "" == found([1.0, 2.0], [1.0, 2.1], loose=1000)
    assert found([1.0, np.nan], [1.0, 2.0]) == "differs in where it is NaN"
    assert found([1.0, np.inf], [1.0, -np.inf]) == "differs in where it is infinite"
    assert found([1, 2, 3, 4], [1, 2, 3, 5], "int32[4]") == "differs in 25 % of its elements"

    names = ("good", "failed", "wrong", "out")
    good, failed, wrong, out = (comparison.Row(i, name, "jax") for i, name in enumerate(names))
    for row, ours in ((good, 0.5), (wrong, 3.0)):
        row.add("styrax", {"time": ours}, {"time": "steady"})
        row.add("jax", {"time": 1.0}, {"time": "steady"})
    failed.errors["styrax"] = "TypeError: no"
    wrong.notes.append("differs by 4.8e-02")
    out.left_out = "no result to differentiate"
    text = "\n".join(listing.summary([good, failed, wrong, out]))
    assert "3 rows, 1 left out in this mode; 1 run in one engine only, 0 in neither" in text
    assert "steady: geometric mean 1.225; above 1: 1 of 2\n    3.00     2 wrong" in text
    assert "results differ: 1\n     2 wrong: differs by" in text and "1 failed: styrax: TypeError: no" in text


def test_an_operation_that_takes_too_long_ends_its_process_only(monkeypatch):
    settings = processes.Settings([], pairs=1, seconds=0, cores=1, seed=0, warm=False, timeout=0.5)
    begun = []

    class Process:
        def __init__(self, *arguments):
            begun.append(self)

        def more_time(self):
            self.limited = True

        def any_time(self):
            self.limited = False

        def ask(self, text):
            assert self.limited
            if len(begun) > 1:
                return {"first": 1.0}
            sleep(0.5)
            raise processes.Failed("was killed")

        def close(self):
            pass

    monkeypatch.setattr(comparison, "Process", Process)
    engine = comparison.Engine("styrax", settings, "f32", False, ROOT / "src")
    with pytest.raises(comparison.RowFailed, match="timed out"):
        engine.begin("slow", ROOT)
    assert engine.begin("fast", ROOT) == {"first": 1.0}
    assert not begun[1].limited  # while the other engine has its turn
