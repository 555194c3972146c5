"""Differences, integrals, interpolation, and comparisons up to a tolerance."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis
from styrax.transforms.jit import jit_for_all_shapes as jit

from .binary import add, divide, equal, multiply, subtract
from .broadcasting import choose_elements, spread
from .concatenation import concatenate
from .conversion import asarray
from .division import floor_divide, remainder
from .indexing import gather_elements
from .promotion import (
    arrays,
    axis_index,
    axis_indices,
    both,
    check_arraylike,
    convert,
    dtype_of,
    either,
    number_like,
    promote_args,
    promote_args_inexact,
    promote_dtypes,
    promote_dtypes_inexact,
    shape_of,
)
from .promotion import unwrap as unwrap_
from .reductions import all as all_
from .reductions import sum as sum_
from .shaping import moveaxis, operand, ravel
from .ufuncs import absolute


def _part(a: Any, axis: int, start: int | None, stop: int | None) -> Any:
    index = [slice(None)] * a.ndim
    index[axis] = slice(start, stop)
    return gather_elements(a, tuple(index))


def _diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
          append: ArrayLike | None = None) -> Array:
    """The differences of neighbouring elements, a[i + 1] - a[i] along `axis`, taken `n` times.

    Args:
      a: an array of rank 1 or more. Unsigned integers wrap around; of booleans, neighbours that differ are found.
      n: how many times; 0 gives `a`.
      axis: the axis.
      prepend, append: slices that are put before and after `a` first; a scalar stands for one slice.

    Returns:
      an array of the dtype of `a` (promoted with what is put around it), shorter by `n` along `axis`, empty where that
      leaves nothing.

    Raises:
      ValueError: for negative `n`, for scalars, and for an axis out of range.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.diff(jnp.array([1, 4, 9]))
      Array([3, 5], dtype=int32)
    """
    arr = operand("diff", a)
    n = concrete_or_error(operator.index, n, "'n' argument of jnp.diff")
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.diff")
    if n == 0:
        return arr
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if arr.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional; got " + str(a))
    axis = axis_index(axis, arr.ndim)
    def piece(x: Any) -> Any:
        x = asarray(unwrap_(x))
        return spread(x, tuple(1 if i == axis else d for i, d in enumerate(arr.shape))) if x.ndim == 0 else x

    parts = [*([] if prepend is None else [piece(prepend)]), arr, *([] if append is None else [piece(append)])]
    if len(parts) > 1:
        arr = concatenate(parts, axis=axis)
    minus = (lambda x, y: lax.ne(x, y)) if arr.dtype == np.bool_ else lax.sub
    for _ in range(n):
        arr = minus(_part(arr, axis, 1, None), _part(arr, axis, None, -1))
    return arr


diff = jit(named(_diff, "diff"), static_argnames=("n", "axis"))


@jit
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbouring elements of `ary`, taken as a vector in row order.

    Args:
      ary: an array of any shape.
      to_end, to_begin: numbers put after and before the differences, converted to the dtype of `ary`.

    Returns:
      a vector of the dtype of `ary`.
    """
    arr = ravel(operand("ediff1d", ary))
    check_arraylike("ediff1d", *(x for x in (to_begin, to_end) if x is not None))
    out = lax.sub(_part(arr, 0, 1, None), _part(arr, 0, None, -1))
    if to_begin is not None:
        out = concatenate([ravel(convert(asarray(to_begin), arr.dtype)), out])
    if to_end is not None:
        out = concatenate([out, ravel(convert(asarray(to_end), arr.dtype))])
    return out


def _gradient_along(a: Any, h: Any, axis: int) -> Any:
    def part(start: int, stop: int) -> Any:
        return lax.slice_in_dim(a, start, stop, axis=axis)

    size = a.shape[axis]
    if shape_of(h) == ():
        low = lax.sub(part(1, 2), part(0, 1))
        high = lax.sub(part(size - 1, size), part(size - 2, size - 1))
        middle = divide(multiply(lax.sub(part(2, size), part(0, size - 2)), 0.5), h)
        high = divide(high, h)
        low = divide(low, h)
        return concatenate([low, middle, high], axis=axis)
    steps = asarray(h)
    column = tuple(-1 if i == axis else 1 for i in range(a.ndim))

    def along(x: Any) -> Any:
        return lax.reshape(x, tuple(x.shape[0] if c == -1 else 1 for c in column))

    h1, h2 = along(lax.slice_in_dim(steps, 0, size - 2)), along(lax.slice_in_dim(steps, 1, size - 1))
    # The second-order formula for points that are not evenly spaced.
    low = divide(lax.sub(part(1, 2), part(0, 1)), along(lax.slice_in_dim(steps, 0, 1)))
    high = divide(
        lax.sub(part(size - 1, size), part(size - 2, size - 1)), along(lax.slice_in_dim(steps, size - 2, size - 1))
    )
    total = add(h1, h2)
    middle = add(add(multiply(part(0, size - 2), divide(lax.neg(h2), multiply(h1, total))),
                     multiply(part(1, size - 1), divide(subtract(h2, h1), multiply(h1, h2)))),
                 multiply(part(2, size), divide(h1, multiply(h2, total))))
    return concatenate([low, middle, high], axis=axis)


