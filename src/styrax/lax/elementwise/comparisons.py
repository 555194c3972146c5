"""Comparisons, and choosing between arrays by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.physical import physicals
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import full_like
from .families import (
    ANY,
    OPERATIONS,
    ORDERED,
    Operation,
    accepts_dtype,
    all_weak,
    check_dtype,
    comparison,
    reader,
    shape_of,
    standard_primitive,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

_KEYS = (dtypes.extended,)

eq, eq_p = comparison(
    "eq", (*ANY, *_KEYS), "Whether elements are equal.",
    direction="EQ", scalar=lambda b, x, y: b.eq(x, y), numpy_name="equal", reference=np.equal,
)  # fmt: skip
ne, ne_p = comparison(
    "ne", (*ANY, *_KEYS), "Whether elements differ (NaN differs from itself).",
    direction="NE", scalar=lambda b, x, y: b.ne(x, y), numpy_name="not_equal", reference=np.not_equal,
)  # fmt: skip
lt, lt_p = comparison(
    "lt", ORDERED, "Whether elements of `x` are less than those of `y`.",
    direction="LT", scalar=lambda b, x, y: b.lt(x, y), numpy_name="less", reference=np.less,
)  # fmt: skip
le, le_p = comparison(
    "le", ORDERED, "Whether elements of `x` are less than or equal to those of `y`.",
    direction="LE", scalar=lambda b, x, y: b.le(x, y), numpy_name="less_equal", reference=np.less_equal,
)  # fmt: skip
gt, gt_p = comparison(
    "gt", ORDERED, "Whether elements of `x` are greater than those of `y`.",
    direction="GT", scalar=lambda b, x, y: b.gt(x, y), numpy_name="greater", reference=np.greater,
)  # fmt: skip
ge, ge_p = comparison(
    "ge", ORDERED, "Whether elements of `x` are greater than or equal to those of `y`.",
    direction="GE", scalar=lambda b, x, y: b.ge(x, y), numpy_name="greater_equal",
    reference=np.greater_equal,
)  # fmt: skip


def order_key(b: Builder, x: Any) -> Any:
    """An integer that orders floats totally: -NaN < -inf < … < -0 < 0 < … < inf < NaN."""
    if not accepts_dtype(x.dtype, (np.floating,)):
        return x
    bits = b.bitcast(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    zero = b.const(0, bits.dtype)
    # Negative numbers grow with their bits: flip all but the sign to turn them round.
    return b.select(b.lt(bits, zero), b.xor(bits, b.const(np.iinfo(bits.dtype).max, bits.dtype)), bits)


def _total(op: str) -> Any:
    return lambda b, x, y: getattr(b, op)(order_key(b, x), order_key(b, y))


_, eq_to_p = comparison(
    "eq_to", ORDERED, "Equality in the total order of floats.",
    direction="EQ", scalar=_total("eq"), total_order=True,
)  # fmt: skip
_, lt_to_p = comparison(
    "lt_to", ORDERED, "Less than in the total order of floats, where -0 < 0 and NaN is last.",
    direction="LT", scalar=_total("lt"), total_order=True,
)  # fmt: skip
_, le_to_p = comparison(
    "le_to", ORDERED, "Less than or equal in the total order of floats.",
    direction="LE", scalar=_total("le"), total_order=True,
)  # fmt: skip
for _name in ("eq_to", "lt_to", "le_to"):
    del OPERATIONS[_name]


def _keys_rule(element_equal: Any, join: str) -> Any:
    def rule(context: Any, x: Any, y: Any) -> Any:
        n = context.element_ndim()
        shape = context.avals_out[0].shape
        element = context.element_shape()
        x, y = (
            broadcast_in_dim(v, (*shape, *element), _trailing_dims(v, len(shape) + n)) for v in (x, y)
        )
        axes = tuple(range(len(shape), len(shape) + n))
        return getattr(lax, join)(element_equal(x, y), axes)

    return rule


def _trailing_dims(x: Any, ndim: int) -> tuple[int, ...]:
    rank = len(shape_of(x))
    return tuple(range(ndim - rank, ndim))


physicals[eq_p] = _keys_rule(eq, "reduce_and")
physicals[ne_p] = _keys_rule(ne, "reduce_or")

# -- select ----------------------------------------------------------------------------------------


def _select_shape(which: Any, *cases: Any) -> tuple:
    if not cases:
        raise TypeError("select must have at least one case")
    shape = cases[0].shape
    if any(c.shape != shape for c in cases[1:]):
        raise TypeError(f"select cases must have the same shapes, got [{', '.join(str(c.shape) for c in cases)}].")
    if which.shape and which.shape != shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.shape} but case shape {shape}."
        )
    return shape


def _select_dtype(which: Any, *cases: Any) -> Any:
    first = cases[0].dtype
    if any(c.dtype != first for c in cases[1:]):
        listed = ", ".join(c.dtype.name for c in cases)
        raise TypeError(
            f"lax.select requires arguments to have the same dtypes, got {listed}. (Tip: jnp.where is a similar "
            "function that does automatic type promotion on inputs)."
        )
    if which.dtype == np.bool_:
        if len(cases) > 2:
            raise TypeError("select with boolean `which` cannot have > 2 cases.")
    elif not accepts_dtype(which.dtype, (np.integer,)):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype.name}.")
    return first


def _select_loops(b: Builder, which: Any, *cases: Any) -> Any:
    out = b.avals_out[0]
    which_at = reader(b, which, out.shape)

    def at(index: Any) -> Any:
        w = which_at(index)
        value = cases[-1].at(index)
        for k in range(len(cases) - 2, -1, -1):
            if w.dtype == np.bool_:
                value = b.select(w, value, cases[k].at(index))
            else:
                value = b.select(b.lt(w, b.const(k + 1, w.dtype)), cases[k].at(index), value)
        return value

    return b.value(out.shape, out.dtype, at)


def _select_hlo(m: Any, which: Any, *cases: Any) -> Any:
    out = m.avals_out[0]
    if which.dtype == np.bool_:
        return cases[0] if len(cases) == 1 else m.op1("stablehlo.select", [which, cases[1], cases[0]], out)
    value = cases[-1]
    for k in range(len(cases) - 2, -1, -1):
        below = m.compare("LT", which, m.full(k + 1, which.aval))
        value = m.op1("stablehlo.select", [below, cases[k], value], out)
    return value


select_n_p = standard_primitive(
    "select_n",
    _select_shape,
    _select_dtype,
    lambda which, *cases: all_weak(cases),
    loops=_select_loops,
    hlo=_select_hlo,
)
select_n_p.declare(elementwise=True, sharding=sharding_rules.selection)


def _select_jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    case_tangents = tangents[1:]
    out = select_n(which, *cases)
    if all(type(t) is ad.Zero for t in case_tangents):
        return out, ad.Zero(get_aval(out).to_tangent_aval())
    zeros = next(full_like(t, 0) for t in case_tangents if type(t) is not ad.Zero)
    return out, select_n(which, *[zeros if type(t) is ad.Zero else t for t in case_tangents])


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list[Any]:
    assert not ad.is_undefined_primal(which)
    if type(ct) is ad.Zero:
        return [None, *[ad.Zero(c.aval) if ad.is_undefined_primal(c) else None for c in cases]]
    zeros = full_like(ct, 0)
    if get_aval(which).dtype == np.bool_ or len(cases) == 2:
        which_is = [
            (lambda: select_n(which, ct, zeros)),
            (lambda: select_n(which, zeros, ct)),
        ]
    else:
        which_is = [
            (lambda k=k: select_n(  # type: ignore[misc]
                eq(which, np.asarray(k, get_aval(which).dtype)), zeros, ct))
            for k in range(len(cases))
        ]
    return [None, *[which_is[k]() if ad.is_undefined_primal(c) else None for k, c in enumerate(cases)]]


def _select_batch(args: Any, dims: Any) -> Any:
    which, *cases = args
    which_dim, *case_dims = dims
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    if which_dim is None and all(d is not None for d in case_dims) and not shape_of(which):
        # One scalar chooses for the whole batch; it needs no batch axis.
        first = case_dims[0]
        cases = [batching.moveaxis(c, d, first) for c, d in zip(cases, case_dims, strict=True)]
        return select_n(which, *cases), first
    if which_dim is not None and all(d == which_dim for d in case_dims):
        if len(shape_of(which)) == len(shape_of(cases[0])):
            return select_n(which, *cases), which_dim
    if which_dim is not None or shape_of(which):
        which, *cases = batching.all_at_front(args, dims, size)
    else:
        cases = batching.all_at_front(cases, case_dims, size)
    shape = shape_of(cases[0])
    if shape_of(which) and len(shape_of(which)) < len(shape):
        which = broadcast_in_dim(which, shape, (0,))
    return select_n(which, *cases), 0


rules.jvps[select_n_p] = _select_jvp
rules.transposes[select_n_p] = _select_transpose
rules.batchers[select_n_p] = _select_batch


def _select_keys(context: Any, which: Any, *cases: Any) -> Any:
    shape = context.avals_out[0].shape
    if shape_of(which):
        which = broadcast_in_dim(which, shape_of(cases[0]), range(len(shape)))
    return select_n(which, *cases)


physicals[select_n_p] = _select_keys


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Choose elements from one of several arrays.

    Args:
      which: boolean array (`False` chooses the first of two cases) or integer array (the number of the
        case; numbers out of range choose the nearest case). A scalar, or of the shape of the cases.
      cases: arrays of one shape and dtype; at most two where `which` is boolean.

    Returns:
      an array of the shape and dtype of the cases.

    Raises:
      ValueError: without cases.
      TypeError: for shapes or dtypes that do not fit.
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Choose elements from `on_true` where `pred` is true, else from `on_false`.

    Args:
      pred: boolean array, a scalar or of the shape of the cases.
      on_true, on_false: arrays of one shape and dtype. Both are computed.

    Returns:
      an array of the shape and dtype of the cases.

    Raises:
      TypeError: for shapes or dtypes that do not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
      Array([1, 4], dtype=int32)
    """
    return select_n_p.bind(pred, on_false, on_true)


