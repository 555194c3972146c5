"""Cumulative sums, products, extrema and log-sum-exps along a dimension."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.named import named
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad
from styrax.transforms.custom import custom_jvp

from .. import factor_rules, sharding_rules
from ..elementwise import arithmetic
from ..elementwise import functions as elementwise
from ..elementwise.arithmetic import add, sub
from ..elementwise.comparisons import eq, ge, ne, select
from ..elementwise.families import NUMERIC, OPERATIONS, Operation, check_dtype, standard_primitive
from ..elementwise.functions import exp, log1p
from ..shaping.filling import full_like
from .associative import associative_scan
from .reduce import greatest, least, rules_of_extrema
from .window_geometry import window_attributes

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def _refuse_integers(dtype: Any) -> None:
    """Raises OverflowError: the logarithm of an empty sum, -∞, is no integer."""
    if dtypes.issubdtype(dtype, np.integer):
        raise OverflowError(f"sums of exponentials are not computed for {dtype}: it has no infinity")


def _logaddexp(x: Any, y: Any) -> Any:
    """`log(exp(x) + exp(y))`, elementwise, without overflow."""
    _refuse_integers(get_aval(x).dtype)
    if get_aval(x).dtype.kind == "c":
        first = ge(elementwise.real(x), elementwise.real(y))
        larger, smaller = select(first, x, y), select(first, y, x)
        # Equal operands, infinite ones too, differ by nothing.
        difference = select(eq(smaller, larger), full_like(x, 0), sub(smaller, larger))
        return add(larger, log1p(exp(difference)))
    larger = arithmetic.max(x, y)
    difference = sub(arithmetic.min(x, y), larger)
    undefined = ne(difference, difference)
    return select(undefined, add(x, y), add(larger, log1p(exp(difference))))


logaddexp = custom_jvp(_logaddexp)


@logaddexp.defjvp
def _logaddexp_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    """Each operand has its share of the sum, also of derivatives of this, and where both are equal."""
    out = logaddexp(*primals)

    def share(x: Any) -> Any:
        return exp(sub(*(select(eq(v, full_like(v, np.inf)), full_like(v, 0), v) for v in (x, out))))

    return out, add(*(arithmetic.mul(t, share(x)) for x, t in zip(primals, tangents, strict=True)))


def _logaddexp_scalar(b: Builder, x: Any, y: Any) -> Any:
    _refuse_integers(x.dtype)
    if x.dtype.kind == "c":
        first = b.ge(b.real(x), b.real(y))
        larger, smaller = b.select(first, x, y), b.select(first, y, x)
        difference = b.select(b.eq(smaller, larger), b.const(0, x.dtype), b.sub(smaller, larger))
        return b.add(larger, b.log1p(b.exp(difference)))
    larger, difference = b.max(x, y), b.sub(x, y)
    safe = b.add(larger, b.log1p(b.exp(b.neg(b.abs(difference)))))
    return b.select(b.ne(difference, difference), b.add(x, y), safe)


# -- cumulative operations -------------------------------------------------------------------------------


def _cumulative_loops(step: Callable[..., Any]) -> Callable[..., Any]:
    def rule(b: Builder, x: Any, *, axis: int, reverse: bool) -> Any:
        shape, n = x.shape, x.shape[axis]
        small = dtypes.kind(x.dtype) == "f" and dtypes.itemsize_bits(x.dtype) < 32
        wide = np.dtype(np.float32) if small else x.dtype

        def place(k: Any) -> Any:
            return b.sub(b.sub(b.index(n), b.index(1)), k) if reverse else k

        def along_last(nest: Any, outs: Any, _: Any) -> None:
            def over(d: int, found: tuple) -> None:
                if d < axis:
                    with nest.loop(shape[d], parallel=True) as i:
                        over(d + 1, (*found, i))
                    return
                first = (*found, place(b.index(0)))
                acc = nest.var(wide, b.cast(x.at(first), wide))
                nest.store(outs[0], first, b.cast(acc.get(), x.dtype))
                with nest.loop(b.sub(b.index(n), b.index(1))) as k:
                    where = (*found, place(b.add(k, b.index(1))))
                    acc.set(step(b, acc.get(), b.cast(x.at(where), wide)))
                    nest.store(outs[0], where, b.cast(acc.get(), x.dtype))

            over(0, ())

        def across_rows(nest: Any, outs: Any, _: Any) -> None:
            # Whole rows at a time: neighbours in memory advance together.
            (out,) = outs

            def inner(d: int, found: tuple, then: Callable[[tuple], None]) -> None:
                if d == len(shape):
                    then(found)
                    return
                with nest.loop(shape[d], vector=d == len(shape) - 1) as i:
                    inner(d + 1, (*found, i), then)

            def over(d: int, found: tuple) -> None:
                if d < axis:
                    with nest.loop(shape[d], parallel=True) as i:
                        over(d + 1, (*found, i))
                    return
                start = place(b.index(0))
                inner(axis + 1, (*found, start), lambda where: nest.store(out, where, x.at(where)))
                with nest.loop(b.sub(b.index(n), b.index(1))) as k:
                    here, before = place(b.add(k, b.index(1))), place(k)

                    def advance(where: tuple) -> None:
                        old = out.at([*where[:axis], before, *where[axis + 1 :]])
                        new = step(b, b.cast(old, wide), b.cast(x.at(where), wide))
                        nest.store(out, where, b.cast(new, x.dtype))

                    inner(axis + 1, (*found, here), advance)

            over(0, ())

        if any(type(d) is int and d == 0 for d in shape):
            return x
        body = along_last if axis == len(shape) - 1 else across_rows
        return b.nest([(shape, x.dtype)], body)[0]

    return rule


BLOCK = 128


def _windows(m: Any, x: Any, axis: int, reverse: bool, combine: Callable[[Any, Any], Any], start: Any) -> Any:
    """A reduction of windows that end (or, in reverse, start) at each element: one operation whatever the size, which
    XLA's compilers take apart by levels of blocks, as they do for JAX on TPUs."""
    shape, scalar = x.shape, ShapedArray((), x.dtype)
    region = m.region([scalar, scalar], lambda m2, p, q: m2.call_traced(combine, p, q))
    ones, before = (1,) * len(shape), shape[axis] - 1
    window = tuple(n if d == axis else 1 for d, n in enumerate(shape))
    padding = tuple(((0, before) if reverse else (before, 0)) if d == axis else (0, 0) for d in range(len(shape)))
    return m.op("stablehlo.reduce_window", [x, m.const(start, scalar)], [x.aval],
                window_attributes(window, ones, padding, ones, ones), [region])


