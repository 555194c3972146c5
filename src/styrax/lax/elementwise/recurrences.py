"""Recurrences for power series of elementary functions: their rules in Taylor mode.

Each works on the coefficients `x_k` of the operands' series, `y_k` of the result's, and follows from a differential
equation of the function (Knuth, The Art of Computer Programming II, section 4.7; Griewank and Walther, Evaluating
Derivatives, chapter 13). Functions that have none here are pushed by their JVP rules, through these. Loaded with
`experimental.jet`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.transforms.jets import derived_jet, symbolic_zeros, total, zero_series

from ..casting import convert_element_type_p
from .arithmetic import add_p, div_p, pow_p, sub_p
from .functions import cos_p, cosh_p, exp_p, log_p, logistic_p, rsqrt_p, sin_p, sinh_p, sqrt_p, tan_p, tanh_p

Series = list[Any]


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 else lax.mul(x, lax.full_like(x, factor))


def _convolved(a: Sequence[Any], b: Sequence[Any], n: int, start: int = 0, stop: int | None = None) -> Any:
    """The sum of `a[k] * b[n - k]` for k from `start` on, up to before `stop`."""
    return total([lax.mul(a[k], b[n - k]) for k in range(start, n + 1 if stop is None else stop)])


def _integrated(x: Series, rate: Sequence[Any], n: int) -> Any:
    """The n-th coefficient of a `y` with `y' = rate * x'`, from those of `rate` below n."""
    return _scaled(total([lax.mul(_scaled(x[j], float(j)), rate[n - j]) for j in range(1, n + 1)]), 1 / n)


def _unary(primitive: Primitive, solve: Callable[[Series, Any], Series]) -> None:
    """Gives a function of one operand its rule: `solve(x, y0)` gives the coefficients of the result."""

    def rule(primals: Sequence[Any], series: Sequence[Any], **params: Any) -> tuple[Any, list[Any]]:
        (x,), (terms,) = primals, series
        y = primitive.bind(x, **params)
        return y, solve([x, *terms], y)[1:]

    rules.jets[primitive] = rule


def _by_rate(rate: Callable[[Series, int], Any]) -> Callable[[Series, Any], Series]:
    """The solution of `y' = rate(y) * x'`; `rate(y, k)` gives the coefficient k of the rate."""

    def solve(x: Series, y0: Any) -> Series:
        y, rates = [y0], []
        for n in range(1, len(x)):
            rates.append(rate(y, n - 1))
            y.append(_integrated(x, rates, n))
        return y

    return solve


def _minus_square(y: Series, k: int) -> Any:
    """1 - y^2"""
    square = _convolved(y, y, k)
    return lax.sub(lax.full_like(square, 1), square) if k == 0 else lax.neg(square)


def _plus_square(y: Series, k: int) -> Any:
    """1 + y^2"""
    square = _convolved(y, y, k)
    return lax.add(square, lax.full_like(square, 1)) if k == 0 else square


def _paired(other: Primitive, sign: int, first: bool) -> Callable[[Series, Any], Series]:
    """Sine and cosine: each is the other's rate, `cos' = sign * sin`."""

    def solve(x: Series, y0: Any) -> Series:
        z0 = other.bind(x[0], accuracy=None) if other in (sin_p, cos_p) else other.bind(x[0])
        sine, cosine = ([y0], [z0]) if first else ([z0], [y0])
        for n in range(1, len(x)):
            up, down = _integrated(x, cosine, n), _integrated(x, sine, n)
            sine.append(up)
            cosine.append(lax.neg(down) if sign < 0 else down)
        return sine if first else cosine

    return solve


def _log(x: Series, y0: Any) -> Series:
    """x y' = x'"""
    y = [y0]
    for n in range(1, len(x)):
        rest = [lax.mul(_scaled(y[j], j / n), x[n - j]) for j in range(1, n)]
        y.append(lax.div(lax.sub(x[n], total(rest)) if rest else x[n], x[0]))
    return y


def _sqrt(x: Series, y0: Any) -> Series:
    """y^2 = x"""
    y = [y0]
    for n in range(1, len(x)):
        rest = lax.sub(x[n], _convolved(y, y, n, 1, n)) if n > 1 else x[n]
        y.append(lax.div(rest, _scaled(y0, 2.0)))
    return y


def _rsqrt(x: Series, y0: Any) -> Series:
    """2 x y' = -x' y"""
    y = [y0]
    for n in range(1, len(x)):
        terms = [lax.mul(_scaled(x[j], -(2 * n - j) / (2 * n)), y[n - j]) for j in range(1, n + 1)]
        y.append(lax.div(total(terms), x[0]))
    return y


for _primitive, _solve in {
    exp_p: _by_rate(lambda y, k: y[k]),
    tanh_p: _by_rate(_minus_square),
    tan_p: _by_rate(_plus_square),
    logistic_p: _by_rate(lambda y, k: lax.sub(y[k], _convolved(y, y, k))),
    sin_p: _paired(cos_p, -1, True),
    cos_p: _paired(sin_p, -1, False),
    sinh_p: _paired(cosh_p, 1, True),
    cosh_p: _paired(sinh_p, 1, False),
    log_p: _log,
    sqrt_p: _sqrt,
    rsqrt_p: _rsqrt,
}.items():
    _unary(_primitive, _solve)


@symbolic_zeros
def _div_jet(primals: Sequence[Any], series: Sequence[Any]) -> tuple[Any, list[Any]]:
    """y v = u"""
    (u0, v0), (u_terms, v_terms) = primals, series
    if v_terms is zero_series:
        return div_p.bind(u0, v0), [div_p.bind(t, v0) for t in u_terms]
    y0, v = div_p.bind(u0, v0), [v0, *v_terms]
    u = None if u_terms is zero_series else [u0, *u_terms]
    y = [y0]
    for n in range(1, len(v)):
        known = _convolved(y, v, n, 0, n)
        y.append(lax.div(lax.neg(known) if u is None else lax.sub(u[n], known), v0))
    return y0, y[1:]


@symbolic_zeros
def _pow_jet(primals: Sequence[Any], series: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A constant exponent goes down by one at each derivative; for a moving one, y' = (log(u) v)' y."""
    if series[1] is zero_series:
        return derived_jet(pow_p, primals, series, {})
    (u0, v0), (u_terms, v_terms) = primals, series
    v, y0, log = [v0, *v_terms], pow_p.bind(u0, v0), lax.log(u0)
    logs = [log] if u_terms is zero_series else _log([u0, *u_terms], log)
    exponent = [total([lax.mul(logs[k], v[n - k]) for k in range(n + 1) if k < len(logs)]) for n in range(len(v))]
    return y0, _by_rate(lambda y, k: y[k])(exponent, y0)[1:]


rules.jets[div_p] = _div_jet


def _sum_jet(primitive: Primitive) -> Callable[..., Any]:
    @symbolic_zeros
    def rule(primals: Sequence[Any], series: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        x, y = series
        if y is zero_series:
            return out, x
        if primitive is sub_p:
            y = list(map(lax.neg, y))
        return out, y if x is zero_series else list(map(lax.add, x, y))

    return rule


rules.jets[add_p] = _sum_jet(add_p)
rules.jets[sub_p] = _sum_jet(sub_p)


def _convert_jet(primals: Sequence[Any], series: Sequence[Any], *, new_dtype: Any, **params: Any) -> tuple[Any, Any]:
    """Terms are converted as the value is; those of integers are floats."""
    out = convert_element_type_p.bind(*primals, new_dtype=new_dtype, **params)
    from_integer, to_integer = (not dtypes.issubdtype(d, np.inexact) for d in (get_aval(primals[0]).dtype, new_dtype))
    if to_integer:
        return out, series[0] if from_integer and new_dtype != np.bool_ else zero_series
    return out, [convert_element_type_p.bind(t, new_dtype=new_dtype, **params) for t in series[0]]


rules.jets[convert_element_type_p] = _convert_jet
rules.jets[pow_p] = _pow_jet
