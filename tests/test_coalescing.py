"""Images of few channels, rolled, padded and joined along the dimension before these: loops over both are one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import styrax
from styrax import lax
from styrax import numpy as jnp
from styrax.compile.pipeline import compile_to_loops


def neighbours(np_, x):
    return sum(np_.roll(x, d, a) * (3 + d + a) for a in (0, 1) for d in (-2, -1, 1, 2)) - x


def padded(mode, np_, x):
    p = np_.pad(x, ((1, 1), (2, 1), (0, 0)), mode)
    return p[1:-1, :-3] + 2 * p[1:-1, 3:] + 3 * p[:-2, 2:-1] - p[2:, 1:-2]


def joined(np_, x):
    return np_.concatenate([x[:, 1:] * 2, x[:, :1] + 1, x[:, ::-1]], 1)


def chosen(np_, x):
    column = np_.arange(x.shape[1])[:, None]
    return np_.where(column < 2, x + 1, np_.where(2 >= x.shape[1] - column, -x, 2 * x))


def inside(np_, x):
    return np_.pad(x[:, 1:-1] - x[:, :-2], ((0, 0), (1, 1), (0, 0))) + x


PROGRAMS = {
    "neighbours": neighbours, "joined": joined, "chosen": chosen, "inside": inside,
    **{f"padded, {mode}": lambda np_, x, mode=mode: padded(mode, np_, x) for mode in ("constant", "edge", "wrap")},
}
SHAPES = {"float32": [*itertools.product((3,), (3, 33), (1, 2, 3, 5, 12)), (1, 2, 3), (2, 100, 3), (40, 64, 3)],
          **dict.fromkeys(("int8", "complex64", "int32"), [(3, 3, 3), (3, 33, 3), (2, 70, 5)])}


@pytest.mark.parametrize("dtype", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype):
    f = PROGRAMS[name]
    for shape in SHAPES[dtype]:
        x = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
        np.testing.assert_array_equal(styrax.jit(lambda x: f(jnp, x).astype(x.dtype))(x), f(np, x).astype(dtype),
                                      err_msg=str(shape))


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_loops_gradients_and_batches(name):
    f = PROGRAMS[name]
    x = np.random.default_rng(0).integers(-3, 4, (4, 9, 3)).astype(np.float32)
    weights = np.random.default_rng(1).integers(-3, 4, f(np, x).shape).astype(np.float32)
    # linear functions: the gradient is what basis vectors are weighted with
    f0 = f(np, np.zeros_like(x))
    wanted = np.stack([((f(np, e.reshape(x.shape)) - f0) * weights).sum() for e in np.eye(x.size, dtype=np.float32)])
    gradient = styrax.grad(lambda x: (f(jnp, x) * weights).sum())
    np.testing.assert_array_equal(np.ravel(styrax.jit(gradient)(x)), wanted)
    batch = np.stack([x, x[::-1], 2 * x])
    np.testing.assert_array_equal(styrax.jit(styrax.vmap(lambda x: f(jnp, x)))(batch), [f(np, x) for x in batch])
    found = styrax.jit(lambda x: lax.fori_loop(0, 3, lambda _, c: (f(jnp, c)[:, :9] % 5).astype(c.dtype), x))(x)
    for _ in range(3):
        x = f(np, x)[:, :9] % 5
    np.testing.assert_array_equal(found, x)


def test_nan_stays_where_it_is():
    x = np.ones((5, 7, 3), np.float32)
    x[2, 3] = [np.nan, np.inf, -np.inf]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(styrax.jit(lambda x: neighbours(jnp, x))(x), neighbours(np, x))


def test_channels_share_the_loop_of_columns():
    x = np.ones((40, 64, 3), np.float32)
    program = compile_to_loops(styrax.make_jaxpr(lambda x: jnp.roll(x, 1, 1) + x)(x), "f")
    assert "< 189 vector" in program.show(), program.show()
