"""Bounds of symbolic expressions: what holds for all values of the variables.

A lower bound of a polynomial is that of its terms, each taken alone, or that of what remains when a *fact*, another
polynomial that is known to be at least 0, is subtracted so that one of its terms goes (an elimination step as in
linear programming, over rationals). Facts are the scope's constraints and what defines each operation:

    floordiv(x, k) = q, k > 0:   0 <= x - k*q <= k - 1
    mod(x, k) = r, k > 0:        0 <= r <= k - 1,  and r <= x where x >= 0
    max(x, y), min(x, y):        one of the two

Integers are rounded: an expression over integers that is at least 1/2 is at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .symbolic import (
    Factor,
    Monomial,
    Operation,
    SymbolicDim,
    add_terms,
    multiply_monomials,
    multiply_terms,
    terms_of,
)

if TYPE_CHECKING:
    from .scope import SymbolicScope

Bound = Any  # int | Fraction, or an infinite float
STEPS = 3  # facts that are used one after another
Polynomial = Mapping[Monomial, Any]  # with integers or fractions as coefficients


def lower_bound(terms: Polynomial, scope: SymbolicScope) -> Bound:
    """What the expression never falls below; -inf where nothing is known."""
    key = frozenset(terms.items())
    found = scope.bounds.get(key)
    if found is None:
        found = scope.bounds[key] = _rounded_up(_lower(terms, scope, STEPS))
    return found


def upper_bound(terms: Polynomial, scope: SymbolicScope) -> Bound:
    """What the expression never exceeds; inf where nothing is known."""
    return -lower_bound({m: -c for m, c in terms.items()}, scope)


def _rounded_up(bound: Bound) -> Bound:
    return bound if math.isinf(bound) else math.ceil(bound)


def _lower(terms: Polynomial, scope: SymbolicScope, steps: int) -> Bound:
    for monomial in terms:  # an extremum is one of its operands
        for factor, power in monomial:
            if isinstance(factor, Operation) and factor.name in ("max", "min") and power == 1 and steps:
                return _choice(terms, factor, scope, steps)
    best = sum((_term_bound(m, c, scope) for m, c in terms.items()), Fraction(0))
    if not steps:
        return best
    for fact in _facts(terms, scope):
        for monomial, coefficient in fact.items():
            ours = terms.get(monomial)
            if not monomial or ours is None or (ours > 0) != (coefficient > 0):
                continue
            rest = add_terms(terms, fact, -Fraction(ours) / coefficient)  # type: ignore[arg-type]
            best = max(best, _lower(rest, scope, steps - 1))
    return best


def _choice(terms: Polynomial, factor: Operation, scope: SymbolicScope, steps: int) -> Bound:
    """The lower bound where an operand stands for `max` or `min`, whichever it is; an extremum that is only added
    or subtracted is bounded by each of them on one side."""
    alone = [(m, c) for m, c in terms.items() if any(f == factor for f, _ in m)]
    bounds = []
    for operand in factor.operands:
        changed: dict[Monomial, Any] = {m: c for m, c in terms.items() if all(f != factor for f, _ in m)}
        for monomial, coefficient in alone:
            rest = tuple((f, p) for f, p in monomial if f != factor)
            changed = add_terms(changed, multiply_terms({rest: coefficient}, terms_of(operand)))
        bounds.append(_lower(changed, scope, steps))
    helps = len(alone) == 1 and len(alone[0][0]) == 1 and (alone[0][1] > 0) == (factor.name == "max")
    return max(bounds) if helps else min(bounds)


def _term_bound(monomial: Monomial, coefficient: Any, scope: SymbolicScope) -> Bound:
    low, high = _interval(monomial, scope)
    bound = low if coefficient > 0 else high
    return Fraction(coefficient) * bound if not math.isinf(bound) else math.copysign(math.inf, coefficient) * bound


def _interval(monomial: Monomial, scope: SymbolicScope) -> tuple[Bound, Bound]:
    low: Bound = 1
    high: Bound = 1
    for factor, power in monomial:
        a, b = _factor_interval(factor, scope)
        for _ in range(power):
            corners = [_times(x, y) for x in (low, high) for y in (a, b)]
            low, high = min(corners), max(corners)
        if power % 2 == 0 and len(monomial) == 1:
            low = max(low, 0)
    return low, high


def _times(x: Bound, y: Bound) -> Bound:
    return 0 if x == 0 or y == 0 else x * y


def _bounds_of(size: Any, scope: SymbolicScope) -> tuple[Bound, Bound]:
    """Bounds from the terms alone: facts would ask for them in turn."""
    if isinstance(size, SymbolicDim):
        negated = {m: -c for m, c in size.terms.items()}
        return _rounded_up(_lower(size.terms, scope, 0)), -_rounded_up(_lower(negated, scope, 0))
    return size, size


def _factor_interval(factor: Factor, scope: SymbolicScope) -> tuple[Bound, Bound]:
    known = scope.bounds.get(factor)
    if known is not None:
        return known
    if isinstance(factor, str):
        scope.bounds[factor] = _variable_interval(factor, scope)
        return scope.bounds[factor]
    (a, b), (c, d) = (_bounds_of(x, scope) for x in factor.operands)
    interval: tuple[Bound, Bound] = (-math.inf, math.inf)
    if factor.name == "max":
        interval = max(a, c), max(b, d)
    elif factor.name == "min":
        interval = min(a, c), min(b, d)
    elif factor.name == "mod":
        if c > 0:
            interval = 0, d - 1
        elif d < 0:
            interval = c + 1, 0
    elif c > 0 or d < 0:
        corners = [_quotient(x, y) for x in (a, b) for y in (c, d)]
        interval = min(corners), max(corners)
    scope.bounds[factor] = interval
    return interval


def _variable_interval(name: str, scope: SymbolicScope) -> tuple[Bound, Bound]:
    """What each fact says of a variable: it is `coefficient*name + rest >= 0`, with a rest of other variables."""
    monomial = ((name, 1),)
    telling = [(fact[monomial], {m: c for m, c in fact.items() if m != monomial}) for fact in scope.facts
               if monomial in fact and all(m == monomial or _without(name, m) for m in fact)]
    low: Bound = 1
    high: Bound = math.inf
    for coefficient, rest in sorted(telling, key=lambda pair: sum(map(bool, pair[1]))):
        scope.bounds[name] = low, high  # for facts about this variable that those about others lead to
        bound = _lower({m: -Fraction(c) / coefficient for m, c in rest.items()}, scope, 0) if coefficient > 0 else \
            -_lower({m: Fraction(c) / coefficient for m, c in rest.items()}, scope, 0)
        if not math.isinf(bound):
            low, high = (max(low, math.ceil(bound)), high) if coefficient > 0 else (low, min(high, math.floor(bound)))
    return low, high


def _without(name: str, monomial: Monomial) -> bool:
    return all(isinstance(factor, str) and factor != name for factor, _ in monomial)


def _quotient(x: Bound, y: Bound) -> Bound:
    if math.isinf(y):
        return 0 if math.isinf(x) or (x >= 0) == (y > 0) or x == 0 else -1
    if math.isinf(x):
        return x if y > 0 else -x
    return x // y


def _facts(terms: Polynomial, scope: SymbolicScope) -> list[Polynomial]:
    """Polynomials that are at least 0 and have something to do with these terms."""
    facts: list[Polynomial] = list(scope.facts)
    monomials = list(terms)
    for fact in scope.facts:
        monomials += fact
    seen: set[Operation] = set()
    for monomial in monomials:
        for factor, _ in monomial:
            if isinstance(factor, Operation) and factor not in seen:
                seen.add(factor)
                facts += _definition(factor, scope)
    return facts


def _definition(operation: Operation, scope: SymbolicScope) -> list[Polynomial]:
    x, y = operation.operands
    if operation.name not in ("floordiv", "mod") or _bounds_of(y, scope)[0] <= 0:
        return []
    itself: Monomial = ((operation, 1),)
    below_divisor = add_terms(terms_of(y), {(): 1}, -1)
    if operation.name == "floordiv":
        product = {multiply_monomials(m, itself): c for m, c in terms_of(y).items()}
        rest = add_terms(terms_of(x), product, -1)
    else:
        rest = {itself: 1}
    facts: list[Polynomial] = [rest, add_terms(below_divisor, rest, -1)]
    if operation.name == "mod" and _bounds_of(x, scope)[0] >= 0:
        facts.append(add_terms(terms_of(x), rest, -1))
    return facts
