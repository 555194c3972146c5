"""Symbolic sizes: integers of which only a name, or an expression over names, is known.

A `SymbolicDim` is a polynomial in *factors*: variables, which stand for integers of at least 1, and operations
(`floordiv`, `mod`, `max`, `min`) on other expressions. It computes like an integer; a comparison is answered where the
answer is the same for all values of the variables (`bounds`), and is an error otherwise. Equality is false unless the
two are the same for all values, so that sizes can be keys.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.tracing.errors import InconclusiveDimensionOperation
from ..core.types import dtypes
from ..lax.shaping.sizes import size_value

if TYPE_CHECKING:
    from .scope import SymbolicScope

DOCUMENTATION = "https://docs.jax.dev/en/latest/export/shape_poly.html"
Size = Any  # int | SymbolicDim: what arithmetic gives
Key = tuple[Any, ...]



class Operation:
    """What is no polynomial: `floordiv`, `mod`, `max` or `min` of two expressions."""

    __slots__ = ("name", "operands", "extent", "key", "_hash")

    def __init__(self, name: str, operands: tuple[Size, Size]):
        self.name = name
        self.operands = operands
        self.extent = 1 + sum(map(_extent, operands))
        self.key: Key = (self.extent, 1, name, *map(_size_key, operands))
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        texts = [f"- {-x}" if type(x) is int and x < 0 else str(x) for x in self.operands]
        return f"{self.name}({', '.join(texts)})"


Factor = str | Operation
Monomial = tuple[tuple[Factor, int], ...]  # factors with their powers, in the order of their keys
Terms = dict[Monomial, int]


def _factor_key(factor: Factor) -> Key:
    return (1, 0, factor) if isinstance(factor, str) else factor.key


def _monomial_extent(monomial: Monomial) -> int:
    """How many variables, operations and terms stand in a product, each as often as its power says."""
    return sum(power * (1 if isinstance(factor, str) else factor.extent) for factor, power in monomial)


def _extent(size: Size) -> int:
    if not isinstance(size, SymbolicDim):
        return 1
    return sum(1 + 2 * abs(c) * _monomial_extent(m) for m, c in size.terms.items())


def _monomial_key(monomial: Monomial) -> Key:
    """The order of terms: by their extent, the number of factors, the largest ones, then by their powers."""
    return (_monomial_extent(monomial), len(monomial), [_factor_key(f) for f, _ in reversed(monomial)],
            [power for _, power in reversed(monomial)])


def _size_key(size: Size) -> Key:
    if not isinstance(size, SymbolicDim):
        return (((), int(size)),)
    return tuple((tuple((_factor_key(f), p) for f, p in m), c) for m, c in size.ordered())


def multiply_monomials(x: Monomial, y: Monomial) -> Monomial:
    powers: dict[Factor, int] = dict(x)
    for factor, power in y:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _factor_key(item[0])))


def divide_monomials(x: Monomial, y: Monomial) -> Monomial | None:
    """x / y, or None where y does not divide x."""
    powers = dict(x)
    for factor, power in y:
        left = powers.get(factor, 0) - power
        if left < 0:
            return None
        powers[factor] = left
    return tuple((f, p) for f, p in powers.items() if p)


def add_terms(x: Mapping[Monomial, int], y: Mapping[Monomial, int], factor: int = 1) -> Terms:
    out = dict(x)
    for m, c in y.items():
        out[m] = out.get(m, 0) + factor * c
    return {m: c for m, c in out.items() if c}


def multiply_terms(x: Mapping[Monomial, int], y: Mapping[Monomial, int]) -> Terms:
    out: Terms = {}
    for m, c in x.items():
        for n, d in y.items():
            key = multiply_monomials(m, n)
            out[key] = out.get(key, 0) + c * d
    return {m: c for m, c in out.items() if c}


def terms_of(size: Size) -> Mapping[Monomial, int]:
    if isinstance(size, SymbolicDim):
        return size.terms
    return {(): int(size)} if size else {}


def make(terms: Mapping[Monomial, int], scope: SymbolicScope) -> Size:
    """The size that is this polynomial: an integer where nothing symbolic is left."""
    terms = scope.rewrite(terms)
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return SymbolicDim(terms, scope)


def variable(name: str, scope: SymbolicScope) -> Size:
    return make({((name, 1),): 1}, scope)


class SymbolicDim:
    """A size that is an expression over dimension variables."""

    __slots__ = ("terms", "scope", "_ordered", "_hash")
    _is_symbolic_dim = True
    __array_priority__ = 1000  # NumPy's scalars leave arithmetic to it

    def __init__(self, terms: Mapping[Monomial, int], scope: SymbolicScope):
        self.terms = terms
        self.scope = scope
        self._ordered: list[tuple[Monomial, int]] | None = None
        self._hash: int | None = None

    def ordered(self) -> list[tuple[Monomial, int]]:
        """The terms, largest first; the constant is the last one."""
        if self._ordered is None:
            self._ordered = sorted(self.terms.items(), key=lambda item: _monomial_key(item[0]), reverse=True)
        return self._ordered

    def variables(self) -> set[str]:
        """The names of all variables in the expression."""
        found: set[str] = set()
        for factor in self.factors():
            if isinstance(factor, str):
                found.add(factor)
            else:
                found.update(*(x.variables() for x in factor.operands if isinstance(x, SymbolicDim)))
        return found

    def factors(self) -> Iterator[Factor]:
        for monomial in self.terms:
            for factor, _ in monomial:
                yield factor

    # -- text --------------------------------------------------------------------------------------
    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.ordered():
            sign = "- " if coefficient < 0 else ""
            text += f" {sign or '+ '}" if text else sign
            factors = [str(f) if p == 1 else f"{f}^{p}" for f, p in monomial]
            if abs(coefficient) != 1 or not monomial:
                factors.insert(0, str(abs(coefficient)))
            text += "*".join(factors)
        return text

    __repr__ = __str__

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), id(self.scope)))
        return self._hash

    # -- arithmetic --------------------------------------------------------------------------------
    def __jax_array__(self) -> Any:
        return size_value(self, dtypes.canonicalize_dtype(np.dtype(np.int64)), weak_type=True)

    def _size(self, other: Any, doing: str) -> Size | None:
        """The other operand as a size; None where it is something else, such as an array."""
        if isinstance(other, SymbolicDim):
            self.scope.check_same(other, doing)
            return other
        try:
            return operator.index(other)
        except TypeError:
            return None

    def _compute(self, function: Callable[[Any, Any], Any], other: Any, doing: str,
                 on_sizes: Callable[[Size], Size], swapped: bool = False) -> Any:
        size = self._size(other, doing)
        if size is not None:
            return on_sizes(size)
        if not isinstance(other, (float, complex, np.ndarray, np.generic)) and not hasattr(other, "dtype"):
            return NotImplemented
        value = self.__jax_array__()
        return function(other, value) if swapped else function(value, other)

    def _linear(self, x: Size, factor: int, y: Size) -> Size:
        return make(add_terms(terms_of(x), terms_of(y), factor), self.scope)

    def __add__(self, other: Any) -> Any:
        return self._compute(operator.add, other, "for linear combination", lambda y: self._linear(self, 1, y))

    def __radd__(self, other: Any) -> Any:
        return self._compute(operator.add, other, "for linear combination", lambda y: self._linear(y, 1, self), True)

    def __sub__(self, other: Any) -> Any:
        return self._compute(operator.sub, other, "for linear combination", lambda y: self._linear(self, -1, y))

    def __rsub__(self, other: Any) -> Any:
        return self._compute(operator.sub, other, "for linear combination", lambda y: self._linear(y, -1, self), True)

    def __neg__(self) -> Size:
        return self._linear(0, -1, self)

    def __pos__(self) -> SymbolicDim:
        return self

    def _product(self, other: Size) -> Size:
        return make(multiply_terms(self.terms, terms_of(other)), self.scope)

    def __mul__(self, other: Any) -> Any:
        return self._compute(operator.mul, other, "for multiplication", self._product)

    def __rmul__(self, other: Any) -> Any:
        return self._compute(operator.mul, other, "for multiplication", self._product, True)

    def __pow__(self, power: Any, modulo: None = None) -> Any:
        if modulo is not None:
            raise NotImplementedError("__pow__ modulo not implemented")
        if isinstance(power, float):
            raise ValueError(f"Symbolic dimension cannot be raised to non-integer powers: '{self}' ** '{power}'")
        if not isinstance(power, (int, np.integer)):
            return self.__jax_array__() ** power
        if power < 0:
            raise ValueError(f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{power}'")
        out: Size = 1
        for _ in range(power):
            out = out * self
        return out

    def __rpow__(self, base: Any) -> Any:
        return base ** self.__jax_array__()

    def __floordiv__(self, other: Any) -> Any:
        return self._compute(operator.floordiv, other, "for floordiv", lambda y: divide(self, y, self.scope)[0])

    def __rfloordiv__(self, other: Any) -> Any:
        return self._compute(operator.floordiv, other, "for floordiv", lambda y: divide(y, self, self.scope)[0], True)

    def __mod__(self, other: Any) -> Any:
        return self._compute(operator.mod, other, "for mod", lambda y: divide(self, y, self.scope)[1])

    def __rmod__(self, other: Any) -> Any:
        return self._compute(operator.mod, other, "for mod", lambda y: divide(y, self, self.scope)[1], True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self.__jax_array__() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__jax_array__()

    @staticmethod
    def extremum(name: str, x: Size, y: Size) -> Size:
        """The "max" or "min" of two sizes, for `core.types.dims`."""
        return apply(name, x, y)

    # -- questions ---------------------------------------------------------------------------------
    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, SymbolicDim):
            return self.scope is other.scope and self.terms == other.terms
        return False  # an integer is never the same for all values

    def _at_least(self, other: Any, sign: str, offset: int, swapped: bool) -> Any:
        size = self._size(other, f"when comparing '{self}' {sign} '{other}'")
        if size is None:
            return NotImplemented
        difference = self._linear(size, -1, self) if swapped else self._linear(self, -1, size)
        answer = self.scope.nonnegative(difference - offset)
        if answer is None:
            constraints = f"\nUsing symbolic scope {self.scope}" if self.scope.constraints else ""
            raise inconclusive(f"Symbolic dimension comparison '{self}' {sign} '{size}' is inconclusive.{constraints}")
        return answer

    def __ge__(self, other: Any) -> Any:
        return self._at_least(other, ">=", 0, False)

    def __gt__(self, other: Any) -> Any:
        return self._at_least(other, ">", 1, False)

    def __le__(self, other: Any) -> Any:
        return self._at_least(other, "<=", 0, True)

    def __lt__(self, other: Any) -> Any:
        return self._at_least(other, "<", 1, True)

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        raise inconclusive(f"Symbolic dimension '{self}' used in a context that requires a constant")

    def __reduce__(self) -> Any:
        return self.scope.parse, (str(self),)


def inconclusive(what: str) -> InconclusiveDimensionOperation:
    """The error for a question whose answer differs with the values of the variables."""
    return InconclusiveDimensionOperation(
        f"{what}\nThis error arises for comparison operations with shapes that\nare non-constant, and the result of "
        "the operation cannot be represented as\na boolean value for all values of the symbolic dimensions involved."
        f"\n\nPlease see {DOCUMENTATION}#comparison-of-symbolic-dimensions-is-partially-supported\nfor more details.\n")


def _extremum(name: str, x: Size, y: Size, scope: SymbolicScope) -> Size:
    for size in (x, y):
        if isinstance(size, SymbolicDim):
            scope.check_same(size, f"for {name}")
    if scope.nonnegative(x - y):
        return x if name == "max" else y
    if scope.nonnegative(y - x):
        return y if name == "max" else x
    return make({((Operation(name, (x, y)), 1),): 1}, scope)


def apply(name: str, x: Size, y: Size) -> Size:
    """An operation on sizes, symbolic or not."""
    if name in ("max", "min"):
        for size in (x, y):
            if isinstance(size, SymbolicDim):
                return _extremum(name, x, y, size.scope)
        return max(x, y) if name == "max" else min(x, y)
    return x // y if name == "floordiv" else x % y


def divide(x: Size, y: Size, scope: SymbolicScope) -> tuple[Size, Size]:
    """Quotient and remainder: by polynomial division where it ends well, else as operations."""
    if not isinstance(y, SymbolicDim) and y == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    quotient: Size = 0
    rest = x
    while isinstance(rest, SymbolicDim) or (isinstance(y, SymbolicDim) and rest):
        (monomial, coefficient) = rest.ordered()[0] if isinstance(rest, SymbolicDim) else ((), rest)
        (leading, divisor) = y.ordered()[0] if isinstance(y, SymbolicDim) else ((), y)
        left = divide_monomials(monomial, leading)
        if left is None or coefficient % divisor:
            break
        part = make({left: coefficient // divisor}, scope)
        quotient, rest = quotient + part, rest - part * y
    else:
        if isinstance(y, SymbolicDim):
            return quotient, 0
        return quotient + rest // y, rest % y
    operation = lambda name: make({((Operation(name, (x, y)), 1),): 1}, scope)
    return operation("floordiv"), operation("mod")


def evaluate(size: Size, values: Mapping[str, Size]) -> Size:
    """An expression with values, symbolic or not, in place of its variables.

    Raises KeyError for a variable without a value.
    """
    if not isinstance(size, SymbolicDim):
        return size
    total: Size = 0
    for monomial, coefficient in size.terms.items():
        product: Size = coefficient
        for factor, power in monomial:
            value = values[factor] if isinstance(factor, str) else apply(
                factor.name, *(evaluate(x, values) for x in factor.operands))
            product = product * value**power
        total = total + product
    return total
