"""Continuous distributions on the line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.numpy.binary import (
    add,
    divide,
    greater,
    less,
    logaddexp,
    logical_and,
    logical_or,
    multiply,
    power,
    subtract,
)
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import convert, dtype_of
from styrax.scipy import special

from .namespaces import exp_of, inexact, log_of, namespace, number, standardised


# -- normal ----------------------------------------------------------------------------------------------
def _norm_logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the normal density with mean `loc` and deviation `scale`."""
    x, loc, scale = inexact("norm.logpdf", x, loc, scale)
    variance = lax.square(scale)
    normaliser = lax.log(lax.mul(number(2 * np.pi, x), variance))
    quadratic = lax.div(lax.square(lax.sub(x, loc)), variance)
    return lax.div(lax.add(normaliser, quadratic), number(-2, x))


def _norm_cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The normal distribution function."""
    x, loc, scale = inexact("norm.cdf", x, loc, scale)
    return special.ndtr(standardised(x, loc, scale))


def _norm_logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the normal distribution function."""
    x, loc, scale = inexact("norm.logcdf", x, loc, scale)
    return special.log_ndtr(standardised(x, loc, scale))


def _norm_ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the normal distribution."""
    q, loc, scale = inexact("norm.ppf", q, loc, scale)
    return add(multiply(special.ndtri(q), scale), loc)


def _norm_sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 minus the normal distribution function."""
    x, loc, scale = inexact("norm.sf", x, loc, scale)
    return _norm_cdf(lax.neg(x), lax.neg(loc), scale)


def _norm_logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of 1 minus the normal distribution function."""
    x, loc, scale = inexact("norm.logsf", x, loc, scale)
    return _norm_logcdf(lax.neg(x), lax.neg(loc), scale)


def _norm_isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of 1 minus the normal distribution function."""
    q, loc, scale = inexact("norm.isf", q, loc, scale)
    return _norm_ppf(lax.sub(number(1, q), q), loc, scale)


norm = namespace("norm", "The normal distribution.", logpdf=_norm_logpdf,
                 pdf=exp_of(_norm_logpdf, "The normal density."), cdf=_norm_cdf, logcdf=_norm_logcdf, ppf=_norm_ppf,
                 sf=_norm_sf, logsf=_norm_logsf, isf=_norm_isf)


# -- truncated normal ------------------------------------------------------------------------------------
def _log_mass(a: Any, b: Any) -> Array:
    """The logarithm of the probability that a standard normal variable lies between a and b."""
    # Mirrored to the left half, where the logarithms of the distribution function are accurate.
    right = logical_or(lax.le(b, number(0, b)), greater(a, 0))
    flip = lax.bitwise_and(right, greater(a, 0))
    low = choose_elements(flip, lax.neg(b), a)
    high = choose_elements(flip, lax.neg(a), b)
    top, bottom = special.log_ndtr(high), special.log_ndtr(low)
    one_sided = add(top, lax.log1p(lax.neg(lax.exp(lax.min(subtract(bottom, top), number(0, top))))))
    # An interval around zero is the rest of its two tails.
    tails = lax.log1p(lax.neg(add(special.ndtr(low), special.ndtr(lax.neg(high)))))
    return choose_elements(right, one_sided, tails)


