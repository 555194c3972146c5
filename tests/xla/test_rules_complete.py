"""Every primitive has a way to XLA: which ones have none, and why."""

from __future__ import annotations

from styrax.core.programs import rules
from styrax.core.types.physical import physicals
from tools.primitives import primitives, runs_at_once

DISCHARGED = "references have become values before a program is printed"
REMAINDER = {
    "addupdate": DISCHARGED, "freeze": DISCHARGED, "get": DISCHARGED, "new_ref": DISCHARGED, "swap": DISCHARGED,
}


def has_a_way(p):
    """A rule, a program inside that is printed in its place, or a rewriting onto the plain arrays behind keys."""
    return p in rules.stablehlos or p.traits.program is not None or p in physicals


def test_all_primitives_have_a_way():
    assert {p.name for p in primitives() if not runs_at_once(p) and not has_a_way(p)} == REMAINDER.keys()
