"""How the loops of a group run: in what order, and which one is the vector. Passes that follow choose rows.

Before, and after:

    group[i0; r0]:
      inner 0: reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      inner 0:   t0[i0] = a0
      inner 2: point[i0, r0] out0[(30*i0 + r0)] = div(arg0[(30*i0 + r0)], a0)

    nest[i0; r0] r0 vector(16):
      inner 0: reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      inner 0:   t0[i0] = a0
      inner 2: point[i0, r0] out0[(30*i0 + r0)] = div(arg0[(30*i0 + r0)], a0)

Members that nobody needs are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ..costs import HORIZONTAL, MEMBERS
from ..ir.expr import (
    COSTS,
    INDEX,
    LOADS,
    TRANSCENDENTAL,
    Expr,
    Index,
    Polynomial,
    coefficient,
    poly_terms,
    show,
    unwrap,
    walk,
)
from ..ir.loads import loads_of
from ..ir.loopir import Buffer, BufferKind
from ..ir.values import Point, Reduce
from ..lowering.builder import Builder
from ..lowering.folds import UNROLLED
from ..program import Program
from .coalescing import Coalesced, NotAsOne
from .fuse import Branching, Group, Member, Unit, buffers_read
from .index_set_splitting import decided
from .uses import operation_exprs

UNIFORM = 0.9  # what an access is worth that is the same in all lanes, where a contiguous one is worth 1
ROWS = 4  # that share the places that they read,
SHARED = 16  # with so few estimated instructions around each of these reads that lanes would not pay
GATHER = 4  # estimated instructions around each read at a place read from memory, up to which lanes do not pay for it
STORED = 2  # instructions that a store costs besides, estimated: its memory is fetched first, and written back
SHORT = 8  # turns of a loop that leave lanes idle
FEW = 8  # lanes, fewer than which are not worth gathering
GATHERED = 8  # what one costs whose lanes are loaded or stored one by one
AT_ONCE = 4  # instructions of arithmetic that take as long as one lane that is gathered
RECORDS = 16  # from which the members of one more are a nest of their own
SELDOM = 4  # turns of a reduction from which what follows it hardly counts


class Nest:
    """Operations over common loops, with what is chosen for these. Choices give a new nest (`replace`)."""

    __slots__ = ("b", "members", "dead", "outer", "inner", "vector", "width", "rows", "abreast", "columns",
                 "elements", "_known", "_nodes")

    b: Builder
    members: Sequence[Member]
    dead: set[Buffer]  # buffers that nobody reads: their stores are left out
    outer: Sequence[Expr]
    inner: Sequence[Expr]
    vector: Expr | None
    width: int  # lanes
    rows: Expr | None  # the loop whose iterations run side by side
    abreast: int  # how many of them
    columns: Expr | None  # another one, all of whose iterations do so in each of these
    elements: int  # estimated instructions of all iterations, without lanes

    def __init__(self, b: Builder, members: Sequence[Member], dead: set[Buffer], outer: Sequence[Expr],
                 inner: Sequence[Expr], vector: Expr | None = None, width: int = 1, rows: Expr | None = None,
                 abreast: int = 1, elements: int = 0):
        self.b, self.members, self.dead = b, members, dead
        self.outer, self.inner, self.vector, self.width = outer, inner, vector, width
        self.rows, self.abreast, self.elements = rows, abreast, elements
        self.columns: Expr | None = None
        self._known: tuple[set[Expr], set[Expr]] | None = None  # the accesses of these members
        self._nodes: list[Expr] | None = None

    def replace(self, **changes: Any) -> Nest:
        new = object.__new__(Nest)
        for name in Nest.__slots__:
            setattr(new, name, changes.get(name, getattr(self, name)))
        if "members" in changes:
            new._known = new._nodes = None
        return new

    def with_rows(self, rows: Expr, abreast: int, width: int, columns: Expr | None = None) -> Nest:
        """The nest with iterations of `rows`, and of `columns`, side by side, just outside of the vector loop."""
        last = [v for v in (rows, columns, self.vector) if v in self.outer]
        return self.replace(outer=[v for v in self.outer if v not in last] + last, rows=rows, abreast=abreast,
                            columns=columns, width=width)

    def lines(self) -> list[str]:
        chosen = [f"{show(v)} {kind}({n})" for v, kind, n in (
            (self.vector, "vector", self.width), (self.rows, "jam", self.abreast),
            *[(v, "jam", self.size(v)) for v in (self.columns,) if v is not None]) if v is not None]
        loops = f"[{', '.join(map(show, self.outer))}; {', '.join(map(show, self.inner))}]"
        return [f"nest{loops} {', '.join(chosen)}".rstrip() + ":", *(
            f"  {'inner' if m.inner else 'outer'} {m.phase}: {line}" for m in self.members for line in m.op.lines())]

    def exprs(self) -> list[Expr]:
        out: list[Expr] = []
        for m in self.members:
            out.extend(operation_exprs(m.op))
            if isinstance(m.op, Reduce):
                for _, place, value in m.op.stores:
                    out += [place, value]
        return out

    def nodes(self) -> list[Expr]:
        """Every node of these expressions, each once, arguments first."""
        if self._nodes is None:
            self._nodes = list(walk(self.exprs()))
        return self._nodes

    def accesses(self) -> tuple[set[Expr], set[Expr]]:
        """All places of loads and stores, and the loop variables that are also used otherwise."""
        if self._known is not None:
            return self._known
        indices: set[Expr] = set()
        opaque: set[Expr] = set()
        roots: list[Expr] = []
        for m in self.members:
            if isinstance(m.op, Point):
                indices.add(m.op.place)
                roots += (m.op.place, m.op.value)
            else:
                roots.extend(m.op.values)
                for _, place, value in m.op.stores:
                    indices.add(place)
                    roots += (place, value)
        for n in walk(roots):
            if n.op == "load":
                indices.add(n.args[0])
            elif n.op != "poly":
                for a in n.args:
                    if a.op == "var":
                        opaque.add(a)
                    elif a.op == "poly":
                        opaque.update(t for t in a.args if t.op == "var")
        self._known = indices, opaque
        return self._known

    def frequencies(self) -> list[tuple[Expr, float, bool]]:
        """The places that are read or written, each once in a phase, with how often that is for every turn of the
        innermost loop, and whether it is written: those of finished reductions seldom, as far as that is worth telling
        apart."""
        seldom = 1 / max(1, min(SELDOM, self.count(self.inner)))
        out: dict[tuple[int, Buffer, Expr, bool], float] = {}
        for m in self.members:
            values = [m.op.value] if isinstance(m.op, Point) else m.op.values
            places = [(m.op.buffer, m.op.place)] if isinstance(m.op, Point) else []
            stores = [] if isinstance(m.op, Point) else [s for s in m.op.stores if s[0] not in self.dead]
            finished, rare = [value for *_, value in stores], [(buffer, place) for buffer, place, _ in stores]
            for roots, direct, often in ((values, places, 1.0 if m.inner else seldom), (finished, rare, seldom)):
                loads = [(n.attr[0], n.args[0]) for n in loads_of(roots) if n.op == "load"]
                for written, (buffer, place) in (*((True, s) for s in direct), *((False, s) for s in loads)):
                    key = m.phase, buffer, place, written
                    out[key] = max(often * self._share(place), out.get(key, 0))
        return [(place, often, written) for (_, _, place, written), often in out.items()]

    def _share(self, place: Expr) -> float:
        """The part of the turns in which guards let a place be touched, estimated: a piece of what is joined is as long
        as it is."""
        share = 1.0
        for n in walk([place]):
            if n.op == "guard" and n.args[2].op == "const":
                longest = max((self.size(v) for v in n.args[1].deps if v in self.b.extents), default=1)
                share = min(share, n.args[2].attr / max(1, longest))
        return share

    def alike(self) -> list[Expr]:
        """The outer loops whose iterations can be lanes or rows: the extents inside are the same in each."""
        extents = [unwrap(self.b.extents[v]) for v in self.inner]
        return [v for v in self.outer if not any(isinstance(e, Expr) and v in e.deps for e in extents)]

    def size(self, v: Expr) -> int:
        extent = unwrap(self.b.extents[v])
        return extent if isinstance(extent, int) else min(extent.bounds[1], 1 << 20)

    def count(self, loops: Sequence[Expr]) -> int:
        n = 1
        for v in loops:
            n *= self.size(v)
        return n

    def work(self) -> int:
        """Estimated instructions of one innermost iteration, and of what follows finished reductions."""
        return _instructions(self.nodes())

    def inner_work(self) -> int:
        """Estimated instructions of one innermost iteration."""
        inner = [m.op for m in self.members if m.inner]
        return _instructions(walk([e for op in inner for e in operation_exprs(op)])) if self.inner else self.work()

    def overhead(self) -> int:
        """Estimated instructions besides those that are computed, without lanes: stores are dear, a turn that stores
        nothing is one less, and sums in lanes are folded."""
        rows = self.count(self.outer)
        stores = sum([isinstance(m.op, Point) and (m.inner or not self.inner) for m in self.members])
        folded = HORIZONTAL * self.width if self.vector in self.inner else 0
        return rows * (self.count(self.inner) * (STORED * stores or -1) + folded)

    def ordered(self, loops: Sequence[Expr], vector: Expr | None) -> list[Expr]:
        """Loops by falling stride of what is stored and read; the vector loop innermost."""
        indices, _ = self.accesses()

        def stride(v: Expr) -> float:
            total = 0.0
            for e in indices:
                c = coefficient(self.b.arena, e, v)
                if c is None:
                    total += 8
                elif c.op == "const":
                    total += min(abs(c.attr), 1 << 20)
                else:
                    total += 1 << 10
            return total

        order = sorted((v for v in loops if v is not vector), key=stride, reverse=True)
        return order + ([vector] if vector in loops else [])  # type: ignore[list-item]

    def rewritten(self, mapping: dict[Expr, Expr],
                  make: Callable[[Expr, tuple[Expr, ...]], Expr] | None = None) -> Nest:
        """The nest with loop variables replaced; `make` as for `substitute`."""
        memo: dict[Expr, Expr] = {}

        def sub(e: Expr) -> Expr:
            return self.b.arena.substitute(e, mapping, memo, make)

        return self.mapped(sub, sub)

    def mapped(self, where: Callable[[Expr], Expr], what: Callable[[Expr], Expr]) -> Nest:
        """The nest with the places of stores replaced, and their values and those that are folded."""
        def moved(op: Point | Reduce) -> Point | Reduce:
            if isinstance(op, Point):
                return Point(op.vars, op.buffer, where(op.place), what(op.value))
            return Reduce(op.outer, op.ranges, op.targets, op.initial, op.combine, op.name, list(map(what, op.values)),
                          [(buf, where(place), what(value)) for buf, place, value in op.stores])

        return self.replace(members=[Member(moved(m.op), m.phase, m.inner) for m in self.members])

    def with_loop(self, u: Expr, new: Expr | None, place: Index) -> Nest:
        """A nest of points with another loop, or none, in place of one whose variable becomes `place`."""
        b = self.b
        outer = [v for v in (new if v is u else v for v in self.outer) if v is not None]
        part = self.rewritten({u: b.index(place)}, lambda e, args: decided(b, e, args)).replace(outer=outer)
        members = []
        for m in part.members:
            assert isinstance(m.op, Point)
            members.append(Member(Point(outer, m.op.buffer, m.op.place, m.op.value), m.phase, m.inner))
        return part.replace(members=members)

    def between(self, u: Expr, low: int, high: int) -> Nest:
        """The turns of a loop of a nest of points from one to another."""
        new = self.b.loop_var(high - low) if high - low > 1 else None
        return self.with_loop(u, new, self.b.int(low) if new is None else self.b.iadd(new, low))


def run(program: Program) -> Program:
    """Groups → nests."""
    units = program.units or ()
    read = buffers_read(units, program.placement.aliases)

    def of_group(group: Unit) -> list[Unit]:
        if not isinstance(group, Group):
            return [group]
        dead = {w for w in group.writes if w.kind is BufferKind.TEMP and w not in read}
        members = [m for m in group.members if not (isinstance(m.op, Point) and m.op.buffer in dead)]
        if not members:
            return []
        nest = Nest(program.builder, members, dead, group.outer, group.inner)
        return [planned(collapse(split_loops(part)), program.vector_bytes) for part in whole_records(nest)]

    return program.replace(units=rewrite_units(units, of_group))


def rewrite_units(units: Sequence[Unit], change: Callable[[Unit], list[Unit]]) -> list[Unit]:
    """The units, also those of blocks, with each replaced by what `change` gives for it."""
    out: list[Unit] = []
    for unit in units:
        if isinstance(unit, Branching):
            out.append(Branching(unit.region, [rewrite_units(block, change) for block in unit.blocks]))
        else:
            out += change(unit)
    return out


def choosing(choose: Callable[[Nest], Nest], scalar: bool = False) -> Callable[[Program], Program]:
    """A pass that makes a choice for each nest with a vector loop, or for `scalar` ones too."""
    def run(program: Program) -> Program:
        def chosen(unit: Unit) -> list[Unit]:
            return [choose(unit) if isinstance(unit, Nest) and (scalar or unit.vector is not None) else unit]

        return program.replace(units=rewrite_units(program.units or (), chosen))

    return run


def _instructions(nodes: Iterable[Expr]) -> int:
    return 1 + sum([COSTS.get(n.op, 1) for n in nodes])


def planned(nest: Nest, vector_bytes: int) -> Nest:
    """The nest with its loops in order, and the one that is the vector."""
    vector = _vector(nest)
    rows = None if vector is None else _gathered_alike(nest, vector)
    if vector is not None and (rows is not None or _mostly_gathers(nest, vector) or _few_lie_apart(nest, vector)):
        vector = None
    once = nest.work() - nest.inner_work()
    elements = nest.count(nest.outer) * (nest.count(nest.inner) * nest.inner_work() + once)
    nest = nest.replace(
        vector=vector, width=1 if vector is None else vector_width(nest, vector, vector_bytes), elements=elements,
        outer=nest.ordered(nest.outer, vector), inner=nest.ordered(nest.inner, vector))
    return nest if rows is None else nest.replace(
        rows=rows, abreast=ROWS, outer=[*(v for v in nest.outer if v not in (rows, nest.outer[-1])), rows,
                                        *(v for v in nest.outer[-1:] if v is not rows)])


# -- rewriting loops -----------------------------------------------------------------------------------


def split_loops(nest: Nest) -> Nest:
    """A loop whose variable is divided by a divisor of its extent becomes two: x = high·d + low. The members of records
    stay together, which are written side by side (`interleaving`): each of them decides such conditions."""
    b = nest.b
    members = {v for v in nest.outer for m in nest.members if len(nest.outer) > 1 and not nest.inner and (
        isinstance(b.extents[v], int) and b.extents[v] <= MEMBERS and isinstance(m.op, Point)) and (
        (step := coefficient(b.arena, m.op.place, v)) is not None and step.op == "const" and step.attr == 1)}
    for _ in range(8):
        found = None
        every = {*nest.outer, *nest.inner} - members
        for n in nest.nodes():
            if n.op in ("floordiv", "floormod") and n.args[1].op == "const":
                x, d = n.args[0], n.args[1].attr
                if x in every and isinstance(b.extents[x], int) and b.extents[x] % d == 0:
                    found = (x, d)
                    break
        if found is None:
            return nest
        x, d = found
        high = b.loop_var(b.extents[x] // d)  # type: ignore[operator]
        low = b.loop_var(d)
        outer, inner = ([w for v in loops for w in ((high, low) if v is x else (v,))]
                        for loops in (nest.outer, nest.inner))
        nest = nest.rewritten({x: b.iadd(b.imul(high, d), low)}).replace(outer=outer, inner=inner)
    return nest


def whole_records(nest: Nest) -> list[Nest]:
    """The nest; or, where a loop along memory is divided by a number of members that is no divisor of its extent, its
    whole records, and the members of the last one (index-set splitting). Records of many members are rows that are read
    again and again."""
    b = nest.b
    written = {m.op.buffer for m in nest.members if isinstance(m.op, Point)}
    if nest.inner or not all(isinstance(m.op, Point) for m in nest.members) or any(
            n.op == "load" and n.attr[0] in written for n in nest.nodes()):
        return [nest]
    along = {v for v in nest.outer for m in nest.members if isinstance(m.op, Point) and isinstance(b.extents[v], int)
             and (step := coefficient(b.arena, m.op.place, v)) is not None and step.op == "const" and step.attr == 1}
    for n in nest.nodes() if along else ():
        if n.op == "floormod" and n.args[0] in along and n.args[1].op == "const":
            v, members = n.args[0], n.args[1].attr
            rest, extent = nest.size(v) % members, nest.size(v)
            if rest and extent >= members * (RECORDS if members <= MEMBERS else 1):
                return [nest.between(v, 0, extent - rest), nest.between(v, extent - rest, extent)]
    return [nest]


def collapse(nest: Nest) -> Nest:
    """Adjacent loops that every access walks as one become one."""
    for which in ("outer", "inner"):
        i = len(getattr(nest, which)) - 2
        indices, opaque = nest.accesses() if i >= 0 else (set(), set())
        while i >= 0:
            loops = list(getattr(nest, which))
            a, c = loops[i], loops[i + 1]
            extent = nest.b.extents[c]
            if a not in opaque and c not in opaque and all(
                    _walks_as_one(nest.b, e, a, c, extent) for e in indices if a in e.deps or c in e.deps):
                merged = nest.b.loop_var(nest.b.product((nest.b.extents[a], extent)))
                loops[i:i + 2] = [merged]
                nest = nest.rewritten({a: nest.b.int(0), c: merged}).replace(**{which: loops})
                indices, opaque = nest.accesses()
            elif a in opaque and not nest.inner and _leaves_lanes_idle(nest.b, extent):
                with suppress(NotAsOne):
                    one = Coalesced(nest.b, a, c)
                    loops[i:i + 2] = [one.both]
                    nest = nest.mapped(one.place, one.value).replace(outer=loops)
                    indices, opaque = nest.accesses()
            i -= 1
    return nest


def _leaves_lanes_idle(b: Builder, extent: Index) -> bool:
    """Whether vectors along a loop would be short of numbers, by a fifth at least."""
    return isinstance(extent, int) and -extent % (b.vector_bytes // 4) * 4 > extent


def _walks_as_one(b: Builder, e: Expr, a: Expr, c: Expr, extent: Index) -> bool:
    """Whether a place moves with two loops as with one. What it takes from memory does if the places there do: these
    are accesses, too."""
    direct: Polynomial = {}
    for factors, number in poly_terms(e).items():
        read = [f for f in factors if f is not a and f is not c and (a in f.deps or c in f.deps)]
        if not read:
            direct[factors] = number
        elif a in factors or c in factors:
            return False
    e = b.arena.poly(direct)
    ca, cc = coefficient(b.arena, e, a), coefficient(b.arena, e, c)
    return ca is not None and cc is not None and ca is b.imul(cc, extent)


# -- choosing ------------------------------------------------------------------------------------------


def _vector(nest: Nest) -> Expr | None:
    """The loop whose steps make for the cheapest accesses."""
    places = nest.frequencies()
    computing = sum([COSTS.get(n.op, 1) / (1 if n.op in TRANSCENDENTAL else AT_ONCE) for n in nest.nodes()
                     if n.args and n.dtype is not INDEX and n.op not in LOADS])  # by idle lanes, too
    best, best_score = None, -1.0
    lanes = nest.b.vector_bytes // 4
    for v in (*nest.alike(), *nest.inner):
        size, memo = nest.size(v), dict[Expr, Expr]()
        if v in nest.inner and size <= UNROLLED and isinstance(nest.b.extents[v], Expr):
            continue  # so few terms are added in order, as where they are written out
        score = 0.0
        for e, often, written in places:
            if v not in e.deps:
                score += UNIFORM * often
                continue
            c = coefficient(nest.b.arena, nest.b.arena.substitute(e, {v: v}, memo, unguarded), v)
            step = c.attr if c is not None and c.op == "const" else None
            if step == 1:
                score += often
            elif step is not None and 2 <= step <= MEMBERS and not written:
                score -= step * often  # (all between are loaded)
            elif step != 0:
                score -= GATHERED * often
        if size < SHORT:
            score *= 0.5 if score > 0 else 1
            score -= 1 + computing * (lanes / max(size, 1) - 1)
        if v in nest.inner:
            score -= 0.1  # across-lane folding costs a little; P lanes are free
        if score >= best_score or best is None:
            best, best_score = v, score
    extent = None if best is None else nest.b.extents[best]
    return None if isinstance(extent, int) and extent < 2 else best


def unguarded(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """A place without the conditions under which it is touched, for `substitute`."""
    return args[1] if e.op == "guard" else e


def _mostly_gathers(nest: Nest, vector: Expr) -> bool:
    """Whether lanes would do little but read here and there: one by one, that takes half the time."""
    if nest.inner or any(n.op in TRANSCENDENTAL for n in nest.nodes()):
        return False
    return nest.work() <= GATHER * gathers(nest, vector)


def _few_lie_apart(nest: Nest, vector: Expr) -> bool:
    """Whether there are not even lanes enough for a vector, whose elements would be gathered or scattered, and wait for
    such stores of the turn before."""
    if nest.inner or nest.size(vector) >= FEW or any(n.op in TRANSCENDENTAL for n in nest.nodes()):
        return False
    steps = [coefficient(nest.b.arena, place, vector) for place, *_ in nest.frequencies() if vector in place.deps]
    return any(step is None or step.op != "const" or step.attr != 1 for step in steps)


def _gathered_alike(nest: Nest, vector: Expr) -> Expr | None:
    """A loop whose turns read here and there at places that are the same in each: side by side they share these."""
    places = [n.args[0] for n in nest.nodes() if n.op == "load" and _is_read_for(n.args[0], vector)]
    if nest.inner or not places or any(n.op in TRANSCENDENTAL for n in nest.nodes()) or (
            nest.work() > SHARED * gathers(nest, vector)):
        return None
    for u in nest.outer:
        found = [t for place in places for t in poly_terms(place) if any(a.reads for a in t)]
        if u is not vector and nest.size(u) >= ROWS and found and not any(
                u in a.deps for t in found for a in t):
            return u
    return None


def gathers(nest: Nest, vector: Expr) -> int:
    """How many reads at places that are read from memory a nest with these lanes has."""
    return sum(n.op == "load" and _is_read_for(n.args[0], vector)
               and coefficient(nest.b.arena, n.args[0], vector) is None for n in nest.nodes())


def _is_read_for(place: Expr, vector: Expr) -> bool:
    """Whether a place is read from memory, for each lane."""
    return bool(place.reads) and any(n.op in LOADS and vector in n.deps for n in walk([place]))


def vector_width(nest: Nest, vector: Expr, vector_bytes: int) -> int:
    """The lanes of a vector: as many as a register has, or fewer where the loop is short. A mask would cost more:
    the processor does not hand what was stored under a mask straight to the loads that follow."""
    size = 4
    for n in nest.nodes():
        if n.dtype.itemsize == 8 and n.dtype.kind == "f" or n.op in ("load",) and n.dtype.itemsize == 8:
            size = 8
    width = max(vector_bytes // size, 1)
    while width > 1 and width // 2 >= nest.size(vector):
        width //= 2
    return width
