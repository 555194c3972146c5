"""Sinking: what the turns of a `scan` only add up is added up after it, where that is one product or one sum.

    scan[jaxpr={ lambda ; a:f32[4,8] c:f32[2,4] x:f32[2,8]. let       e:f32[2,4] c:f32[9,2,4] = scan[…] d xs
        d:f32[4,8] = dot_general[([0], [0])] c x                →     s:f32[4,8] = dot_general[([0,1], [0,1])] c xs
        b:f32[4,8] = add a d                                          b:f32[4,8] = add a s
        …
      in (b, e) }] a d xs

So slopes of the weights of a recurrent network are one long product of all turns (Appleyard, Kocisky and Blunsom,
Optimizing performance of recurrent neural networks on GPUs, 2016). Where a turn treats each element of its arrays
alone but for a sum, each element adds up its own, which loop interchange then does in registers, and the sum over the
elements is taken once. What is linear in such a sum moves with it.

Code sinking with loop fission: Muchnick (1997), §18.8; Wolfe (1996), §9.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.programs import rules
from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from ...core.programs.primitive import Primitive
from ...core.programs.traits import Control
from ...core.types.avals import ShapedArray
from ..lowering.interchange import PARTS
from .loop_form import JaxprLoop
from .rewriting import Rewriting, is_pure, map_programs, programs_of

zeros_p = Primitive("zeros")

GROWTH = 4  # times that what is kept of a turn may be larger than what it would add to
ROOM = 1 << 28  # bytes that all turns may keep


@zeros_p.def_abstract_eval
def _zeros(*, aval: ShapedArray) -> ShapedArray:
    return aval


rules.loops[zeros_p] = lambda b, *, aval: b.value(aval.shape, aval.dtype, lambda _: b.const(0, aval.dtype))


def sink_sums(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with sums over turns moved out of its scans, the innermost first."""
    return _Sinking().run(closed) if any(True for e in closed.eqns for _ in programs_of(e)) else closed


class _Sum(NamedTuple):
    """A result of a turn that only adds up: the equations from products and reductions on to the result, in order, and
    which of them these sources are. `place`: of the result; a carry, or what is kept of each turn."""

    place: int
    eqns: list[JaxprEqn]
    sources: list[JaxprEqn]

    @property
    def products(self) -> list[JaxprEqn]:
        return [e for e in self.sources if e.primitive.traits.contraction]

    @property
    def reduced(self) -> list[Any]:
        """What its reductions sum up."""
        return [e.invars[0] for e in self.sources if e.primitive.traits.reduction]


class _Sinking(Rewriting):
    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        eqn = map_programs(eqn, sink_sums)
        p = eqn.params
        if eqn.primitive.traits.control is not Control.SCAN or p["length"] < 2:
            return self.add(eqn, ins)
        loop = JaxprLoop(p["jaxpr"], ins, p["num_consts"], p["num_carry"])
        finder = _Finder(loop)
        sums = list(finder.sums())
        chosen, kept = _one_product(loop, sums, p["length"])
        if chosen:
            return self.sunk(eqn, loop, chosen, kept, [])
        sums, rows = [s for s in sums if not s.products], list(finder.reductions(p["length"]))
        if (sums or rows) and _pointwise(loop, [*sums, *rows]):
            kept, summed = (list(dict.fromkeys(v for s in part for v in s.reduced)) for part in (rows, sums))
            return self.sunk(eqn, loop, [*sums, *rows], kept, summed)
        return self.add(eqn, ins)

    def sunk(self, eqn: JaxprEqn, loop: JaxprLoop, sums: Sequence[_Sum], kept: Sequence[Any], summed: Sequence[Any]
             ) -> Sequence[Atom]:
        """The loop without `sums`, but with results for what is `kept` of each turn, and with the sums over the turns
        of what is `summed` element by element; then the sums."""
        length, before, n = eqn.params["length"], loop.num_carry, loop.num_consts
        env: dict[Any, Atom] = dict(zip(loop.invars, loop.ins, strict=True))  # (of a turn's own, all turns')
        with self.copies():
            env.update(zip(loop.constvars, self.constants(loop.body), strict=True))
        outvars = _without(loop, eqn, sums, summed)
        zeros = [self.add(JaxprEqn([], [Var(v.aval)], zeros_p, {"aval": v.aval}), [])[0] for v in summed]
        at = n + loop.num_carry - len(summed)
        loop.ins[at:at] = zeros
        loop.outvars += kept
        outvars += [_rows(v, length) for v in kept]
        outs = self.equation(eqn.replace(outvars=outvars, params={
            **eqn.params, "jaxpr": loop.closed(), "num_carry": loop.num_carry}), loop.ins)  # (which may leave more)
        everywhere = {**env, **dict(zip(kept, outs[len(outs) - len(kept):], strict=True))}
        together = {**everywhere, **dict(zip(summed, outs[loop.num_carry - len(summed):], strict=False))}
        found: dict[int, Atom] = {}
        with self.copies():
            for s in sums:
                env = dict(together if s.place < before else everywhere)
                for e in s.eqns:
                    whole = e
                    if any(e is x for x in s.sources) and not (s.place < before and summed):
                        whole = _of_rows(e) if s.place < before else _of_each(e, length)
                    env.update(zip(e.outvars, self.add(whole, [v if type(v) is Literal else env[v] for v in e.invars]),
                                   strict=True))
                found[s.place] = env[s.eqns[-1].outvars[0]]
        rest = iter((*outs[:loop.num_carry - len(summed)], *outs[loop.num_carry:]))
        return [found[k] if k in found else next(rest) for k in range(len(eqn.outvars))]


