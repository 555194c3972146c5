"""Special functions."""

from __future__ import annotations

import importlib as _importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis
from styrax.nn.exponentials import log_softmax as _log_softmax
from styrax.nn.exponentials import logsumexp as logsumexp
from styrax.nn.exponentials import softmax as _softmax
from styrax.numpy.binary import (
    add,
    divide,
    equal,
    greater,
    less,
    logical_and,
    logical_or,
    multiply,
    not_equal,
    remainder,
    subtract,
)
from styrax.numpy.broadcasting import choose_elements, spread_all
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import (
    arrays,
    both,
    convert,
    dtype_of,
    either,
    promote_args_inexact,
    shape_of,
    typed,
)
from styrax.numpy.ufuncs import signbit
from styrax.transforms.custom import custom_jvp
from styrax.transforms.derivatives import jvp

_later = {
    "bernoulli": "special_series", "bessel_jn": "special_series", "hyp1f1": "special_series",
    "hyp2f1": "special_series", "sph_harm_y": "special_series",
    "dawsn": "special_integrals", "erfcx": "special_integrals", "exp1": "special_integrals",
    "expi": "special_integrals", "expn": "special_integrals", "fresnel": "special_integrals",
    "owens_t": "special_integrals", "sici": "special_integrals", "spence": "special_integrals",
    "wofz": "special_integrals",
}


