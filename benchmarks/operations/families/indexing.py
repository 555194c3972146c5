"""Reading and writing of elements by their places."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..rows import Family

FAMILY = Family()
add = FAMILY.add

# Slices.
add("x[10:-10]", lambda x: x[10:-10], "1000", "100000")
add("x[::2]", lambda x: x[::2], "1000", "100000")
add("x[::-1]", lambda x: x[::-1], "1000", "100000")
add("x[1:, :-1]", lambda x: x[1:, :-1], "300,200", "1000,1000")
add("x[:, ::3]", lambda x: x[:, ::3], "300,200")
add("x[:, 5]", lambda x: x[:, 5], "300,200")
add("x[5]", lambda x: x[5], "300,200")
add("x[..., None, 0]", lambda x: x[..., None, 0], "30,40,50")
add("every second of both", lambda x: x[::2, ::2], "300,200")
add("last axis backwards", lambda x: x[..., ::-1], "30,40,50")

# Indices that are arrays.
add("x[i] of a scalar", lambda x, i: x[i], "1000 ():int<1000", "300,200 ():int<300")
add("x[i]", lambda x, i: x[i], "1000 100:int<1000", "10000 10000:int<10000", "100000 100000:int<100000")
add("x[i] rows", lambda x, i: x[i], "300,20 100:int<300", "1000,64 1000:int<1000", "1000,3 20000:int<1000")
add("x[:, i]", lambda x, i: x[:, i], "300,200 100:int<200", "1000,200 200:int<200")
add("x[i, j]", lambda x, i, j: x[i, j], "300,200 1000:int<300 1000:int<200", "300,200 30000:int<300 30000:int<200")
add("x[i[:, None], j]", lambda x, i, j: x[i[:, None], j], "300,200 50:int<300 60:int<200")
add("x[i, :, j]", lambda x, i, j: x[i, :, j], "30,40,50 100:int<30 100:int<50")
add("x[i] of two indices", lambda x, i: x[i], "1000 50,60:int<1000", "1000,16 50,60:int<1000")
add("x[-i]", lambda x, i: x[-i], "1000 1000:int<1000")
add("x[i] of a permutation", lambda x, i: x[i], "10000 10000:permutation", "1000,32 1000:permutation")
add("x[i] of bytes", lambda x, i: x[i], "256:u8 100000:u8")
add("x[arange, i]", lambda x, i: x[jnp.arange(x.shape[0]), i], "300,200 300:int<200", "10000,10 10000:int<10")
add("x[i] rows of bytes", lambda x, i: x[i], "300,200:u8 500:int<300")
add("x[i] of booleans", lambda x, i: x[i], "1000:bool 10000:int<1000", "1000:bool 1000000:int<1000")
add("x[i] of half as many bits", lambda x, i: x.astype(jnp.int16)[i], "1000:int 1000000:int<1000")
add("x.at[i].get clip", lambda x, i: x.at[i].get(mode="clip"), "1000 1000:int<1100")
add("x.at[i].get fill", lambda x, i: x.at[i].get(mode="fill", fill_value=0), "1000 1000:int<1100",
    "1000,16 1000:int<1100")
add("x.at[i].get promise", lambda x, i: x.at[i].get(mode="promise_in_bounds"), "10000 10000:int<10000")
add("take", lambda x, i: jnp.take(x, i), "1000 1000:int<1000", "300,200 1000:int<60000")
add("take axis 0", lambda x, i: jnp.take(x, i, 0), "300,200 100:int<300")
add("take axis 1", lambda x, i: jnp.take(x, i, 1), "300,200 100:int<200")
add("take clip", lambda x, i: jnp.take(x, i, 0, mode="clip"), "300,20 500:int<320")
add("take wrap", lambda x, i: jnp.take(x, i, 0, mode="wrap"), "300,20 500:int")
add("take_along_axis 1", lambda x, i: jnp.take_along_axis(x, i, 1), "300,200 300,1:int<200", "300,200 300,200:int<200")
add("take_along_axis 0", lambda x, i: jnp.take_along_axis(x, i, 0), "300,200 1,200:int<300", "300,200 300,200:int<300")
add("x[argsort]", lambda x: x[jnp.argsort(x)], "1000")
add("compress", lambda x, c: jnp.compress(c, x, size=500, fill_value=0), "1000 1000:bool")
add("nonzero with size", lambda c: jnp.nonzero(c, size=500, fill_value=-1), "1000:bool", "100,100:bool")
add("flatnonzero with size", lambda c: jnp.flatnonzero(c, size=500), "10000:bool")
add("argwhere with size", lambda c: jnp.argwhere(c, size=500), "100,50:bool")
add("where with size", lambda x: jnp.where(x > 0, size=300), "1000")
add("extract with size", lambda x, c: jnp.extract(c, x, size=500, fill_value=0), "1000 1000:bool")
add("x[mask] of a constant mask", lambda x: x[np.arange(100) % 3 == 0], "100", "100,20", fixed=True)
add("index that is a constant", lambda x: x[jnp.array([3, 1, 4, 1, 5])], "100", "300,200")
add("lookup in two steps", lambda x, i, j: x[i[j]], "1000 500:int<1000 2000:int<500")
add("neighbours' sum", lambda x, i: x[i].sum(1), "1000,16 1000,8:int<1000")
add("neighbours' maximum", lambda x, i: x[i].max(1), "1000,16 1000,8:int<1000")

# Writing.
add("x.at[5].set", lambda x: x.at[5].set(0), "1000", "300,200")
add("x.at[i].set of a scalar", lambda x, i: x.at[i].set(1), "1000 ():int<1000", "300,200 ():int<300")
add("x.at[10:20].set", lambda x: x.at[10:20].set(0), "1000", "300,200")
add("x.at[:, 3].set", lambda x, y: x.at[:, 3].set(y), "300,200 300")
add("x.at[1:-1, 1:-1].set", lambda x: x.at[1:-1, 1:-1].set(0), "300,200")
add("x.at[1:-1, 1:-1].add", lambda x, y: x.at[1:-1, 1:-1].add(y[1:-1, 1:-1]), "300,200 300,200")
add("x.at[::2].multiply", lambda x: x.at[::2].multiply(2), "1000", "300,200")
add("x.at[0].set and x.at[-1].set", lambda x: x.at[0].set(1).at[-1].set(2), "1000", "300,200")
for name in "set add multiply min max".split():
    add(f"x.at[i].{name}", lambda x, i, y, name=name: getattr(x.at[i], name)(y),
        "1000 200:permutation 200", "20000 20000:permutation 20000")
    add(f"x.at[i].{name} rows", lambda x, i, y, name=name: getattr(x.at[i], name)(y), "300,64 100:permutation 100,64")
add("x.at[i].add of repeated", lambda x, i, y: x.at[i].add(y), "50 5000:int<50 5000", "1000 50000:int<1000 50000",
    "100,16 2000:int<100 2000,16")
add("x.at[i].max of repeated", lambda x, i, y: x.at[i].max(y), "50 5000:int<50 5000")
add("x.at[i].add of one", lambda x, i: x.at[i].add(1), "100 10000:int<100", "100:int 10000:int<100")
add("x.at[i, j].add", lambda x, i, j, y: x.at[i, j].add(y), "300,200 5000:int<300 5000:int<200 5000")
add("x.at[i, j].set of one", lambda x, i, j: x.at[i, j].set(1), "300,200 500:int<300 500:int<200")
add("x.at[:, i].add", lambda x, i, y: x.at[:, i].add(y), "300,200 50:int<200 300,50")
add("x.at[arange, i].set", lambda x, i: x.at[jnp.arange(x.shape[0]), i].set(0), "300,200 300:int<200")
add("x.at[i].apply", lambda x, i: x.at[i].apply(jnp.sin), "1000 100:permutation")
add("x.at[i].add dropped", lambda x, i, y: x.at[i].add(y, mode="drop"), "1000 1000:int<1100 1000")
add("x.at[mask].set of a constant mask", lambda x: x.at[np.arange(100) % 3 == 0].set(0), "100", "100,20", fixed=True)
add("diagonal set", lambda x: x.at[jnp.diag_indices(x.shape[0])].set(0), "100,100", "500,500")
add("fill_diagonal", lambda x: jnp.fill_diagonal(x, 1, inplace=False), "100,100", "500,500")
add("put_along_axis", lambda x, i: jnp.put_along_axis(x, i, 1, axis=1, inplace=False), "300,200 300,1:int<200")
add("inverse permutation", lambda i: jnp.zeros_like(i).at[i].set(jnp.arange(i.shape[0], dtype=i.dtype)),
    "1000:permutation", "50000:permutation")
add("one-hot by scatter", lambda i: jnp.zeros((i.shape[0], 10)).at[jnp.arange(i.shape[0]), i].set(1), "1000:int<10")
add("joint histogram", lambda i, j: jnp.zeros((20, 30)).at[i, j].add(1), "10000:int<20 10000:int<30")
add("insert", lambda x: jnp.insert(x, 5, 1), "1000")
add("delete", lambda x: jnp.delete(x, 5), "1000")
add("delete row", lambda x: jnp.delete(x, 5, 0), "300,200")

# In `lax`'s terms.
add("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i,), (100,)), "1000 ():int<800")
add("dynamic_slice of two", lambda x, i, j: lax.dynamic_slice(x, (i, j), (50, 60)), "300,200 ():int<200 ():int<100")
add("dynamic_index_in_dim", lambda x, i: lax.dynamic_index_in_dim(x, i, 1), "300,200 ():int<200")
add("dynamic_update_slice", lambda x, y, i: lax.dynamic_update_slice(x, y, (i,)), "1000 100 ():int<800")
add("dynamic_update_slice of two", lambda x, y, i, j: lax.dynamic_update_slice(x, y, (i, j)),
    "300,200 50,60 ():int<200 ():int<100")
add("dynamic_update_index_in_dim", lambda x, y, i: lax.dynamic_update_index_in_dim(x, y, i, 0),
    "300,200 200 ():int<300")
add("slices at many places", lambda x, i: jax.vmap(lambda i: lax.dynamic_slice(x, (i,), (20,)))(i), "1000 100:int<900")
add("patches at many places", lambda x, i, j: jax.vmap(lambda i, j: lax.dynamic_slice(x, (i, j), (8, 8)))(i, j),
    "300,200 100:int<290 100:int<190")
add("windows by indices", lambda x: x[jnp.arange(x.shape[0] - 15)[:, None] + jnp.arange(16)], "1000", "10000")
add("gather of rows' parts", lambda x, i: lax.gather(
    x, i[:, None].astype(jnp.int32),
    lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)), (1, 10)),
    "300,200 500:int<300")
add("scatter_add of rows' parts", lambda x, i, y: lax.scatter_add(
    x, i[:, None].astype(jnp.int32), y,
    lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))),
    "300,20 500:int<300 500,20")
add("index_in_dim", lambda x: lax.index_in_dim(x, 7, 1), "300,200")
add("slice with strides", lambda x: lax.slice(x, (2, 3), (100, 90), (3, 2)), "300,200")
add("batched x[i]", lambda x, i: jax.vmap(lambda x, i: x[i])(x, i), "30,200 30,50:int<200", "100,64,8 100,16:int<64")
add("batched x.at[i].add", lambda x, i, y: jax.vmap(lambda x, i, y: x.at[i].add(y))(x, i, y),
    "30,200 30,50:int<200 30,50")
add("cache update", lambda c, x, i: lax.dynamic_update_slice(c, x, (0, i, 0, 0)), "2,128,4,32 2,1,4,32 ():int<128")
add("batched cache update", lambda c, x, i: jax.vmap(lambda c, x, i: lax.dynamic_update_slice(c, x, (i, 0)))(c, x, i),
    "8,128,64 8,1,64 8:int<128")
add("unravel_index", lambda i: jnp.unravel_index(i, (30, 40, 50)), "10000:int<60000")
add("ravel_multi_index", lambda i, j: jnp.ravel_multi_index((i, j), (30, 40), mode="clip"), "10000:int<30 10000:int<40")
add("interpolated lookup", lambda x, t: x[(i := jnp.floor(t * (x.shape[0] - 2)).astype(jnp.int32))] * (
    1 - (t * (x.shape[0] - 2) - i)) + x[i + 1] * (t * (x.shape[0] - 2) - i), "100 10000:unit")


def bilinear(x, u, v):
    """An image at points between its pixels."""
    a, b = u * (x.shape[0] - 1.01), v * (x.shape[1] - 1.01)
    i, j = a.astype(jnp.int32), b.astype(jnp.int32)
    s, t = a - i, b - j
    return (x[i, j] * (1 - s) + x[i + 1, j] * s) * (1 - t) + (x[i, j + 1] * (1 - s) + x[i + 1, j + 1] * s) * t


add("bilinear sampling", bilinear, "100,80 1000:unit 1000:unit", "100,80 200,100:unit 200,100:unit")
add("map_coordinates", lambda x, c: jax.scipy.ndimage.map_coordinates(x, list(c * 70), order=1), "100,80 2,1000:unit")
add("map_coordinates nearest", lambda x, c: jax.scipy.ndimage.map_coordinates(x, list(c * 70), order=0),
    "100,80 2,1000:unit")
add("interp", lambda x, xp, fp: jnp.interp(x, xp, fp), "1000 100:sorted 100", "20000 1000:sorted 1000")
add("regular grid interpolation", lambda v, p: jax.scipy.interpolate.RegularGridInterpolator(
    (jnp.arange(20.0), jnp.arange(30.0)), v)(p * 15), "20,30 500,2:unit", fixed=True)