def _truncnorm_logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the normal density cut off at a and b deviations."""
    x, a, b, loc, scale = inexact("truncnorm.logpdf", x, a, b, loc, scale)
    value = subtract(_norm_logpdf(x, loc, scale), _log_mass(a, b))
    z = standardised(x, loc, scale)
    value = choose_elements(logical_or(less(z, a), greater(z, b)), -np.inf, value)
    return choose_elements(lax.ge(*_pair(a, b)), np.nan, value)


def _pair(a: Any, b: Any) -> list[Array]:
    return inexact("pair", a, b)


def _truncnorm_logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the distribution function of the normal distribution cut off at a and b deviations."""
    x, a, b, loc, scale = inexact("truncnorm.logcdf", x, a, b, loc, scale)
    z = standardised(x, loc, scale)
    inside = logical_and(greater(z, a), less(z, b))
    safe = choose_elements(inside, z, choose_elements(lax.lt(*_pair(a, b)), multiply(0.5, add(a, b)), a))
    safe = choose_elements(lax.ne(safe, safe), 0.0, safe)
    safe = choose_elements(inside, safe, choose_elements(lax.is_finite(b), b, safe))
    value = subtract(_log_mass(a, safe), _log_mass(a, b))
    value = choose_elements(lax.ge(*_pair(z, b)), 0.0, choose_elements(lax.le(*_pair(z, a)), -np.inf, value))
    return choose_elements(lax.ge(*_pair(a, b)), np.nan, value)


def _truncnorm_logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of 1 minus the distribution function of the normal distribution cut off at a and b deviations."""
    x, a, b, loc, scale = inexact("truncnorm.logsf", x, a, b, loc, scale)
    return _truncnorm_logcdf(lax.neg(x), lax.neg(b), lax.neg(a), lax.neg(loc), scale)


truncnorm = namespace("truncnorm", "The normal distribution cut off at both sides.",
                      {"a": "the lower bound, in deviations from the mean", "b": "the upper bound, likewise"},
                      logpdf=_truncnorm_logpdf,
                      pdf=exp_of(_truncnorm_logpdf, "The density."), logcdf=_truncnorm_logcdf,
                      cdf=exp_of(_truncnorm_logcdf, "The distribution function."), logsf=_truncnorm_logsf,
                      sf=exp_of(_truncnorm_logsf, "1 minus the distribution function."))


# -- uniform, exponential, Laplace -------------------------------------------------------------------------
def _uniform_logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the uniform distribution on [loc, loc + scale]."""
    x, loc, scale = inexact("uniform.logpdf", x, loc, scale)
    value = lax.neg(lax.log(scale))
    return choose_elements(logical_or(greater(x, lax.add(loc, scale)), less(x, loc)), -np.inf, value)


def _uniform_cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The distribution function of the uniform distribution on [loc, loc + scale]."""
    x, loc, scale = inexact("uniform.cdf", x, loc, scale)
    zero, one = number(0, x), number(1, x)
    position = standardised(x, loc, scale)
    return choose_elements(less(x, loc), zero, choose_elements(greater(x, lax.add(loc, scale)), one, position))


def _uniform_ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the uniform distribution on [loc, loc + scale]."""
    q, loc, scale = inexact("uniform.ppf", q, loc, scale)
    outside = logical_or(lax.ne(q, q), logical_or(less(q, 0), greater(q, 1)))
    return choose_elements(outside, np.nan, add(multiply(q, scale), loc))


uniform = namespace("uniform", "The uniform distribution.",
                    {"loc": "the lower end", "scale": "the length of the interval"}, logpdf=_uniform_logpdf,
                    pdf=exp_of(_uniform_logpdf, "The density of the uniform distribution."), cdf=_uniform_cdf,
                    ppf=_uniform_ppf)


def _expon_logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the exponential density."""
    x, loc, scale = inexact("expon.logpdf", x, loc, scale)
    log_scale = lax.log(scale)
    value = lax.neg(lax.add(standardised(x, loc, scale), log_scale))
    return choose_elements(less(x, loc), -np.inf, value)


def _expon_cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The exponential distribution function."""
    x, loc, scale = inexact("expon.cdf", x, loc, scale)
    negative = divide(subtract(loc, x), scale)
    return choose_elements(less(x, loc), number(0, x), lax.neg(lax.expm1(negative)))


