"""Special functions."""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from styrax.nn.exponentials import logsumexp

from .bessel_functions import i0, i0e, i1, i1e
from .factorials import (
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from .logarithms import boxcox, boxcox1p, entr, expit, kl_div, log_softmax, logit, rel_entr, softmax, xlog1py, xlogy
from .normal_integrals import erf, erfc, erfcinv, erfinv, log_ndtr, ndtr, ndtri

if TYPE_CHECKING:  # the same names for type checkers and editors
    from .integrals import dawsn, erfcx, exp1, expi, expn, fresnel, owens_t, sici, spence, wofz
    from .legendre import lpmn, lpmn_values
    from .series import bernoulli, bessel_jn, hyp1f1, hyp2f1, sph_harm_y

_later = {
    "lpmn": "legendre", "lpmn_values": "legendre",
    "bernoulli": "series", "bessel_jn": "series", "hyp1f1": "series",
    "hyp2f1": "series", "sph_harm_y": "series",
    "dawsn": "integrals", "erfcx": "integrals", "exp1": "integrals",
    "expi": "integrals", "expn": "integrals", "fresnel": "integrals",
    "owens_t": "integrals", "sici": "integrals", "spence": "integrals",
    "wofz": "integrals",
}


def __getattr__(name: str) -> Any:
    home = _later.get(name)
    if home is None:
        raise AttributeError(f"module 'jax.scipy.special' has no attribute {name!r}")
    if home == "legendre":
        from styrax.core.tracing.source import warn

        warn(f"jax.scipy.special.{name} is deprecated; no replacement is planned.", DeprecationWarning)
    value = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{home}"), name)
    return value
