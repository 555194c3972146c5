"""Expressions to instructions: each in the outermost scope where all that it depends on is known.

Inside a vector loop, what depends on its variable has lanes; everything else stays scalar until it is needed in lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compile.ir.expr import BOOL, INDEX, NO_READS, Expr, const_value, poly_terms, walk
from ..compile.ir.loopir import Accumulator, Buffer, Fold, Statement, statements
from ..compile.lowering.number_types import SMALL_FLOATS, is_float, is_integer, is_signed
from ..compile.registers import is_avx512
from . import divisors, instructions, ramps, small_floats
from .accesses import Accesses
from .instructions import cast, element_type, literal, splat, vector
from .prefetching import Turning
from .writer import Lanes, Writer

WORD = 4  # bytes in which small floats, and most indices, are compared


class Values:
    """The values of a function's expressions. `parent` is the function around, of a part that threads share."""

    def __init__(self, writer: Writer, parent: Values | None = None):
        self.writer, self.arena, self.module = writer, writer.arena, writer.module
        self.op, self.line = writer.op, writer.line
        self.root = writer.module.placement.root
        self.parent = parent
        self.accesses = Accesses(writer, self)
        self.depths: dict[Expr, int] = {}  # loop variables and lets -> scope
        self.names: dict[Expr, str] = {}
        self.mutables: dict[Expr, tuple[str, int]] = {}  # mutable scalars -> (stack slot, lanes)
        self.compared: dict[Expr, int] = {}  # mutable booleans -> the bytes of the widest numbers that are compared
        self.vectors: set[Expr] = set()  # leaves that have lanes
        self.own: set[str] = set()  # stack slots of one vector's lanes: what masked lanes hold there is not used
        self.lanes: Lanes | None = None
        self.turning: Turning | None = None  # the loop around
        self.pointers: dict[Buffer, str] = {}
        self.bases: dict[str, str] = {}  # what pointers of the program are found from, in a function that does so

    # -- leaves --------------------------------------------------------------------------------------
    def pointer(self, buffer: Buffer) -> str:
        root = self.root(buffer)
        name = self.pointers.get(root)
        if name is None:
            home = self.module.homes.get(root) if self.bases else None
            if home is not None:
                name = self._from_home(*home)
            elif self.parent is not None:
                name = self.capture("ptr", self.parent.pointer(root), root)
            else:
                raise KeyError(f"buffer {root} has no memory")
            self.pointers[root] = name
        return name

    def _from_home(self, base: str, place: int) -> str:
        name = self.writer.fresh()
        if base == "workspace":
            self.writer.entry.append(f"  {name} = getelementptr i8, ptr {self.bases[base]}, i64 {place}")
        else:
            self.writer.entry += [f"  {name}p = getelementptr ptr, ptr {self.bases[base]}, i64 {place}",
                                  f"  {name} = load ptr, ptr {name}p"]
        return name

    def capture(self, t: str, name: str, source: Expr | Buffer | str | None = None) -> str:
        """A value of the parent function, passed as an argument, or to threads through the environment."""
        index = len(self.writer.captured)
        self.writer.captured.append((t, name, source))
        if self.writer.parameters is not None:
            self.writer.entry.append(f"  %e{index}p = getelementptr i8, ptr %env, i64 {index * 64}")
            self.writer.entry.append(f"  %e{index} = load {t}, ptr %e{index}p")
        return f"%e{index}"

    def known(self, leaf: Expr) -> bool:
        return leaf in self.depths or leaf in self.mutables

    def _leaf_depth(self, leaf: Expr) -> int:
        if leaf in self.mutables:
            return len(self.writer.scopes) - 1
        depth = self.depths.get(leaf)
        if depth is None:
            if self.parent is None:
                raise KeyError(f"{leaf} is not defined here")
            if leaf in self.parent.vectors:
                raise ValueError("a parallel loop stands inside a vector loop")
            self.depths[leaf] = depth = 0
            self.names[leaf] = self.capture(element_type(leaf.dtype), self.parent.value(leaf), leaf)
        return depth

    def buffers(self, e: Expr) -> frozenset[Buffer]:
        """What is loaded from to compute `e`."""
        return self.module.roots(e.reads) if e.reads else NO_READS

    def depth(self, e: Expr) -> int:
        """The outermost scope where `e` can be computed."""
        depth = 0
        for leaf in e.deps:
            depth = max(depth, self._leaf_depth(leaf))
        top = len(self.writer.scopes) - 1
        if depth < top:
            loads = self.buffers(e)
            if loads:
                # a load stays inside branches, and inside loops that write what it reads
                for d in range(top, depth, -1):
                    scope = self.writer.scopes[d]
                    if not (scope.loop or scope.statement) or loads & scope.writes:
                        return d
        return depth

    def width(self, e: Expr) -> int:
        return self.lanes.width if self.lanes is not None and not e.deps.isdisjoint(self.vectors) else 1

    # -- stack slots -----------------------------------------------------------------------------------
    def slot_type(self, t: Expr, lanes: int) -> str:
        """The type of a mutable scalar's lanes in its slot. Booleans are integers as wide as what is compared where
        masks have no registers: LLVM would take the lanes of those apart that live across blocks."""
        own = element_type(t.dtype)
        if own == "i1" and lanes > 1 and not is_avx512(self.module.vector_bytes):
            bytes_each = self.module.vector_bytes // lanes
            usual = 8 if bytes_each >= 8 else 4 if lanes <= 2 * self.module.vector_bytes else 1
            own = f"i{8 * min(usual, self.compared.get(t, usual))}"
        return vector(own, lanes)

    def note_compared(self, accumulator: Accumulator, body: Sequence[Statement]) -> None:
        """Takes down how wide what an accumulator of booleans folds is compared."""
        if all(t.dtype == BOOL for t in accumulator.targets):
            values = [v for s in statements(body) if isinstance(s, Fold) and s.accumulator is accumulator
                      for v in s.values]
            sizes = [WORD if x.dtype is INDEX or x.dtype in SMALL_FLOATS else x.dtype.itemsize
                     for n in walk(values) if n.op in ramps.COMPARISONS for x in n.args[:1]]
            self.compared.update(dict.fromkeys(accumulator.targets, max(sizes, default=1)))

    def for_slot(self, t: Expr, e: Expr, lanes: int) -> str:
        """A value as the slot of `t` has it. What is folded into a boolean there stays an integer."""
        kept, own = self.slot_type(t, lanes), vector(element_type(t.dtype), lanes)
        if kept == own:
            return self.value(e, lanes)
        if e.op in ("and", "or", "xor") and t in e.args:
            other = e.args[e.args[0] is t]
            wide = self.op(f"sext {own} {self.value(other, lanes)} to {kept}")
            return self.op(f"{e.op} {kept} {self.in_slot(t)}, {wide}")
        return self.op(f"sext {own} {self.value(e, lanes)} to {kept}")

    def in_slot(self, t: Expr) -> str:
        """What the slot of `t` holds, as it has it."""
        slot, lanes = self.mutables[t]
        return self.op(f"load {self.slot_type(t, lanes)}, ptr {slot}")

    def from_slot(self, t: Expr) -> str:
        """What the slot of `t` holds."""
        lanes, name = self.mutables[t][1], self.in_slot(t)
        kept = self.slot_type(t, lanes)
        if kept == vector(element_type(t.dtype), lanes):
            return name
        return self.op(f"icmp ne {kept} {name}, zeroinitializer")

    # -- expressions -----------------------------------------------------------------------------------
    def value(self, e: Expr, lanes: int = 1) -> str:
        """The name of an expression's value, spread over lanes where it is uniform and lanes are asked for."""
        own = self.width(e)
        name = self._emit(e)
        if own == lanes:
            return name
        if own != 1:
            raise ValueError(f"{e} has {own} lanes where {lanes} are wanted")
        return self._spread(e, name, lanes)

    def _spread(self, e: Expr, name: str, lanes: int) -> str:
        t = element_type(e.dtype)
        if e.op == "const":
            return splat(name, t, lanes)
        return self._made_of(e, (e, lanes), lambda: self.splat(name, t, lanes))

    def _made_of(self, e: Expr, key: Any, make: Callable[[], Any]) -> Any:
        """What is made of an expression alone, once: in the outermost scope where that can be computed."""
        depth = self.depth(e)
        scope = self.writer.scopes[depth]
        found = scope.memo.get(key)
        if found is None:
            before, self.writer.at = self.writer.at, depth
            found = make()
            self.writer.at = before
            scope.keep(key, found, self.buffers(e))
        return found

    def splat(self, name: str, t: str, lanes: int) -> str:
        first = self.op(f"insertelement <{lanes} x {t}> poison, {t} {name}, i32 0")
        v = f"<{lanes} x {t}>"
        return self.op(f"shufflevector {v} {first}, {v} poison, <{lanes} x i32> zeroinitializer")

    def find(self, e: Expr) -> str | None:
        for scope in reversed(self.writer.scopes):
            name = scope.memo.get(e)
            if name is not None:
                return name
        return None

    def _emit(self, e: Expr) -> str:
        if e.op == "const":
            value = const_value(e)
            return str(ramps.wrapped(value, 64)) if e.dtype is INDEX else literal(value, e.dtype)
        found = self.find(e)
        if found is not None:
            return found
        stack = [e]
        while stack:
            n = stack[-1]
            if n.op != "const" and self.find(n) is None:
                if n.op not in ("load", "transposed", "poly", "guard") and self._ramp(n) is None:
                    missing = [a for a in self._operands(n) if a.op != "const" and self.find(a) is None]
                    if missing:
                        stack.extend(missing)
                        continue
                depth = self.depth(n)
                before, self.writer.at = self.writer.at, depth
                name = self.build(n)
                self.writer.at = before
                self.writer.scopes[depth].keep(n, name, self.buffers(n))
            stack.pop()
        found = self.find(e)
        assert found is not None
        return found

    def build(self, e: Expr) -> str:
        op = e.op
        lanes = self.width(e)
        if op == "var":
            if self.lanes is not None and e is self.lanes.var:
                return self._iota(self.lanes)
            return self.names[e]
        if op == "get":
            return self.from_slot(e) if e in self.mutables else self.names[e]
        if op == "param":
            return self.names[e] if e in self.names else self._param(e)
        if op == "poly":
            return self._poly(e, lanes)
        if op == "load":
            return self.accesses.load(e, lanes)
        if op == "transposed":
            return self.accesses.load_transposed(e, lanes)
        if op == "guard":
            return self.value(e.args[1], lanes)
        if self._contracts(e):
            return self._rounded_once(e, lanes)
        ramp = self._ramp(e)
        if ramp is not None:
            return self._by_ramp(e, *ramp, lanes)
        if lanes > 1 and divisors.known(op, e.dtype) and e.args[1].op != "const" and self.width(e.args[1]) == 1:
            return self._by_reciprocal(e, lanes)
        a = tuple(self.value(x, lanes) for x in e.args)
        if op == "cast":
            return cast(self.writer, a[0], e.args[0].dtype, e.dtype, lanes)
        if op == "select":
            t = vector(element_type(e.dtype), lanes)
            return self.op(f"select {vector('i1', lanes)} {a[0]}, {t} {a[1]}, {t} {a[2]}")
        if op == "widen":
            return small_floats.widen(self.writer, a[0], e.args[0].dtype, lanes)
        if op == "narrow":
            return small_floats.narrow(self.writer, a[0], e.args[0].dtype, e.dtype, lanes)
        if op == "bitcast":
            return instructions.bitcast(self.writer, a[0], e.args[0].dtype, e.dtype, lanes)
        return instructions.rows[op](self.writer, e.args[0].dtype, lanes, a)

    def _by_reciprocal(self, e: Expr, lanes: int) -> str:
        """A quotient or remainder. The reciprocal of a divisor that a loop does not change is computed before it."""
        x, y = e.args
        known = self._made_of(y, ("reciprocal", y, lanes), lambda: divisors.reciprocal(
            self.writer, y.dtype, lanes, self.value(y, lanes)))
        return divisors.divided(self.writer, e.op, e.dtype, lanes, self.value(x, lanes), self.value(y, lanes), known)

    def _ramp(self, e: Expr) -> tuple[Expr, int] | None:
        """The index that a comparison or conversion hangs on, and its step from lane to lane, where that is fixed."""
        if e.op != "cast" and e.op not in ramps.COMPARISONS or e.args[0].dtype is not INDEX or self.width(e) == 1:
            return None
        x = e.args[0] if e.op == "cast" else self.arena.isub(*e.args)
        if e.op == "cast" and not ramps.converts(e.dtype, x.bounds):
            return None
        step = self.accesses.step(x)
        return (x, step) if step else None

    def _by_ramp(self, e: Expr, x: Expr, step: int, lanes: int) -> str:
        first = self.first(x)
        if e.op == "cast":
            return ramps.converted(self.writer, self.splat, first, e.dtype, step, lanes)
        return ramps.compared(self.writer, self.splat, e.op, first, x.bounds, step, lanes, self.module.vector_bytes)

    def _contracts(self, e: Expr) -> bool:
        """Whether a sum has one product among its operands: they are rounded once. Of two, neither is: the difference
        of equal products, as in a complex conjugate's, stays zero."""
        if e.op not in ("add", "sub") or not (self.writer.contract or self.module.numerics) or not is_float(e.dtype):
            return False
        x, y = e.args
        return (x.op == "mul") != (y.op == "mul")

    def _operands(self, e: Expr) -> Sequence[Expr]:
        """What is computed before an expression."""
        if not self._contracts(e):
            return e.args
        return [b for a in e.args for b in (a.args if a.op == "mul" else (a,))]

    def _rounded_once(self, e: Expr, lanes: int) -> str:
        t = vector(element_type(e.dtype), lanes)
        first = e.args[0].op == "mul"
        product, other = e.args if first else e.args[::-1]
        x, y = (self.value(a, lanes) for a in product.args)
        z = self.value(other, lanes)
        if e.op == "sub" and first:
            z = self.op(f"fneg {t} {z}")
        elif e.op == "sub":
            x = self.op(f"fneg {t} {x}")
        symbol = f"@llvm.fmuladd.{instructions.suffix(element_type(e.dtype), lanes)}"
        self.writer.declare(f"declare {t} {symbol}({t}, {t}, {t})")
        return self.op(f"call {t} {symbol}({t} {x}, {t} {y}, {t} {z})")

    def _param(self, e: Expr) -> str:
        if self.parent is None:
            raise KeyError(f"the size {e} is not a parameter")
        self.names[e] = self.capture("i64", self.parent.value(e), e)
        return self.names[e]

    def _iota(self, lanes: Lanes) -> str:
        return ramps.spread(self.writer, self.splat, lanes.base, 1, lanes.width)

    def _poly(self, e: Expr, lanes: int) -> str:
        uniform: dict[tuple[Expr, ...], int] = {}
        varying: dict[tuple[Expr, ...], int] = {}
        for m, c in poly_terms(e).items():
            (uniform if all(self.width(a) == 1 for a in m) else varying)[m] = c
        if not varying:
            return self._sum(uniform, 1) or "0"
        step = self.accesses.step(e)
        if step:
            return ramps.spread(self.writer, self.splat, self.first(e), step, lanes)
        if ramps.INT32[0] <= e.bounds[0] and e.bounds[1] <= ramps.INT32[1]:
            t = vector("i32", lanes)
            total = self._narrow(self.arena.poly(uniform), lanes) if uniform else ""
            for m, c in varying.items():
                term = self._narrow(m[0], lanes)
                for a in m[1:]:
                    term = self.op(f"mul {t} {term}, {self._narrow(a, lanes)}")
                if c != 1:
                    term = self.op(f"mul {t} {term}, {splat(str(ramps.wrapped(c, 32)), 'i32', lanes)}")
                total = self.op(f"add {t} {total}, {term}") if total else term
            return self.op(f"sext {t} {total} to {vector('i64', lanes)}")
        total = ""
        if uniform:
            rest = self.arena.poly(uniform)
            total = splat(self._emit(rest), "i64", lanes) if rest.op == "const" else self.value(rest, lanes)
        return self._sum(varying, lanes, total)

    def _narrow(self, e: Expr, lanes: int) -> str:
        """The lowest 32 bits of an index, which sums and products of such are made of."""
        t = vector("i32", lanes)
        if e.op == "guard":
            return self._narrow(e.args[1], lanes)
        if e.op == "const":
            return splat(str(ramps.wrapped(e.attr, 32)), "i32", lanes)
        if e.op == "cast" and is_integer(e.args[0].dtype) and self.width(e) != 1:
            x = e.args[0]
            own = vector(element_type(x.dtype), lanes)
            if x.dtype.itemsize == 4:
                return self.value(x, lanes)
            if x.dtype.itemsize < 4:
                return self.op(f"{'sext' if is_signed(x.dtype) else 'zext'} {own} {self.value(x, lanes)} to {t}")
        if self.width(e) != 1:
            return self.op(f"trunc {vector('i64', lanes)} {self.value(e, lanes)} to {t}")
        depth = self.depth(e)
        key, scope = ("narrow", e, lanes), self.writer.scopes[depth]
        found = scope.memo.get(key)
        if found is None:
            before, self.writer.at = self.writer.at, depth
            found = self.splat(self.op(f"trunc i64 {self.value(e)} to i32"), "i32", lanes)
            self.writer.at = before
            scope.keep(key, found, self.buffers(e))
        return found

    def _sum(self, terms: dict[tuple[Expr, ...], int], lanes: int, total: str = "") -> str:
        """Adds terms up, each as far outside as it can be computed; the constant last, where an address takes it in."""
        t = vector("i64", lanes)
        top, depth = self.writer.at, 0
        ordered = sorted(terms.items(), key=lambda item: (not item[0], self._depth_of_all(item[0])))
        for m, c in ordered:
            if lanes == 1:
                depth = max(depth, min(self._depth_of_all(m), top))
                self.writer.at = depth
            if not m:
                term = splat(str(ramps.wrapped(c, 64)), "i64", lanes)
            else:
                factors = [self.value(a, lanes) for a in m]
                term = factors[0]
                for x in factors[1:]:
                    term = self.op(f"mul {t} {term}, {x}")
                if c != 1:
                    term = self.op(f"mul {t} {term}, {splat(str(ramps.wrapped(c, 64)), 'i64', lanes)}")
            total = self.op(f"add {t} {total}, {term}") if total else term
        self.writer.at = top
        return total

    def _depth_of_all(self, m: tuple[Expr, ...]) -> int:
        return max((self.depth(a) for a in m), default=0)

    def first(self, place: Expr) -> str:
        """The index of a place at the first lane: the lane variable stands for its first value."""
        lanes = self.lanes
        assert lanes is not None
        rest: dict[tuple[Expr, ...], int] = {}
        varying: dict[tuple[Expr, ...], int] = {}
        for m, c in poly_terms(place).items():
            (varying if lanes.var in m else rest)[m] = c
        total = self.value(self.arena.poly(rest))
        for m, c in varying.items():
            name = lanes.base
            for x in m:
                if x is not lanes.var:
                    name = self.op(f"mul i64 {name}, {self.value(x)}")
            if c != 1:
                name = self.op(f"mul i64 {name}, {ramps.wrapped(c, 64)}")
            total = name if total == "0" else self.op(f"add i64 {total}, {name}")
        return total
