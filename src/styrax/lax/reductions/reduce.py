"""Reductions along dimensions: sums, products, extrema, logic, user computations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.jaxpr import ClosedJaxpr, Literal, eval_jaxpr
from styrax.core.programs.named import named
from styrax.core.programs.primitive import Primitive
from styrax.core.settings import config
from styrax.core.tracing.trace import get_aval, to_concrete_value
from styrax.core.trees import tree
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike, PyTree, ShardingLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import _convert_element_type, convert_element_type
from ..elementwise import arithmetic
from ..elementwise.arithmetic import add_p, div, max_p, min_p, mul, mul_p
from ..elementwise.bits import and_p, bitwise_and, bitwise_or, bitwise_xor, or_p, xor_p
from ..elementwise.comparisons import eq
from ..elementwise.families import (
    ANY,
    BITS,
    NUMERIC,
    OPERATIONS,
    Operation,
    check_bits,
    check_dtype,
    joined_vma,
    shape_of,
    standard_primitive,
)
from ..elementwise.scalar_programs import scalar_program, traced
from ..shaping.broadcasting import broadcast_in_dim, squeeze
from ..shaping.filling import full
from ..shaping.reshaping import reshape, transpose
from ..shaping.shapes import size_of

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def check_axes(x: Any, axes: tuple) -> None:
    """Raise ValueError unless `axes` are distinct dimensions of `x`, counted from the front."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {x.str_short()}.")


def without(shape: Sequence[Any], axes: Sequence[int]) -> tuple:
    return tuple(s for d, s in enumerate(shape) if d not in axes)


def with_ones(shape: Sequence[Any], axes: Sequence[int]) -> tuple:
    """A shape with the given dimensions kept at size 1."""
    return tuple(1 if d in axes else s for d, s in enumerate(shape))


def merged_index(ndim: int, axes: Collection[int], i: Sequence[Any], r: Sequence[Any]) -> list[Any]:
    """The index of an operand from an index of the result and one of the reduced dimensions."""
    kept, reduced = iter(i), iter(r)
    return [next(reduced) if d in axes else next(kept) for d in range(ndim)]


# -- identities --------------------------------------------------------------------------------------
def least(dtype: Any) -> Any:
    """The identity of `max`: no number of the dtype is smaller."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array(False)
    if dtype.kind == "c":
        return np.array(complex(-np.inf, -np.inf), dtype)
    if dtypes.issubdtype(dtype, np.integer):
        return np.array(dtypes.iinfo(dtype).min).astype(dtype)
    return np.array(-np.inf if dtypes.supports_inf(dtype) else dtypes.finfo(dtype).min).astype(dtype)


def greatest(dtype: Any) -> Any:
    """The identity of `min`: no number of the dtype is greater."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array(True)
    if dtype.kind == "c":
        return np.array(complex(np.inf, np.inf), dtype)
    if dtypes.issubdtype(dtype, np.integer):
        return np.array(dtypes.iinfo(dtype).max).astype(dtype)
    return np.array(np.inf if dtypes.supports_inf(dtype) else dtypes.finfo(dtype).max).astype(dtype)


def _all_ones(dtype: Any) -> Any:
    return np.array(True) if dtype == np.bool_ else np.array(-1).astype(dtype)


IDENTITIES: dict[str, Callable[[Any], Any]] = {
    "add": lambda dtype: np.array(0).astype(dtype),
    "mul": lambda dtype: np.array(1).astype(dtype),
    "max": least,
    "min": greatest,
    "and": _all_ones,
    "or": lambda dtype: np.array(0).astype(dtype),
    "xor": lambda dtype: np.array(0).astype(dtype),
}
_HLO = {
    "add": "stablehlo.add",
    "mul": "stablehlo.multiply",
    "and": "stablehlo.and",
    "or": "stablehlo.or",
    "xor": "stablehlo.xor",
}


def combine_scalars(kind: str) -> Any:
    """How the CPU joins two elements: the name of a combiner, or for complex extrema its code."""
    if kind == "max":
        scalar = rules_of_extrema["max"]
    elif kind == "min":
        scalar = rules_of_extrema["min"]
    else:
        return kind
    return lambda b, accs, elems: tuple(scalar(b, x, y) for x, y in zip(accs, elems, strict=True))


