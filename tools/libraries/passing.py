"""The committed lists: for each file of tests the test functions with the number of cases that pass.

    optax/_src/base_test.py 11.2 s, 3.4 s under JAX
      BaseTest.test_tree 12
      BaseTest.test_state 3 of 4

Four cases of the last pass under JAX, three of them under Styrax. What does not pass under JAX is not listed. A time
with `+` was ended by the limit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.libraries.library import Library
from tools.libraries.run import Outcome

FOLDER = Path(__file__).parent / "lists"


@dataclass(frozen=True)
class Time:
    seconds: float
    ended: bool = False

    def __str__(self) -> str:
        return f"{self.seconds:.1f}{'+' if self.ended else ''} s"


@dataclass(frozen=True)
class File:
    """What passes of a file: cases by test function under JAX, and how many of them under Styrax."""

    jax: Counter[str]
    ours: Counter[str]
    jax_time: Time
    time: Time

    @classmethod
    def of(cls, ours: Outcome, jax: Outcome) -> File:
        return cls(jax.passed, ours.passed & jax.passed, Time(jax.seconds, jax.ended), Time(ours.seconds, ours.ended))

    def lost(self, now: Outcome) -> dict[str, tuple[int, int]]:
        """The functions of which fewer cases pass now: how many did, how many do."""
        return {name: (count, now.passed[name]) for name, count in self.ours.items() if now.passed[name] < count}


Files = Mapping[str, File]


def _path(library: Library) -> Path:
    return FOLDER / f"{library.name}.txt"


def text(files: Files) -> str:
    lines = []
    for name, file in sorted(files.items()):
        lines.append(f"{name} {file.time}, {file.jax_time} under JAX")
        for function, count in sorted(file.jax.items()):
            lines.append(f"  {function} " + (f"{count}" if (n := file.ours[function]) == count else f"{n} of {count}"))
    return "".join(line + "\n" for line in lines)


_HEAD = re.compile(r"(\S+) ([\d.]+)(\+?) s, ([\d.]+)(\+?) s under JAX")
_FUNCTION = re.compile(r"  (.+?) (\d+)(?: of (\d+))?")


def parse(document: str) -> dict[str, File]:
    files: dict[str, File] = {}
    for line in document.splitlines():
        if head := _HEAD.fullmatch(line):
            name, seconds, ended, jax_seconds, jax_ended = head.groups()
            times = Time(float(jax_seconds), bool(jax_ended)), Time(float(seconds), bool(ended))
            files[name] = file = File(Counter(), Counter(), *times)
        elif entry := _FUNCTION.fullmatch(line):
            function, ours, jax = entry.groups()
            file.jax[function], file.ours[function] = int(jax or ours), int(ours)
        else:
            raise ValueError(f"neither a file nor a test function: {line!r}")
    return files


def load(library: Library) -> dict[str, File]:
    path = _path(library)
    return parse(path.read_text()) if path.exists() else {}


def save(library: Library, files: Files) -> None:
    _path(library).write_text(text(files))
