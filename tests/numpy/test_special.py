"""Special functions and segment reductions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax.scipy.special
import mpmath
import numpy as np
import pytest
import scipy.special

import styrax
import styrax.numpy
import styrax.scipy.special
from tests.numpy import oracle

TABLE = """
jax.ops.segment_sum(x, i, num_segments=3)
jax.ops.segment_max(x, i, num_segments=3)
jax.ops.segment_prod(x, i, num_segments=3, indices_are_sorted=True)
jax.ops.segment_sum(m, jnp.array([1, 1]), num_segments=2)
jax.ops.segment_max(i, i, num_segments=3)
jsp.special.logsumexp(x)
jsp.special.expit(x)
jsp.special.xlogy(x, y)
jsp.special.xlog1py(x, y)
jsp.special.entr(y)
jsp.special.gammaln(x)
jsp.special.erf(x)
jsp.special.erfinv(p)
jsp.special.ndtr(x)
jsp.special.digamma(y)
jsp.special.polygamma(1, y)
jsp.special.multigammaln(5*y, 2)
jsp.special.i0(x)
jsp.special.i1(x)
jsp.special.i1e(x)
jsp.special.betainc(y, y, y)
jsp.special.gammainc(y, y)
jsp.special.gammaincc(y, y)
jsp.special.factorial(y)
jsp.special.softmax(m)
jsp.special.log_softmax(m, axis=1)
jax.grad(lambda z: jsp.special.entr(z).sum())(y)
jsp.special.dawsn(c)
jsp.special.spence(i)
jsp.special.bernoulli(-1)
"""

# JAX composes these of other primitives.
VALUES = """
jax.ops.segment_min(x, jnp.array([0, 0, 1]))
jax.ops.segment_sum(x, i, num_segments=3, bucket_size=2)
jsp.special.logit(y)
jsp.special.betaln(x, y)
jsp.special.betaln(10*y, 30*y)
jsp.special.gamma(x)
jsp.special.gammasgn(x)
jsp.special.log_ndtr(x)
jsp.special.log_ndtr(10*x)
jsp.special.ndtri(y)
jsp.special.ndtri(jnp.array([1e-10, 1e-3, .3, .5, .9, .999, 0, 1, 2]))
jsp.special.zeta(y+1.5, y)
jsp.special.kl_div(y, y[::-1])
jsp.special.rel_entr(x, y)
jsp.special.boxcox(y, 0.5)
jsp.special.boxcox1p(y, 0.)
jsp.special.poch(y, 2.)
jsp.special.comb(5, i)
jsp.special.beta(y, y)
jsp.special.loggamma(y)
jax.grad(lambda z: jsp.special.xlogy(z, z).sum())(y)
jax.grad(lambda z: jsp.special.log_ndtr(z).sum())(x)
jax.grad(lambda z: jsp.special.ndtri(z).sum())(p)
jax.grad(lambda z: jsp.special.logit(z).sum())(p)
jsp.special.dawsn(3 * x)
jsp.special.erfcx(x)
jsp.special.erfcx(c)
jsp.special.exp1(p)
jsp.special.expi(x)
jsp.special.expn(n, p)
jsp.special.expn(2, 5 * p)
jsp.special.fresnel(2 * x)
jsp.special.sici(3 * y)
jsp.special.spence(p)
jsp.special.owens_t(x, y)
jsp.special.owens_t(c, x)
jsp.special.owens_t(x, c)
jsp.special.wofz(c)
jsp.special.hyp1f1(1., 2., x)
jsp.special.hyp2f1(1., 2., 3., p)
jsp.special.bernoulli(8)
jsp.special.sph_harm_y(jnp.array([2]), jnp.array([-1]), p[:1], y[:1])
jax.grad(lambda v: jsp.special.dawsn(v).sum())(x)
jax.grad(lambda v: jsp.special.expn(2, v).sum())(p)
jax.grad(lambda v: jsp.special.owens_t(v, y).sum())(x)
"""


def test_values() -> None:
    oracle.check_values(TABLE + VALUES, rtol=1e-4, atol=1e-5)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)


DERIVATIVES = """
jax.vmap(jax.grad(jsp.special.zeta))(p + 1.2, x + 2.1)
jax.vmap(jax.grad(jsp.special.zeta, argnums=1))(p + 1.2, x + 2.1)
jax.grad(lambda v: jsp.special.zeta(v, 0.3))(x[0])
jax.vmap(jax.grad(jsp.special.poch, argnums=1))(p, 0 * p)
jax.vmap(jax.grad(jsp.special.poch, argnums=0))(p, y)
"""


def test_derivatives_at_special_places() -> None:
    oracle.check_values(DERIVATIVES, rtol=1e-4)


# Functions, points, the bound of relative errors in units of the precision.
POINTS = {
    "hyp2f1": [(a, b, c, x) for a in (-3.0, -0.5, 0.5, 2.3) for b in (-2.0, 0.7, 1.2) for c in (0.6, 2.0, 3.7)
               for x in (-1e4, -20.0, -0.9, 0.3, 0.9, 0.999)],
    "comb": [(n, k) for n in (0.0, 0.5, 1.0, 3.5, 5.0, 30.0, 60.0) for k in (0.0, 1.0, 2.0, 2.5, 10.0, 25.0) if k <= n],
    "gamma": [(x,) for x in (-20.5, -3.5, -1e-3, 1e-5, 0.5, 1.0, 5.0, 12.5, 30.0, -np.inf, np.inf, -2.0, np.nan)],
}
REFERENCES = {
    "hyp2f1": lambda a, b, c, x: mpmath.hyp2f1(a, b, c, x),
    "comb": lambda n, k: mpmath.binomial(n, k),
    "gamma": lambda x: (mpmath.gamma(x) if mpmath.isfinite(x) and x != -2 else np.inf if x == np.inf else np.nan),
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", POINTS)
def test_over_the_domain(name: str, x64: bool) -> None:
    dtype = np.float64 if x64 else np.float32
    points = np.array(POINTS[name], dtype)
    expected = np.array([float(mpmath.re(REFERENCES[name](*map(float, p)))) for p in points])
    with styrax.enable_x64(x64):
        found = np.asarray(getattr(styrax.scipy.special, name)(*points.T), np.float64)
    np.testing.assert_allclose(found, expected, rtol=2000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name, point", [("hyp2f1", (1.2, 0.7, 2.1, 0.3)), ("hyp2f1", (1.2, 0.7, 2.1, 0.97)),
                                         ("hyp2f1", (0.7, 1.2, 2.1, -30.0)), ("hyp2f1", (-2.0, 0.7, 1.5, -3.0)),
                                         ("comb", (5.0, 2.0)), ("comb", (5.5, 2.5)),
                                         ("gamma", (-2.5,)), ("gamma", (7.0,))])
def test_slopes(name: str, point: tuple) -> None:
    function = getattr(styrax.scipy.special, name)
    reference = REFERENCES[name]
    with styrax.enable_x64(True):
        # A polynomial in x has no slope by its degree here.
        places = [i for i, v in enumerate(point) if name != "hyp2f1" or v != -2.0]
        gradient = styrax.grad(function, places)
        slopes = styrax.vmap(gradient)(*(np.array([v, v]) for v in point))
        for place, slope in zip(places, slopes, strict=True):
            line = lambda t, place=place: reference(*point[:place], t, *point[place + 1:])
            expected = float(mpmath.re(mpmath.diff(line, point[place])))
            np.testing.assert_allclose(np.asarray(slope), expected, rtol=1e-10)


def test_comb_outside() -> None:
    """Where there is nothing to choose, slopes are 0 and not NaN."""
    for point in ((2.0, 3.0), (-3.0, -2.0), (-1.0, 0.0), (3.0, -1.0)):
        assert [float(v) for v in styrax.grad(styrax.scipy.special.comb, (0, 1))(*point)] == [0, 0]
    assert float(styrax.scipy.special.comb(1000.0, 500.0)) == np.inf


def test_spherical_harmonics_beyond_their_orders() -> None:
    n, m = np.array([0, 1, 2, 3, 5, 10, 4]), np.array([1, 2, -3, 4, 5, -7, 0])
    for theta in (0.3, -0.4, 4.5):
        found = styrax.scipy.special.sph_harm_y(n, m, np.full(7, theta), np.full(7, 1.3))
        np.testing.assert_allclose(np.asarray(found), scipy.special.sph_harm_y(n, m, theta, 1.3), atol=1e-6)
    slope = styrax.grad(lambda t: styrax.scipy.special.sph_harm_y(np.array([1]), np.array([1]), t, 0.0).real.sum())
    np.testing.assert_allclose(float(slope(0.0)), -np.sqrt(3 / (8 * np.pi)), rtol=1e-6)


def test_complex_expm1_of_reals() -> None:
    z = np.array([np.inf, -np.inf, 1, -0.0, complex(1, -0.0)], np.complex64)
    for found in (styrax.numpy.expm1(z), styrax.jit(styrax.numpy.expm1)(z)):
        np.testing.assert_array_equal(np.asarray(found).imag, 0)
        np.testing.assert_allclose(np.asarray(found).real, np.expm1(z.real), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["loggamma", "gamma"])
def test_gamma_of_complex_numbers(name, dtype):
    from scipy import special

    import styrax

    points = [1 + 2j, -3.2 + 1j, -0.5, 1e-8j, 30 + 40j, -20.3 + 0.1j, -30.5 + 20j, -0.5 - 1e-30j, -1 + 1e-6j, 0.49 + 1j,
              -2, 0, np.nan, 3 - 50j, 1e-20, *(np.random.RandomState(0).randn(60, 2) @ [8, 8j])]
    with styrax.enable_x64(dtype == "complex128"):
        z = np.array(points, dtype)
        function = getattr(styrax.scipy.special, name)
        with np.errstate(all="ignore"):
            wanted = getattr(special, name)(z.astype(np.complex128))
        for found in (function(z), styrax.jit(function)(z), styrax.vmap(function)(z)):
            assert found.dtype == dtype
            regular = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.isnan(found), ~regular)
            error = np.abs(found - wanted)[regular] / np.maximum(np.abs(wanted[regular]), 1e-30)
            assert error.max() < (5e-5 if dtype == "complex64" else 1e-11)
        slope = special.digamma(z.astype(np.complex128))
        at = np.isfinite(slope) & (np.abs(slope) < 1e3)
        found = styrax.vmap(styrax.grad(lambda z: styrax.scipy.special.loggamma(z).real))(z)
        np.testing.assert_allclose(np.asarray(found)[at], slope[at], rtol=2e-3 if dtype == "complex64" else 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantiles_of_the_normal_distribution(dtype):
    """From the least probabilities on, and next to where the formulas meet."""
    info, rng = np.finfo(dtype), np.random.default_rng(4)
    with styrax.enable_x64(dtype == "float64"):
        tails = 10.0 ** rng.uniform(np.log10(info.tiny), -1, 300)
        meeting = [0.075, 0.925, np.exp(-25.0)]
        p = np.concatenate([rng.uniform(0, 1, 300), tails, 1 - tails, np.nextafter(meeting, 1), meeting]).astype(dtype)
        p = p[(p > 0) & (p < 1)]
        function = styrax.scipy.special.ndtri
        for found in (function(p), styrax.jit(function)(p), styrax.vmap(function)(p)):
            assert found.dtype == dtype
            np.testing.assert_allclose(np.asarray(found), scipy.special.ndtri(p.astype(float)), rtol=5 * info.eps,
                                       atol=info.eps ** 2)
        ends = np.array([0, 1, -0.1, 1.1, np.nan, 0.5], dtype)
        np.testing.assert_array_equal(function(ends), [-np.inf, np.inf, np.nan, np.nan, np.nan, 0])
        assert np.isfinite(function(info.tiny))  # (smaller numbers count as zero)
        slope = styrax.vmap(styrax.grad(function))(p)
        density = np.exp(-0.5 * scipy.special.ndtri(p.astype(float)) ** 2) / np.sqrt(2 * np.pi)
        usual = density > 1e-30
        np.testing.assert_allclose(np.asarray(slope)[usual], 1 / density[usual], rtol=1e3 * info.eps)


def test_tails_of_gamma_distributions_are_not_negative() -> None:
    """Where one tail is all but one, the other is what cancels."""
    sizes = 10.0 ** np.arange(-30, 6, 3)
    a, x = (v.ravel().astype(np.float32) for v in np.meshgrid(sizes, sizes))
    for name in ("gammainc", "gammaincc"):
        found = np.asarray(getattr(styrax.scipy.special, name)(a, x))
        assert (found >= 0).all() and (found <= 1).all()
        np.testing.assert_allclose(found, getattr(scipy.special, name)(a.astype(float), x.astype(float)), rtol=1e-5,
                                   atol=1e-13)


@pytest.mark.parametrize("name, function", [
    ("beta", mpmath.beta), ("betaln", lambda a, b: mpmath.log(mpmath.beta(a, b))), ("comb", mpmath.binomial)])
@pytest.mark.parametrize("point", [(1.5, 1.5), (12.0, 12.0), (3.0, 1.5), (5.0, 2.5)])
def test_slopes_of_slopes_where_arguments_are_equal(name: str, function: Callable, point: tuple) -> None:
    """Of functions that take the lesser and the larger one apart."""
    with styrax.enable_x64(True):
        found = np.asarray(styrax.hessian(getattr(styrax.scipy.special, name), (0, 1))(*point))
    for i, j in np.ndindex(2, 2):
        order = tuple((k == i) + (k == j) for k in range(2))
        assert found[i, j] == pytest.approx(float(mpmath.diff(function, point, order)), rel=1e-8, abs=1e-12)


ORDERS = [0, 1, 2, -1, -4, 0.5, 1.5, -0.5, -2.5, 7.25]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponential_integrals_of_any_order(dtype: str) -> None:
    """Beyond 1 for all orders; before, where the series is not that of integers from 0 on, NaN, as in JAX."""
    x, tolerance = np.array([1.25, 2, 3.5, 10, 40], dtype), 1e-5 if dtype == "float32" else 1e-13
    expn = styrax.scipy.special.expn
    with styrax.enable_x64(dtype == "float64"):
        for n in ORDERS:
            wanted = [[float(mpmath.expint(k, float(v))) for v in x] for k in (n, n - 1)]
            for found in (expn(n, x), styrax.jit(expn)(n, x), styrax.vmap(expn, (None, 0))(dtype_of(n, dtype), x)):
                assert found.dtype == dtype
                np.testing.assert_allclose(found, wanted[0], rtol=tolerance)
            slope = styrax.vmap(styrax.grad(lambda v, n=n: expn(n, v)))(x)
            np.testing.assert_allclose(slope, -np.array(wanted[1]), rtol=tolerance)
        near = np.array([0.1, 1, -1, np.nan], dtype)
        for n in ORDERS:
            beyond = n < 0 or n % 1 != 0
            np.testing.assert_array_equal(np.isnan(expn(n, near)), [beyond, beyond, True, True])
            np.testing.assert_allclose(expn(n, np.zeros(1, dtype)), 1 / (n - 1) if n > 1 else np.inf, rtol=1e-6)
            np.testing.assert_array_equal(expn(n, np.array([np.inf], dtype)), 0)
            assert expn(n, near[:0]).shape == (0,)


def dtype_of(number: float, dtype: str) -> np.ndarray:
    return np.asarray(number, dtype)


@pytest.mark.parametrize("name", ["ndtr", "ndtri", "log_ndtr"])
@pytest.mark.parametrize("x", [1, True, 1j, np.arange(3), np.zeros((0, 2), np.uint8), np.ones(2, np.float16), 0.5],
                         ids=str)
def test_functions_of_the_normal_distribution_take_single_and_double(name: str, x: Any) -> None:
    ours, theirs = (getattr(package.scipy.special, name) for package in (styrax, jax))
    compared = [(ours, theirs), (styrax.jit(ours), jax.jit(theirs))]
    for f, g in compared:
        assert_outcomes(lambda f=f: f(x), lambda g=g: g(x))


def assert_outcomes(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Values, or TypeErrors that begin alike."""
    try:
        expected = theirs()
    except TypeError as error:
        with pytest.raises(TypeError, match=str(error)[:25]):
            ours()
        return
    np.testing.assert_allclose(ours(), expected, rtol=1e-6)