def join_scalars(b: Builder, kind: str, x: Any, y: Any) -> Any:
    """Two elements joined on the CPU."""
    combine = combine_scalars(kind)
    if isinstance(combine, str):
        return getattr(b, {"and": "and_", "or": "or_"}.get(kind, kind))(x, y)
    return combine(b, (x,), (y,))[0]


rules_of_extrema = {"max": arithmetic.extremum_scalar("max"), "min": arithmetic.extremum_scalar("min")}


def combiner_region(m: Any, kind: str, dtype: Any) -> str:
    """The StableHLO region that joins two elements."""
    aval = ShapedArray((), dtype)
    if kind in _HLO:
        return m.region([aval, aval], lambda m2, x, y: m2.op1(_HLO[kind], [x, y], aval))
    op, direction = ("stablehlo.maximum", "GT") if kind == "max" else ("stablehlo.minimum", "LT")
    rule = arithmetic.extremum_hlo(op, direction)

    def body(m2: Any, x: Any, y: Any) -> Any:
        m2.avals_out = [aval]
        return rule(m2, x, y)

    return m.region([aval, aval], body)


def reduce_hlo(m: Any, x: Any, kind: str, axes: Sequence[int]) -> Any:
    """Reduce `x` by a named combiner."""
    out = ShapedArray(without(x.shape, axes), x.dtype)
    init = m.const(IDENTITIES[kind](x.dtype), ShapedArray((), x.dtype))
    region = combiner_region(m, kind, x.dtype)
    dims = ", ".join(map(str, axes))
    return m.op(
        "stablehlo.reduce",
        [x, init],
        [out],
        f"dimensions = array<i64: {dims}>" if dims else "dimensions = array<i64>",
        [region],
    )[0]


def reduce_loops(b: Builder, x: Any, kind: str, axes: Sequence[int]) -> Any:
    shape = without(x.shape, axes)
    ranges = [x.shape[a] for a in sorted(axes)]
    combine = combine_scalars(kind) if np.dtype(x.dtype).kind == "c" else kind
    init = b.const(IDENTITIES[kind](x.dtype)[()], x.dtype)
    ndim = len(x.shape)
    reduced = frozenset(axes)
    if all(type(n) is int and n == 1 for n in ranges):  # the only element, the sign of a zero included
        return b.value(shape, x.dtype, lambda i: x.at(merged_index(ndim, reduced, i, (b.int(0),) * ndim)))

    def body(i: Any, r: Any) -> Any:
        return (x.at(merged_index(ndim, reduced, i, r)),)

    return b.reduce(shape, ranges, [x.dtype], combine, (init,), body)[0]


def _refuse_half_precision(x: Any, axes: Sequence[int]) -> None:
    if dtypes.issubdtype(x.dtype, np.floating) and x.dtype.itemsize == 2 and any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"reduce_sum on operand {x.str_short(short_dtypes=True)} is not allowed when "
                         "jax_allow_f16_reductions=False.")


