"""Reductions over moving windows.

`reduce_window` takes any monoid; sums, maxima and minima are primitives of their own because they
have derivatives. The gradient of a window maximum goes to the place of the maximum:
`select_and_scatter_add` puts it there, `select_and_gather_add` is its transpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from styrax.core.programs.primitive import Primitive, multiple_results
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.tracing.trace import get_aval, to_concrete_value
from styrax.core.trees import tree
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import PyTree
from styrax.transforms import ad, batching
from styrax.transforms.memo import per_jaxpr

from .. import factor_rules, sharding_rules
from ..casting import as_array
from ..elementwise import arithmetic
from ..elementwise.comparisons import ge_p, le_p
from ..elementwise.scalar_programs import scalar_program, traced
from ..indexing.dimension_numbers import shape_of
from ..shaping.filling import full_like, pad
from ..shaping.padding import PaddingType, dilated, padtype_to_pads
from .reduce import IDENTITIES, combine_scalars, join_scalars, monoid_of
from .window_geometry import at_front, extreme, read_window, widened, window_attributes, window_shape
from .window_selection import select_and_gather_add_p

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

STORED = 1  # steps that storing an element and reading it again is worth


# --- the public function
def reduce_window(operand: PyTree, init_value: PyTree, computation: Callable[..., Any],
                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                  padding: str | Sequence[tuple[int, int]] = "VALID", base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> PyTree:
    """Reduces the elements of each of many windows.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: where a reduction starts, a scalar for each array. It has to be a neutral element of
        `computation`.
      computation: an associative function of two values (trees of scalars) to one.
      window_dimensions: the size of the window along each dimension.
      window_strides: how far apart windows are; by default 1.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each dimension.
      base_dilation: factors by which elements of the operand are spread apart.
      window_dilation: factors by which elements of the window are spread apart.

    Returns:
      an array (or a tree of arrays) with one element for each window.

    Raises:
      TypeError: for sizes, strides or dilations that do not fit the operand.
      ValueError: for trees that do not match.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.reduce_window(jnp.arange(4.0), 0.0, jax.lax.add, (2,), (1,), 'VALID')
      Array([1., 3., 5.], dtype=float32)
    """
    operands, treedef = tree.tree_flatten(operand)
    inits, init_treedef = tree.tree_flatten(init_value)
    if treedef != init_treedef:
        raise ValueError(f"Operands must have the same tree structure as init_values: {treedef} vs. {init_treedef}")
    if not operands:
        raise ValueError("reduce_window must have at least one operand.")
    operands = [as_array(x) for x in operands]
    window = tuple(map(int, window_dimensions))
    strides = (1,) * len(window) if window_strides is None else tuple(map(int, window_strides))
    base = (1,) * len(window) if base_dilation is None else tuple(map(int, base_dilation))
    spread = (1,) * len(window) if window_dilation is None else tuple(map(int, window_dilation))
    shape = shape_of(operands[0])
    if isinstance(padding, (str, PaddingType)):
        if len(window) == len(spread) == len(shape) == len(strides) and all(s > 0 for s in strides):
            pads = padtype_to_pads(shape, [dilated(w, d) for w, d in zip(window, spread, strict=True)], strides,
                                   padding)
        else:
            padtype_to_pads((), (), (), padding)
            pads = [(0, 0)] * len(window)  # the checks of the primitive say what is wrong
    else:
        pads = [(int(low), int(high)) for low, high in padding]
        if len(pads) != len(window):
            raise ValueError(f"reduce_window padding must have a pair for each of the {len(window)} dimensions, got "
                             f"{len(pads)}.")
    shared = dict(window_dimensions=window, window_strides=strides, padding=tuple(pads), base_dilation=base,
                  window_dilation=spread)
    if len(operands) == 1:
        primitive = _monoid(computation, get_aval(operands[0]).dtype, inits[0])
        if primitive is not None:
            return tree.tree_unflatten(treedef, [primitive.bind(operands[0], **shared)])
    dts = [get_aval(x).dtype for x in operands]
    inits = [np.asarray(x).astype(d) if isinstance(x, (bool, int, float, complex)) else as_array(x)
             for x, d in zip(inits, dts, strict=True)]
    shapes = [shape_of(x) for x in inits]
    if any(shapes):
        raise TypeError(f"reduce_window expected init_values to be scalars but init_values have shapes {shapes}.")
    scalars = [ShapedArray((), d) for d in dts]

    closed, out_treedef = traced(computation, tree.treedef_tuple((treedef, treedef)), scalars + scalars)
    if out_treedef != treedef:
        raise ValueError("reduce_window output must have the same tree structure as the operands "
                         f"{treedef} vs. {out_treedef}")
    for aval, scalar in zip(closed.out_avals, scalars, strict=True):
        if aval.shape or aval.dtype != scalar.dtype:
            raise TypeError(f"reduce_window computation must give values of the operands' types: got "
                            f"{aval.str_short()} where {scalar.str_short()} was expected.")
    out = reduce_window_p.bind(*operands, *inits, jaxpr=closed.jaxpr, consts=tuple(closed.consts), **shared)
    return tree.tree_unflatten(treedef, out)


def _monoid(computation: Callable[..., Any], dtype: Any, init: Any) -> Primitive | None:
    """The primitive for a sum, maximum or minimum that starts at its neutral element."""
    value = to_concrete_value(init)
    if value is None or np.shape(value) or isinstance(dtype, dtypes.ExtendedDType):
        return None
    value = np.asarray(value)
    if computation is arithmetic.add:
        return reduce_window_sum_p if value == 0 else None
    if computation is arithmetic.max:
        return reduce_window_max_p if value == extreme(dtype, "lowest") else None
    if computation is arithmetic.min:
        return reduce_window_min_p if value == extreme(dtype, "highest") else None
    return None


# --- any monoid
reduce_window_p = multiple_results("reduce_window")
reduce_window_p.declare(nan=True, sharding=sharding_rules.cut, factors=factor_rules.windows)


@reduce_window_p.def_abstract_eval
def _reduce_window_abstract(*avals: ShapedArray, jaxpr: Jaxpr, consts: Any, window_dimensions: Any,
                            window_strides: Any, padding: Any, base_dilation: Any, window_dilation: Any
                            ) -> list[ShapedArray]:
    operands, inits = avals[: len(avals) // 2], avals[len(avals) // 2:]
    if any(x.shape != operands[0].shape for x in operands):
        raise TypeError(f"All operands passed to reduce_window must have the same shape, got "
                        f"{[x.shape for x in operands]}")
    if any(x.dtype != i.dtype for x, i in zip(operands, inits, strict=True)):
        raise TypeError("reduce_window: dtypes of init_values must match those of operands: got "
                        f"{[str(i.dtype) for i in inits]} and {[str(x.dtype) for x in operands]}")
    shape = window_shape("reduce_window", operands[0], window_dimensions, window_strides, padding, base_dilation,
                         window_dilation)
    return [ShapedArray(shape, x.dtype) for x in operands]


def _fold_windows(b: Builder, x: Any, kind: str, window_dimensions: Any, **window: Any) -> Any:
    """Windows of one array, joined by a combiner with an identity: at once, or one dimension after another."""
    shape = b.avals_out[0].shape
    dtype = np.dtype(x.dtype)
    if kind in ("min", "max") or dtype.kind in "biu" or dtype.itemsize >= 4:  # else what is in between would be rounded
        for d in _separately(x.shape, shape, window_dimensions, window["window_strides"]):
            alone = {name: [v if k == d else (0, 0) if name == "padding" else 1 for k, v in enumerate(values)]
                     for name, values in window.items()}
            between = [shape[d] if k == d else n for k, n in enumerate(x.shape)]
            x = b.materialize(_fold_at_once(
                b, x, kind, between, [n if k == d else 1 for k, n in enumerate(window_dimensions)], **alone))
            window = {name: [(0, 0) if name == "padding" and k == d else 1 if k == d else v
                             for k, v in enumerate(values)] for name, values in window.items()}
            window_dimensions = [1 if k == d else n for k, n in enumerate(window_dimensions)]
    return _fold_at_once(b, x, kind, shape, window_dimensions, **window)


def _separately(shape: Sequence[Any], out: Sequence[Any], window: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The dimensions whose windows are to be joined before those of the last, each on its own: a window of n by m takes
    n + m steps then. What is in between is stored and read again. Elements that are not side by side cost twice."""
    dims = [d for d, n in enumerate(window) if n > 1]
    if len(dims) < 2 or not all(isinstance(n, int) for n in (*shape, *out)):
        return []
    def apart(d: int) -> int:
        return 2 if d == len(shape) - 1 and strides[d] > 1 else 1

    at_once = math.prod(out) * math.prod(window) * apart(dims[-1])
    stepwise, sizes = 0, list(shape)
    for d in dims:
        sizes[d] = out[d]
        stepwise += math.prod(sizes) * (window[d] * apart(d) + STORED)
    return dims[:-1] if stepwise < at_once else []


