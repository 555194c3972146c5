"""What compilers may know of a primitive besides its rules.

Traits stand with the primitive, are set by the families in `lax`, and are open to libraries:

    softsign_p.declare(elementwise=True)
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..types.avals import ShapedArray
    from .factors import Factors


class Control(enum.Enum):
    """Control flow whose parameters are those of JAX's primitive of that name."""

    SCAN = "scan"
    WHILE = "while"
    COND = "cond"


class Windows(NamedTuple):
    """Where windows of an operand start: `operands` hold indices along its dimensions `dims`, row by row; windows are
    `sizes` long there."""

    operands: slice
    dims: Sequence[int]
    sizes: Sequence[int]


class Part(NamedTuple):
    """A part of an array: where it starts and ends in each dimension, and its steps (None: of one)."""

    starts: Sequence[int]
    limits: Sequence[int]
    strides: Sequence[int] | None


class Traits:
    """The traits of one primitive.

    Attributes:
      elementwise: each element of the results is arithmetic on the same element of the operands, which have one shape
        or are scalars. What an element costs is read off the primitive's lowering.
      movement: results are elements of the operands at other places; nothing is computed. It costs nothing to do
        again, where it is read.
      ordered: a movement whose result, where it has as many elements as the operand, has them in the same order; or a
        function that says so of an equation's parameters.
      permutation: of what only permutes the dimensions of its operand, the permutation among its parameters.
      distinct: two equal equations need not give the same, or are to be kept apart: they are never merged or moved.
      linear: results are linear in all operands together.
      bilinear: results are linear in each of two operands.
      addition: the result is the sum of two operands.
      contraction: sums of products over `dimension_numbers`, with the parameters of `dot_general`.
      reduction: folds the dimensions `axes` of its operand.
      program: of a call, the program among the parameters that gives the results of the operands.
      implementation: of what transformations treat by rules of their own, as solvers are, the program of all operands
        that computes the results when no transformation is left.
      control: which control flow it is.
      sizes: parameters that hold sizes and positions, which eager programs for all shapes leave open.
      unprinted: parameters that are not printed where they are None.
      printed: what is printed of the parameters, in this order, where that is not all of them.
      nan: whether checks for NaN look at its floating-point results: those of the primitives that JAX looks at.
      divides: divides by its second operand.
      once: whether each element of the operands is read once at most, also where results are larger; or a function
        that says so of operands' types and an equation's parameters.
      pieces: whether results are long pieces of the operands, between which loops are cut, so that what is computed is
        written where it goes; a function of operands' types and an equation's parameters.
      records: whether results are records, whose members are computed side by side, each once; a function of an
        equation's parameters and the type of its result.
      parts: of what only cuts its operand, which part of it each result is; a function of an equation's parameters and
        the operand's type.
      sharding: how results are spread over a mesh by how the operands are, see `core.programs.spreading`; what is
        elementwise needs no rule of its own.
      factors: which dimensions of operands and results are cut alike, see `core.programs.factors`; what is elementwise
        needs no rule of its own.
      windows: of what reads or writes windows of its first operand, where they lie (see `Windows`).
      added: of what writes into its first operand, the sum of another array and the result where that operand is zero:
        a function of the other array, the operands and the parameters. It gives None where rounding would not be the
        same.
    """

    __slots__ = ("elementwise", "movement", "distinct", "linear", "bilinear", "addition", "contraction",
                 "reduction", "program", "implementation", "control", "permutation", "ordered", "sizes", "unprinted",
                 "printed", "nan", "divides", "once", "pieces", "records", "windows", "added", "parts", "sharding",
                 "factors")

    def __init__(self, *, elementwise: bool = False, movement: bool = False,
                 ordered: bool | Callable[[dict[str, Any]], bool] = False, distinct: bool = False,
                 linear: bool = False, bilinear: bool = False, addition: bool = False, contraction: bool = False,
                 reduction: bool = False,
                 program: Callable[[dict[str, Any]], Any] | None = None,
                 implementation: Callable[[dict[str, Any]], Any] | None = None,
                 control: Control | None = None,
                 permutation: Callable[[dict[str, Any]], Sequence[int]] | None = None,
                 sizes: frozenset[str] = frozenset(),
                 unprinted: frozenset[str] = frozenset(),
                 printed: Callable[[dict[str, Any]], dict[str, Any]] | None = None, nan: bool = False,
                 divides: bool = False,
                 once: bool | Callable[[Sequence[ShapedArray], dict[str, Any]], bool] = False,
                 pieces: Callable[[Sequence[ShapedArray], dict[str, Any]], bool] | None = None,
                 records: Callable[[dict[str, Any], Any], bool] | None = None,
                 windows: Callable[[Sequence[ShapedArray], dict[str, Any]], Windows] | None = None,
                 added: Callable[..., Any] | None = None,
                 parts: Callable[[dict[str, Any], ShapedArray], Sequence[Part]] | None = None,
                 sharding: Callable[..., Any] | None = None, factors: Callable[..., Factors] | None = None):
        self.elementwise, self.movement, self.distinct, self.contraction = elementwise, movement, distinct, contraction
        self.linear, self.bilinear, self.addition, self.reduction = linear, bilinear, addition, reduction
        self.program, self.implementation = program, implementation
        self.control, self.permutation = control, permutation
        self.sizes, self.unprinted, self.printed = sizes, unprinted, printed
        self.ordered = ordered
        self.nan, self.divides = nan, divides
        self.once, self.pieces, self.records, self.windows, self.added = once, pieces, records, windows, added
        self.parts, self.sharding, self.factors = parts, sharding, factors

    def with_(self, **changes: Any) -> Traits:
        """The same traits but for `changes`."""
        return Traits(**{name: changes.pop(name, getattr(self, name)) for name in Traits.__slots__}, **changes)

    def __repr__(self) -> str:
        told = {name: getattr(self, name) for name in Traits.__slots__ if getattr(self, name)}
        return f"Traits({', '.join(f'{name}={value!r}' for name, value in told.items())})"


PLAIN = Traits()
