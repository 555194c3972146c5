"""Random numbers that keys determine: the same key gives the same numbers, everywhere and always.

A key is made by `key`, and used once: `split` makes new ones from it. Every function here is a pure
function of its key, so that it can be traced, mapped and compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..lazy import names as _names

_HOMES = {
    "lax.random_bits.key_arrays": "Key:PRNGKeyArray",
    "random.continuous": (
        "cauchy exponential gumbel laplace logistic lognormal maxwell normal pareto rayleigh triangular "
        "truncated_normal wald weibull_min"),
    "random.discrete": "bernoulli binomial categorical choice geometric multinomial permutation poisson rademacher",
    "random.gammas": (
        "ball beta chisquare dirichlet double_sided_maxwell f gamma generalized_normal loggamma random_gamma_p t"),
    "random.keys": "PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data",
    "random.multivariate": "multivariate_normal orthogonal",
    "random.uniforms": "bits randint uniform",
}

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from styrax.lax.random_bits.key_arrays import PRNGKeyArray as Key

    from .continuous import (
        cauchy,
        exponential,
        gumbel,
        laplace,
        logistic,
        lognormal,
        maxwell,
        normal,
        pareto,
        rayleigh,
        triangular,
        truncated_normal,
        wald,
        weibull_min,
    )
    from .discrete import (
        bernoulli,
        binomial,
        categorical,
        choice,
        geometric,
        multinomial,
        permutation,
        poisson,
        rademacher,
    )
    from .gammas import (
        ball,
        beta,
        chisquare,
        dirichlet,
        double_sided_maxwell,
        f,
        gamma,
        generalized_normal,
        loggamma,
        random_gamma_p,
        t,
    )
    from .keys import (
        PRNGKey,
        clone,
        fold_in,
        key,
        key_data,
        key_dtype,
        key_impl,
        split,
        wrap_key_data,
    )
    from .multivariate import multivariate_normal, orthogonal
    from .uniforms import bits, randint, uniform

    __all__ = [
        "Key", "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare",
        "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma",
        "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_dtype", "key_impl", "laplace",
        "loggamma", "logistic", "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal", "orthogonal",
        "pareto", "permutation", "poisson", "rademacher", "randint", "random_gamma_p", "rayleigh", "split", "t",
        "triangular", "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data",
    ]
else:
    __getattr__, __dir__, __all__ = _names(__name__, _HOMES)