# -- clamp -----------------------------------------------------------------------------------------


def _clamp_shape(low: Any, x: Any, high: Any) -> tuple:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                f"{name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    return x.shape


def _clamp_dtype(low: Any, x: Any, high: Any) -> Any:
    for position, aval in enumerate((low, x, high)):
        check_dtype("clamp", aval, ANY, position)
    if low.dtype != x.dtype or high.dtype != x.dtype:
        raise TypeError(
            "lax.clamp requires arguments to have the same dtypes, got "
            f"{low.dtype.name}, {x.dtype.name}, {high.dtype.name}."
        )
    return x.dtype


def _clamp_scalar(b: Builder, low: Any, x: Any, high: Any) -> Any:
    if x.dtype.kind == "c":
        # As complex max and min order them: by real part, then imaginary part.
        def before(p: Any, q: Any) -> Any:
            same = b.eq(b.real(p), b.real(q))
            return b.select(same, b.lt(b.imag(p), b.imag(q)), b.lt(b.real(p), b.real(q)))

        raised = b.select(before(x, low), low, x)
        return b.select(before(high, raised), high, raised)
    if x.dtype == np.bool_:
        return b.and_(b.or_(x, low), high)
    return b.min(b.max(x, low), high)


def _clamp_hlo(m: Any, low: Any, x: Any, high: Any) -> Any:
    out = m.avals_out[0]
    if x.dtype.kind != "c":
        return m.op1("stablehlo.clamp", [low, x, high], out)
    part = ShapedArray(out.shape, np.dtype(f"float{4 * x.dtype.itemsize}"))
    low, high = m.broadcast_to(low, out), m.broadcast_to(high, out)

    def before(p: Any, q: Any) -> Any:
        (rp, rq), (ip, iq) = (
            [m.op1(f"stablehlo.{name}", [v], part) for v in (p, q)] for name in ("real", "imag")
        )
        return m.select(m.compare("EQ", rp, rq), m.compare("LT", ip, iq), m.compare("LT", rp, rq))

    raised = m.select(before(x, low), low, x)
    return m.select(before(high, raised), high, raised)


