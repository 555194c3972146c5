"""Packing: where a product sums over the rows of both operands, one of them is laid out anew, so that the product's
vectors run along its columns: once for a loop in which it does not change, or once for all rows of the other.

    scan[jaxpr={ lambda ; w:f32[4,5] c:f32[5]. let      scan[jaxpr={ lambda ; w:f32[4,5] c:f32[5]. let
        d:f32[4] = dot_general w c  # Σ w[i, k] c[k]  →      p:f32[5,4] = pack[permutation=(1, 0)] w
        …                                                    d:f32[4] = dot_general p c  # Σ p[k, i] c[k]
      in (e,) }] w c                                         …

Sums along vectors would be folded lane by lane for every element of a result. Loop-invariant code motion takes the new
equation out of the loop. (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008.)

Where it sums over several dimensions that the operands have in different orders, the smaller operand is laid out as the
larger one is walked. Where each loop that could be that of lanes is short or would gather, an operand is laid out for
one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.programs import rules
from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from ...core.programs.primitive import Primitive
from ...core.programs.traits import Control
from ...core.types.avals import ShapedArray
from ..costs import HORIZONTAL
from ..lowering.products import FEW, LARGE, loops_do_better
from .loop_invariants import CACHED, is_no_larger
from .rewriting import Rewriting, is_pure, map_programs

if TYPE_CHECKING:
    from ...core.programs.lowering import Builder, Value

REUSED = 16  # rows of the other operand from which it pays to lay out an operand for one product
FEWEST = 8  # columns that are worth a vector
WORTH = 1 << 14  # multiplications of a product that is worth a copy for its lanes
LANES, ABREAST = 16, 8  # elements of a vector; rows of the other operand that are summed side by side
LATENCY = 4  # estimated instructions that a sum waits for its last addition

pack_p = Primitive("pack")


@pack_p.def_abstract_eval
def _packed(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    return x.update(shape=tuple(x.shape[d] for d in permutation))


def _loops(b: Builder, x: Value, *, permutation: tuple[int, ...]) -> Value:
    place = {d: k for k, d in enumerate(permutation)}
    return b.materialize(b.value(tuple(x.shape[d] for d in permutation), x.dtype,
                                 lambda i: x.at([i[place[d]] for d in range(len(i))])))


rules.loops[pack_p] = _loops


def pack_operands(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with operands of products packed, also in its loops."""
    return _Packing().run(closed)


class _Operand:
    """An operand as it lies in memory: dimension d is dimension order[d] of `source`."""

    __slots__ = ("source", "order", "contract", "batch", "shape", "free", "rows")

    def __init__(self, source: Atom, order: tuple[int, ...], contract: tuple[int, ...], batch: tuple[int, ...]):
        aval = source.aval
        assert isinstance(aval, ShapedArray)
        self.source, self.order, self.contract, self.batch = source, order, contract, batch
        self.shape = tuple(aval.shape[d] for d in order)
        self.free = [d for d in range(len(order)) if d not in contract and d not in batch]
        self.rows: int = math.prod(self.shape[d] for d in self.free)

    @property
    def along_rows(self) -> bool:
        """Whether what is summed over lies side by side."""
        return len(self.contract) == 1 and self.order[self.contract[0]] == len(self.order) - 1

    @property
    def length(self) -> int:
        """How many terms a sum has."""
        return math.prod(self.shape[d] for d in self.contract)

    @property
    def innermost(self) -> list[int]:
        """Its dimensions as memory has them, the innermost first."""
        return [d for d in sorted(range(len(self.order)), key=lambda d: -self.order[d]) if self.shape[d] != 1]

    @property
    def run(self) -> int:
        """How many elements of a column lie side by side."""
        free = takewhile(lambda d: d in self.free, self.innermost)
        return math.prod(self.shape[d] for d in free)

    @property
    def walk(self) -> tuple[int, ...]:
        """The numbers of the dimensions that are summed over, in the order in which memory has them."""
        return tuple(sorted(range(len(self.contract)), key=lambda k: self.order[self.contract[k]]))

    @property
    def packing(self) -> tuple[int, ...]:
        """The dimensions of `source` in the order in which they are wanted."""
        return tuple(self.order[d] for d in (*self.batch, *self.contract, *self.free))


