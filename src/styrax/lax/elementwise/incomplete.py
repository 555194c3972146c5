"""Incomplete gamma and beta functions: series and continued fractions, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from styrax.core.programs import factors, rules
from styrax.transforms import ad

from ..shaping.filling import full_like
from .algorithms import Number, ScalarOps
from .arithmetic import add, mul, neg, sub
from .families import scalar_like
from .functions import exp, log, log1p
from .special import lgamma, on_arrays, special_function

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

# -- incomplete gamma functions ----------------------------------------------------------------------------

_MAX_STEPS = 1e6  # a series near x = a takes about 9 √a steps


def _series(a: Number, x: Number, active: Number, derivative: bool) -> tuple[Number, Number]:
    """The sum of `x**n / ((a+1) … (a+n))` and its derivative by `a`."""
    epsilon = a.ops.tolerance(a.value)
    one, zero = a.like(1.0), a.like(0.0)

    def going(n: Number, c: Number, total: Number, dc: Number, dtotal: Number, on: Number) -> Number:
        return on

    def step(n: Number, c: Number, total: Number, dc: Number, dtotal: Number, on: Number) -> list[Number]:
        n = n + 1.0
        ratio = x / (a + n)
        dc = dc * ratio - c * ratio / (a + n) if derivative else dc
        c = c * ratio
        total = total + c
        dtotal = dtotal + dc if derivative else dtotal
        more = c > total * epsilon
        if derivative:
            more = more | (dc.abs() > dtotal.abs() * epsilon)
        return [n, c, total, dc, dtotal, more & (n < _MAX_STEPS)]

    _, _, total, _, dtotal, _ = a.ops.loop(going, step, [zero, one, one, zero, zero, active])
    return total, dtotal


def _fraction(a: Number, x: Number, active: Number, derivative: bool) -> tuple[Number, Number]:
    """The continued fraction of the upper incomplete gamma function, without its prefactor, and its
    derivative by `a`."""
    epsilon, huge = a.ops.tolerance(a.value), 1.0 / a.ops.epsilon(a.value)
    one, zero = a.like(1.0), a.like(0.0)
    y, z = 1.0 - a, x - a + 2.0
    p1, q1 = x + 1.0, z * x
    state = [
        zero, y, z, p1, one, q1, x, p1 / q1,
        # Derivatives by a of p and q, now and one step before, and of the quotient.
        zero, zero, -x, zero, (p1 * x) / (q1 * q1), active,
    ]  # fmt: skip

    def going(*s: Number) -> Number:
        return s[-1]

    def step(*s: Number) -> list[Number]:
        c, y, z, p1, p2, q1, q2, value, dp1, dp2, dq1, dq2, dvalue, _ = s
        c, y, z = c + 1.0, y + 1.0, z + 2.0
        yc = y * c
        p, q = p1 * z - p2 * yc, q1 * z - q2 * yc
        dp = dp1 * z - p1 - dp2 * yc + p2 * c if derivative else dp1
        dq = dq1 * z - q1 - dq2 * yc + q2 * c if derivative else dq1
        usable = q.differs(0.0)
        new = usable.where(p / q, value)
        change = ((new - value) / new).abs()
        dnew = usable.where((dp - new * dq) / q, dvalue) if derivative else dvalue
        more = change > epsilon
        if derivative:
            more = more | ((dnew - dvalue).abs() > dnew.abs() * epsilon)
        more = (more | ~usable) & (c < _MAX_STEPS)
        # Numerators and denominators grow without bound; only their ratio counts.
        shrink = (p.abs() > huge).where(p.like(1.0 / huge), 1.0)
        p, p1, q, q1 = p * shrink, p1 * shrink, q * shrink, q1 * shrink
        dp, dp1, dq, dq1 = dp * shrink, dp1 * shrink, dq * shrink, dq1 * shrink
        return [c, y, z, p, p1, q, q1, new, dp, dp1, dq, dq1, dnew, more]

    out = a.ops.loop(going, step, state)
    return out[7], out[12]


class _Regions:
    """Where which expansion of the incomplete gamma functions is used, with safe arguments for each."""

    def __init__(self, a: Number, x: Number):
        invalid = (x < 0.0) | (a < 0.0) | x.differs(x) | a.differs(a) | (a.equals(0.0) & x.equals(0.0))
        infinite_x, infinite_a = x.equals(float("inf")), a.equals(float("inf"))
        self.no_shape = a.equals(0.0)
        special = invalid | infinite_x | infinite_a | x.equals(0.0) | self.no_shape
        self.invalid, self.infinite_x, self.infinite_a = invalid, infinite_x, infinite_a
        self.zero = x.equals(0.0)
        upper = (x > 1.0) & (x > a)
        self.upper = upper
        self.use_series = ~special & ~upper
        self.use_fraction = ~special & upper
        # Arguments that no expansion is used for are replaced by harmless ones.
        self.a = special.where(1.0, a)
        self.x = special.where(1.0, x)
        self.series_x = upper.where(1.0, self.x)
        self.fraction_x = self.use_fraction.where(self.x, 4.0)
        self.fraction_a = self.use_fraction.where(self.a, 1.0)

    def prefactor(self) -> Number:
        return (self.a * self.x.log() - self.x - self.a.lgamma()).exp()

    def limits(
        self, value: Number, at_zero: float, at_infinite_x: float, at_infinite_a: float, at_zero_a: float
    ) -> Number:
        value = self.no_shape.where(at_zero_a, value)
        value = self.infinite_a.where(at_infinite_a, value)
        value = self.infinite_x.where(at_infinite_x, value)
        value = self.zero.where(at_zero, value)
        return self.invalid.where(float("nan"), value)


def _expansion(a: Number, x: Number) -> list[Number]:
    """The series or the fraction, whichever is used."""
    r = _Regions(a, x)
    total, _ = _series(r.a, r.series_x, r.use_series, False)
    fraction, _ = _fraction(r.fraction_a, r.fraction_x, r.use_fraction, False)
    return [r.upper.where(fraction, total)]


def _expansion_and_slope(a: Number, x: Number) -> list[Number]:
    """The same with its derivative by `a`."""
    r = _Regions(a, x)
    total, dtotal = _series(r.a, r.series_x, r.use_series, True)
    fraction, dfraction = _fraction(r.fraction_a, r.fraction_x, r.use_fraction, True)
    return [r.upper.where(fraction, total), r.upper.where(dfraction, dtotal)]


def _lower(r: _Regions, value: Number) -> Number:
    both = r.infinite_a & r.infinite_x
    return (both & ~r.invalid).where(1.0, r.limits(value, 0.0, 1.0, 0.0, 1.0))


def _upper(r: _Regions, value: Number) -> Number:
    both = r.infinite_a & r.infinite_x
    return (both & ~r.invalid).where(0.0, r.limits(value, 1.0, 0.0, 1.0, 0.0))


def _igamma(a: Number, x: Number, expansion: Number) -> Number:
    r = _Regions(a, x)
    part = r.prefactor() * expansion
    return _lower(r, r.upper.where(1.0 - part, part / r.a))


def _igammac(a: Number, x: Number, expansion: Number) -> Number:
    r = _Regions(a, x)
    part = r.prefactor() * expansion
    return _upper(r, r.upper.where(part, 1.0 - part / r.a))


def _igamma_scalar(b: Builder, a: Any, x: Any) -> Any:
    ops = ScalarOps(b, None)
    r = _Regions(Number(ops, a), Number(ops, x))
    return _lower(r, Number(ops, b.igamma(r.a.value, r.x.value))).value


def _igammac_scalar(b: Builder, a: Any, x: Any) -> Any:
    ops = ScalarOps(b, None)
    r = _Regions(Number(ops, a), Number(ops, x))
    return _upper(r, Number(ops, b.igammac(r.a.value, r.x.value))).value


def _slope(r: _Regions, expansion: Number, slope: Number) -> Number:
    """The derivative by `a` of an expansion times its prefactor, without the prefactor."""
    return slope + expansion * (r.x.log() - r.upper.where(r.a, r.a + 1.0).digamma())


def _igamma_grad_a(a: Number, x: Number, expansion: Number, slope: Number) -> Number:
    r = _Regions(a, x)
    part = r.prefactor() * _slope(r, expansion, slope)
    value = r.upper.where(-part, part / r.a)
    return r.limits(value, 0.0, float("nan"), float("nan"), float("nan"))


def _random_gamma_grad(a: Number, x: Number, expansion: Number, slope: Number) -> Number:
    r = _Regions(a, x)
    part = _slope(r, expansion, slope) * r.x
    value = r.upper.where(part, -part / r.a)
    return r.limits(value, 0.0, float("nan"), float("nan"), float("nan"))


igamma, igamma_p = special_function(
    "igamma", 2, "The regularized lower incomplete gamma function of `a` and `x`, elementwise.",
    _igamma, loops=_expansion, scalar=_igamma_scalar, arguments=("a", "x"), reference="scipy.special.gammainc",
)  # fmt: skip
igammac, igammac_p = special_function(
    "igammac", 2, "The regularized upper incomplete gamma function of `a` and `x`, elementwise.",
    _igammac, loops=_expansion, scalar=_igammac_scalar, arguments=("a", "x"), reference="scipy.special.gammaincc",
)  # fmt: skip
igamma_grad_a, igamma_grad_a_p = special_function(
    "igamma_grad_a", 2, "The derivative by `a` of the regularized lower incomplete gamma function, elementwise.",
    _igamma_grad_a, loops=_expansion_and_slope, arguments=("a", "x"),
)  # fmt: skip
random_gamma_grad, random_gamma_grad_p = special_function(
    "random_gamma_grad", 2,
    "The derivative by `a` of a sample `x` from the gamma distribution of shape `a`, elementwise.",
    _random_gamma_grad, loops=_expansion_and_slope, arguments=("a", "x"),
)  # fmt: skip


def _gamma_density(t: Any, a: Any, x: Any) -> Any:
    exponent = add(neg(x), mul(sub(a, full_like(a, 1)), log(x)))
    return mul(t, exp(sub(exponent, lgamma(a))))


ad.defjvp(
    igamma_p,
    lambda t, a, x: mul(t, igamma_grad_a(a, x)),
    lambda t, a, x: _gamma_density(t, a, x),
)
ad.defjvp(
    igammac_p,
    lambda t, a, x: neg(mul(t, igamma_grad_a(a, x))),
    lambda t, a, x: neg(_gamma_density(t, a, x)),
)


def _expanded_jvp(finish: Callable[..., Number]) -> Callable[..., Any]:
    """The forward derivative of a function that has none in closed form: that of its loops."""

    whole = on_arrays(lambda a, x: finish(a, x, *_expansion_and_slope(a, x)))

    def rule(primals: Any, tangents: Any) -> Any:
        (out,), (tangent,) = ad.jvp_flat(lambda *xs: [whole(*xs)], list(primals), list(tangents))
        return out, tangent

    return rule


rules.jvps[random_gamma_grad_p] = _expanded_jvp(_random_gamma_grad)
rules.jvps[igamma_grad_a_p] = _expanded_jvp(_igamma_grad_a)

# -- the incomplete beta function --------------------------------------------------------------------------


def _beta_fraction(a: Number, b: Number, x: Number, active: Number) -> Number:
    """The continued fraction of the incomplete beta function, by Lentz's algorithm."""
    epsilon = a.ops.tolerance(a.value)
    tiny = 1e-30

    def away_from_zero(v: Number) -> Number:
        return (v.abs() < tiny).where(tiny, v)

    one = a.like(1.0)
    first = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0))

    def going(m: Number, c: Number, d: Number, value: Number, on: Number) -> Number:
        return on

    def step(m: Number, c: Number, d: Number, value: Number, on: Number) -> list[Number]:
        twice = m + m
        even = m * (b - m) * x / ((a + twice - 1.0) * (a + twice))
        d = 1.0 / away_from_zero(1.0 + even * d)
        c = away_from_zero(1.0 + even / c)
        value = value * c * d
        odd = -((a + m) * (a + b + m) * x) / ((a + twice) * (a + twice + 1.0))
        d = 1.0 / away_from_zero(1.0 + odd * d)
        c = away_from_zero(1.0 + odd / c)
        change = c * d
        more = (change - 1.0).abs() > epsilon
        return [m + 1.0, c, d, value * change, more & (m < _MAX_STEPS)]

    return a.ops.loop(going, step, [one, one, first, first, active])[3]


