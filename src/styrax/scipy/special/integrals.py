"""Special functions defined by integrals: exponential, sine and Fresnel integrals, Dawson's function, …

Each is a few Chebyshev series on intervals whose ends are mapped to [-1, 1], chosen by `select`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.numpy.broadcasting import spread
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import convert, promote_args_inexact, to_complex
from styrax.transforms.custom import custom_jvp
from styrax.transforms.jit import jit_for_all_shapes as jit

from . import tables

_GAMMA = 0.5772156649015329
_SINGLE, _HALF = np.dtype(np.float32), 2


def _real(name: str, *args: Any) -> list[Array]:
    """Arguments as floating point arrays of one shape. Raises ValueError for complex ones."""
    arrays = _inexact(name, *args)
    if dtypes.issubdtype(arrays[0].dtype, np.complexfloating):
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return arrays


def _inexact(name: str, *args: Any) -> list[Array]:
    """Arguments as arrays of one shape and one dtype that has fractions."""
    arrays = [asarray(x) for x in promote_args_inexact(name, *args)]
    shape = lax.broadcast_shapes(*(x.shape for x in arrays))
    return [spread(x, shape) for x in arrays]


def _wide(function: Callable[..., Any], *args: Any) -> Any:
    """Computes with 32 bits where the arguments have 16."""
    dtype = args[0].dtype
    if dtype.itemsize > _HALF:
        return function(*args)
    out = function(*(convert(x, _SINGLE) for x in args))
    return tuple(convert(x, dtype) for x in out) if isinstance(out, tuple) else convert(out, dtype)


def _c(value: Any, like: Any) -> Array:
    return lax.full_like(like, value)


def _times(value: float, x: Any) -> Array:
    return lax.mul(_c(value, x), x)


def _plus(value: float, x: Any) -> Array:
    return lax.add(_c(value, x), x)


def _chebyshev(coefficients: Sequence[float], t: Any) -> Array:
    """A Chebyshev series at t in [-1, 1], without the terms that its dtype cannot show."""
    largest, eps = max(map(abs, coefficients)), float(dtypes.finfo(t.dtype).eps)
    count = len(coefficients)
    while count > 1 and abs(coefficients[count - 1]) < eps / 8 * largest:
        count -= 1
    twice = _times(2.0, t)
    before = last = _c(0.0, t)
    for c in coefficients[count - 1:0:-1]:
        last, before = _plus(c, lax.sub(lax.mul(twice, last), before)), last
    return _plus(coefficients[0], lax.sub(lax.mul(t, last), before))


def _on(coefficients: Sequence[float], low: float, high: float, u: Any) -> Array:
    """A series on [low, high]; beyond the ends it takes their values, and is not used."""
    u = lax.clamp(convert(low, u.dtype), u, convert(high, u.dtype))
    return _chebyshev(coefficients, _plus(-(high + low) / (high - low), _times(2 / (high - low), u)))


def _ratio(x: Any, scale: float) -> Array:
    """(x - k) / (x + k): maps [0, ∞] to [-1, 1]."""
    return _plus(1.0, lax.neg(lax.div(_c(2 * scale, x), _plus(scale, x))))


def _pick(cases: Sequence[tuple[Any, Any]], otherwise: Any) -> Array:
    """The value of the first case whose condition holds."""
    for condition, value in reversed(cases):
        otherwise = lax.select(condition, value, otherwise)
    return otherwise


def _below(x: Any, bound: float) -> Array:
    return lax.lt(x, _c(bound, x))


def _safe(x: Any, good: Any) -> Array:
    """x where `good`, else 1: keeps branches that are not taken finite."""
    return lax.select(good, x, _c(1.0, x))


# -- error functions -------------------------------------------------------------------------------------
def _erfcx_values(x: Any) -> Array:
    a = lax.abs(x)
    value = lax.div(_chebyshev(tables.ERFCX, _ratio(a, 3.75)), _plus(1.0, _times(2.0, a)))
    return lax.select(_below(x, 0.0), lax.sub(_times(2.0, lax.exp(lax.mul(x, x))), value), value)


@custom_jvp
def _erfcx(x: Any) -> Array:
    return _wide(_erfcx_values, x)


_erfcx.defjvps(lambda g, out, x: lax.mul(g, lax.sub(_times(2.0, lax.mul(x, out)), _c(2 / math.sqrt(math.pi), x))))


@jit
def erfcx(x: ArrayLike) -> Array:
    """exp(x²) · erfc(x), also where the factors overflow or vanish; for real and complex numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §7.2.
    """
    (x,) = promote_args_inexact("erfcx", x)
    x = convert(x, dtypes.dtype(x))
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return _wofz(lax.mul(_c(1j, x), x))
    return _erfcx(x)


def _wofz_values(z: Any) -> Array:
    # Weideman's expansion in powers of (L + iz) / (L - iz), in the upper half plane; below it, by symmetry.
    lower = lax.lt(lax.imag(z), lax.full_like(lax.imag(z), 0.0))
    y = lax.select(lower, lax.neg(z), z)
    iz = lax.mul(_c(1j, y), y)
    down = lax.sub(_c(tables.WEIDEMAN_SCALE, y), iz)
    ratio = lax.div(_plus(tables.WEIDEMAN_SCALE, iz), down)
    total = _c(tables.WEIDEMAN[-1], y)
    for c in tables.WEIDEMAN[-2::-1]:
        total = _plus(c, lax.mul(total, ratio))
    value = lax.add(lax.div(_times(2.0, total), lax.mul(down, down)),
                    lax.div(_c(1 / math.sqrt(math.pi), y), down))
    return lax.select(lower, lax.sub(_times(2.0, lax.exp(lax.neg(lax.mul(z, z)))), value), value)


@custom_jvp
def _wofz(z: Any) -> Array:
    return _wofz_values(z)


_wofz.defjvps(lambda g, w, z: lax.mul(g, lax.sub(_c(2j / math.sqrt(math.pi), z), _times(2.0, lax.mul(z, w)))))


@jit
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z²) · erfc(-iz), complex.

    Args:
      z: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `z`.

    Reference: DLMF §7.2.
    """
    (z,) = promote_args_inexact("wofz", z)
    z = asarray(z)
    return _wofz(convert(z, to_complex(z.dtype)))