class _Packing(Rewriting):
    """In the body of a loop, `fixed` are its constants, and products with `rows`, which each turn has for itself, leave
    it (see `row_products`)."""

    def __init__(self, fixed: set[Any] | None = None, rows: set[Any] | None = None) -> None:
        super().__init__()
        self.fixed, self.rows = fixed or set(), rows or set()
        self.turned: dict[Any, tuple[Atom, tuple[int, ...]]] = {}  # what permutes the dimensions of what

    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        traits = eqn.primitive.traits
        eqn = _loop(eqn) if traits.control in (Control.SCAN, Control.WHILE) else map_programs(eqn, pack_operands)
        if traits.contraction and is_pure(eqn) and eqn.params.get("out_sharding") is None:
            return self.product(eqn, ins)
        outs = self.add(eqn, ins)
        if traits.elementwise and is_pure(eqn) and is_no_larger(eqn) and all(
                type(v) is Literal or v in self.fixed for v in ins):
            self.fixed.update(outs)  # (which leaves the loop, where products use it)
        if traits.permutation is not None:
            source, order = self.lying(ins[0])
            self.turned[outs[0]] = source, tuple(order[d] for d in traits.permutation(eqn.params))
        return outs

    def lying(self, v: Atom) -> tuple[Atom, tuple[int, ...]]:
        ndim = v.aval.ndim if isinstance(v.aval, ShapedArray) else 0
        return self.turned.get(v, (v, tuple(range(ndim)))) if type(v) is not Literal else (v, ())

    def product(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        contract, batch = eqn.params["dimension_numbers"]
        operands = [_Operand(*self.lying(v), tuple(contract[k]), tuple(batch[k])) for k, v in enumerate(ins)]
        small = min((1, 0), key=lambda k: math.prod(operands[k].shape))
        walk = operands[1 - small].walk
        if walk != tuple(range(len(walk))):  # (terms in the order of memory)
            (left, right) = (tuple(dims[k] for k in walk) for dims in contract)
            return self.product(eqn.replace(params={**eqn.params, "dimension_numbers": ((left, right), batch)}), ins)
        stays = not self.rows & {x.source for x in operands}
        if stays and _walked_otherwise(operands[small], operands[1 - small]):
            mine, other = operands[small], operands[1 - small]
            columns = _columns_are_faster(mine.rows, mine.length, other.rows)
            return self.laid_out(eqn, ins, operands, small, columns)
        sides = [k for k in (1, 0) if self.worth_packing(operands[k], operands[1 - k])]
        if not sides:
            found = _for_lanes(operands, small) if stays else None
            if found is None:
                return self.add(eqn, ins)
            side, columns = found
            return self.laid_out(eqn, ins, operands, side, columns)
        # The columns of the right operand are those of the product: its vectors are stored as they are.
        side = max(sides, key=lambda k: (operands[k].source in self.fixed, k))
        chosen = operands[side]
        return self.packed(eqn, ins, side, chosen.source, chosen.packing, (len(chosen.batch),), contract[1 - side])

    def laid_out(self, eqn: JaxprEqn, ins: Sequence[Atom], operands: Sequence[_Operand], side: int, columns: bool
                 ) -> Sequence[Atom]:
        """A product with one operand packed, walked as the other one, its columns side by side or its rows."""
        mine, other = operands[side], operands[1 - side]
        walk, n = other.walk, len(mine.batch)
        contract = [mine.contract[k] for k in walk]
        dims = [*mine.batch, *contract, *mine.free] if columns else [*mine.batch, *mine.free, *contract]
        first = n if columns else n + len(mine.free)
        return self.packed(eqn, ins, side, mine.source, tuple(mine.order[d] for d in dims),
                           tuple(range(first, first + len(walk))), tuple(other.contract[k] for k in walk))

    def packed(self, eqn: JaxprEqn, ins: Sequence[Atom], side: int, source: Atom, permutation: tuple[int, ...],
               mine: tuple[int, ...], others: tuple[int, ...]) -> Sequence[Atom]:
        """A product with one operand packed, batch dimensions first. `mine` and `others`: what is summed over."""
        aval, batch = source.aval, eqn.params["dimension_numbers"][1]
        assert isinstance(aval, ShapedArray)
        new = Var(_packed(aval, permutation=permutation))
        found = self.add(JaxprEqn([source], [new], pack_p, {"permutation": permutation},
                                  source_info=eqn.source_info), [source])
        dims = [(mine, tuple(range(len(batch[side])))), (others, batch[1 - side])]
        first, second = dims if side == 0 else dims[::-1]
        numbers = (first[0], second[0]), (first[1], second[1])
        return self.add(eqn.replace(params={**eqn.params, "dimension_numbers": numbers}),
                        [found[0] if k == side else v for k, v in enumerate(ins)])

    def worth_packing(self, mine: _Operand, other: _Operand) -> bool:
        shape, free = mine.shape, mine.free
        if not mine.along_rows or not free or shape[free[-1]] == 1 or shape[mine.contract[0]] == 1:
            return False
        if 0 in shape or other.rows == 0:
            return False
        if other.rows > 1 and not other.along_rows:  # vectors run along the other's columns
            return False
        work = mine.rows * other.rows * shape[mine.contract[0]]
        if not _columns_are_faster(mine.rows, shape[mine.contract[0]], other.rows):
            return False
        if other.rows >= 4 and mine.rows >= 4 and work >= LARGE and not (
                mine.source.aval.dtype == np.float32  # type: ignore[union-attr]
                and loops_do_better(other.rows, mine.rows, shape[mine.contract[0]], 0)):  # a library's
            return False
        if mine.source in self.rows or mine.source in self.fixed and other.source in self.rows:
            return False
        if mine.source in self.fixed and other.source not in self.fixed:
            return math.prod(shape) * mine.source.aval.dtype.itemsize <= CACHED  # type: ignore[union-attr]
        return other.rows >= REUSED and shape[free[-1]] >= FEWEST


def _walked_otherwise(mine: _Operand, other: _Operand) -> bool:
    """Whether a sum over several dimensions jumps in this operand where it walks through the other one; or, where a
    library multiplies, whether that needs one of them in another order."""
    if len(mine.contract) < 2 or 0 in mine.shape or 0 in other.shape or mine.walk == other.walk:
        return False
    last = other.contract[other.walk[-1]]
    return (other.rows >= REUSED // 4 or mine.length >= WORTH // REUSED) and (
        other.order[last] == len(other.order) - 1 or mine.rows * other.rows * mine.length >= LARGE)


def _for_lanes(operands: Sequence[_Operand], small: int) -> tuple[int, bool] | None:
    """Which operand to lay out, and whether by columns, where no loop could be that of lanes: each is too short, or
    would gather from one of them. None for other products."""
    work = operands[0].rows * operands[1].rows * operands[0].length
    if any(0 in x.shape or x.run >= FEWEST for x in operands) or work * math.prod(
            operands[0].shape[d] for d in operands[0].batch) < WORTH:
        return None
    inner = [x.contract.index(d) if (d := next(iter(x.innermost), None)) in x.contract else None for x in operands]
    left, right = operands
    if inner[0] is not None and inner[0] == inner[1] or work >= LARGE and not loops_do_better(
            left.rows, right.rows, left.length, max(FEW)):  # (jaxprs are the same for each host)
        return None
    for side in (small, 1 - small):
        mine, reused = operands[side], operands[1 - side].rows >= REUSED // 4 or left.length >= WORTH // REUSED
        if mine.rows >= FEWEST and (reused or inner[side] is None):
            return side, True
        if reused and inner[1 - side] is not None:
            return side, False
    return None


def _columns_are_faster(columns: int, length: int, rows: int) -> bool:
    """Whether sums of `length` products are faster in vectors along `columns` than in vectors along what is summed: a
    few long sums wait for themselves."""
    along = length * max(LATENCY / min(rows, ABREAST), -(-columns // LANES))
    return along < columns * (-(-length // LANES) + HORIZONTAL)


def _loop(eqn: JaxprEqn) -> JaxprEqn:
    """A loop with operands packed in its body."""
    p = eqn.params
    if eqn.primitive.traits.control is Control.WHILE:
        name, count, last, turns = "body_jaxpr", p["body_nconsts"], len(eqn.invars), 2
    else:
        name, count, last, turns = "jaxpr", p["num_consts"], p["num_consts"] + p["num_carry"], p["length"]
    jaxpr = p[name].jaxpr
    fixed = {*jaxpr.constvars, *jaxpr.invars[:count],
             *(v for v, out in zip(jaxpr.invars[count:last], jaxpr.outvars) if v is out)}
    body = (_Packing(fixed, set(jaxpr.invars[last:])) if turns > 1 else _Packing()).run(p[name])
    return eqn if body is p[name] else eqn.replace(params={**p, name: body})
