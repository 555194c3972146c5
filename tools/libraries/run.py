"""One file of tests in a process of its own, and what its report says of each test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as xml
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tools.libraries.environment import ROOT, python, source
from tools.libraries.library import Library

OURS, JAX = "styrax", "jax"
OPTIONS = ("-q", "-p", "no:cacheprovider", "-o", "addopts=", "--no-header", "--tb=short", "-rfE")
GRACE = 30  # seconds for the report, after the interrupt at the limit


@dataclass(frozen=True)
class Outcome:
    """What ran: cases that passed by test function, the names of cases that did not, seconds."""

    passed: Counter[str]
    failed: tuple[str, ...]
    seconds: float
    ended: bool = False  # by the limit


def report(library: Library, file: str, under: str, folder: Path) -> Path:
    return folder / "results" / under / library.name / (file.replace("/", ".").removesuffix(".py") + ".xml")


def _environment(library: Library, under: str, folder: Path) -> dict[str, str]:
    devices = f"--xla_force_host_platform_device_count={library.devices}" if library.devices > 1 else ""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": devices, "PYTHONDONTWRITEBYTECODE": "1",
                   **library.variables}
    environment.pop("PYTHONPATH", None)
    if under == OURS:
        environment |= {"PYTHONPATH": str(ROOT / "src"), "STYRAX_CACHE_DIR": str(folder / "cache")}
    return environment


def run(library: Library, file: str, under: str, folder: Path) -> Outcome:
    """Runs a file; the report is on disk afterwards, empty where the process left none."""
    out = report(library, file, under, folder)
    out.parent.mkdir(parents=True, exist_ok=True)
    drop_in = ["-m", "styrax"] if under == OURS else []
    command = ["nice", "-n", "5", str(python(folder)), *drop_in, "-m", "pytest", *OPTIONS, f"--junitxml={out}", file]
    begin = time.monotonic()
    with out.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(command, cwd=source(library, folder), stdout=log, stderr=log,
                                   env=_environment(library, under, folder), start_new_session=True)
        ended = False
        for kind, limit in ((signal.SIGINT, library.limit), (signal.SIGKILL, GRACE), (signal.SIGKILL, None)):
            try:
                process.wait(limit)
                break
            except subprocess.TimeoutExpired:
                ended = True
                os.killpg(process.pid, kind)
    seconds = time.monotonic() - begin
    root = xml.parse(out).getroot() if out.exists() else xml.Element("testsuites")
    root.attrib |= {"wall": f"{seconds:.1f}", "ended": str(int(ended))}
    xml.ElementTree(root).write(out)
    return _outcome(root, file)


def function(case: str) -> str:
    """The test function of a case: the name without parameters and without the numbers that absl adds."""
    return re.sub(r"\d+$", "", case.partition("[")[0])


def _outcome(root: xml.Element, file: str) -> Outcome:
    module = file.removesuffix(".py").replace("/", ".")
    states: dict[str, str] = {}
    for case in root.iter("testcase"):
        classes = case.get("classname", "").removeprefix(module).lstrip(".")
        if not case.get("name"):  # of the test in which the limit came
            continue
        name = f"{classes}.{case.get('name')}" if classes else case.get("name", "")
        state = next((e.tag for e in case if e.tag in ("failure", "error", "skipped")), "passed")
        # A case may have several entries, for its subtests or its teardown: one failure is enough.
        if states.get(name) not in ("failure", "error"):
            states[name] = state
    passed = Counter(function(name) for name, state in states.items() if state == "passed")
    failed = tuple(name for name, state in states.items() if state in ("failure", "error"))
    return Outcome(passed, failed, float(root.get("wall", "0")), root.get("ended") == "1")


def read(library: Library, file: str, under: str, folder: Path) -> Outcome | None:
    """The outcome of a file that has been run."""
    path = report(library, file, under, folder)
    return _outcome(xml.parse(path).getroot(), file) if path.exists() else None
