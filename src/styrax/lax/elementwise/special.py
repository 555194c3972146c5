"""Special functions: error functions, the gamma family, incomplete gamma and beta, zeta, Bessel.

On the CPU they are the functions of `cpu.math`. Those without an operation of their own in StableHLO, or with loops,
are algorithms on `Number`s besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import factors, rules
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.transforms import ad, batching

from ..casting import convert_element_type
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import full_like
from .algorithms import ArrayOps, CountingOps, Number, ScalarOps
from .arithmetic import add, mul, neg, reciprocal, square, sub
from .comparisons import gt, select
from .families import (
    FLOAT,
    OPERATIONS,
    Operation,
    broadcast_shape,
    check_dtype,
    check_same_dtypes,
    lower_elementwise,
    of_operands,
    reader,
    scalar_like,
    standard_primitive,
    unary,
)
from .functions import abs as absolute
from .functions import exp, sign

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

# -- operations with code of their own on every platform -----------------------------------------------

_TWO_OVER_SQRT_PI = 1.1283791670955126
_HALF_SQRT_PI = 0.8862269254527580
_WIDE = np.dtype(np.float64)

erf, erf_p = unary(
    "erf", FLOAT, "The error function, elementwise.",
    jvp=lambda t, ans, x: mul(scalar_like(x, _TWO_OVER_SQRT_PI), mul(t, exp(neg(square(x))))),
    scalar=lambda b, x: b.erf(x),
    hlo="chlo.erf",
    reference="scipy.special.erf",
)  # fmt: skip
erfc, erfc_p = unary(
    "erfc", FLOAT, "The complementary error function `1 - erf(x)`, elementwise, exact for large `x`.",
    jvp=lambda t, ans, x: mul(scalar_like(x, -_TWO_OVER_SQRT_PI), mul(t, exp(neg(square(x))))),
    scalar=lambda b, x: b.erfc(x),
    hlo="chlo.erfc",
    reference="scipy.special.erfc",
)  # fmt: skip
erf_inv, erf_inv_p = unary(
    "erf_inv", FLOAT, "The inverse of the error function, elementwise.",
    jvp=lambda t, ans, x: mul(scalar_like(x, _HALF_SQRT_PI), mul(t, exp(square(ans)))),
    scalar=lambda b, x: b.erf_inv(x),
    hlo="chlo.erf_inv",
    reference="scipy.special.erfinv",
)  # fmt: skip

# -- algorithms on numbers -------------------------------------------------------------------------------


def _with_loops(b: Builder, xs: Sequence[Any], loops: Callable[..., Sequence[Number]],
                finish: Callable[..., Number]) -> Any:
    """The CPU lowering of an algorithm with loops: first every element runs its own, then all are finished."""
    out = b.avals_out[0]
    readers = [reader(b, x, out.shape) for x in xs]
    tolerance = _tolerance(out.dtype)
    total: Any = 1
    for extent in out.shape:
        total = total * extent

    def body(n: Nest, outs: Any, _: Any) -> None:
        # One loop over all elements: threads share them evenly whatever the shape.
        with n.loop(total, parallel=True) as flat:
            index, rest = [], flat
            for extent in reversed(out.shape[1:]):
                index.append(b.rem(rest, b.index(extent)))
                rest = b.div(rest, b.index(extent))
            where = tuple(reversed([*index, rest] if out.shape else []))
            ops = ScalarOps(b, n, tolerance)
            numbers = [Number(ops, n.let(b.cast(read(where), _WIDE))) for read in readers]
            for target, number in zip(outs, loops(*numbers), strict=True):
                n.store(target, where, number.value)

    probe = loops(*[Number(CountingOps(), None)] * len(xs))
    found = b.nest([(out.shape, _WIDE)] * len(probe), body)

    def scalar(index: Any) -> Any:
        ops = ScalarOps(b, None)
        numbers = [Number(ops, b.cast(read(index), _WIDE)) for read in readers]
        return b.cast(finish(*numbers, *[Number(ops, f.at(index)) for f in found]).value, out.dtype)

    return b.value(out.shape, out.dtype, scalar)


def _tolerance(dtype: Any) -> float:
    """Where a series may stop: well below what the dtype can tell apart."""
    return float(np.finfo(_WIDE).eps) if dtype == _WIDE else 1e-9


def on_arrays(algorithm: Callable[..., Number]) -> Callable[..., Any]:
    """The algorithm as a function of arrays, made of operations of `lax`."""

    def apply(*xs: Any) -> Any:
        from .families import dtype_of, shape_of

        dtype = dtype_of(xs[0])
        shape = broadcast_shape("special function", [shape_of(x) for x in xs])
        narrow = dtypes.itemsize_bits(dtype) < 32
        numbers = []
        for x in xs:
            x = convert_element_type(x, np.float32) if narrow else x
            if shape_of(x) != shape:
                x = broadcast_in_dim(x, shape, range(len(shape)) if shape_of(x) else ())
            numbers.append(Number(ArrayOps(), x))
        out = algorithm(*numbers).value
        return convert_element_type(out, dtype) if narrow else out

    return apply


def special_function(
    name: str,
    arity: int,
    doc: str,
    algorithm: Callable[..., Number],
    *,
    loops: Callable[..., Sequence[Number]] | None = None,
    scalar: Callable[..., Any] | None = None,
    hlo: str | None = None,
    reference: Any = None,
    prim_name: str | None = None,
    arguments: Sequence[str] = (),
) -> tuple[Callable[..., Array], Any]:
    """A row: `algorithm(*xs)`, or with `loops` first `loops(*xs)` and then `algorithm(*xs, *results)`. `scalar(b, *xs)`
    builds one element for the CPU instead."""
    whole = algorithm if loops is None else (lambda *xs: algorithm(*xs, *loops(*xs)))

    def dtype_rule(*avals: Any) -> Any:
        for position, aval in enumerate(avals):
            check_dtype(name, aval, FLOAT, position if arity > 1 else None)
        check_same_dtypes(name, avals)
        return avals[0].dtype

    def expanded(m: Any, *xs: Any) -> Any:
        out = m.avals_out[0]
        if hlo is not None:
            return m.op1(hlo, [m.broadcast_to(x, out) for x in xs], out)
        return m.call_traced(on_arrays(whole), *xs)[0]

    prim = standard_primitive(
        prim_name or name,
        lambda *avals: broadcast_shape(name, [a.shape for a in avals]),
        dtype_rule,
        hlo=expanded,
    )
    if scalar is not None:
        lower_elementwise(prim, scalar)
    else:
        assert loops is not None
        prim.declare(elementwise=True)

        def own_loops(b: Builder, *xs: Any) -> Any:
            return _with_loops(b, xs, loops, algorithm)

        rules.loops[prim] = own_loops
    if arity == 1:
        batching.defvectorized(prim)
    else:
        batching.defbroadcasting(prim)
    arguments = arguments or (("x",), ("x", "y"), ("a", "b", "x"))[arity - 1]
    function = of_operands(prim, arguments)
    named(
        function,
        name,
        f"{doc}\n\nArgs:\n  {', '.join(arguments)}: arrays of one floating dtype. Each is a scalar, or all have shapes "
        "that broadcast.\n\nReturns:\n  an array of the broadcast shape and that dtype.\n\nRaises:\n  TypeError: for "
        "other dtypes or shapes.",
        "styrax.lax",
    )
    OPERATIONS[name] = Operation(
        name, prim, function, "special", arity, (FLOAT,) * arity, reference
    )
    return function, prim


# -- the gamma function and its derivative -----------------------------------------------------------------

lgamma, lgamma_p = unary(
    "lgamma", FLOAT, "The logarithm of the absolute value of the gamma function, elementwise.",
    jvp=lambda t, ans, x: mul(t, digamma(x)),  # type: ignore[has-type]
    scalar=lambda b, x: b.lgamma(x),
    hlo="chlo.lgamma",
    reference="scipy.special.gammaln",
)  # fmt: skip
digamma, digamma_p = unary(
    "digamma", FLOAT, "The derivative of `lgamma`, elementwise.",
    jvp=lambda t, ans, x: mul(t, polygamma(scalar_like(x, 1), x)),  # type: ignore[has-type]
    scalar=lambda b, x: b.digamma(x),
    hlo="chlo.digamma",
    reference="scipy.special.digamma",
)  # fmt: skip

# -- zeta and polygamma ------------------------------------------------------------------------------------

# Hurwitz zeta by the formula of Euler and Maclaurin: a sum of so many terms, then corrections.
_ZETA_TERMS = 10
# B(2k) / (2k)! for k = 1, 2, …
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)


def _zeta(x: Number, q: Number) -> Number:
    total = q ** (-x)
    a = q
    for _ in range(_ZETA_TERMS - 1):
        a = a + 1.0
        total = total + a ** (-x)
    a = a + 1.0
    power = a ** (-x)
    total = total + power * a / (x - 1.0) + power * 0.5
    factor = x
    tail: Any = None
    for k, coefficient in enumerate(_BERNOULLI):
        power = power / a
        term = factor * power * coefficient
        tail = term if tail is None else tail + term
        factor = factor * (x + (2 * k + 1.0)) * (x + (2 * k + 2.0))
        power = power / a
    # Terms that overflow belong to sums that the corrections cannot change.
    tail = (tail.abs() < float("inf")).where(tail, 0.0)
    total = total + tail
    pole = (q <= 0.0) & q.equals(q.floor())
    undefined = (x < 1.0) | ((q <= 0.0) & x.differs(x.floor()))
    even = x.equals((x * 0.5).floor() * 2.0)
    at_pole = even.where(q.like(float("inf")), float("nan"))
    total = undefined.where(float("nan"), total)
    total = pole.where(at_pole, total)
    return x.equals(1.0).where(float("inf"), total)


zeta, zeta_p = special_function(
    "zeta", 2, "The Hurwitz zeta function: the sum of `(q + k) ** -x` over `k = 0, 1, …`, elementwise.",
    _zeta, scalar=lambda b, x, q: b.zeta(x, q), hlo="chlo.zeta", reference="scipy.special.zeta",
    arguments=("x", "q"),
)  # fmt: skip


def _polygamma(m: Number, x: Number) -> Number:
    order = m + 1.0
    odd = order.differs((order * 0.5).floor() * 2.0)
    scale = order.lgamma().exp()
    value = odd.where(-scale, scale) * _zeta(order, x)
    value = m.equals(0.0).where(x.digamma(), value)
    return ((m < 0.0) | m.differs(m.floor())).where(float("nan"), value)


polygamma, polygamma_p = special_function(
    "polygamma", 2, "The derivative of order `m` of `digamma` at `x`, elementwise; `m` holds whole numbers.",
    _polygamma, scalar=lambda b, m, x: b.polygamma(m, x), hlo="chlo.polygamma", reference="scipy.special.polygamma",
    arguments=("m", "x"),
)  # fmt: skip


def _polygamma_jvp_m(t: Any, ans: Any, m: Any, x: Any) -> Any:
    raise ValueError("polygamma gradient with respect to m is not supported")


ad.defjvp2(
    polygamma_p,
    _polygamma_jvp_m,
    lambda t, ans, m, x: mul(t, polygamma(add(m, scalar_like(m, 1)), x)),
)

# -- Bessel functions ------------------------------------------------------------------------------------

# Chebyshev coefficients on [-1, 1] of exp(-x) I0(x), exp(-x) I1(x) / x in x / 4 - 1 where x <= 8, and
# of exp(-x) sqrt(x) I0(x), exp(-x) sqrt(x) I1(x) in 16 / x - 1 beyond.
_I0_SMALL = (
    0.3383976372047380425, -0.30468267234319839868, 0.17162090152220877535, -0.094901097048047644421,
    0.049305284239670708488, -0.023737414805899468816, 0.010546460394594998318, -0.0043243099950505759443,
    0.0016394756169413357984, -0.00057637557453858236588, 0.00018850288509584165573,
    -0.00005754195010082103704, 0.000016448448070728897089, -4.4167383584587505636e-6,
    1.1173875391201037182e-6, -2.6707938539406117339e-7, 6.0469950225419189493e-8,
    -1.3000250099862480421e-8, 2.6598237246823866503e-9, -5.1897956016352629067e-10,
    9.6758090353732369122e-11, -1.7268262914415557072e-11, 2.9550526631296398346e-12,
    -4.8564467831119294609e-13, 7.6761854986049356169e-14, -1.1685332877993451681e-14,
    1.7153912855551330306e-15, -2.4312798465479546936e-16, 3.3307945188222380978e-17,
)  # fmt: skip
_I0_LARGE = (
    0.4022452055070544158, 0.0033691164782556940899, 0.000068897583469168239843, 2.891370520834756483e-6,
    2.0489185894690637418e-7, 2.2666689904981780646e-8, 3.3962320257083863452e-9, 4.9406023882249695891e-10,
    1.1889147107846438342e-11, -3.1499165279632413645e-11, -1.3215811840447713119e-11,
    -1.7941785315068061178e-12, 7.1801244513836662337e-13, 3.8527783827421427011e-13,
    1.5400862175214098269e-14, -4.1505693472872220866e-14, -9.5548466988283076487e-15,
    3.8116806693526224207e-15, 1.7725601330565263836e-15, -3.4254856196772191346e-16,
    -2.8276239805165834849e-16, 3.4612228676974610931e-17, 4.465621420296759999e-17,
)  # fmt: skip
_I1_SMALL = (
    0.12629359322181682741, -0.17641651835783405515, 0.10264365868984709538, -0.052945981208094991427,
    0.024726449030626516828, -0.010564084894626198156, 0.0041564229443128881567, -0.001513572450631253149,
    0.0005122859561685757729, -0.00016176081582589674559, 0.000047815651075500542264,
    -0.000013273163656039435828, 3.4702513081376784767e-6, -8.5687202646954547407e-7,
    2.0032947535521352623e-7, -4.4450591287963280807e-8, 9.3815373864957717839e-9,
    -1.8872497517228292879e-9, 3.625590281552117037e-10, -6.6634897235020277422e-11,
    1.1736186298890901631e-11, -1.9839743977649437152e-12, 3.2237933659455747098e-13,
    -5.0421855047279116871e-14, 7.6006842947354069341e-15, -1.105596947735386308e-15,
    1.5536319577362004689e-16, -2.1114212143581660782e-17,
)  # fmt: skip
_I1_LARGE = (
    0.38928811750914006024, -0.0097610974913614684078, -0.00011058893876262371629,
    -3.8825648088776903935e-6, -2.5122362378702089253e-7, -2.6314688468895195068e-8,
    -3.835380385964237022e-9, -5.5897434621965838069e-10, -1.8974958123505412345e-11,
    3.2526035830154882386e-11, 1.4125807436613781332e-11, 2.0356285441470895072e-12,
    -7.1985517762459085121e-13, -4.0835511110921973182e-13, -2.101541842772664313e-14,
    4.2724400167119513543e-14, 1.0420276984128802764e-14, -3.8144030724370078048e-15,
    -1.8803547755107824485e-15, 3.3082023109209282827e-16, 2.9626289976459501391e-16,
    -3.2095259219934239588e-17, -4.6503053684893583256e-17,
)  # fmt: skip


def _chebyshev(u: Number, coefficients: Sequence[float]) -> Number:
    """The sum of `c[k] T_k(u)` by Clenshaw's recurrence."""
    smallest = u.ops.tolerance(u.value) * 0.1
    coefficients = [c for c in coefficients if abs(c) > smallest]
    twice = u + u
    later, latest = u.like(0.0), u.like(0.0)
    for c in reversed(coefficients[1:]):
        later, latest = latest, twice * latest - later + c
    return u * latest - later + coefficients[0]


