"""Distributions and descriptive statistics."""

from __future__ import annotations

import importlib
import inspect
import types
from typing import Any

import jax.scipy.stats
import mpmath
import numpy as np
import pytest

import styrax.scipy.stats
from tests.numpy import oracle

TABLE = """
jsp.stats.norm.logpdf(x, 1, 2)
jsp.stats.norm.pdf(x, 1, 2)
jsp.stats.norm.cdf(x, 1, 2)
jsp.stats.norm.sf(x, 1, 2)
jsp.stats.cauchy.logpdf(x, 1, 2)
jsp.stats.cauchy.pdf(x, 1, 2)
jsp.stats.cauchy.ppf(p, 1, 2)
jsp.stats.cauchy.isf(p, 1, 2)
jsp.stats.expon.logpdf(x, .1, 2)
jsp.stats.expon.pdf(x, .1, 2)
jsp.stats.laplace.logpdf(x, 1, 2)
jsp.stats.laplace.pdf(x, 1, 2)
jsp.stats.logistic.logpdf(x, 1, 2)
jsp.stats.logistic.pdf(x, 1, 2)
jsp.stats.logistic.cdf(x, 1, 2)
jsp.stats.logistic.sf(x, 1, 2)
jsp.stats.uniform.logpdf(x, .1, 2)
jsp.stats.uniform.pdf(x, .1, 2)
jsp.stats.beta.cdf(p, 2., 3.)
jsp.stats.beta.logcdf(p, 2., 3.)
jsp.stats.beta.sf(p, 2., 3.)
jsp.stats.beta.logsf(p, 2., 3.)
jsp.stats.gamma.cdf(p, 2.)
jsp.stats.gamma.logcdf(p, 2.)
jsp.stats.chi2.logpdf(p, 3.)
jsp.stats.chi2.pdf(p, 3.)
jsp.stats.pareto.logpdf(p, 2.)
jsp.stats.pareto.pdf(p, 2.)
jsp.stats.pareto.cdf(p, 2.)
jsp.stats.t.logpdf(p, 3.)
jsp.stats.t.pdf(p, 3.)
jsp.stats.gennorm.logpdf(x, 2.)
jsp.stats.gennorm.pdf(x, 2.)
jsp.stats.vonmises.logpdf(x, 2.)
jsp.stats.vonmises.pdf(x, 2.)
jsp.stats.poisson.logpmf(i, 2.)
jsp.stats.poisson.pmf(i, 2.)
jax.grad(lambda z: jsp.stats.norm.logpdf(z).sum())(x)
jsp.stats.expon.pdf(w)
jsp.stats.uniform.pdf(0.5)
jsp.stats.norm.logpdf(i)
jsp.stats.gamma.cdf(u, 2.)
"""

