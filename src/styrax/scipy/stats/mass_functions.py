"""Discrete distributions, and distributions of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    not_equal,
    subtract,
)
from styrax.numpy.broadcasting import choose_elements, spread_all
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import arrays, convert, dtype_of, promote_args, promote_dtypes_inexact, typed
from styrax.numpy.reductions import max as max_
from styrax.numpy.reductions import min as min_
from styrax.numpy.reductions import sum as sum_
from styrax.numpy.rounding import floor, round
from styrax.numpy.shaping import diagonal
from styrax.scipy import special

from .namespaces import exp_of, inexact, namespace, number


def _probability(p: Any) -> Any:
    """Where p lies between 0 and 1."""
    return logical_and(greater_equal(p, 0), less_equal(p, 1))


def _whole(k: Any) -> Array:
    return not_equal(round(k), k)


# -- Bernoulli, binomial and their kin ---------------------------------------------------------------------
def _bernoulli_logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k - loc, 0 or 1, with probability p of 1."""
    k, p, loc = inexact("bernoulli.logpmf", k, p, loc)
    zero, one = number(0, k), number(1, k)
    x = lax.sub(k, loc)
    value = add(special.xlogy(x, p), special.xlog1py(lax.sub(one, x), lax.neg(p)))
    return choose_elements(logical_or(lax.lt(x, zero), lax.gt(x, one)), -np.inf, value)


def _bernoulli_cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The distribution function."""
    k, p = inexact("bernoulli.cdf", k, p)
    # Steps at 0 and 1; comparisons with NaN are false.
    failed, either = greater_equal(k, 0), greater_equal(k, 1)
    one, zero = number(1, k), number(0, k)
    value = choose_elements(either, one, choose_elements(failed, lax.sub(one, p), zero))
    return choose_elements(logical_and(_probability(p), equal(k, k)), value, np.nan)


def _bernoulli_ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The quantiles."""
    q, p = inexact("bernoulli.ppf", q, p)
    value = choose_elements(greater(q, subtract(1, p)), number(1, q), number(0, q))
    return choose_elements(logical_and(_probability(q), _probability(p)), value, np.nan)


bernoulli = namespace("bernoulli", "The Bernoulli distribution.", logpmf=_bernoulli_logpmf,
                      pmf=exp_of(_bernoulli_logpmf, "The probability of k - loc, 0 or 1, with probability p of 1."),
                      cdf=_bernoulli_cdf, ppf=_bernoulli_ppf)


def _binom_logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k - loc successes in n trials."""
    k, n, p, loc = inexact("binom.logpmf", k, n, p, loc)
    y = lax.sub(k, loc)
    ways = lax.sub(
        special.gammaln(add(n, 1)), lax.add(special.gammaln(add(y, 1)), special.gammaln(add(lax.sub(n, y), 1)))
    )
    value = add(ways, add(special.xlogy(y, p), special.xlog1py(lax.sub(n, y), lax.neg(p))))
    value = choose_elements(equal(n, 0.0), choose_elements(equal(y, 0.0), 0.0, -np.inf), value)
    return choose_elements(logical_or(lax.lt(*promote_args("pmf", k, loc)), greater(y, n)), -np.inf, value)


binom = namespace("binom", "The binomial distribution.", logpmf=_binom_logpmf,
                  pmf=exp_of(_binom_logpmf, "The probability of k - loc successes in n trials."))


def _betabinom_logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k - loc successes in n trials whose probability is beta distributed."""
    weak = all(typed(x)[1] for x in (k, n, a, b, loc))
    k, n, a, b, loc = inexact("betabinom.logpmf", k, n, a, b, loc)
    hits = subtract(floor(k), loc)
    misses = subtract(n, hits)
    # C(n, k)·B(k + a, n - k + b) / B(a, b), with C(n, k) = 1 / ((n + 1)·B(n - k + 1, k + 1)).
    value = subtract(special.betaln(add(hits, a), add(misses, b)), special.betaln(a, b))
    value = subtract(value, add(lax.log1p(n), special.betaln(add(misses, 1), add(hits, 1))))
    value = choose_elements(logical_and(greater_equal(hits, 0), greater_equal(misses, 0)), value, -np.inf)
    defined = logical_and(greater_equal(n, 0), logical_and(greater(a, 0), greater(b, 0)))
    out = choose_elements(defined, value, np.nan)
    return out if weak else lax.convert_element_type(out, out.dtype)