def __getattr__(name: str) -> Any:
    home = _later.get(name)
    if home is None:
        raise AttributeError(f"module 'jax.scipy.special' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(f"styrax.scipy.{home}"), name)
    return value


def _zero(x: Any) -> Array:
    return convert(0, *typed(x))


def _real(name: str, *args: Any) -> list[Any]:
    """Arguments promoted to floats. Raises ValueError for complex ones."""
    promoted = promote_args_inexact(name, *args)
    if dtypes.issubdtype(dtype_of(promoted[0]), np.complexfloating):
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return promoted


def _number(x: Any, like: Any) -> Array:
    return convert(x, dtype_of(like))


# -- errors and normal distributions ---------------------------------------------------------------------
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


def _ndtr(x: Any) -> Array:
    half = convert(math.sqrt(2.0) / 2, dtype_of(x))
    w = lax.mul(x, half)
    z = lax.abs(w)
    small = lax.lt(z, half)
    near = lax.add(_number(1, x), lax.erf(w))
    positive = lax.gt(w, _zero(w))
    far = lax.select(positive, lax.sub(_number(2, x), lax.erfc(z)), lax.erfc(z))
    return lax.mul(_number(0.5, x), lax.select(small, near, far))


def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution. Raises TypeError for complex numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = promote_args_inexact("ndtr", x)
    if not dtypes.issubdtype(dtype_of(x), np.floating):
        raise TypeError(f"x.dtype={dtype_of(x)} is not supported, see docstring for supported types.")
    return _ndtr(asarray(x))


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
        term = lax.div(_number(float(math.prod(range(1, 2 * n, 2))), x), power)
        if n % 2:
            odd = lax.add(odd, term)
        else:
            even = lax.add(even, term)
        power = lax.mul(power, x2)
    return lax.sub(lax.add(_number(1, x), even), odd)


def _log_ndtr_lower(x: Any, order: int) -> Array:
    square_ = lax.mul(_number(-0.5, x), lax.square(x))
    scale = lax.sub(square_, lax.log(lax.neg(x)))
    scale = lax.sub(scale, _number(0.5 * math.log(2 * math.pi), x))
    return lax.add(scale, lax.log(_log_ndtr_series(x, order)))


def _make_log_ndtr(order: int) -> Callable[[Any], Any]:
    def log_ndtr(x: Any) -> Array:
        lower, upper = _LOG_NDTR_BOUNDS.get(x.dtype, (-10.0, 5.0))
        top, low = _number(upper, x), _number(lower, x)
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
    return lax.sub(lax.mul(_number(-0.5, x), lax.square(x)), _number(0.5 * math.log(2 * math.pi), x))


_log_ndtrs: dict[int, Callable[[Any], Any]] = {}


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr(x)`, accurate for very negative x, too.

    `series_order` is the number of terms of the asymptotic series there. Raises TypeError for dtypes other
    than float32 and float64, and for orders that are no int.

    Args:
      x: numbers; integers are taken as floats.
      series_order: how many terms of the asymptotic series are used in the lower tail.

    Returns:
      an array of the shape of `x`.
    """
    if not (isinstance(series_order, int) and 0 <= series_order <= _LOG_NDTR_TERMS):
        kind = ValueError if isinstance(series_order, int) else TypeError
        raise kind(f"log_ndtr takes an int from 0 to {_LOG_NDTR_TERMS} as series_order, got {series_order!r}")
    (x,) = promote_args_inexact("log_ndtr", x)
    if dtype_of(x) not in _LOG_NDTR_BOUNDS:
        known = " and ".join(sorted(map(str, _LOG_NDTR_BOUNDS)))
        raise TypeError(f"log_ndtr is defined for {known}, not for {dtype_of(x)}")
    function = _log_ndtrs.get(series_order)
    if function is None:
        function = _log_ndtrs[series_order] = _make_log_ndtr(series_order)
    return function(asarray(x))


def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution. TypeError for complex numbers.

    Args:
      p: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `p`.
    """
    (p,) = promote_args_inexact("ndtri", p)
    p = asarray(p)
    if not dtypes.issubdtype(p.dtype, np.floating):
        raise TypeError(f"x.dtype={p.dtype} is not supported, see docstring for supported types.")
    return _ndtri(p)


@custom_jvp
def _ndtri(p: Any) -> Array:
    # The lower tail, where p is accurate, is solved for; the upper one mirrors it.
    upper = lax.gt(p, _number(0.5, p))
    q = lax.select(upper, lax.sub(_number(1, p), p), p)
    wide = p.dtype if p.dtype.itemsize >= 4 else np.dtype(np.float32)
    q = convert(q, wide)
    middle = lax.mul(convert(math.sqrt(2), wide), lax.erf_inv(lax.sub(lax.mul(convert(2, wide), q), convert(1, wide))))
    # In the tail 2q - 1 loses digits: Newton's steps on log ndtr(x) = log q repair them.
    tail = lax.lt(q, convert(0.1, wide))
    safe = lax.max(q, convert(float(dtypes.finfo(wide).tiny), wide))
    log_q = lax.log(safe)
    r = lax.sqrt(lax.mul(convert(-2, wide), log_q))
    x = lax.neg(lax.sub(r, lax.div(lax.log(lax.mul(convert(math.sqrt(2 * math.pi), wide), r)), r)))
    for _ in range(4 if wide.itemsize == 4 else 6):
        value = log_ndtr(x)
        slope = lax.exp(lax.sub(_norm_logpdf(x), value))
        x = lax.sub(x, lax.div(lax.sub(value, log_q), slope))
    x = lax.select(tail, x, middle)
    x = lax.select(lax.eq(q, convert(0, wide)), lax.full_like(x, -np.inf), x)
    x = convert(x, p.dtype)
    out = lax.select(upper, lax.neg(x), x)
    invalid = lax.bitwise_or(lax.lt(p, _zero(p)), lax.gt(p, _number(1, p)))
    return lax.select(lax.bitwise_or(invalid, lax.ne(p, p)), lax.full_like(out, np.nan), out)


@_ndtri.defjvp
def _ndtri_jvp(primals: tuple, tangents: tuple) -> tuple:
    (p,), (t,) = primals, tangents
    out = _ndtri(p)
    return out, lax.mul(t, lax.exp(lax.neg(_norm_logpdf(out))))


# -- logarithms --------------------------------------------------------------------------------------------
def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), the logistic sigmoid.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Example:
      >>> import styrax.scipy.special as special
      >>> special.expit(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    (x,) = promote_args_inexact("expit", x)
    return lax.logistic(x)


@custom_jvp
def _logit(x: Any) -> Array:
    return lax.log(lax.div(x, lax.sub(_number(1, x), x)))


_logit.defjvps(lambda g, ans, x: divide(g, multiply(x, subtract(1, x))))


def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of `expit`.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = promote_args_inexact("logit", x)
    return _logit(x)


def _x_times_log(name: str, log: Callable[..., Any], slope: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        x, y = promote_args_inexact(name, x, y)
        # 0 · log(0) is 0; a NaN stays one.
        defined = either(not_equal(x, 0.0), lax.ne(y, y))
        product = multiply(x, log(y))
        return choose_elements(defined, product, lax.full_like(product, 0))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    wrapped = custom_jvp(function)

    def jvp(primals: tuple, tangents: tuple) -> tuple:
        (x, y), (tx, ty) = primals, tangents
        out = wrapped(x, y)
        tx, ty = promote_args_inexact(name, tx, ty) if dtype_of(tx) != dtype_of(ty) else (tx, ty)
        return out, add(multiply(tx, log(y)), multiply(ty, slope(x, y)))

    jvp.__name__ = jvp.__qualname__ = f"_{name}_jvp"
    wrapped.defjvp(jvp)

    def entry(x: ArrayLike, y: ArrayLike) -> Array:
        x, y = promote_args_inexact(name, x, y)
        return wrapped(x, y)

    entry.__name__ = entry.__qualname__ = name
    entry.__doc__ = doc
    return entry


xlogy = _x_times_log("xlogy", lax.log, lambda x, y: divide(x, y), "x · log(y), and 0 where x is 0.")
xlog1py = _x_times_log("xlog1py", lax.log1p, lambda x, y: divide(x, add(1, y)), "x · log(1 + y), and 0 where x is 0.")


@custom_jvp
def _xlogx(x: Any) -> Array:
    return xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    return _xlogx(x), multiply(t, add(lax.log(x), 1))


def entr(x: ArrayLike) -> Array:
    """-x · log(x), 0 at 0 and -∞ below.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = _real("entr", x)
    return lax.select(lax.lt(x, _zero(x)), lax.full_like(x, -np.inf), lax.neg(_xlogx(x)))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p · log(p / q), 0 where p is 0 and q is not negative, ∞ outside the domain.

    Args:
      p, q: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.
    """
    p, q = _real("rel_entr", p, q)
    zero = _zero(p)
    safe = both(lax.gt(p, zero), lax.gt(q, zero))
    none = both(lax.eq(p, zero), lax.ge(q, zero))
    p_ = choose_elements(safe, p, 1)
    q_ = choose_elements(safe, q, 1)
    value = subtract(_xlogx(p_), xlogy(p_, q_))
    return choose_elements(safe, value, choose_elements(none, 0.0, np.inf))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p · log(p / q) - p + q, the terms of the Kullback-Leibler divergence.

    Args:
      p, q: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.
    """
    p, q = _real("kl_div", p, q)
    return add(subtract(rel_entr(p, q), p), q)


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x^λ - 1) / λ, and log(x) for λ = 0.

    Args:
      x: numbers; integers are taken as floats.
      lmbda: λ.

    Returns:
      an array of the shape of `x`.
    """
    x, lmbda = promote_args_inexact("boxcox", x, lmbda)
    none = equal(lmbda, 0)
    safe = choose_elements(none, 1.0, lmbda)
    return choose_elements(none, lax.log(x), divide(lax.expm1(multiply(safe, lax.log(x))), safe))


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """((1 + x)^λ - 1) / λ, and log1p(x) for λ = 0.

    Args:
      x: numbers; integers are taken as floats.
      lmbda: λ.

    Returns:
      an array of the shape of `x`.
    """
    x, lmbda = promote_args_inexact("boxcox1p", x, lmbda)
    none = equal(lmbda, 0)
    safe = choose_elements(none, 1.0, lmbda)
    return choose_elements(none, lax.log1p(x), divide(lax.expm1(multiply(safe, lax.log1p(x))), safe))


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """exp(x) divided by its sum along `axis`, by default over all elements.

    Args:
      x: numbers; integers are taken as floats.
      axis: an axis, several, or None for all.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("softmax", x)
    return _softmax(x, axis=tuple(range(len(shape_of(x)))) if axis is None else axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """The logarithm of `softmax(x, axis)`.

    Args:
      x: numbers; integers are taken as floats.
      axis: an axis, several, or None for all.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("log_softmax", x)
    return _log_softmax(x, axis=tuple(range(len(shape_of(x)))) if axis is None else axis)


# -- gamma and its kin ---------------------------------------------------------------------------------------
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of |Γ(x)|.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §5.2.
    """
    (x,) = promote_args_inexact("gammaln", x)
    return lax.lgamma(x)


def loggamma(x: ArrayLike) -> Array:
    """The logarithm of |Γ(x)|; NaN for negative real x, where Γ is not positive.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §5.2.
    """
    (x,) = promote_args_inexact("loggamma", x)
    return choose_elements(lax.lt(x, _zero(x)), np.nan, lax.lgamma(x))


def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x): 1 or -1, NaN at negative whole numbers and for NaN.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §5.2.
    """
    (x,) = _real("gammasgn", x)
    if not dtypes.issubdtype(dtype_of(x), np.floating):
        raise TypeError(f"gammasgn does not accept {dtype_of(x)}")
    below = lax.floor(x)
    negative = lax.lt(x, _zero(x))
    unknown = either(both(negative, lax.eq(x, below)), lax.ne(x, x))
    odd = both(negative, not_equal(remainder(below, 2), 0.0))
    minus_zero = both(lax.eq(x, _zero(x)), signbit(x))
    minus = either(odd, minus_zero)
    return choose_elements(unknown, np.nan, choose_elements(minus, _number(-1, x), _number(1, x)))


def gamma(x: ArrayLike) -> Array:
    """Γ(x).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §5.2.
    """
    (x,) = promote_args_inexact("gamma", x)
    return multiply(gammasgn(x), lax.exp(lax.lgamma(x)))


def _log_ratio(a: Any, b: Any) -> Array:
    """lgamma(a) + lgamma(b) - lgamma(a + b) for a <= b with large b, by Stirling's series without cancellation."""
    h = lax.div(a, b)
    total = lax.add(a, b)

    def correction(z: Any) -> Array:
        # lgamma(z) - ((z - 1/2)·log(z) - z + log(2π)/2), by its asymptotic series.
        r = lax.div(_number(1, z), z)
        r2 = lax.mul(r, r)
        series = lax.full_like(z, -691.0 / 360360)
        for coefficient in (1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12):
            series = lax.add(lax.mul(series, r2), _number(coefficient, z))
        return lax.mul(series, r)

    # (b - 1/2)·log(b) - (a + b - 1/2)·log(a + b) = -(b - 1/2)·log1p(h) - a·log(a + b)
    main = lax.sub(lax.neg(lax.mul(lax.sub(b, _number(0.5, b)), lax.log1p(h))), lax.mul(a, lax.log(total)))
    return lax.add(lax.add(lax.lgamma(a), a), lax.add(main, lax.sub(correction(b), correction(total))))


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the beta function Γ(a)·Γ(b) / Γ(a + b).

    Args:
      a, b: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §5.12.
    """
    a, b = promote_args_inexact("betaln", a, b)
    a, b = lax.min(a, b), lax.max(a, b)
    small = lax.add(lax.lgamma(a), lax.sub(lax.lgamma(b), lax.lgamma(lax.add(a, b))))
    large = _log_ratio(a, choose_elements(less(b, 8), _number(8, b), b))
    return choose_elements(less(b, 8), small, large)


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function Γ(a)·Γ(b) / Γ(a + b).

    Args:
      a, b: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §5.12.
    """
    a, b = _real("beta", a, b)
    sign = multiply(multiply(gammasgn(a), gammasgn(b)), gammasgn(add(a, b)))
    return multiply(sign, lax.exp(betaln(a, b)))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function.

    Args:
      a, b, x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §8.17.
    """
    a, b, x = _real("betainc", a, b, x)
    return lax.betainc(a, b, x)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function.

    Args:
      a, x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §8.2.
    """
    a, x = promote_args_inexact("gammainc", a, x)
    return lax.igamma(a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised upper incomplete gamma function.

    Args:
      a, x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §8.2.
    """
    a, x = promote_args_inexact("gammaincc", a, x)
    return lax.igammac(a, x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of log Γ.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §5.2.
    """
    (x,) = promote_args_inexact("digamma", x)
    return lax.digamma(x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma`. Raises ValueError for n of a complex or bool dtype.

    Args:
      n: orders, from 0 on.
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `n`.

    Reference: DLMF §5.15.
    """
    n_, x = arrays("polygamma", n, x)
    if not dtypes.issubdtype(dtype_of(n_), np.integer) and not dtypes.issubdtype(dtype_of(n_), np.floating):
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {dtype_of(n_)}.")
    n_, x = promote_args_inexact("polygamma", n_, x)
    return lax.polygamma(n_, x)


@custom_jvp
def _zeta(x: Any, q: Any) -> Array:
    return lax.zeta(x, q)


def _zeta_series(x: Any, q: Any) -> Array:
    """The same by Euler and Maclaurin's formula, in terms whose derivatives by x are known."""
    x, q = lax.expand_dims(x, (0,)), lax.expand_dims(q, (0,))
    count = 16
    k = lax.reshape(lax.iota(dtype_of(x), count), (count,) + (1,) * (x.ndim - 1))
    total = lax.reduce_sum(lax.pow(*spread_all((add(q, k), lax.neg(x)))), (0,))
    x, end = lax.squeeze(x, (0,)), lax.squeeze(add(q, count), (0,))
    last = lax.pow(end, lax.neg(x))
    total = lax.add(total, lax.add(divide(multiply(last, end), subtract(x, 1)), multiply(last, 0.5)))
    rising, power, factorial = x, divide(last, end), 2.0  # x(x + 1)…, end^(-x - 1)…, (2j)!
    for j, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730), 1):
        total = lax.add(total, multiply(multiply(rising, power), bernoulli / factorial))
        rising = multiply(rising, multiply(add(x, 2 * j - 1), add(x, 2 * j)))
        power = divide(power, multiply(end, end))
        factorial *= (2 * j + 1) * (2 * j + 2)
    return total


