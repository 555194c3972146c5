"""Loop fission of products: where each turn of a `scan` multiplies a row of its own with a matrix that does not change,
one product before the loop multiplies all rows.

    scan[jaxpr={ lambda ; w:f32[4,4] c:f32[4] x:f32[4]. let     r:f32[9,4] = dot_general xs w
        r:f32[4] = dot_general x w                          →   scan[jaxpr={ lambda ; c:f32[4] r:f32[4]. let
        …                                                             …
      in (d,) }] w c xs                                            in (d,) }] c r

(The input products of recurrent networks: Appleyard, Kocisky and Blunsom, Optimizing performance of recurrent neural
networks on GPUs, 2016.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from ...core.programs.traits import Control
from ...core.types.avals import ShapedArray
from .loop_form import JaxprLoop
from .rewriting import Rewriting, is_pure, map_programs, programs_of

GROWTH = 8  # times that a row may grow when it is multiplied outside of a loop
ROOM = 1 << 28  # bytes that all rows may take there


def multiply_rows_together(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with products of rows moved out of its scans."""
    return _Fission().run(closed) if any(True for e in closed.eqns for _ in programs_of(e)) else closed


class _Fission(Rewriting):
    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        eqn = map_programs(eqn, multiply_rows_together)
        if eqn.primitive.traits.control is not Control.SCAN or eqn.params["length"] == 0:
            return self.add(eqn, ins)
        p = eqn.params
        loop = JaxprLoop(p["jaxpr"], ins, p["num_consts"], p["num_carry"])
        products = _products_of_rows(loop, p["length"])
        if not products:
            return self.add(eqn, ins)
        with self.copies():
            env: dict[Any, Atom] = dict(zip(loop.constvars, self.constants(loop.body), strict=True))
        env.update(zip(loop.invars, loop.ins, strict=True))
        for product in products:
            (left, right), none = product.params["dimension_numbers"]
            out = product.outvars[0].aval
            assert isinstance(out, ShapedArray)
            whole = product.replace(outvars=[Var(out.update(shape=(p["length"], *out.shape)))], params={
                **product.params, "dimension_numbers": ((tuple(d + 1 for d in left), right), none)})
            loop.feed(product, self.add(whole, [env[v] for v in product.invars])[0])
        return self.add(eqn.replace(params={**p, "jaxpr": loop.closed()}), loop.ins)


def _products_of_rows(loop: JaxprLoop, length: int) -> list[JaxprEqn]:
    """The equations that multiply what a turn has of its own with a constant, as far as there is room for all."""
    constants = {*loop.constvars, *loop.invars[:loop.num_consts]}
    rows = set(loop.invars[loop.num_consts + loop.num_carry:])
    found = []
    for eqn in loop.eqns:
        if not eqn.primitive.traits.contraction or not is_pure(eqn) or eqn.params.get("out_sharding") is not None:
            continue
        (row, matrix), out = eqn.invars, eqn.outvars[0].aval
        if row in rows and matrix in constants and eqn.params["dimension_numbers"][1] == ((), ()) and (
                isinstance(out, ShapedArray) and isinstance(row.aval, ShapedArray)
                and out.size <= GROWTH * row.aval.size and length * out.size * out.dtype.itemsize <= ROOM):
            found.append(eqn)
    return found
