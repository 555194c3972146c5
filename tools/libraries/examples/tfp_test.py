"""TFP on JAX: distributions beside SciPy's, bijectors, joint distributions, HMC, optimizers, special functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from tensorflow_probability.substrates import jax as tfp

tfb, tfd = tfp.bijectors, tfp.distributions
KEY = jax.random.key(0)


def close(x, y, tolerance=1e-3):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


CONTINUOUS = {
    "Normal": (tfd.Normal(1.0, 2.0), scipy.stats.norm(1, 2)),
    "Gamma": (tfd.Gamma(2.0, 3.0), scipy.stats.gamma(2, scale=1 / 3)),
    "Beta": (tfd.Beta(2.0, 3.0), scipy.stats.beta(2, 3)),
    "StudentT": (tfd.StudentT(3.0, 1.0, 2.0), scipy.stats.t(3, 1, 2)),
    "Laplace": (tfd.Laplace(1.0, 2.0), scipy.stats.laplace(1, 2)),
    "Cauchy": (tfd.Cauchy(1.0, 2.0), scipy.stats.cauchy(1, 2)),
    "Gumbel": (tfd.Gumbel(1.0, 2.0), scipy.stats.gumbel_r(1, 2)),
    "LogNormal": (tfd.LogNormal(0.5, 0.7), scipy.stats.lognorm(0.7, scale=np.exp(0.5))),
    "Weibull": (tfd.Weibull(1.5, 2.0), scipy.stats.weibull_min(1.5, scale=2)),
    "HalfNormal": (tfd.HalfNormal(2.0), scipy.stats.halfnorm(scale=2)),
    "TruncatedNormal": (tfd.TruncatedNormal(0.0, 1.0, -1.0, 2.0), scipy.stats.truncnorm(-1, 2)),
    "InverseGamma": (tfd.InverseGamma(3.0, 2.0), scipy.stats.invgamma(3, scale=2)),
    "Uniform": (tfd.Uniform(0.0, 3.0), scipy.stats.uniform(0, 3)),
    "VonMises": (tfd.VonMises(0.5, 2.0), scipy.stats.vonmises(2, 0.5)),
}
DISCRETE = {
    "Poisson": (tfd.Poisson(3.0), scipy.stats.poisson(3)),
    "Binomial": (tfd.Binomial(10.0, probs=0.3), scipy.stats.binom(10, 0.3)),
    "Geometric": (tfd.Geometric(probs=0.3), scipy.stats.geom(0.3, loc=-1)),
    "NegativeBinomial": (tfd.NegativeBinomial(4.0, probs=0.3), scipy.stats.nbinom(4, 0.7)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    ours, theirs = CONTINUOUS[name]
    x = theirs.ppf([0.1, 0.3, 0.5, 0.9]).astype(np.float32)
    close(jax.jit(ours.log_prob)(x), theirs.logpdf(x))
    close(ours.cdf(x), [0.1, 0.3, 0.5, 0.9])
    x = x + 0.1  # away from corners
    slope = (theirs.logpdf(x.astype(np.float64) + 1e-5) - theirs.logpdf(x.astype(np.float64) - 1e-5)) / 2e-5
    close(jax.vmap(jax.grad(ours.log_prob))(x), slope, 1e-2)
    draws = ours.sample(4000, seed=KEY)
    close(np.quantile(draws, [0.1, 0.5, 0.9]), theirs.ppf([0.1, 0.5, 0.9]), 0.15)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    ours, theirs = DISCRETE[name]
    close(ours.log_prob(np.arange(5.0, dtype=np.float32)), theirs.logpmf(np.arange(5)))
    close(ours.sample(4000, seed=KEY).mean(), theirs.mean(), 0.1)


def test_multivariate_distributions():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
    normal = tfd.MultivariateNormalTriL(jnp.array([1.0, -1.0]), jnp.linalg.cholesky(covariance))
    close(normal.log_prob(jnp.zeros(2)), scipy.stats.multivariate_normal([1, -1], covariance).logpdf([0, 0]))
    close(np.cov(normal.sample(5000, seed=KEY).T), covariance, 0.15)
    dirichlet = tfd.Dirichlet(jnp.array([1.0, 2.0, 3.0]))
    close(dirichlet.log_prob(jnp.array([0.2, 0.3, 0.5])), scipy.stats.dirichlet([1, 2, 3]).logpdf([0.2, 0.3, 0.5]))
    close(tfd.Categorical(probs=jnp.array([0.2, 0.8])).entropy(), -(0.2 * np.log(0.2) + 0.8 * np.log(0.8)))
    wishart = tfd.WishartTriL(5.0, jnp.eye(2))
    close(wishart.log_prob(covariance), scipy.stats.wishart(5, np.eye(2)).logpdf(covariance))


def test_mixtures_and_independence():
    parts = tfd.Normal(jnp.array([0.0, 3.0]), 1.0)
    mixture = tfd.MixtureSameFamily(tfd.Categorical(probs=jnp.array([0.3, 0.7])), parts)
    close(mixture.prob(1.0), 0.3 * scipy.stats.norm.pdf(1) + 0.7 * scipy.stats.norm.pdf(-2))
    close(tfd.Independent(tfd.Normal(jnp.zeros(3), 1.0), 1).log_prob(jnp.ones(3)), 3 * scipy.stats.norm.logpdf(1))
    close(tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0)), np.log(2) + 2 / 8 - 0.5)


@pytest.mark.parametrize("bijector", [tfb.Exp(), tfb.Sigmoid(), tfb.Softplus(), tfb.Tanh(), tfb.Scale(3.0),
                                      tfb.Shift(1.0), tfb.SinhArcsinh(0.3, 1.2),
                                      tfb.Chain([tfb.Exp(), tfb.Scale(2.0)])], ids=lambda b: b.name)
def test_bijectors(bijector):
    x = jnp.array([-0.5, 0.1, 0.7])
    y = jax.jit(bijector.forward)(x)
    close(bijector.inverse(y + 0), x)
    slope = jax.vmap(jax.grad(bijector.forward))(x)
    close(bijector.forward_log_det_jacobian(x, 0), np.log(np.abs(slope)))


def test_bijectors_of_vectors():
    x = jnp.array([-0.5, 0.1, 0.7])
    lower = tfb.FillScaleTriL()
    matrix = np.asarray(lower.forward(x))
    assert matrix.shape == (2, 2) and matrix[0, 1] == 0 and (np.diag(matrix) > 0).all()
    simplex = tfb.SoftmaxCentered().forward(x)
    close(simplex.sum(), 1.0)
    close(tfb.SoftmaxCentered().inverse(simplex), x)


def test_transformed_distributions():
    log_normal = tfd.TransformedDistribution(tfd.Normal(0.5, 0.7), tfb.Exp())
    close(log_normal.log_prob(2.0), scipy.stats.lognorm(0.7, scale=np.exp(0.5)).logpdf(2))


def test_joint_distributions():
    @tfd.JointDistributionCoroutineAutoBatched
    def model():
        mean = yield tfd.Normal(0.0, 1.0, name="mean")
        yield tfd.Sample(tfd.Normal(mean, 2.0), 3, name="x")

    draw = model.sample(seed=KEY)
    expected = scipy.stats.norm.logpdf(draw.mean) + scipy.stats.norm(draw.mean, 2).logpdf(draw.x).sum()
    close(model.log_prob(draw), expected)
    assert model.sample(5, seed=KEY).x.shape == (5, 3)


def test_hmc():
    kernel = tfp.mcmc.SimpleStepSizeAdaptation(
        tfp.mcmc.HamiltonianMonteCarlo(lambda x: tfd.Normal(2.0, 0.5).log_prob(x), 0.3, 3), 200)
    draws = jax.jit(lambda key: tfp.mcmc.sample_chain(1000, jnp.zeros(8), kernel=kernel, num_burnin_steps=200,
                                                      trace_fn=None, seed=key))(KEY)
    close((draws.mean(), draws.std()), (2.0, 0.5), 0.1)


def test_optimizers():
    target = jnp.array([1.0, -2.0])

    def loss(x):
        return jnp.sum((x - target) ** 2) + jnp.prod(x - target) ** 2

    found = tfp.optimizer.lbfgs_minimize(lambda x: tfp.math.value_and_gradient(loss, x), jnp.zeros(2))
    assert bool(found.converged)
    close(found.position, target)


def test_special_functions():
    x = np.array([0.3, 1.5, 4.0], np.float32)
    close(tfp.math.bessel_iv_ratio(1.0, x), scipy.special.iv(1, x) / scipy.special.iv(0, x))
    close(tfp.math.lbeta(x, 2.0), scipy.special.betaln(x, 2))
    close(tfp.math.owens_t(x, 0.5), scipy.special.owens_t(x, 0.5))
    close(tfp.math.betainc(2.0, 3.0, jnp.array([0.2, 0.5])), scipy.special.betainc(2, 3, [0.2, 0.5]))


def test_differential_equations():
    solution = tfp.math.ode.DormandPrince(rtol=1e-5, atol=1e-6).solve(
        lambda t, y: -0.5 * y, 0.0, jnp.array([1.0, 2.0]), solution_times=jnp.array([0.5, 1.0]))
    close(solution.states, np.exp(-0.5 * np.array([[0.5], [1.0]])) * np.array([1.0, 2.0]))


def test_gaussian_processes():
    x = np.linspace(0, 1, 5, dtype=np.float32)[:, None]
    y = np.sin(3 * x[:, 0])
    kernel = tfp.math.psd_kernels.ExponentiatedQuadratic(1.0, 0.5)
    at = np.array([[0.33]], np.float32)
    process = tfd.GaussianProcessRegressionModel(kernel, at, x, y, observation_noise_variance=1e-2)

    def gram(a, b):
        return np.exp(-((a - b.T) ** 2) / 2 / 0.25)

    close(process.mean(), gram(at, x) @ np.linalg.solve(gram(x, x) + 1e-2 * np.eye(5), y), 1e-2)
