"""Every algebraic rewrite: that it applies, and that its level's promise holds on ordinary and on odd values."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

import styrax as jax
from styrax import lax
from styrax.compile.lowering.rewrites import LEVELS, ROWS, Rule, Term
from styrax.core.settings import config

ODD = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-3, 7.25, -30.0, 50.0, -60.0, 87.0,
       -100.0, 1e-30, -1e-30, 1e30, -1e30]
RANDOM = list(np.random.default_rng(0).normal(size=20) * 10)
def flushed(f):
    """A function that takes subnormal numbers for zeros, and gives none."""
    def zero(x):
        return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(0, x), x).astype(x.dtype)

    return lambda *args: zero(f(*map(zero, args)))


NUMPY = {"neg": np.negative, "abs": np.abs, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
         "log": np.log, "exp": np.exp, "sqrt": np.sqrt, "pow": np.power, "rsqrt": lambda x: 1 / np.sqrt(x)}
FLUSHED = {name: flushed(f) for name, f in NUMPY.items()}


def real(f):
    """Without values that are not real."""
    return lambda x: f(x) if isinstance(x, mpmath.mpf) and x >= 0 else mpmath.nan


def power(x, y):
    """As IEEE's: real, and of infinities of either sign."""
    if mpmath.isinf(x):
        return mpmath.mpf(float(np.power(np.longdouble(float(x)), np.longdouble(float(y)))))
    return found if isinstance(found := mpmath.power(x, y), mpmath.mpf) else mpmath.nan


EXACT = {"neg": lambda x: -x, "abs": abs, "add": lambda x, y: x + y, "sub": lambda x, y: x - y,
         "mul": lambda x, y: x * y, "div": lambda x, y: x / y if y else mpmath.inf, "log": real(mpmath.log),
         "exp": mpmath.exp, "sqrt": real(mpmath.sqrt), "pow": power, "rsqrt": real(lambda x: 1 / mpmath.sqrt(x))}
# What a row that asks for constants is given, the second of them what it must refuse.
CONSTANTS = {"log of even power": ([-4.0, 6.0, 10.0], [3.0, 0.5, 0.0, math.inf]),
             "log of power of abs": ([5.0, 0.7, -2.5], [0.0, math.inf, math.nan])}
TOLERANCE = 64  # in epsilons: the argument of an exponential is rounded once more


def values(dtype: type) -> np.ndarray:
    info = np.finfo(dtype)
    edges = [info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal, -info.smallest_subnormal,
             info.tiny / 8]
    return np.array([*ODD, *edges, *RANDOM], dtype)


def evaluate(term: Term, operations: dict, names: dict, number):
    if isinstance(term, str):
        return names[term]
    if isinstance(term, tuple):
        return operations[term[0]](*(evaluate(t, operations, names, number) for t in term[1:]))
    return number(term)


def variables(term: Term) -> list[str]:
    if isinstance(term, tuple):
        return sorted({v for t in term[1:] for v in variables(t)})
    return [term] if isinstance(term, str) else []


def program(row: Rule, names: list[str], constants: dict[str, float]):
    operations = {name: getattr(lax, name) for name in NUMPY}

    def f(*args):
        like = args[0]
        full = {k: lax.full_like(like, c) for k, c in constants.items()}
        return evaluate(row.left, operations, {**dict(zip(names, args, strict=True)), **full},
                        lambda c: lax.full_like(like, c))

    return f


def run(row: Rule, level: str, names: list[str], constants: dict[str, float], columns: list[np.ndarray]):
    """The program's results, and how often the row applied."""
    before = row.hits
    with config.states["styrax_numerics"](level):
        out = np.asarray(jax.jit(program(row, names, constants))(*columns))
    return out, row.hits - before


def reference(row: Rule, numbers: dict[str, float]):
    """The left side in exact arithmetic; where zeros and NaNs are among its operands, in IEEE's, which knows signs."""
    if any(math.isnan(v) or v == 0 for v in numbers.values()):
        with np.errstate(all="ignore"):
            return float(evaluate(row.left, NUMPY, {k: np.longdouble(v) for k, v in numbers.items()}, np.longdouble))
    # the sum of the largest and the smallest number has some 630 digits
    with mpmath.workdps(700 if row.level == LEVELS["fast"] else 60):
        exact = evaluate(row.left, EXACT, {k: mpmath.mpf(float(v)) for k, v in numbers.items()}, mpmath.mpf)
    return exact


