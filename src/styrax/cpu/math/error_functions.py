"""erf, erfc, erf_inv."""
from __future__ import annotations

from .block import Block, Value
from .exponential import EXP_ROW_32, expm1_of_remainder, log, reduce, reduce_sum

# -log(erfc(x)) = 2/sqrt(pi)*x + x * row(x), so that erf(x) = -expm1 of its negative: one formula from 0 to
# where erf rounds to 1. The row starts with the rounding error of 2/sqrt(pi).
ERF_SLOPE = (1.1283792, 1.1283791670955126)
ERF_ROW = (
    (
        -5.4120942e-08, 0.6366194, 0.10277777, -0.019152869, -0.00016072656, 0.0016673092, -0.0006329482,
        0.00011765575, -9.25552e-06,
    ),
    (
        9.754959068244714e-18, 0.6366197723675836, 0.10277260330178871, -0.019128447005069302,
        -0.00020919469485276653, 0.0016962063858077868, -0.0005901255531623533, 2.587860514139652e-05,
        6.449185871081693e-05, -2.9724041995323802e-05, 3.40725905687286e-06, 2.8351483228896602e-06,
        -1.7415559193965917e-06, 3.3637199503974546e-07, 1.3717683698267463e-07, -1.41758883184521e-07,
        6.57320721630228e-08, -2.0962139209349395e-08, 4.9975604085276175e-09, -9.081918870861487e-10,
        1.2483604927560802e-10, -1.2610427746865519e-11, 8.845122743666722e-13, -3.8503079268615066e-14,
        7.833697868523155e-16,
    ),
)  # fmt: skip
# erfc(x) = e**-x**2 * row(t) / (1 + 2x) with t = (x - K)/(x + K), x >= 0; enough for f32 results and used in
# f64 arithmetic.
ERFC_CENTRE_32 = 3.0
ERFC_ROW_32 = (
    1.2530080591213626, -0.13562113930378789, -0.04756239953958204, 0.12964641474924624,
    -0.11927097393691416, 0.06829576655188989, -0.02379753653231799, 0.002567375335106845,
    0.002001820988600092, -0.00077757442684687, -0.00026812534962687023,
)  # fmt: skip
# The same with 1 + u*row(t) for row(t), u = x/(x + K) = (t + 1)/2: the error of t counts less.
ERFC_CENTRE = 4.0
ERFC_ROW = (
    0.465990237251105, -0.7452324709322301, 0.7759917751374694, -0.6397976666280781,
    0.43771953455547896, -0.25025386455899024, 0.11759313293435189, -0.04325810185594956,
    0.010862633742693707, -0.000798693817539873, -0.00071685277663917, 0.0003183395540679542,
    -1.7096115786078022e-05, -3.1702877661039015e-05, 9.25849579524942e-06, 2.1621557008853367e-06,
    -1.5737041154851886e-06, -7.858714200495415e-08, 2.265045522497171e-07, -5.5934961810929e-09,
    -2.903413704132489e-08, 8.691038133702828e-10, 2.3549675766503807e-09,
)  # fmt: skip
# erf_inv(x) = x * (sqrt(pi)/2 + w * row(w - centre)) with w = -log(1 - x**2) below the limit, and from there
# on x * row(sqrt(w) - centre), in one part for f32 and in two for f64.
INVERSE_SLOPE = (0.88622695, 0.886226925452758)
INVERSE_SLOPE_LOW = (-2.66232e-08, -3.8332932499128993e-17)
INVERSE_LIMIT = (5.0, 6.25)
INVERSE_CENTRE = (2.0, 3.125)
INVERSE_ROW = (
    (
        0.24549414, 0.0021369762, -0.002052535, 0.00018015884, 1.785385e-05, -5.1061475e-06,
        1.3283574e-07, 8.06081e-08, -8.820677e-09,
    ),
    (
        0.24557684391371032, -0.0017339716761990566, -0.001375903742473185, 0.00020326438666216795,
        -5.289657164120617e-06, -2.749717194175938e-06, 4.4295936309501297e-07, -6.233774031646209e-09,
        -7.307714777034752e-09, 1.0224168569160682e-09, 9.21648231996595e-12, -2.027482213293354e-11,
        2.3353199607809904e-12, 9.440631808423894e-14, -5.6185171013940135e-14, 5.1833957196137324e-15,
        4.517114272185522e-16, -1.5836814538704702e-16, 9.057725814723501e-18, 2.1523706965688896e-18,
        -3.2220316424596506e-19, -1.1638107995489203e-20, 3.394574930586158e-21,
    ),
)  # fmt: skip
INVERSE_TAIL_ROW_32 = (
    2.8329768, 1.0016749, 0.009444525, -0.0076352865, 0.0056933933, -0.0036067734, 0.0014684894,
    -3.857968e-05, -0.0002963581, 0.000102786486,
)  # fmt: skip
INVERSE_MIDDLE_ROW = (
    3.0838856104922208, 1.0052589676941657, 0.005370914553570926, -0.003751208508262756,
    0.0024914420970175125, -0.0016882755342549909, 0.0009532893630891425, -0.0003550378308061945,
    2.4031263014983054e-05, 6.828724874305082e-05, -4.7319015000710206e-05, 1.2464433090869616e-05,
    2.9258224906300033e-06, -3.984076743622729e-06, 1.498548883298321e-06, -3.026706928447132e-08,
    -2.7118935804831305e-07, 1.3394332918336765e-07, 6.353860828004632e-10, -1.6187786220578123e-08,
)  # fmt: skip
INVERSE_TAIL_ROW = (
    4.849906401408584, 1.0103004648645455, -0.00013871931837698584, -0.00021503011984006106,
    7.599527800678439e-05, -1.9681770531150905e-05, 4.526053494863079e-06, -9.930304382996688e-07,
    2.290476648373923e-07, -6.755270450110907e-08, 2.9033885134102614e-08, -1.5261640759584497e-08,
    7.79517938582239e-09, -3.464291515007238e-09, 1.3422125744350227e-09, -4.415487057000726e-10,
    5.5507946712758496e-11, 4.3795097944244997e-11, -1.7259467988245085e-11,
)  # fmt: skip


