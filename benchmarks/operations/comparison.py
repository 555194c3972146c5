"""Two processes, one with each engine, which live through the table and take turns in each row."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import runner
from ..processes import ROOT, Failed, Process, Settings, surroundings

OURS, JAX, OTHER = "styrax", "jax", "other"
TOLERANCES = {"float64": 1e-9, "complex128": 1e-9, "float16": 1e-2, "bfloat16": 6e-2}
SINGLE_TOLERANCE = 2e-4
FLOATS = ("float", "complex", "bfloat")
LEAST = 0.1  # of the largest element of all results, to which a result's differences are relative at least


class Row(runner.Row):
    """What was found for an operation: times, and what there is to say of its results."""

    __slots__ = ("left_out", "notes", "number")

    def __init__(self, number: int, name: str, base: str):
        super().__init__(name, (), base)
        self.number = number
        self.notes: list[str] = []
        self.left_out = ""

    @property
    def differs(self) -> bool:
        return bool(self.notes)


class RowFailed(Failed):
    """A row does not run in an engine, which can go on with the next one."""


class Engine:
    """A process with an engine, started again where it is lost."""

    __slots__ = ("_command", "_environment", "_process", "_right", "_settings", "name")

    def __init__(self, name: str, settings: Settings, mode: str, odd: bool, source: Path):
        launcher = [] if name == JAX else ["-m", "styrax"]
        self.name = name
        self._command = [sys.executable, *launcher, "-m", "benchmarks.operations.child"]
        self._command += [mode, "odd" if odd else "as said", str(settings.seed)]
        self._environment = surroundings(settings, source)
        self._environment["STYRAX_CACHE"] = "0"  # each first call compiles
        self._settings = settings
        self._right: Callable[[Path], bool] = lambda module: module.is_relative_to(source) == (name != JAX)
        self._process: Process | None = None

    def process(self) -> Process:
        if self._process is None:
            self._process = Process(self._command, self._environment, self._settings, self._right)
            self._process.any_time()
        return self._process

    def ask(self, text: str) -> Any:
        """The answer to a line. Raises `RowFailed` where it is an error, and where there is none in time."""
        process = self.process()
        process.more_time()
        begin = time.monotonic()
        try:
            answer = process.ask(text)
        except Failed as error:
            self.close()
            timed_out = time.monotonic() - begin >= 0.9 * self._settings.timeout
            raise RowFailed("timed out" if timed_out else f"the process ended: {error}") from None
        process.any_time()  # while it waits for its turn
        if isinstance(answer, dict) and "error" in answer:
            raise RowFailed(answer["error"])
        return answer

    def begin(self, row: str, output: Path) -> dict[str, Any]:
        return self.ask(json.dumps({"row": row, "output": str(output)}))

    def series(self, number: int) -> tuple[float, float]:
        wall, cpu = self.ask(str(number))
        return wall, cpu

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


def compare(
    names: Sequence[str], start: int, settings: Settings, mode: str, odd: bool, quick: bool, other: Path | None
) -> Iterator[Row]:
    """Rows whose names have one of `names` in them, from the table's `start`-th on, as they are measured."""
    base = OTHER if other else JAX
    sources = {OURS: ROOT / "src", base: other or ROOT / "src"}
    engines = [Engine(name, settings, mode, odd, source) for name, source in sources.items()]
    wanted = [name.lower() for name in names] or [""]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for number, described in enumerate(engines[0].process().found["rows"], 1):
                if number < start or not any(name in described["name"].lower() for name in wanted):
                    continue
                row = Row(number, described["name"], base)
                measure(row, described, engines if number % 2 else engines[::-1], settings, quick, Path(scratch))
                yield row
    finally:
        for engine in engines:
            engine.close()


def measure(
    row: Row, described: dict[str, Any], engines: list[Engine], settings: Settings, quick: bool, scratch: Path
) -> None:
    """First calls, then series of calls in turns."""
    types: dict[str, list[str]] = {}
    for engine in engines:
        try:
            found = engine.begin(row.name, scratch / f"{engine.name}.npz")
        except RowFailed as error:
            row.errors[engine.name] = str(error)
            continue
        if "left out" in found:
            row.left_out = found["left out"]
            continue
        types[engine.name] = found["types"]
        row.add(engine.name, found, {"first": "first"})
    if row.left_out or row.errors:
        return
    row.notes += differences(
        scratch / f"{OURS}.npz", scratch / f"{row.base}.npz", types[OURS], types[row.base],
        described["signless"], described["loose"],
    )  # fmt: skip
    series = {engine.name: failing_as(row, engine) for engine in engines}
    try:
        runner.steady(row, series, 0.0 if quick else settings.seconds, 1 if quick else runner.TURNS)
    except RowFailed:
        row.times = {engine: {"first": times["first"]} for engine, times in row.times.items()}


def failing_as(row: Row, engine: Engine) -> Callable[[int], tuple[float, float]]:
    """An engine's series; where one fails, the row says of which engine it was."""

    def series(number: int) -> tuple[float, float]:
        try:
            return engine.series(number)
        except RowFailed as error:
            row.errors[engine.name] = str(error)
            raise

    return series


def differences(
    path: Path, reference: Path, types: list[str], expected: list[str], signless: bool, loose: float
) -> list[str]:
    """What there is to say of results that differ."""
    if types != expected:
        return [f"gives {', '.join(types)} and not {', '.join(expected)}"]
    found = []
    with np.load(path) as ours, np.load(reference) as theirs:
        pairs = [(ours[f"a{i}"], theirs[f"a{i}"]) for i in range(len(types))]
    if signless:
        pairs = [(np.abs(a), np.abs(b)) for a, b in pairs]
    floats = [b for (_, b), type in zip(pairs, types) if type.startswith(FLOATS)]
    # A result may be nothing but the rounding of what another one is made of.
    least = LEAST * max(map(largest, floats), default=0.0)
    for i, ((a, b), type) in enumerate(zip(pairs, types)):
        said = difference(a, b, type, loose, least)
        if said:
            found.append(f"result {i} {said}" if len(types) > 1 else said)
    return found


def largest(x: np.ndarray) -> float:
    return float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0))


def difference(a: np.ndarray, b: np.ndarray, type: str, loose: float, least: float = 0.0) -> str:
    """How an array differs from another, relative to the largest element, or `least`; empty where it does not."""
    name = type.partition("[")[0]
    if not name.startswith(FLOATS):
        wrong = np.mean(a != b) if a.size else 0.0
        return f"differs in {100 * wrong:.2g} % of its elements" if wrong else ""
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "differs in where it is NaN"
    infinite = ~np.isfinite(b) & ~np.isnan(b)
    if not np.array_equal(infinite, ~np.isfinite(a) & ~np.isnan(a)) or np.any(a[infinite] != b[infinite]):
        return "differs in where it is infinite"
    finite = np.isfinite(b)
    a, b = a[finite].astype(np.complex128), b[finite].astype(np.complex128)
    relative = largest(a - b) / max(largest(b), least, 1e-30)
    return f"differs by {relative:.1e}" if relative > loose * TOLERANCES.get(name, SINGLE_TOLERANCE) else ""