def _dawsn_values(x: Any) -> Array:
    a = lax.abs(x)
    square = lax.mul(a, a)
    low, middle = _below(a, 2.0), _below(a, 4.0)
    factor = lax.div(a, _plus(1.0, _times(2.0, square)))
    far = _safe(a, lax.bitwise_not(middle))
    value = _pick([(low, lax.mul(factor, _on(tables.DAWSON_LOW, 0.0, 4.0, square))),
                   (middle, lax.mul(factor, _on(tables.DAWSON_MIDDLE, 4.0, 16.0, square)))],
                  lax.div(_on(tables.DAWSON_HIGH, 0.0, 1 / 16, lax.integer_pow(far, -2)), far))
    return lax.mul(lax.sign(x), lax.select(lax.ne(x, x), x, value))


@custom_jvp
def _dawsn(x: Any) -> Array:
    return _wide(_dawsn_values, x)


_dawsn.defjvps(lambda g, out, x: lax.mul(g, _plus(1.0, _times(-2.0, lax.mul(x, out)))))


@jit
def dawsn(x: ArrayLike) -> Array:
    """Dawson's function exp(-x²) · ∫₀ˣ exp(t²) dt. Raises ValueError for complex numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §7.2.
    """
    return _dawsn(*_real("dawsn", x))


# -- exponential integrals ---------------------------------------------------------------------------------
def _exp1_values(x: Any) -> Array:
    low = lax.le(x, _c(1.0, x))
    small, large = _safe(x, low), _safe(x, lax.bitwise_not(low))
    near = lax.sub(lax.mul(small, _on(tables.E1_LOW, 0.0, 1.0, small)), _plus(_GAMMA, lax.log(small)))
    far = lax.mul(lax.exp(lax.neg(large)),
                  lax.div(_chebyshev(tables.E1_HIGH, _ratio(_plus(-1.0, large), 4.0)), _plus(1.0, large)))
    return lax.select(low, near, far)


