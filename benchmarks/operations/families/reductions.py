"""Sums and the like over axes, cumulative ones, statistics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
each = FAMILY.each

each("jnp", "sum mean max min prod std var ptp", "1000", "300,200")
each("jnp", "sum max", "1000,1000")
for name in "sum mean max min prod std var".split():
    add(f"{name} axis 0", lambda x, name=name: getattr(jnp, name)(x, 0), "300,200", "5000,10")
    add(f"{name} axis 1", lambda x, name=name: getattr(jnp, name)(x, 1), "300,200", "5000,10")
for name in "sum mean max".split():
    add(f"{name} axis 1 of 3", lambda x, name=name: getattr(jnp, name)(x, 1), "30,40,50")
    add(f"{name} axes 0 2 of 3", lambda x, name=name: getattr(jnp, name)(x, (0, 2)), "30,40,50")
    add(f"{name} keepdims", lambda x, name=name: getattr(jnp, name)(x, -1, keepdims=True), "300,200")
for name in "nansum nanmean nanmax nanmin nanstd nanvar nanprod".split():
    add(name, lambda x, name=name: getattr(jnp, name)(x), "1000:nans", "300,200:nans")
    add(f"{name} axis 0", lambda x, name=name: getattr(jnp, name)(x, 0), "300,200:nans")
for name in "argmax argmin".split():
    add(name, lambda x, name=name: getattr(jnp, name)(x), "1000", "300,200")
    add(f"{name} axis 0", lambda x, name=name: getattr(jnp, name)(x, 0), "300,200")
    add(f"{name} axis 1", lambda x, name=name: getattr(jnp, name)(x, 1), "300,200", "5000,10")
for name in "nanargmax nanargmin".split():
    add(name, lambda x, name=name: getattr(jnp, name)(x, 1), "300,200:nans")
for name in "all any count_nonzero".split():
    add(name, lambda x, name=name: getattr(jnp, name)(x), "1000:bool", "100000:bool")
    add(f"{name} axis 0", lambda x, name=name: getattr(jnp, name)(x, 0), "300,200:bool")
    add(f"{name} axis 1", lambda x, name=name: getattr(jnp, name)(x, 1), "300,200:bool")
add("sum where", lambda x, c: jnp.sum(x, 1, where=c), "300,200 300,200:bool")
add("mean where", lambda x, c: jnp.mean(x, 0, where=c), "300,200 300,200:bool")
add("max where", lambda x, c: jnp.max(x, 1, where=c, initial=-10), "300,200 300,200:bool")
add("sum of a million", lambda x: jnp.sum(x), "1000000")
add("sum of a wide matrix axis 0", lambda x: jnp.sum(x, 0), "10,50000", "1000,1000")
add("sum of a wide matrix axis 1", lambda x: jnp.sum(x, 1), "10,50000", "1000,1000")
add("sum of integers", lambda x: jnp.sum(x), "1000:int", "100000:int")
add("max of integers axis 0", lambda x: jnp.max(x, 0), "300,200:int")
add("sum of bytes", lambda x: jnp.sum(x), "100000:u8")
add("mean of bytes", lambda x: jnp.mean(x, (0, 1)), "200,300,3:u8")
add("any equal bytes", lambda x: jnp.any(x == x[0], 1), "300,200:u8")
add("all booleans axis 0", lambda x: jnp.all(x, 0), "500,500:bool")
add("max of halves axis 1", lambda x: jnp.max(x.astype(jnp.bfloat16), 1), "300,200")
add("sum of complex", lambda x: jnp.sum(x), "10000:complex")
add("sum of complex axis 0", lambda x: jnp.sum(x, 0), "300,200:complex")
add("sum of squares", lambda x: jnp.sum(x * x), "1000", "300,200", "1000,1000")
add("norm", lambda x: jnp.linalg.norm(x), "1000", "300,200", "1000,1000")
add("norm axis 1", lambda x: jnp.linalg.norm(x, axis=1), "300,200", "10000,3")
add("norm 1 axis 0", lambda x: jnp.linalg.norm(x, 1, axis=0), "300,200")
add("norm inf", lambda x: jnp.linalg.norm(x, jnp.inf), "1000", "300,200")
add("norm 3", lambda x: jnp.linalg.norm(x, 3), "1000")
add("average with weights", lambda x, w: jnp.average(x, 0, w), "300,200 300:pos")
add("max and its place", lambda x: (x.max(1), x.argmax(1)), "300,200")
add("mean and var", lambda x: (x.mean(0), x.var(0)), "300,200", "20000,4")
add("skewness", lambda x: jnp.mean((x - x.mean(0)) ** 3, 0) / x.std(0) ** 3, "300,200")
add("sum of log", lambda x: jnp.sum(jnp.log(x)), "1000:pos", "300,200:pos")
add("any NaN", lambda x: jnp.any(jnp.isnan(x)), "100000")
add("allclose", lambda x, y: jnp.allclose(x, y), "10000 10000")
add("array_equal", lambda x, y: jnp.array_equal(x, y), "10000 10000")
add("trace", lambda x: jnp.trace(x), "100,100", "500,500")
add("trace batched", lambda x: jnp.trace(x, axis1=1, axis2=2), "1000,8,8")
add("lax.reduce of or", lambda x: lax.reduce(x, jnp.uint32(0), lax.bitwise_or, (0,)), "300,200:bits")
add("lax.reduce of a pair", lambda x, y: lax.reduce(
    (x, y), (jnp.zeros((), x.dtype), jnp.ones((), y.dtype)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)),
    "300,200 300,200")
add("reduce_and", lambda x: jnp.bitwise_and.reduce(x), "10000:bits")
add("add.reduce axis 0", lambda x: jnp.add.reduce(x, 0), "300,200")
add("sum of last of 4", lambda x: x.sum(-1), "10,20,30,4", "4,10,20,30")
add("sum of first of 4", lambda x: x.sum(0), "10,20,30,4", "4,10,20,30")
add("pooling of everything", lambda x: x.mean((1, 2)), "4,16,16,32", "8,32,32,64")
add("pooling of everything, channels first", lambda x: x.mean((2, 3)), "4,32,16,16")

# Cumulative.
for name in "cumsum cumprod nancumsum".split():
    add(name, lambda x, name=name: getattr(jnp, name)(x), "1000", "100000")
    add(f"{name} axis 0", lambda x, name=name: getattr(jnp, name)(x, 0), "300,200")
    add(f"{name} axis 1", lambda x, name=name: getattr(jnp, name)(x, 1), "300,200")
for name in "cummax cummin cumlogsumexp".split():
    add(name, lambda x, name=name: getattr(lax, name)(x), "1000", "50000")
    add(f"{name} axis 1", lambda x, name=name: getattr(lax, name)(x, 1), "300,200")
add("cumsum of integers", lambda x: jnp.cumsum(x), "1000:int", "100000:int")
add("cumsum of booleans", lambda x: jnp.cumsum(x), "100000:bool")
add("cumsum reversed", lambda x: lax.cumsum(x, 0, reverse=True), "10000", "300,200")
add("cumsum of a million", lambda x: jnp.cumsum(x), "1000000")
add("cumulative_sum with a zero", lambda x: jnp.cumulative_sum(x, include_initial=True), "10000")
add("maximum.accumulate", lambda x: jnp.maximum.accumulate(x), "1000")
add("moving average by cumsum", lambda x: (jnp.cumsum(x)[10:] - jnp.cumsum(x)[:-10]) / 10, "1000", "20000", loose=20)
add("discounted returns", lambda x: lax.associative_scan(lambda a, b: a * 0.99 + b, x, reverse=True), "1000")

# Statistics.
each("jnp", "median", "1000", "300,200")
add("median axis 0", lambda x: jnp.median(x, 0), "100,50", "300,200")
add("median axis 1", lambda x: jnp.median(x, 1), "100,50", "300,200")
add("nanmedian axis 1", lambda x: jnp.nanmedian(x, 1), "100,50:nans")
add("percentile", lambda x: jnp.percentile(x, 90), "1000", "20000")
add("quantiles", lambda x: jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=0), "300,200")
add("nanquantile", lambda x: jnp.nanquantile(x, 0.3, axis=1), "100,50:nans")
add("percentile nearest", lambda x: jnp.percentile(x, 30, method="nearest"), "1000")
add("cov", lambda x: jnp.cov(x), "10,100", "50,300")
add("cov of columns", lambda x: jnp.cov(x, rowvar=False), "300,50")
add("corrcoef", lambda x: jnp.corrcoef(x), "10,100", "50,300")
add("pearson correlation", lambda x, y: jnp.sum((x - x.mean()) * (y - y.mean())) / (x.std() * y.std() * x.size),
    "1000 1000", "100000 100000")
add("histogram", lambda x: jnp.histogram(x, 20), "1000", "20000")
add("histogram in a range", lambda x: jnp.histogram(x, 20, (-3, 3)), "1000", "20000")
add("histogram2d", lambda x, y: jnp.histogram2d(x, y, 10)[0], "2000 2000")
add("bincount", lambda i: jnp.bincount(i, length=100), "1000:int<100", "100000:int<100")
add("bincount with weights", lambda i, w: jnp.bincount(i, w, length=100), "10000:int<100 10000")
add("trapezoid", lambda y, x: jnp.trapezoid(y, x), "1000 1000:sorted", "100000 100000:sorted")
add("trapezoid axis 0", lambda y: jnp.trapezoid(y, dx=0.1, axis=0), "300,200")
for name in "segment_sum segment_prod segment_max segment_min".split():
    add(name, lambda x, i, name=name: getattr(jax.ops, name)(x, i, 50), "1000 1000:int<50", "20000 20000:int<50")
    add(f"{name} of rows", lambda x, i, name=name: getattr(jax.ops, name)(x, i, 50), "1000,32 1000:int<50")
add("segment_sum sorted", lambda x, i: jax.ops.segment_sum(x, jnp.sort(i), 50, indices_are_sorted=True),
    "1000,8 1000:int<50")
add("segment mean", lambda x, i: jax.ops.segment_sum(x, i, 50) / (1 + jnp.bincount(i, length=50)[:, None]),
    "1000,8 1000:int<50")
add("sem", lambda x: jax.scipy.stats.sem(x), "300,200")
add("mode", lambda x: jax.scipy.stats.mode(x)[0], "100,20:int<10")
add("approx_max_k", lambda x: lax.approx_max_k(x, 10), "1000")
