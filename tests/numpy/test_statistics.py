"""Averages, quantiles, histograms, differences."""

from __future__ import annotations

from tests.numpy import oracle

TABLE = """
jnp.median(x)
jnp.median(m, axis=1)
jnp.percentile(i, [30.])
jnp.cov(m)
jnp.cov(x, y)
jnp.cov(m, rowvar=False)
jnp.cov(m, bias=True)
jnp.cov(m, fweights=jnp.array([1, 2, 1]))
jnp.bincount(i, length=4)
jnp.bincount(i, weights=x, length=2)
jnp.average(m)
jnp.average(m, axis=0, weights=jnp.array([1., 2]))
jnp.average(x, weights=p, returned=True)
jnp.average(i)
jnp.ptp(m, axis=1)
jnp.ptp(x)
jnp.cov(c)
jnp.cov(t)
jnp.quantile(c, 0.5)
jnp.quantile(x, 0.5, method='foo')
jnp.bincount(m)
jnp.bincount(x)
jnp.trapezoid(m, dx=0.5)
jnp.trapezoid(x, jnp.array([0., 1, 3]))
jnp.gradient(x)
jnp.gradient(m)
jnp.gradient(m, 2.0, axis=1)
jnp.gradient(x[:1])
jnp.unwrap(4 * x)
jnp.diff(m)
jnp.diff(m, 2, axis=1)
jnp.diff(x, prepend=0, append=jnp.array([9., 8]))
jnp.diff(b)
jnp.ediff1d(x, to_begin=-9)
"""

# JAX composes these of other primitives.
VALUES = """
jnp.median(m, axis=(0, 1), keepdims=True)
jnp.quantile(x, 0.3)
jnp.quantile(m, jnp.array([.1, .5]), axis=0)
jnp.quantile(m, jnp.array([.1, .5]), axis=1, keepdims=True)
jnp.quantile(x, 0.3, method='nearest')
jnp.quantile(x, 0.3, method='lower')
jnp.quantile(x, 0.3, method='higher')
jnp.quantile(x, 0.3, method='midpoint')
jnp.percentile(x, 30)
jnp.nanmedian(x)
jnp.nanquantile(m, 0.3, axis=1)
jnp.nanquantile(m, jnp.array([.1, .5]), axis=0)
jnp.nanpercentile(m, 30, axis=1, keepdims=True)
jnp.cov(m, aweights=jnp.array([1., 2, 1]))
jnp.corrcoef(m)
jnp.corrcoef(x, y)
jnp.histogram(x, bins=3)
jnp.histogram(x, bins=jnp.array([-2., 0, 2]))
jnp.histogram(x, bins=3, density=True)
jnp.histogram(i, bins=4, range=(0, 2), weights=x)
jnp.histogram_bin_edges(x, 5)
jnp.histogram2d(x, y, bins=2)
jnp.histogramdd(m, bins=2)
jnp.bincount(jnp.array([1, 2, 2]))
jnp.digitize(x, jnp.sort(y))
jnp.digitize(x, jnp.sort(y)[::-1], right=True)
jnp.histogram(x, bins=0)
jnp.interp(x, jnp.array([-1., 0, 1]), jnp.array([2., 3, 5]))
jnp.interp(x, jnp.array([-1., 0, 1]), jnp.array([2., 3, 5]), left=0., right=9.)
jnp.interp(x, jnp.array([0., 1]), jnp.array([2., 3]), period=2.)
jnp.gradient(x, jnp.array([0., 1, 3]))
jnp.cov(jnp.zeros(0))
jnp.cov(jnp.zeros((3, 0)))
jnp.cov(jnp.zeros((0, 3)))
jnp.cov(jnp.zeros((2, 0)), bias=True)
jnp.cov(jnp.zeros(0), ddof=-2)
jnp.cov(x, ddof=5)
jnp.trapezoid(x, dx=jnp.array([1., 2]))
jnp.trapezoid(m, dx=jnp.array([1., 2]))
jnp.trapezoid(m, dx=jnp.array([1., 2, 3]), axis=0)
jnp.trapezoid(m, dx=jnp.array([[2.], [3]]))
jnp.trapezoid(i, dx=2, axis=0)
jnp.trapezoid(h, dx=np.float32(2))
jnp.trapezoid(jnp.zeros(0))
jnp.trapezoid(x, axis=1)
jax.grad(lambda z: jnp.trapezoid(x, dx=z))(y[:2])
"""


def test_values() -> None:
    oracle.check_values(TABLE + VALUES, rtol=1e-4, atol=1e-5)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)


SMALL_FLOATS = """
jnp.quantile(h, 0.3)
jnp.percentile(h, 30)
jnp.nanpercentile(h, jnp.array([30., 60]))
jnp.quantile(x.astype(jnp.bfloat16), jnp.float16(0.31))
jnp.quantile((jnp.arange(5000) / 5000).astype(jnp.float16), 0.3)
jnp.median(i.astype(jnp.int8))
"""


LEAST = """
jnp.quantile(jnp.arange(7.), np.linspace(0, 1, 29, dtype=np.float32), method='inverted_cdf')
jnp.quantile(jnp.arange(10), np.linspace(-0.5, 1.5, 31, dtype=np.float32), method='inverted_cdf')
jnp.percentile(t, jnp.array([10., 50]), axis=(0, -1), keepdims=True, method='inverted_cdf')
jnp.quantile(t, 0.5, axis=1, keepdims=True, method='inverted_cdf')
jnp.quantile(t, 0.5, keepdims=True, method='inverted_cdf')
jnp.quantile(jnp.log(m), 0.5, axis=1, method='inverted_cdf')
jnp.nanquantile(jnp.log(m), jnp.array([0., 0.9]), axis=1, method='inverted_cdf')
jnp.nanquantile(jnp.log(-1 - m * m), 0.5, axis=1, method='inverted_cdf')
jnp.quantile(x, jnp.array([0., .1, .5, 1]), method='inverted_cdf', weights=p)
jnp.quantile(x, jnp.array([0., .1, .5, 1]), method='inverted_cdf', weights=jnp.array([0, 1, 2]))
jnp.quantile(m, 0.5, axis=1, method='inverted_cdf', weights=p)
jnp.quantile(t, 0.5, axis=(-1, 0), method='inverted_cdf', weights=jnp.arange(8.).reshape(4, 2))
jnp.quantile(x, 0.5, method='inverted_cdf', weights=y)
jnp.nanquantile(x, 0.5, method='inverted_cdf', weights=jnp.log(y))
jnp.quantile(x, 0.5, method='inverted_cdf', weights=0 * y)
jnp.quantile(x, 0.5, method='inverted_cdf', weights=c)
jnp.quantile(m, 0.5, method='inverted_cdf', weights=x)
jnp.quantile(m, 0.5, axis=0, method='inverted_cdf', weights=x)
jnp.quantile(x, 0.5, weights=p)
jax.grad(lambda a: jnp.quantile(a, 0.5, method='inverted_cdf', weights=p))(x)
jax.vmap(lambda a, q: jnp.quantile(a, q, method='inverted_cdf'))(m, jnp.array([.2, .8]))
"""


def test_least_elements_that_reach_a_share() -> None:
    oracle.check_values(LEAST)


def test_quantiles_of_small_floats() -> None:
    oracle.check_values(SMALL_FLOATS)
    oracle.check_texts("jnp.quantile(h, jnp.float32(0.3))")
