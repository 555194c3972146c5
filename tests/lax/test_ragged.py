"""Ragged and scaled products, upper halves of products, barriers, composites, and arrays of keys that move."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import styrax.lax as lax
from styrax.core.settings import config
from styrax.transforms import api
from tests.lax.harness import ENGINES, assert_close, flat, jax_program, run_all, stage

RNG = np.random.default_rng(0)
M, K, N, G = 7, 3, 4, 3
SIZES = np.array([2, 0, 4], np.int32)
A = RNG.standard_normal((M, K)).astype(np.float32)
B = RNG.standard_normal((G, K, N)).astype(np.float32)
C = RNG.standard_normal((M, N)).astype(np.float32)


def _both(ours, theirs, args, tolerance=1e-5):
    for engine in ENGINES:
        out = run_all(engine, {"f": (ours, list(args))})["f"]
        for o, t in zip(out, flat(theirs(*args)), strict=True):
            assert_close(o, np.asarray(t), tolerance, absolute=1e-6)


def test_ragged_rows():
    _both(lax.ragged_dot, jax.lax.ragged_dot, (A, B, SIZES))


def test_ragged_contraction():
    def product(library):
        numbers = library.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
        return lambda a, c, sizes: library.ragged_dot_general(a, c, sizes, numbers)

    _both(product(lax), product(jax.lax), (A, C, SIZES))


def test_ragged_gradient():
    ours = lambda a, b: api.vjp(lambda a, b: lax.ragged_dot(a, b, SIZES), a, b)[1](C)
    theirs = lambda a, b: jax.vjp(lambda a, b: jax.lax.ragged_dot(a, b, SIZES), a, b)[1](C)
    _both(ours, theirs, (A, B))


def test_ragged_errors():
    with pytest.raises(TypeError):
        stage(lambda a, b, s: lax.ragged_dot(a, b, s), [A, B, SIZES[:2]])
    with pytest.raises(NotImplementedError):
        stage(lambda a, b, s: lax.ragged_dot(a, b, s, group_offset=s), [A, B, SIZES])


def _grouped(library, numbers, ragged, group):
    numbers = library.RaggedDotDimensionNumbers(numbers, ragged, group)
    return lambda x, y, sizes: library.ragged_dot_general(x, y, sizes, numbers)


BATCHED = (((2,), (2,)), ((0,), (1,)))
CONTRACTED = (((1,), (1,)), ((0,), (0,)))
PLAIN = (((1,), (1,)), ((), ()))


@pytest.mark.parametrize("sizes", [(3,), (2, 3)])
@pytest.mark.parametrize("x, y, numbers, ragged, group", [
    ((2, 7, 5), (3, 2, 5, 4), BATCHED, [1], [0]), ((2, 7, 5), (2, 7, 4), CONTRACTED, [1], []),
    ((2, 7, 5), (3, 5, 4), (((2,), (1,)), ((), ())), [1], [0]),
    ((2, 7, 5), (7, 2, 4), (((0, 1), (1, 0)), ((), ())), [1], []),
])
def test_sizes_for_each_position_outside(x, y, numbers, ragged, group, sizes):
    groups = RNG.integers(0, 3, sizes).astype(np.int32)
    args = RNG.standard_normal(x).astype(np.float32), RNG.standard_normal(y).astype(np.float32), groups
    _both(_grouped(lax, numbers, ragged, group), _grouped(jax.lax, numbers, ragged, group), args)


@pytest.mark.parametrize("x, y, sizes, numbers, ragged, group, message", [
    ((7, 5), (3, 5, 4), (4,), PLAIN, [0], [0], "expected rhs group dimension size to be 4, got 3"),
    ((7, 5), (3, 5, 4), (3,), PLAIN, [], [0], "expects exactly one lhs ragged dimension"),
    ((7, 5), (3, 5, 4), (3,), PLAIN, [0], [], "requires exactly one rhs group dimension"),
    ((7, 5), (3, 5, 4), (3,), PLAIN, [0], [1], "to be distinct from contracting and batch dimensions"),
    ((7, 5), (3, 5, 4), (3,), PLAIN, [0], [3], "rhs group dimension numbers to be nonnegative and less than"),
    ((7, 5), (3, 5, 4), (3,), PLAIN, [-1], [0], "lhs ragged dimension numbers to be nonnegative and less than"),
    ((7, 5), (7, 4), (3,), (((0,), (0,)), ((), ())), [0], [1], "requires zero group dimensions in the rhs"),
    ((2, 7, 5), (3, 2, 5, 4), (1, 3), BATCHED, [1], [0], r"expected group_sizes to have shape \(2, 3\), got \(1, 3\)"),
    ((7, 5), (3, 6, 4), (3,), PLAIN, [0], [0], r"to have the same shape, got \(5,\) and \(6,\)"),
    ((7, 5), (3, 5, 4), (), PLAIN, [0], [0], "expected rank of group_sizes to be >=1"),
])
def test_groups_that_do_not_fit(x, y, sizes, numbers, ragged, group, message):
    for library in (lax, jax.lax):
        with pytest.raises(TypeError, match=message):
            _grouped(library, numbers, ragged, group)(np.ones(x, np.float32), np.ones(y, np.float32),
                                                      np.ones(sizes, np.int32))


def test_scaled_product():
    x = A.astype(ml_dtypes.float8_e4m3fn)
    scale = np.array([[2.0], [0.5], [1.0], [4.0], [1.0], [0.25], [1.0]], np.float32)
    (out,) = run_all(
        "xla", {"f": (lambda x, y, s: lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type=np.float32),
                      [x, B[0].astype(ml_dtypes.float8_e4m3fn), scale])}
    )["f"]  # fmt: skip
    wanted = (x.astype(np.float32) * scale) @ B[0].astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("engine", ENGINES)
def test_upper_half_of_products(dtype, engine):
    info = np.iinfo(dtype)
    values = np.array([0, 1, 7, info.max, info.min, info.max // 3, info.max - 5], dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    with config.enable_x64(True):
        (out,) = run_all(engine, {"f": (lax.mulhi, [x, y])})["f"]
    wanted = [(int(a) * int(b)) >> info.bits for a, b in zip(x, y)]
    np.testing.assert_array_equal(out, np.array(wanted, dtype))


def test_barrier():
    program = lambda library: lambda x: library.optimization_barrier((x, library.sin(x)))
    ours = stage(lambda x: program(lax)(x), [A])
    theirs = jax_program(program(jax.lax), [A])
    assert [e.primitive.name for e in ours.eqns] == [e.primitive.name for e in theirs.eqns]
    _both(program(lax), program(jax.lax), (A,))
    gradient = lambda make, library: lambda x: make(lambda x: library.optimization_barrier(library.sin(x)), x)[1](A)
    _both(gradient(api.vjp, lax), gradient(jax.vjp, jax.lax), (A,))


def test_composite():
    double = lax.composite(lambda x, *, times: lax.mul(x, times), "my.scale", 2)
    closed = stage(lambda x: double(x, times=3.0), [A])
    (eqn,) = closed.eqns
    assert eqn.primitive.name == "composite" and eqn.params["attributes"] == (("times", 3.0),)
    _both(lambda x: double(x, times=3.0), lambda x: x * 3.0, (A,))
    _both(api.vmap(lambda x: double(x, times=3.0)), lambda x: x * 3.0, (A,))
    with pytest.raises(ValueError, match="custom_jvp"):
        api.jvp(lambda x: double(x, times=3.0), (A,), (A,))


def test_sinks_are_kept():
    closed = stage(lambda x: [lax.dce_sink(lax.sin(x)), x][1], [A])
    assert [e.primitive.name for e in closed.eqns] == ["sin", "dce_sink"]
    assert closed.effects


def test_keys_move_as_numbers_do():
    import styrax
    import styrax.random as random

    def program(keys, other):
        keys = lax.reshape(lax.broadcast_in_dim(keys, (2, 4), (1,)), (4, 2))
        keys = lax.transpose(lax.rev(keys, (0,)), (1, 0))
        joined = lax.concatenate([keys, lax.slice(keys, (0, 0), (1, 4))], 0)
        first = lax.squeeze(lax.dynamic_slice(joined, (np.int32(1), np.int32(2)), (1, 1)), (0, 1))
        rows = lax.split(joined, (1, 2), 0)
        chosen = lax.select(lax.eq(rows[0], rows[0]), rows[0], rows[0])
        return random.key_data(chosen), random.key_data(first), lax.ne(first, other)

    keys, other = random.split(random.key(0), 4), random.key(1)
    eager = program(keys, other)
    compiled = styrax.jit(program)(keys, other)
    jax_keys = jax.random.split(jax.random.key(0), 4)
    grid = jnp.flip(jnp.broadcast_to(jax_keys, (2, 4)).reshape(4, 2), 0).T
    joined = jnp.concatenate([grid, grid[:1]])
    for out in (eager, compiled):
        np.testing.assert_array_equal(np.asarray(out[0]), jax.random.key_data(joined[:1]))
        np.testing.assert_array_equal(np.asarray(out[1]), jax.random.key_data(joined[1, 2]))
        assert bool(out[2])