class _BetaRegions:
    """Where the incomplete beta function is known at once, and safe arguments for its fraction elsewhere."""

    def __init__(self, a: Number, b: Number, x: Number):
        infinite = float("inf")
        invalid = (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0)
        invalid = invalid | a.differs(a) | b.differs(b) | x.differs(x)
        invalid = invalid | (a.equals(0.0) & b.equals(0.0)) | (a.equals(infinite) & b.equals(infinite))
        self.invalid = invalid
        # With all mass at one end the function is a step.
        self.zero_side = a.equals(0.0) | b.equals(infinite)
        self.one_side = b.equals(0.0) | a.equals(infinite)
        special = invalid | self.zero_side | self.one_side | x.equals(0.0) | x.equals(1.0)
        a, b, x = special.where(1.0, a), special.where(1.0, b), special.where(0.5, x)
        # The fraction converges fast on one side of the mean; the other is the mirror image.
        swap = x > (a + 1.0) / (a + b + 2.0)
        self.active, self.swap = ~special, swap
        self.p, self.q = swap.where(b, a), swap.where(a, b)
        self.a, self.b = a, b
        self.x, self.y = x, swap.where(1.0 - x, x)


def _beta_loops(a: Number, b: Number, x: Number) -> list[Number]:
    r = _BetaRegions(a, b, x)
    return [_beta_fraction(r.p, r.q, r.y, r.active)]


