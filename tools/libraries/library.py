"""What is known of a library: its pinned version, where its tests are, which are left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Library:
    """A row. Patterns are globs under the folder of the source distribution."""

    title: str
    distribution: str
    version: str
    tests: tuple[str, ...] = ()
    omitted: Mapping[str, str] = field(default_factory=dict)  # pattern of files to the reason
    every: int = 1  # of the files in the order of their names, each such one is run
    limit: int = 300  # seconds for a file
    devices: int = 1  # of the host
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment
    needs: tuple[str, ...] = ()  # further distributions that the tests import
    wheel: bool = False  # the tests lie in the wheel
    examples: str = ""  # no tests can be had: the file under examples/ that stands for them

    @property
    def name(self) -> str:
        return self.title.lower().replace(" ", "-")

    @property
    def requirement(self) -> str:
        return f"{self.distribution}=={self.version}"

    def files(self, source: Path) -> list[str]:
        """The files of tests to run, relative to the folder of the sources."""
        if self.examples:
            return [self.examples]
        found = {path for pattern in self.tests for path in source.glob(pattern)}
        found -= {path for pattern in self.omitted for path in source.glob(pattern)}
        return sorted(str(path.relative_to(source)) for path in found)[:: self.every]
