"""Factorisations in programs for XLA, as calls of LAPACK: for clients that know its routines, as JAX's for CPUs do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from styrax.core.types.avals import ShapedArray

from .eigen import eig_p, eigh_p, hessenberg_p, schur_p, tridiagonal_p
from .library_calls import boolean, by_library, call, unless
from .lu_factors import lu_p, lu_pivots_to_permutation_p
from .matrices import INT32, LETTERS, complex_dtype, is_complex, real_dtype
from .qr_factors import geqrf_p, householder_product_p, ormqr_p
from .singular_values import svd_p
from .tridiagonal_systems import tridiagonal_solve_p


def _letter(flag: str) -> str:
    return f"{ord(flag)} : ui8"


def _lapack(m: Any, routine: str, operands: Sequence[Any], results: Sequence[tuple[Sequence[int], Any]], batch: int, *,
            config: Mapping[str, str] | None = None, reused: Sequence[int] = ()) -> list[Any]:
    """Calls a routine, named without its letter. `reused`: the operands whose memory the first results take."""
    return call(m, f"lapack_{LETTERS[operands[0].dtype]}{routine}_ffi", operands, results, batch, config=config,
                reused=dict(enumerate(reused)))


# --- eigenvalues, and the forms on the way to them


@by_library("lapack", eigh_p)
def _eigh(m: Any, x: Any, *, lower: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    config = {"mode": _letter("V"), "uplo": _letter("L" if lower else "U")}
    routine = "heevd" if is_complex(x.dtype) else "syevd"
    v, w, info = _lapack(m, routine, [x], [(x.shape, x.dtype), ((*batch, n), real_dtype(x.dtype)), (batch, INT32)],
                         len(batch), config=config, reused=[0])
    return [unless(m, "NE", info, v), unless(m, "NE", info, w)]


@by_library("lapack", eig_p)
def _eig(m: Any, x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    dtype = complex_dtype(x.dtype)
    wanted = [compute_left_eigenvectors, compute_right_eigenvectors]
    config = {"compute_left": _letter("V" if wanted[0] else "N"), "compute_right": _letter("V" if wanted[1] else "N")}
    values = [((*batch, n), x.dtype)] * (1 if is_complex(x.dtype) else 2)
    *w, left, right, info = _lapack(m, "geev", [x], [*values, (x.shape, dtype), (x.shape, dtype), (batch, INT32)],
                                    len(batch), config=config)
    if len(w) == 2:
        w = [m.op1("stablehlo.complex", w, ShapedArray((*batch, n), dtype))]
    vectors = [v for v, flag in zip((left, right), wanted, strict=True) if flag]
    return [unless(m, "NE", info, v) for v in (*w, *vectors)]


@by_library("lapack", schur_p)
def _schur(m: Any, x: Any, *, compute_schur_vectors: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    config = {"mode": _letter("V" if compute_schur_vectors else "N"), "sort": _letter("N")}
    values = [((*batch, n), x.dtype)] * (1 if is_complex(x.dtype) else 2)
    t, v, *_w, _count, info = _lapack(
        m, "gees", [x], [(x.shape, x.dtype), (x.shape, x.dtype), *values, (batch, INT32), (batch, INT32)], len(batch),
        config=config, reused=[0])
    return [unless(m, "NE", info, o) for o in ([t, v] if compute_schur_vectors else [t])]


@by_library("lapack", hessenberg_p)
def _hessenberg(m: Any, a: Any) -> list[Any]:
    *batch, n, _n = a.shape
    h, taus, info = _lapack(m, "gehrd", [a], [(a.shape, a.dtype), ((*batch, n - 1), a.dtype), (batch, INT32)],
                            len(batch), config={"high": f"{n} : i32", "low": "1 : i32"}, reused=[0])
    return [unless(m, "NE", info, h), unless(m, "NE", info, taus)]


@by_library("lapack", tridiagonal_p)
def _tridiagonal(m: Any, a: Any, *, lower: bool) -> list[Any]:
    *batch, n, _n = a.shape
    part = real_dtype(a.dtype)
    results = [(a.shape, a.dtype), ((*batch, n), part), ((*batch, n - 1), part), ((*batch, n - 1), a.dtype)]
    *outs, info = _lapack(m, "hetrd" if is_complex(a.dtype) else "sytrd", [a], [*results, (batch, INT32)], len(batch),
                          config={"uplo": _letter("L" if lower else "U")}, reused=[0])
    return [unless(m, "NE", info, o) for o in outs]


# --- singular values


@by_library("lapack", svd_p)
def _svd(m: Any, x: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    k = min(rows, columns)
    full = full_matrices or not compute_uv
    u_shape = (*batch, rows, rows if full else k)
    vh_shape = (*batch, columns if full else k, columns)
    s_shape, part = (*batch, k), real_dtype(x.dtype)
    if not math.prod(x.shape):
        eyes = [np.broadcast_to(np.eye(*s[-2:], dtype=x.dtype), s) for s in (u_shape, vh_shape)] if compute_uv else []
        return [m.const(np.zeros(s_shape, part)), *map(m.const, eyes)]
    _factors, s, *uv, info = _lapack(
        m, "gesdd", [x], [(x.shape, x.dtype), (s_shape, part), (u_shape, x.dtype), (vh_shape, x.dtype), (batch, INT32)],
        len(batch), config={"mode": _letter("N" if not compute_uv else "A" if full_matrices else "S")}, reused=[0])
    return [unless(m, "NE", info, v) for v in (s, *(uv if compute_uv else ()))]


# --- QR factorisation, and products of reflections


@by_library("lapack", geqrf_p)
def _geqrf(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    taus = (*batch, min(rows, columns))
    if not math.prod(x.shape):
        return [x, m.const(np.zeros(taus, x.dtype))]
    return _lapack(m, "geqrf", [x], [(x.shape, x.dtype), (taus, x.dtype)], len(batch), reused=[0])


def pivoted(m: Any, x: Any) -> list[Any]:
    """Packed reflections and r, their factors, and the order of the columns."""
    *batch, rows, columns = x.shape
    free = m.const(np.zeros((*batch, columns), INT32))
    results = [(x.shape, x.dtype), (free.shape, INT32), ((*batch, min(rows, columns)), x.dtype)]
    packed, order, taus = _lapack(m, "geqp3", [x, free], results, len(batch), reused=[0, 1])
    return [packed, taus, m.op1("stablehlo.subtract", [order, m.full(1, free.aval)], free.aval)]


def _unitary(name: str, dtype: Any) -> str:
    return ("un" if is_complex(dtype) else "or") + name


@by_library("lapack", householder_product_p)
def _householder_product(m: Any, a: Any, taus: Any) -> list[Any]:
    if not math.prod(a.shape):
        return [a]
    return _lapack(m, _unitary("gqr", a.dtype), [a, taus], [(a.shape, a.dtype)], len(a.shape) - 2, reused=[0])


@by_library("lapack", ormqr_p)
def _ormqr(m: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> list[Any]:
    if not (math.prod(c.shape) and math.prod(taus.shape)):
        return [c]
    return _lapack(m, _unitary("mqr", c.dtype), [a, taus, c], [(c.shape, c.dtype)], len(c.shape) - 2,
                   config={"left": boolean(left), "transpose": boolean(transpose)}, reused=[2])


# --- LU factorisation


@by_library("lapack", lu_p)
def _lu(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    steps = (*batch, min(rows, columns))
    factors, pivots, info = _lapack(m, "getrf", [x], [(x.shape, x.dtype), (steps, INT32), (batch, INT32)], len(batch),
                                    reused=[0])
    pivots = m.op1("stablehlo.subtract", [pivots, m.full(1, pivots.aval)], pivots.aval)
    permutation = m.call_traced(lambda p: lu_pivots_to_permutation_p.bind(p, permutation_size=rows), pivots)
    return [unless(m, "LT", info, factors), pivots, *permutation]


# --- tridiagonal systems


@by_library("lapack", tridiagonal_solve_p)
def _tridiagonal_solve(m: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> list[Any]:
    if not math.prod(b.shape):
        return [b]
    *batch, _n, _k = b.shape
    *_diagonals, x, info = _lapack(m, "gtsv", [dl, d, du, b],
                                   [*((v.shape, v.dtype) for v in (dl, d, du, b)), (batch, INT32)], len(batch),
                                   reused=[0, 1, 2, 3])
    return [unless(m, "NE", info, x)]
