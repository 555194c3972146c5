"""Scalars of the loop IR: hash-consed expression nodes, and the integer algebra of indices.

An `Expr` is a pure scalar computation. Equal expressions are one object, so sharing is identity.
Expressions of index type are kept as polynomials over atoms (loop variables, sizes
known at run time, loads, quotients): that is what makes the strides of an access visible.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.types.dims import NotGeneric
from ...core.types.index_type import INDEX, IndexType, ScalarType

if TYPE_CHECKING:
    from .loopir import Buffer

BOOL = np.dtype(np.bool_)
INT32 = np.dtype(np.int32)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)

UNBOUNDED = (-(1 << 63), (1 << 63) - 1)
SAFE = 1 << 60  # integers within ±SAFE are indices and sizes, on which arithmetic does not wrap
ENDLESS = 1 << 50  # the most that anything costs: written out, expressions whose parts are reused grow exponentially
MAX_SIZE = 1 << 48  # a size known only at run time lies in [1, MAX_SIZE]


class Expr:
    """A scalar: `op` applied to `args`, with a static `attr`.

    `deps` is the set of loop variables and mutable variables it depends on, `reads` that of the buffers it loads from;
    `bounds` encloses an integer's value; `cost` estimates the instructions of computing it alone.
    """

    __slots__ = ("op", "args", "dtype", "attr", "deps", "reads", "bounds", "cost", "id", "arena")

    op: str
    args: tuple[Expr, ...]
    dtype: ScalarType
    attr: Any
    deps: frozenset[Expr]
    reads: frozenset[Buffer]
    bounds: tuple[int, int]
    cost: int
    id: int
    arena: Arena

    # sizes and indices are added up by lowering rules without ado
    def __add__(self, other: Index) -> Index:
        return unwrap(self.arena.iadd(self, other))

    __radd__ = __add__

    def __sub__(self, other: Index) -> Index:
        return unwrap(self.arena.isub(self, other))

    def __rsub__(self, other: Index) -> Index:
        return unwrap(self.arena.isub(other, self))

    def __mul__(self, other: Index) -> Index:
        return unwrap(self.arena.imul(self, other))

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return unwrap(self.arena.imul(self, -1))

    def __floordiv__(self, other: Index) -> Index:
        return unwrap(self.arena.floordiv(self, other))

    def __mod__(self, other: Index) -> Index:
        return unwrap(self.arena.floormod(self, other))

    # a rule that asks for more does not know sizes that are known only at run time
    def __lt__(self, other: object) -> bool:
        raise NotGeneric("a size in a comparison")

    __le__ = __gt__ = __ge__ = __lt__

    def __index__(self) -> int:
        raise NotGeneric("a size as a plain integer")

    def __repr__(self) -> str:
        return show(self)

    def __bool__(self) -> bool:
        if self.dtype is INDEX:  # a size, asked whether it is zero
            low, high = self.bounds
            if low > 0 or high < 0 or low == high == 0:
                return low != 0
            raise NotGeneric("whether a size is zero")
        raise TypeError(f"the scalar expression {self} has no truth value while a kernel is built")


Index = Expr | int
NO_DEPS: frozenset[Expr] = frozenset()
NO_READS: frozenset[Buffer] = frozenset()
LOADS = frozenset(("load", "transposed"))  # from the buffer that their `attr` begins with

# estimated instructions of an operation; those of others are 1
COSTS = {
    **dict.fromkeys("const var param poly cast bitcast get complex".split(), 0),
    **dict.fromkeys("exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh cbrt erf "
                    "erfc logistic".split(), 12),
    **dict.fromkeys("pow atan2 erf_inv lgamma digamma bessel_i0e bessel_i1e log_modulus log1p_modulus".split(), 30),
    **dict.fromkeys("zeta polygamma igamma igammac betainc".split(), 300),
    "sqrt": 4, "div": 4, "rem": 8, "rsqrt": 5,
}
CONVERSIONS = frozenset(("cast", "bitcast", "widen", "narrow"))
TRANSCENDENTAL = frozenset(op for op, cost in COSTS.items() if cost >= 12)

Integer = int  # in the class below, `int` is a method
Monomial = tuple[Expr, ...]  # a sorted product of atoms
Polynomial = dict[Monomial, int]  # and coefficients


class Arena:
    """The home of one compilation's expressions: makes nodes, shares equal ones, folds integers."""

    def __init__(self) -> None:
        self.nodes: dict[Any, Expr] = {}
        self.counter = 0
        self.consts: dict[Any, Expr] = {}
        self.loads: dict[Expr, tuple[Expr, ...]] = {}  # of expressions that were asked for them
        # what was asked before
        self.sums: dict[frozenset[tuple[tuple[Expr, ...], int]], Expr] = {}
        self.products: dict[tuple[Expr, Expr], Expr] = {}
        self.coefficients: dict[tuple[Expr, Expr], Expr | None] = {}

    # -- nodes -----------------------------------------------------------------------------------
    def node(self, op: str, args: tuple[Expr, ...], dtype: ScalarType, attr: Any = None,
             bounds: tuple[int, int] = UNBOUNDED, deps: frozenset[Expr] | None = None) -> Expr:
        key = (op, args, dtype, attr)
        found = self.nodes.get(key)
        if found is not None:
            return found
        e = Expr()
        e.arena = self
        e.op = op
        e.args = args
        e.dtype = dtype
        e.attr = attr
        e.bounds = bounds
        e.id = self.counter
        self.counter += 1
        if deps is None:
            if not args:
                deps = NO_DEPS
            else:
                deps = args[0].deps
                for a in args:
                    if a.deps is not deps and not a.deps <= deps:
                        deps = deps | a.deps
        e.deps = deps
        cost = COSTS.get(op, 1)
        reads = frozenset((attr[0],)) if op in LOADS else NO_READS
        for a in args:
            cost += a.cost
            if a.reads and a.reads is not reads:
                reads = reads | a.reads if reads else a.reads
        e.cost = cost if cost < ENDLESS else ENDLESS
        e.reads = reads
        self.nodes[key] = e
        return e

    def unique(self, op: str, dtype: ScalarType, attr: Any, bounds: tuple[int, int] = UNBOUNDED,
               depends_on_itself: bool = True) -> Expr:
        """A node that equals no other: a loop variable, a size, a mutable variable."""
        e = Expr()
        e.arena = self
        e.op = op
        e.args = ()
        e.dtype = dtype
        e.attr = attr
        e.bounds = bounds
        e.id = self.counter
        self.counter += 1
        e.cost = 0
        e.reads = NO_READS
        e.deps = frozenset((e,)) if depends_on_itself else NO_DEPS
        return e

    def other(self, dtype: ScalarType, number: int) -> Expr:
        """What stands for any scalar of a dtype, where only what becomes of it matters: the same one each time."""
        return self.node("other", (), dtype, number)

    def const(self, value: Any, dtype: ScalarType) -> Expr:
        if isinstance(dtype, IndexType):
            return self.int(int(value))
        dtype = np.dtype(dtype)
        value = np.asarray(value).astype(dtype)[()] if not isinstance(value, dtype.type) else value
        key = (dtype, value.tobytes())
        found = self.consts.get(key)
        if found is None:
            bounds = UNBOUNDED
            if dtype.kind in "iu":
                bounds = (int(value), int(value))
            found = self.consts[key] = self.node("const", (), dtype, _Const(value), bounds)
        return found

    def int(self, value: int) -> Expr:
        found = self.consts.get(value)
        if found is None:
            found = self.consts[value] = self.node("const", (), INDEX, value, (value, value))
        return found

    def index(self, i: Index) -> Expr:
        return i if isinstance(i, Expr) else self.int(int(i))

    def var(self, name: str, extent: Index) -> Expr:
        """A loop variable running from 0 to `extent`."""
        high = extent if isinstance(extent, int) else MAX_SIZE
        return self.unique("var", INDEX, name, (0, max(high - 1, 0)))

    def param(self, name: str) -> Expr:
        """A size that is known when the kernel runs."""
        return self.unique("param", INDEX, name, (1, MAX_SIZE), depends_on_itself=False)

    # -- integer algebra -------------------------------------------------------------------------
    def poly(self, terms: Polynomial) -> Expr:
        key = frozenset(terms.items())
        found = self.sums.get(key)
        if found is None:
            found = self.sums[key] = self._poly(terms)
        return found

    def _poly(self, terms: Polynomial) -> Expr:
        terms = {m: c for m, c in terms.items() if c}
        if len(terms) > 1:
            terms = self._recombine(terms)
        if not terms:
            return self.int(0)
        if len(terms) == 1:
            (mono, c), = terms.items()
            if not mono:
                return self.int(c)
            if c == 1 and len(mono) == 1:
                return mono[0]
        items = tuple(sorted(terms.items(), key=lambda mc: [a.id for a in mc[0]]))
        atoms = tuple({a: None for m, _ in items for a in m})
        lo = hi = 0
        for m, c in items:
            ml = mh = 1
            for a in m:
                al, ah = a.bounds
                products = (ml * al, ml * ah, mh * al, mh * ah)
                ml, mh = min(products), max(products)
            lo += min(c * ml, c * mh)
            hi += max(c * ml, c * mh)
        return self.node("poly", atoms, INDEX, items, (max(lo, UNBOUNDED[0]), min(hi, UNBOUNDED[1])))

    def _recombine(self, terms: Polynomial) -> Polynomial:
        """e·(y // e) + y % e = y, for any common factor, where e is a number or a product of sizes."""
        remainders = [(m, t) for m in terms for t in m if t.op == "floormod"]
        quotients = [(m, a) for m in terms for a in m if a.op == "floordiv"] if remainders else []
        for (mono, a), (other, t) in itertools.product(quotients, remainders):
            (divisor, number), *more = poly_terms(t.args[1]).items()
            rest, factor = _without(mono, (a, *divisor)), terms[other]
            if more or rest is None or factor * number != terms[mono] or other != _sorted(*rest, t):
                continue
            whole = self._divided(a, t)
            if whole is not None:
                new = {m: k for m, k in terms.items() if m is not mono and m is not other}
                for m, k in poly_terms(whole).items():
                    key = _sorted(*rest, *m)
                    new[key] = new.get(key, 0) + factor * k
                return self._recombine({m: k for m, k in new.items() if k})
        return terms

    def _divided(self, quotient: Expr, remainder: Expr) -> Expr | None:
        """The y of y // e and y % e. They may be written otherwise: (x // d) // e, and y without multiples of e."""
        (x, d), (y, e) = quotient.args, remainder.args
        if d is e and (x is y or self.floormod(x, d) is remainder):
            return x
        return y if self.floordiv(y, e) is quotient else None

    def iadd(self, x: Index, y: Index) -> Expr:
        x, y = self.index(x), self.index(y)
        if x.op == "const" and y.op == "const":
            return self.int(x.attr + y.attr)
        if x.op == "const" and x.attr == 0:
            return y
        if y.op == "const" and y.attr == 0:
            return x
        terms = dict(poly_terms(x))
        for m, c in poly_terms(y).items():
            terms[m] = terms.get(m, 0) + c
        return self.poly(terms)

    def imul(self, x: Index, y: Index) -> Expr:
        x, y = self.index(x), self.index(y)
        if x.op == "const":
            x, y = y, x
        if y.op == "const":
            if y.attr == 1:
                return x
            if x.op == "const":
                return self.int(x.attr * y.attr)
            if y.attr == 0:
                return y
        found = self.products.get((x, y))
        if found is None:
            terms: Polynomial = {}
            for m, c in poly_terms(x).items():
                for n, d in poly_terms(y).items():
                    key = _sorted(*m, *n) if m and n else m or n
                    terms[key] = terms.get(key, 0) + c * d
            found = self.products[x, y] = self.poly(terms)
        return found

    def isub(self, x: Index, y: Index) -> Expr:
        return self.iadd(x, self.imul(y, -1))

    def affine(self, offset: Index, indices: Sequence[Index], strides: Sequence[Index]) -> Expr:
        """offset + Σ index·stride, as one sum."""
        terms = poly_terms(self.index(offset))
        for i, s in zip(indices, strides, strict=True):
            i, s = self.index(i), self.index(s)
            if s.op != "const":
                i, s = self.imul(i, s), self.int(1)
            for m, c in poly_terms(i).items():
                terms[m] = terms.get(m, 0) + c * s.attr
        return self.poly(terms)

    def _split(self, x: Expr, d: Integer) -> tuple[Expr, Expr] | None:
        """x as q·d + r with 0 <= r < d, where the bounds show it."""
        lo, hi = x.bounds
        if lo >= 0 and hi < d:
            return self.int(0), x
        quotient: Polynomial = {}
        rest: Polynomial = {}
        for m, c in poly_terms(x).items():
            q, r = divmod(c, d)
            if q:
                quotient[m] = q
            if r:
                rest[m] = r
        if not quotient:
            return None
        remainder = self.poly(rest)
        if remainder.bounds[0] >= 0 and remainder.bounds[1] < d:
            return self.poly(quotient), remainder
        return None

    def floordiv(self, x: Index, y: Index) -> Expr:
        x, y = self.index(x), self.index(y)
        if y.op == "const":
            d = y.attr
            if d == 1:
                return x
            split = self._split(x, d)
            if split is not None:
                return split[0]
            multiples = {m: c for m, c in poly_terms(x).items() if c % d == 0}  # come out, whatever is left
            if multiples:
                rest = self.isub(x, self.poly(multiples))
                return self.iadd(self.poly({m: c // d for m, c in multiples.items()}), self.floordiv(rest, y))
            if x.op == "floordiv" and x.args[1].op == "const":
                return self.floordiv(x.args[0], x.args[1].attr * d)
            lo, hi = x.bounds
            return self.node("floordiv", (x, y), INDEX, None, (lo // d, hi // d))
        exact = self.exact_quotient(x, y)
        if exact is not None:
            return exact
        return self.node("floordiv", (x, y), INDEX, None, (min(x.bounds[0], 0), max(x.bounds[1], 0)))

    def exact_quotient(self, x: Expr, y: Expr) -> Expr | None:
        """x / y for symbolic y that divides every term of x."""
        divisor = poly_terms(y)
        if len(divisor) != 1:
            return None
        (dm, dc), = divisor.items()
        out = {}
        for m, c in poly_terms(x).items():
            rest = _without(m, dm)
            if rest is None or c % dc:
                return None
            out[rest] = c // dc
        return self.poly(out)

    def floormod(self, x: Index, y: Index) -> Expr:
        x, y = self.index(x), self.index(y)
        if y.op == "const":
            d = y.attr
            if d == 1:
                return self.int(0)
            if x.op == "const":
                return self.int(x.attr % d)
            split = self._split(x, d)
            if split is not None:
                return split[1]
            # multiples of d do not count
            reduced = self.poly({m: c % d for m, c in poly_terms(x).items()}) if x.bounds[0] >= 0 else x
            if reduced is not x:
                return self.floormod(reduced, y)
            if x.op == "floormod" and x.args[1].op == "const" and x.args[1].attr % d == 0:
                return self.floormod(x.args[0], d)
            return self.node("floormod", (x, y), INDEX, None, (0, d - 1))
        if self.exact_quotient(x, y) is not None:
            return self.int(0)
        return self.node("floormod", (x, y), INDEX, None, (0, MAX_SIZE))

    def product(self, dims: Sequence[Index]) -> Index:
        n: Index = 1
        for d in dims:
            n = n * d if isinstance(n, int) and isinstance(d, int) else unwrap(self.imul(n, d))
        return n

    # -- substitution ----------------------------------------------------------------------------
    def substitute(self, e: Expr, mapping: dict[Expr, Expr], memo: dict[Expr, Expr],
                   make: Callable[[Expr, tuple[Expr, ...]], Expr] | None = None,
                   reads: frozenset[Buffer] = NO_READS) -> Expr:
        """The expression with variables replaced, and what `memo` has something for, if that depends on such
        variables or reads buffers that are among `reads`. `make` gives the new node for an old one and its new
        operands, where that is not the same operation again."""
        if e.deps.isdisjoint(mapping) and e.reads.isdisjoint(reads):
            return e
        found = memo.get(e)
        if found is not None:
            return found
        if e in mapping:
            out = mapping[e]
        elif e.op == "poly":
            terms: Polynomial = {}
            for m, c in e.attr:
                term: Expr | None = None
                for a in m:
                    new = self.substitute(a, mapping, memo, make, reads)
                    term = new if term is None else self.imul(term, new)
                for n, d in poly_terms(self.int(1) if term is None else term).items():
                    terms[n] = terms.get(n, 0) + c * d
            out = self.poly(terms)
        else:
            args = tuple(self.substitute(a, mapping, memo, make, reads) for a in e.args)
            if e.op in ("floordiv", "floormod"):
                out = self.floordiv(*args) if e.op == "floordiv" else self.floormod(*args)
            elif make is not None:
                out = make(e, args)
            else:
                out = self.node(e.op, args, e.dtype, e.attr, e.bounds)
        memo[e] = out
        return out


class _Const:
    """A constant's value, equal to another by its bits (so that NaN equals itself and 0.0 is not -0.0)."""

    __slots__ = ("value", "key")

    def __init__(self, value: Any):
        self.value = value
        self.key = value.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Const) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return str(self.value)


def const_value(e: Expr) -> Any:
    """The value of a constant node."""
    return e.attr.value if isinstance(e.attr, _Const) else e.attr


def _sorted(*atoms: Expr) -> Monomial:
    return tuple(sorted(atoms, key=lambda a: a.id))


def _without(product: Monomial, factors: Monomial) -> Monomial | None:
    """What is left of a product without some of its factors; None where it does not have them all."""
    left = Counter(product)
    left.subtract(factors)
    return None if min(left.values(), default=0) < 0 else tuple(left.elements())


def unwrap(e: Index) -> Index:
    """A constant index as a Python int."""
    return e.attr if isinstance(e, Expr) and e.op == "const" else e


def poly_terms(e: Expr) -> Polynomial:
    if e.op == "poly":
        return dict(e.attr)
    if e.op == "const":
        return {(): e.attr} if e.attr else {}
    return {(e,): 1}


def coefficient(arena: Arena, e: Expr, v: Expr) -> Expr | None:
    """The coefficient of `v` in an index, or None where `v` stands inside an opaque atom or a power."""
    if v not in e.deps:
        return arena.int(0)
    try:
        return arena.coefficients[e, v]
    except KeyError:
        found = arena.coefficients[e, v] = _coefficient(arena, e, v)
        return found


def _coefficient(arena: Arena, e: Expr, v: Expr) -> Expr | None:
    out: Polynomial = {}
    for m, c in poly_terms(e).items():
        count = 0
        for a in m:
            if a is v:
                count += 1
            elif v in a.deps:
                return None
        if count > 1:
            return None
        if count:
            out[tuple(a for a in m if a is not v)] = c
    return arena.poly(out)


def walk(roots: Sequence[Expr]) -> Iterator[Expr]:
    """Every node under the roots, each once, arguments first."""
    seen: set[Expr] = set()
    stack: list[Expr | None] = [*reversed(roots)]
    while stack:
        e = stack.pop()
        if e is None:  # the arguments of what lies below have been given
            yield stack.pop()  # type: ignore[misc]
        elif e not in seen:
            seen.add(e)
            if e.args:
                stack.append(e)
                stack.append(None)
                stack.extend(e.args)
            else:
                yield e


SHORT = 300  # nodes up to which expressions are written out, whatever they share


def shared(roots: Sequence[Expr]) -> list[Expr]:
    """What long expressions have in common, operands first: written out at each place, it could fill any memory."""
    sizes: dict[Expr, int] = {}
    users: dict[Expr, int] = {}
    for n in walk(roots):
        sizes[n] = 1 + sum(sizes[a] for a in n.args)
        for a in n.args:
            users[a] = users.get(a, 0) + 1
    if sum(sizes[r] for r in roots) <= SHORT:
        return []
    return [n for n, size in sizes.items() if size > 3 and users.get(n, 0) > 1]


_named: dict[Expr, str] = {}  # while a statement is printed: what its expressions share


@contextmanager
def naming(nodes: Sequence[Expr]) -> Iterator[list[str]]:
    """Inside, `show` writes names for these nodes. Gives the definitions of the names, as text."""
    before = dict(_named)
    definitions = []
    try:
        for number, node in enumerate(nodes, 1):
            definitions.append(f"where ${number} = {show(node)}")
            _named[node] = f"${number}"
        yield definitions
    finally:
        _named.clear()
        _named.update(before)


def show(e: Expr) -> str:
    """The expression as text."""
    if e in _named:
        return _named[e]
    if e.op in ("var", "param", "get"):
        return str(e.attr)
    if e.op == "const":
        return str(e.attr) if e.dtype is INDEX else f"{e.attr}:{e.dtype}"
    if e.op == "poly":
        parts = []
        for factors, c in sorted((sorted(map(show, m)), c) for m, c in e.attr):  # whatever was made first
            if c != 1 or not factors:
                factors.insert(0, str(c))
            parts.append("*".join(factors))
        return "(" + " + ".join(parts) + ")"
    if e.op == "load":
        buffer, part = e.attr
        return f"{buffer}[{show(e.args[0])}]" + ("" if part is None else (".re", ".im")[part])
    if e.op in ("floordiv", "floormod"):
        return f"({show(e.args[0])} {'//' if e.op == 'floordiv' else '%'} {show(e.args[1])})"
    attr = f"<{e.attr}>" if e.attr is not None else f"<{e.dtype}>" if e.op in CONVERSIONS else ""
    return f"{e.op}{attr}({', '.join(map(show, e.args))})"
