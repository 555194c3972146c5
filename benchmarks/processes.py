"""Processes that measure: started with an engine's settings, then asked for series of calls."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def program(
    workload: Workload,
    shape: Shape,
    engine: str,
    settings: Settings,
    cache: Path,
    output: Path,
    keep: bool = False,
    source: Path = ROOT / "src",
) -> tuple[list[str], dict[str, str]]:
    """The command that measures, and its environment; `source` has the package `styrax`."""
    environment = surroundings(settings, source)
    environment["STYRAX_CACHE_DIR"] = str(cache)
    if engine == "jax" and keep:
        environment["JAX_COMPILATION_CACHE_DIR"] = str(cache)
        environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        environment["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    launcher = ["-m", "styrax"] if engine == "styrax" else []
    kind = engine if engine in ("numpy", "torch") else "program"
    command = [sys.executable, *launcher, str(CHILD), kind, workload.family, workload.name]
    command += [json.dumps(shape), str(settings.seed), str(output)]
    return command, environment


def surroundings(settings: Settings, source: Path = ROOT / "src") -> dict[str, str]:
    """The environment of a process that measures; `source` has the package `styrax`."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have their bytecode, a checkout gets it here
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(source), str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    )
    environment["JAX_PLATFORMS"] = "cpu"
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        environment[variable] = str(len(settings.cores))
    return environment


LOOK = 1e-2  # seconds between two looks at what a process has used, which the system counts in ticks
RESTLESS = 0.5  # seconds after which others do not wait for it any longer


class Process:
    """A measuring process: what it found at its start, then series of calls on demand.

    Raises `Failed` where it does not finish, and where `import jax` gives another package than it is to measure.
    """

    __slots__ = ("_errors", "_process", "_tasks", "_timeout", "_timer", "found")

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        settings: Settings,
        right: Callable[[Path], bool] = lambda module: True,
    ):
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            preexec_fn=settings.pin,
        )
        self._tasks = Path(f"/proc/{self._process.pid}/task")
        self._timer = threading.Timer(settings.timeout, self._process.kill)
        self._timer.start()
        self._timeout = settings.timeout
        try:
            self.found: dict[str, Any] = self._line()
            if not right(Path(self.found["module"])):
                raise Failed(f"`import jax` gave {self.found['module']}")
        except BaseException:
            self.close()
            raise

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            lines = self._errors.read().strip().splitlines()
            if status == -signal.SIGKILL:
                raise Failed("was killed, or took longer than allowed")
            raise Failed(lines[-1] if lines else f"exit status {status}")
        return json.loads(line)

    def ask(self, text: str) -> Any:
        """What the process answers to a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{text}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # `_line` tells why
        return self._line()

    def series(self, number: int) -> tuple[float, float]:
        wall, cpu = self.ask(str(number))
        self._rest()
        return wall, cpu

    def _rest(self) -> None:
        """Waits until the threads of the process rest: those of some libraries turn in place for long after their last
        work, on cores that the next process is to have."""
        end = time.monotonic() + RESTLESS
        used = self._used()
        while time.monotonic() < end:
            time.sleep(LOOK)
            before, used = used, self._used()
            if used - before < LOOK / 10:
                return

    def _used(self) -> float:
        """Seconds that cores have spent on the process's threads, where the system tells."""
        try:
            return sum(int(path.read_text().split()[0]) for path in self._tasks.glob("*/schedstat")) / 1e9
        except (OSError, ValueError, IndexError):  # also: a thread has ended meanwhile
            return 0.0

    def more_time(self) -> None:
        """From now on it may take as long again as was allowed for all."""
        self.any_time()
        self._timer = threading.Timer(self._timeout, self._process.kill)
        self._timer.start()

    def any_time(self) -> None:
        """It may take as long as it likes, until `more_time` says otherwise."""
        self._timer.cancel()

    def close(self) -> None:
        """Ends the process, once."""
        if self._process.stdout is not None and not self._process.stdout.closed:
            self._process.communicate()
        self._timer.cancel()
        self._errors.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