def _expon_logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the exponential distribution function."""
    x, loc, scale = inexact("expon.logcdf", x, loc, scale)
    negative = divide(subtract(loc, x), scale)
    return choose_elements(less(x, loc), -np.inf, lax.log1p(lax.neg(lax.exp(negative))))


def _expon_logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of 1 minus the exponential distribution function."""
    x, loc, scale = inexact("expon.logsf", x, loc, scale)
    return choose_elements(less(x, loc), number(0, x), divide(subtract(loc, x), scale))


def _expon_ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the exponential distribution."""
    q, loc, scale = inexact("expon.ppf", q, loc, scale)
    outside = logical_or(lax.ne(q, q), logical_or(less(q, 0), greater(q, 1)))
    return choose_elements(outside, np.nan, subtract(loc, multiply(scale, lax.log1p(lax.neg(q)))))


expon = namespace("expon", "The exponential distribution.", logpdf=_expon_logpdf,
                  pdf=exp_of(_expon_logpdf, "The exponential density."), cdf=_expon_cdf, logcdf=_expon_logcdf,
                  logsf=_expon_logsf, sf=exp_of(_expon_logsf, "1 minus the exponential distribution function."),
                  ppf=_expon_ppf)


def _laplace_logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Laplace density."""
    x, loc, scale = inexact("laplace.logpdf", x, loc, scale)
    distance = lax.div(lax.abs(lax.sub(x, loc)), scale)
    return lax.neg(lax.add(distance, lax.log(lax.mul(number(2, x), scale))))


def _laplace_cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Laplace distribution function."""
    x, loc, scale = inexact("laplace.cdf", x, loc, scale)
    half, zero, one = number(0.5, x), number(0, x), number(1, x)
    z = standardised(x, loc, scale)
    below = lax.le(z, zero)
    lower = lax.mul(half, lax.exp(choose_elements(below, z, zero)))
    upper = lax.sub(one, lax.mul(half, lax.exp(lax.neg(choose_elements(below, zero, z)))))
    return lax.select(below, lower, upper)


laplace = namespace("laplace", "The Laplace distribution.", logpdf=_laplace_logpdf,
                    pdf=exp_of(_laplace_logpdf, "The Laplace density."), cdf=_laplace_cdf)


# -- logistic, Cauchy, Student -------------------------------------------------------------------------------
def _logistic_logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the logistic density."""
    x, loc, scale = inexact("logistic.logpdf", x, loc, scale)
    half = lax.div(standardised(x, loc, scale), number(2, x))
    minus_two = lax.neg(number(2, x))
    return lax.sub(lax.mul(minus_two, logaddexp(half, lax.neg(half))), lax.log(scale))


def _logistic_cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logistic distribution function."""
    x, loc, scale = inexact("logistic.cdf", x, loc, scale)
    return special.expit(standardised(x, loc, scale))


def _logistic_sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 minus the logistic distribution function."""
    x, loc, scale = inexact("logistic.sf", x, loc, scale)
    return special.expit(lax.neg(standardised(x, loc, scale)))


def _logistic_ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the logistic distribution."""
    x, loc, scale = inexact("logistic.ppf", x, loc, scale)
    return lax.add(lax.mul(special.logit(x), scale), loc)


def _logistic_isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of 1 minus the logistic distribution function."""
    x, loc, scale = inexact("logistic.isf", x, loc, scale)
    return lax.add(lax.mul(lax.neg(special.logit(x)), scale), loc)


logistic = namespace("logistic", "The logistic distribution.", logpdf=_logistic_logpdf,
                     pdf=exp_of(_logistic_logpdf, "The logistic density."), cdf=_logistic_cdf, sf=_logistic_sf,
                     ppf=_logistic_ppf, isf=_logistic_isf)


def _cauchy_logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Cauchy density."""
    x, loc, scale = inexact("cauchy.logpdf", x, loc, scale)
    z = standardised(x, loc, scale)
    normaliser = lax.log(lax.mul(number(np.pi, x), scale))
    return lax.neg(lax.add(normaliser, lax.log1p(lax.mul(z, z))))


def _cauchy_cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Cauchy distribution function."""
    x, loc, scale = inexact("cauchy.cdf", x, loc, scale)
    share = lax.mul(lax.div(number(1, x), number(np.pi, x)), lax.atan(standardised(x, loc, scale)))
    return lax.add(number(0.5, x), share)