def _without(loop: JaxprLoop, eqn: JaxprEqn, sums: Sequence[_Sum], summed: Sequence[Any]) -> list[Any]:
    """Takes `sums` out of a loop, and makes it add up what is `summed` in carries of their own, the last ones; the
    variables of its results."""
    n, before = loop.num_consts, loop.num_carry
    places = {s.place for s in sums}
    gone = {e.outvars[0] for s in sums for e in s.eqns}
    carries = [k for k in range(before) if k not in places]
    rows = [k for k in range(before, len(loop.outvars)) if k not in places]
    olds, news = ([Var(v.aval) for v in summed] for _ in range(2))
    loop.eqns = [e for e in loop.eqns if gone.isdisjoint(e.outvars)]
    if summed:
        addition = next(e for s in sums for e in s.eqns if e.primitive.traits.addition)
        loop.eqns += [addition.replace(invars=[old, v], outvars=[new])
                      for old, v, new in zip(olds, summed, news, strict=True)]
    loop.ins = [*loop.ins[:n], *(loop.ins[n + k] for k in carries), *loop.ins[n + before:]]
    loop.invars = [*loop.invars[:n], *(loop.invars[n + k] for k in carries), *olds, *loop.invars[n + before:]]
    loop.outvars = [*(loop.outvars[k] for k in carries), *news, *(loop.outvars[k] for k in rows)]
    loop.num_carry = len(carries) + len(summed)
    return [*(eqn.outvars[k] for k in carries), *(Var(v.aval) for v in summed), *(eqn.outvars[k] for k in rows)]


def _of_rows(source: JaxprEqn) -> JaxprEqn:
    """A product or reduction of what is kept of the turns, which sums over these, too."""
    p = source.params
    if source.primitive.traits.reduction:
        return source.replace(params={**p, "axes": (0, *(d + 1 for d in p["axes"]))})
    contract, batch = (tuple(tuple(d + 1 for d in dims) for dims in both) for both in p["dimension_numbers"])
    return source.replace(params={**p, "dimension_numbers": (((0, *contract[0]), (0, *contract[1])), batch)})


def _of_each(reduction: JaxprEqn, length: int) -> JaxprEqn:
    """A reduction of what is kept of the turns, for each of them."""
    return reduction.replace(outvars=[_rows(reduction.outvars[0], length)], params={
        **reduction.params, "axes": tuple(d + 1 for d in reduction.params["axes"])})


def _rows(v: Any, length: int) -> Var:
    """A variable for what is one of a turn, of all turns."""
    return Var(v.aval.update(shape=(length, *v.aval.shape)))


class _Found(NamedTuple):
    """Equations that are linear in products and reductions, these, and whether they add to the carry."""

    eqns: list[JaxprEqn]
    sources: list[JaxprEqn]
    adds: bool


