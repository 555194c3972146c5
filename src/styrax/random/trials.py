"""The binomial distribution: inversion for few expected successes, transformed rejection for many."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.transforms.jit import jit_for_all_shapes as jit

from .keys import split_apart
from .rejection import until_accepted
from .uniforms import uniform

# log(k!) less Stirling's formula, for k below 10; from there on the series is exact enough
STIRLING_TAIL = np.array([
    math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.5 * math.log(2 * math.pi))
    for k in range(10)])


def _stirling_tail(k: Any) -> Array:
    dtype = k.dtype
    exact = k <= 9
    k = lax.clamp(np.asarray(0, dtype), k, np.asarray(9, dtype))
    squared = (k + 1) * (k + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / squared) / squared) / (k + 1)
    table = lax.convert_element_type(STIRLING_TAIL, dtype)
    return lax.select(exact, table[lax.convert_element_type(lax.floor(k), np.int32)], series)


def _by_inversion(key: Any, count: Any, log_failure: Any, steps: Any) -> Array:
    """Adds up waiting times between successes until they exceed the number of trials."""
    from styrax.numpy import any

    def body(carry: Any) -> Any:
        i, successes, trials, key = carry
        subkey, key = split_apart(key, 2)
        successes = lax.select(trials <= count, successes + 1, successes)
        u = uniform(subkey, count.shape, count.dtype)
        trials = trials + lax.ceil(lax.log(u) / log_failure)
        return i + 1, successes, trials, key

    def going(carry: Any) -> Any:
        i, _, trials, _ = carry
        return any(trials <= count) & (i < steps)

    start = (0, lax.full_like(count, 0), lax.full_like(count, 0), key)
    return lax.while_loop(going, body, start)[1] - 1


def _by_rejection(key: Any, count: Any, p: Any, steps: Any) -> Array:
    """Hörmann's algorithm BTRS."""
    spread = lax.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    m = lax.floor((count + 1) * p)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        u = u - 0.5
        shifted = 0.5 - lax.abs(u)
        at_once = (shifted >= 0.07) & (v <= v_r)
        k = lax.floor((2 * a / shifted + b) * u + c)
        refused = (k < 0) | (k > count)
        v = lax.log(v * alpha / (a / (shifted * shifted) + b))
        bound = (
            (m + 0.5) * lax.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * lax.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * lax.log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        below = v <= bound
        return k, at_once | (~refused & below)

    return until_accepted(key, count, propose, steps)


@partial(jit, static_argnums=(3, 4), inline=True)
def draw_binomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """`random.binomial` on checked arguments, computed in the dtype of `p`."""
    from styrax.numpy.broadcasting import broadcast_to, choose_elements
    from styrax.numpy.float_tests import isinf

    where = choose_elements.__wrapped__  # part of this program, not a call
    if not dtypes.issubdtype(lax.dtype(p), np.floating):
        p = lax.convert_element_type(p, dtypes.default_float_dtype())
    count = broadcast_to(lax.convert_element_type(n, lax.dtype(p)), shape)
    p = broadcast_to(p, shape)
    steps = dtypes.finfo(dtype).max
    low = p < 0.5
    q = where(low, p, 1.0 - p)  # the rarer outcome is drawn
    bad_count = lax.ne(count, count) | (count < 0.0)
    endless = isinf(count)
    q_nan, q_negative = lax.ne(q, q), q < 0.0
    q = where(q_nan | q_negative, 0.01, q)
    few = bad_count | (count * q <= 10.0)
    whole = lax.floor(count)
    few_count, many_count, many_q = where(few, whole, 0.0), where(few, 1e4, whole), where(few, 0.5, q)
    inverted = _by_inversion(key, few_count, lax.log1p(-q), steps)
    rejected = _by_rejection(key, many_count, many_q, steps)
    out = where(few, inverted, rejected)
    invalid = q_negative | q_nan | bad_count
    out = where(invalid, np.nan, out)
    out = where(endless & ~invalid, np.inf, out)
    return lax.convert_element_type(where(low | bad_count | q_nan | endless, out, whole - out), dtype)


@partial(jit, static_argnums=(3, 4, 5), inline=True)
def draw_multinomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: Any, unroll: int | bool) -> Array:
    """`random.multinomial` on checked arguments: one category after the other takes its share of what is left."""
    from styrax.numpy import broadcast_to, moveaxis, where
    from styrax.numpy.clipping import clip_between
    from styrax.numpy.promotion import promote_dtypes_inexact

    n, p = promote_dtypes_inexact(n, p)
    n = broadcast_to(n, shape[:-1])
    p = moveaxis(broadcast_to(p, shape), -1, 0)
    rest = lax.cumsum(p, 0, reverse=True)
    ratios = p / where(lax.eq(rest, lax.full_like(rest, 0, shape=())), 1, rest)

    def step(left: Any, x: Any) -> tuple[Any, Any]:
        ratio, subkey = x
        count = draw_binomial(subkey, left, clip_between(ratio, min=0, max=1), left.shape, left.dtype)
        return left - count, count

    from .keys import _split

    keys = _split(key, ratios.shape[0])
    counts = lax.scan(step, n, (ratios, keys), unroll=unroll)[1]
    return lax.convert_element_type(moveaxis(counts, 0, -1), dtype)
