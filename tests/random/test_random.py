"""Random numbers against JAX's: the same bits from the same keys, key arrays, errors."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle

import jax
import numpy as np
import pytest

import styrax
from styrax.core.settings import config

EYE = (np.eye(3) * 2 + 0.3).astype(np.float32)

# name -> function of a namespace (ours or JAX's) and a key. What is made of bits alone has to be equal.
EXACT = {
    "bits": lambda J, k: J.random.bits(k, (3, 2)),
    "bits uint8": lambda J, k: J.random.bits(k, (3, 2), "uint8"),
    "bits uint16": lambda J, k: J.random.bits(k, (5,), "uint16"),
    "uniform": lambda J, k: J.random.uniform(k, (70,)),
    "uniform float16": lambda J, k: J.random.uniform(k, (7,), "float16"),
    "uniform bfloat16": lambda J, k: J.random.uniform(k, (7,), "bfloat16"),
    "randint": lambda J, k: J.random.randint(k, (90,), 0, 1000),
    "randint int8": lambda J, k: J.random.randint(k, (9,), -5, 100, "int8"),
    "randint uint8": lambda J, k: J.random.randint(k, (9,), 0, 256, "uint8"),
    "randint uint32": lambda J, k: J.random.randint(k, (9,), 3, 2**31 - 1, "uint32"),
    "randint of nothing": lambda J, k: J.random.randint(k, (9,), 5, 5),
    "randint bounds": lambda J, k: J.random.randint(k, (2, 3), J.numpy.array([0, 5, 9]), J.numpy.array([[10], [20]])),
    "permutation": lambda J, k: J.random.permutation(k, 3000),
    "permutation rows": lambda J, k: J.random.permutation(k, J.numpy.arange(12.0).reshape(4, 3)),
    "permutation each": lambda J, k: J.random.permutation(
        k, J.numpy.arange(12).reshape(4, 3), axis=1, independent=True),
    "choice": lambda J, k: J.random.choice(k, 7, (5,)),
    "choice without": lambda J, k: J.random.choice(k, 7, (5,), replace=False),
    "choice p": lambda J, k: J.random.choice(k, J.numpy.arange(5.0), (4, 2),
                                             p=J.numpy.array([0.1, 0.2, 0.3, 0.2, 0.2])),
    "choice p without": lambda J, k: J.random.choice(
        k, J.numpy.arange(10.0).reshape(2, 5), (3,), False, J.numpy.array([0.1, 0.2, 0.3, 0.2, 0.2]), 1),
    "choice axis": lambda J, k: J.random.choice(k, J.numpy.arange(10.0).reshape(2, 5), (3, 2), axis=1),
    "bernoulli": lambda J, k: J.random.bernoulli(k, 0.3, (10,)),
    "bernoulli high": lambda J, k: J.random.bernoulli(k, J.numpy.array([0.3, 0.6]), (5, 2), mode="high"),
    "categorical": lambda J, k: J.random.categorical(k, J.numpy.arange(12.0).reshape(3, 4) / 5),
    "categorical axis": lambda J, k: J.random.categorical(k, J.numpy.arange(12.0).reshape(3, 4) / 5, 0, (5, 4)),
    "categorical without": lambda J, k: J.random.categorical(
        k, J.numpy.arange(12.0).reshape(3, 4) / 5, shape=(2, 3), replace=False),
    "rademacher": lambda J, k: J.random.rademacher(k, (9,)),
    "geometric": lambda J, k: J.random.geometric(k, 0.2, (9,)),
    "poisson": lambda J, k: J.random.poisson(k, J.numpy.array([0.5, 3.0, 50.0]), (4, 3)),
    "binomial": lambda J, k: J.random.binomial(k, J.numpy.array([5.0, 100.0]), 0.4, (6, 2)),
    "multinomial": lambda J, k: J.random.multinomial(k, 20, J.numpy.array([0.2, 0.3, 0.5]), shape=(2, 3)),
    "clone of data": lambda J, k: J.random.clone(J.random.PRNGKey(3)),
    "fold_in": lambda J, k: J.random.key_data(J.random.fold_in(k, 12345)),
    "split": lambda J, k: J.random.key_data(J.random.split(k, (2, 3))),
    "indexed keys": lambda J, k: J.random.key_data(J.random.split(k, 5)[J.numpy.array([3, 1])]),
    "chosen keys": lambda J, k: J.random.key_data(
        J.numpy.where(J.numpy.array([True, False]), J.random.split(k), J.random.split(k)[::-1])),
    "keys in cond": lambda J, k: J.random.key_data(
        J.lax.cond(J.numpy.array(True), lambda k: J.random.fold_in(k, 1), lambda k: k, k)),
    "keys in vmap": lambda J, k: J.vmap(lambda k: J.random.bits(k, (2,)))(J.random.split(k, 3)),
    "keys in while": lambda J, k: J.random.key_data(J.lax.fori_loop(0, 4, lambda i, k: J.random.fold_in(k, i), k)),
}
CLOSE = {
    "normal": lambda J, k: J.random.normal(k, (1000,)),
    "normal complex": lambda J, k: J.random.normal(k, (5,), "complex64"),
    "uniform between": lambda J, k: J.random.uniform(k, (2, 3), minval=J.numpy.arange(3.0), maxval=5),
    "truncated_normal": lambda J, k: J.random.truncated_normal(k, -1.0, 2.0, (9,)),
    "gumbel": lambda J, k: J.random.gumbel(k, (9,)),
    "gumbel high": lambda J, k: J.random.gumbel(k, (9,), mode="high"),
    "exponential": lambda J, k: J.random.exponential(k, (9,)),
    "laplace": lambda J, k: J.random.laplace(k, (9,)),
    "logistic": lambda J, k: J.random.logistic(k, (9,)),
    "cauchy": lambda J, k: J.random.cauchy(k, (9,)),
    "pareto": lambda J, k: J.random.pareto(k, 2.5, (9,)),
    "weibull_min": lambda J, k: J.random.weibull_min(k, 2.0, 1.5, (9,)),
    "rayleigh": lambda J, k: J.random.rayleigh(k, 2.0, (9,)),
    "wald": lambda J, k: J.random.wald(k, 2.0, (9,)),
    "triangular": lambda J, k: J.random.triangular(k, 0.0, 1.0, 3.0, (9,)),
    "lognormal": lambda J, k: J.random.lognormal(k, 0.5, (9,)),
    "lognormal complex": lambda J, k: J.random.lognormal(k, 0.5, (9,), "complex64"),
    "maxwell": lambda J, k: J.random.maxwell(k, (9,)),
    "double_sided_maxwell": lambda J, k: J.random.double_sided_maxwell(k, 1.0, 2.0, (9,)),
    "double_sided_maxwell of each": lambda J, k: J.random.double_sided_maxwell(k, J.numpy.array([1.0, 2.0]), 2.0),
    "gamma": lambda J, k: J.random.gamma(k, J.numpy.array([0.3, 1.0, 7.0]), (50, 3)),
    "loggamma": lambda J, k: J.random.loggamma(k, J.numpy.array([0.01, 1.0, 7.0]), (4, 3)),
    "beta": lambda J, k: J.random.beta(k, 2.0, 0.5, (9,)),
    "chisquare": lambda J, k: J.random.chisquare(k, 3.0, (9,)),
    "t": lambda J, k: J.random.t(k, 3.0, (9,)),
    "f": lambda J, k: J.random.f(k, 3.0, 4.0, (9,)),
    "dirichlet": lambda J, k: J.random.dirichlet(k, J.numpy.array([0.5, 1.0, 2.0]), (4,)),
    "generalized_normal": lambda J, k: J.random.generalized_normal(k, 1.5, (9,)),
    "ball": lambda J, k: J.random.ball(k, 3, shape=(4,)),
    "multivariate_normal": lambda J, k: J.random.multivariate_normal(k, J.numpy.zeros(3), J.numpy.asarray(EYE), (4,)),
    "gradient of gamma": lambda J, k: J.grad(lambda a: J.random.gamma(k, a, (5,)).sum())(1.7),
    "gradient of loggamma": lambda J, k: J.grad(lambda a: J.random.loggamma(k, a, (5,)).sum())(0.7),
    "gamma in vmap": lambda J, k: J.vmap(lambda a: J.random.gamma(k, a, (2,)))(J.numpy.array([0.5, 2.0])),
    "keys in scan": lambda J, k: J.lax.scan(
        lambda k, _: (J.random.split(k)[0], J.random.normal(k, (2,))), k, None, length=4)[1],
}


@functools.cache
def reference(name):
    return np.asarray({**EXACT, **CLOSE}[name](jax, jax.random.key(42)))


def ours(function, jitted):
    return np.asarray(styrax.jit(lambda k: function(styrax, k))(styrax.random.key(42)) if jitted else
                      function(styrax, styrax.random.key(42)))


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", list(EXACT))
def test_same_bits(name, jitted):
    wanted = reference(name)
    found = ours(EXACT[name], jitted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", list(CLOSE))
def test_same_numbers(name, jitted):
    wanted = reference(name)
    found = ours(CLOSE[name], jitted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=1e-6)


def test_normals_are_exact_to_three_units():
    # JAX's own are up to 70 units off in the tails, so the reference is the exact function of its uniform numbers.
    from scipy.special import erfinv

    low = np.nextafter(np.float32(-1), np.float32(0))
    for seed in range(3):
        u = np.asarray(jax.random.uniform(jax.random.key(seed), (20000,), minval=low, maxval=1.0), np.float64)
        wanted = np.sqrt(2) * erfinv(u)
        found = np.asarray(styrax.random.normal(styrax.random.key(seed), (20000,)))
        assert np.max(np.abs(found - wanted) / np.spacing(np.abs(found))) <= 3
        theirs = np.asarray(jax.random.normal(jax.random.key(seed), (20000,)))
        np.testing.assert_allclose(found, theirs, rtol=1e-5)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_implementations(impl):
    def values(J):
        k = J.random.key(7, impl=impl)
        keys = J.random.split(k, 3)
        return [J.random.key_data(k), J.random.key_data(keys), J.random.key_data(J.random.fold_in(k, 5)),
                J.random.bits(k, (2, 5)), J.random.bits(k, (5,), "uint8"), J.random.normal(keys[1], (3,)),
                J.vmap(lambda k: J.random.bits(k, (2,)))(keys)]

    for found, wanted in zip(values(styrax), values(jax), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-6)
    assert str(styrax.random.key(7, impl=impl).dtype) == str(jax.random.key(7, impl=impl).dtype)


def test_the_older_generator():
    def values(J):
        k = J.random.PRNGKey(7)
        return [J.random.split(k, 3), J.random.bits(k, (5,)), J.random.bits(k, (7,), "uint8"),
                J.random.bits(k, (3, 3), "uint16"), J.random.fold_in(k, 3)]

    with jax.threefry_partitionable(False):
        wanted = values(jax)
    with config.threefry_partitionable(False):
        found = values(styrax)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("of_mean, of_cov, asked", [
    ("float32", "float32", None), ("int32", "int32", None), ("float32", "float64", None),
    ("float64", "float64", "float32"), ("float32", "float32", "float64"), ("float32", "float32", "float16")])
def test_normal_vectors_are_drawn_by_the_dtypes_of_mean_and_covariance(of_mean, of_cov, asked):
    """The default is theirs, also with 64 bits, and the result has the dtype to which all promote."""
    def draw(J):
        return J.random.multivariate_normal(
            J.random.key(3), J.numpy.arange(2).astype(of_mean), J.numpy.array([[2, 1], [1, 2]], of_cov), (3,), asked)

    with jax.enable_x64(True):
        wanted = np.asarray(draw(jax))
    with styrax.enable_x64(True):
        found = np.asarray(draw(styrax))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
@pytest.mark.parametrize("low, high", [(0, 300), (-(2**40) - 5, 2**40 + 9), (0.5, 3.7), (np.int64(-9), 2**31 + 7)])
def test_wide_bounds_of_narrow_integers(dtype, low, high):
    with jax.enable_x64(True):
        wanted = np.asarray(jax.random.randint(jax.random.key(1), (9,), low, high, dtype))
    with styrax.enable_x64(True):
        found = np.asarray(styrax.random.randint(styrax.random.key(1), (9,), low, high, dtype))
    np.testing.assert_array_equal(found, wanted)


def test_64_bits():
    def values(J):
        k = J.random.key(2**40 + 5)
        return [J.random.key_data(k), J.random.key_data(J.random.key(-3)), J.random.bits(k, (3,)),
                J.random.uniform(k, (4,)), J.random.normal(k, (4,)), J.random.randint(k, (4,), -(2**40), 2**40),
                J.random.bits(J.random.key(1, impl="rbg"), (3,), "uint64")]

    with jax.enable_x64(True):
        wanted = [np.asarray(x) for x in values(jax)]
    with config.enable_x64(True):
        found = [np.asarray(x) for x in values(styrax)]
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-14)


@pytest.mark.parametrize("seed", [0, 7, -1, 2**31 - 1, 2**40 + 5, np.uint32(9), np.int64(2**40 + 5), True])
def test_seeds(seed):
    np.testing.assert_array_equal(np.asarray(styrax.random.PRNGKey(seed)), np.asarray(jax.random.PRNGKey(seed)))


def test_legacy_keys():
    ours, theirs = styrax.random.PRNGKey(3), jax.random.PRNGKey(3)
    assert ours.dtype == np.uint32
    np.testing.assert_array_equal(np.asarray(styrax.random.split(ours)), np.asarray(jax.random.split(theirs)))
    np.testing.assert_array_equal(np.asarray(styrax.random.bits(ours, (4,))), np.asarray(jax.random.bits(theirs, (4,))))
    np.testing.assert_array_equal(np.asarray(styrax.random.fold_in(ours, 1)), np.asarray(jax.random.fold_in(theirs, 1)))


def test_key_arrays():
    k, reference = styrax.random.key(0), jax.random.key(0)
    assert repr(k) == repr(reference) and str(styrax.random.split(k)) == str(jax.random.split(reference))
    assert isinstance(k, styrax.Array) and k.shape == () and k.ndim == 0 and k.dtype.name == "key<fry>"
    assert k.dtype.itemsize == reference.dtype.itemsize and k.nbytes == reference.nbytes
    assert styrax.dtypes.issubdtype(k.dtype, styrax.dtypes.prng_key)
    keys = styrax.random.split(k, 3)
    assert len(keys) == 3 and len(list(keys)) == 3 and keys[1].shape == () and keys[1:].shape == (2,)
    again = styrax.random.wrap_key_data(styrax.random.key_data(keys))
    np.testing.assert_array_equal(np.asarray(styrax.random.key_data(again)), np.asarray(styrax.random.key_data(keys)))
    for other in (copy.copy(k), copy.deepcopy(k), pickle.loads(pickle.dumps(k)), styrax.random.clone(k)):
        assert repr(other) == repr(k)
    assert styrax.random.key_impl(k) == "threefry2x32" and styrax.random.key_dtype() == k.dtype
    assert styrax.numpy.stack([k, k]).shape == (2,) and keys.reshape(3, 1).shape == (3, 1)
    assert styrax.random.key(0, dtype=k.dtype).dtype == k.dtype
    with pytest.raises(TypeError):
        hash(k)


@pytest.mark.parametrize(
    "run",
    [
        lambda J, k: k + k,
        lambda J, k: np.asarray(k),
        lambda J, k: float(k),
        lambda J, k: bool(k),
        lambda J, k: iter(k),
        lambda J, k: J.random.PRNGKey(1.5),
        lambda J, k: J.random.key(J.numpy.arange(3)),
        lambda J, k: J.random.key(0, impl="wrong"),
        lambda J, k: J.random.uniform(J.numpy.arange(3, dtype="uint32")),
        lambda J, k: J.random.uniform(J.random.split(k)),
        lambda J, k: J.random.uniform(1),
        lambda J, k: J.random.uniform(k, dtype="int32"),
        lambda J, k: J.random.uniform(k, (2, 3.0)),
        lambda J, k: J.random.bits(k, dtype="int32"),
        lambda J, k: J.random.normal(k, dtype="int32"),
        lambda J, k: J.random.randint(k, (2,), 0, 3, "float32"),
        lambda J, k: J.random.fold_in(J.random.split(k), 1),
        lambda J, k: J.random.fold_in(k, J.numpy.arange(2)),
        lambda J, k: J.random.split(J.random.split(k)),
        lambda J, k: J.random.split(k, 2.5),
        lambda J, k: J.random.wrap_key_data(J.numpy.arange(3)),
        lambda J, k: J.random.key_data(3),
        lambda J, k: J.random.gamma(k, J.numpy.ones(3), (2,)),
        lambda J, k: J.random.bernoulli(k, 0.5, mode="wrong"),
        lambda J, k: J.random.gumbel(k, mode="wrong"),
        lambda J, k: J.random.categorical(k, J.numpy.ones((2, 3)), shape=(3,)),
        lambda J, k: J.random.categorical(k, J.numpy.ones((2, 3)), shape=(4, 2), replace=False),
        lambda J, k: J.random.choice(k, 5, (9,), replace=False),
        lambda J, k: J.random.choice(k, 0, (9,)),
        lambda J, k: J.random.choice(k, 3, (2,), p=J.numpy.ones(2)),
        lambda J, k: J.random.choice(k, J.numpy.ones((2, 3)), (2,), axis=5),
        lambda J, k: J.random.permutation(k, 2.5),
        lambda J, k: J.random.poisson(J.random.key(0, impl="rbg"), 1.0),
        lambda J, k: J.random.multivariate_normal(k, J.numpy.zeros(2), J.numpy.ones((3, 3))),
        lambda J, k: J.random.multivariate_normal(k, J.numpy.zeros(2), J.numpy.ones((2, 2)), method="wrong"),
        lambda J, k: J.random.dirichlet(k, J.numpy.float32(1)),
        lambda J, k: J.random.binomial(k, 5, 0.5, dtype="int32"),
    ],
)
def test_errors(run):
    with pytest.raises(Exception) as wanted:
        run(jax, jax.random.key(0))
    with pytest.raises(Exception) as found:
        run(styrax, styrax.random.key(0))
    assert found.type.__name__ == wanted.type.__name__, (found.value, wanted.value)


def test_signatures():
    for name in styrax.random.__all__:
        if name.endswith("_p") or not hasattr(jax.random, name):  # (newer names)
            continue
        ours = inspect.signature(getattr(styrax.random, name))
        theirs = inspect.signature(getattr(jax.random, name))
        assert [(p.name, p.kind, p.default is p.empty) for p in ours.parameters.values()] == [
            (p.name, p.kind, p.default is p.empty) for p in theirs.parameters.values()], name
    public = {n for n in dir(jax.random) if not n.startswith("_") and callable(getattr(jax.random, n))}
    assert public <= set(dir(styrax.random))


def test_jaxprs_read_as_jax_prints_them():
    for run in (lambda J, k: J.random.uniform(k, (3,)), lambda J, k: J.random.normal(k, (3,)),
                lambda J, k: J.random.split(k), lambda J, k: J.random.permutation(k, 5),
                lambda J, k: J.random.bernoulli(k, 0.3, (2,)), lambda J, k: J.random.gumbel(k, (3,))):
        ours = styrax.make_jaxpr(lambda k: run(styrax, k))(styrax.random.key(0))  # noqa: B023
        theirs = jax.make_jaxpr(lambda k: run(jax, k))(jax.random.key(0))  # noqa: B023
        assert str(ours) == str(theirs)


def test_generators_without_keys():
    for algorithm in ("RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"):
        state = np.array([7, 9, 0xFFFFFFFE, 0xFFFFFFFF], np.uint32)
        for shape in ((13,), (2, 3), (3, 3), ()):
            ours = styrax.lax.rng_bit_generator(state, shape, algorithm=getattr(styrax.lax.RandomAlgorithm, algorithm))
            theirs = jax.lax.rng_bit_generator(jax.numpy.asarray(state), shape,
                                               algorithm=getattr(jax.lax.RandomAlgorithm, algorithm))
            for x, y in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    u = np.asarray(styrax.lax.rng_uniform(np.float32(2), np.float32(3), (1000,)))
    assert u.min() >= 2 and u.max() < 3 and len(np.unique(u)) > 900


@pytest.mark.parametrize("custom", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("around", ["checkpoint", "scan", "vmap", "grad"])
def test_keys_and_constants_under_rules_of_their_own(custom, around):
    """Programs inside of others keep their constants where keys become plain arrays."""
    weights = np.arange(3, dtype=np.float32)
    x = np.float32([0.5, 2, -1])

    def program(J):
        def f(key, x):
            return J.random.uniform(key, (3,)) * x * weights, J.random.split(key)[0]

        g = getattr(J, custom)(f)
        if custom == "custom_jvp":
            g.defjvp(lambda p, t: (f(*p), (t[1] * J.random.uniform(p[0], (3,)), t[0])))
        else:
            g.defvjp(lambda key, x: (f(key, x), key), lambda key, ct: (None, ct[0] * J.random.uniform(key, (3,))))
        key = J.random.key(3)
        if around == "checkpoint":
            return J.jit(lambda x: J.checkpoint(g)(key, x)[0])(x)
        if around == "scan":
            return J.jit(lambda x: J.lax.scan(lambda c, _: (g(*c)[::-1], None), (key, x), None, length=2)[0][1])(x)
        if around == "vmap":
            return J.jit(J.vmap(lambda x: J.checkpoint(g)(key, x)[0]))(np.stack([x, x + 1]))
        return J.jit(J.grad(lambda x: J.checkpoint(g)(key, x)[0].sum()))(x)

    ours, theirs = np.asarray(program(styrax)), np.asarray(program(jax))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("run", [
    lambda J, k: J.numpy.zeros((2,), k.dtype), lambda J, k: J.numpy.ones((2, 0), k.dtype),
    lambda J, k: J.numpy.empty(3, k.dtype), lambda J, k: J.numpy.full((2,), 7, k.dtype),
    lambda J, k: J.numpy.zeros_like(k), lambda J, k: J.numpy.ones_like(J.random.split(k)),
    lambda J, k: J.numpy.full_like(J.random.split(k), 5), lambda J, k: J.numpy.full_like(J.random.split(k), k),
    lambda J, k: J.numpy.empty_like(k, shape=(3,)), lambda J, k: J.jit(J.numpy.zeros_like)(J.random.split(k)),
    lambda J, k: J.vmap(J.numpy.zeros_like)(J.random.split(k)), lambda J, k: J.lax.full((2,), 1, k.dtype),
    lambda J, k: J.numpy.zeros_like(J.ShapeDtypeStruct((2,), k.dtype)),
    lambda J, k: J.numpy.take(J.random.split(k), J.numpy.array([0, 9])),
    lambda J, k: J.numpy.insert(J.random.split(k), 0, k), lambda J, k: J.numpy.tril(J.random.split(k, (2, 2))),
])
def test_arrays_of_keys_are_filled(run, impl):
    theirs, ours = (run(J, J.random.key(3, impl=impl)) for J in (jax, styrax))
    assert str(ours.dtype) == str(theirs.dtype) and ours.shape == theirs.shape
    np.testing.assert_array_equal(styrax.random.key_data(ours), jax.random.key_data(theirs))


@pytest.mark.parametrize("run, message", [
    (lambda J, k: J.numpy.where(True, k, 1), "dtype=key<fry> is not a valid dtype for JAX type promotion"),
    (lambda J, k: J.numpy.concatenate([J.random.split(k), J.numpy.ones(2)]), "dtype=key<fry> is not a valid dtype"),
    (lambda J, k: J.numpy.sort(J.random.split(k)), "lt_to does not accept dtype key<fry>"),
    (lambda J, k: J.numpy.add(k, 1), "add does not accept dtypes key<fry>, int32"),
    (lambda J, k: -k, "neg does not accept dtype key<fry>"),
])
def test_keys_have_no_order_and_meet_no_numbers(run, message):
    for J in (jax, styrax):
        with pytest.raises((TypeError, ValueError), match=message):
            run(J, J.random.key(0))
