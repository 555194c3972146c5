"""Decompositions, systems of equations, functions of matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import linalg as scipy_linalg

from ..rows import Family

FAMILY = Family()
add = FAMILY.add

add("cholesky", lambda a: jnp.linalg.cholesky(a), "4,4:spd", "20,20:spd", "100,100:spd", "300,300:spd", "500,4,4:spd",
    "50,16,16:spd")
add("solve", lambda a, b: jnp.linalg.solve(a, b), "4,4:spd 4", "30,30:spd 30", "100,100:spd 100", "200,200:spd 200,10",
    "500,3,3:spd 500,3,1", "50,16,16:spd 50,16,1")
add("inv", lambda a: jnp.linalg.inv(a), "4,4:spd", "30,30:spd", "100,100:spd", "500,3,3:spd", "500,4,4:spd")
add("det", lambda a: jnp.linalg.det(a), "3,3", "30,30:spd", "1000,2,2", "1000,3,3", "500,4,4")
add("slogdet", lambda a: jnp.linalg.slogdet(a), "30,30", "100,100", "500,4,4")
add("eigvalsh", lambda a: jnp.linalg.eigvalsh(a), "4,4:symmetric", "30,30:symmetric", "100,100:symmetric")
add("eigh", lambda a: jnp.linalg.eigh(a), "4,4:symmetric", "30,30:symmetric", "80,80:symmetric", "200,3,3:symmetric",
    signless=True, loose=20)
add("eigvals' sizes", lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), "4,4", "30,30", "80,80", loose=10)
add("eig", lambda a: jnp.linalg.eig(a), "10,10:spd", signless=True, loose=20)
add("svdvals", lambda a: jnp.linalg.svdvals(a), "4,4", "30,20", "100,80", "100,5,3")
add("svd", lambda a: jnp.linalg.svd(a, full_matrices=False), "4,4", "30,20", "100,80", "100,3,3", signless=True,
    loose=20)
add("qr", lambda a: jnp.linalg.qr(a), "4,4", "30,20", "100,80", "300,10", "100,5,3", signless=True, loose=10)
add("qr's r", lambda a: jnp.linalg.qr(a, "r"), "30,20", signless=True)
add("lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], "30,5 30", "200,10 200", loose=10)
add("pinv", lambda a: jnp.linalg.pinv(a), "10,8", "50,20", loose=10)
add("matrix_rank", lambda a: jnp.linalg.matrix_rank(a), "30,20")
add("cond", lambda a: jnp.linalg.cond(a), "30,30:spd", loose=10)
add("norm nuc", lambda a: jnp.linalg.norm(a, "nuc"), "30,20")
add("norm 2 of a matrix", lambda a: jnp.linalg.norm(a, 2), "30,20", "100,80")
add("tensorsolve", lambda a, b: jnp.linalg.tensorsolve(a.reshape(4, 6, 24), b), "24,24:spd 4,6", fixed=True)
add("lu", lambda a: scipy_linalg.lu(a), "10,10", "50,50", "200,200")
add("lu_factor and lu_solve", lambda a, b: scipy_linalg.lu_solve(scipy_linalg.lu_factor(a), b), "30,30:spd 30",
    "200,200:spd 200")
add("cho_factor and cho_solve", lambda a, b: scipy_linalg.cho_solve(scipy_linalg.cho_factor(a), b), "30,30:spd 30",
    "200,200:spd 200")
add("solve_triangular", lambda a, b: scipy_linalg.solve_triangular(a, b, lower=True), "4,4:lower 4", "30,30:lower 30",
    "200,200:lower 200", "100,100:lower 100,50", "100,8,8:lower 100,8,2")
add("solve, one matrix for all", lambda a, b: jnp.linalg.solve(a, b[..., None])[..., 0], "4,4:spd 300,4",
    "30,30:spd 200,30")
add("solve_triangular, one matrix for all", lambda a, b: lax.linalg.triangular_solve(
    jnp.broadcast_to(a, (b.shape[0], *a.shape)), b[..., None], left_side=True, lower=True), "6,6:lower 500,6",
    "60,60:lower 200,60")
add("solve and determinant", lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.slogdet(a)[1]), "80,80:spd 80")
add("solve_triangular transposed", lambda a, b: scipy_linalg.solve_triangular(a, b, trans=1, lower=True),
    "100,100:lower 100")
add("solve_triangular from the right", lambda a, b: lax.linalg.triangular_solve(a, b, lower=True), "60,60:lower 40,60")
add("solve of positive definite", lambda a, b: scipy_linalg.solve(a, b, assume_a="pos"), "50,50:spd 50")
add("expm", lambda a: scipy_linalg.expm(a), "4,4:lower", "20,20:lower", "60,60:lower")
add("sqrtm", lambda a: scipy_linalg.sqrtm(a).real, "10,10:spd", loose=10)
add("funm", lambda a: scipy_linalg.funm(a, jnp.sin, disp=False)[0].real, "8,8:lower", loose=50)
add("polar", lambda a: scipy_linalg.polar(a), "10,10:spd", "30,20", loose=10)
add("schur's diagonal", lambda a: jnp.sort(jnp.diagonal(scipy_linalg.schur(a)[0])), "10,10:symmetric", loose=10)
add("hessenberg", lambda a: scipy_linalg.hessenberg(a), "20,20", signless=True, loose=10)
add("tridiagonal eigenvalues", lambda d, e: scipy_linalg.eigh_tridiagonal(d, e, eigvals_only=True), "30 29", fixed=True,
    loose=10)
add("tridiagonal_solve", lambda l, d, u, b: lax.linalg.tridiagonal_solve(l, d + 4, u, b[:, None]),
    "100:unit 100:pos 100:unit 100", "5000:unit 5000:pos 5000:unit 5000")
add("tridiagonal systems, many of them", lambda l, d, u, b: lax.linalg.tridiagonal_solve(l, d + 4, u, b[..., None]),
    "300,64:unit 300,64:pos 300,64:unit 300,64")
add("tridiagonal systems, one for many", lambda l, d, u, b: lax.linalg.tridiagonal_solve(l, d + 4, u, b),
    "64:unit 64:pos 64:unit 64,64")
add("tridiagonal systems, one after the other", lambda l, d, u, b: lax.fori_loop(
    0, 20, lambda i, x: lax.linalg.tridiagonal_solve(l, d + 4, u, x[:, None])[:, 0], b),
    "200:unit 200:pos 200:unit 200")
add("toeplitz product", lambda c, x: scipy_linalg.toeplitz(c) @ x, "200 200")
add("solve_sylvester", lambda a, b, c: scipy_linalg.solve_sylvester(a, b, c), "8,8:spd 8,8:spd 8,8", loose=20)
add("householder_product", lambda a, t: lax.linalg.householder_product(a, t), "20,10 10:unit")
add("dft matrix", lambda x: scipy_linalg.dft(x.shape[0]), "100:shape")

# What they are used for.
add("log-density of a normal", lambda x, a: jax.scipy.stats.multivariate_normal.logpdf(x, jnp.zeros(x.shape[-1],
    x.dtype), a),
    "5 5,5:spd", "200,10 10,10:spd")
add("ridge regression", lambda x, y: jnp.linalg.solve(x.T @ x + 0.1 * jnp.eye(x.shape[1], dtype=x.dtype), x.T @ y),
    "100,5 100", "1000,50 1000", loose=5)
add("linear regression of a line", lambda x, y: jnp.sum((x - x.mean()) * (y - y.mean())) / jnp.sum((x - x.mean()) ** 2),
    "1000 1000")


def gaussian_process(x, y, z):
    """The mean at other places."""
    kernel = lambda a, b: jnp.exp(-0.5 * (a[:, None] - b) ** 2)
    factor = scipy_linalg.cho_factor(kernel(x, x) + 0.1 * jnp.eye(x.shape[0], dtype=x.dtype))
    return kernel(z, x) @ scipy_linalg.cho_solve(factor, y)


def kalman_step(m, p, a, q, h, r, y):
    m, p = a @ m, a @ p @ a.T + q
    s = h @ p @ h.T + r
    gain = jnp.linalg.solve(s, h @ p).T
    return m + gain @ (y - h @ m), p - gain @ h @ p


def power_iteration(a, x):
    def body(i, x):
        y = a @ x
        return y / jnp.linalg.norm(y)

    return lax.fori_loop(0, 20, body, x)


add("gaussian process", gaussian_process, "30 30 50", "200 200 100", loose=10)
add("kalman step", kalman_step, "4 4,4:spd 4,4:lower 4,4:spd 2,4 2,2:spd 2")
add("power iteration", power_iteration, "30,30:spd 30", "200,200:spd 200", loose=20)
add("conjugate gradients", lambda a, b: jax.scipy.sparse.linalg.cg(a, b, maxiter=20)[0], "50,50:spd 50", loose=50)
add("whitening", lambda x: (x - x.mean(0)) @ scipy_linalg.solve_triangular(
    jnp.linalg.cholesky(jnp.cov(x.T)), jnp.eye(x.shape[1], dtype=x.dtype), lower=True).T, "300,10", loose=5)
add("principal components", lambda x: jnp.linalg.eigh(jnp.cov(x.T))[1][:, -2:], "300,10", signless=True, loose=50)
add("orthogonal projection", lambda x, q: x - q @ (q.T @ x), "100,20 100,5")
add("gram-schmidt step", lambda x, q: (y := x - q @ (q.T @ x), y / jnp.linalg.norm(y))[1], "300 300,10")
add("rotation from angles", lambda a: jax.vmap(lambda t: jnp.array([[jnp.cos(t), -jnp.sin(t)], [jnp.sin(t),
    jnp.cos(t)]]))(
    a), "1000:wide")
add("quaternion product", lambda p, q: jnp.stack([
    p[:, 0] * q[:, 0] - p[:, 1] * q[:, 1] - p[:, 2] * q[:, 2] - p[:, 3] * q[:, 3],
    p[:, 0] * q[:, 1] + p[:, 1] * q[:, 0] + p[:, 2] * q[:, 3] - p[:, 3] * q[:, 2],
    p[:, 0] * q[:, 2] - p[:, 1] * q[:, 3] + p[:, 2] * q[:, 0] + p[:, 3] * q[:, 1],
    p[:, 0] * q[:, 3] + p[:, 1] * q[:, 2] - p[:, 2] * q[:, 1] + p[:, 3] * q[:, 0]], 1), "1000,4 1000,4")
