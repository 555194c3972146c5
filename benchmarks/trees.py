"""Two trees of Styrax in alternation: the present one, and that of a commit."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from . import runner
from .intervals import Estimate, estimate
from .processes import ROOT, Failed, Process, Settings, program
from .report import WIDTH, duration, geometric_mean, label
from .workloads.catalog import Shape, Workload

TREES = ("present", "against")
WHAT = {"steady": "steady", "first": "first call", "start": "warm start", "import": "import"}
CLOCKS = {"": "wall", " cpu": "CPU"}
MEASURED = ("steady", "first", "start")  # of each row; the import is the same for all
SERIES = 5e-3  # seconds that a series of calls takes at least
TURNS = 4  # of each tree in a pair of processes, at least

Times = dict[str, float]


class Row(runner.Row):
    """What was found for one workload at one shape: for each tree the times of each pair, by what and clock."""

    __slots__ = ()

    def estimate(self, what: str) -> Estimate:
        return estimate([a / b for a, b in zip(self.times["present"][what], self.times["against"][what])])

    def decided(self, what: str) -> bool:
        return all(self.estimate(what + clock).decided for clock in CLOCKS)

    @property
    def same(self) -> bool:
        return all(self.matches.values())


def order(number: int) -> tuple[str, ...]:
    """A B B A A B B A …: each tree goes first as often as second."""
    return TREES if number % 2 == 0 else TREES[::-1]


@contextmanager
def checked_out(commit: str) -> Iterator[dict[str, Path]]:
    """Copies of both trees' packages side by side, with bytecode, until the end of the block."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        raise Failed(archive.stderr.decode().strip())
    with tempfile.TemporaryDirectory(prefix="styrax-trees-") as folder:
        sources = {tree: Path(folder) / tree / "src" for tree in TREES}
        shutil.copytree(ROOT / "src", sources["present"], ignore=shutil.ignore_patterns("__pycache__"))
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(Path(folder) / "against", filter="data")
        subprocess.run([sys.executable, "-m", "compileall", "-q", *map(str, sources.values())], check=True)
        yield sources


def measure(
    workload: Workload, shape: Shape, sources: dict[str, Path], settings: Settings, limit: float
) -> Row:
    """The pairs of processes of every row, then more until the intervals are narrow or `limit` seconds are over."""
    row = Row(workload.name, shape)
    end = time.monotonic() + limit
    number, look, wanted = 0, settings.pairs, set(MEASURED)
    while number < settings.pairs or (wanted and time.monotonic() < end):
        try:
            _pair(row, number, workload, shape, sources, settings, wanted)
        except _TreeFailed as failed:
            row.errors[failed.tree] = str(failed)
            break
        number += 1
        if number == look:  # seldom: an interval that is looked at after each pair misses sooner or later
            wanted = {what for what in MEASURED if not row.decided(what)}
            look *= 2
    return row


class _TreeFailed(Failed):
    def __init__(self, tree: str, reason: str):
        super().__init__(reason)
        self.tree = tree


def _series(tree: str, process: Process) -> Callable[[int], tuple[float, float]]:
    def run(number: int) -> tuple[float, float]:
        with _of(tree):
            return process.series(number)

    return run


@contextmanager
def _of(tree: str) -> Iterator[None]:
    """Has failures of a process say which tree's it is."""
    try:
        yield
    except Failed as error:
        raise _TreeFailed(tree, str(error)) from None


