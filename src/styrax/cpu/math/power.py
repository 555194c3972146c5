"""sqrt, rsqrt, cbrt, pow."""
from __future__ import annotations

from .block import Block, Register
from .exponential import EXP_ROW_32, LN2_HIGH, LN2_LOW, expm1_of_remainder, reduce, reduce_sum

# m**(-1/3) = row(m), m in [0.75, 1.5)
INVERSE_CBRT_ROW = (
    (1.6970667, -1.1886369, 0.6217558, -0.13028222),
    (1.9603076, -2.2981834, 2.4337122, -1.5598083, 0.5429062, -0.07893589),
)  # fmt: skip
CBRT_2 = 1.2599210498948732
# log(1 + f) = 2*s + s*z*(2/3 + z*row(z)), s = f/(2 + f), z = s**2: to 2**-67
POW_LOG_ROW = (
    0.39999999999999725, 0.2857142857157749, 0.2222222219121799, 0.18181821528736775,
    0.15384406508471446, 0.133411487203559, 0.11592290818593691, 0.12571872422649916,
)  # fmt: skip
# log(1 + f) = f + f**2 * row(f) for 1 + f in [0.75, 1.5), to 2**-35: as precise as f32 results need
POW_LOG_ROW_32 = (
    -0.5000000001955384, 0.3333333263359345, -0.2499999367411457, 0.20000083693579748,
    -0.16667251803821825, 0.14283033209303894, -0.12478097365463332, 0.11124122602933681,
    -0.10332625458576111, 0.0961289922245366, -0.07087233507879569, 0.02650460193008981,
)  # fmt: skip


def sqrt(b: Block, x: Register) -> Register:
    return b.sqrt(x)


def rsqrt(b: Block, x: Register) -> Register:
    return 1.0 / b.sqrt(x)


def cbrt(b: Block, x: Register) -> Register:
    # |x| = k * 8**q with k = m * 2**(e - 3q); a polynomial for k**(-1/3), one step of third order for it,
    # and one of Newton's for the root: no division.
    m, e = b.split(b.abs(x))
    q = b.rint(e * (1.0 / 3.0))
    rest = b.fma(q, -3.0, e)
    up, down = rest > 0.0, rest < 0.0
    k = m * b.select(up, b.constant(2.0), b.select(down, b.constant(0.5), 1.0))
    w = b.poly(m, b.pick(*INVERSE_CBRT_ROW))
    w = w * b.select(up, b.constant(1.0 / CBRT_2), b.select(down, b.constant(CBRT_2), 1.0))
    h = b.fma(-(k * w), w * w, 1.0)
    w = b.fma(w * h, b.fma(h, 2.0 / 9.0, 1.0 / 3.0), w)
    square = w * w
    y = k * square
    y = b.fma(b.fma(-(y * y), y, k), square * (1.0 / 3.0), y)
    y = y * b.power_of_two(b.bits(q + b.pick(1.5 * 2.0**23, 1.5 * 2.0**52)))
    usual = (x < float("inf")) & (x > -float("inf")) & b.ne(x, 0.0)
    return b.select(usual, b.copysign(y, x), x)


def pow(b: Block, x: Register, y: Register) -> Register:
    a = b.abs(x)
    result = pow_single(b, a, y) if b.single else pow_double(b, a, y)
    inf = float("inf")
    # Zero, infinite and NaN operands by IEEE 754's table, for the absolute value of x.
    grows = (a > 1.0) ^ (y < 0.0)
    extreme = b.eq(a, 0.0) | b.eq(a, inf) | b.eq(b.abs(y), inf)
    result = b.select(extreme, b.select(grows, b.constant(inf), 0.0), result)
    result = b.select(b.is_nan(x) | b.is_nan(y), x + y, result)
    # A negative x: NaN for a finite x and a y with a fraction, negative for an odd y.
    whole = b.eq(b.trunc(y), y)
    half = y * 0.5
    odd = whole & b.ne(b.trunc(half), half)
    negative = b.bits(x) < 0
    result = b.select(negative & odd, -result, result)
    undefined = (x < 0.0) & (x > -inf) & (b.abs(y) < inf) & ~whole
    result = b.select(undefined, b.constant(float("nan")), result)
    one = b.eq(y, 0.0) | b.eq(x, 1.0) | (b.eq(x, -1.0) & b.eq(b.abs(y), inf))
    return b.select(one, 1.0, result)


def pow_single(b: Block, x: Register, y: Register) -> Register:
    """x**y for finite x > 0, in f64 arithmetic with shorter polynomials."""
    d = b.in_double()
    m, e = d.split(d.widen(x))
    f = m - 1.0
    log = d.fma(e, LN2_HIGH[1] + LN2_LOW[1], d.fma(f * f, d.poly(f, POW_LOG_ROW_32), f))
    t = d.at_least(d.at_most(d.widen(y) * log, 100.0), -110.0)
    _, n_bits, r = reduce(d, t)
    return d.narrow(d.poly(r, (1.0, 1.0, *EXP_ROW_32)) * d.power_of_two(n_bits))


def pow_double(b: Block, x: Register, y: Register) -> Register:
    """x**y for finite x > 0, the logarithm as a sum of two numbers."""
    m, e = b.split(x)
    f = m - 1.0
    # s + s_low = f / (2 + f)
    d, d_low = b.fast_two_sum(b.constant(2.0), f)
    inverse = 1.0 / d
    s = f * inverse
    s_low = b.fma(-s, d_low, b.fma(-s, d, f)) * inverse
    # z + z_low = s**2, w + w_low = 2/3 + z*row(z), u + u_low = s*z*(w + w_low)
    z, z_low = b.two_product(s, s)
    z_low = b.fma(s + s, s_low, z_low)
    two_thirds = 0.6666666666666666
    w, w_low = b.fast_two_sum(b.constant(two_thirds), z * b.poly(z, POW_LOG_ROW))
    w_low = w_low + 3.700743415417188e-17
    v, v_low = b.two_product(s, z)
    v_low = v_low + b.fma(s, z_low, s_low * z)
    u, u_low = b.two_product(v, w)
    u_low = u_low + b.fma(v, w_low, v_low * w)
    # log(x) = e*log(2) + 2*s + u
    high, low = b.fast_two_sum(s + s, u)
    low = low + b.fma(s_low, 2.0, u_low)
    main, rest = b.two_sum(e * LN2_HIGH[1], high)
    rest = rest + b.fma(e, LN2_LOW[1], low)
    main, rest = b.fast_two_sum(main, rest)
    # t + t_low = y*log(x)
    t = y * main
    t_low = b.fma(y, rest, b.fma(y, main, -t))
    bound = 800.0
    inside = b.abs(t) < bound
    t = b.at_least(b.at_most(t, bound), -bound)
    t_low = b.select(inside, t_low, 0.0)
    r, r_low, n, n_bits = reduce_sum(b, t, t_low)
    p = expm1_of_remainder(b, r)
    return b.scale((p + b.fma(r_low, p, r_low)) + 1.0, n, n_bits)


FUNCTIONS = {"sqrt": sqrt, "rsqrt": rsqrt, "cbrt": cbrt, "pow": pow}
