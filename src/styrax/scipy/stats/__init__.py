"""Probability distributions and statistics."""

from __future__ import annotations

from .densities import (
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
from .mass_functions import (
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