# JAX composes these of other primitives.
VALUES = """
jsp.stats.norm.logcdf(x, 1, 2)
jsp.stats.norm.logsf(x, 1, 2)
jsp.stats.norm.ppf(p, 1, 2)
jsp.stats.norm.isf(p, 1, 2)
jsp.stats.cauchy.cdf(x, 1, 2)
jsp.stats.cauchy.logcdf(x, 1, 2)
jsp.stats.cauchy.sf(x, 1, 2)
jsp.stats.cauchy.logsf(x, 1, 2)
jsp.stats.expon.cdf(x, .1, 2)
jsp.stats.expon.logcdf(x, .1, 2)
jsp.stats.expon.sf(x, .1, 2)
jsp.stats.expon.logsf(x, .1, 2)
jsp.stats.expon.ppf(p, .1, 2)
jsp.stats.laplace.cdf(x, 1, 2)
jsp.stats.logistic.ppf(p, 1, 2)
jsp.stats.logistic.isf(p, 1, 2)
jsp.stats.gumbel_r.logpdf(x, 1, 2)
jsp.stats.gumbel_r.pdf(x, 1, 2)
jsp.stats.gumbel_r.cdf(x, 1, 2)
jsp.stats.gumbel_r.logcdf(x, 1, 2)
jsp.stats.gumbel_r.sf(x, 1, 2)
jsp.stats.gumbel_r.logsf(x, 1, 2)
jsp.stats.gumbel_r.ppf(p, 1, 2)
jsp.stats.gumbel_l.logpdf(x, 1, 2)
jsp.stats.gumbel_l.pdf(x, 1, 2)
jsp.stats.gumbel_l.cdf(x, 1, 2)
jsp.stats.gumbel_l.logcdf(x, 1, 2)
jsp.stats.gumbel_l.sf(x, 1, 2)
jsp.stats.gumbel_l.logsf(x, 1, 2)
jsp.stats.gumbel_l.ppf(p, 1, 2)
jsp.stats.uniform.cdf(x, .1, 2)
jsp.stats.uniform.ppf(p, .1, 2)
jsp.stats.beta.logpdf(p, 2., 3.)
jsp.stats.beta.pdf(p, 2., 3.)
jsp.stats.gamma.logpdf(p, 2.)
jsp.stats.gamma.pdf(p, 2.)
jsp.stats.gamma.sf(p, 2.)
jsp.stats.gamma.logsf(p, 2.)
jsp.stats.chi2.cdf(p, 3.)
jsp.stats.chi2.logcdf(p, 3.)
jsp.stats.chi2.sf(p, 3.)
jsp.stats.chi2.logsf(p, 3.)
jsp.stats.pareto.logcdf(p, 2.)
jsp.stats.pareto.sf(p, 2.)
jsp.stats.pareto.logsf(p, 2.)
jsp.stats.truncnorm.logpdf(p, -1., 2.)
jsp.stats.truncnorm.pdf(p, -1., 2.)
jsp.stats.truncnorm.cdf(p, -1., 2.)
jsp.stats.truncnorm.logcdf(p, -1., 2.)
jsp.stats.truncnorm.sf(p, -1., 2.)
jsp.stats.truncnorm.logsf(p, -1., 2.)
jsp.stats.gennorm.cdf(x, 2.)
jsp.stats.wrapcauchy.logpdf(x, .3)
jsp.stats.wrapcauchy.pdf(x, .3)
jsp.stats.bernoulli.logpmf(i, .3)
jsp.stats.bernoulli.pmf(i, .3)
jsp.stats.bernoulli.cdf(i, .3)
jsp.stats.binom.logpmf(i, 3, .4)
jsp.stats.binom.pmf(i, 3, .4)
jsp.stats.betabinom.logpmf(i, 3, 1., 2.)
jsp.stats.betabinom.pmf(i, 3, 1., 2.)
jsp.stats.geom.logpmf(i, .4)
jsp.stats.geom.pmf(i, .4)
jsp.stats.nbinom.logpmf(i, 3, .4)
jsp.stats.nbinom.pmf(i, 3, .4)
jsp.stats.poisson.cdf(i, 2.)
jsp.stats.bernoulli.ppf(p, .3)
jsp.stats.poisson.entropy(y)
jsp.stats.multinomial.logpmf(i, 3, jnp.array([.2, .3, .5]))
jsp.stats.dirichlet.logpdf(jnp.array([.2, .3, .5]), jnp.array([1., 2, 3]))
jsp.stats.dirichlet.logpdf(jnp.array([.2, .3]), jnp.array([1., 2, 3]))
jsp.stats.mode(i)
jsp.stats.mode(m, axis=1)
jsp.stats.mode(m, axis=None, keepdims=True)
jsp.stats.rankdata(x)
jsp.stats.rankdata(jnp.array([1, 3, 3, 2]))
jsp.stats.rankdata(jnp.array([1, 3, 3, 2]),'min')
jsp.stats.rankdata(jnp.array([1, 3, 3, 2]),'max')
jsp.stats.rankdata(jnp.array([1, 3, 3, 2]),'dense')
jsp.stats.rankdata(jnp.array([1, 3, 3, 2]),'ordinal')
jsp.stats.rankdata(m, axis=1)
jsp.stats.sem(x)
jsp.stats.sem(m, axis=1)
jax.grad(lambda z: jsp.stats.gamma.logpdf(z, 2.).sum())(y)
jax.grad(lambda z: jsp.stats.beta.logpdf(z, 2., 3.).sum())(p)
jsp.stats.norm.cdf(w)
jsp.stats.norm.ppf(0.3)
jsp.stats.poisson.pmf(1, 0.3)
jsp.stats.binom.pmf(1, 3, 0.3)
jsp.stats.truncnorm.logpdf(w, -1., 2.)
jsp.stats.poisson.entropy(40 * p)
"""


def test_values() -> None:
    oracle.check_values(TABLE + VALUES, rtol=1e-4, atol=1e-5)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)


TAILS = """
jsp.stats.gumbel_r.logsf(jnp.array([-2., 0, 1, 10, 30, 80]))
jsp.stats.gumbel_l.logcdf(jnp.array([-80., -10, 0, 2]))
jax.vmap(jax.grad(jsp.stats.gumbel_r.logsf))(jnp.array([-2., 0, 1, 10, 30]))
jax.vmap(jax.grad(jsp.stats.laplace.cdf))(jnp.array([-1., 0, 1, jnp.nan]))
jax.vmap(jax.grad(jsp.stats.uniform.cdf))(jnp.array([-1., 0, 0.5, 1, 2]))
"""


