"""Factorisations in programs for XLA, as calls of NVIDIA's cuSOLVER: for clients of GPUs whose vendor's wheel has them.

The routines' names and what they take are those of JAX's programs for GPUs.
"""

from __future__ import annotations

import math
from typing import Any

from ..indexing.static_slicing import slice_in_dim
from .cholesky_factors import cholesky_p
from .eigen import eigh_p, tridiagonal_p
from .library_calls import boolean, by_library, call, unless
from .lu_factors import lu_p, lu_pivots_to_permutation_p
from .matrices import INT32, adjoint, band, real_dtype
from .qr_factors import geqrf_p, householder_product_p, ormqr_p
from .singular_values import svd_p

LIBRARY = "cusolver"
JACOBI = 1024  # rows and columns up to which singular values are found by rotations


@by_library(LIBRARY, cholesky_p)
def _cholesky(m: Any, x: Any) -> Any:
    *batch, _n, _m = x.shape
    if not math.prod(x.shape):
        return NotImplemented
    factor, info = call(m, "cusolver_potrf_ffi", [x], [(x.shape, x.dtype), (batch, INT32)], len(batch),
                        config={"lower": "true"}, reused={0: 0})
    return m.call_traced(lambda factor: [band(factor, True)], unless(m, "NE", info, factor))


@by_library(LIBRARY, eigh_p)
def _eigh(m: Any, x: Any, *, lower: bool, **_: Any) -> Any:
    *batch, n, _n = x.shape
    if not math.prod(x.shape):
        return NotImplemented
    results = [(x.shape, x.dtype), ((*batch, n), real_dtype(x.dtype)), (batch, INT32)]
    v, w, info = call(m, "cusolver_syevd_ffi", [x], results, len(batch),
                      config={"algorithm": "0 : ui8", "lower": boolean(lower)}, reused={0: 0})
    return [unless(m, "NE", info, v), unless(m, "NE", info, w)]


@by_library(LIBRARY, tridiagonal_p)
def _tridiagonal(m: Any, a: Any, *, lower: bool) -> Any:
    *batch, n, _n = a.shape
    if n < 2 or not math.prod(a.shape):
        return NotImplemented
    part = real_dtype(a.dtype)
    results = [(a.shape, a.dtype), ((*batch, n), part), ((*batch, n - 1), part), ((*batch, n - 1), a.dtype)]
    *outs, info = call(m, "cusolver_sytrd_ffi", [a], [*results, (batch, INT32)], len(batch),
                       config={"lower": boolean(lower)}, reused={0: 0})
    return [unless(m, "NE", info, o) for o in outs]


@by_library(LIBRARY, svd_p)
def _svd(m: Any, x: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> Any:
    *batch, rows, columns = x.shape
    if not math.prod(x.shape):
        return NotImplemented
    k = min(rows, columns)
    values, part = ((*batch, k), real_dtype(x.dtype)), (batch, INT32)
    if max(rows, columns) <= JACOBI:
        square = (*batch, rows, rows), (*batch, columns, columns)
        _, s, u, v, info = call(
            m, "cusolver_gesvdj_ffi", [x], [(x.shape, x.dtype), values, *((shape, x.dtype) for shape in square), part],
            len(batch), config={"compute_uv": boolean(compute_uv), "full_matrices": "true"}, reused={0: 0})
        if not compute_uv:
            return [unless(m, "NE", info, s)]

        def turned(u: Any, v: Any) -> list[Any]:
            if not full_matrices:
                u, v = (slice_in_dim(x, 0, k, axis=len(batch) + 1) for x in (u, v))
            return [u, adjoint(v)]

        return [unless(m, "NE", info, o) for o in (s, *m.call_traced(turned, u, v))]
    vectors = [(*batch, rows, rows if full_matrices else k), (*batch, columns if full_matrices else k, columns)]
    wide = rows < columns  # by rows it is a transposed matrix by columns, whose vectors change places
    shapes = (vectors[::-1] if wide else vectors) if compute_uv else [batch, batch]
    _, s, *found, info = call(
        m, "cusolver_gesvd_ffi", [x], [(x.shape, x.dtype), values, *((shape, x.dtype) for shape in shapes), part],
        len(batch), config={"compute_uv": boolean(compute_uv), "full_matrices": boolean(full_matrices),
                            "transposed": boolean(wide)}, reused={0: 0}, by_rows=wide)
    return [unless(m, "NE", info, o) for o in (s, *((found[::-1] if wide else found) if compute_uv else ()))]


@by_library(LIBRARY, geqrf_p)
def _geqrf(m: Any, x: Any) -> Any:
    *batch, rows, columns = x.shape
    if not math.prod(x.shape):
        return NotImplemented
    return call(m, "cusolver_geqrf_ffi", [x], [(x.shape, x.dtype), ((*batch, min(rows, columns)), x.dtype)],
                len(batch), reused={0: 0})


@by_library(LIBRARY, householder_product_p)
def _householder_product(m: Any, a: Any, taus: Any) -> Any:
    if not math.prod(a.shape):
        return NotImplemented
    return call(m, "cusolver_orgqr_ffi", [a, taus], [(a.shape, a.dtype)], len(a.shape) - 2, reused={0: 0})


@by_library(LIBRARY, ormqr_p)
def _ormqr(m: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    if not (math.prod(c.shape) and math.prod(taus.shape)):
        return NotImplemented
    return call(m, "cusolver_ormqr_ffi", [a, taus, c], [(c.shape, c.dtype)], len(c.shape) - 2,
                config={"left": boolean(left), "transpose": boolean(transpose)}, reused={0: 2})


@by_library(LIBRARY, lu_p)
def _lu(m: Any, x: Any) -> Any:
    *batch, rows, columns = x.shape
    if not math.prod(x.shape):
        return NotImplemented
    factors, pivots, info = call(m, "cusolver_getrf_ffi", [x], [
        (x.shape, x.dtype), ((*batch, min(rows, columns)), INT32), (batch, INT32)], len(batch), reused={0: 0})
    pivots = m.op1("stablehlo.subtract", [pivots, m.full(1, pivots.aval)], pivots.aval)
    permutation = m.call_traced(lambda p: lu_pivots_to_permutation_p.bind(p, permutation_size=rows), pivots)
    return [unless(m, "LT", info, factors), pivots, *permutation]


@by_library(LIBRARY, lu_pivots_to_permutation_p)
def _permutation(m: Any, pivots: Any, *, permutation_size: int) -> Any:
    *batch, steps = pivots.shape
    if not math.prod(batch) * steps:
        return NotImplemented
    return call(m, "cu_lu_pivots_to_permutation", [pivots], [((*batch, permutation_size), INT32)], len(batch))
