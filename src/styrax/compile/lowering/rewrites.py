"""Algebraic rewrites as data.

A row reads `left → right` over scalar expressions; names stand for any expression, numbers for constants. A row may ask
more of what its names stand for. What a level promises of its rows:

- "strict": the same bits (a NaN may have another sign, which IEEE arithmetic leaves open).
- "default": what the left side is in exact arithmetic, up to roundings of one elementary function, for all operands,
  infinities, NaNs and zeros of either sign among them. Intermediate values no longer overflow, as in a program that
  XLA has jitted; eager operations are compiled one by one and never meet.
- "fast": the same for finite operands and divisors that are not zero.

Operands are rewritten before what uses them, so a row whose left side holds another row's never applies: there is no
such row. Every row counts how often it applied.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir.expr import Expr, const_value

if TYPE_CHECKING:
    from .scalars import Scalars

LEVELS = {"strict": 0, "default": 1, "fast": 2}
Term = Any  # a name, a number, or (operation, *terms)


class Rule:
    """One rewrite: what matches, what it becomes, at which level of numerics, and why."""

    __slots__ = ("name", "left", "right", "level", "exact", "why", "when", "hits")

    def __init__(self, name: str, left: Term, right: Term, level: str, why: str,
                 when: Callable[[dict[str, Expr]], bool] | None = None):
        self.name = name
        self.left = left
        self.right = right
        self.level = LEVELS[level]
        self.exact = level == "strict"
        self.why = why
        self.when = when
        self.hits = 0

    def __repr__(self) -> str:
        return f"{self.name}: {show(self.left)} → {show(self.right)}"


def show(term: Term) -> str:
    if isinstance(term, tuple):
        return f"{term[0]}({', '.join(map(show, term[1:]))})"
    return str(term)


def _constant(e: Expr) -> float:
    """The value of a constant, else NaN."""
    return float(const_value(e)) if e.op == "const" else math.nan


ROWS = [
    Rule("double negation", ("neg", ("neg", "x")), "x", "strict", "negation only flips the sign bit"),
    Rule("abs of neg", ("abs", ("neg", "x")), ("abs", "x"), "strict", "the sign is dropped either way"),
    Rule("abs of abs", ("abs", ("abs", "x")), ("abs", "x"), "strict", "the second one finds no sign"),
    Rule("minus negation", ("sub", "x", ("neg", "y")), ("add", "x", "y"), "strict",
         "IEEE subtraction adds the negated"),
    Rule("plus negation", ("add", "x", ("neg", "y")), ("sub", "x", "y"), "strict", "IEEE subtraction adds the negated"),
    Rule("log of sqrt", ("log", ("sqrt", "x")), ("mul", 0.5, ("log", "x")), "default", "a product is cheaper than a "
         "root"),
    Rule("log of exp", ("log", ("exp", "x")), "x", "default", "no overflow on the way"),
    Rule("product of exps", ("mul", ("exp", "x"), ("exp", "y")), ("exp", ("add", "x", "y")), "default",
         "one exponential instead of two"),
    # Of other powers the logarithm is none of a product: the base may be negative, the exponent 0, or infinite at 1.
    Rule("log of even power", ("log", ("pow", "x", "y")), ("mul", "y", ("log", ("abs", "x"))), "default",
         "a product is cheaper than a power", lambda n: _constant(n["y"]) != 0 and _constant(n["y"]) % 2 == 0),
    Rule("log of power of abs", ("log", ("pow", ("abs", "x"), "y")), ("mul", "y", ("log", ("abs", "x"))), "default",
         "a product is cheaper than a power", lambda n: math.isfinite(_constant(n["y"])) and _constant(n["y"]) != 0),
    Rule("log of square", ("log", ("mul", "x", "x")), ("mul", 2.0, ("log", ("abs", "x"))), "default",
         "no overflow on the way"),
    # Powers of what is minus infinity and of negative zero are positive, their roots are not.
    Rule("zeroth power", ("pow", "x", 0.0), 1.0, "strict", "of every number, NaN too"),
    Rule("first power", ("pow", "x", 1.0), "x", "strict", "the number itself"),
    Rule("square", ("pow", "x", 2.0), ("mul", "x", "x"), "default", "a product is rounded once"),
    Rule("cube", ("pow", "x", 3.0), ("mul", ("mul", "x", "x"), "x"), "default", "products are cheaper than a power"),
    Rule("fourth power", ("pow", "x", 4.0), ("mul", ("mul", "x", "x"), ("mul", "x", "x")), "default",
         "products are cheaper than a power"),
    Rule("power of minus one", ("pow", "x", -1.0), ("div", 1.0, "x"), "default", "a quotient is rounded once"),
    Rule("power of minus two", ("pow", "x", -2.0), ("div", ("div", 1.0, "x"), "x"), "default",
         "quotients are cheaper than a power, and a square may overflow"),
    Rule("power of two", ("pow", 2.0, "x"), ("exp2", "x"), "default", "the logarithm of the base is known"),
    Rule("power of a half", ("pow", "x", 0.5), ("select", ("eq", "x", -math.inf), math.inf, ("abs", ("sqrt", "x"))),
         "default", "a root is rounded once"),
    Rule("power of minus a half", ("pow", "x", -0.5), ("div", 1.0, ("pow", "x", 0.5)), "default",
         "a root and a quotient are cheaper than a power"),
    Rule("power of three halves", ("pow", "x", 1.5), ("mul", ("abs", "x"), ("pow", "x", 0.5)), "default",
         "a root and a product are cheaper than a power"),
    Rule("power of minus three halves", ("pow", "x", -1.5), ("div", ("pow", "x", -0.5), ("abs", "x")), "default",
         "a root and quotients are cheaper than a power"),
    Rule("power of a quarter", ("pow", "x", 0.25), ("sqrt", ("pow", "x", 0.5)), "default",
         "two roots are cheaper than a power"),
    Rule("power of minus a quarter", ("pow", "x", -0.25), ("div", 1.0, ("pow", "x", 0.25)), "default",
         "two roots and a quotient are cheaper than a power"),
    Rule("power of three quarters", ("pow", "x", 0.75), ("mul", ("pow", "x", 0.5), ("pow", "x", 0.25)), "default",
         "two roots and a product are cheaper than a power"),
    Rule("power of minus three quarters", ("pow", "x", -0.75), ("div", ("pow", "x", -0.5), ("pow", "x", 0.25)),
         "default", "two roots and two quotients are cheaper than a power"),
    Rule("reciprocal of rsqrt", ("div", 1.0, ("rsqrt", "x")), ("sqrt", "x"), "default", "one operation instead of two"),
    Rule("reciprocal of sqrt", ("div", 1.0, ("sqrt", "x")), ("rsqrt", "x"), "default", "one operation instead of two"),
    Rule("add then subtract", ("sub", ("add", "x", "y"), "x"), "y", "fast", "x cancels but for rounding"),
    Rule("add then subtract, other side", ("sub", ("add", "x", "y"), "y"), "x", "fast", "y cancels but for rounding"),
    Rule("subtract then add", ("add", ("sub", "x", "y"), "y"), "x", "fast", "y cancels but for rounding"),
    Rule("divide then multiply", ("mul", ("div", "x", "y"), "y"), "x", "fast", "y cancels but for rounding"),
]

BY_OPERATION: dict[str, list[Rule]] = {}
for _rule in ROWS:
    BY_OPERATION.setdefault(_rule.left[0], []).append(_rule)


def match(term: Term, e: Expr, names: dict[str, Expr]) -> bool:
    """Whether the expression has the term's form; fills in what its names stand for."""
    if isinstance(term, str):
        return names.setdefault(term, e) is e
    if isinstance(term, tuple):
        return (e.op == term[0] and len(e.args) == len(term) - 1
                and all(match(t, a, names) for t, a in zip(term[1:], e.args, strict=True)))
    return e.op == "const" and e.dtype.kind == "f" and const_value(e) == term


def build(term: Term, b: Scalars, names: dict[str, Expr], like: Expr) -> Expr:
    if isinstance(term, str):
        return names[term]
    if isinstance(term, tuple):
        return getattr(b, term[0])(*(build(t, b, names, like) for t in term[1:]))
    return b.const(term, like.dtype)


def rewrite(b: Scalars, op: str, args: tuple[Expr, ...], level: int) -> Expr | None:
    """The simpler form of an operation on floats, if a row knows one."""
    for rule in BY_OPERATION.get(op, ()):
        if rule.level > level or len(args) != len(rule.left) - 1:
            continue
        names: dict[str, Expr] = {}
        if all(match(t, a, names) for t, a in zip(rule.left[1:], args, strict=True)) and (
                rule.when is None or rule.when(names)):
            rule.hits += 1
            return build(rule.right, b, names, args[0])
    return None


__all__ = ["BY_OPERATION", "LEVELS", "ROWS", "Rule", "rewrite"]
