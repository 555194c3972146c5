"""Starts the processes that measure, in pairs, and puts what they find together."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .workloads.catalog import Shape, Workload

ROOT = Path(__file__).resolve().parent.parent
CHILD = Path(__file__).with_name("child.py")


class Failed(Exception):
    """A measuring process did not finish."""


class Settings:
    """How to measure: which engines, how often, how long, on how many cores."""

    __slots__ = ("cores", "engines", "pairs", "seconds", "seed", "timeout", "warm")

    def __init__(
        self,
        engines: list[str],
        *,
        pairs: int,
        seconds: float,
        cores: int,
        seed: int,
        warm: bool,
        timeout: float,
    ):
        self.engines = engines
        self.pairs = pairs
        self.seconds = seconds
        self.cores = sorted(os.sched_getaffinity(0))[:cores]
        self.seed = seed
        self.warm = warm
        self.timeout = timeout

    def pin(self) -> None:
        """Keeps this process on the cores."""
        os.sched_setaffinity(0, self.cores)


class Row:
    """What was found for one workload at one shape: per engine the times of each pair."""

    __slots__ = ("errors", "matches", "name", "shape", "times")

    def __init__(self, name: str, shape: Shape):
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
        """The median, over pairs, of an engine's time divided by JAX's in the same pair."""
        ours = self.times.get(engine, {}).get(what)
        theirs = self.times.get("jax", {}).get(what)
        if not ours or not theirs:
            return None
        return statistics.median(a / b for a, b in zip(ours, theirs, strict=False))


def measure(workload: Workload, shape: Shape, settings: Settings) -> Row:
    """Runs the engines in alternation, each in processes of its own with empty caches."""
    row = Row(workload.name, shape)
    engines = [e for e in settings.engines if e not in ("numpy", "torch") or getattr(workload, e)]
    results: dict[str, Path] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for pair in range(settings.pairs):
            order = engines if pair % 2 == 0 else engines[::-1]
            for engine in order:
                if engine in row.errors:
                    continue
                cache = Path(scratch) / f"cache-{engine}-{pair}"
                output = Path(scratch) / f"{engine}-{pair}.npz"
                try:
                    found = _start(workload, shape, engine, settings, cache, output, settings.seconds)
                    row.add(engine, found, {key: key for key in ("import", "first", "start", "steady")})
                    results[engine] = output
                    if settings.warm and engine in ("styrax", "jax"):
                        found = _warm(workload, shape, engine, settings, cache, scratch)
                        row.add(engine, found, {"start": "warm"})
                except Failed as error:
                    row.errors[engine] = str(error)
        if "jax" in results:
            for engine, path in results.items():
                if engine != "jax":
                    row.matches[engine] = agree(path, results["jax"], workload.tolerance)
    return row


def _warm(
    workload: Workload, shape: Shape, engine: str, settings: Settings, cache: Path, scratch: str
) -> dict[str, Any]:
    """A start that finds compiled programs on disk. JAX keeps them only where it is told to."""
    output = Path(scratch) / "warm.npz"
    if engine == "jax":
        _start(workload, shape, engine, settings, cache, output, 0.0, keep=True)
    return _start(workload, shape, engine, settings, cache, output, 0.0, keep=True)


def _start(
    workload: Workload,
    shape: Shape,
    engine: str,
    settings: Settings,
    cache: Path,
    output: Path,
    seconds: float,
    keep: bool = False,
) -> dict[str, Any]:
    command, environment = program(workload, shape, engine, settings, cache, output, str(seconds), keep)
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=settings.timeout,
            preexec_fn=settings.pin,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"took longer than {settings.timeout:.0f} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise Failed(lines[-1] if lines else f"exit status {done.returncode}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if engine in ("styrax", "jax") and ("styrax" in Path(found["module"]).parts) != (engine == "styrax"):
        raise Failed(f"`import jax` gave {found['module']}")
    return found


def program(
    workload: Workload,
    shape: Shape,
    engine: str,
    settings: Settings,
    cache: Path,
    output: Path,
    seconds: str,
    keep: bool = False,
    source: Path = ROOT / "src",
) -> tuple[list[str], dict[str, str]]:
    """The command that measures, and its environment; `source` has the package `styrax`."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have their bytecode, a checkout gets it here
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(source), str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    )
    environment["STYRAX_CACHE_DIR"] = str(cache)
    environment["JAX_PLATFORMS"] = "cpu"
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        environment[variable] = str(len(settings.cores))
    if engine == "jax" and keep:
        environment["JAX_COMPILATION_CACHE_DIR"] = str(cache)
        environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        environment["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    launcher = ["-m", "styrax"] if engine == "styrax" else []
    kind = engine if engine in ("numpy", "torch") else "program"
    command = [sys.executable, *launcher, str(CHILD), kind, workload.family, workload.name]
    command += [json.dumps(shape), str(settings.seed), seconds, str(output)]
    return command, environment


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