def _betainc(a: Number, b: Number, x: Number, fraction: Number) -> Number:
    r = _BetaRegions(a, b, x)
    log_y = r.swap.where((-r.x).log1p(), r.x.log())
    log_rest = r.swap.where(r.x.log(), (-r.x).log1p())
    log_beta = r.p.lgamma() + r.q.lgamma() - (r.p + r.q).lgamma()
    part = (r.p * log_y + r.q * log_rest - log_beta).exp() / r.p * fraction
    return _at_ends(r, x, r.swap.where(1.0 - part, part))


def _betainc_scalar(b: Builder, p: Any, q: Any, x: Any) -> Any:
    ops = ScalarOps(b, None)
    r = _BetaRegions(Number(ops, p), Number(ops, q), Number(ops, x))
    return _at_ends(r, Number(ops, x), Number(ops, b.betainc(r.a.value, r.b.value, r.x.value))).value


def _at_ends(r: _BetaRegions, x: Number, value: Number) -> Number:
    value = x.equals(1.0).where(1.0, x.equals(0.0).where(0.0, value))
    value = (r.zero_side & (x > 0.0)).where(1.0, value)
    value = (r.one_side & (x < 1.0)).where(0.0, value)
    return r.invalid.where(float("nan"), value)


betainc, regularized_incomplete_beta_p = special_function(
    "betainc", 3, "The regularized incomplete beta function of `a`, `b` and `x`, elementwise.",
    _betainc, loops=_beta_loops, scalar=_betainc_scalar, reference="scipy.special.betainc",
    prim_name="regularized_incomplete_beta",
)  # fmt: skip


def _betainc_jvp_parameter(t: Any, ans: Any, a: Any, b: Any, x: Any) -> Any:
    raise ValueError("Betainc gradient with respect to a and b not supported.")


def _betainc_jvp_x(t: Any, ans: Any, a: Any, b: Any, x: Any) -> Any:
    one = scalar_like(a, 1)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    powers = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return mul(exp(sub(powers, log_beta)), t)


ad.defjvp2(
    regularized_incomplete_beta_p, _betainc_jvp_parameter, _betainc_jvp_parameter, _betainc_jvp_x
)

for _p in (igamma_p, igammac_p, igamma_grad_a_p, regularized_incomplete_beta_p):
    _p.declare(nan=True, factors=factors.composed)
random_gamma_grad_p.declare(factors=factors.composed)
