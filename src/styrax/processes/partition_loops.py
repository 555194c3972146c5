"""Loops and branches on arrays over several processes: their programs are parted, too; carries keep one sharding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs.jaxpr import ClosedJaxpr, JaxprEqn
from ..core.programs.traits import Control
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import get_aval
from .partition import Own, Partition, Split, entries_of

Layout = Any  # of a value: its sharding and shape, "own", or None for a whole one


def layout(x: Any) -> Layout:
    """How a value is known."""
    return (x.sharding, x.shape) if isinstance(x, Split) else "own" if isinstance(x, Own) else None


def bare(x: Any) -> Any:
    """The array that a process has of it."""
    return x.rows if isinstance(x, Split) else x.value if isinstance(x, Own) else x


def known(x: Any, how: Layout) -> Any:
    """An array as a value known so."""
    return x if how is None else Own(x) if how == "own" else Split(x, *how)


def as_known(work: Partition, x: Any, how: Layout) -> Any:
    """A value brought to be known so."""
    if how == "own":
        return x if isinstance(x, Own) else Own(work.whole(x))
    if how is None:
        return work.whole(x)
    return work.split(x, how[0])


class _Part:
    """A program's part for arguments known so: `closed`, and how its results are known."""

    def __init__(self, work: Partition, closed: ClosedJaxpr, ins: Sequence[Any], hows: Sequence[Layout],
                 wanted: Sequence[Layout] | None = None):
        def part(*args: Any) -> list[Any]:
            outs = work.run(closed.jaxpr, closed.consts, list(map(known, args, hows)))
            if wanted is not None:
                outs = [x if w == "free" else as_known(work, x, w) for x, w in zip(outs, wanted, strict=True)]
            self.outs = list(map(layout, outs))
            return list(map(bare, outs))

        self.closed = trace_to_jaxpr(part, list(ins), closed.jaxpr.debug_info)


def _merged(old: Layout, new: Layout) -> Layout:
    """How a carry is known that begins as `old` and is `new` after a turn."""
    if "own" in (old, new):
        return "own"
    return new if old is None else old


def _carried(work: Partition, values: Sequence[Any], turn: Callable[[Sequence[Any]], Sequence[Layout]],
             ) -> list[Any]:
    """The first carry, known as it can stay."""
    values = list(values)
    for _ in range(len(values) + 1):
        hows = [_merged(layout(x), new) for x, new in zip(values, turn(values), strict=True)]
        if hows == [layout(x) for x in values]:
            break
        values = [as_known(work, x, how) for x, how in zip(values, hows, strict=True)]
    return values


def _avals(values: Sequence[Any]) -> list[Any]:
    return [get_aval(bare(x)) for x in values]


