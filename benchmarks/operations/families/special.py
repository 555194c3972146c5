"""Special functions and densities."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy import special, stats

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
each = FAMILY.each

each(
    "special",
    "erf erfc expit i0 i0e i1 i1e ndtr log_ndtr softmax dawsn erfcx",
    "1000", "100,200",
)  # fmt: skip
each("special", "gammaln digamma gamma entr exp1 expi spence factorial sici fresnel", "1000:pos", "100,200:pos")
each("special", "erfinv", "1000:signed", "100,200:signed")
each("special", "logit ndtri", "1000:unit", "100,200:unit")
each("special", "xlogy xlog1py beta betaln kl_div rel_entr", "1000:pos 1000:pos", "100,200:pos 100,200:pos")
each("special", "gammainc gammaincc poch", "1000:pos 1000:pos", "5000:pos 5000:pos")
each("special", "logsumexp", "1000", "100,200")
each("special", "betainc", "1000:pos 1000:pos 1000:unit", "5000:pos 5000:pos 5000:unit")
add("special.zeta", lambda x, q: special.zeta(x + 1.5, q), "1000:pos 1000:pos")
add("special.polygamma", lambda x: special.polygamma(1, x), "1000:pos", "5000:pos")
add("special.expn", lambda x: special.expn(2, x), "1000:pos")
add("special.multigammaln", lambda x: special.multigammaln(x + 3, 3), "1000:pos")
add("special.hyp1f1", lambda a, b, x: special.hyp1f1(a, b, x), "200:pos 200:pos 200:unit")
add("special.bessel_jn", lambda x: special.bessel_jn(x, v=4), "200:pos", loose=5)
add("special.comb", lambda n, k: special.comb(n + 10, k), "1000:int<10 1000:int<10", loose=5)
add("special.sph_harm_y", lambda t, p: special.sph_harm_y(jnp.full(t.shape, 3), jnp.full(t.shape, 2), t, p, n_max=4),
    "200:pos 200:pos")
add("special.wofz", lambda z: special.wofz(z), "500:complex")
add("special.owens_t", lambda h, a: special.owens_t(h, a), "500 500")
add("special.boxcox", lambda x: special.boxcox(x, 0.3), "1000:pos")

add("norm.logpdf", lambda x, m, s: stats.norm.logpdf(x, m, s), "1000 1000 1000:pos", "100,200 200 200:pos")
add("norm.pdf", lambda x: stats.norm.pdf(x), "1000", "100,200")
add("norm.cdf", lambda x: stats.norm.cdf(x), "1000", "100,200")
add("norm.ppf", lambda x: stats.norm.ppf(x), "1000:unit", "100,200:unit")
add("norm.logcdf", lambda x: stats.norm.logcdf(x), "1000")
add("norm.sf", lambda x: stats.norm.sf(x), "1000")
add("gamma.logpdf", lambda x, a: stats.gamma.logpdf(x, a), "1000:pos 1000:pos", "20000:pos 20000:pos")
add("gamma.cdf", lambda x, a: stats.gamma.cdf(x, a), "1000:pos 1000:pos")
add("beta.logpdf", lambda x, a, b: stats.beta.logpdf(x, a, b), "1000:unit 1000:pos 1000:pos")
add("beta.cdf", lambda x, a, b: stats.beta.cdf(x, a, b), "1000:unit 1000:pos 1000:pos")
add("t.logpdf", lambda x, d: stats.t.logpdf(x, d), "1000 1000:pos", "20000 20000:pos")
add("chi2.logpdf", lambda x, d: stats.chi2.logpdf(x, d), "1000:pos 1000:pos")
add("chi2.cdf", lambda x, d: stats.chi2.cdf(x, d), "1000:pos 1000:pos")
add("expon.logpdf", lambda x: stats.expon.logpdf(x), "10000:pos")
add("laplace.logpdf", lambda x: stats.laplace.logpdf(x), "10000")
add("logistic.logpdf", lambda x: stats.logistic.logpdf(x), "10000")
add("cauchy.logpdf", lambda x: stats.cauchy.logpdf(x), "10000")
add("cauchy.cdf", lambda x: stats.cauchy.cdf(x), "10000")
add("uniform.logpdf", lambda x: stats.uniform.logpdf(x), "10000")
add("pareto.logpdf", lambda x, b: stats.pareto.logpdf(x + 1, b), "10000:pos 10000:pos")
add("truncnorm.logpdf", lambda x: stats.truncnorm.logpdf(x, -2, 2), "10000:signed")
add("vonmises.logpdf", lambda x, k: stats.vonmises.logpdf(x, k), "10000 10000:pos")
add("gennorm.logpdf", lambda x, b: stats.gennorm.logpdf(x, b), "10000 10000:pos")
add("gumbel_r.logpdf", lambda x: stats.gumbel_r.logpdf(x), "10000")
add("poisson.logpmf", lambda k, m: stats.poisson.logpmf(k, m), "1000:int<10 1000:pos", "20000:int<10 20000:pos")
add("poisson.cdf", lambda k, m: stats.poisson.cdf(k, m), "1000:int<10 1000:pos")
add("bernoulli.logpmf", lambda k, p: stats.bernoulli.logpmf(k, p), "10000:int<2 10000:unit")
add("binom.logpmf", lambda k, p: stats.binom.logpmf(k, 10, p), "10000:int<10 10000:unit")
add("geom.logpmf", lambda k, p: stats.geom.logpmf(k + 1, p), "10000:int<10 10000:unit")
add("nbinom.logpmf", lambda k, p: stats.nbinom.logpmf(k, 5, p), "10000:int<10 10000:unit")
add("betabinom.logpmf", lambda k, a, b: stats.betabinom.logpmf(k, 10, a, b), "1000:int<10 1000:pos 1000:pos")
add("dirichlet.logpdf", lambda x, a: stats.dirichlet.logpdf(x / x.sum(), a), "10:unit 10:pos")
add("multinomial.logpmf", lambda x, p: stats.multinomial.logpmf(x, x.sum(), p / p.sum()), "10:int<5 10:unit")
add("multivariate_normal.pdf", lambda x, m, c: stats.multivariate_normal.pdf(x, m, c), "500,3 3 3,3:spd")
add("multivariate_normal.logpdf", lambda x, m, c: stats.multivariate_normal.logpdf(x, m, c), "500,40 40 40,40:spd")
add("gaussian_kde", lambda x, y: stats.gaussian_kde(x)(y), "200 100", loose=5)
add("entropy", lambda p: -jnp.sum(special.xlogy(p, p), -1), "300,200:unit")
add("vq", lambda x, c: jax.scipy.cluster.vq.vq(x, c), "500,3 20,3")
add("softmax's jacobian", lambda x: jnp.diag(s := jax.nn.softmax(x)) - jnp.outer(s, s), "100")
add("stirling", lambda n: n * jnp.log(n) - n + 0.5 * jnp.log(2 * jnp.pi * n), "10000:pos")
