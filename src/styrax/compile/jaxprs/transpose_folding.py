"""Transpose folding: a product that is only wanted turned is made so, of its operands in exchanged order.

    c:f32[8,3] = dot_general[dimension_numbers=(((0,), (0,)), ((), ()))] a:f32[5,8] b:f32[5,3]
    d:f32[3,8] = transpose[permutation=(1, 0)] c
                                                        →   d:f32[3,8] = dot_general[…] b a

Derivatives of products by their right operands are such: what uses the slopes of a network's weights would read each of
them across its rows. A product is exchanged, too, where that makes the last dimension what it is to be and others are
still to be moved, as in attention, whose heads stand between the rows that are multiplied.

What several products read turned, and nobody else, they read as it was made: it would be computed across the rows of
its memory. Their results are turned where these are smaller:

    c:f32[9,8] = transpose[permutation=(1, 0)] a:f32[8,9]
    d:f32[9,3] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] c b:f32[8,3]
                                                        →   d:f32[9,3] = dot_general[…=(((0,), (0,)), …)] a b
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.programs.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from ...core.types.avals import ShapedArray
from .rewriting import Rewriting, is_pure, map_programs


def fold_transposes(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with turned products made as they are wanted; the others are left to dead-code elimination."""
    return _Folding().run(closed)


class _Folding(Rewriting):
    def __init__(self) -> None:
        super().__init__()
        self.products: dict[Atom, tuple[JaxprEqn, Sequence[Atom]]] = {}  # those that are used once
        self.turned: dict[Atom, tuple[Atom, tuple[int, ...]]] = {}  # what products alone read: of what, in what order
        self.turns: list[JaxprEqn] = []  # the equations that make it

    def write(self, jaxpr: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
        self.uses: dict[Var, int] = {}
        self.read: dict[Var, int] = {}  # by products
        self.given = {*jaxpr.invars, *jaxpr.constvars}
        for v in (*(v for eqn in jaxpr.eqns for v in eqn.invars), *jaxpr.outvars):
            if type(v) is not Literal:
                self.uses[v] = self.uses.get(v, 0) + 1
        for eqn in jaxpr.eqns:
            for v in eqn.invars if _is_product(eqn) else ():
                if type(v) is not Literal:
                    self.read[v] = self.read.get(v, 0) + 1
        return super().write(jaxpr, args)

    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        traits = eqn.primitive.traits
        if traits.permutation is not None and ins[0] in self.products and is_pure(eqn):
            product, operands = self.products[ins[0]]
            wanted, exchange = tuple(traits.permutation(eqn.params)), _exchange(product)
            if wanted == exchange:
                turned = _exchanged(product, eqn.outvars[0])
                return self._used_once(turned, operands[::-1], self.add(turned, operands[::-1]), eqn.outvars[0])
            rest = tuple([exchange.index(d) for d in wanted])
            shape = product.outvars[0].aval.shape  # type: ignore[attr-defined]
            if "permutation" in eqn.params and _last(rest, [shape[d] for d in exchange]) and not _last(wanted, shape):
                aval = product.outvars[0].aval
                assert isinstance(aval, ShapedArray)
                out = Var(aval.update(shape=tuple([shape[d] for d in exchange])))
                outs = self.add(_exchanged(product, out), operands[::-1])
                return self.add(eqn.replace(invars=outs, params={**eqn.params, "permutation": rest}), outs)
        if _is_product(eqn) and any(atom in self.turned for atom in ins):
            return self._of_sources(eqn, ins)
        outs = self.add(map_programs(eqn, fold_transposes), ins)
        if _is_product(eqn):
            return self._used_once(eqn, ins, outs, eqn.outvars[0])
        if "permutation" in eqn.params and traits.permutation is not None and is_pure(eqn) and (
                1 < self.uses.get(eqn.outvars[0], 0) == self.read.get(eqn.outvars[0], 0)
                and eqn.invars[0] not in self.given):
            self.turned[outs[0]] = ins[0], tuple(eqn.params["permutation"])
            self.turns.append(eqn)
        return outs

    def _of_sources(self, product: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        """A product of what its turned operands are made of, and its result turned instead, if that is smaller."""
        contracted, batch = product.params["dimension_numbers"]
        out = product.outvars[0]
        shape = out.aval.shape  # type: ignore[attr-defined]
        operands, sums, batches, order = list(ins), list(contracted), list(batch), list(range(len(batch[0])))
        for side, atom in enumerate(ins):
            source, permutation = self.turned.get(atom, (atom, tuple(range(len(_shape(atom))))))
            free = [d for d in permutation if d not in [permutation[k] for k in (*contracted[side], *batch[side])]]
            begin = len(order)
            moved = [begin + sorted(free).index(d) for d in free]
            if moved != sorted(moved) and math.prod(shape) >= math.prod(_shape(atom)):
                source, permutation, moved = atom, tuple(range(len(_shape(atom)))), sorted(moved)
            operands[side] = source
            sums[side] = tuple(permutation[d] for d in contracted[side])
            batches[side] = tuple(permutation[d] for d in batch[side])
            order += moved
        params = {**product.params, "dimension_numbers": (tuple(sums), tuple(batches))}
        product = product.replace(invars=operands, params=params)
        if order == sorted(order):
            return self._used_once(product, operands, self.add(product, operands), out)
        made = Var(out.aval.update(shape=tuple(shape[order.index(k)] for k in range(len(order)))))
        outs = self.add(product.replace(outvars=[made]), operands)
        turn = self.turns[-1]
        return self.add(turn.replace(invars=outs, outvars=[out], params={**turn.params, "permutation": tuple(order)}),
                        outs)

    def _used_once(self, product: JaxprEqn, ins: Sequence[Atom], outs: Sequence[Atom], out: Var) -> Sequence[Atom]:
        """The results of a product that stands for `out`: what is used once may be turned (once more)."""
        if self.uses.get(out) == 1:
            self.products[outs[0]] = product, ins
        return outs


def _is_product(eqn: JaxprEqn) -> bool:
    return bool(eqn.primitive.traits.contraction) and is_pure(eqn) and eqn.params.get("out_sharding") is None


def _shape(atom: Atom) -> tuple[int, ...]:
    aval = atom.aval
    assert isinstance(aval, ShapedArray)
    return aval.shape


def _last(permutation: Sequence[int], shape: Sequence[Any]) -> bool:
    """Whether a permutation leaves the last dimension of a shape where it is, those of size 1 aside."""
    order = [d for d in permutation if shape[d] != 1]
    return not order or order[-1] == max(order)


def _exchange(product: JaxprEqn) -> tuple[int, ...]:
    """The permutation of a product's dimensions that exchanging its operands makes."""
    (contracted, _), (batch, _) = product.params["dimension_numbers"]
    left, out = product.invars[0].aval, product.outvars[0].aval
    assert isinstance(left, ShapedArray) and isinstance(out, ShapedArray)
    first, second = len(batch), left.ndim - len(contracted)
    return *range(first), *range(second, out.ndim), *range(first, second)


def _exchanged(product: JaxprEqn, out: Var) -> JaxprEqn:
    params = dict(product.params)
    params["dimension_numbers"] = tuple(pair[::-1] for pair in params["dimension_numbers"])
    if isinstance(params.get("precision"), tuple):
        params["precision"] = params["precision"][::-1]
    return product.replace(invars=product.invars[::-1], outvars=[out], params=params)
