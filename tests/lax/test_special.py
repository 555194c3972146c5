"""Special functions: values against SciPy and mpmath, edges and derivatives against JAX."""

from __future__ import annotations

import inspect
import warnings

import jax
import numpy as np
import pytest
import scipy.special

import styrax
import styrax.lax as slax
from styrax.transforms import api
from tests.lax.checks import Table, check_program, jvp_case, vmap_case
from tests.lax.harness import ENGINES, Case, run_all

INF, NAN = np.inf, np.nan
GRID = np.array([NAN, -INF, -1.5, -1.0, -0.0, 0.0, 1e-30, 0.5, 1.0, 2.0, 30.0, INF], np.float32)
PAIRS = tuple(v.ravel() for v in np.meshgrid(GRID, GRID, indexing="ij"))
UNIT = np.array([NAN, -1.0, 0.0, 1e-10, 0.25, 0.5, 0.9, 1.0, 2.0], np.float32)
SHAPES = np.array([NAN, -1.0, 0.0, 0.5, 1.0, 2.0, 50.0, INF], np.float32)
TRIPLES = tuple(v.ravel() for v in np.meshgrid(SHAPES, SHAPES, UNIT, indexing="ij"))
A = np.array([0.1, 0.5, 1.0, 2.5, 7.0, 20.0, 3.0, 0.02], np.float32)
X = np.array([0.2, 3.0, 1.0, 1.5, 9.0, 15.0, 0.01, 5.0], np.float32)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def case(name, *args, tolerance=2e-5):
    function, _, _ = name.partition("@")
    return Case(name, lambda lax: getattr(lax, function), *args, tolerance=tolerance)


