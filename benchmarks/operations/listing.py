"""The lines that are printed: one for each row, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import geometric_mean
from .comparison import OURS, Row

NAME = 56
WIDTH = 11


def heading(base: str) -> str:
    columns = ["steady", f"{OURS} µs", f"{base} µs", "first", f"{OURS} ms", f"{base} ms"]
    return f"{'time divided by that of ' + base:<{NAME + 5}}" + "".join(f"{c:>{WIDTH}}" for c in columns) + "   notes"


def line(row: Row) -> str:
    cells = []
    for what, scale in (("steady", 1e6), ("first", 1e3)):
        ratio = row.ratio(OURS, what)
        cells.append("–" if ratio is None else f"{ratio:.2f}")
        for engine in (OURS, row.base):
            time = row.median(engine, what)
            cells.append("–" if time is None else f"{time * scale:.1f}")
    return f"{row.number:>4} {row.name:<{NAME}}" + "".join(f"{c:>{WIDTH}}" for c in cells) + "   " + notes(row)


def notes(row: Row) -> str:
    return "; ".join([*row.notes, *(f"{engine}: {error}" for engine, error in row.errors.items())])


def summary(rows: Sequence[Row]) -> list[str]:
    """How many rows there were, means, and the rows that somebody has to look at."""
    measured = [row for row in rows if not row.left_out]
    neither = [row for row in measured if len(row.errors) == 2]
    failed = [row for row in measured if len(row.errors) == 1]
    out = [
        f"{len(measured)} rows, {len(rows) - len(measured)} left out in this mode; "
        f"{len(failed)} run in one engine only, {len(neither)} in neither"
    ]
    for what in ("steady", "first"):
        found = [(ratio, row) for row in measured if (ratio := row.ratio(OURS, what)) is not None]
        mean = geometric_mean([ratio for ratio, _ in found])
        if mean is None:
            continue
        above = sorted(((ratio, row) for ratio, row in found if ratio > 1), key=lambda pair: -pair[0])
        out.append(f"{what}: geometric mean {mean:.3f}; above 1: {len(above)} of {len(found)}")
        out += [f"  {ratio:6.2f}  {row.number:>4} {row.name}" for ratio, row in above]
    for title, chosen in (
        ("results differ", [row for row in measured if row.differs]),
        ("run in one engine only", failed),
        ("run in neither", neither),
    ):
        if chosen:
            out.append(f"{title}: {len(chosen)}")
            out += [f"  {row.number:>4} {row.name}: {notes(row)}" for row in chosen]
    return out