def _gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axis = None,
              edge_order: int | None = None) -> Array | list[Array]:
    """The derivatives of samples along axes: central differences inside, one-sided ones at the ends.

    In between it is the derivative of the parabola through three neighbours: (f[i + 1] - f[i - 1]) / (2 h), and for
    steps h1 and h2 on the two sides (h1² f[i + 1] + (h2² - h1²) f[i] - h2² f[i - 1]) / (h1 h2 (h1 + h2)).

    Args:
      f: the samples; integers are taken as floats.
      *varargs: the spacing: none (1), one for all axes, or one per axis; each a number, or a vector of the samples'
        coordinates along the axis.
      axis: an int, or several; None for all.
      edge_order: has to be None.

    Returns:
      an array of the shape of `f` for one axis, a list of such arrays for several.

    Raises:
      ValueError: for an axis of fewer than two samples, and for coordinates that do not fit it.
      TypeError: for spacings that are neither one nor as many as there are axes.
      NotImplementedError: for an `edge_order`.
    """
    check_arraylike("gradient", f, *varargs)
    f, *varargs = promote_dtypes_inexact(*arrays("gradient", f, *varargs))  # type: ignore[assignment]
    f = asarray(f)
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    axes = axis_indices(axis, f.ndim, unique=False)
    if any(f.shape[i] < 2 for i in axes):
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 elements are "
                         "required.")
    if not axes:
        return []
    if len(varargs) == 0:
        steps: list[Any] = [1.0] * len(axes)
    elif len(varargs) == 1:
        steps = [varargs[0]] * len(axes)
    elif len(varargs) == len(axes):
        steps = list(varargs)
    else:
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for {axes=}")
    for n, (h, i) in enumerate(zip(steps, axes)):
        if len(shape_of(h)) > 1:
            raise ValueError("distances must be either scalars or 1d")
        if len(shape_of(h)) == 1:
            if shape_of(h)[0] != f.shape[i]:
                raise ValueError("when 1d, distances must match the length of the corresponding dimension")
            steps[n] = diff(h)
    out = [_gradient_along(f, h, i) for h, i in zip(steps, axes)]
    return out if len(out) > 1 else out[0]


gradient = jit(named(_gradient, "gradient"), static_argnames=("axis", "edge_order"))


