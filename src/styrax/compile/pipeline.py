"""The compiler as a list of stages, each a function from one form of the program to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import config, dtypes
from ..core.avals import AbstractToken
from ..core.jaxpr import ClosedJaxpr, Jaxpr
from .builder import Builder
from .costs import instructions
from .expr import Expr
from .fuse import Fuser, Group, loaded_buffers, region_uses
from .loopir import Buffer, Let, Statement, Store, show_program, statements
from .lower import Lowering, Token, physical_dtype
from .memory import plan
from .rules import LEVELS
from .schedule import Scheduler
from .simplify import simplify
from .values import Define, Opaque, Operation, Point, Reduce, Region, Stored, Value


class Program:
    """A program as loop IR: statements over buffers, ready for `cpu.emit`."""

    __slots__ = ("builder", "statements", "inputs", "constants", "outputs", "workspace", "out_avals", "name", "generic",
                 "work")

    def __init__(self, builder: Builder, name: str):
        self.builder = builder
        self.name = name
        self.statements: list[Statement] = []
        self.inputs: list[Buffer | None] = []
        self.constants: list[tuple[Buffer, Any]] = []
        self.outputs: list[Buffer | None] = []
        self.out_avals: list[Any] = []
        self.workspace = 0
        self.generic = False
        self.work = 0.0  # estimated instructions of a call

    def __str__(self) -> str:
        return show_program(self.statements)


def debugging(stage: str) -> bool:
    return stage in config.config.debug


def lower(closed: ClosedJaxpr, name: str, donated: Sequence[bool] = (),
          generic: bool = False) -> tuple[Program, list[Operation]]:
    """jaxpr → operations: what is computed, element by element."""
    b = Builder()
    b.numerics = LEVELS[config.states["styrax_numerics"].value]
    program = Program(b, name)
    lowering = Lowering(b)
    lowering.generic = program.generic = generic
    number = 0

    def argument(aval: Any, kind: str) -> tuple[Buffer | None, Value]:
        nonlocal number
        if isinstance(aval, AbstractToken):
            return None, Token()
        dtype = physical_dtype(aval)
        shape = tuple(map(b.extent, aval.shape))
        if aval.dtype == dtypes.float0:  # no bytes, no memory
            return None, b.value(shape, dtype, lambda _: b.const(False, dtype))
        buffer = b.buffer(dtype, b.product(shape), kind, number, kind)
        number += 1
        return buffer, Stored(b, buffer, shape, dtype)

    args: list[Value] = []
    for i, aval in enumerate(closed.in_avals):
        buffer, value = argument(aval, "arg")
        if buffer is not None:
            buffer.donated = bool(donated and donated[i])
        program.inputs.append(buffer)
        args.append(value)
    known: dict[int, Value] = {}

    def constant(value: Any, aval: Any) -> Value:
        found = known.get(id(value))
        if found is None:
            buffer, found = argument(aval, "const")
            known[id(value)] = found
            if buffer is not None:
                program.constants.append((buffer, value))
        return found

    lowering.constant = constant  # type: ignore[method-assign]
    results = lowering.closed(closed, args)
    for aval, value in zip(closed.out_avals, results, strict=True):
        program.out_avals.append(aval)
        if isinstance(value, Token) or aval.dtype == dtypes.float0:
            program.outputs.append(None)
            continue
        dtype = physical_dtype(aval)
        shape = tuple(map(b.extent, aval.shape))
        buffer = b.buffer(dtype, b.product(shape), "out", number, "out")
        number += 1
        program.outputs.append(buffer)
        target = Stored(b, buffer, shape, dtype)
        if aval.shape == ():
            b.ops.append(Opaque([Store(buffer, b.int(0), value.at(()))]))
        else:
            b.write(target, value)
    return program, b.ops


def schedule(program: Program, ops: Sequence[Operation], vector_bytes: int) -> None:
    """operations → statements: groups, loops, vectors, threads."""
    used: set[Any] = set()
    b = program.builder
    units = fuse_block(b, drop_dead(ops, used))
    program.statements = emit_units(b, units, vector_bytes, buffers_read(units, set()))


def drop_dead(ops: Sequence[Operation], used: set[Any]) -> list[Operation]:
    """Leaves out operations whose temporary results nobody reads."""
    out = []
    for op in reversed(ops):
        reads, writes = region_uses(op)
        if isinstance(op, Point):
            alive = op.buffer.kind != "temp" or op.buffer in used
        elif isinstance(op, Reduce):
            stored = any(buf.kind != "temp" or buf in used for buf, _, _ in op.stores)
            alive = stored or any(t in used for t in op.targets)
        elif isinstance(op, Define):
            alive = any(t in used for t in op.targets)
        else:
            alive = True
        if alive:
            used |= reads
            out.append(op)
    return out[::-1]


Unit = Any  # a Group, an Operation left alone, or (Region, its blocks as lists of units)


def fuse_block(b: Builder, ops: Sequence[Operation]) -> list[Unit]:
    """Groups the operations of a block, and of the blocks inside it."""
    out: list[Unit] = []
    for unit in Fuser(b).run(ops):
        if isinstance(unit, Region):
            out.append((unit, [fuse_block(b, block) for block in unit.blocks]))
        else:
            out.append(unit)
    return out


def buffers_read(units: Sequence[Unit], read: set[Any]) -> set[Any]:
    """Everything that is still read from memory after fusion."""
    for unit in units:
        if isinstance(unit, Group):
            for m in unit.members:
                read |= region_uses(m.op)[0]
        elif isinstance(unit, tuple):
            for block in unit[1]:
                buffers_read(block, read)
            for e in unit[0].exprs:
                read |= loaded_buffers(e)
        else:
            read |= region_uses(unit)[0]
    return read


def emit_units(b: Builder, units: Sequence[Unit], vector_bytes: int, read: set[Any]) -> list[Statement]:
    out: list[Statement] = []
    for unit in units:
        if isinstance(unit, Group):
            dead = {w for w in unit.writes if w.kind == "temp" and w not in read and w.root not in read}
            out += Scheduler(b, vector_bytes, dead).run(unit)
        elif isinstance(unit, Define):
            out += [Let(t, v) for t, v in zip(unit.targets, unit.values, strict=True)]
        elif isinstance(unit, Opaque):
            out += unit.statements
        else:
            region, blocks = unit
            out += region.build([emit_units(b, block, vector_bytes, read) for block in blocks])
    return out


def compile_to_loops(closed: ClosedJaxpr, name: str, donated: Sequence[bool] = (), vector_bytes: int = 64,
                     generic: bool = False) -> Program:
    """All stages up to loop IR with a memory plan."""
    if debugging("jaxpr"):
        print(f"-- jaxpr {name}\n{closed}")
    if not generic:
        closed = simplify(closed)
        if debugging("simplify"):
            print(f"-- simplify {name}\n{closed}")
    program, ops = lower(closed, name, donated, generic)
    schedule(program, ops, vector_bytes)
    if debugging("schedule") or debugging("loops"):
        print(f"-- loops {name}\n{program}")
    program.work = instructions(program.statements)
    program.workspace = plan(program.statements, program.builder.buffers, program.inputs, program.outputs)
    return program


__all__ = ["Callable", "Expr", "Jaxpr", "Program", "compile_to_loops", "np", "statements"]
