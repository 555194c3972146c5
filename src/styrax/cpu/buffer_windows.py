"""Windows: of a buffer, a nest sees what it reaches.

Nests that differ only in where their accesses begin, as those of steps written one by one, of slices and of a
transposed convolution's phases, are alike once each counts from the first element that it reaches: they have the same
form (`outlining.Form`), and one function serves them all. Before, and after:

    for i0 < 64 vector(16):
      t0[(448 + i0)] = sin(arg0[(128 + i0)])

    for i0 < 64 vector(16):
      w0[i0] = sin(w1[i0])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..compile.ir.expr import Arena, Expr, poly_terms
from ..compile.ir.loads import known_loads
from ..compile.ir.loopir import (
    Buffer,
    BufferKind,
    Close,
    Declare,
    Fold,
    If,
    Let,
    Loop,
    LoopKind,
    Open,
    Pack,
    Scratch,
    Set,
    Statement,
    Store,
    Together,
    rewrite,
    statements,
)

_REWRITTEN = (Store, Let, Declare, Set, Fold, If, Pack)  # whose expressions may read buffers
_PLAIN = (*_REWRITTEN, Loop, Open, Close, Scratch, Together)
Windows = dict[Buffer, tuple[Buffer, int]]  # by the buffer that has the memory: what stands for it, from which element


def windowed(nest: Loop, arena: Arena, root: Callable[[Buffer], Buffer]) -> tuple[Loop, Windows]:
    """The nest with windows in place of the buffers of which it reaches parts that begin and end at known places."""
    windows = {b: (Buffer(f"{b.name}w", b.dtype, last + 1 - first, b.kind, once=b.once), first)
               for b, (first, last) in _reached(nest, root).items() if first or last + 1 != b.size}
    if not windows:
        return nest, windows
    seen = frozenset([b for s in statements([nest]) for b in _buffers(s) if root(b) in windows])
    known: dict[Expr, Expr] = {}

    def moved(e: Expr, args: tuple[Expr, ...]) -> Expr:
        attr = e.attr
        if e.op == "load" and attr[0] in seen:
            window, first = windows[root(attr[0])]
            args, attr = (arena.iadd(args[0], -first),), (window, *attr[1:])
        return arena.node(e.op, args, e.dtype, attr, e.bounds)

    def at(e: Expr) -> Expr:
        return arena.substitute(e, {}, known, moved, seen)

    def change(s: Statement) -> list[Statement]:
        if isinstance(s, Store):
            window, first = windows.get(root(s.buffer), (s.buffer, 0))
            return [Store(window, arena.iadd(at(s.offset), -first), at(s.value))]
        if not isinstance(s, _REWRITTEN) or all(e.reads.isdisjoint(seen) for e in s.exprs()):
            return [s]
        if isinstance(s, Let):
            return [Let(s.target, at(s.value))]
        if isinstance(s, Declare):
            return [Declare(s.target, None if s.value is None else at(s.value))]
        if isinstance(s, Set):
            return [Set(s.targets, [at(e) for e in s.values])]
        if isinstance(s, Fold):
            return [Fold(s.accumulator, [at(e) for e in s.values])]
        if isinstance(s, If):
            return [If(at(s.condition), *s.bodies())]
        assert isinstance(s, Pack)
        return [Pack([at(e) for e in s.nodes])]

    (changed,) = rewrite([nest], change)
    assert isinstance(changed, Loop)
    return changed, windows


def _buffers(s: Statement) -> Sequence[Buffer]:
    """The buffers that a statement itself accesses."""
    read = [b for e in s.exprs() for b in e.reads]
    return [*read, s.buffer] if isinstance(s, Store) else read


def _reached(nest: Loop, root: Callable[[Buffer], Buffer]) -> dict[Buffer, tuple[int, int]]:
    """The first and last elements that a nest accesses, of the buffers of which that is known."""
    if not all(isinstance(s, _PLAIN) for s in statements([nest])):
        return {}
    found: dict[Buffer, tuple[int, int]] = {}
    unknown: set[Buffer] = set()
    for s, begins in _begun([nest], {}):
        loads = [n for e in s.exprs() for n in known_loads(e)]
        places = [(n.attr[0], n.args[0]) for n in loads if n.op == "load" and isinstance(s, _REWRITTEN)]
        unknown.update([root(n.attr[0]) for n in loads if n.op != "load" or not isinstance(s, _REWRITTEN)])
        if isinstance(s, Store):
            places.append((s.buffer, s.offset))
        for b, place in places:
            memory, (low, high) = root(b), place.bounds
            high -= sum([c * (m[0].bounds[1] - begins[m[0]]) for m, c in poly_terms(place).items()
                         if len(m) == 1 and c > 0 and m[0] in begins])
            if memory.kind is BufferKind.SCRATCH or b.dtype != memory.dtype or not (
                    isinstance(memory.size, int) and 0 <= low <= high < memory.size):
                unknown.add(memory)
                continue
            first, last = found.get(memory, (low, high))
            found[memory] = min(first, low), max(last, high)
    return {b: reach for b, reach in found.items() if b not in unknown}


def _begun(body: Sequence[Statement], begins: dict[Expr, int]) -> Iterator[tuple[Statement, dict[Expr, int]]]:
    """Every statement, with where the last steps of the jammed loops around begin."""
    for s in body:
        yield s, begins
        for inner in s.bodies():
            jammed = isinstance(s, Loop) and s.kind is LoopKind.JAMMED and inner is s.body
            if jammed and isinstance(s.extent, int):  # type: ignore[attr-defined]
                begun = {**begins, s.var: (s.extent // s.width - 1) * s.width}  # type: ignore[attr-defined]
            else:
                begun = begins
            yield from _begun(inner, begun)
