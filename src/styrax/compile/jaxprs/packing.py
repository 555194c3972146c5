"""Packing: a matrix that does not change in a loop, and whose rows every turn multiplies with other rows, is laid out
once so that the products' vectors run along its columns.

    scan[jaxpr={ lambda ; w:f32[4,5] c:f32[5]. let      scan[jaxpr={ lambda ; w:f32[4,5] c:f32[5]. let
        d:f32[4] = dot_general w c  # Σ w[i, k] c[k]  →      p:f32[5,4] = pack[permutation=(1, 0)] w
        …                                                    d:f32[4] = dot_general p c  # Σ p[k, i] c[k]
      in (e,) }] w c                                         …

Sums along vectors would be folded lane by lane for every element of a result. Loop-invariant code motion takes the new
equation out of the loop. (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.programs import rules
from ...core.programs.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from ...core.programs.primitive import Primitive
from ...core.programs.traits import Control
from ...core.types.avals import ShapedArray
from ..lowering.products import LARGE
from .loop_invariants import CACHED
from .rewriting import Rewriting, is_pure, map_programs, programs_of

if TYPE_CHECKING:
    from ...core.programs.lowering import Builder, Value

pack_p = Primitive("pack")


@pack_p.def_abstract_eval
def _packed(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    return x.update(shape=tuple(x.shape[d] for d in permutation))


def _loops(b: Builder, x: Value, *, permutation: tuple[int, ...]) -> Value:
    place = {d: k for k, d in enumerate(permutation)}
    return b.materialize(b.value(tuple(x.shape[d] for d in permutation), x.dtype,
                                 lambda i: x.at([i[place[d]] for d in range(len(i))])))


rules.loops[pack_p] = _loops


def pack_invariants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with operands of products in its loops packed."""
    return _Packing().run(closed) if any(True for e in closed.eqns for _ in programs_of(e)) else closed


class _Packing(Rewriting):
    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        eqn = map_programs(eqn, pack_invariants)
        p, control = eqn.params, eqn.primitive.traits.control
        name = "body_jaxpr" if control is Control.WHILE else "jaxpr"
        if control is Control.WHILE:
            body = _body(p[name], p["body_nconsts"], ())
        elif control is Control.SCAN and p["length"] > 1:
            body = _body(p[name], p["num_consts"], p[name].jaxpr.invars[p["num_consts"] + p["num_carry"]:])
        else:
            return self.add(eqn, ins)
        return self.add(eqn if body is p[name] else eqn.replace(params={**p, name: body}), ins)


def _body(closed: ClosedJaxpr, num_consts: int, rows: Iterable[Var]) -> ClosedJaxpr:
    """The body of a loop with products of packed constants. Those with `rows` leave the loop (see `row_products`)."""
    jaxpr = closed.jaxpr
    fixed = {*jaxpr.constvars, *jaxpr.invars[:num_consts],
             *(v for v, out in zip(jaxpr.invars[num_consts:], jaxpr.outvars) if v is out)}
    rows = set(rows)
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        side = _side(eqn, fixed) if eqn.primitive.traits.contraction and rows.isdisjoint(eqn.invars) else None
        eqns += [eqn] if side is None else _packed_product(eqn, side)
    if len(eqns) == len(jaxpr.eqns):
        return closed
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, None, jaxpr.debug_info), closed.consts)


def _side(eqn: JaxprEqn, fixed: set[Any]) -> int | None:
    """Which operand of a product is worth packing, if one is."""
    steady = [type(v) is Literal or v in fixed for v in eqn.invars]
    out = eqn.outvars[0].aval
    if not is_pure(eqn) or all(steady) or not any(steady) or eqn.params.get("out_sharding") is not None:
        return None
    side = steady.index(True)
    aval, other = eqn.invars[side].aval, eqn.invars[1 - side].aval
    assert isinstance(aval, ShapedArray) and isinstance(other, ShapedArray) and isinstance(out, ShapedArray)
    contract, batch = (eqn.params["dimension_numbers"][k][side] for k in (0, 1))
    contract_other = eqn.params["dimension_numbers"][0][1 - side]
    if len(contract) != 1 or contract[0] != aval.ndim - 1:
        return None
    free = [aval.shape[d] for d in range(aval.ndim - 1) if d not in batch]
    along = aval.shape[-1]
    others = other.size // max(1, along * math.prod(aval.shape[d] for d in batch))
    if not free or free[-1] == 1 or along == 1 or aval.size * aval.dtype.itemsize > CACHED:
        return None
    if others > 1 and contract_other[0] != other.ndim - 1:  # vectors run along the other's columns
        return None
    by_blas = others >= 4 and math.prod(free) * others * along >= LARGE
    return None if by_blas else side


def _packed_product(eqn: JaxprEqn, side: int) -> list[JaxprEqn]:
    """The operand with its last dimension before the last of those that are not summed over, and the product of it."""
    old = eqn.invars[side]
    aval = old.aval
    assert isinstance(aval, ShapedArray)
    contract, batch = eqn.params["dimension_numbers"]
    columns = max(d for d in range(aval.ndim - 1) if d not in batch[side])
    order = list(range(aval.ndim))
    order[columns], order[-1] = order[-1], order[columns]
    new = Var(_packed(aval, permutation=tuple(order)))
    pack = JaxprEqn([old], [new], pack_p, {"permutation": tuple(order)}, source_info=eqn.source_info)
    sums = tuple((columns,) if k == side else contract[k] for k in (0, 1))
    invars = [new if k == side else v for k, v in enumerate(eqn.invars)]
    return [pack, eqn.replace(invars=invars, params={**eqn.params, "dimension_numbers": (sums, batch)})]
