"""Probability distributions and statistics."""

from __future__ import annotations

from .continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    gamma,
    gennorm,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    norm,
    pareto,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from .descriptive import gaussian_kde, mode, rankdata, sem
from .discrete import (
    bernoulli,
    betabinom,
    binom,
    dirichlet,
    geom,
    multinomial,
    multivariate_normal,
    nbinom,
    poisson,
)