def cases():
    for row in ROWS:
        for constant in CONSTANTS.get(row.name, ([None], []))[0]:
            for dtype in (np.float32, np.float64):
                yield pytest.param(row, constant, dtype, id=f"{row.name}-{constant}-{dtype.__name__}")


def prepare(row: Rule, constant: float | None, dtype: type):
    constants = {} if constant is None else {"y": constant}
    names = [v for v in variables(row.left) if v not in constants]
    grid = np.array(list(itertools.product(values(dtype), repeat=len(names))), dtype)
    return names, constants, [np.ascontiguousarray(c) for c in grid.T]


@pytest.mark.parametrize("row, constant, dtype", list(cases()))
def test_row(row, constant, dtype):
    names, constants, columns = prepare(row, constant, dtype)
    (level,) = [name for name, number in LEVELS.items() if number == row.level]
    with config.states["jax_enable_x64"](dtype is np.float64):
        got, hits = run(row, level, names, constants, columns)
        plain, none = run(row, "strict", names, constants, columns)
    assert hits == 1 and none == (level == "strict")
    assert got.dtype == dtype
    if level == "strict":
        with np.errstate(all="ignore"):
            wanted = evaluate(row.left, FLUSHED, dict(zip(names, columns, strict=True)), dtype)
        # what is not computed keeps its subnormal numbers
        kept = np.all([(x == 0) | ~(np.abs(x) < np.finfo(dtype).tiny) for x in columns], 0)
        nan = np.isnan(wanted)
        np.testing.assert_array_equal(np.isnan(got), nan)
        assert got[kept & ~nan].tobytes() == wanted[kept & ~nan].tobytes()
        return
    info, wrong = np.finfo(dtype), []
    for k, value in enumerate(got):
        numbers = {**{n: flushed(np.positive)(c[k]) for n, c in zip(names, columns, strict=True)}, **constants}
        if level == "fast" and (not all(map(math.isfinite, numbers.values())) or
                                row.left[0] == "mul" and numbers["y"] == 0):
            continue
        wanted = reference(row, numbers)
        if not near(float(value), wanted, info):
            wrong.append((numbers, float(value), float(wanted), float(plain[k])))
    assert not wrong, wrong[:10]


def near(value: float, wanted, info: np.finfo) -> bool:
    if math.isnan(wanted) or math.isnan(value):
        return math.isnan(wanted) and math.isnan(value)
    if math.isinf(value) or abs(wanted) > info.max:
        # a result at the edge of the range may round to either side of it
        return value * (1 if wanted > 0 else -1) >= float(info.max) * (1 - TOLERANCE * float(info.eps)) and (
            abs(wanted) > float(info.max) * (1 - TOLERANCE * float(info.eps)))
    if wanted == 0 and value == 0:
        return True
    small = max(float(info.tiny), float(abs(wanted)) * TOLERANCE * float(info.eps))
    return abs(value - wanted) <= small


@pytest.mark.parametrize("row", [r for r in ROWS if r.when is not None], ids=lambda r: r.name)
def test_conditions_are_asked(row):
    assert row.name in CONSTANTS
    x = values(np.float32)
    for constant in CONSTANTS[row.name][1]:
        assert run(row, "fast", ["x"], {"y": constant}, [x])[1] == 0
    assert run(row, "fast", ["x", "y"], {}, [x, x])[1] == 0


def test_the_test_knows_every_row():
    assert {r.name for r in ROWS if r.when is not None} == set(CONSTANTS)
    assert len({r.name for r in ROWS}) == len(ROWS)


def test_logarithm_of_a_product_of_exponentials():
    """By two rows, one after the other."""
    x, y = np.float32([100.0, -300.0, 1.0]), np.float32([200.0, 100.0, 2.0])
    out = jax.jit(lambda x, y: lax.log(lax.mul(lax.exp(x), lax.exp(y))))(x, y)
    np.testing.assert_array_equal(out, x + y)


def test_powers_of_negative_numbers_keep_their_logarithms():
    x = np.float32([-2.0, 2.0, 0.0, -3.0, 1.0, math.inf, -math.inf, 1.0])
    y = np.float32([2.0, 2.0, 0.0, 4.0, math.nan, 0.0, 0.5, math.inf])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(jax.jit(lambda x, y: lax.log(lax.pow(x, y)))(x, y), np.log(x**y), rtol=1e-6)