def _cauchy_sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 minus the Cauchy distribution function."""
    x, loc, scale = inexact("cauchy.sf", x, loc, scale)
    return _cauchy_cdf(lax.neg(x), lax.neg(loc), scale)


def _cauchy_ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Cauchy distribution."""
    q, loc, scale = inexact("cauchy.ppf", q, loc, scale)
    angle = lax.sub(lax.mul(number(np.pi, q), q), number(np.pi / 2, q))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)


def _cauchy_isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of 1 minus the Cauchy distribution function."""
    q, loc, scale = inexact("cauchy.isf", q, loc, scale)
    angle = lax.sub(number(np.pi / 2, q), lax.mul(number(np.pi, q), q))
    return lax.add(lax.mul(lax.tan(angle), scale), loc)


cauchy = namespace("cauchy", "The Cauchy distribution.", logpdf=_cauchy_logpdf,
                   pdf=exp_of(_cauchy_logpdf, "The Cauchy density."), cdf=_cauchy_cdf,
                   logcdf=log_of(_cauchy_cdf, "The logarithm of the Cauchy distribution function."),
                   sf=_cauchy_sf,
                   logsf=log_of(_cauchy_sf, "The logarithm of 1 minus the Cauchy distribution function."),
                   ppf=_cauchy_ppf, isf=_cauchy_isf)


def _t_logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of Student's t distribution with `df` degrees of freedom."""
    x, df, loc, scale = inexact("t.logpdf", x, df, loc, scale)
    z = standardised(x, loc, scale)
    half = lax.div(df, number(2, x))
    more = lax.add(half, number(0.5, x))
    width = lax.mul(lax.mul(lax.mul(scale, scale), number(np.pi, x)), df)
    tmp = lax.div(lax.log(width), number(2, x))
    normaliser = lax.sub(lax.add(lax.lgamma(half), tmp), lax.lgamma(more))
    quadratic = lax.div(lax.mul(z, z), df)
    return lax.neg(lax.add(normaliser, lax.mul(more, lax.log1p(quadratic))))


t = namespace("t", "Student's t distribution.", logpdf=_t_logpdf,
              pdf=exp_of(_t_logpdf, "The density of Student's t distribution with `df` degrees of freedom."))


# -- Gumbel, Pareto --------------------------------------------------------------------------------------
def _gumbel_logpdf(name: str, sign: int) -> Any:
    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        x, loc, scale = inexact(name, x, loc, scale)
        valid = greater(scale, 0)
        z = standardised(x, loc, scale)
        log_scale = special.xlogy(-1, scale)
        if sign > 0:
            value = add(log_scale, lax.neg(lax.add(z, lax.exp(lax.neg(z)))))
        else:
            value = add(log_scale, lax.sub(z, lax.exp(z)))
        return choose_elements(valid, value, np.nan)

    logpdf.__doc__ = "The logarithm of the Gumbel density."
    return logpdf