@custom_jvp
def _exp1(x: Any) -> Array:
    return _wide(_exp1_values, x)


_exp1.defjvps(lambda g, out, x: lax.neg(lax.mul(g, lax.div(lax.exp(lax.neg(x)), x))))


@jit
def exp1(x: ArrayLike) -> Array:
    """The exponential integral E₁(x) = ∫ₓ^∞ exp(-t)/t dt; NaN below 0. Raises ValueError for complex numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §6.2.
    """
    return _exp1(*_real("exp1", x))


def _expi_values(x: Any) -> Array:
    negative = _below(x, 0.0)
    y = _safe(x, lax.bitwise_not(negative))
    inverse = lax.div(_c(1.0, y), lax.max(y, _c(1.0, y)))
    scale = lax.mul(lax.exp(y), inverse)
    near = lax.add(_plus(_GAMMA, lax.log(y)),
                   lax.mul(lax.mul(y, lax.exp(_times(0.5, y))), _on(tables.EI_LOW, 0.0, 6.0, y)))
    value = _pick([(_below(y, 6.0), near),
                   (_below(y, 12.0), lax.mul(scale, _on(tables.EI_MIDDLE, 1 / 12, 1 / 6, inverse))),
                   (_below(y, 24.0), lax.mul(scale, _on(tables.EI_HIGH, 1 / 24, 1 / 12, inverse)))],
                  lax.mul(scale, _on(tables.EI_LARGE, 0.0, 1 / 24, inverse)))
    value = lax.select(lax.ge(y, _c(np.inf, y)), _c(np.inf, y), value)
    return lax.select(negative, lax.neg(_exp1_values(lax.neg(_pick([(negative, x)], _c(-1.0, x))))), value)


@custom_jvp
def _expi(x: Any) -> Array:
    return _wide(_expi_values, x)


_expi.defjvps(lambda g, out, x: lax.mul(g, lax.div(lax.exp(x), x)))


@jit
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei(x), the principal value of ∫ exp(t)/t dt from -∞. ValueError for complex numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §6.2.
    """
    return _expi(*_real("expi", x))


def _expn_values(n: Any, x: Any) -> Array:
    one, zero = _c(1.0, x), _c(0.0, x)
    first = lax.le(x, one)
    small, large = _safe(x, first), _safe(x, lax.bitwise_not(first))
    # The power series, whose term n - 1 has a logarithm.
    psi = lax.digamma(lax.max(n, one))
    total, term = zero, one
    for m in range(26 if x.dtype.itemsize == 8 else 16):
        if m:
            term = lax.div(lax.mul(term, lax.neg(small)), _c(float(m), x))
        gap = lax.sub(_c(float(m), x), lax.sub(n, one))
        special = lax.eq(gap, zero)
        plain = lax.neg(lax.div(term, lax.select(special, one, gap)))
        total = lax.add(total, lax.select(special, lax.mul(term, lax.sub(psi, lax.log(small))), plain))
    # The continued fraction, from its end.
    tail = _c(0.0, x)
    for i in range(60 if x.dtype.itemsize == 8 else 24, 0, -1):
        upper = _times(float(i), _plus(i - 1.0, n))
        tail = lax.div(upper, lax.sub(lax.add(large, _plus(2.0 * i, n)), tail))
    far = lax.div(lax.exp(lax.neg(large)), lax.sub(lax.add(large, n), tail))
    value = lax.select(first, total, far)
    at_zero = lax.select(lax.gt(n, one), lax.div(one, _safe(lax.sub(n, one), lax.gt(n, one))), _c(np.inf, x))
    value = _pick([(lax.eq(n, zero), lax.div(lax.exp(lax.neg(x)), x)), (lax.eq(x, zero), at_zero)], value)
    # The power series is that of integers from 0 on.
    elsewhere = lax.bitwise_or(_below(n, 0.0), lax.ne(lax.floor(n), n))
    near = lax.bitwise_and(first, lax.ne(x, zero))
    bad = lax.bitwise_or(_below(x, 0.0), lax.bitwise_and(near, elsewhere))
    value = lax.select(lax.eq(x, _c(np.inf, x)), zero, value)
    return lax.select(lax.bitwise_or(bad, lax.bitwise_or(lax.ne(x, x), lax.ne(n, n))), _c(np.nan, x), value)


@custom_jvp
def _expn(n: Any, x: Any) -> Array:
    return _wide(_expn_values, n, x)


def _expn_derivative(g: Any, out: Any, n: Any, x: Any) -> Array:
    before = _expn(lax.sub(n, _c(1.0, n)), x)
    return lax.neg(lax.mul(g, before))


_expn.defjvps(None, _expn_derivative)


@jit
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The generalised exponential integral E_n(x) = ∫₁^∞ exp(-xt)/tⁿ dt, for x ≥ 0, else NaN.

    On (0, 1] it is NaN, too, where n is negative or no integer. At 0 it is 1 / (n - 1) for n > 1, where JAX has 1 / n,
    and ∞ for other n. Raises ValueError for complex numbers.

    Args:
      n: orders.
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `n`.

    Reference: DLMF §8.19.
    """
    n, x = _real("expn", asarray(n), asarray(x))
    return _expn(convert(n, n.dtype), convert(x, x.dtype))