def _by_blocks(x: Any, *, axis: int, reverse: bool, combine: Callable[[Any, Any], Any], identity: Callable[[Any], Any],
               prim: Primitive) -> Any:
    """The same with two combinations for each element: all blocks element by element in a loop, then their results."""
    if reverse:
        return lax.rev(_by_blocks(lax.rev(x, (axis,)), axis=axis, reverse=False, combine=combine, identity=identity,
                                  prim=prim), (axis,))
    shape, start = x.shape, identity(x.dtype)
    blocks = -(-shape[axis] // BLOCK)
    padding = [(0, blocks * BLOCK - n, 0) if d == axis else (0, 0, 0) for d, n in enumerate(shape)]
    rows = lax.reshape(lax.pad(x, start, padding), (*shape[:axis], blocks, BLOCK, *shape[axis + 1:]))
    order = (axis + 1, *(d for d in range(len(shape) + 1) if d != axis + 1))
    rows = lax.transpose(rows, order)

    def advance(carry: Any, row: Any) -> tuple[Any, Any]:
        out = combine(carry, row)
        return out, out

    totals, rows = lax.scan(advance, lax.full_like(rows[0], start), rows)
    totals = prim.bind(totals, axis=axis, reverse=False)
    before = lax.pad(totals, start, [(1, -1, 0) if d == axis else (0, 0, 0) for d in range(len(shape))])
    rows = combine(lax.broadcast_in_dim(before, rows.shape, tuple(range(1, len(shape) + 1))), rows)
    rows = lax.transpose(rows, tuple(map(order.index, range(len(order)))))
    return lax.slice_in_dim(lax.reshape(rows, (*shape[:axis], blocks * BLOCK, *shape[axis + 1:])), 0, shape[axis],
                            axis=axis)


def _cumulative(
    name: str,
    combine: Callable[[Any, Any], Any],
    step: Callable[..., Any],
    accepts: Sequence[Any],
    doc: str,
    reference: Any,
    identity: Callable[[Any], Any],
    described: Sequence[Any] = (),
    costly: bool = False,
    smooth: Callable[[Any, Any], Any] | None = None,
) -> tuple[Callable[..., Any], Primitive]:
    """A row: `combine` joins arrays, `step(b, x, y)` scalars. It can be computed for dtypes that it `accepts`, and
    be traced for those that are `described`, too. `identity` is that of `combine` in a dtype, `costly`: whether this
    costs more than reading elements."""

    def shape_rule(x: Any, *, axis: int, reverse: bool) -> tuple:
        if not 0 <= axis < x.ndim:
            if axis < 0:
                raise ValueError(f"{name}: the axis has to be counted from the front, got {axis}")
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
        return x.shape

    def dtype_rule(x: Any, **_: Any) -> Any:
        check_dtype(name, x, (*accepts, *described))
        return x.dtype

    def stablehlo(m: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        if 0 in x.shape:
            return x
        if costly and x.shape[axis] > BLOCK:
            return m.call_program(_by_blocks, x, name=name, axis=axis, reverse=reverse, combine=combine,
                                  identity=identity, prim=prim)
        return _windows(m, x, axis, reverse, combine, identity(x.dtype))

    def by_scan(x: Any, axis: int, reverse: bool) -> Any:
        return associative_scan(smooth or combine, x, reverse=reverse, axis=axis)

    prim = standard_primitive(
        name,
        shape_rule,
        dtype_rule,
        loops=_cumulative_loops(step),
        hlo=stablehlo,
    )

    prim.declare(sharding=sharding_rules.along("axis", "Input", "being reduced"), factors=factor_rules.along("axis"))

    def batch(args: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (dim,) = args, dims
        return prim.bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    def jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        (out,), (tangent,) = ad.jvp_flat(
            lambda x: [by_scan(x, axis, reverse)], list(primals), list(tangents)
        )
        return out, tangent

    rules.batchers[prim] = batch
    rules.jvps[prim] = jvp

    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        return prim.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

    named(
        function,
        name,
        f"{doc}\n\nArgs:\n  operand: an array.\n  axis: the dimension, counted from the front.\n  reverse: start "
        "at the end.\n\nReturns:\n  an array of the same shape and dtype.\n\nRaises:\n  ValueError: for a dimension "
        "that does not exist.\n  TypeError: for other dtypes.",
        "styrax.lax",
    )
    OPERATIONS[name] = Operation(name, prim, function, "cumulative", 1, (accepts,), reference)
    return function, prim


cumsum, cumsum_p = _cumulative(
    "cumsum", add, lambda b, x, y: b.add(x, y), NUMERIC, "Cumulative sums along a dimension.", np.cumsum,
    lambda dtype: np.zeros((), dtype),
)
cumprod, cumprod_p = _cumulative(
    "cumprod", arithmetic.mul, lambda b, x, y: b.mul(x, y), NUMERIC,
    "Cumulative products along a dimension.", np.cumprod, lambda dtype: np.ones((), dtype),
)  # fmt: skip
cummax, cummax_p = _cumulative(
    "cummax", arithmetic.max, rules_of_extrema["max"], NUMERIC, "Cumulative maxima along a dimension.",
    np.maximum.accumulate, least,
)  # fmt: skip
cummin, cummin_p = _cumulative(
    "cummin", arithmetic.min, rules_of_extrema["min"], NUMERIC, "Cumulative minima along a dimension.",
    np.minimum.accumulate, greatest,
)  # fmt: skip
cumlogsumexp, cumlogsumexp_p = _cumulative(
    "cumlogsumexp", _logaddexp, _logaddexp_scalar, (np.floating, np.complexfloating),
    "Logarithms of the cumulative sums of exponentials along a dimension.", np.logaddexp.accumulate,
    lambda dtype: np.array(least(dtype).real, dtype),
    described=(np.integer,), costly=True, smooth=logaddexp,
)  # fmt: skip
ad.deflinear2(
    cumsum_p,
    lambda ct, x, *, axis, reverse: [cumsum(ct, axis=axis, reverse=not reverse)],
)

for _p in (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p):
    _p.declare(nan=True)
