"""The regularised incomplete gamma and beta functions, by series and continued fractions.

All lanes iterate together until the last one has converged. f32 goes through f64 arithmetic.
"""

from __future__ import annotations

from .block import Block, Register
from .exponential import exp, log, log1p, log_terms
from .gamma import HALF_LOG_2PI, PI, STIRLING_ROW, through_double

EPSILON = 2.0**-53
LIMIT = 1 << 20
# Stands for 0 in denominators of continued fractions
TINY = 2.0**-900
# From here on Stirling's series stands for lgamma, and what cancels in large terms is left out.
LARGE = 8.0
# From here on a uniform asymptotic expansion replaces the iterations of the incomplete gamma function.
EXPANDED = 2.0**17
INF, NAN = float("inf"), float("nan")
# Temme's expansion: the powers of eta in the coefficients of 1, 1/a and 1/a**2
TEMME_ROWS = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
        0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
        -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
        1.0261809784240309e-08, -4.382036018453353e-09,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
        0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
        -1.6120900894563446e-06,
    ),
    (
        0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
        -0.0001073665322636516,
    ),
)  # fmt: skip


def log1p_minus(b: Block, d: Register) -> Register:
    """log(1 + d) - d, without cancellation for small d."""
    _, rest = log_terms(b, d)
    return b.select((d > -0.25) & (d < 0.5), rest, log1p(b, d) - d)


def stirling_rest(b: Block, z: Register) -> Register:
    """lgamma(z) - ((z - 1/2)*log(z) - z + log(2*pi)/2) for z >= LARGE."""
    inverse = 1.0 / b.at_least(z, LARGE)
    return inverse * b.poly(inverse * inverse, STIRLING_ROW)


def gamma_density(b: Block, a: Register, x: Register) -> Register:
    """x**a * e**-x / gamma(a)."""
    small = b.fma(a, log(b, x), -x) - b.call("lgamma", a)
    # With x = a*(1 + d): a*(log(1 + d) - d) + log(a)/2 - log(2*pi)/2 - rest
    large = b.fma(a, log1p_minus(b, (x - a) / a), b.fma(log(b, a), 0.5, -HALF_LOG_2PI)) - stirling_rest(b, a)
    return exp(b, b.select(a < LARGE, small, large))


def gamma_tails(b: Block, a: Register, x: Register) -> tuple[Register, Register]:
    """(lower, upper), the smaller one computed and the other its complement."""
    a, x = b.freeze(a), b.freeze(x)
    valid = (a > 0.0) & (x > 0.0) & (a < EXPANDED) & (x < INF)
    upper_smaller = (x > 1.0) & (x > a)
    one = b.constant(1.0)

    # lower = density/a * (1 + x/(a + 1) + x**2/((a + 1)*(a + 2)) + …)
    def add_term(total: Register, term: Register, r: Register):
        r = r + 1.0
        term = term * (x / r)
        total = total + term
        return [total, term, r], term > total * EPSILON

    series, _, _ = b.iterate([one, one, a], valid & ~upper_smaller, add_term, LIMIT)

    # upper = density / (x + 1 - a - 1*(1 - a)/(x + 3 - a - 2*(2 - a)/(x + 5 - a - …))), by Lentz's method
    start = x + (1.0 - a)

    def convergent(value: Register, c: Register, d: Register, k: Register, base: Register):
        k, base = k + 1.0, base + 2.0
        numerator = k * (a - k)
        d = 1.0 / away_from_zero(b, b.fma(numerator, d, base))
        c = away_from_zero(b, base + numerator / c)
        factor = c * d
        return [value * factor, c, d, k, base], b.abs(factor - 1.0) > EPSILON * 2.0

    first = 1.0 / away_from_zero(b, start)
    huge = b.constant(1.0 / TINY)
    state = [first, huge, first, b.constant(0.0), start]
    fraction, *_ = b.iterate(state, valid & upper_smaller, convergent, LIMIT)

    density = gamma_density(b, a, x)
    lower, upper = density * series / a, density * fraction
    tails = [b.select(upper_smaller, 1.0 - upper, lower), b.select(upper_smaller, upper, 1.0 - lower)]
    many = a >= EXPANDED

    def rare():
        return [b.select(many, tail, usual) for tail, usual in zip(expanded_tails(b, a, x), tails)]

    lower, upper = b.rarely(b.any(many), tails, rare)
    return b.at_least(lower, 0.0), b.at_least(upper, 0.0)


def expanded_tails(b: Block, a: Register, x: Register) -> tuple[Register, Register]:
    """`gamma_tails` for large a: erfc at eta*sqrt(a/2) with eta**2/2 = x/a - 1 - log(x/a), corrected."""
    d = (x - a) / a
    half_square = -log1p_minus(b, d)
    eta = b.copysign(b.sqrt(half_square + half_square), d)
    near = b.at_least(b.at_most(eta, 1.0), -1.0)
    inverse = 1.0 / a
    series = b.horner(inverse, [b.poly(near, row) for row in TEMME_ROWS])
    correction = exp(b, -(a * half_square)) * series * b.sqrt(inverse * (0.5 / PI))
    z = eta * b.sqrt(a * 0.5)
    return b.call("erfc", -z) * 0.5 - correction, b.call("erfc", z) * 0.5 + correction