betabinom = namespace("betabinom", "The beta-binomial distribution.", logpmf=_betabinom_logpmf,
                      pmf=exp_of(_betabinom_logpmf, "The probability of k - loc successes in n trials."))


def _geom_logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability that the first success is trial k - loc."""
    k, p, loc = inexact("geom.logpmf", k, p, loc)
    zero, one = number(0, k), number(1, k)
    x = lax.sub(k, loc)
    value = add(special.xlog1py(lax.sub(x, one), lax.neg(p)), lax.log(p))
    return choose_elements(lax.le(x, zero), -np.inf, value)


geom = namespace("geom", "The geometric distribution.", logpmf=_geom_logpmf,
                 pmf=exp_of(_geom_logpmf, "The probability that the first success is trial k - loc."))


def _nbinom_logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k - loc failures before the n-th success."""
    k, n, p, loc = inexact("nbinom.logpmf", k, n, p, loc)
    one = number(1, k)
    y = lax.sub(k, loc)
    ways = lax.sub(lax.sub(special.gammaln(lax.add(y, n)), special.gammaln(n)), special.gammaln(lax.add(y, one)))
    kernel = lax.add(special.xlogy(n, p), special.xlogy(y, lax.sub(one, p)))
    return choose_elements(lax.lt(*promote_args("pmf", k, loc)), -np.inf, lax.add(ways, kernel))


nbinom = namespace("nbinom", "The negative binomial distribution.",
                   {"n": "numbers of successes", "k": "failures before the last of them"}, logpmf=_nbinom_logpmf,
                   pmf=exp_of(_nbinom_logpmf, "The probability of k - loc failures before the n-th success."))


# -- Poisson -----------------------------------------------------------------------------------------------
def _poisson_logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k - loc events where mu are expected."""
    k, mu, loc = inexact("poisson.logpmf", k, mu, loc)
    zero = number(0, k)
    x = lax.sub(k, loc)
    value = subtract(subtract(special.xlogy(x, mu), special.gammaln(add(x, 1))), mu)
    return choose_elements(logical_or(lax.lt(x, zero), _whole(k)), -np.inf, value)


def _poisson_cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The distribution function."""
    k, mu, loc = inexact("poisson.cdf", k, mu, loc)
    x = lax.sub(k, loc)
    value = special.gammaincc(add(floor(x), number(1, k)), mu)
    return choose_elements(lax.lt(x, number(0, k)), number(0, k), value)


def _poisson_entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats; it does not depend on `loc`."""
    mu, loc = inexact("poisson.entropy", mu, loc)
    mu = asarray(mu)
    flat = lax.reshape(mu, (mu.size,))
    # Summed over the outcomes that matter for small means, by its expansion for large ones.
    cut = 25.0
    count = 120
    k = lax.expand_dims(lax.iota(flat.dtype, count), (0,))
    small = lax.expand_dims(lax.min(flat, number(cut, flat)), (1,))
    k, small = spread_all((k, small))
    log_p = subtract(subtract(special.xlogy(k, small), small), lax.lgamma(add(k, 1)))
    by_sum = lax.neg(sum_(multiply(lax.exp(log_p), choose_elements(less(log_p, -1e30), 0.0, log_p)), axis=1))
    large = lax.max(flat, number(cut, flat))
    r = divide(1, large)
    expansion = subtract(multiply(0.5, lax.log(multiply(2 * np.pi * np.e, large))), multiply(r, add(
        1 / 12, multiply(r, add(1 / 24, multiply(r, 19 / 360))))))
    out = choose_elements(less(flat, cut), by_sum, expansion)
    out = choose_elements(equal(flat, 0), 0.0, choose_elements(less(flat, 0), np.nan, out))
    return add(lax.reshape(out, mu.shape), multiply(0, loc))


poisson = namespace("poisson", "The Poisson distribution.", logpmf=_poisson_logpmf,
                    pmf=exp_of(_poisson_logpmf, "The probability of k - loc events where mu are expected."),
                    cdf=_poisson_cdf, entropy=_poisson_entropy)


# -- vectors -----------------------------------------------------------------------------------------------
def _multinomial_logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of counts x in n trials with probabilities p, along the last axis."""
    (p,) = promote_dtypes_inexact(*arrays("multinomial.logpmf", p))
    x, n = arrays("multinomial.logpmf", x, n)
    p = asarray(p)
    if not dtypes.issubdtype(dtype_of(x), np.integer):
        raise ValueError(f"x and n must be of integer type; got x.dtype={dtype_of(x)}, n.dtype={dtype_of(n)}")
    counts, trials = convert(asarray(x), p.dtype), convert(n, p.dtype)
    terms = subtract(special.xlogy(counts, p), special.gammaln(add(counts, 1)))
    value = add(special.gammaln(add(trials, 1)), sum_(terms, axis=-1))
    return choose_elements(equal(sum_(asarray(x)), n), value, -np.inf)


