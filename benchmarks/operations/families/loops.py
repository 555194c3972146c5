"""Loops, branches, maps, and derivatives inside of programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ..rows import Family

FAMILY = Family()
add = FAMILY.add

# Scans.
add("scan of a sum", lambda x: lax.scan(lambda c, x: (c + x, c), jnp.zeros((), x.dtype), x), "100", "1000", "20000")
add("scan of rows", lambda x: lax.scan(lambda c, x: (c * 0.9 + x, c), jnp.zeros(x.shape[1:], x.dtype), x), "100,10",
    "300,200", "1000,50")
add("scan of rows backwards", lambda x: lax.scan(
    lambda c, x: (c * 0.9 + x, c), jnp.zeros(x.shape[1:], x.dtype), x, reverse=True), "300,200")
add("scan unrolled", lambda x: lax.scan(lambda c, x: (c * 0.9 + x, c), jnp.zeros((), x.dtype), x, unroll=4), "1000")
add("scan without inputs", lambda x: lax.scan(lambda c, _: (c * 0.99, c[0]), x, None, length=100), "10", "1000")
add("RNN", lambda h, x, w, u: lax.scan(lambda h, x: ((h := jnp.tanh(h @ w * 0.05 + x @ u)), h), h, x),
    "16 50,8 16,16 8,16", "4,32 50,4,16 32,32 16,32", "64 100,32 64,64 32,64")
add("scan of logistic maps", lambda x: lax.scan(lambda c, _: (3.7 * c * (1 - c), c), x, None, length=50), "100:unit",
    loose=1e4)
add("filter of second order", lambda x: lax.scan(lambda c, x: (((y := x + 0.5 * c[0] - 0.3 * c[1]), c[0]), y), (
    jnp.zeros((), x.dtype),) * 2, x)[1], "1000", "20000")
add("viterbi", lambda x, t: lax.scan(lambda c, x: ((s := c[:, None] + t, s.max(0) + x)[1], s.argmax(0)), x[0], x[1:]),
    "100,8 8,8", "100,32 32,32")
add("forward algorithm", lambda x, t: lax.scan(
    lambda c, x: (jax.nn.logsumexp(c[:, None] + t, axis=0) + x, None), x[0], x[1:])[0], "100,8 8,8", "100,32 32,32")
add("scan of matrices", lambda a: lax.scan(lambda c, a: (c @ a, None), jnp.eye(a.shape[1], dtype=a.dtype), a)[0],
    "50,4,4:lower", "50,16,16:lower")
add("edit distance's row", lambda x, y: lax.scan(lambda row, a: (lax.associative_scan(
    jnp.minimum, jnp.minimum(row + 1, jnp.roll(row, 1) + (y != a))), None), jnp.arange(y.shape[0]), x)[0],
    "50:int<4 60:int<4")

# Loops.
add("fori_loop of a vector", lambda x: lax.fori_loop(0, 100, lambda i, x: x * 0.99 + 0.01 * i, x), "10", "1000",
    "20000")
add("fori_loop of a scalar", lambda x: lax.fori_loop(0, 1000, lambda i, x: x * 0.99 + 0.1, x), "()")
add("fori_loop with a bound", lambda x, n: lax.fori_loop(0, n, lambda i, x: jnp.sin(x), x), "100 ():int<50")
add("fori_loop that writes", lambda x: lax.fori_loop(1, x.shape[0], lambda i, x: x.at[i].add(0.5 * x[i - 1]), x),
    "1000",
    "20000")
add("fori_loop of stencils", lambda x: lax.fori_loop(0, 20, lambda i, x: x.at[1:-1, 1:-1].set(0.25 * (
    x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])), x), "30,40", "100,100")
add("while_loop of newton", lambda x: lax.while_loop(
    lambda y: jnp.max(jnp.abs(y * y - x)) > 0.1, lambda y: 0.5 * (y + x / y), x + 1), "100:pos", "1000:pos")
add("while_loop of a count", lambda x: lax.while_loop(lambda c: c[0] < 500, lambda c: (c[0] + 1, c[1] * 1.001 + 1), (
    0, x)), "()")
add("bisection", lambda x: lax.fori_loop(0, 40, lambda i, b: ((m := (b[0] + b[1]) / 2, c := m**3 + m < x, jnp.where(
    c, m, b[0]), jnp.where(c, b[1], m))[2:]), (jnp.zeros_like(x), jnp.full_like(x, 3))), "1000:pos")
add("collatz", lambda x: lax.while_loop(lambda c: jnp.any(c[0] > 1) & (c[1].max() < 200), lambda c: (
    jnp.where(c[0] <= 1, 1, jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1)), c[1] + (c[0] > 1)), (
    x + 1, jnp.zeros_like(x))), "100:int<100")
add("mandelbrot", lambda c: lax.fori_loop(0, 20, lambda i, s: (
    jnp.where(jnp.abs(s[0]) < 4, s[0] * s[0] + c, s[0]), s[1] + (jnp.abs(s[0]) < 2)), (
    c, jnp.zeros(c.shape, jnp.int32)))[1], "50,40:complex")
add("runge-kutta of a pendulum", lambda x: lax.fori_loop(0, 50, lambda i, y: (
    k := (f := lambda y: jnp.stack([y[1], -jnp.sin(y[0])]))(y), l := f(y + 0.05 * k), y + 0.1 * l)[2], x), "2,1",
        "2,500")

# Branches.
add("cond", lambda c, x: lax.cond(c > 50, lambda x: jnp.sin(x), lambda x: x * 2, x), "():int<100 1000",
    "():int<100 300,200")
add("switch of three", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), "():int<3 1000", "():int<3 300,200")
add("cond in a loop", lambda x: lax.fori_loop(0, 100, lambda i, x: lax.cond(
    i % 2 == 0, lambda x: x + 1, lambda x: x * 0.9, x), x), "100")
add("cond of a batch", lambda c, x: jax.vmap(lambda c, x: lax.cond(c, jnp.sin, jnp.cos, x))(c, x), "100:bool 100,50")
add("switch of a batch", lambda i, x: jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x))(i, x),
    "1000:int<3 1000")

# Maps.
add("lax.map of rows", lambda x: lax.map(lambda r: jnp.sin(r).sum(), x), "100,10", "300,200")
add("lax.map in batches", lambda x: lax.map(lambda r: jnp.sin(r).sum(), x, batch_size=10), "100,50")
add("lax.map of sorts", lambda x: lax.map(jnp.sort, x), "50,100")
for name, combine in (("add", jnp.add), ("maximum", jnp.maximum), ("multiply", jnp.multiply)):
    add(f"associative_scan of {name}", lambda x, combine=combine: lax.associative_scan(combine, x), "100", "1000",
        "300,20")
add("associative_scan of recurrences", lambda a, b: lax.associative_scan(
    lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b)), "100:unit 100", "1000:unit 1000", "200,30:unit 200,30")
add("associative_scan of matrices", lambda a: lax.associative_scan(jnp.matmul, a), "30,4,4:lower")
add("associative_scan axis 1", lambda x: lax.associative_scan(jnp.add, x, axis=1), "20,300")
add("vmap of a sum of squares", lambda x: jax.vmap(lambda r: jnp.sum(r * r))(x), "300,200")
add("vmap along columns", lambda x: jax.vmap(lambda c: c - c.mean(), 1, 1)(x), "300,200")
add("vmap of a loop", lambda x: jax.vmap(lambda x: lax.fori_loop(0, 20, lambda i, x: jnp.cos(x), x))(x), "1000")
add("vmap of a while loop", lambda n: jax.vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2 + 1, 1))(n),
    "1000:int<5000")
add("vmap of a scan", lambda x: jax.vmap(lambda x: lax.scan(lambda c, x: (c * 0.9 + x, c), jnp.zeros((), x.dtype),
    x)[1])(
    x), "100,50")
add("vmap of a solve", lambda a, b: jax.vmap(jnp.linalg.solve)(a, b), "100,4,4:spd 100,4")
add("vmap of a convolve", lambda x, y: jax.vmap(lambda x: jnp.convolve(x, y, "same"))(x), "50,100 9")
add("vmap of interp", lambda x, xp, fp: jax.vmap(jnp.interp, (0, None, 0))(x, xp, fp), "20,100 50:sorted 20,50")
add("vmap of argmax", lambda x: jax.vmap(jnp.argmax)(x), "300,200")
add("vmap of histogram", lambda x: jax.vmap(lambda x: jnp.histogram(x, 10, (-3, 3))[0])(x), "30,100")

# Derivatives.
add("gradient of a sum of sines", jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)), "1000", "300,200")
add("gradient of softmax cross entropy", jax.grad(lambda x, i: -jnp.mean(jnp.take_along_axis(
    jax.nn.log_softmax(x), i[:, None], 1))), "100,10 100:int<10")
add("gradient of a summed product", jax.grad(lambda x, w: jnp.sum(x @ w), (0, 1)), "300,200 200,100", "64,64 64,64")
add("gradient of two layers", jax.grad(lambda w, v, x: jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ v) ** 2), (0, 1)),
    "20,50 50,10 32,20", "100,200 200,10 64,100")
add("gradient of layer norm", jax.grad(lambda x: jnp.sum(jnp.sin((x - x.mean(-1, keepdims=True)) * lax.rsqrt(
    x.var(-1, keepdims=True) + 1e-5)))), "300,200")
add("gradient of attention", jax.grad(lambda q, k, v: jnp.sum(jax.nn.softmax(q @ k.T / 8) @ v), (0, 1, 2)),
    "64,32 64,32 64,32")
add("gradient of a scan", jax.grad(lambda x: jnp.sum(lax.scan(
    lambda c, x: ((c := jnp.tanh(c + x)), c), jnp.zeros(x.shape[1:], x.dtype), x)[1])), "100,20")
add("gradient of distances", jax.grad(lambda x: jnp.sum(jnp.sqrt(jnp.sum((x[:, None] - x) ** 2, -1) + 1e-3))), "100,3")
add("gradient of a lookup", jax.grad(lambda e, i: jnp.sum(e[i] ** 2)), "500,32 200:int<500")
add("gradient of a solve", jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b)), (0, 1)), "20,20:spd 20", loose=5)
add("gradient of a maximum", jax.grad(lambda x: jnp.sum(jnp.max(x, 1) * jnp.arange(x.shape[0]))), "300,200")
add("gradient of cumsum", jax.grad(lambda x: jnp.sum(jnp.cumsum(x) ** 2)), "1000")
add("gradient of sort", jax.grad(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(x.shape[0]))), "1000")
add("jacobian forwards", lambda x, w: jax.jacfwd(lambda x: jnp.tanh(x @ w))(x), "10 10,20", "50 50,60")
add("jacobian backwards", lambda x, w: jax.jacrev(lambda x: jnp.tanh(x @ w))(x), "10 10,20", "50 50,60")
add("hessian", lambda x, w: jax.hessian(lambda x: jnp.sum(jnp.tanh(x @ w) ** 2))(x), "10 10,20", "30 30,40")
add("hessian times vector", lambda x, v, w: jax.jvp(jax.grad(lambda x: jnp.sum(jnp.tanh(x @ w) ** 2)), (x,), (v,))[1],
    "100 100 100,50")
add("gradients of a batch", lambda w, x, y: jax.vmap(jax.grad(lambda w, x, y: (x @ w - y) ** 2), (None, 0, 0))(w, x, y),
    "20 300,20 300")
add("jvp", lambda x, v: jax.jvp(lambda x: jnp.sin(x) * jnp.exp(-x), (x,), (v,)), "1000 1000", "300,200 300,200")
add("vjp", lambda x, v: jax.vjp(lambda x: jnp.sin(x) * jnp.exp(-x), x)[1](v), "1000 1000", "300,200 300,200")
add("gradient with checkpoint", jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(jnp.sin(x)))))), "300,200")
add("derivatives of a polynomial", lambda x: jax.vmap(jax.grad(lambda x: x**4 - 3 * x**2 + x))(x), "1000")
add("third derivative", lambda x: jax.vmap(jax.grad(jax.grad(jax.grad(lambda x: jnp.sin(x) * x))))(x), "1000")
add("divergence", lambda x: jax.vmap(lambda p: jnp.trace(jax.jacfwd(lambda p: jnp.sin(p) * p[::-1])(p)))(x), "300,3")
add("newton step", lambda x, w: x - jnp.linalg.solve(jax.hessian(f := lambda x: jnp.sum(jnp.cosh(x @ w)) + x @ x)(x),
    jax.grad(f)(x)), "5:unit 5,8:unit", loose=5)
add("sgd step of a regression", lambda w, x, y: w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w),
    "20 300,20 300", "100 1000,100 1000")
add("custom derivative", lambda x: jax.grad(lambda x: jnp.sum(jax.nn.relu(x) * jax.nn.silu(x)))(x), "300,200")
