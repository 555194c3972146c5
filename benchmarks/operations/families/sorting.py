"""Orders: sorts, selections, searches, sets, polynomials by their roots."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
each = FAMILY.each

each("jnp", "sort argsort", "10", "100", "1000", "20000", "200,100", "3000,8")
add("sort axis 0", lambda x: jnp.sort(x, 0), "100,50", "300,200")
add("argsort axis 0", lambda x: jnp.argsort(x, 0), "100,50")
add("sort descending", lambda x: jnp.sort(x, descending=True), "1000")
add("argsort descending", lambda x: jnp.argsort(x, descending=True), "1000")
add("argsort not stable", lambda x: jnp.argsort(x, stable=False), "1000")
each("jnp", "sort argsort", "1000:int", "20000:int", "1000:u8")
add("sort of bits", lambda x: jnp.sort(x), "20000:bits")
add("sort of complex", lambda x: jnp.sort(x), "1000:complex")
add("sort of what is sorted", lambda x: jnp.sort(x), "10000:sorted")
add("sort_key_val", lambda x, y: lax.sort_key_val(x, y), "1000 1000", "10000:int 10000")
add("sort of two keys", lambda x, y: lax.sort((x, y), num_keys=2), "1000:int<10 1000", "10000:int<10 10000")
add("sort of three arrays", lambda x, y, z: lax.sort((x, y, z), num_keys=1), "1000 1000 1000")
add("lexsort", lambda x, y: jnp.lexsort((x, y)), "1000 1000:int<10", "10000 10000:int<10")
add("rank", lambda x: jnp.argsort(jnp.argsort(x)), "1000", "10000")
add("partition", lambda x: jnp.partition(x, 50)[50], "1000", "10000")
add("argpartition", lambda x: x[jnp.argpartition(x, 50)[50]], "1000")
add("top_k 1", lambda x: lax.top_k(x, 1), "1000", "100,200")
add("top_k 5", lambda x: lax.top_k(x, 5), "1000", "100,200", "50000", "8,5000")
add("top_k 50", lambda x: lax.top_k(x, 50), "1000", "100,200", "50000")
add("top_k of integers", lambda x: lax.top_k(x, 5), "1000:int")
add("searchsorted", lambda a, x: jnp.searchsorted(a, x), "100:sorted 1000", "1000:sorted 20000")
add("searchsorted of one", lambda a, x: jnp.searchsorted(a, x), "1000:sorted ()")
add("searchsorted right", lambda a, x: jnp.searchsorted(a, x, side="right"), "1000:sorted 1000")
add("searchsorted by sorting", lambda a, x: jnp.searchsorted(a, x, method="sort"), "1000:sorted 1000")
add("searchsorted by comparing all", lambda a, x: jnp.searchsorted(a, x, method="compare_all"), "100:sorted 1000")
add("searchsorted of a permutation", lambda a, x: jnp.searchsorted(a, x, sorter=jnp.argsort(a)), "1000 1000")
add("digitize", lambda x, b: jnp.digitize(x, b), "1000 20:sorted", "20000 100:sorted")
add("unique with size", lambda x: jnp.unique(x, size=100, fill_value=0), "1000:int<100", "10000:int<100")
add("unique with inverse", lambda x: jnp.unique(x, size=100, return_inverse=True, return_counts=True), "1000:int<100")
add("unique rows", lambda x: jnp.unique(x, axis=0, size=9), "300,2:int<3")
add("isin", lambda x, y: jnp.isin(x, y), "1000:int 50:int", "10000:int 500:int", "300,200:u8 20:u8")
add("intersect1d", lambda x, y: jnp.intersect1d(x, y, size=100, fill_value=-1), "500:int<300 500:int<300")
add("union1d", lambda x, y: jnp.union1d(x, y, size=200, fill_value=-1), "500:int<100 500:int<100")
add("setdiff1d", lambda x, y: jnp.setdiff1d(x, y, size=100, fill_value=-1), "500:int<100 50:int<100")
add("setxor1d", lambda x, y: jnp.setxor1d(x, y, size=100, fill_value=-1), "500:int<100 50:int<100")
add("nucleus", lambda x: jnp.where(jnp.cumsum(jnp.sort(p := jax.nn.softmax(x), descending=True), -1) < 0.9, p, 0),
    "8,1000")
add("sorted by a column", lambda x: x[jnp.argsort(x[:, 0])], "1000,4")
add("vmap of sort", lambda x: jax.vmap(jnp.sort)(x), "100,50")
add("vmap of searchsorted", lambda a, x: jax.vmap(jnp.searchsorted)(a, x), "30,100:sorted 30,50")
add("trimmed mean", lambda x: jnp.sort(x, 0)[10:-10].mean(0), "100,50")
add("rankdata", lambda x: jax.scipy.stats.rankdata(x), "500")
add("area under the curve", lambda s, y: jnp.sum(jnp.cumsum(1 - y[(o := jnp.argsort(s))]) * y[o]), "1000 1000:int<2")
add("run starts", lambda x: jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]]), "10000:int<3")
add("majority of neighbours", lambda i: jnp.argmax(jax.vmap(lambda i: jnp.bincount(i, length=5))(i), 1), "300,10:int<5")

# Polynomials.
add("polyval", lambda p, x: jnp.polyval(p, x), "5 1000", "12 20000:signed")
add("polyfit", lambda x, y: jnp.polyfit(x, y, 3), "100:signed 100", "2000:signed 2000", loose=30)
add("polymul", lambda p, q: jnp.polymul(p, q), "10 15", "100 100")
add("polyadd", lambda p, q: jnp.polyadd(p, q), "10 15")
add("polyder", lambda p: jnp.polyder(p), "20")
add("polyint", lambda p: jnp.polyint(p), "20")
add("polydiv", lambda p, q: jnp.polydiv(p, q), "8 5:pos")
add("poly of roots", lambda r: jnp.poly(r), "10:signed")
add("roots' sizes", lambda p: jnp.sort(jnp.abs(jnp.roots(p, strip_zeros=False))), "8:pos", loose=10)
