"""SLP vectorisation (superword-level parallelism): like functions of several scalars, side by side in the lanes of a
vector.

Where scalars stand for themselves (the carries of a scan, the parameters of a small model), a sine of each costs as
much as a sine of sixteen. Before, and after:

    out0[0] = sin(k0)
    out1[0] = sin(k1)

    pack sin(k0), sin(k1)
    out0[0] = sin(k0)
    out1[0] = sin(k1)

Larsen and Amarasinghe, Exploiting superword level parallelism with multimedia instruction sets (2000).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...core.types.index_type import ScalarType
from ..ir.expr import TRANSCENDENTAL, Expr, walk
from ..ir.loopir import Call, Close, Declare, Let, Loop, LoopKind, Pack, Set, Statement, Together, statements
from ..program import Program

FUNCTIONS = TRANSCENDENTAL | {"rsqrt"}
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
MEMORY = frozenset(("load", "transposed", "guard"))  # what is read must be read in its turn


def run(program: Program) -> Program:
    """Packs the functions of scalars in each list of statements that is not run in lanes."""
    vector_bytes = program.vector_bytes  # (`packed` holds itself: with the program, that would stay for long)

    def room(dtype: ScalarType) -> int:
        return vector_bytes // dtype.itemsize

    def packed(body: list[Statement]) -> list[Statement]:
        packs = plan(body, room)
        out: list[Statement] = []
        for i, s in enumerate(body):
            out += [Pack(nodes) for nodes in packs.get(i, ())]
            bodies = s.bodies()
            if bodies and not _in_lanes(s):
                new = [packed(inner) for inner in bodies]
                s = s if all(x is y for x, y in zip(bodies, new, strict=True)) else s.with_bodies(new)
            out.append(s)
        return body if len(out) == len(body) and all(x is y for x, y in zip(body, out, strict=True)) else out

    return program.with_statements(packed(program.statements))


def _in_lanes(s: Statement) -> bool:
    return isinstance(s, Together) or isinstance(s, Loop) and s.kind is LoopKind.VECTOR and s.width != 1


class Candidate:
    """Nodes of one function: all known from statement `ready` on, the first of them used by statement `wanted`."""

    __slots__ = ("nodes", "ready", "wanted")

    def __init__(self, node: Expr, ready: int, wanted: int):
        self.nodes = [node]
        self.ready, self.wanted = ready, wanted

    def take(self, node: Expr, ready: int, wanted: int, room: int) -> bool:
        first, last = max(self.ready, ready), min(self.wanted, wanted)
        if first > last or len(self.nodes) == room:
            return False
        self.nodes.append(node)
        self.ready, self.wanted = first, last
        return True


def plan(body: Sequence[Statement], room: Callable[[ScalarType], int]) -> dict[int, list[list[Expr]]]:
    """The packs of a list of statements by the statement that each stands before; `room` gives the lanes of a dtype."""
    if all(s.bodies() for s in body):
        return {}
    known: dict[Expr, int] = {}
    for i, s in enumerate(body):
        known.update(dict.fromkeys(_defined(s), i + 1))
    changing = {t for s in statements(body) if isinstance(s, Set) for t in s.targets}
    levels: dict[Expr, int | None] = {}  # functions inside functions; None for what depends on memory
    readiness: dict[Expr, int] = {}
    open_packs: dict[tuple, list[Candidate]] = {}
    for i, s in enumerate(body):
        if s.bodies():
            continue
        for n in walk(s.exprs()):
            if n in levels:
                continue
            inner = [levels[a] for a in n.args]
            if None in inner or n.op in MEMORY or n in changing:
                levels[n] = None
                continue
            level = max(inner, default=0)  # type: ignore[type-var]
            ready = max((readiness[a] for a in n.args), default=known.get(n, 0))
            if n.op in FUNCTIONS and n.dtype in FLOATS and n.args[0].dtype == n.dtype:
                level += 1  # type: ignore[operator]
                packs = open_packs.setdefault((n.op, n.dtype, level), [])
                for pack in packs:
                    if pack.take(n, ready, i, room(n.dtype)):
                        break
                else:
                    pack = Candidate(n, ready, i)
                    packs.append(pack)
            levels[n], readiness[n] = level, ready
    out: dict[int, list[list[Expr]]] = {}
    for key in sorted(open_packs, key=lambda key: key[2]):  # inner functions first
        for pack in open_packs[key]:
            if len(pack.nodes) > 1:
                out.setdefault(pack.wanted, []).append(pack.nodes)
    return out


def _defined(s: Statement) -> Sequence[Expr]:
    if isinstance(s, Let | Declare):
        return (s.target,)
    if isinstance(s, Close):
        return s.accumulator.targets
    return (s.result,) if isinstance(s, Call) and s.result is not None else ()