def _bessel_parts(x: Number) -> tuple[Number, Number, Number, Number]:
    ax = x.abs()
    small = ax <= 8.0
    inner = small.where(ax, 8.0)
    outer = small.where(8.0, ax)
    return small, inner, outer, outer.rsqrt()


def _bessel_i0e(x: Number) -> Number:
    small, inner, outer, scale = _bessel_parts(x)
    near = _chebyshev(inner * 0.25 - 1.0, _I0_SMALL)
    far = _chebyshev(16.0 / outer - 1.0, _I0_LARGE) * scale
    return small.where(near, far)


def _bessel_i1e(x: Number) -> Number:
    small, inner, outer, scale = _bessel_parts(x)
    near = _chebyshev(inner * 0.25 - 1.0, _I1_SMALL) * x
    far = _chebyshev(16.0 / outer - 1.0, _I1_LARGE) * scale
    return small.where(near, (x < 0.0).where(-far, far))


bessel_i0e, bessel_i0e_p = special_function(
    "bessel_i0e", 1, "The modified Bessel function of order 0 times `exp(-|x|)`, elementwise.",
    _bessel_i0e, scalar=lambda b, x: b.bessel_i0e(x), reference="scipy.special.i0e",
)  # fmt: skip
bessel_i1e, bessel_i1e_p = special_function(
    "bessel_i1e", 1, "The modified Bessel function of order 1 times `exp(-|x|)`, elementwise.",
    _bessel_i1e, scalar=lambda b, x: b.bessel_i1e(x), hlo="chlo.bessel_i1e", reference="scipy.special.i1e",
)  # fmt: skip
ad.defjvp2(bessel_i0e_p, lambda t, ans, x: mul(t, sub(bessel_i1e(x), mul(sign(x), ans))))


def _bessel_i1e_jvp(t: Any, ans: Any, x: Any) -> Any:
    from .families import dtype_of

    # At 0 the derivative is 1/2; 1/x is not used near it.
    epsilon = float(dtypes.finfo(dtype_of(x)).eps)
    away = gt(absolute(x), scalar_like(x, epsilon))
    safe = select(away, x, full_like(x, epsilon))
    slope = sub(bessel_i0e(safe), mul(ans, add(sign(safe), reciprocal(safe))))
    return mul(t, select(away, slope, full_like(x, 0.5)))


ad.defjvp2(bessel_i1e_p, _bessel_i1e_jvp)

for _p in (erf_p, erfc_p, erf_inv_p, lgamma_p, digamma_p, bessel_i0e_p, bessel_i1e_p):
    _p.declare(nan=True, factors=factors.composed)
for _p in (zeta_p, polygamma_p):
    _p.declare(factors=factors.composed)
erf_p.declare(factors=factors.apart)
