"""Taylor mode against power series of mpmath, repeated forward mode, and JAX's `jet`."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.experimental import jet as jets
from styrax.experimental.jet import jet
from tests.experimental.oracle import assert_same, module

ORDER = 4
CURVE = [1.3, -0.7, 0.2, 0.5]  # derivatives of the curve at 0.37
START = 0.37


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


ELEMENTARY = {
    **{name: (getattr(lax, name), getattr(mpmath, name)) for name in
       "sin cos tan sinh cosh tanh exp expm1 sqrt cbrt asin acos atan asinh atanh erf erfc digamma".split()},
    "log": (lax.log, mpmath.log),
    "log1p": (lax.log1p, mpmath.log1p),
    "acosh": (lambda x: lax.acosh(1 + x), lambda x: mpmath.acosh(1 + x)),
    "rsqrt": (lax.rsqrt, lambda x: 1 / mpmath.sqrt(x)),
    "logistic": (lax.logistic, lambda x: 1 / (1 + mpmath.exp(-x))),
    "lgamma": (lax.lgamma, mpmath.loggamma),
    "erf_inv": (lax.erf_inv, mpmath.erfinv),
    "exp2": (lax.exp2, lambda x: 2**x),
    "square": (lax.square, lambda x: x * x),
    "power": (lambda x: x**2.5, lambda x: x**mpmath.mpf(2.5)),
    "base": (lambda x: 2.5**x, lambda x: mpmath.mpf(2.5)**x),
    "both": (lambda x: lax.pow(x, x * x + 1), lambda x: x ** (x * x + 1)),
    "integer power": (lambda x: x**5, lambda x: x**5),
    "inverse power": (lambda x: x**-3, lambda x: x**-3),
    "quotient": (lambda x: jnp.sin(x) / (1 + x * x), lambda x: mpmath.sin(x) / (1 + x * x)),
    "inverse": (lambda x: 3 / x, lambda x: 3 / x),
    "part": (lambda x: x / 3, lambda x: x / 3),
    "atan2": (lambda x: lax.atan2(x, x * x + 1), lambda x: mpmath.atan(x / (x * x + 1))),
    "bessel": (lax.bessel_i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-x)),
    "gamma": (lambda x: lax.igamma(2.0, x), lambda x: mpmath.gammainc(2, 0, x, regularized=True)),
}


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions(name):
    ours, exact = ELEMENTARY[name]
    with mpmath.workdps(40):
        curve = lambda t: mpmath.mpf(START) + sum(c * t**k / mpmath.factorial(k) for k, c in enumerate(CURVE, 1))
        want = [mpmath.diff(lambda t: exact(curve(t)), 0, k) for k in range(ORDER + 1)]
    y, terms = jet(ours, (START,), (CURVE,))
    np.testing.assert_allclose([y, *terms], np.array(want, float), rtol=1e-10, atol=1e-12)


def three(x):
    return jnp.stack([x, 3 * x, x * x])


def spd(x):
    return jnp.array([[2.0, 0.3], [0.3, 1.0]]) * (1 + x) + x * x * jnp.eye(2)


@jax.custom_jvp
def doubled(x):
    return x


doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))

STRUCTURED = {
    "max": lambda x: jnp.maximum(x, x * x),
    "clip": lambda x: jnp.clip(x * x, 0.0, 0.2),
    "where": lambda x: jnp.where(x > 0, x * x, x),
    "abs": lambda x: jnp.abs(x - 1) * x,
    "softmax": lambda x: jax.nn.softmax(three(x)),
    "product": lambda x: three(x) @ jnp.outer(three(x), jnp.ones(2)),
    "convolution": lambda x: jnp.convolve(three(x), jnp.stack([x, x])),
    "sort": lambda x: jnp.sort(three(x)),
    "top": lambda x: lax.top_k(three(x), 2),
    "largest": lambda x: three(x).max(),
    "prod": lambda x: three(x).prod(),
    "variance": lambda x: three(x).var(),
    "cumulative": lambda x: [jnp.cumsum(three(x)), jnp.cumprod(three(x)), lax.cummax(three(x))],
    "windows": lambda x: lax.reduce_window(three(x), -np.inf, lax.max, (2,), (1,), "VALID"),
    "gather": lambda x: three(x)[jnp.array([2, 0, 2])],
    "scatter": lambda x: jnp.zeros(3).at[1].set(x * x),
    "scatter add": lambda x: jnp.zeros(3).at[jnp.array([1, 1])].add(x * x),
    "empty": lambda x: three(x)[:0] * x,
    "cond": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x * x),
    "cond of a constant": lambda x: lax.cond(x > 0, lambda y: y, lambda y: 2.0 + 0 * y, 3.0) * x,
    "scan": lambda x: lax.scan(lambda c, a: (jnp.sin(c * x) + a, c * a), x, jnp.arange(3.0)),
    "scan of a row": lambda x: lax.scan(lambda c, a: (c * a, (c, 1)), 1.0, jnp.arange(1, 4.0) * x, reverse=True)[0],
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1],
    "jit": lambda x: jax.jit(lambda x, n: jnp.sin(x) * x * n)(x, 2),
    "checkpoint": lambda x: jax.checkpoint(lambda x: jnp.sin(x) * x)(x),
    "custom": lambda x: doubled(x) * x,
    "relu": lambda x: jax.nn.relu(x) * x,
    "stopped": lambda x: lax.stop_gradient(x) * x,
    "complex": lambda x: jnp.abs(jnp.exp(1j * x) * x),
    "cholesky": lambda x: jnp.linalg.cholesky(spd(x)),
    "solve": lambda x: jnp.linalg.solve(spd(x), jnp.ones(2) * x),
    "eigenvalues": lambda x: jnp.linalg.eigh(spd(x))[0],
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_against_repeated_forward_mode(name):
    fun = STRUCTURED[name]
    curve = lambda t: START + sum(c * t**k / np.prod(np.arange(1.0, k + 1)) for k, c in enumerate(CURVE, 1))
    nth = lambda t: [x for x in jax.tree.leaves(fun(curve(t))) if jnp.issubdtype(x.dtype, jnp.inexact)]
    want = [nth(0.0)]
    for _ in range(ORDER):
        nth = (lambda f: lambda t: jax.jvp(f, (t,), (1.0,))[1])(nth)
        want.append(nth(0.0))
    call = lambda x: jet(fun, (x,), (CURVE,))
    for y, terms in (call(START), jax.jit(call)(START)):
        leaves, treedef = jax.tree.flatten(y)
        found = [[x, *ts] for x, ts in zip(leaves, treedef.flatten_up_to(terms))
                 if jnp.issubdtype(x.dtype, jnp.inexact)]
        for i, derivatives in enumerate(found):
            for k in range(ORDER + 1):
                np.testing.assert_allclose(derivatives[k], want[k][i], rtol=1e-9, atol=1e-10)


def small(jax):
    jnp = jax.numpy
    return lambda x, y: {"a": jnp.sin(x * y) / (1 + y * y), "b": (jnp.exp(x).sum(), 1.0)}


SAME = {
    "two": lambda jax, jet: jet(small(jax), (jax.numpy.arange(2.0), 0.5), ([jax.numpy.ones(2)] * 3, [1.0, 0.5, 2.0])),
    "no order": lambda jax, jet: jet(small(jax), (1.0, 2.0), ([], [])),
    "coefficients": lambda jax, jet: jet(small(jax), (1.0, 2.0), ([1.0, 2.0], [3.0, 4.0]), factorial_scaled=False),
    "jvp": lambda jax, jet: jax.jvp(lambda x: jet(small(jax), (x, x), ([x, x], [x, 1.0])), (0.5,), (1.0,)),
    "vmap": lambda jax, jet: jax.vmap(lambda x: jet(small(jax), (x, x), ([x, x], [x, 1.0])))(jax.numpy.arange(3.0)),
    "grad": lambda jax, jet: jax.grad(lambda x: jet(jax.numpy.sin, (x,), ([x, x],))[1][1])(0.5),
    "inside": lambda jax, jet: jet(lambda x: jet(jax.numpy.sin, (x,), ([x, 1.0],))[1][1], (0.5,), ([1.0, 2.0],)),
    "comparison": lambda jax, jet: jet(lambda x: x < 1, (0.5,), ([1.0, 2.0],)),
}


@pytest.mark.parametrize("name", SAME)
def test_against_jax(name):
    with jax.enable_x64(False):
        assert_same(lambda jax: SAME[name](jax, module(jax, "experimental.jet").jet))


RULES = {
    "linear": lambda jax, j, x: j.linear_prop(jax.lax.neg_p, (x,), ([x, x],)),
    "zero": lambda jax, j, x: j.zero_prop(jax.lax.floor_p, (x,), ([x, x],)),
    "derivative": lambda jax, j, x: j.deriv_prop(jax.lax.erf_p, jax.numpy.sin, (x,), ([x, 2 * x, 3 * x],)),
    "factorial": lambda jax, j, x: j.fact(5),
    "coefficients": lambda jax, j, x: j.jet2(jax.numpy.exp, (x,), ([x, 2 * x],)),
    "sum": lambda jax, j, x: j.jet_rules[jax.lax.add_p]((x, x), ([x, x], [x, x])) if jax.__name__ == "jax" else (
        x + x, [x + x, x + x]),
    "zeros": lambda jax, j, x: jax.tree.leaves([j.zero_series, j.zero_term]),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_against_jax(name):
    def program(jax):
        found = RULES[name](jax, module(jax, "experimental.jet"), jax.numpy.float32(2.0))
        return jax.tree.leaves(found)

    with jax.enable_x64(False):
        assert_same(program, rtol=1e-4)


def test_rules_of_libraries():
    """A rule in the table comes before what the primitive declares, and gets arrays for derivatives that are zero."""
    from styrax.extend.core import Primitive

    for define in (jets.deflinear, jets.defzero, lambda p: jets.def_deriv(p, jnp.cos),
                   lambda p: jets.def_comp(p, jnp.sin)):
        twice_p = Primitive("twice")
        twice_p.def_impl(lambda x: x + x)
        define(twice_p)
        y, terms = jet(twice_p.bind, (0.5,), ([1.0, 0.0],))
        assert len(terms) == 2
    np.testing.assert_allclose([y, *terms], [np.sin(0.5), np.cos(0.5), -np.sin(0.5)])

    pair_p = Primitive("pair")
    pair_p.def_impl(lambda x, y: x)
    jets.jet_rules[pair_p] = lambda primals, series: (primals[0], [s + 1 for s in series[1]])
    assert jet(lambda x: pair_p.bind(x, 2.0), (0.5,), ([1.0, 0.0],))[1] == [1.0, 2.0]


@pytest.mark.parametrize("primals, series, error", [
    ((1.0,), ([1.0], [1.0, 2.0]), ValueError),
    (((1.0, 2.0),), ([1.0],), ValueError),
    ((1.0,), ([(1.0,)],), ValueError),
    ((np.ones(2),), ([np.ones(3)],), TypeError),
])
def test_refused(primals, series, error):
    with pytest.raises(error):
        jet(lambda x: jnp.sin(x) * x, primals, series)