def _scan(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> list[Any]:
    params = eqn.params
    consts, count, closed = params["num_consts"], params["num_carry"], params["jaxpr"]
    fixed, carry, xs = ins[:consts], ins[consts:consts + count], ins[consts + count:]
    rows, hows = [], []  # of the scanned arrays: dimension 0 is walked along, and not cut
    for x in xs:
        if isinstance(x, Split):
            x = work.spread(x, ((), *x.entries[1:]))
        if isinstance(x, Split):
            inner = work.sharding(x.entries[1:])
            rows.append(_moved(x.rows))
            hows.append((inner, x.shape[1:]))
        else:
            rows.append(bare(x))
            hows.append(layout(x))
    row_avals = [get_aval(r).update(shape=get_aval(r).shape[1:]) for r in rows]

    def parted(values: Sequence[Any], wanted: Sequence[Layout] | None = None) -> _Part:
        given = [*fixed, *values]
        return _Part(work, closed, [*_avals(given), *row_avals], [*map(layout, given), *hows], wanted)

    carry = _carried(work, carry, lambda values: parted(values).outs[:count])
    final = parted(carry, [*map(layout, carry), *["free"] * (len(closed.out_avals) - count)])
    operands = [*map(bare, fixed), *map(bare, carry), *rows]
    # (what was said of linear operands holds of their parts)
    outs = eqn.primitive.bind(*_closed_over(final.closed), *operands, **{
        **params, "jaxpr": _opened(final.closed), "num_consts": consts + len(final.closed.consts),
        **({"linear": (False,) * (len(final.closed.consts) + len(operands))} if "linear" in params else {})})
    found = []
    for i, (x, how) in enumerate(zip(outs, final.outs, strict=True)):
        if i >= count and isinstance(how, tuple):
            sharding, shape = how
            whole = work.sharding(((), *entries_of(sharding, len(shape))))
            found.append(Split(_moved(x, back=True), whole, (params["length"], *shape)))
        else:
            found.append(known(x, how))
    return found


def _moved(rows: Any, back: bool = False) -> Any:
    """`[blocks, length, …]` as `[length, blocks, …]`, which is the same way back."""
    from ..transforms.batching import moveaxis

    return moveaxis(rows, 1, 0)


def _opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program whose constants are its first arguments."""
    from ..core.programs.jaxpr import Jaxpr

    jaxpr = closed.jaxpr
    return ClosedJaxpr(Jaxpr((), [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.effects,
                             jaxpr.debug_info), ())


def _closed_over(closed: ClosedJaxpr) -> list[Any]:
    return list(closed.consts)


def _while(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> list[Any]:
    params = eqn.params
    a, b = params["cond_nconsts"], params["body_nconsts"]
    tests, fixed, carry = ins[:a], ins[a:a + b], ins[a + b:]

    def parted(values: Sequence[Any], wanted: Sequence[Layout] | None = None) -> _Part:
        given = [*fixed, *values]
        return _Part(work, params["body_jaxpr"], _avals(given), list(map(layout, given)), wanted)

    carry = _carried(work, carry, lambda values: parted(values).outs)
    body = parted(carry, list(map(layout, carry)))
    given = [*tests, *carry]
    how = "own" if any(isinstance(x, Own) for x in given) else None
    test = _Part(work, params["cond_jaxpr"], _avals(given), list(map(layout, given)), [how])
    outs = eqn.primitive.bind(
        *_closed_over(test.closed), *map(bare, tests), *_closed_over(body.closed), *map(bare, fixed), *map(bare, carry),
        **{**params, "cond_jaxpr": _opened(test.closed), "cond_nconsts": a + len(test.closed.consts),
           "body_jaxpr": _opened(body.closed), "body_nconsts": b + len(body.closed.consts)})
    return list(map(known, outs, map(layout, carry)))


def _cond(work: Partition, eqn: JaxprEqn, ins: Sequence[Any]) -> list[Any]:
    own = isinstance(ins[0], Own)
    index, operands = work.whole(ins[0]), ins[1:]
    branches = eqn.params["branches"]

    def parted(branch: ClosedJaxpr, wanted: Sequence[Layout] | None = None) -> _Part:
        return _Part(work, branch, _avals(operands), list(map(layout, operands)), wanted)

    hows = parted(branches[0]).outs
    for branch in branches[1:]:
        hows = [_merged(old, new) for old, new in zip(hows, parted(branch).outs, strict=True)]
    if own:
        hows = ["own"] * len(hows)
    parts = [parted(branch, hows) for branch in branches]
    consts = [c for p in parts for c in p.closed.consts]
    opened = []
    at = 0
    for p in parts:
        opened.append(_among(p.closed, at, consts))
        at += len(p.closed.consts)
    outs = eqn.primitive.bind(index, *consts, *map(bare, operands), **{**eqn.params, "branches": tuple(opened)})
    return list(map(known, outs, hows))


def _among(closed: ClosedJaxpr, at: int, consts: Sequence[Any]) -> ClosedJaxpr:
    """A branch that takes the constants of all branches, of which its own stand at a place."""
    def branch(*args: Any) -> list[Any]:
        from ..core.programs.jaxpr import eval_jaxpr

        mine = args[at:at + len(closed.consts)]
        return eval_jaxpr(closed.jaxpr, mine, *args[len(consts):])

    return trace_to_jaxpr(branch, [*map(get_aval, consts), *closed.in_avals], closed.jaxpr.debug_info)


flows = {Control.SCAN: _scan, Control.WHILE: _while, Control.COND: _cond}

__all__ = ["flows"]
