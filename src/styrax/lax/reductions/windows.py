"""Reductions over moving windows, and what their gradients are made of.

`reduce_window` takes any monoid; sums, maxima and minima are primitives of their own because they
have derivatives. The gradient of a window maximum goes to the place of the maximum:
`select_and_scatter_add` puts it there, `select_and_gather_add` is its transpose.
"""

from __future__ import annotations

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
from styrax.core.types.index_type import INDEX
from styrax.core.types.typing import PyTree
from styrax.transforms import ad, batching

from ..elementwise import arithmetic
from ..elementwise.casting import as_array
from ..elementwise.comparisons import ge_p, le_p
from ..elementwise.scalar_programs import scalar_program
from ..indexing.dimension_numbers import shape_of
from ..shaping.filling import pad
from ..shaping.padding import PaddingType, dilated, padtype_to_pads, window_count
from .reduce import greatest, least

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

INT32 = np.dtype(np.int32)

# --- checks and shapes


def check_window(name: str, shape: Sequence[int], window: Sequence[int], strides: Sequence[int],
                 base_dilation: Sequence[int] | None, window_dilation: Sequence[int] | None) -> None:
    """Raises TypeError for windows that do not fit an array of `shape`."""
    def positive(what: str, values: Sequence[int]) -> None:
        if not all(v > 0 for v in values):
            raise TypeError(f"{name} {what} must have every element be strictly positive, got {tuple(values)}.")

    positive("window_dimensions", window)
    positive("window_strides", strides)
    if len(shape) != len(window):
        raise TypeError(f"{name} got the wrong number of window_dimensions for operand: got operand shape "
                        f"{tuple(shape)} with window_dimensions {tuple(window)}.")
    if len(strides) != len(window):
        raise TypeError(f"{name} got inconsistent window_strides and window_dimensions: got window_strides "
                        f"{tuple(strides)} and window_dimensions {tuple(window)}.")
    for what, dilation in (("base_dilation", base_dilation), ("window_dilation", window_dilation)):
        if dilation is None:
            continue
        if len(dilation) != len(window):
            raise TypeError(f"{name} got inconsistent {what} and window_dimensions: got {what} {tuple(dilation)} and "
                            f"window_dimensions {tuple(window)}.")
        positive(what, dilation)


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """How many windows there are along each dimension."""
    ones = (1,) * len(operand_shape)
    return tuple(
        window_count(dilated(n, bd) + low + high, dilated(w, wd), s)
        for n, w, s, (low, high), bd, wd in zip(
            operand_shape, window_dimensions, window_strides, padding, base_dilation or ones,
            window_dilation or ones, strict=True))


def _window_shape(name: str, operand: Any, window: Any, strides: Any, padding: Any, base_dilation: Any,
                  window_dilation: Any) -> tuple[int, ...]:
    check_window(name, operand.shape, window, strides, base_dilation, window_dilation)
    if len(padding) != len(window):
        raise TypeError(f"{name} got inconsistent padding and window_dimensions: got padding {tuple(padding)} and "
                        f"window_dimensions {tuple(window)}.")
    return reduce_window_shape_tuple(operand.shape, window, strides, padding, base_dilation, window_dilation)


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

    def combine(*args: Any) -> list[Any]:
        n = len(args) // 2
        out = computation(tree.tree_unflatten(treedef, args[:n]), tree.tree_unflatten(treedef, args[n:]))
        leaves, out_treedef = tree.tree_flatten(out)
        if out_treedef != treedef:
            raise ValueError("reduce_window output must have the same tree structure as the operands "
                             f"{treedef} vs. {out_treedef}")
        return leaves

    closed = trace_to_jaxpr(combine, scalars + scalars)
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


def extreme(dtype: Any, which: str) -> Any:
    """The neutral element of max ("lowest") or min ("highest")."""
    return np.asarray(least(dtype) if which == "lowest" else greatest(dtype)).astype(dtype)


# --- reading a window