class _Finder:
    """Finds what is linear in products and reductions of a loop's turn alone, with numbers that stay."""

    def __init__(self, loop: JaxprLoop):
        self.loop = loop
        self.made = {v: eqn for eqn in loop.eqns for v in eqn.outvars}
        self.reads = Counter(v for eqn in loop.eqns for v in eqn.invars if type(v) is not Literal)
        self.reads.update(v for v in loop.outvars if type(v) is not Literal)
        self.steady = {*loop.constvars, *loop.invars[:loop.num_consts]}

    def sums(self) -> Iterator[_Sum]:
        """The carries that nothing reads but what adds products or reductions to them."""
        n = self.loop.num_consts
        for k, old in enumerate(self.loop.invars[n:n + self.loop.num_carry]):
            found = self.linear(self.loop.outvars[k], old) if self.reads[old] == 1 else None
            if found is not None and found.sources and found.adds:
                by_result = {e.outvars[0]: e for e in found.eqns}
                yield _Sum(k, [by_result[e.outvars[0]] for e in self.loop.eqns if e.outvars[0] in by_result],
                           found.sources)

    def reductions(self, length: int) -> Iterator[_Sum]:
        """The reductions that are wanted of each turn, where what they sum up takes no more room than what a turn has
        of its own, anyway."""
        loop = self.loop
        room = max((_nbytes(v) for v in loop.invars[loop.num_consts + loop.num_carry:]), default=0)
        for k in range(loop.num_carry, len(loop.outvars)):
            eqn = self.made.get(loop.outvars[k])
            if eqn is not None and self.reads[loop.outvars[k]] == 1 and eqn.primitive.traits.reduction and (
                    eqn.primitive.traits.linear and not self.stays(eqn.invars[0])
                    and _nbytes(eqn.invars[0]) <= min(room, ROOM // length)):
                yield _Sum(k, [eqn], [eqn])

    def stays(self, v: Any) -> bool:
        return type(v) is Literal or v in self.steady

    def untransposed(self, product: JaxprEqn) -> JaxprEqn:
        """A product of the operands themselves that a turn only transposes for it, where results stay in order."""
        ins, (contract, batch) = list(product.invars), product.params["dimension_numbers"]
        numbers = [list(contract), list(batch)]
        for side, v in enumerate(ins):
            eqn = self.made.get(v) if type(v) is not Literal else None
            if eqn is None or eqn.primitive.traits.permutation is None:
                continue
            order = eqn.primitive.traits.permutation(eqn.params)
            bound = {*contract[side], *batch[side]}
            free = [d for k, d in enumerate(order) if k not in bound]
            if free == sorted(free):
                ins[side] = eqn.invars[0]
                for dims in numbers:
                    dims[side] = tuple(order[k] for k in dims[side])
        if ins == list(product.invars):
            return product
        return product.replace(invars=ins, params={**product.params, "dimension_numbers": tuple(map(tuple, numbers))})

    def linear(self, v: Any, carry: Any = None) -> _Found | None:
        """How a value comes about, read once; None if otherwise. The `carry` may be added to it."""
        if type(v) is Literal:
            return None if np.any(v.val) else _Found([], [], False)
        if v is carry:
            return _Found([], [], True)
        eqn = self.made.get(v)
        if eqn is None or self.reads[v] != 1 or not is_pure(eqn) or eqn.params.get("out_sharding") is not None:
            return None
        traits, ins = eqn.primitive.traits, eqn.invars
        if traits.contraction:
            eqn = self.untransposed(eqn)
            return None if any(map(self.stays, eqn.invars)) else _Found([eqn], [eqn], False)
        if any(x.aval.dtype != v.aval.dtype for x in ins):  # a sum of what is rounded, or cast
            return None
        if traits.bilinear and any(map(self.stays, ins)):
            ins = [ins[1] if self.stays(ins[0]) else ins[0]]
        elif not (traits.addition or traits.linear):
            return None
        parts = [self.linear(x, carry if traits.addition else None) for x in ins]
        if None not in parts:
            return _Found([e for f in parts for e in f.eqns] + [eqn], [e for f in parts for e in f.sources],  # type: ignore[union-attr]
                          any(f.adds for f in parts))  # type: ignore[union-attr]
        reduces = traits.reduction and not self.stays(ins[0])
        return _Found([eqn], [eqn], False) if reduces else None


def _one_product(loop: JaxprLoop, sums: Sequence[_Sum], length: int) -> tuple[list[_Sum], list[Any]]:
    """The sums of products, and of reductions, of rows of all turns, as far as there is room for these; and what is to
    be kept of each turn."""
    rows = set(loop.invars[loop.num_consts + loop.num_carry:])
    kept: dict[Any, None] = {}
    chosen = []
    for s in sorted(sums, key=lambda s: not s.products):
        new = dict.fromkeys(v for e in s.products for v in e.invars if v not in rows)
        room = length * sum(map(_nbytes, {**kept, **new})) <= ROOM
        if room and all(_few(e, rows) for e in s.products) and all(
                v in rows or v in kept or v in new for v in s.reduced):
            chosen.append(s)
            kept.update(new)
    return chosen, list(kept)


def _few(product: JaxprEqn, rows: set[Any]) -> bool:
    """Whether what is kept of a turn is not much more than the turn would add to."""
    return sum(_size(v) for v in product.invars if v not in rows) <= GROWTH * _size(product.outvars[0])


def _size(v: Any) -> int:
    return v.aval.size


def _nbytes(v: Any) -> int:
    return v.aval.size * v.aval.dtype.itemsize


def _pointwise(loop: JaxprLoop, sums: Sequence[_Sum]) -> bool:
    """Whether a turn treats each element of its arrays alone but for `sums`, which are of elements of that shape."""
    gone = {e.outvars[0] for s in sums for e in s.eqns}
    summed = {s.place for s in sums}
    shapes = {v.aval.shape for s in sums for v in s.reduced}
    carried = [v.aval.shape for k, v in enumerate(loop.outvars[:loop.num_carry]) if k not in summed]
    shapes.update(shape for shape in carried if shape != ())
    numbers = len(carried) + len({v for s in sums for v in s.reduced if s.place < loop.num_carry})
    return len(shapes) == 1 and () not in shapes and numbers <= PARTS and all(
        e.primitive.traits.elementwise or e.primitive.traits.movement for e in loop.eqns if gone.isdisjoint(e.outvars))