def _windows_of_an_element(window: Sequence[int], strides: Sequence[int]) -> int:
    """How many windows an element is in, about."""
    return math.prod([-(-n // step) for n, step in zip(window, strides, strict=True)])


def _fold_at_once(b: Builder, x: Any, kind: str, shape: Sequence[Any], window_dimensions: Sequence[int],
                  **window: Any) -> Any:
    start = b.const(IDENTITIES[kind](x.dtype)[()], x.dtype)
    combine = combine_scalars(kind) if np.dtype(x.dtype).kind == "c" else kind
    if x.dtype == np.bool_:
        combine = {"min": "and", "max": "or"}.get(kind, kind)
    x = b.materialize_if_reused(x, _windows_of_an_element(window_dimensions, window["window_strides"]))

    def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any]:
        place, inside = read_window(b, x, index, tap, **window)
        return (x.at(place) if inside is None else b.load_if(inside, x, place, start),)

    return b.reduce(shape, window_dimensions, [x.dtype], combine, (start,), body)[0]


def _reduce_window_loops(b: Builder, *values: Any, jaxpr: Jaxpr, consts: Any, window_dimensions: Any, **window: Any
                         ) -> list[Any]:
    n = len(values) // 2
    operands, inits = values[:n], values[n:]
    closed = ClosedJaxpr(jaxpr, list(consts))
    starts = [v.at(()) for v in inits]
    kind = monoid_of(closed)
    if kind is not None:
        folded = _fold_windows(b, operands[0], kind, window_dimensions, **window)
        return [b.value(folded.shape, folded.dtype, lambda i: join_scalars(b, kind, starts[0], folded.at(i)))]
    there = b.const(True, np.bool_)
    times = _windows_of_an_element(window_dimensions, window["window_strides"])
    arrays = [b.materialize_if_reused(x, times) for x in operands]

    def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any, ...]:
        elements, inside = [], None
        for x, init in zip(arrays, starts, strict=True):
            place, inside = read_window(b, x, index, tap, **window)
            elements.append(x.at(place) if inside is None else b.load_if(inside, x, place, init))
        return (*elements, there if inside is None else inside)

    def combine(_: Any, accumulated: Sequence[Any], elements: Sequence[Any]) -> tuple[Any, ...]:
        # what lies outside is left out, like in XLA: it changes nothing even where `init` is not neutral
        inside = elements[n]
        out = scalar_program(b, closed, [*accumulated[:n], *elements[:n]])
        return (*(b.select(inside, new, old) for new, old in zip(out, accumulated[:n], strict=True)), there)

    dtypes_of = [*(x.dtype for x in arrays), np.bool_]
    return b.reduce(b.avals_out[0].shape, window_dimensions, dtypes_of, combine, [*starts, there], body)[:n]


rules.loops[reduce_window_p] = _reduce_window_loops


def _reduce_window_stablehlo(m: Any, *values: Any, jaxpr: Jaxpr, consts: Any, window_dimensions: Any,
                             window_strides: Any, padding: Any, base_dilation: Any, window_dilation: Any) -> list[Any]:
    closed = ClosedJaxpr(jaxpr, list(consts))
    scalars = [v.aval for v in jaxpr.invars]
    region = m.region(scalars, lambda m2, *args: m2.inline(closed, *args))
    return m.op("stablehlo.reduce_window", list(values), list(m.avals_out),
                attributes=window_attributes(window_dimensions, window_strides, padding, base_dilation,
                                             window_dilation), regions=[region])


rules.stablehlos[reduce_window_p] = _reduce_window_stablehlo


def _reduce_window_batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[list[Any], list[int]]:
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        raise NotImplementedError("reduce_window batching is not implemented for initial values")
    operands = at_front(args[:n], dims[:n])
    out = reduce_window_p.bind(*operands, *args[n:], **widened(params))
    return out, [0] * len(out)


rules.batchers[reduce_window_p] = _reduce_window_batch


@per_jaxpr
def _with_tangents(computation: ClosedJaxpr, scalars: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    """A computation on values and their tangents, of these types."""
    from styrax.transforms.api import jvp

    n = len(scalars) // 2

    def both(*args: Any) -> list[Any]:
        x, dx, y, dy = (list(args[k * n:(k + 1) * n]) for k in range(4))
        out, d_out = jvp(lambda *xs: jaxpr_as_fun(computation)(*xs), (*x, *y), (*dx, *dy))
        return [*out, *d_out]

    return trace_to_jaxpr(both, scalars + scalars)


def _reduce_window_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, consts: Any,
                       **window: Any) -> tuple[list[Any], list[Any]]:
    """Reduces pairs of value and tangent with the derivative of the computation."""
    n = len(primals) // 2
    if any(type(t) is not ad.Zero for t in tangents[n:]):
        raise NotImplementedError("the derivative of reduce_window by its initial values is not defined")
    operands, inits = list(primals[:n]), list(primals[n:])
    slopes = [ad.instantiate_zeros(t) for t in tangents[:n]]
    zeros = [np.zeros((), get_aval(t).dtype) for t in slopes]
    scalars = tuple([ShapedArray((), get_aval(x).dtype) for x in (*operands, *slopes)])
    closed = _with_tangents(ClosedJaxpr(jaxpr, list(consts)), scalars)
    out = reduce_window_p.bind(*operands, *slopes, *inits, *zeros, jaxpr=closed.jaxpr, consts=tuple(closed.consts),
                               **window)
    return out[:n], out[n:]


rules.jvps[reduce_window_p] = _reduce_window_jvp


# --- sums, maxima and minima
def _named_window_primitive(name: str, combine: str, hlo: str, accepts: Callable[[Any], None],
                            identity: Callable[[Any], Any]) -> Primitive:
    primitive = Primitive(name)
    primitive.declare(sharding=sharding_rules.cut, factors=factor_rules.windows)

    @primitive.def_abstract_eval
    def abstract(operand: ShapedArray, *, window_dimensions: Any, window_strides: Any, padding: Any,
                 base_dilation: Any, window_dilation: Any) -> ShapedArray:
        accepts(operand)
        shape = window_shape(name, operand, window_dimensions, window_strides, padding, base_dilation,
                             window_dilation)
        return ShapedArray(shape, operand.dtype, operand.weak_type)

    def loops(b: Builder, x: Any, *, window_dimensions: Any, **window: Any) -> Any:
        return _fold_windows(b, x, combine, window_dimensions, **window)

    def stablehlo(m: Any, x: Any, *, window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any,
                  window_dilation: Any) -> Any:
        scalar = ShapedArray((), x.aval.dtype)
        region = m.region([scalar, scalar], lambda m2, p, q: m2.op(hlo, [p, q], [scalar]))
        start = m.const(identity(x.aval.dtype), scalar)
        return m.op("stablehlo.reduce_window", [x, start], [m.avals_out[0]],
                    attributes=window_attributes(window_dimensions, window_strides, padding, base_dilation,
                                                 window_dilation), regions=[region])

    def batch(args: Sequence[Any], dims: Sequence[int], **params: Any) -> tuple[Any, int]:
        (x,), (dim,) = args, dims
        return primitive.bind(batching.moveaxis(x, dim, 0), **widened(params)), 0

    rules.loops[primitive] = loops
    rules.stablehlos[primitive] = stablehlo
    rules.batchers[primitive] = batch
    return primitive


def _check_number(operand: ShapedArray) -> None:
    if not dtypes.issubdtype(operand.dtype, np.number):
        raise TypeError(f"operand to reduce_window_sum must have a number dtype, got {np.dtype(operand.dtype).name}")


def _check_ordered(operand: ShapedArray) -> None:
    if dtypes.issubdtype(operand.dtype, np.complexfloating):
        raise TypeError("operand to a window maximum or minimum must have a real dtype, got "
                        f"{np.dtype(operand.dtype).name}")


reduce_window_sum_p = _named_window_primitive(
    "reduce_window_sum", "add", "stablehlo.add", _check_number, lambda dtype: np.zeros((), dtype))
reduce_window_sum_p.declare(nan=True)
reduce_window_max_p = _named_window_primitive(
    "reduce_window_max", "max", "stablehlo.maximum", _check_ordered, lambda dtype: extreme(dtype, "lowest"))
reduce_window_min_p = _named_window_primitive(
    "reduce_window_min", "min", "stablehlo.minimum", _check_ordered, lambda dtype: extreme(dtype, "highest"))


def _window_sum_transpose(ct: Any, operand: Any, *, window_dimensions: Any, window_strides: Any, padding: Any,
                          base_dilation: Any, window_dilation: Any) -> list[Any]:
    """Each element gets the sum of the cotangents of the windows that contain it."""
    if type(ct) is ad.Zero:
        return [ad.Zero(operand.aval)]
    config = []
    for n, w, o, (low, _), bd, wd, s in zip(operand.aval.shape, window_dimensions, shape_of(ct), padding,
                                            base_dilation, window_dilation, window_strides, strict=True):
        before = dilated(w, wd) - low - 1
        config.append((before, dilated(n, bd) + dilated(w, wd) - 1 - dilated(o, s) - before, s - 1))
    spread = pad(ct, full_like(ct, 0, shape=()), config)
    ones = (1,) * len(config)
    return [reduce_window_sum_p.bind(
        spread, window_dimensions=window_dimensions, window_strides=base_dilation, padding=((0, 0),) * len(config),
        base_dilation=ones, window_dilation=window_dilation)]


ad.deflinear2(reduce_window_sum_p, _window_sum_transpose)


def _window_extremum_jvp(select_prim: Primitive) -> Callable[..., Any]:
    def rule(tangent: Any, operand: Any, **window: Any) -> Any:
        return select_and_gather_add_p.bind(tangent, operand, select_prim=select_prim, **window)

    return rule


ad.defjvp(reduce_window_max_p, _window_extremum_jvp(ge_p))
ad.defjvp(reduce_window_min_p, _window_extremum_jvp(le_p))