def test_tails_and_derivatives() -> None:
    oracle.check_values(TAILS)


# What has no elements, or NaN, or ties.
EDGES = """
jsp.stats.mode(jnp.array([2., np.nan, 1., np.nan]))
jsp.stats.mode(jnp.array([np.nan, 1.]))
jsp.stats.mode(jnp.array([-0., 0., 1., 1.]))
jsp.stats.mode(jnp.array([[1., np.nan], [np.nan, np.nan]]), axis=1, keepdims=True)
jsp.stats.mode(jnp.array([[3, 1, 1], [3, 2, 0]]), axis=0)
jsp.stats.mode(c)
jsp.stats.mode(b)
jsp.stats.mode(w)
jsp.stats.mode(w, axis=None, keepdims=True)
jsp.stats.mode(jnp.zeros((0, 3)))
jsp.stats.mode(jnp.zeros((3, 0)))
jsp.stats.mode(jnp.zeros((3, 0), int), axis=1, keepdims=True)
jsp.stats.mode(jnp.zeros((0, 0)), axis=None)
jax.vmap(lambda r: jsp.stats.mode(r))(jnp.array([[1., 2, 2], [0, np.nan, np.nan]]))
jax.vmap(jax.grad(lambda r: jsp.stats.mode(r)[0]))(jnp.array([[1., 2, 2], [0, 4, 1]]))
jsp.stats.rankdata(jnp.array([np.nan, 1.]))
jsp.stats.rankdata(jnp.array([[np.nan, 1.], [2., 0.]]), 'ordinal', axis=1)
jsp.stats.rankdata(jnp.array([[np.nan, 1.], [2., 0.]]), 'dense')
jsp.stats.rankdata(jnp.zeros((0, 3)), axis=0)
jsp.stats.rankdata(c)
"""


def test_edges() -> None:
    oracle.check_values(EDGES)


NUMBERS = {"x": 0.4, "k": 1, "q": 0.3, "p": 0.3, "n": 3, "a": 0.2, "b": 2.0, "c": 0.5, "df": 3.0, "mu": 2.0,
           "kappa": 1.0, "beta": 1.5, "loc": 0.0, "scale": 1.0, "mean": 0.0, "cov": 1.0}


@pytest.mark.parametrize("distribution", sorted(set(styrax.scipy.stats._distributions) - {"dirichlet", "multinomial"}))
def test_weak_types(distribution: str) -> None:
    """Of functions of Python's numbers and of weakly typed scalars, with and without a location and a scale."""
    ours, theirs = (getattr(j.scipy.stats, distribution) for j in (styrax, jax))
    for name, function in vars(theirs).items():
        if not isinstance(function, types.FunctionType):
            continue
        names = [n for n in inspect.signature(function).parameters if n in NUMBERS]
        for given in (names, [n for n in names if n not in ("loc", "scale")]):
            args, f = [NUMBERS[n] for n in given], getattr(ours, name)
            want = jax.eval_shape(lambda args=args, f=function: f(*args))
            for got in (f(*args), styrax.jit(f)(*args), f(*map(styrax.jit(lambda x: x), args))):
                assert (got.dtype, got.shape, got.weak_type) == (want.dtype, want.shape, want.weak_type), name


@pytest.mark.parametrize("x64", [False, True])
def test_lower_tail_of_cauchy(x64: bool) -> None:
    """Without cancellation, and never negative."""
    eps = np.finfo(np.float64 if x64 else np.float32).eps
    z = [-np.inf, -1e10, -3.0, 0.0, 2.0, 1e10, np.inf]
    cauchy = [0.0 if x == -np.inf else float(mpmath.atan2(1, -x) / mpmath.pi) for x in z[:-1]] + [1.0]
    with styrax.enable_x64(x64):
        found = styrax.jit(styrax.scipy.stats.cauchy.cdf)(np.array(z))
        np.testing.assert_allclose(found, cauchy, rtol=4 * eps)
        np.testing.assert_allclose(styrax.scipy.stats.cauchy.sf(-np.array(z)), cauchy, rtol=4 * eps)
        assert styrax.jit(styrax.scipy.stats.cauchy.logcdf)(-np.inf) == -np.inf


