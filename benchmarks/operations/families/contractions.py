"""Products that are summed: matrices, batches of them, einsum, distances."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ..rows import Family

FAMILY = Family()
add = FAMILY.add

add("matmul", lambda x, y: x @ y, "10,10 10,10", "30,40 40,50", "100,100 100,100", "300,200 200,300", "500,500 500,500")
add("matmul skinny left", lambda x, y: x @ y, "3,500 500,200", "1,256 256,1024", "2,64 64,2000", "5,1000 1000,5")
add("matmul skinny right", lambda x, y: x @ y, "2000,64 64,2", "500,300 300,1", "10000,3 3,3", "1000,4 4,50")
add("matmul of few terms", lambda x, y: x @ y, "300,2 2,300", "500,8 8,500", "300,1 1,200")
add("x @ y.T", lambda x, y: x @ y.T, "30,40 50,40", "200,100 300,100", "300,3 400,3")
add("x.T @ y", lambda x, y: x.T @ y, "40,30 40,50", "100,200 100,300", "5000,10 5000,10", "5000,3 5000")
add("x.T @ x", lambda x: x.T @ x, "100,20", "1000,50", "20000,4")
add("x @ x.T", lambda x: x @ x.T, "100,20", "300,64")
add("matrix times vector", lambda x, y: x @ y, "30,40 40", "300,200 200", "1000,1000 1000", "5000,3 3")
add("vector times matrix", lambda x, y: x @ y, "30 30,40", "300 300,200", "1000 1000,1000")
add("dot", lambda x, y: jnp.dot(x, y), "3 3", "1000 1000", "100000 100000")
add("vdot", lambda x, y: jnp.vdot(x, y), "300,200 300,200", "10000:complex 10000:complex")
add("vecdot", lambda x, y: jnp.vecdot(x, y), "300,200 300,200", "10000,3 10000,3")
add("inner", lambda x, y: jnp.inner(x, y), "100,50 80,50")
add("outer", lambda x, y: jnp.outer(x, y), "30 40", "500 300")
add("kron", lambda x, y: jnp.kron(x, y), "5,6 7,8", "20,20 20,20")
add("cross", lambda x, y: jnp.cross(x, y), "3 3", "1000,3 1000,3", "20000,3 20000,3")
add("matmul batched", lambda x, y: x @ y, "10,8,8 10,8,8", "1000,3,3 1000,3,3", "1000,4,4 1000,4,4",
    "50,30,40 50,40,30",
    "8,64,64 8,64,64", "100,16,16 100,16,16")
add("matmul of a batch and a matrix", lambda x, y: x @ y, "10,20,30 30,40", "32,16,64 64,64")
add("matmul of a matrix and a batch", lambda x, y: x @ y, "20,30 10,30,40")
add("matmul, one matrix for all", lambda x, y: jnp.broadcast_to(x, (len(y), *x.shape)) @ y, "20,30 10,30,40",
    "512,256 8,256,64", "64,64 100,64,4")
add("matmul, one matrix on the right for all", lambda x, y: x @ jnp.broadcast_to(y, (len(x), *y.shape)),
    "10,20,30 30,40", "8,512,256 256,64", "100,4,64 64,64")
add("batched matrix times vector", lambda x, y: jnp.matvec(x, y), "100,20,30 100,30", "5000,3,3 5000,3",
    "1000,4,4 1000,4")
add("batched vector times matrix", lambda x, y: jnp.vecmat(x, y), "100,20 100,20,30")
add("rotations of points", lambda r, x: jnp.einsum("nij,nj->ni", r, x), "2000,3,3 2000,3")
add("tensordot 1", lambda x, y: jnp.tensordot(x, y, 1), "10,20,30 30,40")
add("tensordot 2", lambda x, y: jnp.tensordot(x, y, 2), "10,20,30 20,30,40")
add("tensordot of given axes", lambda x, y: jnp.tensordot(x, y, ((0, 2), (1, 0))), "10,20,30 30,10,15")
add("matmul of integers", lambda x, y: x @ y, "30,40:int 40,50:int", "100,100:int 100,100:int")
add("matmul of bytes", lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32), "100,100:i8 100,100:i8")
add("outer product of complex", lambda x, y: jnp.outer(x, y), "100:complex 100:complex")
add("gate on a qubit", lambda s, g: jnp.moveaxis(jnp.tensordot(g, s.reshape((2,) * 12), ((1,), (5,))), 0, 5).ravel(),
    "4096:complex 2,2:complex", fixed=True)
add("matmul of complex", lambda x, y: x @ y, "20,20:complex 20,20:complex", "100,100:complex 100,100:complex")
add("matmul in bfloat16", lambda x, y: (x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)).astype(jnp.float32),
    "100,100 100,100", loose=100)
add("matmul of booleans", lambda x, y: (x[:, :, None] & y).any(1), "50,60:bool 60,50:bool", "200,300:bool 300,200:bool")
add("matmul at highest precision", lambda x, y: jnp.matmul(x, y, precision="highest"), "100,100 100,100")
add("product and sum of rows", lambda x, y: (x @ y).sum(1), "200,100 100,200")
add("product and softmax", lambda x, y: jax.nn.softmax(x @ y), "200,64 64,200")
add("product plus bias", lambda x, y, b: x @ y + b, "200,100 100,200 200")
add("product and its exp", lambda x, y: jnp.exp(-jnp.abs(x @ y)), "200,30 30,200")
add("scaled rows' product", lambda x, s, y: (x * s) @ y, "200,100 100 100,200")
add("three matrices", lambda x, y, z: x @ y @ z, "50,60 60,70 70,80", "200,10 10,200 200,10")
add("multi_dot", lambda x, y, z: jnp.linalg.multi_dot([x, y, z]), "200,10 10,200 200,10")
add("quadratic form", lambda x, a: x @ a @ x, "50 50,50", "500 500,500")
add("quadratic forms", lambda x, a: jnp.einsum("ni,ij,nj->n", x, a, x), "500,20 20,20")
add("power of a matrix", lambda x: jnp.linalg.matrix_power(x, 5), "20,20:lower", "100,100:lower")
add("gram matrix", lambda x: jnp.exp(-0.5 * (jnp.sum(x * x, 1)[:, None] + jnp.sum(x * x, 1) - 2 * x @ x.T)), "100,5",
    "400,20")
add("gram matrix by differences", lambda x: jnp.exp(-0.5 * jnp.sum((x[:, None] - x) ** 2, -1)), "100,5", "300,10")
add("squared distances", lambda x, y: jnp.sum((x[:, None] - y[None]) ** 2, -1), "100,3 100,3", "300,10 200,10")
add("squared distances by products", lambda x, y: jnp.sum(x * x, 1)[:, None] + jnp.sum(y * y, 1) - 2 * x @ y.T,
    "100,3 100,3", "500,20 400,20")
add("distances", lambda x: jnp.sqrt(jnp.sum((x[:, None] - x) ** 2, -1) + 1e-6), "50,3", "300,3")
add("manhattan distances", lambda x, y: jnp.abs(x[:, None] - y).sum(-1), "100,5 100,5", "300,20 200,20")
add("hamming distances", lambda x, y: (x[:, None] != y).sum(-1), "100,50:int<4 100,50:int<4")
add("nearest of points", lambda x, y: jnp.argmin(jnp.sum((x[:, None] - y) ** 2, -1), 1), "300,3 50,3", "1000,10 20,10")
add("cosine similarities", lambda x, y: (x / jnp.linalg.norm(x, axis=1, keepdims=True)) @ (
    y / jnp.linalg.norm(y, axis=1, keepdims=True)).T, "200,50 100,50")


def k_means_step(x, centres):
    """The centres after their points have been found."""
    nearest = jnp.argmin(jnp.sum((x[:, None] - centres) ** 2, -1), 1)
    sums = jax.ops.segment_sum(x, nearest, centres.shape[0])
    return sums / jnp.maximum(1, jnp.bincount(nearest, length=centres.shape[0]))[:, None].astype(x.dtype)


def gravity(x, m):
    """Accelerations of bodies."""
    d = x[None] - x[:, None]
    return jnp.sum(d * (m * (jnp.sum(d * d, -1) + 0.01) ** -1.5)[..., None], 1)


add("k-means step", k_means_step, "300,3 8,3", "2000,10 20,10")
add("gravity", gravity, "50,3 50:pos", "300,3 300:pos")
add("lennard-jones energy",
    lambda x: jnp.sum(jnp.triu((r := 1 / (jnp.sum((x[:, None] - x) ** 2, -1) + 1)) ** 6 - r**3, 1)),
    "200,3")

# Einsum.
for equation, *arguments in (
    ("ij,jk->ik", "100,80 80,60"),
    ("ij,kj->ik", "100,80 60,80"),
    ("ji,jk->ik", "80,100 80,60"),
    ("ij,jk->ki", "100,80 80,60"),
    ("ij,ij->", "300,200 300,200"),
    ("ij,ij->i", "300,200 300,200"),
    ("ij,ij->j", "300,200 300,200"),
    ("ij->ji", "300,200"),
    ("ij->", "300,200"),
    ("ii->i", "200,200"),
    ("ii->", "200,200"),
    ("i,j->ij", "300 200"),
    ("i,ij->ij", "300 300,200"),
    ("i,ij,j->", "300 300,200 200"),
    ("bij,bjk->bik", "20,30,40 20,40,30"),
    ("bij,bkj->bik", "20,30,40 20,50,40"),
    ("bji,bjk->bik", "20,40,30 20,40,50"),
    ("ijb,jkb->ikb", "10,12,100 12,14,100"),
    ("bij,jk->bik", "20,30,40 40,50"),
    ("bthd,bshd->bhts", "2,32,4,16 2,32,4,16", "2,64,8,32 2,64,8,32"),
    ("bhts,bshd->bthd", "2,4,32,32 2,32,4,16", "2,8,64,64 2,64,8,32"),
    ("bhtd,bhsd->bhts", "2,4,32,16 2,4,32,16"),
    ("btd,dhk->bthk", "2,32,64 64,4,16"),
    ("bthk,hkd->btd", "2,32,4,16 4,16,64"),
    ("ijk,k->ij", "30,40,50 50"),
    ("ijk,j->ik", "30,40,50 40"),
    ("ijk,i->jk", "30,40,50 30"),
    ("ijk,ijl->kl", "10,20,30 10,20,40"),
    ("ijk,ljm->iklm", "10,20,5 6,20,7"),
    ("abc,cd,de->abe", "10,12,14 14,16 16,18"),
    ("ik,jk,kl->ijl", "20,30 25,30 30,35"),
    ("ia,ja,ka->ijk", "20,10 25,10 30,10"),
    ("nhwc,cd->nhwd", "2,16,16,32 32,16"),
    ("nchw,cd->ndhw", "2,32,16,16 32,16"),
    ("...ij,...j->...i", "100,8,8 100,8"),
    ("nd,ed->ne", "200,100 50,100"),
    ("ecd,edf->ecf", "4,30,40 4,40,50"),
    ("bn,bnd->bd", "30,40 30,40,50"),
    ("bi,bj->bij", "100,20 100,30"),
    ("bi,bj,ij->b", "100,20 100,30 20,30"),
    ("ijkl,kl->ij", "10,12,14,16 14,16"),
    ("pqrs,rs->pq", "10,10,10,10 10,10"),
    ("pqrs,qs->pr", "10,10,10,10 10,10"),
):
    add(f"einsum {equation}", lambda *xs, equation=equation: jnp.einsum(equation, *xs), *arguments)
add("einsum of complex", lambda x, y: jnp.einsum("ij,jk->ik", x, y), "50,60:complex 60,50:complex")
add("dot_general of two batches", lambda x, y: lax.dot_general(x, y, (((3,), (2,)), ((0, 1), (0, 1)))),
    "4,5,20,30 4,5,30,20")
add("dot_general batch last", lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((1,), (1,)))), "40,20,30 40,20,30")
add("ragged_dot", lambda x, y, n: lax.ragged_dot(x, y, n.astype(jnp.int32)), "60,30 4,30,20 4:int<15")
add("vmap of dot", lambda x, y: jax.vmap(jnp.dot)(x, y), "1000,20 1000,20")
add("vmap of a matrix product", lambda x, y: jax.vmap(lambda x, y: jnp.tanh(x @ y))(x, y), "100,10,20 100,20,5")
add("vmap of outer", lambda x, y: jax.vmap(jnp.outer)(x, y), "200,10 200,20")
add("vmap over both", lambda x, y: jax.vmap(lambda x: jax.vmap(lambda y: jnp.sum(jnp.abs(x - y)))(y))(x), "100,5 80,5")
add("convolve", lambda x, y: jnp.convolve(x, y), "100 10", "1000 20", "20000 5")
add("convolve same", lambda x, y: jnp.convolve(x, y, "same"), "1000 20", "5000 100")
add("convolve valid", lambda x, y: jnp.convolve(x, y, "valid"), "1000 20")
add("correlate", lambda x, y: jnp.correlate(x, y, "same"), "1000 20", "20000 5")
add("autocorrelation", lambda x: jnp.correlate(x, x, "full"), "300", "1000")
