"""Which loops' code is written more than once: short loops turn by turn, nests with and without a mask."""

from __future__ import annotations

from collections.abc import Sequence

from ..compile import costs
from ..compile.ir.loopir import Fold, Open, Statement, Store, Together, statements
from ..compile.registers import is_avx512

FEW_TURNS, WRITTEN_OUT = 4, 32  # turns of a vector loop, and their estimated instructions, that are written out
WRITTEN_TWICE = 8  # estimated instructions up to which a nest is written twice,
UNMASKED = 160  # and where what is computed under a mask takes twice as long


def written_out(body: Sequence[Statement], turns: int) -> bool:
    """Whether a vector loop has so few turns, and so little in them, that they are written one after the other."""
    return (turns <= FEW_TURNS and turns * costs.size(body) <= WRITTEN_OUT
            and all(isinstance(s, (Store, Fold, Together)) for s in body))


def has_own_sums(body: Sequence[Statement]) -> bool:
    """Whether a loop folds into no accumulator from outside, which has lanes of its own: it may run in fewer."""
    inside = list(statements(body))
    opened = {s.accumulator for s in inside if isinstance(s, Open)}
    return all(s.accumulator in opened for s in inside if isinstance(s, Fold))


def written_twice(body: Sequence[Statement], static: bool, vector_bytes: int) -> bool:
    """Whether a nest's whole vectors have code of their own, without the mask of the last one."""
    if not is_avx512(vector_bytes):
        return costs.size(body) <= UNMASKED
    return static and costs.size(body) <= WRITTEN_TWICE
