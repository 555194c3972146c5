"""Long sums: exact to a few units in the last place however they are fused and batched; of generated values, too."""

import jax as real
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

rng = np.random.default_rng(0)


def columns(f, **kw):
    return styrax.vmap(f, in_axes=1, **kw)


# name -> (function of two matrices, the same in NumPy's float64), each reducing rows of length x.shape[0]
SUMS = {
    "sum": (lambda x, y: x.sum(0), lambda x, y: x.sum(0)),
    "dot of columns": (columns(lambda a, b: (a * b).sum()), lambda x, y: (x * y).sum(0)),
    "product of columns": (columns(lambda a, b: a @ b), lambda x, y: (x * y).sum(0)),
    "dot of rows": (lambda x, y: styrax.vmap(lambda a, b: (a * b).sum())(x.T, y.T), lambda x, y: (x * y).sum(0)),
    "mean": (columns(lambda a, b: jnp.mean(a * b)), lambda x, y: (x * y).mean(0)),
    "variance": (columns(lambda a, b: jnp.var(a)), lambda x, y: x.var(0)),
    "norm": (columns(lambda a, b: jnp.linalg.norm(a)), lambda x, y: np.sqrt((x * x).sum(0))),
    "gradient": (lambda x, y: styrax.grad(lambda s: ((x * s) ** 2).sum() / 2)(jnp.ones(x.shape[1])),
                 lambda x, y: (x * x).sum(0)),
    "gradients": (lambda x, y: styrax.vmap(lambda a: styrax.grad(lambda s: (a * s).sum())(1.0))(x.T),
                  lambda x, y: x.sum(0)),
    "scan": (lambda x, y: styrax.lax.scan(lambda c, a: (c, (a * a).sum()), 0.0, x.T)[1], lambda x, y: (x * x).sum(0)),
    "scan of columns": (lambda x, y: styrax.lax.scan(lambda c, k: (c, (k * x * y).sum(0)), 0.0, jnp.ones(1))[1][0],
                        lambda x, y: (x * y).sum(0)),
    "two axes": (lambda x, y: (x * y).reshape(-1, 5, x.shape[1]).sum((0, 1)), lambda x, y: (x * y).sum(0)),
}


@pytest.mark.parametrize("name", list(SUMS))
@pytest.mark.parametrize("shape", [(30_000, 100), (100_000, 3), (5_005, 600), (1_300, 17)])
def test_errors_do_not_grow_with_the_length(name, shape):
    numbers = np.random.default_rng(0)
    x, y = numbers.random(shape, np.float32), numbers.random(shape, np.float32)
    ours, reference = SUMS[name]
    got = np.asarray(styrax.jit(ours)(x, y), np.float64)
    # 8.7e-7 was the largest of twelve draws, for sums down 30,000 rows in blocks; serial ones are off by 7.1e-6
    np.testing.assert_allclose(got, reference(x.astype(np.float64), y.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 1000, 4096, 4097])
def test_blocks_take_in_every_number_once(length):
    x = rng.integers(-9, 9, (length, 20)).astype(np.float32)  # whole numbers: any order gives the same
    for f in (lambda x: x.sum(0), lambda x: (x * x).sum(0), lambda x: (x.T * 1).sum(1)):
        np.testing.assert_array_equal(styrax.jit(f)(x), f(x.astype(np.float64)))
        np.testing.assert_array_equal(f(jnp.asarray(x)), f(x.astype(np.float64)))


N = 200_000


