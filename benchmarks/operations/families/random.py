"""Random numbers of keys that are made inside."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import random

from ..rows import Family

FAMILY = Family()
add = FAMILY.add


def drawn(name, *parameters):
    return lambda s, x: getattr(random, name)(random.key(s), *parameters, x.shape)


for name in "normal uniform exponential gumbel laplace logistic cauchy rademacher maxwell bits".split():
    add(f"random.{name}", drawn(name), "():seed 100:shape", "():seed 300,200:shape")
add("random.normal of a million", drawn("normal"), "():seed 1000,1000:shape")
add("random.uniform of a million", drawn("uniform"), "():seed 1000,1000:shape")
for name, *parameters in (
    ("bernoulli", 0.3), ("rayleigh", 2.0), ("gamma", 2.0), ("beta", 2.0, 3.0), ("poisson", 4.0), ("t", 5.0),
        ("chisquare", 4.0),
    ("pareto", 3.0), ("truncated_normal", -1.0, 2.0), ("geometric", 0.3), ("weibull_min", 1.0, 2.0), ("lognormal", 0.5),
    ("loggamma", 2.0), ("triangular", 0.0, 0.3, 1.0), ("wald", 1.0), ("generalized_normal", 1.5),
    ("double_sided_maxwell", 0.0, 1.0), ("f", 4.0, 5.0), ("binomial", 10.0, 0.3),
):  # fmt: skip
    add(f"random.{name}", drawn(name, *parameters), "():seed 100:shape", "():seed 5000:shape")
add("random.uniform in a range", lambda s, x: random.uniform(random.key(s), x.shape, minval=-2, maxval=3),
    "():seed 10000:shape")
add("random.randint", lambda s, x: random.randint(random.key(s), x.shape, 0, 100), "():seed 100:shape",
    "():seed 300,200:shape")
add("random.normal bfloat16", lambda s, x: random.normal(random.key(s), x.shape, jnp.bfloat16), "():seed 10000:shape",
    loose=100)
add("random.normal complex", lambda s, x: random.normal(random.key(s), x.shape, jnp.complex64), "():seed 10000:shape")
add("random.normal of one", lambda s: random.normal(random.key(s)), "():seed")
add("random.categorical", lambda s, x: random.categorical(random.key(s), x), "():seed 10", "():seed 1000",
    "():seed 300,200")
add("random.categorical many times", lambda s, x: random.categorical(random.key(s), x, shape=(1000,)), "():seed 20")
add("random.choice", lambda s, x: random.choice(random.key(s), x, (100,)), "():seed 1000")
add("random.choice without replacement", lambda s, x: random.choice(random.key(s), x, (100,), replace=False),
    "():seed 1000")
add("random.choice weighted", lambda s, x, p: random.choice(random.key(s), x, (100,), p=p / p.sum()),
    "():seed 1000 1000:pos")
add("random.permutation", lambda s, x: random.permutation(random.key(s), x), "():seed 1000", "():seed 20000",
    "():seed 300,20")
add("random.permutation of a number", lambda s: random.permutation(random.key(s), 1000), "():seed")
add("random.permutation of each row", lambda s, x: random.permutation(random.key(s), x, 1, independent=True),
    "():seed 50,40")
add("random.dirichlet", lambda s, a: random.dirichlet(random.key(s), a, (100,)), "():seed 5:pos")
add("random.multivariate_normal", lambda s, m, c: random.multivariate_normal(random.key(s), m, c, (100,)),
    "():seed 5 5,5:spd")
add("random.orthogonal", lambda s: random.orthogonal(random.key(s), 10), "():seed", loose=5)
add("random.ball", lambda s: random.ball(random.key(s), 3, 2, (1000,)), "():seed")
add("random.multinomial", lambda s, p: random.multinomial(random.key(s), 20.0, p / p.sum()), "():seed 5:pos")
add("random.gamma of many", lambda s, a: random.gamma(random.key(s), a), "():seed 1000:pos")
add("random.poisson of many", lambda s, a: random.poisson(random.key(s), a), "():seed 1000:pos")
add("random.binomial of many", lambda s, p: random.binomial(random.key(s), 20, p), "():seed 1000:unit")
add("random.split", lambda s: random.key_data(random.split(random.key(s))), "():seed")
add("random.split in 1000", lambda s: random.key_data(random.split(random.key(s), 1000)), "():seed")
add("random.fold_in", lambda s: random.key_data(random.fold_in(random.key(s), 7)), "():seed")
add("random.fold_in of many", lambda s, i: random.key_data(jax.vmap(random.fold_in, (None, 0))(random.key(s), i)),
    "():seed 1000:int<1000")
add("random numbers of many keys", lambda s: jax.vmap(lambda k: random.normal(k,
    (10,)))(random.split(random.key(s), 100)),
    "():seed")
add("random seeds", lambda s: jax.vmap(lambda s: random.uniform(random.key(s)))(s), "1000:seed")
add("random.key of rbg", lambda s, x: random.normal(random.key(s, impl="rbg"), x.shape), "():seed 10000:shape")
add("three arrays of random numbers", lambda s, x: [random.normal(k, x.shape) for k in random.split(random.key(s), 3)],
    "():seed 1000:shape")
add("random walk", lambda s, x: jnp.cumsum(random.normal(random.key(s), x.shape)), "():seed 1000:shape")
add("random walk of steps", lambda s: jax.lax.scan(lambda c, k: (c + random.normal(k), c), 0.0, random.split(
    random.key(s), 100))[1], "():seed")
add("monte carlo of pi", lambda s, x: 4 * jnp.mean(jnp.sum(random.uniform(random.key(s), x.shape) ** 2, 1) < 1),
    "():seed 20000,2:shape")
add("bootstrap means", lambda s, x: x[random.randint(random.key(s), (100, x.shape[0]), 0, x.shape[0])].mean(1),
    "():seed 200")
add("noise added", lambda s, x: x + 0.1 * random.normal(random.key(s), x.shape, x.dtype), "():seed 300,200")
add("metropolis steps", lambda s, x: jax.lax.fori_loop(0, 50, lambda i, x: (
    k := random.split(random.fold_in(random.key(s), i)), y := x + random.normal(k[0], x.shape, x.dtype), jnp.where(
        jnp.log(random.uniform(k[1], x.shape, x.dtype)) < 0.5 * (x * x - y * y), y, x))[2], x), "():seed 100")
add("initial weights", lambda s: jax.nn.initializers.glorot_normal()(random.key(s), (100, 200)), "():seed")