def _zeta_by_exponent(g: Any, ans: Any, x: Any, q: Any) -> Array:
    return jvp(lambda x: _zeta_series(x, q), (x,), (g,))[1]


_zeta.defjvps(_zeta_by_exponent, lambda g, ans, x, q: multiply(g, multiply(lax.neg(x), _zeta(add(x, 1), q))))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function Σ 1/(k + q)^x. Raises NotImplementedError without q.

    Args:
      x: exponents.
      q: shifts.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §25.11.
    """
    if q is None:
        raise NotImplementedError("Riemann zeta function not implemented; pass q != None to compute the Hurwitz Zeta "
                                  "function.")
    x, q = promote_args_inexact("zeta", x, q)
    return _zeta(*spread_all((x, q)))


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the multivariate gamma function of dimension d.

    Args:
      a: numbers; integers are taken as floats.
      d: the dimension, an int that is known when it is traced.

    Returns:
      an array of the shape of `a`.

    Reference: DLMF §35.3.
    """
    order = concrete_or_error(int, d, "d argument of multigammaln")
    (a,) = promote_args_inexact("multigammaln", a)
    size = _number(order, a)
    constant = lax.mul(lax.mul(lax.mul(_number(0.25, a), size), lax.sub(size, _number(1, a))),
                       lax.log(_number(np.pi, a)))
    steps = lax.div(lax.iota(dtype_of(a), order), _number(2, a))
    a = asarray(a)
    terms = lax.lgamma(lax.sub(lax.expand_dims(a, (a.ndim,)), lax.expand_dims(steps, tuple(range(a.ndim)))))
    return lax.add(lax.reduce_sum(terms, (a.ndim,)), constant)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = Γ(n + 1), 0 for negative n. Raises NotImplementedError for `exact`.

    Args:
      n: numbers; integers are taken as floats.
      exact: must be False.

    Returns:
      an array of the shape of `n`.

    Reference: DLMF §5.4.
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    (n,) = promote_args_inexact("factorial", n)
    return choose_elements(lax.lt(n, _zero(n)), 0, lax.exp(lax.lgamma(add(n, 1))))


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial Γ(z + m) / Γ(z).

    Args:
      z, m: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §5.2.
    """
    z, m = _real("poch", z, m)
    value = divide(multiply(gammasgn(add(z, m)), lax.exp(subtract(lax.lgamma(add(z, m)), lax.lgamma(z)))), gammasgn(z))
    # Where both gamma functions are infinite; elsewhere the derivative by m counts at 0, too.
    return choose_elements(logical_and(equal(m, 0), lax.ne(value, value)), _number(1, z), value)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """How many ways there are to choose k things out of N, with repetition or without.

    Args:
      N, k: numbers; integers are taken as floats.
      repetition: whether a thing may be chosen more than once.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §26.3.
    """
    if repetition:
        return comb(subtract(add(N, k), 1), k)
    N, k = promote_args_inexact("comb", N, k)
    outside = logical_or(logical_or(greater(k, N), less(k, 0)), less(N, 0))
    N, k = choose_elements(outside, 1, N), choose_elements(outside, 0, k)
    value = lax.exp(lax.neg(add(betaln(add(1, subtract(N, k)), add(1, k)), lax.log(add(N, 1)))))
    whole = logical_and(equal(N, lax.round(N)), equal(k, lax.round(k)))
    # Rounding repairs the value alone, not the slope.
    repair = lax.stop_gradient(subtract(lax.round(value), value))
    value = add(value, choose_elements(logical_and(whole, lax.is_finite(value)), repair, 0))
    return choose_elements(outside, 0.0, value)


# -- Bessel functions ----------------------------------------------------------------------------------------
def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) · I₀(x).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i0e", x)
    return lax.bessel_i0e(x)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function I₀.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i0", x)
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i0e(x))


def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) · I₁(x).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i1e", x)
    return lax.bessel_i1e(x)


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function I₁.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §10.25.
    """
    (x,) = promote_args_inexact("i1", x)
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))