# -- sine, cosine and Fresnel integrals --------------------------------------------------------------------
def _sici_values(x: Any) -> tuple[Array, Array]:
    a = lax.abs(x)
    square = lax.mul(a, a)
    low, unbounded = _below(a, 4.0), lax.eq(a, _c(np.inf, a))
    far = _safe(a, lax.bitwise_not(lax.bitwise_or(low, unbounded)))
    inverse = lax.integer_pow(far, -2)
    f = lax.div(_on(tables.SICI_F, 0.0, 1 / 16, inverse), far)
    g = lax.mul(_on(tables.SICI_G, 0.0, 1 / 16, inverse), inverse)
    sin, cos = lax.sin(far), lax.cos(far)
    si_far = _plus(math.pi / 2, lax.neg(lax.add(lax.mul(f, cos), lax.mul(g, sin))))
    ci_far = lax.sub(lax.mul(f, sin), lax.mul(g, cos))
    si = lax.select(low, lax.mul(a, _on(tables.SI_LOW, 0.0, 16.0, square)), si_far)
    near = lax.add(_plus(_GAMMA, lax.log(a)), lax.mul(square, _on(tables.CI_LOW, 0.0, 16.0, square)))
    ci = lax.select(low, near, ci_far)
    si = lax.select(unbounded, _c(math.pi / 2, a), si)
    limit = lax.select(_below(x, 0.0), _c(np.nan, a), _c(0.0, a))
    ci = lax.select(unbounded, limit, ci)
    missing = lax.ne(x, x)
    return lax.select(missing, x, lax.mul(lax.sign(x), si)), lax.select(missing, x, ci)


@custom_jvp
def _sici(x: Any) -> tuple[Array, Array]:
    return _wide(_sici_values, x)


@_sici.defjvp
def _sici_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (g,) = primals, tangents
    zero = lax.eq(x, _c(0.0, x))
    slope = lax.select(zero, _c(1.0, x), lax.div(lax.sin(x), _safe(x, lax.bitwise_not(zero))))
    return _sici(x), (lax.mul(g, slope), lax.mul(g, lax.div(lax.cos(x), x)))