clamp_p: Primitive = standard_primitive(
    "clamp",
    _clamp_shape,
    _clamp_dtype,
    scalar=_clamp_scalar,
    hlo=_clamp_hlo,
)
clamp_p.declare(sharding=sharding_rules.clamp, factors=factor_rules.elementwise)


def _pass_where(condition: Any, t: Any, shape: tuple) -> Any:
    if shape_of(t) != shape:
        t = broadcast_in_dim(t, shape, ())
    if shape_of(condition) != shape:
        condition = broadcast_in_dim(condition, shape, ())
    return select(condition, t, full_like(t, 0))


def _clamp_jvp_min(t: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
    from .bits import bitwise_and

    return _pass_where(bitwise_and(gt(low, x), lt(low, high)), t, shape_of(ans))


def _clamp_jvp_x(t: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
    from .bits import bitwise_and

    return _pass_where(bitwise_and(gt(x, low), lt(x, high)), t, shape_of(ans))


def _clamp_jvp_max(t: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
    return _pass_where(lt(high, x), t, shape_of(ans))


ad.defjvp2(clamp_p, _clamp_jvp_min, _clamp_jvp_x, _clamp_jvp_max)


def _clamp_batch(args: Any, dims: Any) -> Any:
    low, x, high = args
    low_dim, x_dim, high_dim = dims
    size = next(shape_of(v)[d] for v, d in zip(args, dims, strict=True) if d is not None)
    if low_dim is None and high_dim is None and not shape_of(low) and not shape_of(high):
        return clamp(low, x, high), x_dim
    if x_dim is not None and low_dim == high_dim == x_dim and (
        len(shape_of(low)) == len(shape_of(high)) == len(shape_of(x))
    ):
        return clamp(low, x, high), x_dim
    rest = shape_of(x) if x_dim is None else (*shape_of(x)[:x_dim], *shape_of(x)[x_dim + 1 :])
    shape = (size, *rest)

    def bound(v: Any, d: Any) -> Any:
        v = v if d is None else batching.moveaxis(v, d, 0)
        if shape_of(v) == shape:
            return v
        rank = len(shape_of(v))
        if d is None:
            return broadcast_in_dim(v, shape, range(len(shape) - rank, len(shape)))
        return broadcast_in_dim(v, shape, range(rank))

    low, high = bound(low, low_dim), bound(high, high_dim)
    return clamp(low, batching.bdim_at_front(x, x_dim, size), high), 0


rules.batchers[clamp_p] = _clamp_batch


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit elements to a range: `min` where `x < min`, `max` where `x > max`, else `x`.

    Args:
      min, max: the bounds, scalars or arrays of the shape of `x`. Where `min > max`, the result is `max`.
      x: array of any dtype.

    Returns:
      an array of the shape and dtype of `x`.

    Raises:
      TypeError: for dtypes that differ, or shapes that do not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.clamp(0, jnp.array([-1, 2, 9]), 5)
      Array([0, 2, 5], dtype=int32)
    """
    return clamp_p.bind(min, x, max)


OPERATIONS["clamp"] = Operation("clamp", clamp_p, clamp, "nary", 3, (ANY, ANY, ANY), None)