def test_tables_of_legendre_functions_are_deprecated() -> None:
    """Once, where they are first asked for."""
    script = (
        "import warnings\n"
        "import jax.scipy.special as special\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    for name in ('lpmn_values', 'lpmn', 'lpmn'):\n"
        "        getattr(special, name)\n"
        "    print([(w.category.__name__, str(w.message), w.lineno) for w in found])\n")
    texts = [subprocess.run([sys.executable, *how, "-c", script], capture_output=True, text=True, check=True).stdout
             for how in ([], ["-m", "styrax"])]
    assert texts[0] == texts[1] and "lpmn_values is deprecated; no replacement is planned" in texts[0]


def test_where_scipy_and_jax_agree_at_the_edges() -> None:
    special, nan, inf = styrax.scipy.special, np.nan, np.inf
    for k in (0.0, 2.0, nan):
        assert [float(v) for v in special.comb(np.array([nan, 3.0]), np.array([k, nan]))] == [0, 0]
    assert np.isnan(special.spence(np.float32(inf))) and np.isnan(scipy.special.spence(inf))
    points = [(1.0, 0.0, 0.5), (-1.0, 0.0, 0.5), (2.0, 0.0, -3.0), (-1.0, -2.0, 0.7), (-1.0, -2.0, -20.0),
              (0.5, 0.0, 0.0)]
    found = special.hyp1f1(*np.array(points, np.float32).T)
    np.testing.assert_allclose(found, scipy.special.hyp1f1(*np.array(points).T), rtol=1e-6)
    points = [(0.0, 0.5, -2.0, 0.5), (0.5, 0.0, -1.0, -3.0), (0.0, 1.5, 2.5, 2.0)]
    np.testing.assert_array_equal(special.hyp2f1(*np.array(points, np.float32).T), 1)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_bessel_functions_of_small_floats(dtype: str) -> None:
    """JAX's are not numbers."""
    x = styrax.numpy.asarray([0.5, 1.0, 2.0, 3.5], dtype)
    found = styrax.scipy.special.bessel_jn(x, v=3)
    assert found.dtype == x.dtype
    expected = [scipy.special.jn(k, [0.5, 1.0, 2.0, 3.5]) for k in range(4)]
    rounding = float(styrax.numpy.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(found, np.float32), expected, rtol=0, atol=max(2 * rounding, 1e-6))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_bessel_functions_near_zero_and_far_away(dtype: str) -> None:
    """Where the recurrence grows by more than a float holds in each step."""
    with styrax.enable_x64(dtype in ("float64", "complex128")):
        points = [0, -0.0, 1e-38, 1e-30, 1e-18, 1e-10, -1e-12, 1e-3, 0.5, -1, 20, np.inf, -np.inf, np.nan]
        points = np.array(points, dtype)
        wide = points.astype(np.promote_types(dtype, np.float64))
        for f in (styrax.scipy.special.bessel_jn, styrax.jit(styrax.scipy.special.bessel_jn, static_argnames="v")):
            found = f(styrax.numpy.asarray(points), v=12)
            assert np.isnan(found[:, ~np.isfinite(points)]).all()
            expected = scipy.special.jv(np.arange(13)[:, None], wide[np.isfinite(points)])
            rounding = float(styrax.numpy.finfo(dtype).eps)
            np.testing.assert_allclose(found[:, np.isfinite(points)], expected, rtol=0, atol=10 * rounding)
        slopes = [styrax.grad(lambda z: f(z, v=2)[1])(x) for x in (0.0, 1e-30, 0.5)] if dtype[0] == "f" else []
        np.testing.assert_allclose(slopes, scipy.special.jvp(1, [0, 0, 0.5])[:len(slopes)], rtol=1e-6)
