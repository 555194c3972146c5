"""The table of ratios, their geometric means, and the plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from .runner import Row

COLUMNS = [
    # heading, engine, what is measured
    ("steady", "styrax", "steady"),
    ("first call", "styrax", "first"),
    ("cold start", "styrax", "start"),  # with the import and everything that is imported later
    ("warm start", "styrax", "warm"),  # the same with compiled programs on disk
    ("warm call", "styrax", "kept"),  # the first call then, without imports
    ("numpy", "numpy", "steady"),
    ("torch", "torch", "steady"),
]
WIDTH = 12
INTERVAL = 16  # what a steady ratio's interval takes more
CLIPPED = 0.1  # rows below count as this in the mean that no single row is to carry


STEADY = ("styrax", "steady")


def duration(seconds: float | None) -> str:
    """A time in the unit that suits it."""
    if seconds is None:
        return "–"
    for limit, unit, scale in ((1e-3, "µs", 1e6), (1.0, "ms", 1e3)):
        if seconds < limit:
            return f"{seconds * scale:.1f} {unit}"
    return f"{seconds:.2f} s"


def _shape_text(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def label(row: Row) -> str:
    return f"{row.name} [{_shape_text(row.shape)}]"


def heading(engines: Sequence[str]) -> str:
    columns = [f"{'JAX steady':>{WIDTH}}", f"{'JAX first':>{WIDTH}}"]
    for title, engine, what in COLUMNS:
        if engine in engines:
            columns.append(f"{title:>{WIDTH}}")
            if (engine, what) == STEADY:
                columns.append(f"{'95 % interval':>{INTERVAL}}")
    return f"{'time divided by that of JAX':<48}" + "".join(columns) + "   results"


def line(row: Row, engines: Sequence[str]) -> str:
    """One row of the table: JAX's times, then ratios to them."""
    cells = [f"{duration(row.median('jax', what)):>{WIDTH}}" for what in ("steady", "first")]
    for _, engine, what in COLUMNS:
        if engine in engines:
            ratio = row.ratio(engine, what)
            cells.append(f"{'–' if ratio is None else f'{ratio:.2f}':>{WIDTH}}")
            if (engine, what) == STEADY:
                found = row.interval(engine)
                cells.append(f"{'–' if found is None else f'[{found.low:.2f}, {found.high:.2f}]':>{INTERVAL}}")
    verdict = []
    for engine, same in row.matches.items():
        if not same:
            verdict.append(f"{engine} DIFFERS")
    verdict += [f"{engine}: {error}" for engine, error in row.errors.items()]
    if not verdict and row.matches:
        verdict = ["agree"]
    return f"{label(row):<48}" + "".join(cells) + "   " + "; ".join(verdict)


def geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def summary(rows: Sequence[Row], engines: Sequence[str]) -> list[str]:
    """The geometric mean of each column, and import times."""
    means = []
    for _, engine, what in COLUMNS:
        if engine in engines:
            ratios = [r for row in rows if (r := row.ratio(engine, what)) is not None]
            mean = geometric_mean(ratios)
            means.append(f"{'–' if mean is None else f'{mean:.2f}':>{WIDTH}}")
            means.append(" " * INTERVAL if (engine, what) == STEADY else "")
    lines = [f"{'geometric mean':<48}{'':>{2 * WIDTH}}" + "".join(means)]
    for engine in ("styrax", "jax"):
        imports = sorted(t for row in rows for t in row.times.get(engine, {}).get("import", []))
        if imports:
            lines.append(f"import under {engine}: {duration(imports[len(imports) // 2])}")
    for what, title in (("steady", "steady"), ("first", "first call")):
        found = [(row, r) for row in rows if (r := row.ratio("styrax", what)) is not None]
        if found:
            clipped = geometric_mean([max(r, CLIPPED) for _, r in found])
            above = [row for row, r in found if r > 1]
            lines.append(
                f"{title}: {len(found) - len(above)} of {len(found)} faster than JAX; geometric mean {clipped:.3f} "
                f"with rows below {CLIPPED} at {CLIPPED}; above 1: {', '.join(map(label, above)) or 'none'}"
            )
    slower = [label(row) for row in rows if (found := row.interval("styrax")) is not None and found.low > 1]
    lines.append(f"steady, 95 % interval above 1: {', '.join(slower) or 'none'}")
    return lines


def plot(rows: Sequence[Row], path: Path) -> bool:
    """Bars of the ratios of Styrax to JAX, steady state and first call, on a logarithmic axis.

    Returns whether there was anything to draw.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    series = [("steady", "steady state", "tab:blue"), ("first", "first call", "tab:orange")]
    engine = "styrax" if any("styrax" in row.times for row in rows) else "numpy"
    rows = [row for row in rows if row.ratio(engine, "steady") is not None]
    if not rows:
        return False
    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.32 * len(rows)), layout="constrained")
    height = 0.8 / len(series)
    for n, (what, title, colour) in enumerate(series):
        if engine == "numpy" and what == "first":
            continue
        ratios = [row.ratio(engine, what) or 1.0 for row in rows]
        places = [i + (n - 0.5) * height for i in range(len(rows))]
        axes.barh(places, [r - 1 for r in ratios], height, left=1, color=colour, label=title)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [label(row) for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(f"time of {engine} divided by time of JAX (left of 1: faster)")
    axes.legend(loc="best")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return True