def erf(b: Block, x: Value) -> Value:
    y = b.at_most(b.abs(x), b.pick(3.95, 5.95))
    log_erfc = -b.fma(y, b.pick(*ERF_SLOPE), y * b.poly(y, b.pick(*ERF_ROW)))
    _, n_bits, r = reduce(b, log_erfc)
    power = b.power_of_two(n_bits)
    return b.copysign(b.fma(power, expm1_of_remainder(b, r), power - 1.0), x)


def erfc(b: Block, x: Value) -> Value:
    if b.single:
        return b.narrow(erfc_single(b.in_double(), b.widen(x)))
    y = b.at_most(b.abs(x), 28.0)
    # (1 + u*row) / (1 + 2y) as q + q_low
    u = y / (y + ERFC_CENTRE)
    p, p_low = b.fast_two_sum(b.constant(1.0), u * b.poly(u + u - 1.0, ERFC_ROW))
    d, d_low = b.two_sum(y + y, 1.0)
    inverse = 1.0 / d
    q = p * inverse
    q_low = (b.fma(-q, d, p) + b.fma(-q, d_low, p_low)) * inverse
    # e**-(y**2) as 2**n * (g + g_low)
    square, square_low = b.two_product(y, y)
    r, r_low, n, n_bits = reduce_sum(b, -square, -square_low)
    g, g_low = b.fast_two_sum(b.constant(1.0), expm1_of_remainder(b, r))
    g_low = b.fma(r_low, g, g_low)
    result = b.scale(b.fma(g, q, b.fma(g, q_low, g_low * q)), n, n_bits)
    return b.select(x < 0.0, 2.0 - result, result)


def erfc_single(b: Block, x: Value) -> Value:
    """erfc in f64 arithmetic to about 2**-28."""
    y = b.at_most(b.abs(x), 11.0)
    t = (y - ERFC_CENTRE_32) / (y + ERFC_CENTRE_32)
    _, n_bits, r = reduce(b, -(y * y))
    g = b.poly(r, (1.0, 1.0, *EXP_ROW_32)) * b.power_of_two(n_bits)
    result = g * b.poly(t, ERFC_ROW_32) / b.fma(y, 2.0, 1.0)
    return b.select(x < 0.0, 2.0 - result, result)


def erf_inv(b: Block, x: Value) -> Value:
    x = b.freeze(x)
    w = -log(b, b.fma(-x, x, 1.0))
    limit = b.pick(*INVERSE_LIMIT)
    row = b.poly(w - b.pick(*INVERSE_CENTRE), b.pick(*INVERSE_ROW))
    usual = b.fma(x, b.pick(*INVERSE_SLOPE), x * b.fma(w, row, b.pick(*INVERSE_SLOPE_LOW)))

    def rare():
        root = b.sqrt(w)
        if b.single:
            tail = b.poly(root - 3.0, INVERSE_TAIL_ROW_32)
        else:
            tail = b.poly(root - 3.25, INVERSE_MIDDLE_ROW)
            tail = b.select(w > 16.0, b.poly(root - 5.0, INVERSE_TAIL_ROW), tail)
        tail = x * b.select(b.eq(w, float("inf")), b.constant(float("inf")), tail)
        return [b.select(w > limit, tail, usual)]

    (result,) = b.rarely(b.any(w > limit), [usual], rare)
    return b.copysign(result, x)


FUNCTIONS = {"erf": erf, "erfc": erfc, "erf_inv": erf_inv}
