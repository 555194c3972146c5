"""The table of docs/libraries.md, from the committed lists."""

from __future__ import annotations

from collections.abc import Iterable

from tools.libraries import passing
from tools.libraries.environment import ROOT
from tools.libraries.library import Library
from tools.libraries.passing import File, Time
from tools.libraries.table import LIBRARIES

DOCUMENT = ROOT / "docs" / "libraries.md"
BEGIN, END = "<!-- made by `make libraries` -->\n", "<!-- end -->\n"
HEADS = ("library", "version", "sample", "pass under JAX", "of these under Styrax", "%", "seconds", "JAX: seconds")


def _sample(library: Library, files: int) -> str:
    if library.examples:
        return "documented examples"
    return f"{files} files" + (f", of {library.every} each the first" if library.every > 1 else "")


def _seconds(times: Iterable[Time]) -> str:
    times = list(times)
    return f"{'≥ ' if any(t.ended for t in times) else ''}{sum(t.seconds for t in times):.0f}"


def _row(library: Library, files: list[File]) -> tuple[str, ...]:
    jax, ours = (sum(counts.total() for counts in each) for each in zip(*((f.jax, f.ours) for f in files)))
    return (library.title, library.version, _sample(library, len(files)), str(jax), str(ours),
            f"{100 * ours / jax:.1f}" if jax else "–", _seconds(f.time for f in files),
            _seconds(f.jax_time for f in files))


def table() -> str:
    """The table; libraries that were not measured are not in it."""
    lines = [HEADS, ("---",) * len(HEADS)]
    for library in LIBRARIES.values():
        if files := list(passing.load(library).values()):
            lines.append(_row(library, files))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def written(document: str) -> str:
    """The document with the table of now between its two marks."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"