def _gumbel(name: str, sign: int) -> Any:
    logpdf = _gumbel_logpdf(f"{name}.logpdf", sign)

    def log_tail(x: Any, loc: Any, scale: Any) -> tuple[Array, Array]:
        """-exp(∓z), the logarithm of the probability of one side, and where it is defined."""
        x, loc, scale = inexact(name, x, loc, scale)
        z = standardised(x, loc, scale)
        return lax.neg(lax.exp(lax.neg(z) if sign > 0 else z)), greater(scale, 0)

    def near(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        value, valid = log_tail(x, loc, scale)
        return choose_elements(valid, value, np.nan)

    def far(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        value, valid = log_tail(x, loc, scale)
        # Each form where it keeps all digits; the other gets a number at which its derivative is finite.
        small, middle = lax.gt(value, number(-0.7, value)), number(-1, value)
        by_expm1 = lax.log(lax.neg(lax.expm1(choose_elements(small, value, middle))))
        by_log1p = lax.log1p(lax.neg(lax.exp(choose_elements(small, middle, value))))
        return choose_elements(valid, choose_elements(small, by_expm1, by_log1p), np.nan)

    def far_plain(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        value, valid = log_tail(x, loc, scale)
        return choose_elements(valid, lax.neg(lax.expm1(value)), np.nan)

    def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        p, loc, scale = inexact(name, p, loc, scale)
        inner = lax.neg(lax.log(p)) if sign > 0 else lax.neg(lax.log1p(lax.neg(p)))
        value = lax.mul(number(-sign, p), lax.log(inner))
        return choose_elements(greater(scale, 0), add(multiply(value, scale), loc), np.nan)

    ppf.__doc__ = "The quantiles of the Gumbel distribution."
    near.__doc__ = far.__doc__ = far_plain.__doc__ = "One side of the Gumbel distribution, or its logarithm."
    near_plain = exp_of(near, near.__doc__)
    sides = {"logcdf": near, "cdf": near_plain, "logsf": far, "sf": far_plain} if sign > 0 else {
        "logcdf": far, "cdf": far_plain, "logsf": near, "sf": near_plain}
    return namespace(name, f"The Gumbel distribution of {'maxima' if sign > 0 else 'minima'}.", None, logpdf=logpdf,
                     pdf=exp_of(logpdf, "The Gumbel density."), ppf=ppf, **sides)


gumbel_r = _gumbel("gumbel_r", 1)
gumbel_l = _gumbel("gumbel_l", -1)


def _pareto_logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the Pareto density with exponent b."""
    x, b, loc, scale = inexact("pareto.logpdf", x, b, loc, scale)
    z = standardised(x, loc, scale)
    normaliser = lax.log(lax.div(scale, b))
    value = lax.neg(lax.add(normaliser, lax.mul(lax.add(b, number(1, x)), lax.log(z))))
    return choose_elements(less(x, lax.add(loc, scale)), -np.inf, value)


def _pareto_logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of 1 minus the Pareto distribution function."""
    x, b, loc, scale = inexact("pareto.logsf", x, b, loc, scale)
    z = standardised(x, loc, scale)
    return choose_elements(less(x, lax.add(loc, scale)), number(0, x), lax.neg(lax.mul(b, lax.log(z))))


def _pareto_cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The Pareto distribution function."""
    x, b, loc, scale = inexact("pareto.cdf", x, b, loc, scale)
    z = standardised(x, loc, scale)
    value = lax.sub(number(1, x), power(z, lax.neg(b)))
    return choose_elements(less(x, lax.add(loc, scale)), number(0, x), value)


def _pareto_ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Pareto distribution."""
    q, b, loc, scale = inexact("pareto.ppf", q, b, loc, scale)
    outside = logical_or(lax.ne(q, q), logical_or(less(q, 0), greater(q, 1)))
    value = add(multiply(scale, power(lax.sub(number(1, q), q), lax.neg(divide(1, b)))), loc)
    return choose_elements(outside, np.nan, value)


pareto = namespace("pareto", "The Pareto distribution.", logpdf=_pareto_logpdf,
                   pdf=exp_of(_pareto_logpdf, "The Pareto density."), cdf=_pareto_cdf,
                   logcdf=log_of(_pareto_cdf, "The logarithm of the Pareto distribution function."),
                   logsf=_pareto_logsf, sf=exp_of(_pareto_logsf, "1 minus the Pareto distribution function."),
                   ppf=_pareto_ppf)


# -- gamma, beta, chi-squared --------------------------------------------------------------------------------
def _gamma_logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the gamma distribution of shape a."""
    x, a, loc, scale = inexact("gamma.logpdf", x, a, loc, scale)
    inside = lax.ge(x, loc)
    one = number(1, x)
    y = choose_elements(inside, standardised(x, loc, scale), one)
    kernel = lax.sub(special.xlogy(lax.sub(a, one), y), y)
    normaliser = lax.add(lax.lgamma(a), lax.log(scale))
    return choose_elements(inside, lax.sub(kernel, normaliser), -np.inf)


def _gamma_cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The gamma distribution function."""
    x, a, loc, scale = inexact("gamma.cdf", x, a, loc, scale)
    z = lax.clamp(number(0, x), standardised(x, loc, scale), number(np.inf, x))
    return special.gammainc(a, z)


def _gamma_sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 minus the gamma distribution function."""
    x, a, loc, scale = inexact("gamma.sf", x, a, loc, scale)
    y = standardised(x, loc, scale)
    return choose_elements(less(y, 0), number(1, x), special.gammaincc(a, lax.max(y, number(0, x))))


gamma = namespace("gamma", "The gamma distribution.", logpdf=_gamma_logpdf,
                  pdf=exp_of(_gamma_logpdf, "The density of the gamma distribution of shape a."), cdf=_gamma_cdf,
                  logcdf=log_of(_gamma_cdf, "The logarithm of the gamma distribution function."), sf=_gamma_sf,
                  logsf=log_of(_gamma_sf, "The logarithm of 1 minus the gamma distribution function."))


def _chi2_logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the chi-squared distribution with `df` degrees of freedom."""
    x, df, loc, scale = inexact("chi2.logpdf", x, df, loc, scale)
    one, two = number(1, x), number(2, x)
    y = standardised(x, loc, scale)
    half = lax.div(df, two)
    kernel = lax.sub(lax.mul(lax.sub(half, one), lax.log(y)), lax.div(y, two))
    normaliser = lax.neg(lax.add(lax.lgamma(half), lax.div(lax.mul(lax.log(two), df), two)))
    value = lax.add(lax.sub(normaliser, lax.log(scale)), kernel)
    return choose_elements(less(x, loc), -np.inf, value)


def _chi2_cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The chi-squared distribution function."""
    x, df, loc, scale = inexact("chi2.cdf", x, df, loc, scale)
    two = number(2, scale)
    z = lax.clamp(number(0, x), lax.div(lax.sub(x, loc), lax.mul(scale, two)), number(np.inf, x))
    return special.gammainc(lax.div(df, two), z)


def _chi2_sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 minus the chi-squared distribution function."""
    x, df, loc, scale = inexact("chi2.sf", x, df, loc, scale)
    two = number(2, scale)
    z = lax.clamp(number(0, x), lax.div(lax.sub(x, loc), lax.mul(scale, two)), number(np.inf, x))
    return special.gammaincc(lax.div(df, two), z)


chi2 = namespace("chi2", "The chi-squared distribution.", logpdf=_chi2_logpdf,
                 pdf=exp_of(_chi2_logpdf, "The density of the chi-squared distribution."), cdf=_chi2_cdf,
                 logcdf=log_of(_chi2_cdf, "The logarithm of the chi-squared distribution function."), sf=_chi2_sf,
                 logsf=log_of(_chi2_sf, "The logarithm of 1 minus the chi-squared distribution function."))


def _beta_logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the beta distribution."""
    x, a, b, loc, scale = inexact("beta.logpdf", x, a, b, loc, scale)
    one = number(1, x)
    normaliser = lax.neg(special.betaln(a, b))
    y = standardised(x, loc, scale)
    kernel = lax.add(special.xlogy(lax.sub(a, one), y), special.xlog1py(lax.sub(b, one), lax.neg(y)))
    value = lax.sub(lax.add(normaliser, kernel), lax.log(scale))
    value = choose_elements(logical_or(greater(x, lax.add(loc, scale)), less(x, loc)), -np.inf, value)
    invalid = logical_or(logical_or(lax.le(a, number(0, a)), lax.le(b, number(0, b))), lax.le(scale, number(0, scale)))
    return choose_elements(invalid, np.nan, value)


def _beta_cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The beta distribution function."""
    x, a, b, loc, scale = inexact("beta.cdf", x, a, b, loc, scale)
    return special.betainc(a, b, lax.clamp(number(0, x), standardised(x, loc, scale), number(1, x)))


def _beta_sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """1 minus the beta distribution function."""
    x, a, b, loc, scale = inexact("beta.sf", x, a, b, loc, scale)
    y = lax.clamp(number(0, x), standardised(x, loc, scale), number(1, x))
    return special.betainc(b, a, lax.sub(number(1, x), y))


beta = namespace("beta", "The beta distribution.", logpdf=_beta_logpdf,
                 pdf=exp_of(_beta_logpdf, "The density of the beta distribution."), cdf=_beta_cdf,
                 logcdf=log_of(_beta_cdf, "The logarithm of the beta distribution function."), sf=_beta_sf,
                 logsf=log_of(_beta_sf, "The logarithm of 1 minus the beta distribution function."))


# -- without location and scale --------------------------------------------------------------------------------
def _gennorm_logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density of the generalised normal distribution of shape beta."""
    x, beta = inexact("gennorm.logpdf", x, beta)
    normaliser = lax.sub(lax.log(lax.mul(number(0.5, beta), beta)), lax.lgamma(lax.div(number(1, beta), beta)))
    return lax.sub(normaliser, lax.pow(lax.abs(x), beta))


def _gennorm_cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The distribution function of the generalised normal distribution."""
    x, beta = inexact("gennorm.cdf", x, beta)
    tail = special.gammainc(lax.div(number(1, beta), beta), lax.pow(lax.abs(x), beta))
    return lax.mul(number(0.5, x), lax.add(number(1, x), lax.mul(lax.sign(x), tail)))


gennorm = namespace("gennorm", "The generalised normal distribution.", logpdf=_gennorm_logpdf,
                    pdf=exp_of(_gennorm_logpdf, "The density."), cdf=_gennorm_cdf)


def _vonmises_logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density of the von Mises distribution of concentration kappa."""
    x, kappa = inexact("vonmises.logpdf", x, kappa)
    valid = lax.gt(kappa, number(0, kappa))
    value = lax.sub(lax.mul(kappa, lax.sub(lax.cos(x), number(1, kappa))),
                    lax.log(lax.mul(number(2 * np.pi, kappa), lax.bessel_i0e(kappa))))
    return choose_elements(valid, value, np.nan)


vonmises = namespace("vonmises", "The von Mises distribution.", logpdf=_vonmises_logpdf,
                     pdf=exp_of(_vonmises_logpdf, "The density of the von Mises distribution."))


def _wrapcauchy_logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density of the wrapped Cauchy distribution, on [0, 2π], with 0 < c < 1."""
    x, c = inexact("wrapcauchy.logpdf", x, c)
    valid = lax.bitwise_and(lax.gt(c, number(0, c)), lax.lt(c, number(1, c)))
    inside = lax.bitwise_and(lax.ge(x, number(0, x)), lax.le(x, number(2 * np.pi, x)))
    top = lax.sub(lax.log(lax.sub(number(1, c), lax.mul(c, c))), convert(math.log(2 * math.pi), dtype_of(c)))
    bottom = lax.sub(lax.add(number(1, c), lax.mul(c, c)), lax.mul(lax.mul(number(2, c), c), lax.cos(x)))
    value = lax.sub(top, lax.log(bottom))
    return choose_elements(valid, choose_elements(inside, value, -np.inf), np.nan)


wrapcauchy = namespace("wrapcauchy", "The wrapped Cauchy distribution.", logpdf=_wrapcauchy_logpdf,
                       pdf=exp_of(_wrapcauchy_logpdf, "The density of the wrapped Cauchy distribution."))