def _pair(
    row: Row,
    number: int,
    workload: Workload,
    shape: Shape,
    sources: dict[str, Path],
    settings: Settings,
    wanted: set[str],
) -> None:
    """First calls with an empty cache each, calls in turns while both processes live, then starts from disk."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scratch = Path(folder)

        def start(tree: str, name: str) -> Process:
            output = scratch / f"{tree}-{name}.npz"
            command, environment = program(
                workload, shape, "styrax", settings, scratch / f"cache-{tree}", output, source=sources[tree]
            )
            right = lambda module: module.is_relative_to(sources[tree])
            with _of(tree):
                return stack.enter_context(Process(command, environment, settings, right))

        processes = {tree: start(tree, "first") for tree in order(number)}
        for tree, process in processes.items():
            row.add(tree, process.found, {f"first{clock}": f"first{clock}" for clock in CLOCKS})
        if "steady" in wanted:
            steady(row, number, {tree: _series(tree, process) for tree, process in processes.items()}, settings.seconds)
        for process in processes.values():
            process.close()
        same = runner.agree(scratch / "present-first.npz", scratch / "against-first.npz", workload.tolerance)
        row.matches["present"] = same and row.matches.get("present", True)
        if "start" in wanted:
            for tree in order(number):
                process = start(tree, "warm")
                row.add(tree, process.found, {w + c: w + c for w in ("start", "import") for c in CLOCKS})
                process.close()


def steady(
    row: Row, number: int, series: dict[str, Callable[[int], tuple[float, float]]], seconds: float
) -> None:
    """The shortest series of each tree, by each clock: what else the machine does only ever adds time."""
    calls = 1
    while series[order(number)[0]](calls)[0] < SERIES:
        calls *= 2
    turns: dict[str, list[tuple[float, float]]] = {tree: [] for tree in TREES}
    end = time.monotonic() + seconds
    turn = number
    while turn < number + TURNS or time.monotonic() < end:
        for tree in order(turn):
            series[tree](1)  # brings its memory back into the caches
            turns[tree].append(series[tree](calls))
        turn += 1
    for tree, found in turns.items():
        for i, clock in enumerate(CLOCKS):
            row.add(tree, {"steady": min(times[i] for times in found) / calls}, {"steady": f"steady{clock}"})


def heading() -> str:
    columns = f"{'present':>{WIDTH}}{'against':>{WIDTH}}"
    for clock in CLOCKS.values():
        columns += f"   {f'{clock}: ratio, 95 % interval, verdict':<36}"
    return f"{'':<14}{columns}   pairs"


def _cells(found: Estimate) -> str:
    return f"{found.median:>6.3f}  [{found.low:.3f}, {found.high:.3f}]".ljust(27) + f"{found.verdict:<9}"


def lines(row: Row) -> list[str]:
    """A workload's part of the table."""
    out = [label(row) + ("" if row.same else "   VALUES DIFFER")]
    if row.errors:
        return out + [f"  {tree}: {error}" for tree, error in row.errors.items()]
    for what in MEASURED:
        times = "".join(f"{duration(row.median(tree, what)):>{WIDTH}}" for tree in TREES)
        cells = "".join(f"   {_cells(row.estimate(what + clock))}" for clock in CLOCKS)
        out.append(f"  {WHAT[what]:<12}{times}{cells}   {len(row.times['present'][what])}")
    return out


def imports(rows: Sequence[Row]) -> Row:
    """The imports of all rows' warm starts as one row."""
    found = Row("import", ())
    for row in rows:
        for tree in TREES:
            for clock in CLOCKS:
                found.times.setdefault(tree, {}).setdefault(f"import{clock}", []).extend(
                    row.times[tree][f"import{clock}"]
                )
    return found


def summary(rows: Sequence[Row]) -> list[str]:
    """What is slower by each clock, means, what could not be compared."""
    ran = [row for row in rows if not row.errors]
    out = []
    for clock, name in CLOCKS.items():
        found = [(row, what, row.estimate(what + clock)) for row in ran for what in MEASURED]
        slower = [f"\n  {label(row)} ({WHAT[what]}, {e.median:.2f})" for row, what, e in found if e.verdict == "slower"]
        unclear = sum(not e.decided for _, _, e in found)
        out.append(f"by {name} time {unclear} of {len(found)} are unclear, {len(slower)} slower" + "".join(slower))
    if ran:
        for clock, name in CLOCKS.items():
            means = [
                f"{WHAT[what]} {geometric_mean([row.estimate(what + clock).median for row in ran]):.3f}"
                for what in MEASURED
            ]
            means.append(f"import {_cells(imports(ran).estimate(f'import{clock}')).strip()}")
            out.append(f"geometric means, {name} time: " + ", ".join(means))
    for tree in TREES:
        failed = [f"{label(row)}: {row.errors[tree]}" for row in rows if tree in row.errors]
        if failed:
            out.append(f"the {tree} tree cannot run: {len(failed)}" + "".join(f"\n  {f}" for f in failed))
    different = [label(row) for row in rows if not row.same]
    if different:
        out.append(f"values differ: {', '.join(different)}")
    return out
