"""Probability distributions, a module for each, and statistics."""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .descriptive import gaussian_kde, mode, rankdata, sem

_distributions = (
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom",
    "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto",
    "poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
)

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from . import (
        bernoulli,
        beta,
        betabinom,
        binom,
        cauchy,
        chi2,
        dirichlet,
        expon,
        gamma,
        gennorm,
        geom,
        gumbel_l,
        gumbel_r,
        laplace,
        logistic,
        multinomial,
        multivariate_normal,
        nbinom,
        norm,
        pareto,
        poisson,
        t,
        truncnorm,
        uniform,
        vonmises,
        wrapcauchy,
    )

__all__ = (*_distributions, "gaussian_kde", "mode", "rankdata", "sem")


def __getattr__(name: str) -> _Any:
    if name in _distributions:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'jax.scipy.stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
