"""docs/primitives.md is what the rule tables say, and JAX lacks what it says that JAX lacks."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path

import pytest

from tools.primitives import COLUMNS, NONE, NOT_DEFINED, UNDEFINED, cell, primitives, runs_at_once
from tools.primitives import table as document

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "primitives.md"
GAPS = [(column, p) for column in COLUMNS for p in primitives() if cell(column, p) == NONE]


@functools.cache
def theirs() -> dict[str, list]:
    """JAX's primitives by name."""
    from jax._src import core

    for name in ("checkify", "export.shape_poly", "lax.special", "random.core"):
        importlib.import_module(f"jax._src.{name}")
    found: dict[str, list] = {}
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("jax._src")]
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, core.Primitive) and value not in found.setdefault(value.name, []):
                found[value.name].append(value)
    return found


def has_rule(column: str, primitive) -> bool:
    """Whether JAX has a rule in the table that a column stands for."""
    from jax._src.interpreters import ad, batching, mlir

    lowerings = [mlir._lowerings, *mlir._platform_specific_lowerings.values()]
    tables = {
        "jvp": [ad.primitive_jvps],
        "linearize": [ad.primitive_jvps, ad.primitive_linearizations],
        "transpose": [ad.primitive_transposes, ad.fancy_transposes],
        "batching": [batching.fancy_primitive_batchers],
        "loops": lowerings,
        "StableHLO": lowerings,
    }[column]
    return any(primitive in t for t in tables)


def test_the_document_is_what_the_tables_say():
    assert DOCUMENT.read_text() == document(), "run `make docs`"


@pytest.mark.parametrize("column, p", GAPS, ids=[f"{column}-{p}" for column, p in GAPS])
def test_a_gap_is_one_of_jax(column, p):
    assert p.name in theirs(), f"JAX has no {p}: give it the rule, or the reason in NOT_DEFINED"
    assert not any(has_rule(column, q) for q in theirs()[p.name]), f"JAX has a rule: {column} of {p}"


def test_reasons_are_those_of_gaps():
    """What is excused would be a gap, and is not one that JAX has as well; every call at once is a call in JAX."""
    known = {p.name: p for p in primitives()}
    for column, name in NOT_DEFINED:
        assert cell(column, known[name]) == UNDEFINED and name not in theirs()
    assert {p.name for p in primitives() if runs_at_once(p)} == {"call", "closed_call"}
