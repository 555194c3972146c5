"""What operations evaluate, read and write."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.expr import NO_READS, Expr
from ..ir.loads import known_loads
from ..ir.loopir import Buffer, Call, Copy, Declare, Fold, Let, Set, Store, Transpose, statements
from ..ir.placement import Aliases, root
from ..ir.values import Define, Opaque, Operation, Point, Reduce, Region


def operation_exprs(op: Operation) -> Sequence[Expr]:
    """The expressions that an operation evaluates from memory and variables."""
    if isinstance(op, Point):
        return (op.value, op.place)
    if isinstance(op, Reduce):
        return (*op.values, *op.initial)
    if isinstance(op, Define):
        return op.values
    return ()


def loads(op: Operation) -> list[Expr]:
    """The loads of an operation, each expression's on its own."""
    return [n for e in operation_exprs(op) if e.reads for n in known_loads(e) if n.op == "load"]


def loaded_buffers(e: Expr, aliases: Aliases) -> frozenset[Buffer]:
    """The buffers that an expression reads."""
    return frozenset([root(aliases, buffer) for buffer in e.reads]) if e.reads else NO_READS


def uses(op: Operation, aliases: Aliases) -> tuple[set[Buffer | Expr], set[Buffer | Expr]]:
    """What an operation reads and writes: buffers and scalars."""
    reads: set = set()
    writes: set = set()
    if isinstance(op, Define):
        for e in op.values:
            reads |= loaded_buffers(e, aliases) | {d for d in e.deps if d.op == "get"}
        writes |= set(op.targets)
    elif isinstance(op, Opaque):
        for s in statements(op.statements):
            for e in s.exprs():
                reads |= loaded_buffers(e, aliases) | {d for d in e.deps if d.op == "get"}
            if isinstance(s, Store):
                writes.add(root(aliases, s.buffer))
            elif isinstance(s, Copy | Transpose):
                writes.add(root(aliases, s.target))
                reads.add(root(aliases, s.source))
            elif isinstance(s, Call):
                reads |= {root(aliases, b) for b in s.reads}
                writes |= {root(aliases, b) for b in s.writes}
                if s.result is not None:
                    writes.add(s.result)
            elif isinstance(s, (Let, Declare)):
                writes.add(s.target)
            elif isinstance(s, Set):
                writes |= set(s.targets)
            elif isinstance(s, Fold):
                writes |= set(s.accumulator.targets)
    elif isinstance(op, Region):
        for block in op.blocks:
            for inner in block:
                r, w = uses(inner, aliases)
                reads |= r
                writes |= w
        for e in op.exprs:
            reads |= loaded_buffers(e, aliases) | {d for d in e.deps if d.op == "get"}
        writes |= set(op.targets)
    elif isinstance(op, Point):
        for e in operation_exprs(op):
            reads |= loaded_buffers(e, aliases) | {d for d in e.deps if d.op == "get"}
        writes.add(op.buffer)
    elif isinstance(op, Reduce):
        for e in operation_exprs(op):
            reads |= loaded_buffers(e, aliases) | {d for d in e.deps if d.op == "get"}
        writes |= {s[0] for s in op.stores} | set(op.targets)
    return reads, writes