def _reduction(
    name: str, kind: str, accepts: Sequence[Any], doc: str, reference: Any, extra: Sequence[str] = ()
) -> tuple[Callable[..., Any], Primitive]:
    """A reduction row: `name` is the primitive's, `kind` the combiner's."""

    def shape_rule(x: Any, *, axes: tuple, **_: Any) -> tuple:
        check_axes(x, axes)
        if name == "reduce_sum" and not config.allow_f16_reductions.value:
            _refuse_half_precision(x, axes)
        return without(x.shape, axes)

    def dtype_rule(x: Any, **_: Any) -> Any:
        if accepts is BITS:
            check_bits(x.dtype)
        else:
            check_dtype(name, x, (np.number,) if accepts is NUMERIC else accepts)
        return x.dtype

    def loops(b: Builder, x: Any, *, axes: tuple[int, ...], **_: Any) -> Any:
        return reduce_loops(b, x, kind, axes)

    prim = standard_primitive(
        name,
        shape_rule,
        dtype_rule,
        (lambda x, **_: False) if accepts is BITS else None,
        loops=loops,
        hlo=lambda m, x, *, axes, **_: reduce_hlo(m, x, kind, axes),
    )
    batching.defreducer(prim)
    prim.declare(reduction=True, factors=factor_rules.reduction,
                 sharding=sharding_rules.reduce_sum if extra else sharding_rules.reduction)
    function: Callable[..., Any]
    if extra:

        def function(operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike | None = None) -> Array:
            return prim.bind(operand, axes=tuple(map(operator.index, axes)), out_sharding=out_sharding)

    else:

        def function(operand: ArrayLike, axes: Sequence[int]) -> Array:
            return prim.bind(operand, axes=tuple(map(operator.index, axes)))

    named(
        function,
        name,
        f"{doc}\n\nArgs:\n  operand: an array.\n  axes: the dimensions to reduce, counted from the front.\n"
        f"{'  out_sharding: sharding of the result.' if extra else ''}\n\n"
        "Returns:\n  an array without these dimensions, of the same dtype.\n\nRaises:\n  ValueError: for "
        "dimensions that repeat or do not exist.\n  TypeError: for other dtypes.",
        "styrax.lax",
    )
    OPERATIONS[name] = Operation(name, prim, function, "reduction", 1, (accepts,), reference)
    return function, prim


reduce_sum, reduce_sum_p = _reduction(
    "reduce_sum", "add", NUMERIC, "Sums along dimensions.", np.sum, ("out_sharding",)
)
reduce_prod, reduce_prod_p = _reduction(
    "reduce_prod", "mul", NUMERIC, "Products along dimensions.", np.prod
)
reduce_max, reduce_max_p = _reduction(
    "reduce_max", "max", ANY, "Greatest elements along dimensions; NaN where there is one.", np.max
)
reduce_min, reduce_min_p = _reduction(
    "reduce_min", "min", ANY, "Smallest elements along dimensions; NaN where there is one.", np.min
)
reduce_and, reduce_and_p = _reduction(
    "reduce_and", "and", BITS, "Bitwise (for booleans logical) conjunction along dimensions.",
    np.bitwise_and.reduce,
)  # fmt: skip
reduce_or, reduce_or_p = _reduction(
    "reduce_or", "or", BITS, "Bitwise (for booleans logical) disjunction along dimensions.",
    np.bitwise_or.reduce,
)  # fmt: skip
reduce_xor, reduce_xor_p = _reduction(
    "reduce_xor", "xor", BITS, "Bitwise exclusive disjunction along dimensions.", np.bitwise_xor.reduce
)
for _prim in (reduce_and_p, reduce_or_p, reduce_xor_p):
    ad.defjvp_zero(_prim)


def _sum_transpose(ct: Any, x: Any, *, axes: tuple, out_sharding: Any) -> list[Any]:
    shape = x.aval.shape
    return [broadcast_in_dim(ct, shape, [d for d in range(len(shape)) if d not in axes],
                             out_sharding=x.aval.cotangent_sharding)]


reduce_sum_p.declare(nan=True)
ad.deflinear2(reduce_sum_p, _sum_transpose)


def _chooser_jvp(t: Any, ans: Any, x: Any, *, axes: tuple) -> Any:
    # Elements that tie share the tangent equally.
    shape = shape_of(x)
    chosen = convert_element_type(
        eq(x, reshape(ans, with_ones(shape, axes))), get_aval(t).dtype
    )
    count = reduce_sum(chosen, axes)
    return div(reduce_sum(mul(t, chosen), axes), count)


ad.defjvp2(reduce_max_p, _chooser_jvp)
ad.defjvp2(reduce_min_p, _chooser_jvp)