def away_from_zero(b: Block, x: Register) -> Register:
    return b.select(b.abs(x) < TINY, b.constant(TINY), x)


def at_gamma_edges(b: Block, a: Register, x: Register, result: Register, none: float, all: float) -> Register:
    """`result`, but for arguments where the integral is none or all of the whole, or not defined."""
    result = b.select(b.eq(x, 0.0), b.constant(none), result)
    result = b.select(b.eq(x, INF) | b.eq(a, 0.0), b.constant(all), result)
    undefined = ~((a >= 0.0) & (x >= 0.0)) | (b.eq(a, 0.0) & b.eq(x, 0.0)) | (b.eq(a, INF) & (x < INF))
    return b.select(undefined, b.constant(NAN), result)


def igamma(b: Block, a: Register, x: Register) -> Register:
    return at_gamma_edges(b, a, x, gamma_tails(b, a, x)[0], 0.0, 1.0)


def igammac(b: Block, a: Register, x: Register) -> Register:
    return at_gamma_edges(b, a, x, gamma_tails(b, a, x)[1], 1.0, 0.0)


def log_beta(b: Block, p: Register, q: Register) -> Register:
    """lgamma(p) + lgamma(q) - lgamma(p + q)."""
    swap = p < q
    less, more = b.select(swap, p, q), b.select(swap, q, p)
    total = p + q
    # lgamma(more) - lgamma(total) from Stirling's series where both are large
    ratio = b.fma(0.5 - more, log1p(b, less / more), less - less * log(b, total))
    ratio = ratio + (stirling_rest(b, more) - stirling_rest(b, total))
    difference = b.select(more < LARGE, b.call("lgamma", more) - b.call("lgamma", total), ratio)
    return b.call("lgamma", less) + difference


def beta_density(b: Block, p: Register, q: Register, x: Register, y: Register, log_x: Register, log_y: Register
                 ) -> Register:
    """x**p * y**q / beta(p, q) with y = 1 - x."""
    total = p + q
    small = b.fma(p, log_x, q * log_y) - log_beta(b, p, q)
    # With x = p/(p + q) * (1 + d) and y = q/(p + q) * (1 + e), p*d + q*e is 0.
    u = b.fma(x, q, -(p * y))
    main = b.fma(p, log1p_minus(b, u / p), q * log1p_minus(b, -(u / q)))
    rest = stirling_rest(b, total) - stirling_rest(b, p) - stirling_rest(b, q)
    large = main + rest + b.fma(log(b, p * (q / total)), 0.5, -HALF_LOG_2PI)
    both_large = (p > LARGE) & (q > LARGE)
    return exp(b, b.select(both_large, large, small))


def betainc(b: Block, a: Register, c: Register, x: Register) -> Register:
    """The integral of t**(a - 1) * (1 - t)**(c - 1) from 0 to x, over that to 1."""
    a, c, x = b.freeze(a), b.freeze(c), b.freeze(x)
    valid = (a > 0.0) & (c > 0.0) & (a < INF) & (c < INF) & (x > 0.0) & (x < 1.0)
    # The fraction converges fast below the mean; above it the other tail is computed.
    swap = x * (a + c + 2.0) > a + 1.0
    p, q = b.select(swap, c, a), b.select(swap, a, c)
    y = 1.0 - x
    u, v = b.select(swap, y, x), b.select(swap, x, y)
    one = b.constant(1.0)

    def convergent(value: Register, s: Register, d: Register, m: Register):
        # Two steps of Lentz's method, for the even and the odd coefficient
        even = p + (m + m)
        k = m * (q - m) * u / ((even - 1.0) * even)
        d = 1.0 / away_from_zero(b, b.fma(k, d, 1.0))
        s = away_from_zero(b, 1.0 + k / s)
        value = value * (s * d)
        k = -((p + m) * (p + q + m) * u / (even * (even + 1.0)))
        d = 1.0 / away_from_zero(b, b.fma(k, d, 1.0))
        s = away_from_zero(b, 1.0 + k / s)
        factor = s * d
        return [value * factor, s, d, m + 1.0], b.abs(factor - 1.0) > EPSILON * 2.0

    first = 1.0 / away_from_zero(b, b.fma(-((p + q) * u), 1.0 / (p + 1.0), 1.0))
    fraction, *_ = b.iterate([first, one, first, one], valid, convergent, LIMIT)
    log_x, log_y = log(b, x), log1p(b, -x)
    log_u, log_v = b.select(swap, log_y, log_x), b.select(swap, log_x, log_y)
    tail = beta_density(b, p, q, u, v, log_u, log_v) * fraction / p
    tail = b.at_most(tail, 1.0)
    result = b.select(swap, 1.0 - tail, tail)
    result = b.select(b.eq(c, 0.0) | b.eq(a, INF), b.constant(0.0), result)
    result = b.select(b.eq(x, 1.0) | b.eq(a, 0.0) | b.eq(c, INF), one, result)
    result = b.select(b.eq(x, 0.0), b.constant(0.0), result)
    undefined = ~((a >= 0.0) & (c >= 0.0) & (x >= 0.0) & (x <= 1.0)) | (b.eq(a, 0.0) & b.eq(c, 0.0))
    return b.select(undefined, b.constant(NAN), result)


FUNCTIONS = {
    "igamma": through_double(igamma),
    "igammac": through_double(igammac),
    "betainc": through_double(betainc),
}
