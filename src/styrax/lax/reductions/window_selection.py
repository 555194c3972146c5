"""The element that each window selects, as gradients of extrema over windows need it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.attributes import i64_array
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.index_type import INDEX
from styrax.transforms import ad

from .. import factor_rules, sharding_rules
from ..elementwise.scalar_programs import scalar_program
from ..indexing.dimension_numbers import shape_of
from ..shaping.filling import pad
from .window_geometry import (
    INT32,
    at_front,
    check_window,
    extreme,
    read_window,
    widened,
    window_attributes,
    window_shape,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

PHASES = 16  # of elements, up to which each has loops of its own
WRITTEN_OUT = 64  # elements of a window, up to which they are


def _selects(b: Builder, select_prim: Primitive, kept: Sequence[Any], new: Sequence[Any]) -> Any:
    """Whether the element that is kept beats a new one, both with their numbers: the first of equal ones does, in
    whatever order they come."""
    first = b.or_(b.lt(kept[1], new[1]), b.ne(kept[0], new[0]))
    return b.and_((b.ge if select_prim.name == "ge" else b.le)(kept[0], new[0]), first)


def _number(b: Builder, tap: Sequence[Any], window_dimensions: Sequence[int]) -> Any:
    """The number of an element of a window."""
    position = b.index(0)
    for i, size in zip(tap, window_dimensions, strict=True):
        position = b.add(b.mul(position, b.index(size)), i)
    return b.cast(position, INT32)


def _worst(select_prim: Primitive, dtype: Any) -> Any:
    return extreme(dtype, "lowest" if select_prim.name == "ge" else "highest")


def _hlo_select(m: Any, select_prim: Primitive, x: Any, y: Any) -> Any:
    return m.compare(select_prim.name.upper(), x, y)


select_and_gather_add_p = Primitive("select_and_gather_add")
select_and_gather_add_p.declare(sharding=sharding_rules.cut, factors=factor_rules.windows)


@select_and_gather_add_p.def_abstract_eval
def _select_and_gather_add_abstract(tangents: ShapedArray, operand: ShapedArray, *, select_prim: Any,
                                    window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any,
                                    window_dilation: Any) -> ShapedArray:
    if tangents.shape != operand.shape:
        raise TypeError("select_and_gather_add tangents and operand shapes must match, got "
                        f"{tangents.shape} and {operand.shape}.")
    shape = window_shape("select_and_gather_add", operand, window_dimensions, window_strides, padding,
                         base_dilation, window_dilation)
    return ShapedArray(shape, tangents.dtype)


def _select_and_gather_add_loops(b: Builder, tangents: Any, operand: Any, *, select_prim: Any, window_dimensions: Any,
                                 **window: Any) -> Any:
    start = (b.const(_worst(select_prim, operand.dtype)[()], operand.dtype), b.const(-1, INT32),
             b.const(0, tangents.dtype))

    def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any, ...]:
        place, inside = read_window(b, operand, index, tap, **window)
        number = _number(b, tap, window_dimensions)
        if inside is None:
            return operand.at(place), number, tangents.at(place)
        return b.load_if(inside, operand, place, start[0]), number, b.load_if(inside, tangents, place, start[2])

    def combine(_: Any, kept: Sequence[Any], new: Sequence[Any]) -> tuple[Any, ...]:
        stays = _selects(b, select_prim, kept, new)
        return tuple(b.select(stays, old, other) for old, other in zip(kept, new, strict=True))

    return b.reduce(b.avals_out[0].shape, window_dimensions, [operand.dtype, INT32, tangents.dtype], combine, start,
                    body)[2]


rules.loops[select_and_gather_add_p] = _select_and_gather_add_loops


def _select_and_gather_add_stablehlo(m: Any, tangents: Any, operand: Any, *, select_prim: Any,
                                     window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any,
                                     window_dilation: Any) -> Any:
    key, slope = ShapedArray((), operand.aval.dtype), ShapedArray((), tangents.aval.dtype)

    def choose(m2: Any, x: Any, dx: Any, y: Any, dy: Any) -> list[Any]:
        stays = _hlo_select(m2, select_prim, x, y)
        return [m2.select(stays, x, y), m2.select(stays, dx, dy)]

    region = m.region([key, slope, key, slope], choose)
    starts = [m.const(_worst(select_prim, key.dtype), key), m.const(np.zeros((), slope.dtype), slope)]
    shape = m.avals_out[0].shape
    return m.op("stablehlo.reduce_window", [operand, tangents, *starts],
                [ShapedArray(shape, key.dtype), ShapedArray(shape, slope.dtype)],
                attributes=window_attributes(window_dimensions, window_strides, padding, base_dilation,
                                             window_dilation), regions=[region])[1]


rules.stablehlos[select_and_gather_add_p] = _select_and_gather_add_stablehlo


def _select_and_gather_add_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    source, operand = primals
    out = select_and_gather_add_p.bind(source, operand, **params)
    if type(tangents[0]) is ad.Zero:
        return out, ad.Zero.from_primal_value(out)
    return out, select_and_gather_add_p.bind(tangents[0], operand, **params)


rules.jvps[select_and_gather_add_p] = _select_and_gather_add_jvp


def _select_and_gather_add_transpose(ct: Any, tangents: Any, operand: Any, *, select_prim: Any,
                                     window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any,
                                     window_dilation: Any) -> list[Any]:
    assert ad.is_undefined_primal(tangents) and not ad.is_undefined_primal(operand)
    if any(d != 1 for d in window_dilation):
        raise NotImplementedError("VJP not implemented for select_and_gather (MaxPool) with window dilation, got "
                                  f"window_dilation={tuple(window_dilation)}.")
    if type(ct) is ad.Zero:
        return [ad.Zero(tangents.aval), None]
    spread = any(d != 1 for d in base_dilation)
    if spread:
        config = [(0, 0, d - 1) for d in base_dilation]
        operand = pad(operand, _worst(select_prim, get_aval(operand).dtype), config)
    out = select_and_scatter_add_p.bind(
        ct, operand, select_prim=select_prim, window_dimensions=window_dimensions, window_strides=window_strides,
        padding=padding)
    if spread:
        from ..indexing.static_slicing import slice as strided_slice

        out = strided_slice(out, (0,) * len(base_dilation), shape_of(out), base_dilation)
    return [out, None]


rules.transposes[select_and_gather_add_p] = _select_and_gather_add_transpose


def _pairwise_batch(primitive: Primitive) -> Callable[..., Any]:
    def rule(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
        return primitive.bind(*at_front(args, dims), **widened(params)), 0

    return rule


rules.batchers[select_and_gather_add_p] = _pairwise_batch(select_and_gather_add_p)


select_and_scatter_add_p = Primitive("select_and_scatter_add")
select_and_scatter_add_p.declare(sharding=sharding_rules.cut, factors=factor_rules.windows)


@select_and_scatter_add_p.def_abstract_eval
def _select_and_scatter_add_abstract(source: ShapedArray, operand: ShapedArray, *, select_prim: Any,
                                     window_dimensions: Any, window_strides: Any, padding: Any) -> ShapedArray:
    shape = window_shape("select_and_scatter_add", operand, window_dimensions, window_strides, padding, None, None)
    if source.shape != shape:
        raise TypeError("select_and_scatter_add source must have the shape of the windows: got "
                        f"{source.shape}, expected {shape}.")
    return ShapedArray(operand.shape, source.dtype)


def _select_and_scatter_add_loops(b: Builder, source: Any, operand: Any, *, select_prim: Any, window_dimensions: Any,
                                  window_strides: Any, padding: Any) -> Any:
    # First the place that each window selects, then for each element the windows that selected it:
    # no two iterations write to one place.
    ones = (1,) * len(operand.shape)
    window = dict(window_strides=window_strides, padding=padding, base_dilation=ones, window_dilation=ones)
    start = (b.const(_worst(select_prim, operand.dtype)[()], operand.dtype), b.const(-1, INT32))

    def number(tap: Sequence[Any]) -> Any:
        return _number(b, tap, window_dimensions)

    def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any, Any]:
        place, inside = read_window(b, operand, index, tap, **window)
        if inside is None:
            return operand.at(place), number(tap)
        return b.load_if(inside, operand, place, start[0]), b.select(inside, number(tap), start[1])

    def combine(_: Any, kept: Sequence[Any], new: Sequence[Any]) -> tuple[Any, Any]:
        # what lies outside is never selected, not even among the worst values
        none = b.const(0, INT32)
        best = _selects(b, select_prim, kept, new)
        stays = b.or_(b.lt(new[1], none), b.and_(b.ge(kept[1], none), best))
        return b.select(stays, kept[0], new[0]), b.select(stays, kept[1], new[1])

    chosen = b.materialize(b.reduce(source.shape, window_dimensions, [operand.dtype, INT32], combine, start, body)[1])
    zero = b.const(0, source.dtype)

    def share(windows: Sequence[Any], tap: Sequence[Any], conditions: Sequence[Any]) -> Any:
        """What a window gives to its element `tap`, where it is one under these conditions and has selected that."""
        inside = None
        for condition in conditions:
            if not b.holds(condition):
                inside = condition if inside is None else b.and_(inside, condition)
        if inside is None:
            return b.select(b.eq(chosen.at(windows), number(tap)), source.at(windows), zero)
        selected = b.eq(b.load_if(inside, chosen, windows, b.const(-1, INT32)), number(tap))
        return b.select(selected, b.load_if(inside, source, windows, zero), zero)

    few = 1 < math.prod(window_strides) <= PHASES and math.prod(window_dimensions) <= WRITTEN_OUT
    known = all(isinstance(n, int) for n in (*operand.shape, *source.shape))
    give = _given_in_phases if few and known else _given
    return give(b, source, operand.shape, window_dimensions, window_strides, padding, share)


def _given(b: Builder, source: Any, shape: Sequence[Any], window_dimensions: Sequence[int],
           window_strides: Sequence[int], padding: Sequence[tuple[int, int]], share: Callable[..., Any]) -> Any:
    """For each element, the sum of what all windows give that it might be an element of."""
    def body(place: Sequence[Any], tap: Sequence[Any]) -> tuple[Any]:
        windows, conditions = [], []
        for d, stride in enumerate(window_strides):
            position = b.sub(b.add(place[d], b.index(padding[d][0])), tap[d])
            if stride > 1:
                conditions.append(b.eq(b.floormod(position, b.index(stride)), b.index(0)))
                position = b.floordiv(position, b.index(stride))
            conditions += [b.ge(position, b.index(0)), b.lt(position, b.index(source.shape[d]))]
            windows.append(position)
        return (share(windows, tap, conditions),)

    return b.reduce(shape, window_dimensions, [source.dtype], "add", (b.const(0, source.dtype),), body)[0]


def _given_in_phases(b: Builder, source: Any, shape: Sequence[int], window_dimensions: Sequence[int],
                     window_strides: Sequence[int], padding: Sequence[tuple[int, int]], share: Callable[..., Any]
                     ) -> Any:
    """The same for elements in phases: those as far apart as windows are the same elements of the windows around."""
    def elements_of(d: int, phase: int) -> list[tuple[int, int]]:
        """Which elements of windows, and of windows how far behind, those of a phase are."""
        first, stride = phase + padding[d][0], window_strides[d]
        return [(tap, (first - tap) // stride) for tap in range(window_dimensions[d]) if (first - tap) % stride == 0]

    def part(phases: Sequence[int]) -> Any:
        taps = list(itertools.product(*(elements_of(d, phase) for d, phase in enumerate(phases))))

        def at(index: Sequence[Any]) -> Any:
            total = b.const(0, source.dtype)
            for each in taps:
                windows = [b.add(i, b.index(offset)) for i, (_, offset) in zip(index, each, strict=True)]
                conditions = [condition for i, n in zip(windows, source.shape, strict=True)
                              for condition in (b.ge(i, b.index(0)), b.lt(i, b.index(n)))]
                total = b.add(total, share(windows, [b.index(tap) for tap, _ in each], conditions))
            return total

        return b.value([-(-(n - p) // s) for n, p, s in zip(shape, phases, window_strides, strict=True)],
                       source.dtype, at)

    parts = [(phases, window_strides, part(phases)) for phases in itertools.product(*map(range, window_strides))
             if all(p < n for p, n in zip(phases, shape, strict=True))]
    return b.interleaved(tuple(shape), source.dtype, parts)


rules.loops[select_and_scatter_add_p] = _select_and_scatter_add_loops


def _select_and_scatter_add_stablehlo(m: Any, source: Any, operand: Any, *, select_prim: Any, window_dimensions: Any,
                                      window_strides: Any, padding: Any) -> Any:
    key, slope = ShapedArray((), operand.aval.dtype), ShapedArray((), source.aval.dtype)
    select_region = m.region([key, key], lambda m2, x, y: [_hlo_select(m2, select_prim, x, y)])
    scatter_region = m.region([slope, slope], lambda m2, x, y: m2.op("stablehlo.add", [x, y], [slope]))
    shape = operand.aval.shape
    # Padding has to lose against every element: it is written out with the worst value.
    padded_shape = tuple(n + low + high for n, (low, high) in zip(shape, padding, strict=True))
    if padded_shape != shape:
        worst = m.const(_worst(select_prim, key.dtype), key)
        lows, highs = zip(*padding, strict=True)
        operand = m.op("stablehlo.pad", [operand, worst], [ShapedArray(padded_shape, key.dtype)],
                       attributes=f"edge_padding_low = {i64_array(lows)}, edge_padding_high = {i64_array(highs)}, "
                                  f"interior_padding = {i64_array((0,) * len(shape))}")[0]
    zero = m.const(np.zeros((), slope.dtype), slope)
    attributes = f"window_dimensions = {i64_array(window_dimensions)}, window_strides = {i64_array(window_strides)}"
    out = m.op("stablehlo.select_and_scatter", [operand, source, zero], [ShapedArray(padded_shape, slope.dtype)],
               attributes=attributes, regions=[select_region, scatter_region])[0]
    if padded_shape != shape:
        start = [low for low, _ in padding]
        limit = [low + n for (low, _), n in zip(padding, shape, strict=True)]
        out = m.op("stablehlo.slice", [out], [ShapedArray(shape, slope.dtype)],
                   attributes=f"start_indices = {i64_array(start)}, limit_indices = {i64_array(limit)}, "
                              f"strides = {i64_array((1,) * len(shape))}")[0]
    return out


rules.stablehlos[select_and_scatter_add_p] = _select_and_scatter_add_stablehlo


def _select_and_scatter_add_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    source, operand = primals
    out = select_and_scatter_add_p.bind(source, operand, **params)
    if type(tangents[0]) is ad.Zero:
        return out, ad.Zero.from_primal_value(out)
    return out, select_and_scatter_add_p.bind(tangents[0], operand, **params)


def _select_and_scatter_add_transpose(ct: Any, source: Any, operand: Any, *, select_prim: Any,
                                      window_dimensions: Any, window_strides: Any, padding: Any) -> list[Any]:
    assert ad.is_undefined_primal(source) and not ad.is_undefined_primal(operand)
    if type(ct) is ad.Zero:
        return [ad.Zero(source.aval), None]
    ones = (1,) * len(window_dimensions)
    return [select_and_gather_add_p.bind(
        ct, operand, select_prim=select_prim, window_dimensions=window_dimensions, window_strides=window_strides,
        padding=padding, base_dilation=ones, window_dilation=ones), None]


rules.jvps[select_and_scatter_add_p] = _select_and_scatter_add_jvp
rules.transposes[select_and_scatter_add_p] = _select_and_scatter_add_transpose
rules.batchers[select_and_scatter_add_p] = _pairwise_batch(select_and_scatter_add_p)
select_and_scatter_p = Primitive("select_and_scatter")
select_and_scatter_p.declare(sharding=sharding_rules.same, factors=factor_rules.windows)


@select_and_scatter_p.def_abstract_eval
def _select_and_scatter_abstract(operand: ShapedArray, source: ShapedArray, init_value: ShapedArray, *,
                                 select_jaxpr: Jaxpr, select_consts: Any, scatter_jaxpr: Jaxpr, scatter_consts: Any,
                                 window_dimensions: Any, window_strides: Any, padding: Any) -> ShapedArray:
    check_window("select_and_scatter", operand.shape, window_dimensions, window_strides, None, None)
    return ShapedArray(operand.shape, operand.dtype)


def _select_and_scatter_loops(b: Builder, operand: Any, source: Any, init_value: Any, *, select_jaxpr: Jaxpr,
                              select_consts: Any, scatter_jaxpr: Jaxpr, scatter_consts: Any, window_dimensions: Any,
                              window_strides: Any, padding: Any) -> Any:
    rank = len(operand.shape)
    ones = (1,) * rank
    window = dict(window_strides=window_strides, padding=padding, base_dilation=ones, window_dilation=ones)
    select_program = ClosedJaxpr(select_jaxpr, list(select_consts))
    scatter_program = ClosedJaxpr(scatter_jaxpr, list(scatter_consts))
    start = b.value(operand.shape, operand.dtype, lambda _: init_value.at(()))

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        (target,) = outs

        def nested(extents: Sequence[Any], then: Callable[[list[Any]], None], at: tuple[Any, ...] = ()) -> None:
            if len(at) == len(extents):
                then(list(at))
                return
            with n.loop(extents[len(at)]) as i:
                nested(extents, then, (*at, i))

        def one_window(index: list[Any]) -> None:
            best = n.var(operand.dtype, 0)
            found = n.var(np.bool_, False)
            place = [n.var(INDEX, 0) for _ in range(rank)]

            def look(tap: list[Any]) -> None:
                where, inside = read_window(b, operand, index, tap, **window)

                def consider() -> None:
                    new = operand.at(where)
                    (stays,) = scalar_program(b, select_program, [best.get(), new])
                    with n.if_(b.or_(b.not_(found.get()), b.not_(stays))):
                        best.set(new)
                        found.set(b.const(True, np.bool_))
                        for variable, position in zip(place, where, strict=True):
                            variable.set(position)

                if inside is None:
                    consider()
                else:
                    with n.if_(inside):
                        consider()

            nested(window_dimensions, look)
            with n.if_(found.get()):
                spot = [variable.get() for variable in place]
                (new,) = scalar_program(b, scatter_program, [n.load(target, spot), source.at(index)])
                n.store(target, spot, new)

        nested(source.shape, one_window)

    return b.nest([(operand.shape, operand.dtype, start)], body)[0]


rules.loops[select_and_scatter_p] = _select_and_scatter_loops


def _select_and_scatter_stablehlo(m: Any, operand: Any, source: Any, init_value: Any, *, select_jaxpr: Jaxpr,
                                  select_consts: Any, scatter_jaxpr: Jaxpr, scatter_consts: Any,
                                  window_dimensions: Any, window_strides: Any, padding: Any) -> Any:
    scalar = ShapedArray((), operand.aval.dtype)
    regions = [
        m.region([scalar, scalar], lambda m2, x, y, c=c: m2.inline(c, x, y))
        for c in (ClosedJaxpr(select_jaxpr, list(select_consts)), ClosedJaxpr(scatter_jaxpr, list(scatter_consts)))
    ]
    return m.op("stablehlo.select_and_scatter", [operand, source, init_value], [m.avals_out[0]],
                attributes=window_attributes(window_dimensions, window_strides, padding), regions=regions)[0]


rules.stablehlos[select_and_scatter_p] = _select_and_scatter_stablehlo
