"""Mistakes raise what they raise under JAX, with tracebacks that are no longer."""

from __future__ import annotations

import json

import pytest

from .misuses import TABLE
from .running import lines


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], tuple[list, list]]:
    """What each program raises: under JAX, and under the drop-in."""
    found = [{(family, program): result for family, program, *result in map(json.loads, lines(
        "-m", "tests.compat.misuses", plain=plain, JAX_TRACEBACK_FILTERING="auto"))} for plain in (True, False)]
    return {row: (wanted, found[1][row]) for row, wanted in found[0].items()}


@pytest.mark.parametrize(("family", "program"), [(f, p) for f, programs in TABLE.items() for p in programs])
def test_misuse(outcomes, family, program):
    (wanted, longest, most), (found, length, frames) = outcomes[family, program]
    assert found == wanted
    # (how many lines Python prints for a frame depends on its release and on how a call is laid out)
    assert length <= longest or frames <= most