def generated(kind):
    i = np.arange(N, dtype=np.float64)
    return {
        "sum": (lambda s: (jnp.arange(N, dtype=jnp.float32) * s).sum(), lambda s: (i * s).sum()),
        "rows": (lambda s: (jnp.arange(3)[:, None] * s + jnp.arange(N)).sum(1),
                 lambda s: N * s * np.arange(3) + i.sum()),
        "maximum": (lambda s: (jnp.arange(N) * s).max(), lambda s: i[-1] * s),
        "position": (lambda s: jnp.argmin(jnp.abs(jnp.arange(N) * s - 1000)),
                     lambda s: np.argmin(np.abs(i * s - 1000))),
        "integers": (lambda s: (jnp.arange(N) % 7 * s.astype(int)).sum(), lambda s: (i % 7 * int(s)).sum()),
        "all": (lambda s: (jnp.arange(N) * s >= 0).all(), lambda s: True),
        "sines": (lambda s: jnp.sin(jnp.arange(N) * 1e-6 * s).sum(), lambda s: np.sin(i * 1e-6 * s).sum()),
    }[kind]


@pytest.mark.parametrize("kind", ["sum", "rows", "maximum", "position", "integers", "all", "sines"])
def test_of_generated_values(kind):
    f, reference = generated(kind)
    scales = np.array([1.0, 2.0, 3.0], np.float32)
    want = np.array([reference(float(s)) for s in scales])
    np.testing.assert_allclose(styrax.jit(f)(scales[1]), want[1], rtol=2e-6)
    np.testing.assert_allclose(styrax.jit(styrax.vmap(f))(scales), want, rtol=2e-6)
    np.testing.assert_allclose(styrax.jit(lambda s: styrax.lax.map(f, s))(scales), want, rtol=2e-6)


def test_gradients_of_generated_sums():
    f = lambda s: jnp.sin(jnp.arange(N) * 1e-5 * s).sum()
    i = np.arange(N) * 1e-5
    np.testing.assert_allclose(styrax.jit(styrax.grad(f))(1.5), (i * np.cos(i * 1.5)).sum(), rtol=1e-5)
    np.testing.assert_allclose(styrax.jit(styrax.vmap(styrax.grad(f)))(jnp.array([0.5, 1.5])),
                               [(i * np.cos(i * s)).sum() for s in (0.5, 1.5)], rtol=1e-5)


def test_random_numbers_summed_where_they_are_drawn():
    key = styrax.random.key(0)
    drawn = np.asarray(styrax.random.normal(key, (N,)), np.float64)
    total = styrax.jit(lambda k: (styrax.random.normal(k, (N,)) ** 2).sum())(key)
    np.testing.assert_allclose(total, (drawn**2).sum(), rtol=1e-6)

    def quarter(k):
        x, y = styrax.random.uniform(k, (2, N))
        return (x * x + y * y < 1).mean()

    x, y = np.asarray(styrax.random.uniform(key, (2, N)))
    np.testing.assert_allclose(styrax.jit(quarter)(key), (x * x + y * y < 1).mean(), rtol=1e-6)


def several(j, x):
    """Reductions that share the loops over their parts."""
    return x.sum(), (x * x).sum(), x.max(), j.numpy.argmin(x), j.numpy.std(x)


SEVERAL = {
    "alone": lambda j: lambda x: several(j, x),
    "in a scan": lambda j: lambda x: j.lax.scan(
        lambda c, s: (c * s, several(j, c)), x, j.numpy.ones(3, x.dtype) / 2)[1],
    "in a branch": lambda j: lambda x: j.lax.cond(x[0] > 0, lambda y: several(j, y), lambda y: several(j, -y), x),
    "mapped": lambda j: lambda x: j.vmap(lambda s: several(j, s * x))(j.numpy.ones(2, x.dtype)),
    "differentiated": lambda j: j.grad(lambda x: sum(several(j, x)[:3]) + several(j, x)[4]),
    "rows": lambda j: lambda x: several(j, x.reshape(3, -1).T),
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("length", [3 * 22003, 3 * 70001, 1 << 17])
def test_several_long_reductions_of_one_array(name, length):
    if name == "rows" and length % 3:
        length += 1
    x = np.random.default_rng(length).normal(size=length).astype(np.float32)
    got, want = (j.tree.leaves(j.jit(SEVERAL[name](j))(x)) for j in (styrax, real))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-5, atol=2e-3)
