"""What lists of statements touch, found once for each: every loop asks, and those around it have asked before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..compile.ir.loads import loads_of
from ..compile.ir.loopir import Buffer, Statement, Store, written
from .prefetching import is_far


class Touched:
    """For one program. `root` is the buffer that has another's memory."""

    def __init__(self, root: Callable[[Buffer], Buffer]):
        self._root = root
        # By identity, of lists that are kept with what was found: another one has another.
        self._written: dict[int, tuple[Sequence[Statement], frozenset[Buffer]]] = {}
        self._scattered: dict[int, tuple[Sequence[Statement], bool]] = {}

    def writes(self, body: Sequence[Statement]) -> frozenset[Buffer]:
        """The memory that statements write."""
        known = self._written.get(id(body))
        if known is None:
            out: set[Buffer] = set()
            for s in body:
                out.update(map(self._root, written(s)))
                for inner in s.bodies():
                    out |= self.writes(inner)
            known = self._written[id(body)] = body, frozenset(out)
        return known[1]

    def scattered(self, body: Sequence[Statement]) -> bool:
        """Whether statements reach far memory by numbers that they read: `x[i[k]]`."""
        known = self._scattered.get(id(body))
        if known is None:
            found = any(_is_scattered(s) or any(map(self.scattered, s.bodies())) for s in body)
            known = self._scattered[id(body)] = body, found
        return known[1]


def _is_scattered(s: Statement) -> bool:
    if isinstance(s, Store) and s.offset.reads and is_far(s.buffer):
        return True
    roots = [e for e in s.exprs() if any(map(is_far, e.reads))]
    return any(n.op == "load" and n.args[0].reads and is_far(n.attr[0]) for n in loads_of(roots))
