"""Common-subexpression elimination: of equal equations, the first stays.

    b:f32[] = sin a             b:f32[] = sin a
    c:f32[] = sin a        →    d:f32[] = add b b
    d:f32[] = add b c

What a `checkpoint` computes again on purpose is merged only with itself. A result that a `scan` gives twice of each
turn it gives once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arrays.backends import params_key
from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var, no_debug_info
from ...core.programs.traits import Control
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
        if eqn.primitive.traits.control is Control.SCAN:
            eqn, places = _rows_once(eqn)
            outs = self.merged(eqn, ins)
            return [outs[k] for k in places]
        return self.merged(eqn, ins)

    def merged(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Var]:
        atoms = tuple(_literal_key(a) if type(a) is Literal else a for a in ins)
        params = params_key(eqn.params), tuple(map(type, eqn.params.values()))  # 1 and True are equal keys
        key = (eqn.primitive, atoms, params, tuple(v.aval for v in eqn.outvars))
        found = self.computed.get(key)
        if found is None:
            found = self.computed[key] = self.add(eqn, ins)
        return found


def _rows_once(eqn: JaxprEqn) -> tuple[JaxprEqn, list[int]]:
    """A scan with one result for those that are the same at each turn, and which of its results each one was."""
    jaxpr, carries = eqn.params["jaxpr"].jaxpr, eqn.params["num_carry"]
    first: dict[Any, int] = {}
    for k, v in enumerate(jaxpr.outvars):
        first.setdefault(k if k < carries or type(v) is Literal else v, k)
    stay = list(first.values())
    if len(stay) == len(jaxpr.outvars):
        return eqn, stay
    closed = ClosedJaxpr(jaxpr.replace(outvars=[jaxpr.outvars[k] for k in stay], debug_info=no_debug_info),
                         eqn.params["jaxpr"].consts)
    place = {k: j for j, k in enumerate(stay)}
    return eqn.replace(outvars=[eqn.outvars[k] for k in stay], params={**eqn.params, "jaxpr": closed}), [
        place[k] if k in place else place[first[v]] for k, v in enumerate(jaxpr.outvars)]


def _literal_key(a: Literal) -> Any:
    value = np.asarray(a.val)
    return value.tobytes(), value.dtype, a.aval.dtype, a.aval.weak_type
