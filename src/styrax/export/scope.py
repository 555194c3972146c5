"""Scopes of dimension variables with the constraints that hold for them, and expressions read from text."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .bounds import lower_bound, upper_bound
from .symbolic import (
    DOCUMENTATION,
    Monomial,
    Size,
    SymbolicDim,
    add_terms,
    apply,
    divide_monomials,
    multiply_terms,
    terms_of,
    variable,
)


class SymbolicScope:
    """Dimension variables that belong together. Variables of the same name in two scopes are two variables.

    Args:
      constraints_str: what holds for the variables: `"a >= b"`, `"a <= 100"`, `"mod(a, 8) == 0"`. Comparisons may use
        it, and a call of an exported program checks it. An equality rewrites its left side, which is one term.

    Raises:
      ValueError: the constraints are no sequence of strings, or a string is no constraint.
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str):
            raise ValueError(
                f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}")
        self.constraints: list[tuple[str, str, Size]] = []  # (text, "geq" or "eq", what is >= 0 or == 0)
        self.facts: list[Mapping[Monomial, int]] = []  # polynomials that are at least 0
        self.rules: list[tuple[Monomial, int, Mapping[Monomial, int]]] = []  # coefficient*monomial -> polynomial
        self.bounds: dict[Any, Any] = {}  # what `bounds` found out
        self.possible = 0  # so many of the constraints are known to be possible together
        self.texts = tuple(constraints_str)
        self._created = _caller()
        for text in constraints_str:
            if not isinstance(text, str):
                raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
            self._constrain(text)

    def _constrain(self, text: str) -> None:
        sign = next((s for s in ("==", ">=", "<=") if s in text), None)
        if sign is None:
            raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<='")
        left, right = (Parser(part, self).whole() for part in text.split(sign, 1))
        if sign == "<=":
            left, right = right, left
        difference = left - right
        if not isinstance(difference, SymbolicDim) and (difference != 0 if sign == "==" else difference < 0):
            raise ValueError(f"Unsatisfiable explicit constraint: {text}")
        if sign != "==":
            self.constraints.append((text, "geq", difference))
            self.facts += _facts_of("geq", terms_of(difference))
            self.bounds.clear()
            return
        self._equate(text, left, right)

    def _equate(self, text: str, left: Size, right: Size) -> None:
        terms = terms_of(left)
        if len(terms) != 1 or () in terms:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand-side must be of the form `term * coefficient`.")
        ((monomial, coefficient),) = terms.items()
        factor = monomial[0][0]
        if len(monomial) == 1 and not isinstance(factor, str) and factor.name == "mod" and right == 0:
            dividend, divisor = factor.operands  # the quotient is exact then
            whole = divisor * apply("floordiv", dividend, divisor)
            self._equate(f"{whole} == {dividend}", whole, dividend)
        self.constraints.append((text, "eq", left - right))
        self.rules.append((monomial, coefficient, terms_of(right)))
        self.facts += _facts_of("eq", add_terms(terms, terms_of(right), -1))
        self.bounds.clear()

    def rewrite(self, terms: Mapping[Monomial, int]) -> Mapping[Monomial, int]:
        """The polynomial with left sides of equalities replaced."""
        if not self.rules:
            return terms
        for _ in range(8):
            for monomial, coefficient, right in self.rules:
                for m, c in terms.items():
                    left = divide_monomials(m, monomial)
                    if left is not None and c % coefficient == 0:
                        rest = {k: v for k, v in terms.items() if k != m}
                        terms = add_terms(rest, multiply_terms({left: c // coefficient}, right))
                        break
                else:
                    continue
                break
            else:
                break
        return terms

    def nonnegative(self, size: Size) -> bool | None:
        """Whether an expression is at least 0; None where that depends on the variables."""
        if not isinstance(size, SymbolicDim):
            return size >= 0
        self._check_satisfiable()
        if lower_bound(size.terms, self) >= 0:
            return True
        return False if upper_bound(size.terms, self) < 0 else None

    def _check_satisfiable(self) -> None:
        """Constraints that contradict one another would answer every comparison. The first comparison finds it out:
        each constraint must be possible where those before it hold."""
        if self.possible == len(self.constraints):
            return
        facts, self.facts = self.facts, []
        try:
            for text, sign, difference in self.constraints:
                self.bounds.clear()
                terms = terms_of(difference)
                if upper_bound(terms, self) < 0 or sign == "eq" and lower_bound(terms, self) > 0:
                    raise ValueError(f"Unsatisfiable constraint: {text}")
                self.facts += _facts_of(sign, terms)
        finally:
            self.facts = facts
            self.bounds.clear()
        self.possible = len(self.constraints)

    def parse(self, text: str) -> Size:
        """The expression that a text stands for."""
        return Parser(text, self).whole()

    def check_same(self, other: SymbolicDim, doing: str = "", self_descr: str = " ",
                   other_descr: str = "unknown") -> None:
        """Raises ValueError where an expression belongs to another scope."""
        if other.scope is not self:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {doing}.\nExpected {self_descr}scope {self}\nand found for "
                f"'{other}' ({other_descr}) scope {other.scope}\nSee {DOCUMENTATION}"
                "#user-specified-symbolic-constraints.")

    def __str__(self) -> str:
        extra = ""
        if self.constraints:
            extra = " with constraints:\n" + "\n".join(f"  {text}" for text, _, _ in self.constraints)
        return f"{id(self)} created at {self._created}{extra}"

    __repr__ = __str__

    def __reduce__(self) -> Any:
        return SymbolicScope, (self.texts,)

    def __deepcopy__(self, memo: dict[int, Any]) -> SymbolicScope:
        return self  # scopes are told apart by identity


def _facts_of(sign: str, terms: Mapping[Monomial, int]) -> list[Mapping[Monomial, int]]:
    return [terms] if sign == "geq" else [terms, {m: -c for m, c in terms.items()}]


def _caller() -> str:
    """The place in the user's program that makes a scope."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("styrax."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"


_TOKEN = re.compile(r"\s*(?:(?P<NAME>[^\W\d]\w*)|(?P<NUMBER>\d+(?:\.\d*)?)|(?P<ELLIPSIS>\.\.\.)|"
                    r"(?P<OPERATOR>==|>=|<=|//|\*\*|[-+*^(),.%/<>[\]])|(?P<ERROR>\S))")
_KINDS = {"+": "PLUS", "-": "MINUS", "*": "STAR", "^": "CARET", "(": "LPAR", ")": "RPAR", ",": "COMMA", ".": "DOT",
          "//": "DOUBLESLASH", "%": "PERCENT", "/": "SLASH", "**": "DOUBLESTAR", "[": "LSQB", "]": "RSQB"}


class Parser:
    """Reads shapes and expressions.

    Args:
      text: the specification.
      scope: the scope of the variables.
      like: sizes for `_` and `...`.
    """

    def __init__(self, text: str, scope: SymbolicScope, like: Sequence[Any] | None = None):
        self.text = text
        self.scope = scope
        self.like = like
        self.dimension = 0
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while (match := _TOKEN.match(text, at)) is not None:
            kind = match.lastgroup or "ERROR"
            word = match[kind]
            self.tokens.append((_KINDS.get(word, kind), word, match.start(kind)))
            at = match.end()
        self.tokens.append(("ENDMARKER", "", len(text)))
        self.at = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    def take(self) -> str:
        word = self.tokens[self.at][1]
        self.at += 1
        return word

    def error(self, what: str) -> ValueError:
        place = self.tokens[self.at][2]
        return ValueError(f"syntax error in symbolic shape '{self.text}' in dimension {self.dimension}: {what}. Parsed "
                          f"'{self.text[:place]}', remaining '{self.text[place:]}'.")

    def expect(self, *kinds: str) -> str:
        if self.kind not in kinds:
            raise self.error(f"expecting one of {{{', '.join(kinds)}}} but found {self.kind}")
        return self.take()

    def shape(self) -> tuple[Size, ...]:
        parenthesised = self.kind == "LPAR" and self.tokens[-2][0] == "RPAR" and self._spans()
        end = "RPAR" if parenthesised else "ENDMARKER"
        if parenthesised:
            self.take()
        sizes: list[Size] = []
        while self.kind != end:
            self.dimension = len(sizes)
            if self.kind == "ELLIPSIS":
                sizes += self._taken_from_like("...", len(sizes))
                self.take()
                if self.kind not in ("COMMA", end) or self.kind == "COMMA" and self.tokens[self.at + 1][0] != end:
                    raise self.error(f"expecting one of {{{end}}} but found {self.kind}")
            else:
                sizes.append(self._one(len(sizes)))
            if self.kind == end:
                break
            self.expect("COMMA", "STAR") if self.kind == "COMMA" else self.expect("STAR")
        self.expect(end)
        self.expect("ENDMARKER") if parenthesised else None
        return tuple(sizes)

    def _spans(self) -> bool:
        """Whether the first parenthesis is closed by the last one."""
        depth = 0
        for i, (kind, _, _) in enumerate(self.tokens):
            depth += (kind == "LPAR") - (kind == "RPAR")
            if not depth:
                return i == len(self.tokens) - 2
        return False

    def _one(self, position: int) -> Size:
        if self.kind == "NAME" and self.tokens[self.at][1] == "_":
            (size,) = self._taken_from_like("_", position)
            self.take()
            return size
        size = self.expression()
        if type(size) is int and self.like is not None and position < len(self.like) and size != self.like[position]:
            raise self.error(f"different size {size} for known dimension; like={tuple(self.like)}")
        return size

    def _taken_from_like(self, placeholder: str, position: int) -> tuple[Size, ...]:
        """The sizes that a placeholder stands for: one for `_`, all that remain for `...`."""
        if self.like is None:
            raise self.error("spec contains ... but no 'like' shape was given")
        whole = tuple(self.like)
        if position + (placeholder == "_") > len(whole):
            raise self.error(f"cannot resolve placeholder '{placeholder}' because we parsed {position} already and "
                             f"'like' shape has only {len(whole)} dimensions")
        sizes = whole[position:position + 1] if placeholder == "_" else whole[position:]
        if None in sizes:
            self.dimension = position + sizes.index(None)
            raise self.error(f"unexpected placeholder for unknown dimension; like={whole}")
        return sizes

    def whole(self) -> Size:
        """One expression, and nothing else."""
        size = self.expression()
        self.expect("ENDMARKER")
        return size

    def expression(self) -> Size:
        total: Size = 0
        sign = self._sign()
        while True:
            total = total + sign * self._term()
            if self.kind not in ("PLUS", "MINUS"):
                return total
            sign = -1 if self.take() == "-" else 1

    def _sign(self) -> int:
        if self.kind == "MINUS":
            self.take()
            return -1
        return 1

    def _term(self) -> Size:
        product = self._power()
        while self.kind == "STAR":
            self.take()
            product = product * self._power()
        return product

    def _power(self) -> Size:
        base = self._atom()
        if self.kind == "CARET":
            self.take()
            return base ** int(self.expect("NUMBER"))
        return base

    def _atom(self) -> Size:
        if self.kind == "NUMBER":
            word = self.tokens[self.at][1]
            if not word.isdigit():
                raise self.error(f"expecting integer, found {word}")
            return int(self.take())
        if self.kind == "MINUS":
            return self._sign() * self._atom()
        name = self.expect("NAME", "MINUS", "NUMBER")
        if name not in ("max", "min", "mod", "floordiv"):
            return variable(name, self.scope)
        self.expect("LPAR")
        x = self.expression()
        self.expect("COMMA")
        y = self.expression()
        self.expect("RPAR")
        return apply(name, x, y)
