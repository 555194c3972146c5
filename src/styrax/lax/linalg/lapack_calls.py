"""Factorisations in programs for XLA: LAPACK's routines by the names under which XLA's clients for CPUs know them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.transforms.mapping import vmap

from ..control_flow.loops import fori_loop
from ..elementwise.arithmetic import add, div, mul, square, sub
from ..elementwise.comparisons import eq, select
from ..elementwise.functions import sqrt
from ..indexing.slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from ..indexing.static_slicing import slice_in_dim
from ..shaping.filling import full_like, iota, pad
from ..shaping.reshaping import reshape
from .eigen import eig_p, eigh_p, hessenberg_p, schur_p, tridiagonal_p
from .factor_updates import cholesky_update_p, tridiagonal_solve_p
from .lu import lu_p, lu_pivots_to_permutation_p
from .matrices import INT32, LETTERS, band, complex_dtype, is_complex, real_dtype, shape_of
from .qr import geqrf_p, householder_product_p, ormqr_p, qr_p
from .svd import svd_p


def _letter(flag: str) -> str:
    return f"{ord(flag)} : ui8"


def _boolean(value: bool) -> str:
    return str(value).lower()


def _layout(rank: int, batch: int) -> str:
    """Matrices by columns, batches of them one after the other: dimensions from the fastest to the slowest."""
    order = [*range(batch, rank), *reversed(range(batch))]
    return f"dense<{order if order else ''}> : tensor<{rank}xindex>"


def _lapack(m: Any, routine: str, operands: Sequence[Any], results: Sequence[tuple[Sequence[int], Any]], batch: int, *,
            config: Mapping[str, str] | None = None, reused: Sequence[int] = ()) -> list[Any]:
    """Calls a routine, named without its letter, on matrices and vectors of a batch of so many dimensions.

    `results` are shapes and dtypes, `reused` the operands whose memory the first results take, in this order.
    """
    avals = [ShapedArray(tuple(shape), dtype) for shape, dtype in results]
    inside = [] if len(avals) == 1 else [f"[{i}]" for i in range(len(avals))]
    aliases = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {inside[i] if inside else '[]'}, "
        f"operand_index = {operand}, operand_tuple_indices = []>" for i, operand in enumerate(reused))
    layouts = [", ".join(_layout(len(x.shape), batch) for x in values) for values in (operands, avals)]
    return m.custom_call(
        f"lapack_{LETTERS[operands[0].dtype]}{routine}_ffi", operands, avals,
        ", ".join(f"{name} = {value}" for name, value in (config or {}).items()),
        [f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}', f"operand_layouts = [{layouts[0]}]",
         f"result_layouts = [{layouts[1]}]", f"output_operand_aliases = [{aliases}]"])


def _unless(m: Any, failed: str, info: Any, value: Any) -> Any:
    """A value with NaN where a status compares so with 0 ("NE": any failure; "LT": a wrong argument)."""
    zero = m.full(0, info.aval)
    wrong = m.compare(failed, info, zero)
    spread = ShapedArray(value.shape, np.dtype(np.bool_))
    nan = complex(np.nan, np.nan) if is_complex(value.dtype) else np.nan
    return m.select(m.broadcast_in_dim(wrong, spread, range(len(info.shape))), m.full(nan, value.aval), value)


def _in_working_dtype(rule: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A rule for half precisions, too: LAPACK computes them in f32."""
    def lowered(m: Any, *operands: Any, **params: Any) -> list[Any]:
        wanted = [a.dtype for a in m.avals_out]
        half = [x.dtype not in LETTERS and dtypes.issubdtype(x.dtype, np.inexact) for x in operands]
        single = np.dtype(np.float32)
        outs = rule(m, *(m.convert(x, single) if h else x for x, h in zip(operands, half, strict=True)), **params)
        return [m.convert(x, dtype) for x, dtype in zip(outs, wanted, strict=True)]

    return lowered


def _stablehlo(primitive: Any) -> Callable[[Callable[..., Any]], None]:
    def enter(rule: Callable[..., Any]) -> None:
        rules.stablehlos[primitive] = _in_working_dtype(rule)

    return enter


# --- eigenvalues, and the forms on the way to them