def fold_halves(combine: Callable[..., Sequence[Any]], operands: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """Reduce by a tree of calls of `combine` on halves: what derivatives of reductions are taken of.

    `combine` takes and gives as many arrays as there are operands, twice and once. At least one
    element has to be there.
    """

    shape = shape_of(operands[0])
    axes = tuple(axes)
    kept = [d for d in range(len(shape)) if d not in axes]
    length = size_of([shape[a] for a in axes])
    if len(axes) != 1:
        operands = [
            reshape(transpose(x, (*axes, *kept)), (length, *(shape[d] for d in kept))) for x in operands
        ]
        axis = 0
    else:
        axis = axes[0]
    while length > 1:
        half = length // 2
        first = [lax.slice_in_dim(x, 0, half, axis=axis) for x in operands]
        second = [lax.slice_in_dim(x, half, 2 * half, axis=axis) for x in operands]
        rest = [lax.slice_in_dim(x, 2 * half, length, axis=axis) for x in operands] if length % 2 else None
        operands = list(combine(*first, *second))
        if rest is not None:
            operands = [lax.concatenate([x, y], axis) for x, y in zip(operands, rest, strict=True)]
        length = half + length % 2
    return [squeeze(x, (axis,)) for x in operands]


def _prod_jvp(primals: Any, tangents: Any, *, axes: tuple) -> Any:
    (x,), (t,) = primals, tangents
    if not size_of([shape_of(x)[a] for a in axes]) or not axes:
        out = reduce_prod(x, axes)
        return out, (t if not axes else full(shape_of(out), 0, get_aval(t).dtype))

    def product(operand: Any) -> list[Any]:
        return fold_halves(lambda a, b: [mul(a, b)], [operand], axes)

    (out,), (tangent,) = ad.jvp_flat(product, [x], [t])
    return out, tangent


reduce_prod_p.declare(nan=True)
rules.jvps[reduce_prod_p] = _prod_jvp

# -- any computation ---------------------------------------------------------------------------------
reduce_p = Primitive("reduce", multiple_results=True)
reduce_p.declare(nan=True, sharding=lambda at, *xs, dimensions, **_: sharding_rules.reduction(at, *xs, axes=dimensions),
                 factors=lambda xs, outs, *, dimensions, **_: factor_rules.reduction(xs, outs, axes=dimensions))


@reduce_p.def_abstract_eval
def _reduce_avals(*args: Any, computation: Any, jaxpr: Any, dimensions: tuple) -> list[Any]:
    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    if any(i.shape for i in inits):
        raise ValueError(f"reduce found non-scalar initial value: {[i.shape for i in inits]}")
    if any(o.shape != operands[0].shape for o in operands):
        raise ValueError(f"reduce needs operands of one shape, got {[o.shape for o in operands]}")
    if any(o.dtype != i.dtype for o, i in zip(operands, inits, strict=True)):
        raise TypeError(
            "reduce operands and initial values must have the same dtypes, got "
            f"{[o.dtype.name for o in operands]} and {[i.dtype.name for i in inits]}"
        )
    outs = jaxpr.out_avals
    if len(outs) != n or any(o.shape or o.dtype != x.dtype for o, x in zip(outs, operands, strict=False)):
        raise ValueError(
            f"the computation of reduce has to give scalars of the operands' types, got {[str(o) for o in outs]}"
        )
    check_axes(operands[0], dimensions)
    shape = without(operands[0].shape, dimensions)
    vma = joined_vma(args)
    return [
        ShapedArray(shape, o.dtype, o.weak_type and i.weak_type, vma=vma)
        for o, i in zip(operands, inits, strict=True)
    ]


_COMBINERS = {add_p: "add", mul_p: "mul", max_p: "max", min_p: "min", and_p: "and", or_p: "or", xor_p: "xor"}


def monoid_of(closed: ClosedJaxpr) -> str | None:
    """The combiner that a program of two scalars is, if it is a single commutative operation."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2 or len(jaxpr.outvars) != 1:
        return None
    (eqn,) = jaxpr.eqns
    kind = _COMBINERS.get(eqn.primitive)
    if kind is None or jaxpr.outvars[0] is not eqn.outvars[0]:
        return None
    if any(isinstance(v, Literal) for v in eqn.invars) or set(map(id, eqn.invars)) != set(map(id, jaxpr.invars)):
        return None
    if eqn.params.get("out_dtype") is not None:
        return None
    return kind


def _reduce_loops(b: Builder, *args: Any, computation: Any, jaxpr: ClosedJaxpr, dimensions: tuple) -> list[Any]:
    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    shape = without(operands[0].shape, dimensions)
    kind = monoid_of(jaxpr)
    if kind is not None:
        part = reduce_loops(b, operands[0], kind, dimensions)
        return [b.value(shape, part.dtype, lambda i: join_scalars(b, kind, inits[0].at(()), part.at(i)))]
    ndim = len(operands[0].shape)
    axes = sorted(dimensions)
    ranges = [operands[0].shape[a] for a in axes]

    def body(nest: Any, outs: Any, ins: Any) -> None:
        def over(extents: Sequence[Any], found: tuple, then: Callable[[tuple], None], parallel: bool) -> None:
            if not extents:
                then(found)
                return
            with nest.loop(extents[0], parallel=parallel) as i:
                over(extents[1:], (*found, i), then, parallel)

        def one(index: tuple) -> None:
            accs = [nest.var(x.dtype, init.at(())) for x, init in zip(ins, inits, strict=True)]

            def step(r: tuple) -> None:
                elems = [nest.load(x, merged_index(ndim, axes, index, r)) for x in ins]
                new = scalar_program(b, jaxpr, [*(a.get() for a in accs), *elems])
                for acc, value in zip(accs, new, strict=True):
                    acc.set(value)

            over(ranges, (), step, False)
            for out, acc in zip(outs, accs, strict=True):
                nest.store(out, index, acc.get())

        over(shape, (), one, True)

    return b.nest([(shape, x.dtype) for x in operands], body, list(operands))


def _reduce_hlo(m: Any, *args: Any, computation: Any, jaxpr: ClosedJaxpr, dimensions: tuple) -> list[Any]:
    region = m.region(jaxpr.in_avals, lambda m2, *xs: m2.inline(jaxpr, *xs))
    dims = ", ".join(map(str, dimensions))
    return m.op(
        "stablehlo.reduce",
        list(args),
        list(m.avals_out),
        f"dimensions = array<i64: {dims}>" if dims else "dimensions = array<i64>",
        [region],
    )


rules.loops[reduce_p] = _reduce_loops
rules.stablehlos[reduce_p] = _reduce_hlo


def _vectorized(jaxpr: ClosedJaxpr, count: int) -> Callable[..., Sequence[Any]]:
    """The computation on arrays in place of scalars."""

    def combine(*xs: Any) -> Sequence[Any]:
        shape = shape_of(xs[0])
        fun = lambda *scalars: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *scalars)
        for _ in shape:
            fun = _vmapped(fun)
        return fun(*xs)

    return combine


def _vmapped(fun: Callable[..., Any]) -> Callable[..., Any]:
    from styrax.transforms.api import vmap

    return vmap(fun)


def _reduce_jvp(primals: Any, tangents: Any, *, computation: Any, jaxpr: Any, dimensions: tuple) -> Any:
    n = len(primals) // 2
    operands, inits = primals[:n], primals[n:]
    combine = _vectorized(jaxpr, n)

    def whole(*args: Any) -> list[Any]:
        xs, starts = args[:n], args[n:]
        shape = without(shape_of(xs[0]), dimensions)
        spread = [broadcast_in_dim(s, shape, ()) for s in starts]
        if not size_of(shape_of(xs[0])):
            return spread
        return list(combine(*spread, *fold_halves(combine, xs, dimensions)))

    return ad.jvp_flat(whole, [*operands, *inits], list(tangents))


def _reduce_batch(args: Any, dims: Any, *, computation: Any, jaxpr: Any, dimensions: tuple) -> Any:
    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    if all(d is None for d in dims[n:]):
        moved = batching.all_at_front(operands, dims[:n], size)
        outs = reduce_p.bind(
            *moved, *inits, computation=computation, jaxpr=jaxpr, dimensions=tuple(d + 1 for d in dimensions)
        )
        return outs, [0] * n
    # A start of its own for each example: reduce without it, then join it.
    combine = _vectorized(jaxpr, n)
    moved = batching.all_at_front(operands, dims[:n], size)
    axes = tuple(d + 1 for d in dimensions)
    shape = without(shape_of(moved[0]), axes)
    starts = [
        broadcast_in_dim(i, shape, () if d is None else (0,)) for i, d in zip(inits, dims[n:], strict=True)
    ]
    if not size_of(shape_of(moved[0])):
        return starts, [0] * n
    return list(combine(*starts, *fold_halves(combine, moved, axes))), [0] * n


rules.jvps[reduce_p] = _reduce_jvp
rules.batchers[reduce_p] = _reduce_batch


def _monoid_function(computation: Any, operand: Any, init: Any) -> Callable[..., Any] | None:
    """The named reduction that a computation of `lax` with its own identity as start is."""
    aval, init_aval = get_aval(operand), get_aval(init)
    if init_aval.dtype != aval.dtype or init_aval.shape or isinstance(aval.dtype, dtypes.ExtendedDType):
        return None
    start = to_concrete_value(init)
    if start is None:
        return None
    for function, kind, reduction in (
        (arithmetic.add, "add", reduce_sum),
        (arithmetic.mul, "mul", reduce_prod),
        (arithmetic.max, "max", reduce_max),
        (arithmetic.min, "min", reduce_min),
        (bitwise_and, "and", reduce_and),
        (bitwise_or, "or", reduce_or),
        (bitwise_xor, "xor", reduce_xor),
    ):
        if computation is function:
            if kind in ("add", "mul") and aval.dtype == np.bool_:
                return None
            same = np.asarray(start).astype(aval.dtype) == IDENTITIES[kind](aval.dtype)
            return reduction if bool(same) else None
    return None


def reduce(operands: PyTree, init_values: PyTree, computation: Callable[[Any, Any], Any], dimensions: Sequence[int],
           out_sharding: ShardingLike | None = None) -> PyTree:
    """Reduce arrays along dimensions by any associative computation.

    Args:
      operands: a pytree of arrays of one shape.
      init_values: a pytree of scalars of the same structure, the identity of the computation.
      computation: joins two values of the structure of `operands`. It must be associative; in which
        order and grouping elements are joined is not specified.
      dimensions: the dimensions to reduce, counted from the front.
      out_sharding: sharding of the result.

    Returns:
      a pytree of arrays without these dimensions.

    Raises:
      ValueError: for structures or dimensions that do not fit.
      TypeError: for dtypes that do not fit.
    """
    if out_sharding is not None:
        from ..collectives.placing import reshard

        told = result_sharding(out_sharding, "reduce")
        return tree.tree_map(lambda x: reshard(x, told), reduce(operands, init_values, computation, dimensions))
    flat, operand_tree = tree.tree_flatten(operands)
    starts, init_tree = tree.tree_flatten(init_values)
    if operand_tree != init_tree:
        raise ValueError(
            f"Operands must have the same tree structure as init_values: {operand_tree} vs. {init_tree}"
        )
    if len(flat) != len(starts):
        raise ValueError("Must have same total number of operands as init_values")
    axes = tuple(map(operator.index, dimensions))
    if not axes:  # initial values are identities
        return tree.tree_unflatten(operand_tree, list(map(_convert_element_type, flat)))
    if len(flat) == 1:
        named = _monoid_function(computation, flat[0], starts[0])
        if named is not None:
            return tree.tree_unflatten(operand_tree, [named(flat[0], axes)])
    avals = [ShapedArray((), get_aval(x).dtype) for x in flat]
    starts = [
        convert_element_type(s, a.dtype)
        if get_aval(s).weak_type and get_aval(s).dtype != a.dtype
        else s
        for s, a in zip(starts, avals, strict=True)
    ]
    jaxpr, out_tree = traced(computation, tree.treedef_tuple((operand_tree, operand_tree)), [*avals, *avals])
    if out_tree != operand_tree:
        raise ValueError(
            f"reduce's computation must give the structure of its operands, got {out_tree} for {operand_tree}"
        )
    outs = reduce_p.bind(*flat, *starts, computation=computation, jaxpr=jaxpr, dimensions=axes)
    return tree.tree_unflatten(operand_tree, outs)