def test_modes_of_many_elements() -> None:
    x = np.random.default_rng(0).integers(0, 1000, 200_000)
    value, count = styrax.scipy.stats.mode(x)
    counts = np.bincount(x)
    assert value == counts.argmax() and count == counts.max()


def test_distributions_are_modules() -> None:
    ours, theirs = styrax.scipy.stats, jax.scipy.stats
    names = {n for n in dir(theirs) if isinstance(getattr(theirs, n), types.ModuleType) and not n.startswith("_")}
    assert names <= set(dir(ours))
    for name in names:
        distribution = importlib.import_module(f"styrax.scipy.stats.{name}")
        assert distribution is getattr(ours, name)
        for function in (n for n, f in vars(getattr(theirs, name)).items() if isinstance(f, types.FunctionType)):
            assert getattr(distribution, function).__module__ == distribution.__name__, f"{name}.{function}"
    with pytest.raises(AttributeError, match="nothing"):
        ours.nothing  # noqa: B018


def test_density_estimates_are_pytrees() -> None:
    def found(package: Any) -> Any:
        estimate = package.scipy.stats.gaussian_kde(package.numpy.arange(5.0))
        at = package.numpy.array([1.0, 2.5])
        return (str(package.tree.structure(estimate)), repr(estimate).split("dataset=")[1].split(", weights")[0],
                package.jit(lambda k: k.evaluate(at))(estimate), package.jit(lambda k: k)(estimate).logpdf(at))

    for ours, theirs in zip(found(styrax), found(jax), strict=True):
        if isinstance(theirs, str):
            assert ours == theirs
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


REFUSED: dict[str, Any] = {
    "width": lambda m, k: k.set_bandwidth("scott"),
    "box": lambda m, k: k.integrate_box(m.numpy.zeros(2), m.numpy.ones(2)),
    "mean": lambda m, k: k.integrate_gaussian(m.numpy.zeros(3), m.numpy.eye(2)),
    "covariance": lambda m, k: k.integrate_gaussian(m.numpy.zeros(2), m.numpy.eye(3)),
    "list": lambda m, k: k([[1.0], [2.0]]),
    "list of points of a logarithm": lambda m, k: k.logpdf([[1.0], [2.0]]),
    "list of weights": lambda m, k: m.scipy.stats.gaussian_kde(m.numpy.arange(2.0), weights=[1.0, 2.0]),
    "complex points": lambda m, k: k.pdf(m.numpy.ones(2, complex)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_density_estimates_refuse(name: str) -> None:
    data = np.random.default_rng(3).standard_normal((2, 9)).astype(np.float32)
    with pytest.raises((NotImplementedError, TypeError, ValueError)) as theirs:
        REFUSED[name](jax, jax.scipy.stats.gaussian_kde(data))
    with pytest.raises(theirs.type) as ours:
        REFUSED[name](styrax, styrax.scipy.stats.gaussian_kde(data))
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(("data", "weights", "at"), [
    ("float32", "float64", "float32"), ("float64", "float32", "float32"), ("int32", "float64", "float32"),
    ("bfloat16", "float32", "bfloat16"), ("float32", "int32", "float64"), ("float32", "float32", "float32"),
])
def test_density_estimates_have_the_dtype_of_all_arguments(data: str, weights: str, at: str) -> None:
    def found(package: Any) -> Any:
        with package.enable_x64(True):
            jnp = package.numpy
            estimate = package.scipy.stats.gaussian_kde(jnp.arange(6).astype(data) ** 2,
                                                        weights=jnp.arange(1, 7).astype(weights))
            return (estimate.dataset, estimate.weights, estimate.neff, estimate.covariance,
                    estimate(jnp.arange(3).astype(at)), estimate.resample(package.random.key(0), (3,)))

    for ours, theirs in zip(found(styrax), found(jax), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", ["mode", "rankdata"])
@pytest.mark.parametrize(("policy", "phrase"), [
    ("omit", "Logic for `nan_policy` of omit is not implemented"),
    ("raise", "we cannot know whether `x` contains nans"),
])
def test_policies_for_nan(name: str, policy: str, phrase: str) -> None:
    for package in (jax, styrax):
        with pytest.raises(NotImplementedError, match=phrase):
            getattr(package.scipy.stats, name)(np.ones(3, np.float32), nan_policy=policy)


def test_lists_of_counts_are_refused() -> None:
    for package in (jax, styrax):
        with pytest.raises(TypeError, match="requires ndarray or scalar arguments, got <class 'list'> at position 0"):
            package.scipy.stats.betabinom.logpmf([1.0, 2.0], 3, 1.0, 2.0)
