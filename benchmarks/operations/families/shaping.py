"""Arrays put together, taken apart, repeated, padded, turned around; and arrays of nothing but their places."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
each = FAMILY.each

# Together and apart.
add("concatenate", lambda x, y: jnp.concatenate([x, y]), "500 500", "300,200 100,200")
add("concatenate axis 1", lambda x, y: jnp.concatenate([x, y], 1), "300,200 300,100", "1000,3 1000,1")
add("concatenate axis 1 of booleans", lambda x, y: jnp.concatenate([x, y], 1), "300,200:bool 300,100:bool")
add("concatenate five", lambda *xs: jnp.concatenate(xs), "100 200 300 400 500", "50,30 50,30 50,30 50,30 50,30")
add("concatenate with a constant", lambda x: jnp.concatenate([jnp.zeros((1, x.shape[1]), x.dtype), x]), "300,200")
add("concatenate computed parts", lambda x, y: jnp.concatenate([jnp.sin(x), y * 2, x - y]), "300,200 300,200")
add("stack", lambda x, y: jnp.stack([x, y]), "500 500", "300,200 300,200")
add("stack axis -1", lambda x, y: jnp.stack([x, y], -1), "500 500", "300,200 300,200")
add("stack axis -1 of complex", lambda x, y: jnp.stack([x, y], -1), "300,200:complex 300,200:complex")
add("stack three axis 1", lambda x, y, z: jnp.stack([x, y, z], 1), "10000 10000 10000")
each("jnp", "append", "500 500")
add("hstack", lambda x, y: jnp.hstack([x, y]), "300,200 300,200")
add("vstack", lambda x, y: jnp.vstack([x, y]), "300,200 300,200")
add("dstack", lambda x, y: jnp.dstack([x, y]), "300,200 300,200")
add("column_stack", lambda x, y: jnp.column_stack([x, y]), "1000 1000")
add("block", lambda a, b, c, d: jnp.block([[a, b], [c, d]]), "50,50 50,30 30,50 30,30",
    "200,200 200,100 100,200 100,100")
add("split in 4", lambda x: jnp.split(x, 4), "1000", "300,200", fixed=True)
add("split in 4 axis 1", lambda x: jnp.split(x, 4, 1), "300,200", fixed=True)
add("array_split in 7", lambda x: jnp.array_split(x, 7), "1000", "300,200")
add("unstack", lambda x: jnp.unstack(x), "5,300")
add("split and add", lambda x: sum(jnp.split(x, 4, -1)), "300,200", fixed=True)
add("chunks exchanged", lambda x: jnp.concatenate([x[:, 100:], x[:, :100]], 1), "300,200")
add("block_diag", lambda x, y: jax.scipy.linalg.block_diag(x, y), "30,30 50,40")

# Turned around.
add("transpose", lambda x: x.T, "30,40", "300,200", "1000,1000")
add("transpose and add", lambda x: x + x.T, "100,100", "500,500")
for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
    text = "".join(map(str, order))
    add(f"transpose {text}", lambda x, order=order: jnp.transpose(x, order), "30,40,50")
add("transpose 0213", lambda x: jnp.transpose(x, (0, 2, 1, 3)), "4,64,8,32")
add("transpose 0231", lambda x: jnp.transpose(x, (0, 2, 3, 1)), "4,3,64,64", "4,32,16,16")
add("transpose 0312", lambda x: jnp.transpose(x, (0, 3, 1, 2)), "4,64,64,3", "4,16,16,32")
add("transpose of bytes", lambda x: x.T, "300,200:u8")
add("transpose of complex", lambda x: x.T.conj(), "100,100:complex", "300,200:complex", "1000,700:complex")
add("transpose of complex and add", lambda x, y: x + 2 * y.T, "100,100:complex 100,100:complex")
add("transpose 201 of complex", lambda x: jnp.transpose(x, (2, 0, 1)), "30,40,50:complex")
add("moveaxis", lambda x: jnp.moveaxis(x, 0, -1), "30,40,50")
add("swapaxes", lambda x: jnp.swapaxes(x, 0, 2), "30,40,50")
add("flip", lambda x: jnp.flip(x), "1000", "300,200")
add("flip axis 0", lambda x: jnp.flip(x, 0), "300,200")
add("flip axis 1", lambda x: jnp.flip(x, 1), "300,200", "1000,1000")
each("jnp", "rot90", "300,200")
add("rot90 twice", lambda x: jnp.rot90(x, 2), "300,200")
add("roll", lambda x: jnp.roll(x, 10), "1000", "300,200", "1000000")
add("roll axis 0", lambda x: jnp.roll(x, 1, 0), "300,200")
add("roll axis 1", lambda x: jnp.roll(x, -1, 1), "300,200")
add("roll axis 1 of complex", lambda x: jnp.roll(x, 3, 1), "300,200:complex")
add("roll both", lambda x: jnp.roll(x, (1, 2), (0, 1)), "300,200")
add("roll by an argument", lambda x, n: jnp.roll(x, n), "1000 ():int<100")
add("roll rows by an argument", lambda x, n: jnp.roll(x, n, 1), "300,200 ():int<100")
add("reshape", lambda x: x.reshape(-1, 10), "1000", "300,200", fixed=True)
add("reshape and sum", lambda x: x.reshape(-1, 10, 20).sum(1), "300,200", fixed=True)
add("ravel of a transpose", lambda x: x.T.ravel(), "300,200")
add("heads", lambda x: x.reshape(*x.shape[:2], 4, -1).transpose(0, 2, 1, 3), "4,64,128", fixed=True)
add("patches", lambda x: x.reshape(4, 8, 8, 8, 8, 3).transpose(0, 1, 3, 2, 4, 5).reshape(4, 64, 192), "4,64,64,3",
    fixed=True)
add("pixel shuffle", lambda x: x.reshape(4, 16, 16, 2, 2, 8).transpose(0, 1, 3, 2, 4, 5).reshape(4, 32, 32, 8),
    "4,16,16,32", fixed=True)
add("squeeze and expand", lambda x: jnp.expand_dims(jnp.squeeze(x, 1), 0) + 1, "300,1,200")

# Repeated.
add("broadcast_to", lambda x: jnp.broadcast_to(x, (100, *x.shape)), "1000")
add("broadcast columns", lambda x: jnp.broadcast_to(x[:, None], (*x.shape, 100)), "1000")
add("tile", lambda x: jnp.tile(x, 10), "100", "300,20")
add("tile both", lambda x: jnp.tile(x, (3, 4)), "30,20", "100,50")
add("repeat", lambda x: jnp.repeat(x, 3), "1000", "300,20")
add("repeat axis 0", lambda x: jnp.repeat(x, 3, 0), "300,20")
add("repeat axis 1", lambda x: jnp.repeat(x, 3, 1), "300,20")
add("repeat by counts", lambda x, n: jnp.repeat(x, n, total_repeat_length=500), "100 100:int<9")
add("nearest upsampling", lambda x: x.repeat(2, 1).repeat(2, 2), "4,16,16,32")
add("meshgrid", lambda x, y: jnp.meshgrid(x, y), "30 40", "300 200")
add("meshgrid ij", lambda x, y: jnp.meshgrid(x, y, indexing="ij"), "300 200")
add("radii of a grid", lambda x, y: jnp.sqrt(x[:, None] ** 2 + y**2), "300 200")

# Padded.
for mode in "constant edge reflect symmetric wrap".split():
    add(f"pad {mode}", lambda x, mode=mode: jnp.pad(x, 5, mode), "1000", "300,200")
add("pad linear_ramp", lambda x: jnp.pad(x, 5, "linear_ramp"), "300,200")
add("pad mean", lambda x: jnp.pad(x, 5, "mean"), "300,200")
add("pad images", lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), "4,16,16,32")
add("pad between", lambda x: lax.pad(x, jnp.zeros((), x.dtype), ((1, 1, 2), (0, 3, 1))), "300,200")
add("pad by less than nothing", lambda x: lax.pad(x, jnp.zeros((), x.dtype), ((-3, 4, 0), (2, -2, 0))), "300,200")
add("resize", lambda x: jnp.resize(x, (400, 300)), "300,200")

# Triangles and diagonals.
each("jnp", "tril triu", "100,100", "500,500")
add("tril batched", lambda x: jnp.tril(x, -1), "50,30,30")
each("jnp", "diag diagonal", "100,100")
add("diag of a vector", lambda x: jnp.diag(x), "100", "500")
add("diagflat", lambda x: jnp.diagflat(x, 1), "100")
add("tril_indices", lambda x: x[jnp.tril_indices(x.shape[0])], "100,100")
add("vector to triangle", lambda x: jnp.zeros((40, 40), x.dtype).at[jnp.tril_indices(40)].set(x), "820", fixed=True)
add("symmetrised", lambda x: jnp.triu(x) + jnp.triu(x, 1).T, "200,200")

# Of nothing but places.
add("arange", lambda x: jnp.arange(x.shape[0]), "1000:shape", "100000:shape")
add("linspace", lambda x, y: jnp.linspace(x, y, 1000), "() ()")
add("logspace", lambda x, y: jnp.logspace(x, y, 1000), "() ()")
add("geomspace", lambda x, y: jnp.geomspace(x, y, 1000), "():pos ():pos")
add("eye", lambda x: jnp.eye(x.shape[0]), "100:shape", "500:shape")
add("zeros", lambda x: jnp.zeros(x.shape), "1000:shape", "1000,500:shape")
add("full", lambda x, y: jnp.full(x.shape, y), "300,200:shape ()")
add("ones_like", lambda x: jnp.ones_like(x), "300,200")
add("iota", lambda x: lax.broadcasted_iota(jnp.int32, x.shape, 1), "300,200:shape")
add("indices", lambda x: jnp.indices(x.shape), "300,200:shape")
add("vander", lambda x: jnp.vander(x, 10), "500:signed")
add("toeplitz", lambda x: jax.scipy.linalg.toeplitz(x), "100", "300")
add("hankel", lambda x: jax.scipy.linalg.hankel(x), "100")
add("circulant", lambda x: jax.scipy.linalg.circulant(x), "100")
add("hilbert", lambda x: jax.scipy.linalg.hilbert(x.shape[0]), "100:shape")
add("causal mask", lambda x: jnp.arange(x.shape[0])[:, None] >= jnp.arange(x.shape[0]), "500:shape")
add("lengths' mask", lambda n: jnp.arange(200) < n[:, None], "300:int<200")
add("checkerboard", lambda x: (jnp.indices(x.shape).sum(0) % 2), "300,200:shape")
for name in "hanning hamming blackman bartlett".split():
    add(name, lambda x, name=name: getattr(jnp, name)(x.shape[0]), "1000:shape")
add("kaiser", lambda x: jnp.kaiser(x.shape[0], 14.0), "1000:shape")
each("jnp", "packbits", "10000:bool")
each("jnp", "unpackbits", "2000:u8")

# Differences of neighbours.
add("diff", lambda x: jnp.diff(x), "1000", "300,200")
add("diff axis 0", lambda x: jnp.diff(x, axis=0), "300,200")
add("diff twice", lambda x: jnp.diff(x, 2), "10000")
add("diff prepended", lambda x: jnp.diff(x, prepend=0), "10000")
each("jnp", "ediff1d", "10000")
each("jnp", "gradient", "1000", "300,200")
add("gradient axis 0", lambda x: jnp.gradient(x, 0.1, axis=0), "300,200")
add("gradient with places", lambda x, t: jnp.gradient(x, t), "1000 1000:sorted")
each("jnp", "unwrap", "1000:wide", "300,200:wide")
add("laplacian by slices", lambda x: x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1],
    "30,40", "300,200", "1000,1000")
add("laplacian by roll",
    lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1) - 4 * x,
    "30,40", "300,200", "1000,1000")
add("laplacian of a line", lambda x: x.at[1:-1].add(0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])), "1000", "100000")
add("upwind step", lambda x: x - 0.5 * jnp.where(x > 0, x - jnp.roll(x, 1), jnp.roll(x, -1) - x), "1000", "100000")
add("heat in three dimensions", lambda x: x.at[1:-1, 1:-1, 1:-1].add(0.1 * (
    x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 1:-1, 2:]
    + x[1:-1, 1:-1, :-2] - 6 * x[1:-1, 1:-1, 1:-1])), "30,40,50")
add("life", lambda x: (n := sum(jnp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - x,
                       (n == 3) | ((n == 2) & (x == 1)))[1], "100,100:int<2")
add("total variation", lambda x: jnp.sum(jnp.abs(jnp.diff(x, axis=0))) + jnp.sum(jnp.abs(jnp.diff(x, axis=1))),
    "300,200")
add("sobel by slices", lambda x: jnp.hypot(
    x[:-2, :-2] + 2 * x[1:-1, :-2] + x[2:, :-2] - x[:-2, 2:] - 2 * x[1:-1, 2:] - x[2:, 2:],
    x[:-2, :-2] + 2 * x[:-2, 1:-1] + x[:-2, 2:] - x[2:, :-2] - 2 * x[2:, 1:-1] - x[2:, 2:]), "300,200")