def read_window(b: Builder, x: Any, index: Sequence[Any], tap: Sequence[Any], *, window_strides: Sequence[int],
                padding: Sequence[tuple[int, int]], base_dilation: Sequence[int], window_dilation: Sequence[int]
                ) -> tuple[list[Any], Any]:
    """Where element `tap` of window `index` stands in `x`, for the loop builder.

    Returns the index and the condition that it is inside, None where it always is.
    """
    place, inside = [], None
    for d, size in enumerate(x.shape):
        low, high = padding[d]
        position = b.add(b.mul(index[d], b.index(window_strides[d])),
                         b.sub(b.mul(tap[d], b.index(window_dilation[d])), b.index(low)))
        spread = base_dilation[d]
        conditions = []
        if spread > 1:
            conditions.append(b.eq(b.floormod(position, b.index(spread)), b.index(0)))
            position = b.floordiv(position, b.index(spread))
        if low > 0:
            conditions.append(b.ge(position, b.index(0)))
        if high > 0 or spread > 1:
            conditions.append(b.lt(position, b.index(size)))
        for condition in conditions:
            inside = condition if inside is None else b.and_(inside, condition)
        place.append(position)
    return place, inside


def _i64s(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if len(values) else "array<i64>"


def _window_attributes(window: Sequence[int], strides: Sequence[int], padding: Sequence[tuple[int, int]],
                       base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> str:
    rank = len(window)
    pads = f"dense<{[list(p) for p in padding]}> : tensor<{rank}x2xi64>" if rank else "dense<> : tensor<0x2xi64>"
    text = f"window_dimensions = {_i64s(window)}, window_strides = {_i64s(strides)}, padding = {pads}"
    if base_dilation is not None and window_dilation is not None:
        text += f", base_dilations = {_i64s(base_dilation)}, window_dilations = {_i64s(window_dilation)}"
    return text


# --- any monoid

reduce_window_p = multiple_results("reduce_window")


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
    shape = _window_shape("reduce_window", operands[0], window_dimensions, window_strides, padding, base_dilation,
                          window_dilation)
    return [ShapedArray(shape, x.dtype) for x in operands]


def _reduce_window_loops(b: Builder, *values: Any, jaxpr: Jaxpr, consts: Any, window_dimensions: Any, **window: Any
                         ) -> list[Any]:
    n = len(values) // 2
    operands, inits = values[:n], values[n:]
    closed = ClosedJaxpr(jaxpr, list(consts))
    starts = [v.at(()) for v in inits]

    def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any, ...]:
        elements = []
        for x, init in zip(operands, starts, strict=True):
            place, inside = read_window(b, x, index, tap, **window)
            elements.append(x.at(place) if inside is None else b.load_if(inside, x, place, init))
        return tuple(elements)

    def combine(_: Any, accumulated: Sequence[Any], elements: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(scalar_program(b, closed, [*accumulated, *elements]))

    return b.reduce(b.avals_out[0].shape, window_dimensions, [x.dtype for x in operands], combine, starts, body)


rules.loops[reduce_window_p] = _reduce_window_loops


def _reduce_window_stablehlo(m: Any, *values: Any, jaxpr: Jaxpr, consts: Any, window_dimensions: Any,
                             window_strides: Any, padding: Any, base_dilation: Any, window_dilation: Any) -> list[Any]:
    closed = ClosedJaxpr(jaxpr, list(consts))
    scalars = [v.aval for v in jaxpr.invars]
    region = m.region(scalars, lambda m2, *args: m2.inline(closed, *args))
    return m.op("stablehlo.reduce_window", list(values), list(m.avals_out),
                attributes=_window_attributes(window_dimensions, window_strides, padding, base_dilation,
                                              window_dilation), regions=[region])


rules.stablehlos[reduce_window_p] = _reduce_window_stablehlo


def _at_front(values: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    size = next(shape_of(x)[d] for x, d in zip(values, dims, strict=True) if d is not None)
    return [batching.bdim_at_front(x, d, size) for x, d in zip(values, dims, strict=True)]


_ONE_IN_FRONT = {
    "window_dimensions": 1, "window_strides": 1, "padding": (0, 0), "base_dilation": 1, "window_dilation": 1,
}


def _widened(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of windows that do not extend over a new first dimension."""
    return {name: (_ONE_IN_FRONT[name], *value) if name in _ONE_IN_FRONT else value for name, value in params.items()}


def _reduce_window_batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[list[Any], list[int]]:
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        raise NotImplementedError("reduce_window batching is not implemented for initial values")
    operands = _at_front(args[:n], dims[:n])
    out = reduce_window_p.bind(*operands, *args[n:], **_widened(params))
    return out, [0] * len(out)


rules.batchers[reduce_window_p] = _reduce_window_batch


def _reduce_window_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, consts: Any,
                       **window: Any) -> tuple[list[Any], list[Any]]:
    """Reduces pairs of value and tangent with the derivative of the computation."""
    from styrax.transforms.api import jvp

    n = len(primals) // 2
    if any(type(t) is not ad.Zero for t in tangents[n:]):
        raise NotImplementedError("the derivative of reduce_window by its initial values is not defined")
    operands, inits = list(primals[:n]), list(primals[n:])
    slopes = [ad.instantiate_zeros(t) for t in tangents[:n]]
    zeros = [np.zeros((), get_aval(t).dtype) for t in slopes]
    computation = jaxpr_as_fun(ClosedJaxpr(jaxpr, list(consts)))

    def both(*args: Any) -> list[Any]:
        x, dx, y, dy = (list(args[k * n:(k + 1) * n]) for k in range(4))
        out, d_out = jvp(lambda *xs: computation(*xs), (*x, *y), (*dx, *dy))
        return [*out, *d_out]

    scalars = [ShapedArray((), get_aval(x).dtype) for x in (*operands, *slopes)]
    closed = trace_to_jaxpr(both, scalars + scalars)
    out = reduce_window_p.bind(*operands, *slopes, *inits, *zeros, jaxpr=closed.jaxpr, consts=tuple(closed.consts),
                               **window)
    return out[:n], out[n:]


rules.jvps[reduce_window_p] = _reduce_window_jvp


# --- sums, maxima and minima


def _named_window_primitive(name: str, combine: str, hlo: str, accepts: Callable[[Any], None],
                            identity: Callable[[Any], Any]) -> Primitive:
    primitive = Primitive(name)

    @primitive.def_abstract_eval
    def abstract(operand: ShapedArray, *, window_dimensions: Any, window_strides: Any, padding: Any,
                 base_dilation: Any, window_dilation: Any) -> ShapedArray:
        accepts(operand)
        shape = _window_shape(name, operand, window_dimensions, window_strides, padding, base_dilation,
                              window_dilation)
        return ShapedArray(shape, operand.dtype, operand.weak_type)

    def loops(b: Builder, x: Any, *, window_dimensions: Any, **window: Any) -> Any:
        start = b.const(identity(x.dtype)[()], x.dtype)

        def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any]:
            place, inside = read_window(b, x, index, tap, **window)
            return (x.at(place) if inside is None else b.load_if(inside, x, place, start),)

        how = {"min": "and", "max": "or"}.get(combine, combine) if x.dtype == np.bool_ else combine
        return b.reduce(b.avals_out[0].shape, window_dimensions, [x.dtype], how, (start,), body)[0]

    def stablehlo(m: Any, x: Any, *, window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any,
                  window_dilation: Any) -> Any:
        scalar = ShapedArray((), x.aval.dtype)
        region = m.region([scalar, scalar], lambda m2, p, q: m2.op(hlo, [p, q], [scalar]))
        start = m.const(identity(x.aval.dtype), scalar)
        return m.op("stablehlo.reduce_window", [x, start], [m.avals_out[0]],
                    attributes=_window_attributes(window_dimensions, window_strides, padding, base_dilation,
                                                  window_dilation), regions=[region])

    def batch(args: Sequence[Any], dims: Sequence[int], **params: Any) -> tuple[Any, int]:
        (x,), (dim,) = args, dims
        return primitive.bind(batching.moveaxis(x, dim, 0), **_widened(params)), 0

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
    spread = pad(ct, np.zeros((), get_aval(ct).dtype), config)
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


# --- the element that a window selects


def _selects(b: Builder, select_prim: Primitive, kept: Any, new: Any) -> Any:
    """Whether the element that is kept beats a new one: the first of equal ones does."""
    return b.ge(kept, new) if select_prim.name == "ge" else b.le(kept, new)


def _worst(select_prim: Primitive, dtype: Any) -> Any:
    return extreme(dtype, "lowest" if select_prim.name == "ge" else "highest")


def _hlo_select(m: Any, select_prim: Primitive, x: Any, y: Any) -> Any:
    return m.compare(select_prim.name.upper(), x, y)


select_and_gather_add_p = Primitive("select_and_gather_add")


@select_and_gather_add_p.def_abstract_eval
def _select_and_gather_add_abstract(tangents: ShapedArray, operand: ShapedArray, *, select_prim: Any,
                                    window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any,
                                    window_dilation: Any) -> ShapedArray:
    if tangents.shape != operand.shape:
        raise TypeError("select_and_gather_add tangents and operand shapes must match, got "
                        f"{tangents.shape} and {operand.shape}.")
    shape = _window_shape("select_and_gather_add", operand, window_dimensions, window_strides, padding,
                          base_dilation, window_dilation)
    return ShapedArray(shape, tangents.dtype)


def _select_and_gather_add_loops(b: Builder, tangents: Any, operand: Any, *, select_prim: Any, window_dimensions: Any,
                                 **window: Any) -> Any:
    start = (b.const(_worst(select_prim, operand.dtype)[()], operand.dtype), b.const(0, tangents.dtype))

    def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any, Any]:
        place, inside = read_window(b, operand, index, tap, **window)
        if inside is None:
            return operand.at(place), tangents.at(place)
        return b.load_if(inside, operand, place, start[0]), b.load_if(inside, tangents, place, start[1])

    def combine(_: Any, kept: Sequence[Any], new: Sequence[Any]) -> tuple[Any, Any]:
        stays = _selects(b, select_prim, kept[0], new[0])
        return b.select(stays, kept[0], new[0]), b.select(stays, kept[1], new[1])

    return b.reduce(b.avals_out[0].shape, window_dimensions, [operand.dtype, tangents.dtype], combine, start,
                    body)[1]


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
                attributes=_window_attributes(window_dimensions, window_strides, padding, base_dilation,
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
        from ..indexing.slicing import slice as strided_slice

        out = strided_slice(out, (0,) * len(base_dilation), shape_of(out), base_dilation)
    return [out, None]


rules.transposes[select_and_gather_add_p] = _select_and_gather_add_transpose


def _pairwise_batch(primitive: Primitive) -> Callable[..., Any]:
    def rule(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
        return primitive.bind(*_at_front(args, dims), **_widened(params)), 0

    return rule


rules.batchers[select_and_gather_add_p] = _pairwise_batch(select_and_gather_add_p)


select_and_scatter_add_p = Primitive("select_and_scatter_add")


@select_and_scatter_add_p.def_abstract_eval
def _select_and_scatter_add_abstract(source: ShapedArray, operand: ShapedArray, *, select_prim: Any,
                                     window_dimensions: Any, window_strides: Any, padding: Any) -> ShapedArray:
    shape = _window_shape("select_and_scatter_add", operand, window_dimensions, window_strides, padding, None, None)
    if source.shape != shape:
        raise TypeError("select_and_scatter_add source must have the shape of the windows: got "
                        f"{source.shape}, expected {shape}.")
    return ShapedArray(operand.shape, source.dtype)


def _select_and_scatter_add_loops(b: Builder, source: Any, operand: Any, *, select_prim: Any, window_dimensions: Any,
                                  window_strides: Any, padding: Any) -> Any:
    # First the place that each window selects, then for each element the windows that selected it:
    # no two iterations write to one place.
    rank = len(operand.shape)
    ones = (1,) * rank
    window = dict(window_strides=window_strides, padding=padding, base_dilation=ones, window_dilation=ones)
    start = (b.const(_worst(select_prim, operand.dtype)[()], operand.dtype), b.const(-1, INT32))

    def number(tap: Sequence[Any]) -> Any:
        position = b.index(0)
        for i, size in zip(tap, window_dimensions, strict=True):
            position = b.add(b.mul(position, b.index(size)), i)
        return b.cast(position, INT32)

    def body(index: Sequence[Any], tap: Sequence[Any]) -> tuple[Any, Any]:
        place, inside = read_window(b, operand, index, tap, **window)
        if inside is None:
            return operand.at(place), number(tap)
        return b.load_if(inside, operand, place, start[0]), b.select(inside, number(tap), start[1])

    def combine(_: Any, kept: Sequence[Any], new: Sequence[Any]) -> tuple[Any, Any]:
        # what lies outside is never selected, not even among the worst values
        none = b.const(0, INT32)
        stays = b.or_(b.lt(new[1], none), b.and_(b.ge(kept[1], none), _selects(b, select_prim, kept[0], new[0])))
        return b.select(stays, kept[0], new[0]), b.select(stays, kept[1], new[1])

    chosen = b.reduce(source.shape, window_dimensions, [operand.dtype, INT32], combine, start, body)[1]

    def share(place: Sequence[Any], tap: Sequence[Any]) -> tuple[Any]:
        windows, inside = [], None
        for d in range(rank):
            low, _ = padding[d]
            position = b.sub(b.add(place[d], b.index(low)), tap[d])
            stride = window_strides[d]
            conditions = []
            if stride > 1:
                conditions.append(b.eq(b.floormod(position, b.index(stride)), b.index(0)))
                position = b.floordiv(position, b.index(stride))
            if window_dimensions[d] > 1 or low or padding[d][1]:
                conditions.append(b.ge(position, b.index(0)))
                conditions.append(b.lt(position, b.index(source.shape[d])))
            elif stride > 1:
                conditions.append(b.lt(position, b.index(source.shape[d])))
            for condition in conditions:
                inside = condition if inside is None else b.and_(inside, condition)
            windows.append(position)
        zero = b.const(0, source.dtype)
        if inside is None:
            return (b.select(b.eq(chosen.at(windows), number(tap)), source.at(windows), zero),)
        selected = b.eq(b.load_if(inside, chosen, windows, b.const(-1, INT32)), number(tap))
        return (b.select(selected, b.load_if(inside, source, windows, zero), zero),)

    return b.reduce(operand.shape, window_dimensions, [source.dtype], "add", (b.const(0, source.dtype),), share)[0]


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
                       attributes=f"edge_padding_low = {_i64s(lows)}, edge_padding_high = {_i64s(highs)}, "
                                  f"interior_padding = {_i64s((0,) * len(shape))}")[0]
    zero = m.const(np.zeros((), slope.dtype), slope)
    attributes = f"window_dimensions = {_i64s(window_dimensions)}, window_strides = {_i64s(window_strides)}"
    out = m.op("stablehlo.select_and_scatter", [operand, source, zero], [ShapedArray(padded_shape, slope.dtype)],
               attributes=attributes, regions=[select_region, scatter_region])[0]
    if padded_shape != shape:
        start = [low for low, _ in padding]
        limit = [low + n for (low, _), n in zip(padding, shape, strict=True)]
        out = m.op("stablehlo.slice", [out], [ShapedArray(shape, slope.dtype)],
                   attributes=f"start_indices = {_i64s(start)}, limit_indices = {_i64s(limit)}, "
                              f"strides = {_i64s((1,) * len(shape))}")[0]
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


# --- selecting and scattering by any functions

select_and_scatter_p = Primitive("select_and_scatter")


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
                attributes=_window_attributes(window_dimensions, window_strides, padding), regions=regions)[0]


rules.stablehlos[select_and_scatter_p] = _select_and_scatter_stablehlo

