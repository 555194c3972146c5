"""Sizes known only at run time, as index expressions."""

from __future__ import annotations

from typing import Any

from ...core.types.dims import Dim, Recorder, Terms, add_terms
from ..ir.expr import Arena, Expr, Index, poly_terms, unwrap


class Sizes:
    """The sizes of one program."""

    def __init__(self, arena: Arena):
        self.arena = arena
        self.known: dict[int, Expr] = {}  # numbers of symbols -> run-time sizes
        self.recorder: Recorder | None = None  # where those symbols come from

    def extent(self, d: Any) -> Index:
        """A dimension of an abstract value as an index expression."""
        if type(d) is not Dim:
            return d
        self.recorder = d.recorder
        return unwrap(self._polynomial(d.recorder, d.recorder.canonical(d.terms)))

    def _polynomial(self, recorder: Recorder, terms: Terms) -> Expr:
        total = self.arena.int(0)
        for m, c in terms.items():
            term = self.arena.int(c)
            for s in m:
                term = self.arena.imul(term, self._symbol(recorder, s))
            total = self.arena.iadd(total, term)
        return total

    def _symbol(self, recorder: Recorder, number: int) -> Expr:
        number = recorder.alias.get(number, number)
        found = self.known.get(number)
        if found is None:
            first = number - recorder.inputs
            if first < 0:
                found = self.arena.param(f"n{number}")
            else:
                kind, x, y = recorder.derived[first]
                divide = self.arena.floordiv if kind == "//" else self.arena.floormod
                found = divide(self._polynomial(recorder, x), self._polynomial(recorder, y))
            self.known[number] = found
        return found

    def at_least(self, size: Index, bound: int) -> bool:
        """Whether a size is that large. One known at run time alone is looked at for the sizes at hand: the answer
        becomes a guard of the program."""
        return size >= bound if isinstance(size, int) else self._ask(">=", size, bound)

    def at_most(self, size: Index, bound: int) -> bool:
        """Whether a size is that small, as `at_least`."""
        return size <= bound if isinstance(size, int) else self._ask("<=", size, bound)

    def _ask(self, comparison: str, size: Expr, bound: int) -> bool:
        """False where the size does not come from the sizes at hand."""
        numbers = {e: number for number, e in self.known.items()}
        polynomial = poly_terms(size)
        if self.recorder is None or not all(a in numbers for m in polynomial for a in m):
            return False
        terms = {tuple(sorted(numbers[a] for a in m)): c for m, c in polynomial.items()}
        return self.recorder.ask(comparison, add_terms(terms, {(): bound}, -1))

    def resolved(self, value: Any) -> Any:
        """Static parameters with their sizes as index expressions."""
        if type(value) is Dim:
            return self.extent(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.resolved, value))
        return value