multinomial = namespace("multinomial", "The multinomial distribution.", logpmf=_multinomial_logpmf,
                        pmf=exp_of(_multinomial_logpmf, "The probability of counts x in n trials."))


def _dirichlet_logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density of the Dirichlet distribution at points along the first axis of x."""
    x, alpha = promote_dtypes_inexact(*arrays("dirichlet.logpdf", x, alpha))
    x, alpha = asarray(x), asarray(alpha)
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError("`x` must have either the same number of entries as `alpha` or one entry fewer; got "
                         f"x.shape={x.shape}, alpha.shape={alpha.shape}")
    one = number(1, x)
    if x.shape[0] != alpha.shape[0]:
        last = lax.expand_dims(lax.sub(one, sum_(x, axis=0)), (0,))
        x = lax.concatenate([x, last], 0)
    normaliser = lax.sub(sum_(special.gammaln(alpha)), special.gammaln(sum_(alpha)))
    column = lax.expand_dims(alpha, tuple(range(1, x.ndim))) if x.ndim > 1 else alpha
    value = subtract(sum_(special.xlogy(lax.sub(column, one), x), axis=0), normaliser)
    total = sum_(x, axis=0)
    inside = lax.bitwise_and(min_(x, axis=0) >= 0, lax.bitwise_and(max_(x, axis=0) <= 1,
                                                                   lax.abs(subtract(total, 1)) < 1e-6))
    return choose_elements(inside, value, -np.inf)


dirichlet = namespace("dirichlet", "The Dirichlet distribution.", logpdf=_dirichlet_logpdf,
                      pdf=exp_of(_dirichlet_logpdf, "The density of the Dirichlet distribution."))


def _multivariate_normal_logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density of the normal distribution of vectors, along the last axis of x.

    Raises NotImplementedError for `allow_singular`, ValueError for shapes that do not fit.
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = (asarray(v) for v in promote_dtypes_inexact(*arrays("multivariate_normal.logpdf", x, mean, cov)))
    if mean.ndim == 0:
        return multiply(-0.5, add(divide(lax.square(subtract(x, mean)), cov), add(np.log(2 * np.pi).astype(x.dtype),
                                                                                 lax.log(cov))))
    n = mean.shape[-1]
    if cov.ndim == 0:
        y = subtract(x, mean)
        squares = divide(_inner(y, y), cov)
        return subtract(multiply(-0.5, squares), multiply(n / 2, add(np.log(2 * np.pi).astype(x.dtype), lax.log(cov))))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal.logpdf got incompatible shapes: mean {mean.shape}, cov {cov.shape}")
    from styrax.lax import linalg as lax_linalg

    factor = lax_linalg.cholesky(cov)
    difference = subtract(x, mean)
    batch = lax.broadcast_shapes(difference.shape[:-1], cov.shape[:-2])
    factor_ = lax.broadcast_in_dim(factor, (*batch, n, n), tuple(range(len(batch) - (cov.ndim - 2), len(batch) + 2)))
    column = lax.broadcast_in_dim(difference, (*batch, n, 1), tuple(range(len(batch) - (difference.ndim - 1),
                                                                          len(batch) + 1)))
    y = lax.squeeze(lax_linalg.triangular_solve(factor_, column, left_side=True, lower=True), (len(batch) + 1,))
    logdet = sum_(lax.log(diagonal(factor, axis1=-1, axis2=-2)), axis=-1)
    half = multiply(-0.5, _inner(y, y))
    return subtract(subtract(half, multiply(n / 2, np.log(2 * np.pi).astype(x.dtype))), logdet)


def _multivariate_normal_pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density of the normal distribution of vectors, along the last axis of x."""
    return lax.exp(_multivariate_normal_logpdf(x, mean, cov))


def _inner(x: Any, y: Any) -> Array:
    return sum_(lax.mul(x, y), axis=-1)


multivariate_normal = namespace("multivariate_normal", "The normal distribution of vectors.",
                                logpdf=_multivariate_normal_logpdf,
                                pdf=_multivariate_normal_pdf)
