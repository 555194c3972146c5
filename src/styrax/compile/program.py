"""A program on its way through the compiler: what the passes take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.programs.jaxpr import ClosedJaxpr
from .ir.loopir import Buffer, Statement, declarations, show_program
from .ir.placement import Placement
from .ir.values import Operation, show_operations

if TYPE_CHECKING:
    from .loops.fuse import Unit
    from .lowering.builder import Builder


class Panels(NamedTuple):
    """What kernels of products in vector registers do (`cpu.microkernels`): the sums that they hold, at most so many
    rows, and columns; the blocks of rows that a call may have; the bytes of a left operand that it reads again for each
    panel as quickly as it multiplies; the kinds of narrower results."""

    rows: int
    columns: int
    blocks: int
    again: int
    narrow: frozenset[str]


class Kernels(NamedTuple):
    """What the host multiplies matrices with."""

    tiles: bool = False  # matrix units (`cpu.tiles`)
    blas_bytes: Callable[[], int] = lambda: 64  # of the vectors that BLAS computes with
    panels: Mapping[str, Panels] = MappingProxyType({})  # by kinds of words
    # is told what a program calls, and for how many instructions, as soon as that is known
    begin: Callable[[str, float], object] = lambda symbol, work: None


class Program:
    """One program in the form that the last pass gave it: a jaxpr, then operations, then units, then statements.

    A pass gives a new program (`replace`) and leaves the one that it was given as it is.
    """

    name: str
    closed: ClosedJaxpr
    donated: Sequence[bool]
    generic: bool  # whether sizes are known only when it is called
    vector_bytes: int
    kernels: Kernels
    builder: Builder  # the home of its expressions and buffers, from lowering on
    operations: Sequence[Operation] | None
    units: Sequence[Unit] | None
    statements: list[Statement]
    inputs: Sequence[Buffer | None]  # None for tokens
    constants: Sequence[tuple[Buffer, Any]]
    outputs: Sequence[Buffer | None]
    work: float  # estimated instructions of a call
    least_work: float | None  # if loops that may never end by themselves turn once; None where there are none
    placement: Placement  # of its buffers

    def __init__(self, name: str, closed: ClosedJaxpr, donated: Sequence[bool] = (), generic: bool = False,
                 vector_bytes: int = 64, kernels: Kernels = Kernels()):
        self.name, self.closed, self.donated, self.generic = name, closed, donated, generic
        self.vector_bytes, self.kernels = vector_bytes, kernels
        self.operations, self.units, self.statements = None, None, []
        self.inputs, self.constants, self.outputs = (), (), ()
        self.work, self.least_work, self.placement = 0.0, None, Placement()

    def replace(self, **changes: Any) -> Program:
        new = object.__new__(Program)
        new.__dict__.update(self.__dict__, **changes)
        return new

    def with_statements(self, statements: list[Statement]) -> Program:
        return self if statements is self.statements else self.replace(statements=statements)

    def show(self, marks: bool = False, declared: bool = False) -> str:
        """The program in its present form; with `marks`, statements name the pass that made them. With `declared`,
        loops begin with their sizes and buffers: text that `ir.parse` reads."""
        if self.statements:
            text = show_program(self.statements, marks)
            return "\n".join([*declarations(self.statements, self.builder.buffers), text]) if declared else text
        if self.units is not None:
            return "\n".join(line for unit in self.units for line in unit.lines())
        if self.operations is not None:
            return show_operations(self.operations)
        return str(self.closed)

    def __str__(self) -> str:
        return self.show()
