"""Loop coalescing under conditions: two loops become one though conditions ask for the outer variable, and places are
guarded by them, as those of images that are rolled or padded along a dimension before their few channels are.

With `m = k·a + c` and 0 ≤ c < k, `a < t` is `m < k·t`, and a place `k·(a + t) + c` that is read under such a condition
is `m + k·t`. Before, and after (`guard(condition, place, size)`: a place below the size, where the condition holds):

    group[i0, i1; ]:
      outer -1: point[i0, i1] out0[(3*i0 + i1)] = select(ge((-1 + i0), 0), arg0[(3*guard(ge((-1 + i0), 0), (-1 + i0), 63) + i1)], 0.0:float32)

    nest[i2; ] i2 vector(16):
      outer -1: point[i0, i1] out0[i2] = select(ge(i2, 3), arg0[guard(ge(i2, 3), (-3 + i2), 189)], 0.0:float32)
"""  # noqa: E501 (what programs print)

from __future__ import annotations

from ...core.types.index_type import INDEX
from ..ir.expr import Expr, Polynomial, coefficient, poly_terms
from ..lowering.builder import Builder

COMPARISONS = frozenset(("lt", "le", "gt", "ge"))


class NotAsOne(Exception):
    """An expression takes the two loops for more than one."""


class Coalesced:
    """Rewrites expressions of two loops, of which the inner one runs a known number of times, to those of one."""

    def __init__(self, b: Builder, outer: Expr, inner: Expr):
        size = b.extents[inner]
        if not isinstance(size, int):
            raise NotAsOne
        self.b, self.outer, self.inner, self.size = b, outer, inner, size
        self.both = b.loop_var(b.product((b.extents[outer], size)))
        self.known: dict[Expr, Expr] = {}

    def value(self, e: Expr) -> Expr:
        """An expression. Raises NotAsOne where it needs the variables themselves."""
        if self._untouched(e):
            return e
        found = self.known.get(e)
        if found is None:
            found = self.known[e] = self._value(e)
        return found

    def place(self, e: Expr) -> Expr:
        """An index that is accessed."""
        if self._untouched(e):
            return e
        step = coefficient(self.b.arena, e, self.inner)
        if step is None or step.op != "const":
            raise NotAsOne
        rest = self.b.isub(e, self.b.imul(step, self.inner))
        plain: Polynomial = {}
        guards: list[tuple[Expr, int]] = []
        for factors, number in poly_terms(rest).items():
            if len(factors) == 1 and factors[0].op == "guard" and not self._untouched(factors[0]):
                guards.append((factors[0], number))
            else:
                plain[factors] = number
        moved, of_outer = self.b.arena.poly(plain), step.attr * self.size
        if len(guards) == 1 and guards[0][1] == of_outer and self._untouched(moved):
            return self.b.iadd(moved, self.b.imul(step, self._guard(guards[0][0])))
        if guards or coefficient(self.b.arena, moved, self.outer) is not self.b.int(of_outer):
            raise NotAsOne
        return self.b.iadd(self.b.isub(moved, self.b.imul(self.outer, of_outer)), self.b.imul(step, self.both))

    def _untouched(self, e: Expr) -> bool:
        return self.outer not in e.deps and self.inner not in e.deps

    def _value(self, e: Expr) -> Expr:
        b = self.b
        if e.op == "load":
            args = self.place(e.args[0]), *map(self.value, e.args[1:])
        elif e.op in COMPARISONS and e.args[0].dtype is INDEX:
            return self._comparison(e)
        elif e.dtype is INDEX or any(a.dtype is INDEX for a in e.args):
            raise NotAsOne
        else:
            args = tuple(map(self.value, e.args))
        return b.arena.node(e.op, args, e.dtype, e.attr, e.bounds)

    def _comparison(self, e: Expr) -> Expr:
        """`a < t` or `a >= t`, as one of both loops."""
        b = self.b
        difference = b.isub(*e.args)
        sign = coefficient(b.arena, difference, self.outer)
        if sign is None or sign.op != "const" or sign.attr not in (1, -1):
            raise NotAsOne
        rest = b.isub(difference, b.imul(sign, self.outer))
        if not self._untouched(rest):
            raise NotAsOne
        rising = sign.attr == 1
        first = b.imul(rest, -sign.attr)  # where the two are equal; the answer changes there, or one later
        if e.op in ("le", "gt") if rising else e.op in ("lt", "ge"):
            first = b.iadd(first, 1)
        below = (e.op in ("lt", "le")) == rising
        return (b.lt if below else b.ge)(self.both, b.imul(first, self.size))

    def _guard(self, e: Expr) -> Expr:
        """A guarded index of the outer loop alone, times the size of the inner one, whose variable is added."""
        b = self.b
        condition, index, extent = e.args
        start = b.isub(index, self.outer)
        if not self._untouched(start) or extent.op != "const":
            raise NotAsOne
        return b.guard(self.value(condition), b.iadd(self.both, b.imul(start, self.size)), extent.attr * self.size)
