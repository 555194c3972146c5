"""Elementary and special functions of the CPU compiler against high precision, in units in the last place."""

from __future__ import annotations

import ctypes
import functools

import mpmath
import numpy as np
import pytest

from styrax.cpu import floating_point, llvm, math

LANES = {"f32": 16, "f64": 8}
DTYPES = {"f32": np.float32, "f64": np.float64}
ELEMENTS = {"f32": "float", "f64": "double"}
INF, NAN = float("inf"), float("nan")


# functions that come in pairs: name -> the pair, and the place in it
PAIRS = {"sin": ("sin_cos", 0), "cos": ("sin_cos", 1)}
NAMES = sorted({*math.FUNCTIONS, *PAIRS} - {pair for pair, _ in PAIRS.values()})


def arity(name: str) -> int:
    return len(math.argument_names(PAIRS[name][0] if name in PAIRS else name))


@functools.cache
def compiled(name: str, dtype: str, lanes: int):
    """The function over arrays whose length is a multiple of `lanes`, in the mode in which programs run."""
    element = ELEMENTS[dtype]
    vector = element if lanes == 1 else f"<{lanes} x {element}>"
    count = arity(name)
    align = DTYPES[dtype]().itemsize
    pointers = ", ".join(f"ptr %p{k}" for k in range(count))
    loads = "\n".join(
        f"  %a{k} = getelementptr {element}, ptr %p{k}, i64 %i\n  %x{k} = load {vector}, ptr %a{k}, align {align}"
        for k in range(count)
    )
    arguments = ", ".join(f"{vector} %x{k}" for k in range(count))
    symbol, result, pick = name, vector, f"bitcast {vector} %all to {vector}"
    if name in PAIRS:
        symbol, place = PAIRS[name]
        result, pick = f"{{ {vector}, {vector} }}", f"extractvalue {{ {vector}, {vector} }} %all, {place}"
    text = f"""
define void @over_array({pointers}, ptr %result, i64 %n) nounwind {{
entry:
  %mode = call i64 @flush_subnormals()
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{loads}
  %all = call {result} @styrax.{symbol}.{dtype}.{lanes}({arguments})
  %y = {pick}
  %to = getelementptr {element}, ptr %result, i64 %i
  store {vector} %y, ptr %to, align {align}
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  call void @set_mode(i64 %mode)
  ret void
}}
"""
    text += floating_point.source(floating_point.processor())
    library = llvm.load(math.module_text((symbol, dtype, lanes)) + text, name)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64)(
        library.address("over_array")
    )

    def run(*arrays):
        t = DTYPES[dtype]
        size = arrays[0].size
        padded = -(-size // lanes) * lanes
        arrays = [np.concatenate([a.astype(t), np.ones(padded - size, t)]) for a in arrays]
        result = np.empty(padded, t)
        function(*[a.ctypes.data for a in arrays], result.ctypes.data, padded)
        return result[:size]

    run.library = library
    return run


def evaluate(name: str, dtype: str, *arrays):
    return compiled(name, dtype, LANES[dtype])(*arrays)


def flushed(x):
    """Numbers without subnormal ones, which count as zeros."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(0, x), x).astype(x.dtype)


mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
mp.prec = 160


def real(value):
    return mp.nan if isinstance(value, mp.mpc) else value


REFERENCES = {
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1,
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.ln2,
    "log1p": mp.log1p,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "sqrt": mp.sqrt,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "erf": mp.erf,
    "erfc": lambda x: mp.erfc(x) if abs(x) < 60 else mp.mpf(1 - mp.sign(x)),
    "pow": mp.power,
    "atan2": mp.atan2,
    "log_modulus": lambda x, y: log_of_squares(x, y),
    "log1p_modulus": lambda x, y: log_of_squares(x, y, 1),
}
UNARY = [name for name in REFERENCES if name not in ("pow", "atan2", "log_modulus", "log1p_modulus")]


def log_of_squares(x, y, centre=0):
    """Half the logarithm of the exact sum of squares, which has thousands of digits."""
    with mpmath.workprec(4600):
        total = (centre + mpmath.mpf(x)) ** 2 + mpmath.mpf(y) ** 2
        return mp.mpf(mpmath.log(total) / 2) if total else mp.mpf("-inf")


def errors_in_ulps(name: str, result, *arrays):
    """|result - exact| in ulps of the exact value, for points where the exact value is finite."""
    f = REFERENCES[name]
    info = np.finfo(result.dtype)
    errors = np.zeros(result.size)
    for i, arguments in enumerate(zip(*[flushed(a).tolist() for a in arrays], strict=True)):
        try:
            exact = real(f(*[mp.mpf(v) for v in arguments]))
        except (ZeroDivisionError, ValueError):
            continue
        got = float(result[i])
        if mp.isnan(exact):
            errors[i] = 0.0 if np.isnan(got) else INF
        elif mp.isinf(exact):
            errors[i] = 0.0 if got == float(exact) else INF
        elif abs(exact) < info.tiny:
            errors[i] = 0.0 if abs(got) <= info.tiny else INF
        else:
            ulp = mp.ldexp(1, mp.frexp(exact)[1] - 1 - info.nmant)
            if np.isinf(got):
                # The nearest number may be the one after the largest.
                got = float("nan") if np.sign(got) != mp.sign(exact) else mp.ldexp(mp.sign(exact), info.maxexp)
                errors[i] = 0.0 if abs(exact) >= abs(got) else float(abs(got - exact) / ulp)
            else:
                errors[i] = float(abs(mp.mpf(got) - exact) / ulp)
    return np.nan_to_num(errors, nan=INF)


def points(dtype: str, count: int, seed: int):
    """Numbers of all magnitudes, of usual magnitudes, around one, and subnormal ones; both signs."""
    rng = np.random.default_rng(seed)
    real_type = DTYPES[dtype]
    bits = np.dtype(real_type).itemsize * 8
    nmant = np.finfo(real_type).nmant
    integers = rng.integers(0, 2**bits, count, dtype=np.uint64).astype(f"uint{bits}").view(real_type)
    integers = integers[np.isfinite(integers)].astype(np.float64)
    signs = rng.choice([-1.0, 1.0], count)
    x = np.concatenate(
        [
            integers,
            signs * np.ldexp(rng.uniform(1, 2, count), rng.integers(-nmant, 11, count)),
            rng.uniform(-3, 3, count),
            rng.normal(size=count) * 30,
            signs * (1 + np.ldexp(rng.uniform(-1, 1, count), rng.integers(-nmant, 0, count))),
            np.ldexp(rng.uniform(-1, 1, count // 4), np.finfo(real_type).minexp),
        ]
    )
    return x.astype(real_type)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_at_most_two_ulps(name, dtype):
    x = points(dtype, 250, seed=len(name))
    errors = errors_in_ulps(name, evaluate(name, dtype, x), x)
    worst = int(np.argmax(errors))
    assert errors[worst] <= 2.0, (x[worst], errors[worst])


NOT_IN_NUMPY = ("logistic", "rsqrt", "erf", "erfc")
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
NUMPY |= {"atanh": "arctanh", "pow": "power", "atan2": "arctan2"}


@pytest.mark.parametrize("name", [n for n in UNARY if n not in NOT_IN_NUMPY])
def test_whole_range_of_f32(name):
    # Every 4099th bit pattern against NumPy in f64, which is right to a small fraction of an f32 ulp.
    x = flushed(np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32))
    result = evaluate(name, "f32", x)
    with np.errstate(all="ignore"):
        exact = getattr(np, NUMPY.get(name, name))(x.astype(np.float64))
        rounded = exact.astype(np.float32)
        _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 1.0))
        ulp = np.ldexp(1.0, np.maximum(exponent - 24, -126))  # (subnormal results are zeros)
        error = np.abs(result.astype(np.float64) - exact) / ulp
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    assert np.array_equal(np.isnan(result), np.isnan(rounded))
    worst = int(np.argmax(np.where(same, 0, error)))
    assert same[worst] or error[worst] <= 2.0, (x[worst], error[worst])


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, INF, -INF, NAN]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", [n for n in UNARY if n not in NOT_IN_NUMPY])
def test_special_values(name, dtype):
    x = np.array([*SPECIAL, np.finfo(DTYPES[dtype]).smallest_subnormal], DTYPES[dtype])
    result = flushed(evaluate(name, dtype, x))
    with np.errstate(all="ignore"):
        expected = getattr(np, NUMPY.get(name, name))(flushed(x))
    np.testing.assert_allclose(result, expected, rtol=1e-6 if dtype == "f32" else 1e-15)
    sure = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[sure], np.signbit(expected)[sure])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_special_values_of_others(dtype):
    x = np.array([0.0, -0.0, INF, -INF, NAN], DTYPES[dtype])
    np.testing.assert_array_equal(evaluate("logistic", dtype, x), [0.5, 0.5, 1.0, 0.0, NAN])
    np.testing.assert_array_equal(evaluate("rsqrt", dtype, x), [INF, -INF, 0.0, NAN, NAN])
    erf = evaluate("erf", dtype, x)
    np.testing.assert_array_equal(erf, [0.0, -0.0, 1.0, -1.0, NAN])
    np.testing.assert_array_equal(np.signbit(erf)[:4], [False, True, False, True])
    np.testing.assert_array_equal(evaluate("erfc", dtype, x), [1.0, 1.0, 0.0, 2.0, NAN])
    ends = np.array([1.0, -1.0, 1.5, -0.0, NAN], DTYPES[dtype])
    np.testing.assert_array_equal(evaluate("erf_inv", dtype, ends), [INF, -INF, NAN, 0.0, NAN])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_remainders_are_exact(dtype):
    """Of quotients of all sizes, multiples and what has no remainder; last places are not subnormal."""
    rng = np.random.default_rng(12)
    info = np.finfo(DTYPES[dtype])
    least = info.tiny * 2.0 ** (info.nmant + 1)

    def drawn():
        exponents = rng.integers(info.minexp, info.maxexp, 3000)
        return (np.ldexp(rng.uniform(0.5, 1, 3000), exponents) * rng.choice([-1, 1], 3000)).astype(DTYPES[dtype])

    x, far, factors = drawn(), drawn(), rng.integers(1, 2**20, 3000).astype(DTYPES[dtype])
    close = (np.ldexp(x, -rng.integers(0, 60, 3000)) * rng.uniform(0.5, 1, 3000)).astype(DTYPES[dtype])
    edges = np.array([*SPECIAL, info.max, info.max / 2, info.max / 8, least, 3 * least, info.tiny, 0.1], DTYPES[dtype])
    pairs = [(x, far), (x, close), (x, x / factors), tuple(v.ravel() for v in np.meshgrid(edges, edges))]
    for a, b in pairs:
        known = ~(np.abs(b) < least) | (flushed(b) == 0)
        a, b = a[known], b[known]
        with np.errstate(all="ignore"):
            expected = flushed(np.fmod(flushed(a), flushed(b)))
        sure = ~np.isnan(expected)
        for lanes in (1, LANES[dtype]):  # which scale in two ways
            found = compiled("fmod", dtype, lanes)(a, b)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found)[sure], np.signbit(expected)[sure])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_special_pairs(name, dtype):
    numbers = [*SPECIAL, 3.0, -3.0, 1.5, -1.5, 1e10, -1e10, 2.0**53, 1e-40, -1e-40]
    x, y = (a.ravel().astype(DTYPES[dtype]) for a in np.meshgrid(numbers, numbers))
    result = flushed(evaluate(name, dtype, x, y))
    with np.errstate(all="ignore"):
        expected = flushed(getattr(np, NUMPY[name])(flushed(x), flushed(y)))
    np.testing.assert_allclose(result, expected, rtol=1e-6 if dtype == "f32" else 1e-15)
    sure = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[sure], np.signbit(expected)[sure])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_pow_at_most_two_ulps(dtype):
    rng = np.random.default_rng(5)
    count = 700
    top = 709.0 if dtype == "f64" else 88.0
    nmant = np.finfo(DTYPES[dtype]).nmant
    x = np.concatenate(
        [
            np.exp(rng.uniform(-top, top, count)),
            1 + np.ldexp(rng.uniform(-1, 1, count), rng.integers(2 - nmant, 0, count)),
            np.ldexp(rng.uniform(0.1, 1, count), np.finfo(DTYPES[dtype]).minexp),
        ]
    ).astype(DTYPES[dtype])
    with np.errstate(all="ignore"):
        y = rng.uniform(-1.05 * top, 1.02 * top, x.size) / np.log(x.astype(np.float64))
    y = np.where(np.isfinite(y), y, 3.0).astype(DTYPES[dtype])
    errors = errors_in_ulps("pow", evaluate("pow", dtype, x, y), x, y)
    assert errors.max() <= 1.5
    whole = rng.integers(-12, 12, (2, 200)).astype(DTYPES[dtype])
    negative = whole[:, (whole[0] != 0)]
    assert errors_in_ulps("pow", evaluate("pow", dtype, *negative), *negative).max() <= 1.5


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_atan2_at_most_two_ulps(dtype):
    rng = np.random.default_rng(6)
    info = np.finfo(DTYPES[dtype])
    y = np.ldexp(rng.uniform(-1, 1, 1500), rng.integers(info.minexp, info.maxexp, 1500))
    near = y[:750] * np.ldexp(rng.uniform(-1, 1, 750), rng.integers(-5, 1, 750))
    far = np.ldexp(rng.uniform(-1, 1, 750), rng.integers(info.minexp, info.maxexp, 750))
    y, x = y.astype(DTYPES[dtype]), np.concatenate([near, far]).astype(DTYPES[dtype])
    some = (flushed(y) != 0) | (flushed(x) != 0)  # mpmath has one zero
    y, x = y[some], x[some]
    assert errors_in_ulps("atan2", evaluate("atan2", dtype, y, x), y, x).max() <= 2.0


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["log_modulus", "log1p_modulus"])
def test_moduli_at_most_four_ulps(name, dtype):
    # Close to the circle of radius 1 down to its last place, at usual sizes, at all sizes, and of one size.
    rng = np.random.default_rng(7)
    info, count = np.finfo(DTYPES[dtype]), 200

    def any_size():
        exponents = rng.integers(info.minexp - info.nmant, info.maxexp, count)
        return np.ldexp(rng.uniform(-1, 1, count), exponents)

    angle = rng.uniform(0, 2 * np.pi, count)
    radius = 1 + np.ldexp(rng.uniform(-1, 1, count), -rng.integers(0, info.nmant, count))
    sizes = any_size()
    pairs = [
        (radius * np.cos(angle), radius * np.sin(angle)), (rng.uniform(-2, 2, count), rng.uniform(-2, 2, count)),
        (any_size(), any_size()), (sizes, sizes * rng.uniform(-1, 1, count)), (np.ones(count), any_size()),
    ]
    for x, y in pairs:
        for centre in (0, 1) if name == "log1p_modulus" else (0,):
            a, b = (x - centre).astype(DTYPES[dtype]), y.astype(DTYPES[dtype])
            errors = errors_in_ulps(name, evaluate(name, dtype, a, b), a, b)
            # what is left of two parts each, where nearly all of them cancels
            usual = np.abs(evaluate(name, dtype, a, b)) > info.eps
            assert errors[usual].max(initial=0) <= 4, (a[np.argmax(errors)], b[np.argmax(errors)])
            assert errors.max() <= 64, (a[np.argmax(errors)], b[np.argmax(errors)])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_special_moduli(dtype):
    numbers = [*SPECIAL, np.finfo(DTYPES[dtype]).max, np.finfo(DTYPES[dtype]).smallest_subnormal]
    x, y = (a.ravel().astype(DTYPES[dtype]) for a in np.meshgrid(numbers, numbers))
    known = ~(np.isnan(x) | np.isnan(y))  # infinite beside NaN: JAX and we say NaN, C's `hypot` infinite
    for name, shift in (("log_modulus", 0), ("log1p_modulus", 1)):
        for lanes in (1, LANES[dtype]):
            result = compiled(name, dtype, lanes)(x, y)
            with np.errstate(all="ignore"):
                expected = np.log(np.hypot(*(flushed(v).astype(np.longdouble) + k for v, k in ((x, shift), (y, 0)))))
            np.testing.assert_allclose(result[known], expected[known].astype(DTYPES[dtype]), rtol=4 * np.finfo(
                DTYPES[dtype]).eps, atol=np.finfo(DTYPES[dtype]).tiny)
            assert np.isnan(result[~known]).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles(name, dtype):
    # The worst known cases for reduction, and powers of ten and two up to the largest number.
    x = [6381956970095103.0 * 2.0**797, 1e22, 5e15, 16367173.0 * 2.0**72, 2.0**120, 1e38, 3.0e9, -1e30]
    if dtype == "f64":
        x += [1.7976931348623157e308, -1e300, 2.0**1000]
    with np.errstate(over="ignore"):
        x = np.array(x, DTYPES[dtype])
    x = x[np.isfinite(x)]
    with mp.workprec(1400):
        assert errors_in_ulps(name, evaluate(name, dtype, x), x).max() <= 2.0


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", NAMES)
def test_lanes_do_not_change_bits(name, dtype):
    x = points(dtype, 60, seed=3)
    arguments = [x, *[np.roll(x, 17 * k) for k in range(1, arity(name))]]
    one = compiled(name, dtype, 1)(*arguments)
    for lanes in (4, LANES[dtype]):
        many = compiled(name, dtype, lanes)(*arguments)
        same = (one == many) & (np.signbit(one) == np.signbit(many)) | np.isnan(one) & np.isnan(many)
        assert same.all(), (x[~same][:3], one[~same][:3], many[~same][:3])


def bessel(order):
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x))


def uniform(low, high):
    return lambda rng, count: rng.uniform(low, high, count)


# name, exact function, how its arguments are drawn, ulps allowed in f64
HARDER = [
    ("erf_inv", mp.erfinv, [uniform(-1, 1)], 2),
    ("lgamma", lambda x: mp.re(mp.loggamma(x)), [uniform(0, 20)], 5),
    ("lgamma", lambda x: mp.re(mp.loggamma(x)), [uniform(20, 1e9)], 2),
    ("digamma", mp.digamma, [uniform(2, 40)], 10),
    ("bessel_i0e", bessel(0), [uniform(-25, 25)], 4),
    ("bessel_i1e", bessel(1), [uniform(-25, 25)], 4),
    ("zeta", mp.zeta, [uniform(1.01, 12), uniform(0.1, 30)], 8),
    (
        "polygamma",
        lambda n, x: mp.polygamma(int(n), x),
        [lambda rng, count: rng.integers(1, 7, count), uniform(0.1, 30)],
        32,
    ),
    ("igamma", lambda a, x: mp.gammainc(a, 0, x, regularized=True), [uniform(0.1, 60), uniform(0.1, 60)], 256),
    ("igammac", lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), [uniform(0.1, 60), uniform(0.1, 60)], 256),
    (
        "betainc",
        lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        [uniform(0.1, 20), uniform(0.1, 20), uniform(0.01, 0.99)],
        256,
    ),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("row", HARDER, ids=[f"{row[0]}-{i}" for i, row in enumerate(HARDER)])
def test_special_functions(row, dtype, monkeypatch):
    name, exact, draws, allowed = row
    monkeypatch.setitem(REFERENCES, name, exact)
    rng = np.random.default_rng(8)
    arguments = [draw(rng, 80).astype(DTYPES[dtype]) for draw in draws]
    errors = errors_in_ulps(name, evaluate(name, dtype, *arguments), *arguments)
    worst = int(np.argmax(errors))
    assert errors[worst] <= (min(3.0, allowed) if dtype == "f32" else allowed), [a[worst] for a in arguments]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_edges_of_gamma_functions(dtype):
    x = np.array([1.0, 2.0, 0.0, -0.0, -3.0, INF, -INF, NAN, -1e30], DTYPES[dtype])
    lgamma = evaluate("lgamma", dtype, x)
    np.testing.assert_array_equal(lgamma, [0.0, 0.0, INF, INF, INF, INF, INF, NAN, INF])
    assert not np.signbit(lgamma[:2]).any()
    np.testing.assert_array_equal(
        np.isnan(evaluate("digamma", dtype, x)), [False, False, True, True, True, False, True, True, True]
    )
    near = np.array([-2.5, -1e-6, 0.25, -100.5])
    np.testing.assert_allclose(evaluate("lgamma", "f64", near), [float(mp.re(mp.loggamma(v))) for v in near])
    np.testing.assert_allclose(evaluate("digamma", "f64", near), [float(mp.digamma(v)) for v in near])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_edges_of_incomplete_functions(dtype):
    a = np.array([0.0, 0.0, 1.0, -1.0, 2.0, 2.0, INF, INF, NAN, 1e9], DTYPES[dtype])
    x = np.array([0.0, 1.0, 0.0, 1.0, -1.0, INF, 1.0, INF, 1.0, 2e9], DTYPES[dtype])
    lower = np.array([NAN, 1.0, 0.0, NAN, NAN, 1.0, NAN, 1.0, NAN, 1.0])
    np.testing.assert_array_equal(evaluate("igamma", dtype, a, x), lower)
    np.testing.assert_array_equal(evaluate("igammac", dtype, a, x), 1.0 - lower)
    rows = [
        (0, 1, 0.5, 1), (1, 0, 0.5, 0), (1, 1, 0, 0), (1, 1, 1, 1), (1, 1, -0.1, NAN), (1, 1, 1.1, NAN),
        (-1, 1, 0.5, NAN), (INF, 1, 0.5, 0), (1, INF, 0.5, 1), (NAN, 1, 0.5, NAN), (0, 0, 0.5, NAN),
    ]  # fmt: skip
    a, b, x, expected = np.array(rows, DTYPES[dtype]).T
    np.testing.assert_array_equal(evaluate("betainc", dtype, a, b, x), expected)


def test_incomplete_gamma_of_many():
    # The asymptotic expansion and the fractions meet at a = 2**17.
    a = np.array([131071.0, 131072.0, 1e6, 1e6])
    x = np.array([131000.0, 131000.0, 1e6 - 8e3, 1e6 + 1500.0])
    # Sums of the power series to 25 digits
    expected = [0.42260759820403854, 0.42152665725925037, 5.24012281543083e-16, 0.9331388957641022]
    lower, upper = evaluate("igamma", "f64", a, x), evaluate("igammac", "f64", a, x)
    np.testing.assert_allclose(lower, expected, rtol=2e-14)
    np.testing.assert_allclose(upper, 1 - np.array(expected), rtol=2e-14)


def test_exact_results():
    n = np.arange(-1022.0, 1024.0)
    np.testing.assert_array_equal(evaluate("exp2", "f64", n), np.ldexp(1.0, n.astype(int)))
    np.testing.assert_array_equal(evaluate("log2", "f64", np.ldexp(1.0, n.astype(int))), n)
    k = np.arange(-50.0, 51.0)
    np.testing.assert_array_equal(evaluate("cbrt", "f64", k**3), k)
    np.testing.assert_array_equal(evaluate("pow", "f64", k, np.full_like(k, 2.0)), k * k)
    np.testing.assert_array_equal(evaluate("cos", "f32", np.array([0.0, 1e-5, -1e-8])), [1.0, 1.0, 1.0])


def test_definition_is_text_with_dependencies():
    symbol, text, dependencies = math.definition("tan", "f32", 16)
    assert symbol == "styrax.tan.f32.16"
    assert text.startswith("define internal <16 x float> @styrax.tan.f32.16(<16 x float> %x)")
    assert dependencies == (("quarter_remainder", "f32", 16),)
    assert math.definition("tan", "f32", 16) is math.definition("tan", "f32", 16)
    assert math.module_text(("tan", "f32", 16), ("sin_cos", "f32", 16)).count("@styrax.inverse_pi_bits =") == 1
    with pytest.raises(KeyError):
        math.definition("no_such_function", "f32", 16)