@jit
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals ∫₀ˣ sin(t)/t dt and γ + ln|x| + ∫₀ˣ (cos(t) - 1)/t dt: the pair (Si, Ci).

    Raises ValueError for complex numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §6.2.
    """
    (x,) = promote_args_inexact("sici", x)
    x = asarray(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError(f"Argument `x` to sici must be real-valued. Got dtype {x.dtype}.")
    return _sici(x)


_FRESNEL_EDGE = 6.5536  # 1.6⁴


def _fresnel_values(x: Any) -> tuple[Array, Array]:
    a = lax.abs(x)
    square = lax.mul(a, a)
    fourth = lax.mul(square, square)
    low, unbounded = _below(a, 1.6), lax.eq(a, _c(np.inf, a))
    near_s = lax.mul(lax.mul(a, square), _on(tables.FRESNEL_S, 0.0, _FRESNEL_EDGE, fourth))
    near_c = lax.mul(a, _on(tables.FRESNEL_C, 0.0, _FRESNEL_EDGE, fourth))
    far = _safe(a, lax.bitwise_not(lax.bitwise_or(low, unbounded)))
    inverse = lax.integer_pow(far, -4)
    f = lax.div(_on(tables.FRESNEL_F, 0.0, 1 / _FRESNEL_EDGE, inverse), _times(math.pi, far))
    g = lax.div(_on(tables.FRESNEL_G, 0.0, 1 / _FRESNEL_EDGE, inverse), _times(math.pi**2, lax.integer_pow(far, 3)))
    # The angle π·x²/2, reduced while it is still exact in x² / 4.
    turns = _times(0.25, lax.mul(far, far))
    angle = _times(2 * math.pi, lax.sub(turns, lax.floor(turns)))
    sin, cos = lax.sin(angle), lax.cos(angle)
    far_s = _plus(0.5, lax.neg(lax.add(lax.mul(f, cos), lax.mul(g, sin))))
    far_c = _plus(0.5, lax.sub(lax.mul(f, sin), lax.mul(g, cos)))
    out = []
    for near, value in ((near_s, far_s), (near_c, far_c)):
        value = lax.select(low, near, lax.select(unbounded, _c(0.5, a), value))
        out.append(lax.select(lax.ne(x, x), x, lax.mul(lax.sign(x), value)))
    return out[0], out[1]


@custom_jvp
def _fresnel(x: Any) -> tuple[Array, Array]:
    return _wide(_fresnel_values, x)


@_fresnel.defjvp
def _fresnel_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (g,) = primals, tangents
    angle = _times(math.pi / 2, lax.mul(x, x))
    return _fresnel(x), (lax.mul(g, lax.sin(angle)), lax.mul(g, lax.cos(angle)))


@jit
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The Fresnel integrals of sin(π·t²/2) and cos(π·t²/2) from 0 to x: the pair (S, C).

    Raises NotImplementedError for complex numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      the pair (S, C).

    Reference: DLMF §7.2.
    """
    (x,) = promote_args_inexact("fresnel", x)
    x = asarray(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise NotImplementedError("Support for complex-valued inputs is not implemented yet.")
    return _fresnel(x)


# -- the dilogarithm and Owen's function -------------------------------------------------------------------
def _spence_values(x: Any) -> Array:
    inverted = lax.gt(x, _c(1.5, x))
    small = _below(x, 0.5)
    reciprocal = lax.div(_c(1.0, x), _safe(x, inverted))
    # Around 1 by its series; near 0 and ∞ through the reflections of the dilogarithm.
    far = lax.gt(x, _c(2.0, x))
    w = _pick([(far, lax.neg(reciprocal)), (inverted, _plus(-1.0, reciprocal)), (small, lax.neg(x))], _plus(-1.0, x))
    near_zero = lax.bitwise_or(far, small)
    y = lax.neg(lax.mul(w, _on(tables.SPENCE, -0.5, 0.5, w)))
    z = lax.select(far, reciprocal, x)
    logs = lax.mul(lax.log(lax.select(near_zero, lax.max(z, _c(dtypes.finfo(x.dtype).tiny, x)), _c(1.0, x))),
                   lax.log1p(lax.neg(lax.select(near_zero, z, _c(0.0, x)))))
    y = lax.select(near_zero, lax.sub(_plus(math.pi**2 / 6, lax.neg(logs)), y), y)
    log = lax.log(_safe(x, inverted))
    y = lax.select(inverted, lax.sub(_times(-0.5, lax.mul(log, log)), y), y)
    # At ∞ it is NaN, in SciPy and JAX.
    within = lax.bitwise_and(lax.ge(x, _c(0.0, x)), lax.lt(x, _c(np.inf, x)))
    return lax.select(within, y, _c(np.nan, x))


@custom_jvp
def _spence(x: Any) -> Array:
    return _spence_values(x)


def _spence_derivative(g: Any, out: Any, x: Any) -> Array:
    one = lax.eq(x, _c(1.0, x))
    return lax.mul(g, lax.select(one, _c(-1.0, x),
                                 lax.div(lax.log(x), lax.sub(_c(1.0, x), lax.select(one, _c(0.0, x), x)))))


_spence.defjvps(_spence_derivative)


@jit
def spence(x: ArrayLike) -> Array:
    """Spence's function, the dilogarithm of 1 - x: ∫₁ˣ log(t)/(1 - t) dt; NaN below 0.

    Raises TypeError for other types than 32- and 64-bit floating point numbers.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §25.12.
    """
    x = asarray(x)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x.dtype={x.dtype} is not supported, see docstring for supported types.")
    return _spence(x)


def _tail(x: Any) -> Array:
    """1 minus the standard normal distribution function."""
    return _times(0.5, lax.erfc(_times(math.sqrt(0.5), x)))


def _owens_core(h: Any, a: Any) -> Array:
    """For 0 ≤ a ≤ 1, by Gauss's formula."""
    half = _times(-0.5, lax.mul(h, h))
    total = _c(0.0, h)
    for node, weight in zip(tables.GAUSS_NODES, tables.GAUSS_WEIGHTS):
        t = _times(float(node), a)
        bottom = _plus(1.0, lax.mul(t, t))
        total = lax.add(total, _times(float(weight), lax.div(lax.exp(lax.mul(half, bottom)), bottom)))
    return lax.mul(_times(1 / (2 * math.pi), a), total)


def _owens_values(h: Any, a: Any) -> Array:
    size, b = lax.abs(h), lax.abs(a)
    steep = lax.gt(b, _c(1.0, b))
    zero = lax.eq(size, _c(0.0, h))
    product = lax.select(zero, size, lax.mul(size, b))
    core = _owens_core(lax.select(steep, product, size), lax.select(steep, lax.div(_c(1.0, b), b), b))
    q, r = _tail(size), _tail(product)
    value = lax.select(steep, lax.sub(lax.sub(_times(0.5, lax.add(q, r)), lax.mul(q, r)), core), core)
    value = lax.select(lax.eq(size, _c(np.inf, h)), _c(0.0, h), value)
    value = lax.mul(lax.sign(a), value)
    missing = lax.bitwise_or(lax.ne(h, h), lax.ne(a, a))
    return lax.select(missing, _c(np.nan, h), value)


@custom_jvp
def _owens_t(h: Any, a: Any) -> Array:
    return _owens_values(h, a)


def _owens_h(g: Any, out: Any, h: Any, a: Any) -> Array:
    density = _times(-1 / (2 * math.sqrt(2 * math.pi)), lax.exp(_times(-0.5, lax.mul(h, h))))
    return lax.mul(g, lax.mul(density, lax.erf(_times(math.sqrt(0.5), lax.mul(a, h)))))


def _owens_a(g: Any, out: Any, h: Any, a: Any) -> Array:
    bottom = _plus(1.0, lax.mul(a, a))
    top = lax.exp(_times(-0.5, lax.mul(lax.mul(h, h), bottom)))
    return lax.mul(g, lax.div(top, _times(2 * math.pi, bottom)))


_owens_t.defjvps(_owens_h, _owens_a)


@jit
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function: the probability of X > h and 0 < Y < a·X, for standard normal X and Y.

    Args:
      h, a: numbers; integers are taken as floats. Of complex ones the magnitudes count, and the direction of `a`.

    Returns:
      an array of the shape of the arguments broadcast together, of 32 bits at least.
    """
    h, a = _inexact("owens_t", h, a)
    if dtypes.issubdtype(h.dtype, np.complexfloating):
        size = _owens_t(lax.abs(h), lax.abs(a))
        value = lax.mul(lax.sign(a), convert(size, h.dtype))
        return lax.select(lax.ne(value, value), _c(np.nan, value), value)
    dtype = _SINGLE if h.dtype.itemsize <= _HALF else h.dtype
    return _owens_t(convert(h, dtype), convert(a, dtype))
