"""Sizes that a program is generic in.

To compile an eager operation once for all shapes, it is traced on sizes that know both their value and
where they come from: `Dim` computes like the integer it is, and writes down every question that is asked of it.
The answers are the *guards* under which the traced program is right: it may be used for any other sizes that would
answer alike. A size that is turned into a plain integer is thereby fixed to its value.

Where that is not enough (a size as a key, as an element, in arithmetic of another kind), `NotGeneric` is raised, and
the caller falls back to plain integers. Any other exception is the program's own, or a fault.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

Monomial = tuple[int, ...]  # sorted numbers of symbols
Terms = dict[Monomial, int]


class NotGeneric(Exception):
    """The program cannot be written for all sizes. (No TypeError: who asks whether something is a size by catching
    those must not catch this.)"""


class Recorder:
    """The symbols of one trace, with their values, and the guards."""

    __slots__ = ("values", "derived", "guards", "_seen", "alias")

    def __init__(self, values: Sequence[int]):
        self.values = list(values)  # of the inputs, then of the derived symbols
        self.derived: list[tuple[str, Terms, Terms]] = []  # ("//" or "%", dividend, divisor)
        self.guards: list[tuple[str, Terms, Any]] = []  # (comparison with zero, polynomial, answer)
        self._seen: dict[Any, bool] = {}
        self.alias: dict[int, int] = {}  # symbols that were found equal -> the first of them

    @property
    def inputs(self) -> int:
        return len(self.values) - len(self.derived)

    def symbol(self, number: int) -> Dim:
        return Dim(self.values[number], {(number,): 1}, self)

    def canonical(self, terms: Terms) -> Terms:
        if not self.alias:
            return terms
        out: Terms = {}
        for m, c in terms.items():
            key = tuple(sorted(self.alias.get(s, s) for s in m))
            out[key] = out.get(key, 0) + c
        return {m: c for m, c in out.items() if c}

    def ask(self, comparison: str, terms: Terms) -> bool:
        """The answer to `polynomial ? 0`, written down."""
        terms = self.canonical(terms)
        if not terms or set(terms) == {()}:
            return COMPARISONS[comparison](terms.get((), 0), 0)
        key = (comparison, tuple(sorted(terms.items())))
        answer = self._seen.get(key)
        if answer is None:
            answer = self._seen[key] = COMPARISONS[comparison](evaluate(terms, self.values), 0)
            self.guards.append((comparison, terms, answer))
            if answer and comparison == "==":
                self._unify(terms)
        return answer

    def _unify(self, terms: Terms) -> None:
        """x - y = 0 makes x and y one symbol."""
        if len(terms) == 2 and sorted(terms.values()) == [-1, 1] and all(len(m) == 1 for m in terms):
            a, b = sorted(m[0] for m in terms)
            self.alias[b] = a
            for s, t in self.alias.items():
                if t == b:
                    self.alias[s] = a

    def derive(self, kind: str, dividend: Terms, divisor: Terms, value: int) -> Any:
        self.derived.append((kind, dividend, divisor))
        self.values.append(value)
        return self.size(value, {(len(self.values) - 1,): 1})

    def size(self, value: int, terms: Terms) -> Any:
        """A computed size. Zero and one are plain integers, as among the inputs: they are empty, and broadcast."""
        if value in (0, 1) and self.ask("==", add_terms(terms, {(): value}, -1)):
            return value
        return Dim(value, terms, self)

    def complete(self, inputs: Sequence[int]) -> list[int]:
        """The values of all symbols for other inputs."""
        values = list(inputs)
        for kind, dividend, divisor in self.derived:
            x, y = evaluate(dividend, values), evaluate(divisor, values)
            values.append((x // y if kind == "//" else x % y) if y else 0)
        return values

    def admits(self, values: Sequence[int]) -> bool:
        """Whether these sizes would answer every question alike."""
        return all(COMPARISONS[c](evaluate(terms, values), 0) == answer for c, terms, answer in self.guards)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}


def evaluate(terms: Terms, values: Sequence[int]) -> int:
    total = 0
    for m, c in terms.items():
        for s in m:
            c *= values[s]
        total += c
    return total


def add_terms(x: Terms, y: Terms, factor: int = 1) -> Terms:
    out = dict(x)
    for m, c in y.items():
        out[m] = out.get(m, 0) + factor * c
    return {m: c for m, c in out.items() if c}


def multiply_terms(x: Terms, y: Terms) -> Terms:
    out: Terms = {}
    for m, c in x.items():
        for n, d in y.items():
            key = tuple(sorted(m + n))
            out[key] = out.get(key, 0) + c * d
    return {m: c for m, c in out.items() if c}


class Dim:
    """A size of a generic program: an integer with a memory."""

    __slots__ = ("value", "terms", "recorder")
    _is_symbolic_dim = True

    def __init__(self, value: int, terms: Terms, recorder: Recorder):
        self.value = value
        self.terms = terms
        self.recorder = recorder

    def _terms_of(self, x: Any) -> Terms | None:
        if isinstance(x, Dim):
            return x.terms
        try:
            x = operator.index(x)
        except TypeError:
            return None
        return {(): x} if x else {}

    def _make(self, terms: Terms) -> Any:
        terms = self.recorder.canonical(terms)
        if not terms:
            return 0
        if set(terms) == {()}:
            return terms[()]
        return self.recorder.size(evaluate(terms, self.recorder.values), terms)

    def __add__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if isinstance(other, (float, complex)):
            return operator.index(self) + other
        return NotImplemented if terms is None else self._make(add_terms(self.terms, terms))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if isinstance(other, (float, complex)):
            return operator.index(self) - other
        return NotImplemented if terms is None else self._make(add_terms(self.terms, terms, -1))

    def __rsub__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if isinstance(other, (float, complex)):
            return other - operator.index(self)
        return NotImplemented if terms is None else self._make(add_terms(terms, self.terms, -1))

    def __mul__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if isinstance(other, (float, complex)):
            return operator.index(self) * other
        return NotImplemented if terms is None else self._make(multiply_terms(self.terms, terms))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self._make({m: -c for m, c in self.terms.items()})

    def __pos__(self) -> Dim:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def _divide(self, kind: str, x: Terms, y: Terms) -> Any:
        quotient = exact_quotient(self.recorder.canonical(x), self.recorder.canonical(y))
        if quotient is not None:
            return self._make(quotient) if kind == "//" else 0
        values = self.recorder.values
        a, b = evaluate(x, values), evaluate(y, values)
        if b == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        return self.recorder.derive(kind, x, y, a // b if kind == "//" else a % b)

    def __floordiv__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        return NotImplemented if terms is None else self._divide("//", self.terms, terms)

    def __rfloordiv__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        return NotImplemented if terms is None else self._divide("//", terms, self.terms)

    def __mod__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        return NotImplemented if terms is None else self._divide("%", self.terms, terms)

    def __rmod__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        return NotImplemented if terms is None else self._divide("%", terms, self.terms)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return operator.index(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / operator.index(self)

    def __pow__(self, other: Any) -> Any:
        return operator.index(self) ** other

    def _ask(self, comparison: str, other: Any) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return NotImplemented
        return self.recorder.ask(comparison, add_terms(self.terms, terms, -1))

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        return self._ask("==", other)

    def __ne__(self, other: object) -> Any:
        answer = self.__eq__(other)
        return answer if answer is NotImplemented else not answer

    def __lt__(self, other: Any) -> Any:
        return self._ask("<", other)

    def __le__(self, other: Any) -> Any:
        return self._ask("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self._ask(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._ask(">=", other)

    def __hash__(self) -> int:
        raise NotGeneric("a size as a key")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotGeneric("a size as an element")

    def __bool__(self) -> bool:
        return not self._ask("==", 0)

    def __index__(self) -> int:
        """A plain integer: from here on the program is for this size only."""
        self._ask("==", self.value)
        return self.value

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __repr__(self) -> str:
        return repr(self.value)  # for messages about the call at hand


def exact_quotient(x: Terms, y: Terms) -> Terms | None:
    """x / y where y is one term that divides every term of x."""
    if len(y) != 1:
        return None
    ((dm, dc),) = y.items()
    out: Terms = {}
    for m, c in x.items():
        rest = list(m)
        for s in dm:
            if s not in rest:
                return None
            rest.remove(s)
        if dc == 0 or c % dc:
            return None
        out[tuple(rest)] = c // dc
    return out


class _Tracing(threading.local):
    active = False  # whether this thread traces a generic program: caches keyed by shapes stand aside


tracing = _Tracing()


def is_symbolic(d: Any) -> bool:
    """Whether a size is a symbolic one, which computes like an integer."""
    return hasattr(d, "_is_symbolic_dim")


def is_named(d: Any) -> bool:
    """Whether a size is known by name alone, so that not every question about it has an answer."""
    return is_symbolic(d) and type(d) is not Dim


def canonical_dim(d: Any) -> Any:
    """A size as it stands in shapes: a plain integer, or a symbolic size as it is. Raises TypeError for others."""
    return d if type(d) is int or is_symbolic(d) else operator.index(d)


def plain_size(d: Any) -> Any:
    """A size as a plain integer; one that is known by name alone stays as it is."""
    return d if is_named(d) else int(d)


def size_argument(d: Any) -> Any:
    """A size that a user passes: an integer, or one that is known by name alone. Raises TypeError for others."""
    return d if is_named(d) else operator.index(d)


def surely_differ(x: Any, y: Any) -> bool:
    """Whether two sizes differ whatever the values of those that are known by name alone."""
    if not (is_named(x) or is_named(y)):
        return bool(x != y)
    difference = x - y
    return not is_named(difference) and difference != 0


def larger(x: Any, y: Any) -> Any:
    """The larger of two sizes; an expression where that depends on the values of symbolic ones."""
    return _extremum("max", x, y) if is_symbolic(x) or is_symbolic(y) else max(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two sizes; see `larger`."""
    return _extremum("min", x, y) if is_symbolic(x) or is_symbolic(y) else min(x, y)


def _extremum(name: str, x: Any, y: Any) -> Any:
    for d in (x, y):
        if hasattr(d, "extremum"):
            return d.extremum(name, x, y)
    return max(x, y) if name == "max" else min(x, y)  # generic sizes write the question down


def is_generic(shape: Sequence[Any]) -> bool:
    return any(type(d) is Dim for d in shape)
