"""Error functions and the normal distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.nn.exponentials import logsumexp as logsumexp
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import check_arraylike, convert, dtype_of, promote_args_inexact
from styrax.transforms.custom import custom_jvp

from .numbers import number, zero


def erf(x: ArrayLike) -> Array:
    """The error function 2/sqrt(π) · ∫₀ˣ exp(-t²) dt.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §7.2.
    """
    (x,) = promote_args_inexact("erf", x)
    return lax.erf(x)


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), accurate where erf is near 1.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §7.2.
    """
    (x,) = promote_args_inexact("erfc", x)
    return lax.erfc(x)


def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function, on (-1, 1).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §7.17.
    """
    (x,) = promote_args_inexact("erfinv", x)
    return lax.erf_inv(x)


def erfcinv(x: ArrayLike) -> Array:
    """The inverse of the complementary error function, on (0, 2); accurate where erfc is small.

    Args:
      x: numbers; integers are taken as floats. TypeError for complex ones.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §7.17; the quantile of the standard normal distribution at x / 2, over -√2.
    """
    (x,) = promote_args_inexact("erfcinv", x)
    if dtypes.issubdtype(dtype_of(x), np.complexfloating):
        raise TypeError(f"x.dtype={dtype_of(x)} is not supported, see docstring for supported types.")
    return lax.mul(number(-math.sqrt(0.5), x), asarray(_ndtri(asarray(lax.mul(number(0.5, x), x)))))


def _normal(x: ArrayLike) -> Array:
    """Arguments of the normal distribution's functions: float32 or float64. Raises TypeError for others."""
    x = asarray(x)
    if x.dtype not in _LOG_NDTR_BOUNDS:
        raise TypeError(f"x.dtype={x.dtype} is not supported, see docstring for supported types.")
    return x


def _ndtr(x: Any) -> Array:
    half = convert(math.sqrt(2.0) / 2, dtype_of(x))
    w = lax.mul(x, half)
    z = lax.abs(w)
    small = lax.lt(z, half)
    near = lax.add(number(1, x), lax.erf(w))
    positive = lax.gt(w, zero(w))
    far = lax.select(positive, lax.sub(number(2, x), lax.erfc(z)), lax.erfc(z))
    return lax.mul(number(0.5, x), lax.select(small, near, far))


def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution.

    Args:
      x: float32 or float64 numbers; TypeError for others.

    Returns:
      an array of the shape of `x`.
    """
    return _ndtr(_normal(x))


# Below `lower` the asymptotic series takes over, above `upper` log1p does.
_LOG_NDTR_BOUNDS = {np.dtype(np.float64): (-20.0, 8.0), np.dtype(np.float32): (-10.0, 5.0)}


# More terms of the asymptotic series (Abramowitz and Stegun, 26.2.12) than this diverge at the bound.
_LOG_NDTR_TERMS = 30


def _log_ndtr_series(x: Any, order: int) -> Array:
    """The factor 1 - 1/x² + 3/x⁴ - 15/x⁶ … of the asymptotic expansion."""
    x2 = lax.square(x)
    even = odd = lax.full_like(x, 0)
    power = x2
    for n in range(1, order + 1):
        term = lax.div(number(float(math.prod(range(1, 2 * n, 2))), x), power)
        if n % 2:
            odd = lax.add(odd, term)
        else:
            even = lax.add(even, term)
        power = lax.mul(power, x2)
    return lax.sub(lax.add(number(1, x), even), odd)


def _log_ndtr_lower(x: Any, order: int) -> Array:
    square_ = lax.mul(number(-0.5, x), lax.square(x))
    scale = lax.sub(square_, lax.log(lax.neg(x)))
    scale = lax.sub(scale, number(0.5 * math.log(2 * math.pi), x))
    return lax.add(scale, lax.log(_log_ndtr_series(x, order)))


def _make_log_ndtr(order: int) -> Callable[[Any], Any]:
    def log_ndtr(x: Any) -> Array:
        lower, upper = _LOG_NDTR_BOUNDS.get(x.dtype, (-10.0, 5.0))
        top, low = number(upper, x), number(lower, x)
        above = lax.gt(x, top)
        middle = lax.neg(_ndtr(choose_elements(above, lax.neg(x), lax.max(x, low))))
        inner = choose_elements(lax.gt(x, low), lax.log(lax.neg(middle)), _log_ndtr_lower(lax.min(x, low), order))
        return choose_elements(above, middle, inner)

    function = custom_jvp(log_ndtr)

    def _log_ndtr_jvp(primals: tuple, tangents: tuple) -> tuple:
        (x,), (t,) = primals, tangents
        out = function(x)
        # The density divided by the distribution function, in logarithms.
        return out, lax.mul(t, lax.exp(lax.sub(_norm_logpdf(x), out)))

    function.defjvp(_log_ndtr_jvp)
    return function


def _norm_logpdf(x: Any) -> Array:
    return lax.sub(lax.mul(number(-0.5, x), lax.square(x)), number(0.5 * math.log(2 * math.pi), x))


_log_ndtrs: dict[int, Callable[[Any], Any]] = {}


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr(x)`, accurate for very negative x, too.

    `series_order` is the number of terms of the asymptotic series there. Raises TypeError for orders that are no int.

    Args:
      x: float32 or float64 numbers; TypeError for others.
      series_order: how many terms of the asymptotic series are used in the lower tail.

    Returns:
      an array of the shape of `x`.
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > _LOG_NDTR_TERMS:
        raise ValueError(f"series_order must be <= {_LOG_NDTR_TERMS}.")
    x = _normal(x)
    function = _log_ndtrs.get(series_order)
    if function is None:
        function = _log_ndtrs[series_order] = _make_log_ndtr(series_order)
    return function(x)


def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution.

    Args:
      p: float32 or float64 probabilities; TypeError for others.

    Returns:
      an array of the shape of `p`: -∞ at 0, ∞ at 1, NaN outside of [0, 1].
    """
    check_arraylike("ndtri", p)
    return _ndtri(_normal(p))