# Where JAX gives NaN for a shape of 0 or infinity although the limit is known, ours is the limit; in single
# precision it loses digits for large shapes.
FINITE = tuple(p[(np.isfinite(PAIRS[0]) & (PAIRS[0] != 0)) | np.isnan(PAIRS[0])] for p in PAIRS)
SMALL_SHAPE = tuple(p[~(FINITE[0] == 30)] for p in FINITE)
ORDERS = tuple(p[np.isin(PAIRS[0], [-1.5, -1.0, 0.0, 1e-30, 0.5, 1.0, 2.0]) | np.isnan(PAIRS[0])] for p in PAIRS)
EDGES = Table(
    [
        case("igamma", *FINITE),
        case("igammac", *FINITE, tolerance=1e-4),
        case("igamma_grad_a", *FINITE, tolerance=1e-4),
        case("random_gamma_grad", *SMALL_SHAPE, tolerance=1e-4),
        case("zeta", *ORDERS),
        case("polygamma", *ORDERS, tolerance=1e-4),
        case("betainc", *TRIPLES),
        case("lgamma", GRID),
        case("digamma", GRID),
        case("bessel_i0e", GRID),
        case("bessel_i1e", GRID),
        case("erf_inv", GRID),
    ],
    1e-6,
)
MILD = [
    case("igamma@mild", A, X),
    case("igammac@mild", A, X),
    case("igamma_grad_a@mild", A, X),
    case("random_gamma_grad@mild", A, X),
    case("zeta@mild", A + 1.5, X),
    case("polygamma@mild", np.array([0, 1, 2, 3, 5, 1, 4, 2], np.float32), X, tolerance=5e-5),
    case("betainc@mild", A, X, np.linspace(0.05, 0.95, 8, dtype=np.float32), tolerance=5e-4),
    case("igamma@bf16", *(v.astype("bfloat16") for v in (A, X)), tolerance=2e-2),
]
TABLE = Table(MILD, 1e-7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", EDGES.cases, ids=repr)
def test_edges(case, engine):
    EDGES.check_value(case, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", TABLE.cases, ids=repr)
def test_value(case, engine):
    TABLE.check_value(case, engine)


def _by_x(name, tolerance=5e-5):
    return Case(name, lambda lax: lambda x: getattr(lax, name)(A, x), X, tolerance=tolerance)


DERIVATIVES = Table(
    [
        jvp_case(c)
        for c in (
            case("igamma@jvp", A, X),
            case("igammac@jvp", A, X),
            _by_x("polygamma"),
            Case("betainc", lambda lax: lambda x: lax.betainc(A, X, x), np.linspace(0.05, 0.95, 8, dtype=np.float32)),
        )
    ],
    1e-6,
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", DERIVATIVES.cases, ids=repr)
def test_derivative(case, engine):
    DERIVATIVES.check_value(case, engine)


# JAX computes what constants need at once.
@pytest.mark.parametrize("case", [c for c in DERIVATIVES.cases if c.name != "betainc"], ids=repr)
def test_derivative_program(case):
    check_program(case)


MAPPED = Table([vmap_case(c, (0,) * len(c.args)) for c in MILD if "bf16" not in c.name], 1e-7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", MAPPED.cases, ids=repr)
def test_vmap(case, engine):
    MAPPED.check_value(case, engine)


REFERENCES = {
    "igamma": (scipy.special.gammainc, A, X),
    "igammac": (scipy.special.gammaincc, A, X),
    "zeta": (scipy.special.zeta, A + 1.5, X),
    "betainc": (scipy.special.betainc, A, X, np.linspace(0.05, 0.95, 8, dtype=np.float32)),
    "lgamma": (scipy.special.gammaln, np.linspace(-5.3, 40, 200, dtype=np.float32)),
    "digamma": (scipy.special.digamma, np.linspace(-5.3, 40, 200, dtype=np.float32)),
    "bessel_i0e": (scipy.special.i0e, np.linspace(-50, 50, 201, dtype=np.float32)),
    "bessel_i1e": (scipy.special.i1e, np.linspace(-50, 50, 201, dtype=np.float32)),
}


@pytest.mark.parametrize("engine", [e for e in ENGINES if e == "cpu"])
def test_against_scipy(engine):
    """On the CPU single precision is right to a few units of the last place."""
    jobs = {name: (getattr(slax, name), list(args)) for name, (_, *args) in REFERENCES.items()}
    outs = run_all(engine, jobs)
    for name, (reference, *args) in REFERENCES.items():
        (ours,) = outs[name]
        wanted = reference(*[a.astype(np.float64) for a in args])
        np.testing.assert_allclose(ours, wanted.astype(np.float32), rtol=4e-7, err_msg=name)


@pytest.mark.parametrize("engine", [e for e in ENGINES if e == "cpu"])
def test_double_precision(engine):
    import styrax.core.settings.config as config

    with config.enable_x64(True):
        jobs = {n: (getattr(slax, n), [a.astype(np.float64) for a in args]) for n, (_, *args) in REFERENCES.items()}
        outs = run_all(engine, jobs)
    for name, (reference, *args) in REFERENCES.items():
        wanted = reference(*[a.astype(np.float64) for a in args])
        np.testing.assert_allclose(outs[name][0], wanted, rtol=2e-12, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("engine", [e for e in ENGINES if e == "cpu"])
def test_series_of_large_parameters_run_to_their_end(engine):
    """Near x = a both expansions converge the more slowly the larger a is."""
    import styrax.core.settings.config as config

    a = np.repeat([3e5, 1e6, 1e8], 5)
    x = a * (1 + np.tile([0, 1e-6, -1e-6, 1e-4, -1e-4], 3))
    half = np.full_like(a, 0.5)
    with config.enable_x64(True):
        outs = run_all(engine, {"igamma": (slax.igamma, [a, x]), "igammac": (slax.igammac, [a, x]),
                                "grad": (slax.igamma_grad_a, [a, a]), "betainc": (slax.betainc, [a, x, half])})
    np.testing.assert_allclose(outs["igamma"][0], scipy.special.gammainc(a, x), rtol=1e-6)
    np.testing.assert_allclose(outs["igammac"][0], scipy.special.gammaincc(a, x), rtol=1e-6)
    np.testing.assert_allclose(outs["grad"][0], -1 / np.sqrt(2 * np.pi * a), rtol=1e-5)
    np.testing.assert_allclose(outs["betainc"][0], scipy.special.betainc(a, x, half), rtol=1e-6)


def test_symmetric_beta_distributions_of_huge_parameters():
    """The fraction takes as many steps as the root of the parameters."""
    import styrax.core.settings.config as config

    a = np.array([1e6, 1e8, 1e10, 1e11])
    with config.enable_x64(True):
        for function in (slax.betainc, styrax.jit(slax.betainc)):
            np.testing.assert_allclose(function(a, a, np.full(4, 0.5)), 0.5, rtol=1e-6)
            at_most_all = np.asarray(function(np.array([1e15, 1e17]), np.array([2e15, 1e17]), np.array([1 / 3, 0.5])))
            assert (at_most_all >= 0).all() and (at_most_all <= 1).all()


def test_limits_of_the_shape():
    a, x = np.array([0, 0, INF, INF, 0], np.float32), np.array([0.5, 3, 3, 0.1, 0], np.float32)
    for engine in ENGINES:
        outs = run_all(engine, {"igamma": (slax.igamma, [a, x]), "igammac": (slax.igammac, [a, x])})
        np.testing.assert_array_equal(outs["igamma"][0], [1, 1, 0, 0, NAN])
        np.testing.assert_array_equal(outs["igammac"][0], [0, 0, 1, 1, NAN])


def test_no_derivatives_by_parameters():
    with pytest.raises(ValueError, match="not supported"):
        api.jvp(lambda a: slax.betainc(a, X, X), (A,), (A,))
    with pytest.raises(ValueError, match="not supported"):
        api.jvp(lambda m: slax.polygamma(m, X), (A,), (A,))


def test_second_derivative_by_a():
    """JAX has no rule for `igamma_grad_a`; ours differentiates its loops."""
    ours = api.jvp(lambda a: slax.igamma_grad_a(a, X), (A,), (np.ones_like(A),))[1]
    h = 1e-3
    jax_igamma = lambda a: np.asarray(jax.lax.igamma_grad_a(a, X.astype(np.float32)), np.float64)
    numeric = (jax_igamma(A + np.float32(h)) - jax_igamma(A - np.float32(h))) / (2 * h)
    np.testing.assert_allclose(np.asarray(ours)[1:7], numeric[1:7], rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a", "zeta", "polygamma", "nextafter", "betainc",
                                  "atan2", "sinh", "top_k"])
def test_names_of_operands(name):
    ours, theirs = (inspect.signature(getattr(m, name)) for m in (slax, jax.lax))
    assert list(ours.parameters) == list(theirs.parameters)
    if name in ("igamma", "zeta", "polygamma", "nextafter"):
        arguments = dict.fromkeys(ours.parameters, np.float32(2))
        np.testing.assert_allclose(getattr(slax, name)(**arguments), getattr(jax.lax, name)(**arguments), rtol=1e-5)
        with pytest.raises(TypeError):
            getattr(slax, name)(np.float32(1))
