"""Common-subexpression elimination: of equal equations, the first stays.

    b:f32[] = sin a             b:f32[] = sin a
    c:f32[] = sin a        →    d:f32[] = add b b
    d:f32[] = add b c

What a `checkpoint` computes again on purpose is merged only with itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arrays.backends import params_key
from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from .rewriting import Rewriting, is_pure, map_programs


def merge_equal(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with nothing computed twice; loops and branches each by themselves."""
    return _Merging().run(closed)


class _Merging(Rewriting):
    def __init__(self) -> None:
        super().__init__()
        self.computed: dict[Any, Sequence[Var]] = {}

    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        eqn = map_programs(eqn, merge_equal)
        if not is_pure(eqn):
            return self.add(eqn, ins)
        atoms = tuple(_literal_key(a) if type(a) is Literal else a for a in ins)
        params = params_key(eqn.params), tuple(map(type, eqn.params.values()))  # 1 and True are equal keys
        key = (eqn.primitive, atoms, params, tuple(v.aval for v in eqn.outvars))
        found = self.computed.get(key)
        if found is None:
            found = self.computed[key] = self.add(eqn, ins)
        return found


def _literal_key(a: Literal) -> Any:
    value = np.asarray(a.val)
    return value.tobytes(), value.dtype, a.aval.dtype, a.aval.weak_type
