"""Taylor mode of control flow: loops and branches carry derivatives along. Loaded with `experimental.jet`.

Everything of a loop that can change, changes: which carries stay constant is not found out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.transforms.jets import flattened, grouped, instantiate, jet_flat, symbolic_zeros, zero_series

from .bodies import split_list
from .conditionals import cond_p, switch
from .loops import while_loop, while_p
from .scans import scan, scan_p

Series = list[Any]


def _order(series: Sequence[Any]) -> int:
    return max(len(s) for s in series if s is not zero_series)


def _run(closed: ClosedJaxpr, primals: Sequence[Any], series: Sequence[Any], order: int) -> tuple[list[Any], Series]:
    return jet_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, series, order)


def _can_move(x: Any) -> bool:
    return bool(dtypes.issubdtype(get_aval(x).dtype, np.inexact))


def _moved(primals: Sequence[Any], series: Sequence[Any], order: int) -> Series:
    """The terms of all values that can move, one after the other."""
    return [t for x, s in zip(primals, series, strict=True) if _can_move(x) for t in instantiate(s, x, order)]


@symbolic_zeros
def _cond_jet(primals: Sequence[Any], series: Sequence[Any], *, branches: Sequence[ClosedJaxpr]) -> tuple[Any, Series]:
    index, *operands = primals
    order = _order(series)
    moving = [s is not zero_series for s in series[1:]]

    def pushed(branch: ClosedJaxpr) -> Any:
        def run(*args: Any) -> list[Any]:
            outs, terms = _run(branch, args[:len(operands)], grouped(args[len(operands):], moving, order), order)
            return [*outs, *_moved(outs, terms, order)]

        return run

    results = switch(index, [pushed(b) for b in branches], *operands, *flattened(series[1:], operands, order))
    count = len(branches[0].out_avals)
    outs = results[:count]
    return outs, grouped(results[count:], [_can_move(x) for x in outs], order)


@symbolic_zeros
def _while_jet(primals: Sequence[Any], series: Sequence[Any], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr,
               cond_nconsts: int, body_nconsts: int) -> tuple[Any, Series]:
    order = _order(series)
    cond_consts, consts, init = split_list(primals, [cond_nconsts, body_nconsts])
    _, consts_terms, init_terms = split_list(series, [cond_nconsts, body_nconsts])
    moving = [_can_move(x) for x in init]

    def holds(state: tuple) -> Any:
        return eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *cond_consts, *state[0])[0]

    def body(state: tuple) -> tuple:
        values, terms = state
        outs, new = _run(body_jaxpr, [*consts, *values], [*consts_terms, *grouped(terms, moving, order)], order)
        return outs, _moved(outs, new, order)

    outs, terms = while_loop(holds, body, (init, _moved(init, init_terms, order)))
    return outs, grouped(terms, moving, order)


@symbolic_zeros
def _scan_jet(primals: Sequence[Any], series: Sequence[Any], *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int,
              length: int, reverse: bool, unroll: int, **_: Any) -> tuple[Any, Series]:
    order = _order(series)
    consts, init, xs = split_list(primals, [num_consts, num_carry])
    consts_terms, init_terms, xs_terms = split_list(series, [num_consts, num_carry])
    moving = [_can_move(x) for x in init]
    xs_moving = [s is not zero_series for s in xs_terms]

    def body(carry: tuple, x: tuple) -> tuple:
        (values, terms), (row, row_terms) = carry, x
        outs, new = _run(jaxpr, [*consts, *values, *row], [
            *consts_terms, *grouped(terms, moving, order), *grouped(row_terms, xs_moving, order)], order)
        values, ys = split_list(outs, [num_carry])
        terms, ys_terms = split_list(new, [num_carry])
        return (values, _moved(values, terms, order)), (ys, _moved(ys, ys_terms, order))

    (carry, carry_terms), (ys, ys_terms) = scan(
        body, (init, _moved(init, init_terms, order)), (xs, flattened(xs_terms, xs, order)), length, reverse, unroll)
    return [*carry, *ys], [*grouped(carry_terms, moving, order), *grouped(ys_terms, [_can_move(y) for y in ys], order)]


rules.jets[cond_p] = _cond_jet
rules.jets[while_p] = _while_jet
rules.jets[scan_p] = _scan_jet
