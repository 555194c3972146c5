"""Library functions where neither dtypes nor ranks are promoted on their own: only what the caller mixes is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.numpy import oracle

TABLE = """
jnp.quantile(x.astype('float16'), 0.3)
jnp.quantile(x.astype('bfloat16'), jnp.array([0.2, 0.4]), axis=0, keepdims=True)
jnp.percentile(x.astype('bfloat16'), 30)
jnp.nanquantile(x.astype('float16'), 0.3, axis=-1)
jnp.nanpercentile(x.astype('bfloat16'), jnp.array([20.0, 40.0]))
jnp.median(x.astype('float16'), axis=0)
jnp.mgrid[0:3, 0:2:3j]
jnp.ogrid[0:3, 0:2:3j]
jnp.linalg.pinv(jnp.sin(t**2))
jnp.linalg.pinv(jnp.sin(t**2), 0.1)
jnp.linalg.pinv(jnp.sin(t**2), jnp.array([0.1, 0.01]))
jax.grad(lambda a: jnp.linalg.pinv(a).sum())(jnp.sin(t**2))
jax.random.multivariate_normal(jax.random.key(0), jnp.ones(3), jnp.eye(3), (2, 4))
jax.random.multivariate_normal(jax.random.key(0), jnp.ones((2, 3)), jnp.eye(3), method='svd')
jax.random.binomial(jax.random.key(0), 5.0, 0.3, (4,), 'bfloat16')
jax.random.binomial(jax.random.key(0), 5.0, 0.7, (4,), 'float16')
jsp.stats.gaussian_kde(jnp.array([3.0, 1.0, 2.0])).integrate_gaussian(jnp.array([0.0]), jnp.eye(1))
jsp.stats.gaussian_kde(jnp.array([3.0, 1.0, 2.0])).resample(jax.random.key(0), (3,))
"""


@contextmanager
def strictly() -> Iterator[None]:
    with ExitStack() as stack:
        for package in (oracle.jax, oracle.styrax):
            stack.enter_context(package.numpy_dtype_promotion("strict"))
            stack.enter_context(package.numpy_rank_promotion("raise"))
        yield


def test_values() -> None:
    with strictly():
        oracle.check_values(TABLE, rtol=5e-4)