@_stablehlo(eigh_p)
def _eigh(m: Any, x: Any, *, lower: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    config = {"mode": _letter("V"), "uplo": _letter("L" if lower else "U")}
    routine = "heevd" if is_complex(x.dtype) else "syevd"
    v, w, info = _lapack(m, routine, [x], [(x.shape, x.dtype), ((*batch, n), real_dtype(x.dtype)), (batch, INT32)],
                         len(batch), config=config, reused=[0])
    return [_unless(m, "NE", info, v), _unless(m, "NE", info, w)]


@_stablehlo(eig_p)
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
    return [_unless(m, "NE", info, v) for v in (*w, *vectors)]


@_stablehlo(schur_p)
def _schur(m: Any, x: Any, *, compute_schur_vectors: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    config = {"mode": _letter("V" if compute_schur_vectors else "N"), "sort": _letter("N")}
    values = [((*batch, n), x.dtype)] * (1 if is_complex(x.dtype) else 2)
    t, v, *_w, _count, info = _lapack(
        m, "gees", [x], [(x.shape, x.dtype), (x.shape, x.dtype), *values, (batch, INT32), (batch, INT32)], len(batch),
        config=config, reused=[0])
    return [_unless(m, "NE", info, o) for o in ([t, v] if compute_schur_vectors else [t])]


@_stablehlo(hessenberg_p)
def _hessenberg(m: Any, a: Any) -> list[Any]:
    *batch, n, _n = a.shape
    h, taus, info = _lapack(m, "gehrd", [a], [(a.shape, a.dtype), ((*batch, n - 1), a.dtype), (batch, INT32)],
                            len(batch), config={"high": f"{n} : i32", "low": "1 : i32"}, reused=[0])
    return [_unless(m, "NE", info, h), _unless(m, "NE", info, taus)]


@_stablehlo(tridiagonal_p)
def _tridiagonal(m: Any, a: Any, *, lower: bool) -> list[Any]:
    *batch, n, _n = a.shape
    part = real_dtype(a.dtype)
    results = [(a.shape, a.dtype), ((*batch, n), part), ((*batch, n - 1), part), ((*batch, n - 1), a.dtype)]
    *outs, info = _lapack(m, "hetrd" if is_complex(a.dtype) else "sytrd", [a], [*results, (batch, INT32)], len(batch),
                          config={"uplo": _letter("L" if lower else "U")}, reused=[0])
    return [_unless(m, "NE", info, o) for o in outs]


# --- singular values


@_stablehlo(svd_p)
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
    return [_unless(m, "NE", info, v) for v in (s, *(uv if compute_uv else ()))]


# --- QR factorisation, and products of reflections


@_stablehlo(geqrf_p)
def _geqrf(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    taus = (*batch, min(rows, columns))
    if not math.prod(x.shape):
        return [x, m.const(np.zeros(taus, x.dtype))]
    return _lapack(m, "geqrf", [x], [(x.shape, x.dtype), (taus, x.dtype)], len(batch), reused=[0])


@_stablehlo(qr_p)
def _qr(m: Any, x: Any, *, pivoting: bool, full_matrices: bool, **_: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    k = min(rows, columns)
    width = rows if full_matrices else k
    if not math.prod(x.shape):
        order = [m.const(np.broadcast_to(np.arange(columns, dtype=INT32), (*batch, columns)))] if pivoting else []
        return [m.const(np.broadcast_to(np.eye(rows, width, dtype=x.dtype), (*batch, rows, width))),
                m.const(np.zeros((*batch, width, columns), x.dtype)), *order]

    def formed(packed: Any, taus: Any) -> list[Any]:
        axis = len(batch) + 1
        if width > columns:
            first = pad(packed, np.zeros((), x.dtype), [(0, 0, 0)] * axis + [(0, width - columns, 0)])
        else:
            first = slice_in_dim(packed, 0, width, axis=axis)
        return [householder_product_p.bind(first, taus), band(slice_in_dim(packed, 0, width, axis=axis - 1), False)]

    if not pivoting:
        return m.call_traced(lambda x: formed(*geqrf_p.bind(x)), x)
    free = m.const(np.zeros((*batch, columns), INT32))
    results = [(x.shape, x.dtype), (free.shape, INT32), ((*batch, k), x.dtype)]
    packed, order, taus = _lapack(m, "geqp3", [x, free], results, len(batch), reused=[0, 1])
    return [*m.call_traced(formed, packed, taus), m.op1("stablehlo.subtract", [order, m.full(1, free.aval)], free.aval)]


def _unitary(name: str, dtype: Any) -> str:
    return ("un" if is_complex(dtype) else "or") + name


@_stablehlo(householder_product_p)
def _householder_product(m: Any, a: Any, taus: Any) -> list[Any]:
    if not math.prod(a.shape):
        return [a]
    return _lapack(m, _unitary("gqr", a.dtype), [a, taus], [(a.shape, a.dtype)], len(a.shape) - 2, reused=[0])


@_stablehlo(ormqr_p)
def _ormqr(m: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> list[Any]:
    if not (math.prod(c.shape) and math.prod(taus.shape)):
        return [c]
    return _lapack(m, _unitary("mqr", c.dtype), [a, taus, c], [(c.shape, c.dtype)], len(c.shape) - 2,
                   config={"left": _boolean(left), "transpose": _boolean(transpose)}, reused=[2])


# --- LU factorisation


@_stablehlo(lu_p)
def _lu(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    steps = (*batch, min(rows, columns))
    factors, pivots, info = _lapack(m, "getrf", [x], [(x.shape, x.dtype), (steps, INT32), (batch, INT32)], len(batch),
                                    reused=[0])
    pivots = m.op1("stablehlo.subtract", [pivots, m.full(1, pivots.aval)], pivots.aval)
    permutation = m.call_traced(lambda p: lu_pivots_to_permutation_p.bind(p, permutation_size=rows), pivots)
    return [_unless(m, "LT", info, factors), pivots, *permutation]


def _each(function: Callable[..., Any], ranks: Sequence[int]) -> Callable[..., Any]:
    """A function of arrays of so many dimensions, for batches of them."""
    def batched(*xs: Any) -> Any:
        batch = shape_of(xs[0])[:len(shape_of(xs[0])) - ranks[0]]
        if not batch:
            return function(*xs)
        flat = (reshape(x, (math.prod(batch), *shape_of(x)[len(batch):])) for x in xs)
        out = vmap(function)(*flat)
        return reshape(out, (*batch, *shape_of(out)[1:]))

    return batched


@_stablehlo(lu_pivots_to_permutation_p)
def _permutation(m: Any, pivots: Any, *, permutation_size: int) -> list[Any]:
    def exchanged(pivots: Any) -> Any:
        def exchange(i: Any, rows: Any) -> Any:
            j = dynamic_index_in_dim(pivots, i, keepdims=False)
            here = dynamic_index_in_dim(rows, i, keepdims=False)
            there = dynamic_index_in_dim(rows, j, keepdims=False)
            return dynamic_update_index_in_dim(dynamic_update_index_in_dim(rows, there, i, 0), here, j, 0)

        rows = iota(INT32, permutation_size)
        steps = shape_of(pivots)[0]
        return fori_loop(np.int32(0), np.int32(steps), exchange, rows) if steps else rows

    return m.call_traced(_each(exchanged, [1]), pivots)


# --- tridiagonal systems, and updates


@_stablehlo(tridiagonal_solve_p)
def _tridiagonal_solve(m: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> list[Any]:
    if not math.prod(b.shape):
        return [b]
    *batch, _n, _k = b.shape
    *_diagonals, x, info = _lapack(m, "gtsv", [dl, d, du, b],
                                   [*((v.shape, v.dtype) for v in (dl, d, du, b)), (batch, INT32)], len(batch),
                                   reused=[0, 1, 2, 3])
    return [_unless(m, "NE", info, x)]


@_stablehlo(cholesky_update_p)
def _cholesky_update(m: Any, r: Any, w: Any) -> list[Any]:
    def updated(r: Any, w: Any) -> Any:
        dtype = get_aval(r).dtype
        zero, one = np.zeros((), dtype), np.ones((), dtype)

        def rotate(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
            """One rotation brings component k of the vector into the factor."""
            r, w = state
            row = dynamic_index_in_dim(r, k, keepdims=False)
            x, y = dynamic_index_in_dim(row, k, keepdims=False), dynamic_index_in_dim(w, k, keepdims=False)
            length = sqrt(add(square(x), square(y)))
            still = eq(length, zero)
            c, s = select(still, one, div(x, length)), select(still, zero, div(y, length))
            c, s = add(full_like(row, 0), c), add(full_like(row, 0), s)
            r = dynamic_update_index_in_dim(r, add(mul(c, row), mul(s, w)), k, 0)
            return r, sub(mul(c, w), mul(s, row))

        n = shape_of(w)[0]
        return band(fori_loop(np.int32(0), np.int32(n), rotate, (band(r, False), w))[0], False) if n else r

    return m.call_traced(_each(updated, [2, 1]), r, w)
