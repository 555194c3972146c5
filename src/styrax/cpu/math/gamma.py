"""lgamma and digamma, and their kin that need no iteration.

f32 goes through f64 arithmetic. Arguments below 1/2 are reflected, in a branch that is not taken when there
are none.
"""

from __future__ import annotations

from functools import wraps

from .block import Block, Register
from .exponential import log
from .trigonometric import sine_and_cosine

PI = 3.141592653589793
HALF_LOG_2PI = 0.9189385332046728
# lgamma(z) = (z - 1)*(z - 2) * numerator(t)/denominator(t), t = z - 1/2, for z from 1/2 to 3; with t >= 0 and
# positive coefficients nothing cancels.
NEAR_ROWS = (
    (
        0.7631532572329335, 4.965449553857611, 12.852316765372363, 16.953673104088377,
        12.158776172499033, 4.699575679147402, 0.9163962101681846, 0.0778842961469609,
        0.0020651457685066064, 3.6312614774254805e-06,
    ),
    (
        1.0, 7.2703451327490205, 21.4539453120891, 33.138034857722154, 28.877687468897385,
        14.313133189677801, 3.890553886969267, 0.5322283195765166, 0.030897826834247535,
        0.0005111372388603051,
    ),
)  # fmt: skip
# lgamma(z) = numerator(t)/denominator(t), t = z - 5/2, for z from 3 to 8
MIDDLE_ROWS = (
    (
        0.2846828704728393, 1.0413541011318537, 1.2355948118094153, 0.6696440816112168,
        0.1857870976886971, 0.026892585352630907, 0.0019295592143473825, 5.9454290377763505e-05,
        5.4577354421075e-07, 0.0,
    ),
    (
        1.0, 1.1879796628568302, 0.5447470183896361, 0.1218950024292416, 0.013887543634970597,
        0.0007661593522743063, 1.747100031464647e-05, 1.0654822414425e-07, -6.100664084468324e-11, 0.0,
    ),
)  # fmt: skip
# lgamma(z) = (z - 1/2)*log(z) - z + log(2*pi)/2 + row(1/z**2)/z for z > 8
STIRLING_ROW = (
    0.08333333333333333, -0.002777777777774093, 0.0007936507898317045, -0.0005952366062658394,
    0.0008414727749273497, -0.0018905360012993757, 0.005069167327371847,
)  # fmt: skip
# digamma(w) = log(w) - 1/(2w) - row(1/w**2)/w**2 for w > 7
DIGAMMA_ROW = (
    0.08333333333333333, -0.008333333333324302, 0.003968253958788106, -0.004166662873819847,
    0.00757500645235179, -0.021011022486265064, 0.07827341931176947, -0.26939240261606223,
)  # fmt: skip
# z*(z + 1)*…*(z + 6) / z
RISING_ROW = (720.0, 1764.0, 1624.0, 735.0, 175.0, 21.0, 1.0)


def through_double(function):
    """The function, with f32 computed in f64."""

    @wraps(function)
    def build(b: Block, *arguments: Register) -> Register:
        if not b.single:
            return function(b, *arguments)
        return b.narrow(function(b.in_double(), *[b.widen(x) for x in arguments]))

    return build


def lgamma_of_positive(b: Block, z: Register) -> Register:
    """log(gamma(z)) for z >= 1/2."""
    near, middle = z < 3.0, z < 8.0
    t = z - b.select(near, b.constant(0.5), 2.5)
    numerator, denominator = (
        b.poly(t, [b.select(near, b.constant(x), y) for x, y in zip(*rows)]) for rows in zip(NEAR_ROWS, MIDDLE_ROWS)
    )
    ratio = numerator / denominator * b.select(near, (z - 1.0) * (z - 2.0), 1.0)
    inverse = 1.0 / z
    rest = b.fma(b.poly(inverse * inverse, STIRLING_ROW), inverse, HALF_LOG_2PI - 0.5)
    return b.select(middle, ratio, b.fma(z - 0.5, log(b, z) - 1.0, rest))


def quarter_turns(b: Block, x: Register) -> tuple[Register, Register]:
    """(r, bits of n) with pi*x = n*pi/2 + r and |r| <= pi/4, but for a whole number of turns."""
    fraction = x - b.rint(x)
    n, n_bits = b.nearest(fraction, 2.0)
    return b.fma(n, -0.5, fraction) * PI, n_bits


def lgamma_in_double(b: Block, x: Register) -> Register:
    x = b.freeze(x)
    left = x < 0.5
    positive = lgamma_of_positive(b, b.select(left, 1.0 - x, x))

    def rare():
        # log(pi / |sin(pi*x)|) - lgamma(1 - x)
        sine = b.abs(sine_and_cosine(b, *quarter_turns(b, x))[0])
        reflected = -log(b, sine * (1 / PI)) - positive
        pole = b.eq(b.rint(x), x)
        return [b.select(left, b.select(pole, b.constant(float("inf")), reflected), positive)]

    (result,) = b.rarely(b.any(left), [positive], rare)
    return result + 0.0  # not -0.0 at 1 and 2


def digamma_in_double(b: Block, x: Register) -> Register:
    x = b.freeze(x)
    left = x < 0.5
    z = b.select(left, 1.0 - x, x)
    # digamma(z) = digamma(z + 7) - (1/z + 1/(z + 1) + … + 1/(z + 6)), the sum as one fraction
    small = z < 7.0
    w = b.select(small, z + 7.0, z)
    slopes = [i * c for i, c in enumerate((0.0, *RISING_ROW))][1:]
    rising = z * b.poly(z, RISING_ROW)
    sum_of_inverses = b.poly(z, slopes) / rising
    inverse = 1.0 / w
    square = inverse * inverse
    main = log(b, w) - b.fma(square, b.poly(square, DIGAMMA_ROW), inverse * 0.5)
    positive = main - b.select(small, sum_of_inverses, 0.0)

    def rare():
        # digamma(1 - x) - pi/tan(pi*x); NaN at the poles
        r, n_bits = quarter_turns(b, x)
        sine, cosine = sine_and_cosine(b, r, n_bits)
        pole = b.eq(b.rint(x), x)
        reflected = positive - cosine * PI / sine
        return [b.select(left, b.select(pole, b.constant(float("nan")), reflected), positive)]

    (result,) = b.rarely(b.any(left), [positive], rare)
    return result


FUNCTIONS = {"lgamma": through_double(lgamma_in_double), "digamma": through_double(digamma_in_double)}
