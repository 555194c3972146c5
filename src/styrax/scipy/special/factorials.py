"""The gamma function and its kin: beta, digamma, zeta, factorials, binomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.nn.exponentials import logsumexp as logsumexp
from styrax.numpy.binary import (
    add,
    divide,
    equal,
    greater_equal,
    less,
    logical_and,
    multiply,
    not_equal,
    subtract,
)
from styrax.numpy.broadcasting import choose_elements, spread_all
from styrax.numpy.conversion import asarray
from styrax.numpy.division import remainder
from styrax.numpy.float_tests import signbit
from styrax.numpy.promotion import arrays, both, convert, dtype_of, either, promote_args_inexact
from styrax.numpy.promotion import number_as as number
from styrax.transforms.custom import custom_jvp
from styrax.transforms.derivatives import jvp
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .complex_gamma import loggamma_of_complex
from .numbers import reals, zero


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
    """The logarithm of |Γ(x)|; NaN for negative real x, where Γ is not positive. For complex x that of Γ(x).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §5.2.
    """
    (x,) = promote_args_inexact("loggamma", x)
    if dtypes.issubdtype(dtype_of(x), np.complexfloating):
        return loggamma_of_complex(convert(x, dtype_of(x)))
    return choose_elements(lax.lt(x, zero(x)), np.nan, lax.lgamma(x))


@jit
def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x): 1 or -1, NaN at negative whole numbers and for NaN.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Raises ValueError for complex numbers.

    Reference: DLMF §5.2.
    """
    (x,) = reals("gammasgn", x)
    below = lax.floor(x)
    negative = lax.lt(x, zero(x))
    unknown = either(both(negative, lax.eq(x, below)), lax.ne(x, x))
    odd = both(negative, not_equal(remainder(below, 2), 0.0))
    minus_zero = both(lax.eq(x, zero(x)), signbit(x))
    minus = either(odd, minus_zero)
    return convert(choose_elements(unknown, np.nan, choose_elements(minus, number(-1, x), number(1, x))), dtype_of(x))


@fused
def gamma(x: ArrayLike) -> Array:
    """Γ(x).

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Reference: DLMF §5.2.
    """
    (x,) = promote_args_inexact("gamma", x)
    if dtypes.issubdtype(dtype_of(x), np.complexfloating):
        return lax.exp(loggamma_of_complex(convert(x, dtype_of(x))))
    return multiply(gammasgn(x), lax.exp(lax.lgamma(x)))


def _log_ratio(a: Any, b: Any) -> Array:
    """lgamma(a) + lgamma(b) - lgamma(a + b) for a <= b with large b, by Stirling's series without cancellation."""
    h = lax.div(a, b)
    total = lax.add(a, b)

    def correction(z: Any) -> Array:
        # lgamma(z) - ((z - 1/2)·log(z) - z + log(2π)/2), by its asymptotic series.
        r = lax.div(number(1, z), z)
        r2 = lax.mul(r, r)
        series = lax.full_like(z, -691.0 / 360360)
        for coefficient in (1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12):
            series = lax.add(lax.mul(series, r2), number(coefficient, z))
        return lax.mul(series, r)

    # (b - 1/2)·log(b) - (a + b - 1/2)·log(a + b) = -(b - 1/2)·log1p(h) - a·log(a + b)
    main = lax.sub(lax.neg(lax.mul(lax.sub(b, number(0.5, b)), lax.log1p(h))), lax.mul(a, lax.log(total)))
    return lax.add(lax.add(lax.lgamma(a), a), lax.add(main, lax.sub(correction(b), correction(total))))


@fused
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the beta function Γ(a)·Γ(b) / Γ(a + b).

    Args:
      a, b: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §5.12.
    """
    a, b = promote_args_inexact("betaln", a, b)
    swap = less(b, a)  # (of equal ones each keeps its own slope, unlike those of the lesser and the larger)
    a, b = choose_elements(swap, b, a), choose_elements(swap, a, b)
    small = lax.add(lax.lgamma(a), lax.sub(lax.lgamma(b), lax.lgamma(lax.add(a, b))))
    large = _log_ratio(a, choose_elements(less(b, 8), number(8, b), b))
    return choose_elements(less(b, 8), small, large)


@fused
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function Γ(a)·Γ(b) / Γ(a + b).

    Args:
      a, b: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §5.12.
    """
    a, b = reals("beta", a, b)
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
    a, b, x = reals("betainc", a, b, x)
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


@api_boundary
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma`. Raises ValueError for n of another dtype than integers.

    Args:
      n: orders, integers from 0 on.
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `n`.

    Reference: DLMF §5.15.
    """
    n_, x = arrays("polygamma", n, x)
    if not dtypes.issubdtype(dtype_of(n_), np.integer):
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


@fused(static_argnames=("d",))
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
    size = number(order, a)
    constant = lax.mul(lax.mul(lax.mul(number(0.25, a), size), lax.sub(size, number(1, a))),
                       lax.log(number(np.pi, a)))
    steps = lax.div(lax.iota(dtype_of(a), order), number(2, a))
    a = asarray(a)
    terms = lax.lgamma(lax.sub(lax.expand_dims(a, (a.ndim,)), lax.expand_dims(steps, tuple(range(a.ndim)))))
    return lax.add(lax.reduce_sum(terms, (a.ndim,)), constant)


@fused(static_argnames=("exact",))
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
    return choose_elements(lax.lt(n, zero(n)), 0, lax.exp(lax.lgamma(add(n, 1))))


@fused
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial Γ(z + m) / Γ(z).

    Args:
      z, m: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §5.2.
    """
    z, m = reals("poch", z, m)
    value = divide(multiply(gammasgn(add(z, m)), lax.exp(subtract(lax.lgamma(add(z, m)), lax.lgamma(z)))), gammasgn(z))
    # Where both gamma functions are infinite; elsewhere the derivative by m counts at 0, too.
    return choose_elements(logical_and(equal(m, 0), lax.ne(value, value)), number(1, z), value)


@fused(static_argnames=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """How many ways there are to choose k things out of N, with repetition or without.

    Args:
      N, k: numbers; integers are taken as floats.
      repetition: whether a thing may be chosen more than once.

    Returns:
      an array of the shape of the arguments broadcast together.

    Reference: DLMF §26.3.
    """
    N, k = promote_args_inexact("comb", N, k)
    if repetition:
        nothing = logical_and(equal(N, 0), equal(k, 0))
        return choose_elements(nothing, 1, comb(choose_elements(nothing, 0, subtract(add(N, k), 1)), k))
    # Outside, and for NaN, there are no ways.
    inside = logical_and(logical_and(greater_equal(N, k), greater_equal(k, 0)), greater_equal(N, 0))
    N, k = choose_elements(inside, N, 1), choose_elements(inside, k, 0)
    value = lax.exp(lax.neg(add(betaln(add(1, subtract(N, k)), add(1, k)), lax.log(add(N, 1)))))
    whole = logical_and(equal(N, lax.round(N)), equal(k, lax.round(k)))
    # Rounding repairs the value alone, not the slope.
    repair = lax.stop_gradient(subtract(lax.round(value), value))
    value = add(value, choose_elements(logical_and(whole, lax.is_finite(value)), repair, 0))
    return choose_elements(inside, value, 0.0)
