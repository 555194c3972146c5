"""Special functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styrax.lazy import names as _names
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

_later, __dir__, _ = _names(__name__, {
    "scipy.special.integrals": "dawsn erfcx exp1 expi expn fresnel owens_t sici spence wofz",
    "scipy.special.series": "bernoulli bessel_jn hyp1f1 hyp2f1 sph_harm_y",
})


def __getattr__(name: str) -> Any:
    if name not in ("lpmn", "lpmn_values"):
        return _later(name)
    from styrax.core.tracing.source import warn

    from . import legendre

    warn(f"jax.scipy.special.{name} is deprecated; no replacement is planned.", DeprecationWarning)
    value = globals()[name] = getattr(legendre, name)  # it is said once
    return value
