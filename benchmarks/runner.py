"""Starts the processes that measure, in pairs, and puts what they find together."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from .intervals import Estimate, estimate
from .processes import Failed, Process, Settings, program
from .workloads.catalog import Shape, Workload

SERIES = 2e-3  # seconds that a series of calls takes at least
WARM = 5  # as many series of calls before one that counts
TURNS = 6  # of each engine in a pair of processes, at least: as many as an interval needs
MANY_TURNS = 40


class Row:
    """What was found for one workload at one shape: per engine the times of each pair."""

    __slots__ = ("base", "errors", "matches", "name", "shape", "times")

    def __init__(self, name: str, shape: Shape, base: str = "jax"):
        self.base = base  # the engine whose times the others' are divided by
        self.name = name
        self.shape = shape
        self.times: dict[str, dict[str, list[float]]] = {}
        self.matches: dict[str, bool] = {}
        self.errors: dict[str, str] = {}

    def add(self, engine: str, found: dict[str, Any], keys: dict[str, str]) -> None:
        times = self.times.setdefault(engine, {})
        for key, name in keys.items():
            times.setdefault(name, []).append(found[key])

    def median(self, engine: str, what: str) -> float | None:
        times = self.times.get(engine, {}).get(what)
        return statistics.median(times) if times else None

    def ratio(self, engine: str, what: str) -> float | None:
        """The median, over pairs, of an engine's time divided by the base's in the same pair."""
        ours = self.times.get(engine, {}).get(what)
        theirs = self.times.get(self.base, {}).get(what)
        if not ours or not theirs:
            return None
        return statistics.median(a / b for a, b in zip(ours, theirs, strict=False))

    def interval(self, engine: str) -> Estimate | None:
        """What the pairs of series say of an engine's steady time divided by the base's."""
        ours = self.times.get(engine, {}).get("steady")
        theirs = self.times.get(self.base, {}).get("steady")
        return estimate([a / b for a, b in zip(ours, theirs, strict=False)]) if ours and theirs else None


def measure(workload: Workload, shape: Shape, settings: Settings) -> Row:
    """Runs the engines in alternation, each in processes of its own with empty caches."""
    row = Row(workload.name, shape)
    engines = [e for e in settings.engines if e not in ("numpy", "torch") or getattr(workload, e)]
    results: dict[str, Path] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for pair in range(settings.pairs):
            order = [e for e in (engines if pair % 2 == 0 else engines[::-1]) if e not in row.errors]
            _pair(row, order, workload, shape, settings, Path(scratch) / str(pair), results)
        if "jax" in results:
            for engine, path in results.items():
                if engine != "jax":
                    row.matches[engine] = agree(path, results["jax"], workload.tolerance)
    return row


def _pair(
    row: Row,
    engines: list[str],
    workload: Workload,
    shape: Shape,
    settings: Settings,
    scratch: Path,
    results: dict[str, Path],
) -> None:
    """First calls with an empty cache each, calls in turns while all processes live, then starts from disk."""
    scratch.mkdir()
    with ExitStack() as stack:

        def start(engine: str, name: str, keep: bool = False) -> Process:
            output = scratch / f"{engine}-{name}.npz"
            command, environment = program(
                workload, shape, engine, settings, scratch / f"cache-{engine}", output, keep
            )
            own = engine != "jax"
            right = lambda module: engine in ("numpy", "torch") or ("styrax" in module.parts) == own
            process = stack.enter_context(Process(command, environment, settings, right))
            results.setdefault(engine, output)
            return process

        processes: dict[str, Process] = {}
        for engine in engines:
            try:
                processes[engine] = start(engine, "first")
                row.add(engine, processes[engine].found, {key: key for key in ("import", "first", "start")})
            except Failed as error:
                row.errors[engine] = str(error)
        try:
            steady(row, {engine: process.series for engine, process in processes.items()}, settings.seconds)
        except Failed as error:
            row.errors["steady"] = str(error)
        for process in processes.values():
            process.close()
        for engine in processes if settings.warm else ():
            if engine in ("styrax", "jax"):
                try:
                    if engine == "jax":  # which keeps programs only where it is told to
                        start(engine, "kept", keep=True).close()
                    warm = start(engine, "warm", keep=True)
                    row.add(engine, warm.found, {"start": "warm", "first": "kept"})
                    warm.close()
                except Failed as error:
                    row.errors[engine] = str(error)


def steady(
    row: Row, series: dict[str, Callable[[int], tuple[float, float]]], seconds: float, turns: int = TURNS
) -> None:
    """Series of calls of each engine in turns, A B B A …, until their share of `seconds` is over for each, and at least
    so many turns."""
    calls = dict.fromkeys(series, 1)
    for engine, run in series.items():
        while run(calls[engine])[0] < SERIES:
            calls[engine] *= 2
    end = time.monotonic() + seconds * len(series)
    turn = 0
    while turn < turns or time.monotonic() < end and turn < MANY_TURNS:
        for engine in series if turn % 2 == 0 else reversed(series):
            series[engine](WARM * calls[engine])  # brings its memory back into the caches, and wakes its threads
            row.add(engine, {"steady": series[engine](calls[engine])[0] / calls[engine]}, {"steady": "steady"})
        turn += 1


def agree(path: Path, reference: Path, tolerance: float) -> bool:
    """Whether two results have the same arrays up to `tolerance` of the largest element."""
    with np.load(path) as ours, np.load(reference) as theirs:
        if set(ours.files) != set(theirs.files):
            return False
        for name in ours.files:
            a, b = ours[name], theirs[name]
            if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
                return False
            scale = np.nanmax(np.abs(b), initial=0.0)
            if np.nanmax(np.abs(a - b), initial=0.0) > tolerance * max(scale, 1e-30):
                return False
    return True