# Rational functions of Wichura's algorithm AS 241 (Applied Statistics 37, 1988), the highest power first: of
# 0.180625 - (p - 1/2)², and of sqrt(-log(p)) - 1.6 and - 5
_NDTRI_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0),
)  # fmt: skip
_NDTRI_TAIL = (
    (7.7454501427834140764e-4, 2.27238449892691845833e-2, 0.241780725177450611770, 1.27045825245236838258,
     3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 0.148103976427480074590,
     0.689767334985100004550, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)  # fmt: skip
_NDTRI_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     0.296560571828504891230, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 0.136929880922735805310, 0.599832206555887937690, 1.0),
)  # fmt: skip


def _ratio(x: Any, rows: tuple[tuple[float, ...], tuple[float, ...]]) -> Any:
    return lax.div(*[lax.polynomial(x, row) for row in rows])


@custom_jvp
def _ndtri(p: Any) -> Array:
    dtype = p.dtype
    if dtype.itemsize < 4:
        p = convert(p, np.float32)
    offset = lax.sub(p, number(0.5, p))
    centre = lax.mul(offset, _ratio(lax.sub(number(0.180625, p), lax.mul(offset, offset)), _NDTRI_CENTRE))
    lower = lax.min(p, lax.sub(number(1, p), p))
    root = lax.sqrt(lax.neg(lax.log(lax.select(lax.gt(lower, zero(p)), lower, lax.full_like(p, 0.5)))))
    tail = lax.select(lax.le(root, number(5, p)), _ratio(lax.sub(root, number(1.6, p)), _NDTRI_TAIL),
                      _ratio(lax.sub(root, number(5, p)), _NDTRI_FAR))
    tail = lax.select(lax.eq(lower, zero(p)), lax.full_like(p, np.inf), tail)
    tail = lax.select(lax.lt(offset, zero(p)), lax.neg(tail), tail)
    out = lax.select(lax.le(lax.abs(offset), number(0.425, p)), centre, tail)
    return convert(lax.select(lax.ge(lower, zero(p)), out, lax.full_like(out, np.nan)), dtype)


@_ndtri.defjvp
def _ndtri_jvp(primals: tuple, tangents: tuple) -> tuple:
    (p,), (t,) = primals, tangents
    out = _ndtri(p)
    return out, lax.mul(t, lax.exp(lax.neg(_norm_logpdf(out))))