def _trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of samples by the trapezoidal rule: the sum of (x[i + 1] - x[i]) · (y[i] + y[i + 1]) / 2.

    Args:
      y: the samples; integers are taken as floats.
      x: their coordinates: a vector for `axis`, or an array of the shape of `y`. They need not rise.
      dx: the spacing where there is no `x`.
      axis: the axis that is integrated over.

    Returns:
      an array of the shape of `y` without `axis`; 0 for one sample.
    """
    if x is None:
        (y,) = promote_dtypes_inexact(*arrays("trapezoid", y))
        y, steps = asarray(y), asarray(dx)
        axis = axis_index(axis, y.ndim)
        if steps.ndim == 0:
            # One step for all: the sum needs no neighbours.
            y = moveaxis(y, axis, -1)
            total = sum_(y, axis=-1)
            ends = lax.add(gather_elements(y, (..., 0)), gather_elements(y, (..., -1)))
            return multiply(steps, lax.sub(total, multiply(0.5, ends)))
    else:
        y, x = (asarray(v) for v in promote_dtypes_inexact(*arrays("trapezoid", y, x)))
        steps = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
        y, axis = moveaxis(y, axis, -1), -1
    before = (slice(None),) * axis_index(axis, y.ndim)
    sums = lax.add(gather_elements(y, (*before, slice(1, None))), gather_elements(y, (*before, slice(None, -1))))
    return multiply(0.5, sum_(multiply(steps, sums), axis=axis))


trapezoid = jit(named(_trapezoid, "trapezoid"), static_argnames=("axis",))


def _unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi) -> Array:
    """Angles with multiples of `period` added so that neighbours along `axis` differ by half a period at most.

    Args:
      p: angles, in radians for the default period.
      discont: jumps smaller than this stay as they are; half a period by default.
      axis: the axis.
      period: how far apart two numbers stand for the same angle.

    Returns:
      an array of the shape of `p`, of the dtype that `p` and `period` promote to: integers stay such for a whole
      period.

    Raises:
      ValueError: for complex numbers.
    """
    from .accumulations import cumsum

    p = operand("unwrap", p)
    if dtypes.issubdtype(p.dtype, np.complexfloating):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    axis = axis_index(axis, p.ndim)
    p, period_ = promote_dtypes(p, period)
    if shape_of(p)[axis] == 0:
        return p
    whole = dtypes.issubdtype(dtype_of(p), np.integer)
    if discont is None:
        discont = divide(period_, 2)
    half = (floor_divide if whole else divide)(period_, 2)
    steps = diff(p, axis=axis)
    wrapped = subtract(remainder(add(steps, half), period_), half)
    up = both(lax.eq(*promote_args("unwrap", wrapped, lax.neg(half))), lax.gt(steps, number_like(0, steps)))
    if whole:  # an odd period has no step that is half of it
        up = both(up, equal(remainder(period_, 2), 0))
    wrapped = choose_elements(up, half, wrapped)
    small = lax.lt(*promote_args("unwrap", absolute(steps), discont))
    corrections = choose_elements(small, 0, lax.sub(wrapped, steps))
    first = lax.slice_in_dim(p, 0, 1, axis=axis)
    rest = lax.slice_in_dim(p, 1, p.shape[axis], axis=axis)
    return concatenate([first, add(rest, cumsum(corrections, axis=axis))], axis=axis)


unwrap = jit(named(_unwrap, "unwrap"), static_argnames=("axis",))


# -- interpolation -----------------------------------------------------------------------------------
def _interp_body(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Any:
    from .clipping import clip
    from .sorting import searchsorted

    if shape_of(xp) != shape_of(fp) or len(shape_of(xp)) != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    x, xp, fp = (asarray(v) for v in arrays("interp", x, xp, fp))
    x, xp = (asarray(v) for v in promote_dtypes_inexact(x, xp))
    (fp,) = promote_dtypes_inexact(fp)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("jnp.interp: complex x values not supported.")
    if period is not None:
        if shape_of(period) != ():
            raise ValueError(f"period must be a scalar; got {period}")
        period = lax.abs(asarray(period))
        x, xp = remainder(x, period), remainder(xp, period)
        xp, fp = lax.sort_key_val(xp, fp)
        xp = concatenate([subtract(gather_elements(xp, slice(-1, None)), period), xp,
                          add(gather_elements(xp, slice(None, 1)), period)])
        fp = concatenate([gather_elements(fp, slice(-1, None)), fp, gather_elements(fp, slice(None, 1))])
    i = clip(searchsorted(xp, x, side="right"), 1, xp.shape[0] - 1)
    before = subtract(i, 1)
    df = subtract(gather_elements(fp, i), gather_elements(fp, before))
    dx = subtract(gather_elements(xp, i), gather_elements(xp, before))
    delta = subtract(x, gather_elements(xp, before))
    # Coordinates that coincide (or nearly) would divide by zero.
    tiny = np.spacing(dtypes.finfo(xp.dtype).eps)
    same = lax.le(lax.abs(dx), convert(float(tiny), dx.dtype))
    f = choose_elements(same, gather_elements(fp, before), add(
        gather_elements(fp, before), multiply(divide(delta, choose_elements(same, 1, dx)), df)))

    def outside(value: Any, default: Any) -> Any:
        if isinstance(value, str):
            if value == "extrapolate":
                return None
            raise ValueError("the only valid string value of `left` is 'extrapolate', but got: " + repr(value))
        return default if value is None else asarray(value)

    if period is None:
        low, high = outside(left, gather_elements(fp, 0)), outside(right, gather_elements(fp, -1))
        if low is not None:
            f = choose_elements(lax.lt(*promote_args("interp", x, gather_elements(xp, 0))), low, f)
        if high is not None:
            f = choose_elements(lax.gt(*promote_args("interp", x, gather_elements(xp, -1))), high, f)
    return f


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    return _interp_body(x, xp, fp, left, right, period)


# A bound is traced unless it is the word "extrapolate".
_interp_jits: dict[tuple[str, ...], Any] = {static: jit(_interp, static_argnames=static)
                for static in ((), ("left",), ("right",), ("left", "right"))}


def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None,
           right: ArrayLike | str | None = None, period: ArrayLike | None = None) -> Array:
    """The piecewise linear function through the points (xp, fp) at `x`.

    Args:
      x: where to evaluate, any shape.
      xp, fp: vectors of one size; `xp` rising, unless `period` is given. `fp` may be complex.
      left, right: values below and above all `xp`: the first and last of `fp` by default, or "extrapolate". Ignored for
        periodic coordinates.
      period: the period of the coordinates.

    Returns:
      an array of the shape of `x`, of the float or complex dtype of `fp`; NaN where `x` is NaN.

    Raises:
      ValueError: for vectors that do not match, complex `x`, a `period` that is no scalar, and other words as bounds.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.interp(jnp.array([0.5, 3.0]), jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 20.0]))
      Array([ 5., 20.], dtype=float32)
    """
    check_arraylike("interp", x, xp, fp)
    static = tuple(name for name, bound in (("left", left), ("right", right)) if isinstance(bound, str))
    return _interp_jits[static](unwrap_(x), unwrap_(xp), unwrap_(fp), left, right, period)


# -- comparisons ---------------------------------------------------------------------------------------
def _isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
             equal_nan: bool = False) -> Array:
    """Whether |a - b| <= atol + rtol · |b|, element by element: the tolerance goes by `b`.

    Args:
      a, b: arrays or numbers that broadcast; integers are compared as floats.
      rtol, atol: the relative and the absolute tolerance.
      equal_nan: whether NaN is close to NaN.

    Returns:
      booleans of the shape that `a` and `b` broadcast to. Infinities are close to themselves alone.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.isclose(jnp.array([1.0, 1.1]), 1.0)
      Array([ True, False], dtype=bool)
    """
    a, b = promote_args("isclose", a, b)
    dtype = dtype_of(a)
    if dtypes.issubdtype(dtype, dtypes.extended):
        return lax.eq(a, b)
    if dtype == np.bool_ or dtypes.issubdtype(dtype, np.integer):
        a, b = promote_args_inexact("isclose", a, b)
        dtype = dtype_of(a)
    real = np.empty(0, dtype).real.dtype if dtypes.issubdtype(dtype, np.complexfloating) else dtype
    rtol, atol = convert(rtol, real), convert(atol, real)
    from .float_tests import isfinite

    a_nan, b_nan = lax.ne(a, a), lax.ne(b, b)
    nans = both(a_nan, b_nan)
    finite = isfinite(b)
    near = lax.le(lax.abs(lax.sub(a, b)), lax.add(atol, lax.mul(rtol, lax.abs(b))))
    out = either(lax.eq(a, b), both(finite, near))
    return either(out, nans) if equal_nan else out


isclose = jit(named(_isclose, "isclose"), static_argnames=("equal_nan",))


def _allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
              equal_nan: bool = False) -> Array:
    """Whether all elements are close, as `isclose` says.

    Args:
      a, b: arrays or numbers that broadcast.
      rtol, atol: the relative and the absolute tolerance.
      equal_nan: whether NaN is close to NaN.

    Returns:
      a boolean of shape (); True for empty arrays.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.0000001]))
      Array(True, dtype=bool)
    """
    check_arraylike("allclose", a, b)
    return all_(isclose(a, b, rtol, atol, equal_nan))


allclose = jit(named(_allclose, "allclose"), static_argnames=("equal_nan",))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Args:
      a1, a2: what `asarray` takes; dtypes may differ.
      equal_nan: whether NaN equals NaN.

    Returns:
      a boolean of shape ().

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 3]))
      Array(False, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return asarray(False)
    same = lax.eq(*promote_args("array_equal", a1, a2))
    if equal_nan:
        same = either(same, lax.bitwise_and(lax.ne(a1, a1), lax.ne(a2, a2)))
    return all_(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape and have equal elements there.

    Args:
      a1, a2: what `asarray` takes; dtypes may differ.

    Returns:
      a boolean of shape (): False where the shapes do not broadcast.
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        same = lax.eq(*promote_args("array_equiv", a1, a2))
    except (TypeError, ValueError):
        return asarray(False)
    return all_(same)
