"""The values of dimension variables, found from the shapes that a program is called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .scope import SymbolicScope
from .symbolic import DOCUMENTATION, Size, SymbolicDim, divide, evaluate

SOLVABLE = f"Please see {DOCUMENTATION}#dimension-variables-must-be-solvable-from-the-input-shapes for more details."


class UnexpectedDimVar(Exception):
    """A constraint or a result mentions a variable that no argument's shape has."""


class Solving:
    """The dimensions of the arguments, as specifications.

    Args:
      shapes: the arguments' shapes.
      names: the arguments' names, as in `args[0]`.
    """

    def __init__(self, shapes: Sequence[Sequence[Size]], names: Sequence[str]):
        self.specs = [(d, f"{name}.shape[{i}]", k, i) for k, (shape, name) in enumerate(zip(shapes, names, strict=True))
                      for i, d in enumerate(shape) if isinstance(d, SymbolicDim)]
        self.described = ",".join(
            f"{name}.shape = {_text(shape)}" for shape, name in zip(shapes, names, strict=True)
            if any(isinstance(d, SymbolicDim) for d in shape))
        self.scope: SymbolicScope | None = self.specs[0][0].scope if self.specs else None
        self.variables = sorted(set().union(*(d.variables() for d, *_ in self.specs)))

    def check(self) -> None:
        """Whether the variables can be found from shapes, whatever these are, and constraints have no others.

        Raises ValueError for the first and UnexpectedDimVar for the second.
        """
        self._order()
        if self.scope is not None:
            for _, _, expression in self.scope.constraints:
                if isinstance(expression, SymbolicDim):
                    self.check_known(expression)

    def check_known(self, size: Size) -> None:
        """Raises UnexpectedDimVar where an expression has a variable that no argument's shape has."""
        unknown = sorted(size.variables() - set(self.variables)) if isinstance(size, SymbolicDim) else ()
        for name in unknown:
            raise UnexpectedDimVar(
                f"Encountered dimension variable '{name}' that is not appearing in the shapes of the function "
                "arguments.\nThe following dimension variables are appearing in the shapes of the function arguments: "
                f"{self.variables}.\n{SOLVABLE}")

    def _order(self) -> list[tuple[Any, str | None]]:
        """The specifications in the order in which they can be used, each with the variable that it gives.

        A specification gives its only unknown variable if that stands in it once, times an integer.
        """
        known: set[str] = set()
        order: list[tuple[Any, str | None]] = []
        waiting = list(self.specs)
        while waiting:
            left = []
            for spec in waiting:
                unknown = spec[0].variables() - known
                name = next(iter(unknown), None)
                if len(unknown) > 1 or (name is not None and _coefficient(spec[0], name) is None):
                    left.append(spec)
                    continue
                if name is not None:
                    known.add(name)
                order.append((spec, name))
            if len(left) == len(waiting):
                unsolved = set(self.variables) - known
                unprocessed = ", ".join(f"'{d}' for dimension size {where}" for d, where, *_ in left)
                raise ValueError(
                    f"Cannot solve for values of dimension variables {unsolved}. We can only solve linear uni-variate "
                    f"constraints. Using the following polymorphic shapes specifications: {self.described}. "
                    f"Unprocessed specifications: {unprocessed}. {SOLVABLE}")
            waiting = left
        return order

    def for_stablehlo(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], str, Callable[[str], Any]] | None:
        """How a module finds the variables: see `xla.stablehlo.module_text`. None where there are none."""
        if self.scope is None:
            return None
        found: list[tuple[Any, ...]] = []
        promises: list[tuple[Any, ...]] = []
        for (spec, _, argument, axis), name in self._order():
            if name is None:
                promises.append((argument, axis, spec))
            else:
                coefficient = _coefficient(spec, name)
                assert coefficient is not None
                found.append((name, argument, axis, coefficient, spec - coefficient * _alone(spec, name)))
        return found, promises, self.described, self.scope.parse

    def solve(self, shapes: Sequence[Sequence[Size]]) -> dict[str, Size]:
        """The values of the variables for a call with these shapes; sizes may be symbolic, of another scope.

        Raises:
          ValueError: the shapes do not fit the specifications, or it cannot be shown that they do.
        """
        values: dict[str, Size] = {}
        obtained: list[str] = []

        def failed(what: str, which: str = "polymorphic shapes specification.") -> ValueError:
            return ValueError(
                f"Input shapes do not match the {which} {what} Using the following polymorphic shapes specifications: "
                f"{self.described}. Obtained dimension variables: {''.join(obtained)}. "
                f"Please see {DOCUMENTATION}#shape-assertion-errors for more details.")

        for (spec, where, argument, axis), name in self._order():
            size = shapes[argument][axis]
            if name is None:
                expected = evaluate(spec, values)
                if expected != size:
                    raise failed(f"Found inconsistency between dimension size {where} (= {size}) and the specification "
                                 f"'{spec}' (= {expected}).")
                continue
            coefficient = _coefficient(spec, name)
            assert coefficient is not None
            value, remainder = _divided(size - evaluate(spec - coefficient * _alone(spec, name), values), coefficient)
            if remainder != 0:
                raise failed(f"Division had remainder {remainder} when computing the value of '{name}'.")
            values[name] = value
            obtained.append(f"'{name}' = {value} from specification '{spec}' for dimension {where} (= {size}), ")
            scope = value.scope if isinstance(value, SymbolicDim) else None
            if not (scope.nonnegative(value - 1) if scope is not None else value >= 1):
                raise failed(f"Expected value >= 1 for dimension variable '{name}'.")
        for text, kind, expression in () if self.scope is None else self.scope.constraints:
            found = evaluate(expression, values)
            scope = found.scope if isinstance(found, SymbolicDim) else None
            if kind == "eq":
                holds, relation = found == 0, "equal to"
            else:
                holds = bool(scope.nonnegative(found)) if scope is not None else found >= 0
                relation = "greater or equal to"
            if not holds:
                raise failed(f"Expected '{expression}' to be {relation} 0, but found {found}. ",
                             f"symbolic shape constraint {text}.")
        return values


def _text(shape: Sequence[Size]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _coefficient(size: SymbolicDim, name: str) -> int | None:
    """The integer before a variable that stands in the expression once; None if it stands elsewhere, too."""
    within = [m for m in size.terms if any(
        f == name or (not isinstance(f, str) and any(isinstance(x, SymbolicDim) and name in x.variables()
                                                     for x in f.operands)) for f, _ in m)]
    return size.terms[within[0]] if within == [((name, 1),)] else None


def _alone(size: SymbolicDim, name: str) -> SymbolicDim:
    return SymbolicDim({((name, 1),): 1}, size.scope)


def _divided(size: Size, by: int) -> tuple[Size, Size]:
    return divide(size, by, size.scope) if isinstance(size, SymbolicDim) else divmod(size, by)
