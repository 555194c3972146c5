"""Special functions and segment reductions."""

from __future__ import annotations

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
