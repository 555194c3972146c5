"""Special functions from series and recurrences: Bernoulli numbers, Bessel and hypergeometric functions, harmonics."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.numpy.broadcasting import spread
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import arrays, convert, default_float, promote_args_inexact
from styrax.transforms.custom import custom_jvp
from styrax.transforms.derivatives import jvp
from styrax.transforms.jit import jit_for_all_shapes as jit

from .integrals import _c, _pick, _plus, _real, _safe, _times, _wide


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B₀ … B_n, with B₁ = -1/2. Raises ValueError for negative n, TypeError for other types.

    Args:
      n: an int that is known when it is traced.

    Returns:
      a vector of n + 1 numbers.

    Reference: DLMF §24.2.
    """
    n = concrete_or_error(operator.index, n, "Argument n of bernoulli")
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        if m > 1 and m % 2:
            numbers.append(Fraction(0))
            continue
        numbers.append(-sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return asarray(np.array([float(b) if abs(b) < 10**300 else math.copysign(math.inf, b) for b in numbers]),
                   dtype=default_float())


@partial(jit, static_argnames=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind J₀(z) … J_v(z), along a new first axis.

    Args:
      z: where; real or complex, and small against `n_iter`.
      v: the highest order.
      n_iter: how many orders the recurrence, which runs downwards, starts above 0.

    Returns:
      a float or complex array of shape [v + 1, ...].

    Reference: DLMF §10.74(iv).
    """
    (z,) = promote_args_inexact("bessel_jn", z)
    return _wide(partial(_bessel_jn, v=v, start=max(n_iter, v + 2)), asarray(z))


def _bessel_jn(z: Array, v: int, start: int) -> Array:
    size, limits = lax.abs(z), dtypes.finfo(z.dtype)
    bound = float(limits.max) ** 0.25
    small = lax.lt(size, lax.full_like(size, float(limits.tiny) ** 0.5))  # whose square vanishes
    inverse = lax.div(_c(2.0, z), _safe(z, lax.bitwise_not(small)))
    orders = lax.broadcasted_iota(np.int32, (v + 1, *z.shape), 0)

    def step(i: Any, state: tuple) -> tuple:
        last, before, total, kept = state
        order = lax.sub(convert(start, np.dtype(np.int32)), convert(i, np.dtype(np.int32)))
        value = lax.sub(lax.mul(lax.mul(spread(convert(order, z.dtype), z.shape), inverse), last), before)
        # `value` belongs to order - 1; all are scaled down together before they overflow.
        even = lax.eq(lax.rem(order, convert(2, order.dtype)), convert(1, order.dtype))
        weight = lax.select(even, convert(2.0, z.dtype), convert(0.0, z.dtype))
        weight = lax.select(lax.eq(order, convert(1, order.dtype)), convert(1.0, z.dtype), weight)
        total = lax.add(total, lax.mul(spread(weight, z.shape), value))
        here = lax.eq(orders, spread(lax.sub(order, convert(1, order.dtype)), orders.shape))
        kept = lax.select(here, spread(lax.expand_dims(value, (0,)), kept.shape), kept)
        length = lax.abs(value)
        large = lax.gt(length, lax.full_like(length, bound))
        scale = convert(lax.select(large, lax.reciprocal(length), lax.full_like(length, 1)), z.dtype)
        return (lax.mul(value, scale), lax.mul(last, scale), lax.mul(total, scale),
                lax.mul(kept, spread(lax.expand_dims(scale, (0,)), kept.shape)))

    first = _c(float(limits.tiny) ** 0.5, z)
    state = (first, _c(0.0, z), _c(0.0, z), lax.full((v + 1, *z.shape), 0.0, z.dtype))
    _, _, total, kept = lax.fori_loop(0, start, step, state)
    total = lax.add(total, lax.mul(z, _c(0.0, z)))  # no number at infinity
    values = lax.div(kept, spread(lax.expand_dims(total, (0,)), kept.shape))
    near_zero = lax.select(lax.eq(orders, lax.full_like(orders, 1)),
                           spread(lax.expand_dims(lax.mul(z, _c(0.5, z)), (0,)), kept.shape),
                           convert(lax.eq(orders, lax.full_like(orders, 0)), z.dtype))
    return lax.select(spread(lax.expand_dims(small, (0,)), kept.shape), near_zero, values)


# -- hypergeometric functions ------------------------------------------------------------------------------
def _series(upper: Sequence[Any], lower: Sequence[Any], x: Any, limit: int) -> tuple[Array, list[Array], list[Array]]:
    """The hypergeometric series, and its derivatives by the upper and lower parameters."""
    eps = float(dtypes.finfo(x.dtype).eps)
    zero = _c(0.0, x)
    n, m = len(upper), len(lower)

    def running(state: tuple) -> Any:
        k, term, total, *_ = state
        small = lax.le(lax.abs(term), _times(eps / 4, lax.abs(total)))
        done = lax.bitwise_or(small, lax.bitwise_not(lax.is_finite(total)))
        early = lax.lt(k, convert(8, k.dtype))
        more = lax.bitwise_or(early, lax.bitwise_not(lax.reduce_and(done, axes=tuple(range(done.ndim)))))
        return lax.bitwise_and(lax.lt(k, convert(limit, k.dtype)), more)

    def advance(state: tuple) -> tuple:
        k, term, total, harmonic, slopes = state
        j = spread(convert(k, x.dtype), x.shape)
        factor = lax.div(x, _plus(1.0, j))
        for a in upper:
            factor = lax.mul(factor, lax.add(a, j))
        ended = lax.bitwise_or(lax.eq(term, zero), lax.eq(factor, zero))  # a polynomial, whatever is divided by
        for b in lower:
            factor = lax.div(factor, lax.add(b, j))
        factor = lax.select(ended, zero, factor)
        term = lax.mul(term, factor)
        harmonic = tuple(lax.add(h, lax.div(_c(1.0, x), _safe(lax.add(p, j), lax.ne(lax.add(p, j), zero))))
                         for h, p in zip(harmonic, (*upper, *lower)))
        signs = (1.0,) * n + (-1.0,) * m
        slopes = tuple(lax.add(s, _times(sign, lax.mul(term, h))) for s, h, sign in zip(slopes, harmonic, signs))
        return lax.add(k, convert(1, k.dtype)), term, lax.add(total, term), harmonic, slopes

    start = (convert(0, np.dtype(np.int32)), _c(1.0, x), _c(1.0, x), (zero,) * (n + m), (zero,) * (n + m))
    _, _, total, _, slopes = lax.while_loop(running, advance, start)
    return total, list(slopes[:n]), list(slopes[n:])


def _kummer(a: Any, b: Any, x: Any) -> tuple[Array, Array, Array]:
    """₁F₁ and its derivatives by a and b; negative x by Kummer's transformation, which keeps terms positive."""
    negative = lax.lt(x, _c(0.0, x))
    # A polynomial (a = 0, -1, -2, …) ends of itself, and is not transformed.
    ends = _counts_down(a)
    turned = lax.bitwise_and(negative, lax.bitwise_not(ends))
    first = lax.select(turned, lax.sub(b, a), a)
    value, (by_a,), (by_b,) = _series([first], [b], lax.select(turned, lax.neg(x), x), 4000)
    scale = lax.exp(lax.select(turned, x, _c(0.0, x)))
    out = lax.mul(scale, value)
    return (out, lax.mul(scale, lax.select(turned, lax.neg(by_a), by_a)),
            lax.mul(scale, lax.select(turned, lax.add(by_a, by_b), by_b)))


def _counts_down(p: Any) -> Array:
    """Where a parameter is 0, -1, -2, …: in a series, its factors come to 0."""
    return lax.bitwise_and(lax.le(p, _c(0.0, p)), lax.eq(lax.floor(p), p))


@custom_jvp
def _hyp1f1(a: Any, b: Any, x: Any) -> Array:
    # Where b counts down the terms have poles, unless they end before or where they meet it.
    pole = lax.bitwise_and(_counts_down(b), lax.bitwise_not(lax.bitwise_and(_counts_down(a), lax.ge(a, b))))
    none, at_zero, zero = lax.eq(a, _c(0.0, a)), lax.eq(x, _c(0.0, x)), lax.eq(b, _c(0.0, b))
    one = lax.bitwise_or(none, lax.bitwise_and(at_zero, lax.bitwise_not(zero)))
    return _pick([(one, _c(1.0, x)), (pole, _c(np.inf, x))], _kummer(a, b, x)[0])


@_hyp1f1.defjvp
def _hyp1f1_jvp(primals: tuple, tangents: tuple) -> tuple:
    a, b, x = primals
    value, by_a, by_b = _kummer(a, b, x)
    by_x = lax.mul(lax.div(a, b), _hyp1f1(_plus(1.0, a), _plus(1.0, b), x))
    total = lax.mul(tangents[2], by_x)
    return value, lax.add(total, lax.add(lax.mul(tangents[0], by_a), lax.mul(tangents[1], by_b)))


@jit
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function ₁F₁(a; b; x). Raises ValueError for complex numbers.

    Args:
      a, b, x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §13.2.
    """
    return _wide(_hyp1f1, *_real("hyp1f1", *map(asarray, (a, b, x))))


def _taylor(a: Any, b: Any, c: Any, q: Any, h: Any, value: Any, slope: Any) -> tuple[Any, Any]:
    """The solution of the hypergeometric equation with a value and a slope at p = 1 - q, and its slope, at p + h."""
    p = _plus(1.0, lax.neg(q))
    scale = lax.div(h, lax.mul(p, q))
    # z(1 - z)·w″ + (c - (a + b + 1)z)·w′ - a·b·w = 0, in powers of z - p.
    rate = lax.sub(c, lax.mul(_plus(1.0, lax.add(a, b)), p))
    bend = _plus(1.0, _times(-2.0, p))

    def term(k: Any, state: tuple) -> tuple:
        before, last, total, steep = state
        j = spread(convert(k, p.dtype), p.shape)
        one, two = _plus(1.0, j), _plus(2.0, j)
        new = lax.sub(lax.mul(lax.mul(lax.mul(lax.add(j, a), lax.add(j, b)), h), before),
                      lax.mul(one, lax.mul(lax.add(lax.mul(bend, j), rate), last)))
        new = lax.div(lax.mul(scale, new), lax.mul(one, two))
        return last, new, lax.add(total, new), lax.add(steep, lax.mul(two, new))

    first = lax.mul(slope, h)
    # Each term is about half the one before: as many as the digits need, and what large parameters add.
    count = 60 if p.dtype.itemsize < 8 else 110
    _, _, total, steep = lax.fori_loop(0, count, term, (value, first, lax.add(value, first), first))
    return total, lax.div(steep, h)


def _continued(a: Any, b: Any, c: Any, gap: Any) -> tuple[Any, list[Any]]:
    """₂F₁ at 1 - gap for 0 < gap <= 1/2, and its derivatives by a, b and c.

    Near 1 the series converges slowly: it is summed at 1/2, and continued from there by Taylor series, each of which
    halves the distance to 1 (Pearson, Olver, Porter, "Numerical methods for the computation of the confluent and Gauss
    hypergeometric functions", section 4).
    """
    half, zero, one = (_c(v, gap) for v in (0.5, 0.0, 1.0))
    value, (by_a, by_b), (by_c,) = _series([a, b], [c], half, 2000)
    ratio = lax.div(lax.mul(a, b), c)
    next_value, (next_a, next_b), (next_c,) = _series([_plus(1.0, v) for v in (a, b)], [_plus(1.0, c)], half, 2000)
    slope = lax.mul(ratio, next_value)
    # (a·b/c·F)' by each parameter.
    slopes = (lax.add(lax.mul(lax.div(b, c), next_value), lax.mul(ratio, next_a)),
              lax.add(lax.mul(lax.div(a, c), next_value), lax.mul(ratio, next_b)),
              lax.sub(lax.mul(ratio, next_c), lax.div(slope, c)))

    def more(state: tuple) -> Any:
        q = state[0]
        return lax.reduce_or(lax.gt(q, gap), axes=tuple(range(q.ndim)))

    def step(state: tuple) -> tuple:
        q, pairs = state
        end = lax.max(gap, _times(0.5, q))
        moving = lax.lt(end, q)
        h = _safe(lax.sub(q, end), moving)

        def run(a: Any, b: Any, c: Any, value: Any, slope: Any) -> tuple[Any, Any]:
            return _taylor(a, b, c, q, h, value, slope)

        (value, slope), *rest = pairs
        moved = []
        for i, pair in enumerate(rest):
            out, tangent = jvp(run, (a, b, c, value, slope), (*(one if i == j else zero for j in range(3)), *pair))
            moved.append(tangent)
        new = (out, *moved)
        pairs = tuple(tuple(lax.select(moving, v, w) for v, w in zip(n, o)) for n, o in zip(new, pairs))
        return lax.select(moving, end, q), pairs

    start = (half, tuple(zip((value, by_a, by_b, by_c), (slope, *slopes))))
    pairs = lax.while_loop(more, step, start)[1]
    return pairs[0][0], [pair[0] for pair in pairs[1:]]


def _gauss(a: Any, b: Any, c: Any, x: Any) -> tuple[Array, list[Array]]:
    """₂F₁ and its derivatives by a, b and c for x < 1; negative x by Pfaff's transformation."""
    # Turned, the parameters are a and c - b with b the larger: so nothing grows without bound at 1.
    swapped = lax.gt(a, b)
    a, b = lax.min(a, b), lax.max(a, b)
    # A polynomial (a or b is 0, -1, -2, …) ends of itself, and is not transformed.
    ends = lax.bitwise_or(_counts_down(a), _counts_down(b))
    turned = lax.bitwise_and(lax.lt(x, _c(0.0, x)), lax.bitwise_not(ends))
    y = lax.select(lax.lt(x, _c(1.0, x)), x, _c(0.0, x))
    down = lax.sub(_c(1.0, x), y)
    second = lax.select(turned, lax.sub(c, b), b)
    point = lax.select(turned, lax.neg(lax.div(y, down)), y)
    summed = lax.bitwise_or(lax.le(point, _c(0.5, x)), ends)
    gap = lax.select(turned, lax.div(_c(1.0, x), down), down)
    value, slopes = _continued(a, second, c, lax.select(summed, _c(0.5, x), gap))
    first, upper, lower = _series([a, second], [c], lax.select(summed, point, _c(0.0, x)), 2000)
    value, by_a, by_b, by_c = (lax.select(summed, v, w) for v, w in zip(
        (first, *upper, *lower), (value, *slopes)))
    log = lax.log(down)
    scale = lax.select(turned, lax.exp(lax.neg(lax.mul(a, log))), _c(1.0, x))
    by_a = lax.select(turned, lax.sub(by_a, lax.mul(log, value)), by_a)
    by_c = lax.select(turned, lax.add(by_c, by_b), by_c)
    by_b = lax.select(turned, lax.neg(by_b), by_b)
    by_a, by_b = lax.select(swapped, by_b, by_a), lax.select(swapped, by_a, by_b)
    return lax.mul(scale, value), [lax.mul(scale, s) for s in (by_a, by_b, by_c)]


@custom_jvp
def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Array:
    value = _gauss(a, b, c, x)[0]
    # At 1 by Gauss's sum; beyond it there is a branch cut.
    gap = lax.sub(c, lax.add(a, b))
    top, bottom = (c, gap), (lax.sub(c, a), lax.sub(c, b))
    parts = lax.sub(lax.add(*map(lax.lgamma, top)), lax.add(*map(lax.lgamma, bottom)))
    sign = lax.mul(lax.mul(*map(_gamma_sign, top)), lax.mul(*map(_gamma_sign, bottom)))
    at_one = lax.select(lax.gt(gap, _c(0.0, x)), lax.mul(sign, lax.exp(parts)), _c(np.inf, x))
    constant = lax.bitwise_or(*(lax.eq(v, _c(0.0, v)) for v in (a, b)))
    constant = lax.bitwise_and(constant, lax.ne(c, _c(0.0, c)))
    # Where c is 0, -1, -2, … the terms have poles.
    value = _pick([(lax.bitwise_or(constant, lax.eq(x, _c(0.0, x))), _c(1.0, x)), (_counts_down(c), _c(np.inf, x)),
                   (lax.eq(x, _c(1.0, x)), at_one), (lax.gt(x, _c(1.0, x)), _c(np.inf, x))], value)
    return lax.select(lax.ne(x, x), x, value)


def _gamma_sign(x: Any) -> Array:
    """The sign of the gamma function, away from its poles."""
    odd = lax.ne(lax.rem(lax.floor(x), _c(2.0, x)), _c(0.0, x))
    return lax.select(lax.bitwise_and(lax.lt(x, _c(0.0, x)), odd), _c(-1.0, x), _c(1.0, x))


@_hyp2f1.defjvp
def _hyp2f1_jvp(primals: tuple, tangents: tuple) -> tuple:
    a, b, c, x = primals
    slopes = _gauss(a, b, c, x)[1]
    by_x = lax.mul(lax.div(lax.mul(a, b), c), _hyp2f1(_plus(1.0, a), _plus(1.0, b), _plus(1.0, c), x))
    total = lax.mul(tangents[3], by_x)
    for tangent, slope in zip(tangents, slopes):
        total = lax.add(total, lax.mul(tangent, slope))
    return _hyp2f1(*primals), total


@jit
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function ₂F₁(a, b; c; x), infinite above 1. Raises ValueError for complex numbers.

    Args:
      a, b, c, x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §15.2.
    """
    return _wide(_hyp2f1, *_real("hyp2f1", *map(asarray, (a, b, c, x))))


# -- spherical harmonics -----------------------------------------------------------------------------------
def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None,
               n_max: int | None = None) -> Array:
    """The spherical harmonics Y_n^m(θ, φ), with the Condon–Shortley phase.

    Args:
      n: degrees, at least 0.
      m: orders, between -n and n.
      theta: polar angles, from 0 to π.
      phi: azimuths.
      diff_n: not supported.
      n_max: the largest degree; it is needed where `n` is traced.

    Returns complex numbers of the shape that the arguments have together. Raises NotImplementedError
    where `diff_n` is given.
    """
    if diff_n is not None:
        raise NotImplementedError("The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported.")
    n, m, theta, phi = arrays("sph_harm_y", n, m, theta, phi)
    if n_max is None:
        n_max = int(np.max(concrete_or_error(np.asarray, n, "The `n_max` argument of `jnp.scipy.special.sph_harm` must "
                                             "be statically specified to use `sph_harm` within JAX transformations."),
                           initial=0))
    n_max = concrete_or_error(operator.index, n_max, "The `n_max` argument of `sph_harm_y` must be static.")
    return _sph_harm_y(n, m, theta, phi, n_max)


@partial(jit, static_argnums=(4,))
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Array:
    theta, phi = (asarray(x) for x in promote_args_inexact("sph_harm_y", theta, phi))
    shape = lax.broadcast_shapes(*(np.shape(x) for x in (n, m, theta, phi)))
    theta, phi = spread(theta, shape), spread(phi, shape)
    kind = theta.dtype
    degree, order = (spread(convert(x, kind), shape) for x in (n, m))
    size = lax.abs(order)
    cos, sin = lax.cos(theta), lax.sin(theta)
    # The functions of cos(θ) have (1 - cos(θ)²)^(m/2): beyond [0, π] that is the modulus.
    sin = lax.select(lax.lt(sin, _c(0.0, sin)), lax.neg(sin), sin)
    # Normalised Legendre functions: first along the diagonal, then upwards in degree.
    value = _c(math.sqrt(1 / (4 * math.pi)), theta)
    for k in range(1, n_max + 1):
        value = lax.select(lax.ge(size, _c(float(k), size)),
                           _times(-math.sqrt((2 * k + 1) / (2 * k)), lax.mul(sin, value)), value)
    before = _c(0.0, theta)
    squared = lax.mul(size, size)
    for k in range(1, n_max + 1):
        active = lax.bitwise_and(lax.gt(_c(float(k), size), size), lax.le(_c(float(k), size), degree))
        gap = _safe(lax.sub(_c(float(k * k), size), squared), active)
        up = lax.sqrt(lax.div(_c(4.0 * k * k - 1, size), gap))
        old = lax.max(lax.sub(_c(float((k - 1) ** 2), size), squared), _c(0.0, size))
        down = lax.sqrt(lax.div(old, _c(max(4.0 * (k - 1) ** 2 - 1, 1.0), size)))
        new = lax.mul(up, lax.sub(lax.mul(cos, value), lax.mul(down, before)))
        value, before = lax.select(active, new, value), lax.select(active, value, before)
    value = lax.select(lax.gt(size, degree), _c(0.0, value), value)
    angle = lax.mul(size, phi)
    real, imaginary = lax.mul(value, lax.cos(angle)), lax.mul(value, lax.sin(angle))
    # Negative orders: conjugates, with the sign of (-1)^m.
    negative = lax.lt(order, _c(0.0, order))
    odd = lax.ne(lax.rem(size, _c(2.0, size)), _c(0.0, size))
    flipped = lax.bitwise_and(negative, odd)
    real = lax.select(flipped, lax.neg(real), real)
    imaginary = lax.select(lax.bitwise_xor(negative, flipped), lax.neg(imaginary), imaginary)
    return lax.complex(real, imaginary)
