"""Cells of documentation pages show under the drop-in what they show under JAX; its messages may say more."""

from __future__ import annotations

import json
import re

import pytest

from .pages import CELLS
from .running import run

EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def outcomes():
    """What each cell shows, by cell: under JAX, and under the drop-in."""
    found = []
    for plain in (True, False):
        done = run("-m", "tests.compat.pages", plain=plain, **EIGHT)
        assert done.returncode == 0, done.stderr
        rows = map(json.loads, done.stdout.splitlines())
        found.append({(page, cell): lines for page, cell, lines in rows})
    return found


IMPORTED = "DeprecationWarning: jax.experimental.shard_map is deprecated"  # JAX says so once, when it is imported


def words(line: str) -> str:
    """A line without what tells of the process, of lines in JAX and of names of its functions."""
    line = re.sub(r"function '(_rem_singleton|<lambda>)'", "function", line)
    line = re.sub(r" at \S+\.py:\d+| This value became a tracer due to JAX operations on these lines:$", "", line)
    line = re.sub(r"np\.int64\((\d+)\)", r"\1", line)
    return re.sub(r"\d{9,}", "", line).strip()


@pytest.mark.parametrize(("page", "cell"), [(page, cell) for page, cells in CELLS.items() for cell in cells])
def test_cell(outcomes, page, cell):
    of_jax, ours = ([words(line) for line in rows[page, cell] if not line.startswith(IMPORTED)]
                     for rows in outcomes)
    if not re.match(r"\w+(Error|Exception): ", of_jax[0]):
        assert ours == of_jax
        return
    assert ours[0] == of_jax[0]
    # The frames where a value was made, and JAX's objects, are told of otherwise.
    otherwise = re.compile(r"$|-+$|When the value was created|<|This BatchTracer|operation \w+:")
    told = [x for x in of_jax if not otherwise.match(x)]
    assert [x for x in told if x not in ours] == []
