"""Sorting and top-k against JAX's: order, stability, several keys, derivatives, batching, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import styrax
import styrax.numpy
from styrax import lax
from styrax.compile.costs import instructions
from styrax.compile.pipeline import compile_to_loops
from styrax.transforms.api import jvp, vjp, vmap
from tests.lax.oracle import check, program

rng = np.random.default_rng(0)
PLATFORMS = ["xla", "cpu"]
DTYPES = ["float32", "int32", "uint32", "int8", "uint8", "int16", "uint16", "bool", "bfloat16", "float16", "complex64"]


def draw(shape, dtype):
    if dtype == "bool":
        return rng.integers(0, 2, size=shape).astype(bool)
    if "int" in dtype:
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape).copy()
    x = np.round(rng.normal(size=shape) * 10) / 4
    flat = x.reshape(-1)
    flat[: len(flat) // 8] = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], size=len(flat) // 8)
    x = rng.permutation(flat).reshape(shape)
    if dtype == "complex64":
        out = np.empty(shape, dtype)
        out.real, out.imag = x, rng.permutation(flat).reshape(shape)
        return out
    return np.asarray(jnp.asarray(x, jnp.float32).astype(dtype))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_key(dtype, platform):
    for n in (1, 2, 9, 40, 5000):
        x = draw((n,), dtype)
        i = np.arange(n, dtype=np.int32)
        check(platform, lambda x, i: lax.sort((x, i)), lambda x, i: jax.lax.sort((x, i)), x, i)
        check(platform, lax.sort, jax.lax.sort, x)


def test_64_bits():
    with jax.enable_x64(True):
        from styrax.core.settings import config

        with config.enable_x64(True):
            for dtype in ("float64", "int64", "uint64"):
                for n in (5, 3000):
                    x = draw((n,), dtype)
                    i = np.arange(n, dtype=np.int32)
                    check("cpu", lambda x, i: lax.sort((x, i)), lambda x, i: jax.lax.sort((x, i)), x, i)
                    check("cpu", lambda x: lax.top_k(x, 5), lambda x: jax.lax.top_k(x, 5), x)


def test_signs_of_zero_keep_their_order():
    x = np.array([0.0, -0.0, 1, 0.0, -0.0, np.nan], np.float32)
    for platform in PLATFORMS:
        check(platform, lambda x: lax.bitcast_convert_type(lax.sort(x), np.int32),
              lambda x: jax.lax.bitcast_convert_type(jax.lax.sort(x), np.int32), x)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("n", [7, 300])
def test_several_keys(n, platform):
    keys = [rng.integers(0, 4, size=(3, n)).astype(d) for d in ("float32", "int8", "uint32")]
    i = np.broadcast_to(np.arange(n, dtype=np.int32), (3, n)).copy()
    for num_keys in (1, 2, 3):
        check(platform, lambda *xs: lax.sort(xs, num_keys=num_keys), lambda *xs: jax.lax.sort(xs, num_keys=num_keys),  # noqa: B023
              *keys, i)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_dimensions(dimension, platform):
    x = draw((3, 30, 4), "float32")
    check(platform, lambda x: lax.sort(x, dimension), lambda x: jax.lax.sort(x, dimension), x)
    y = draw((3, 30, 4), "int32")
    check(platform, lambda x, y: lax.sort_key_val(x, y, dimension), lambda x, y: jax.lax.sort_key_val(x, y, dimension),
          x, y)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_a_few_of_long_rows(dtype):
    """They are in blocks of 64, 32 or 16 elements; the last of a row are in none."""
    for shape, k, axis in (((9000,), 65, 0), ((8192,), 256, 0), ((2, 9001), 100, 1), ((8363, 3), 70, 0),
                           ((5007,), 150, 0), ((2111,), 65, 0), ((1000,), 80, 0)):
        x = draw(shape, dtype)
        with np.errstate(invalid="ignore"):
            rows = [x, np.full_like(x, x.reshape(-1)[-1]), ~x if dtype == "bool" else x % 3]
        for y in rows:
            check("cpu", lambda x: lax.top_k(x, k, axis=axis), lambda x: tuple(jax.lax.top_k(x, k, axis=axis)), y)  # noqa: B023
    x = draw((3, 8192), dtype)
    check("cpu", lambda x: lax.map(lambda row: lax.top_k(row, 80), x),
          lambda x: jax.lax.map(lambda row: tuple(jax.lax.top_k(row, 80)), x), x)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_top_k(dtype, platform):
    for shape, k, axis in (((9,), 9, -1), ((3, 50), 4, -1), ((40, 3), 1, 0), ((2, 300), 100, 1), ((5,), 0, 0),
                           ((3, 500), 7, -1), ((65,), 1, 0), ((68, 2), 4, 0), ((2, 69), 4, 1), ((1, 1000), 64, 1)):
        x = draw(shape, dtype)
        check(platform, lambda x: lax.top_k(x, k, axis=axis), lambda x: tuple(jax.lax.top_k(x, k, axis=axis)), x)  # noqa: B023


def test_how_long_a_search_of_candidates_takes_is_bounded():
    """What is unknown is compiled with care at once, which takes twice as long as the first call should."""
    x = np.zeros((2, 5000), np.float32)
    compiled = compile_to_loops(styrax.make_jaxpr(lambda x: lax.top_k(x, 100))(x), "f")
    assert instructions(compiled.statements, ending=32.0) < 1e8


@pytest.mark.parametrize("platform", PLATFORMS)
def test_approximate(platform):
    x = rng.normal(size=(3, 200)).astype(np.float32)
    check(platform, lambda x: lax.approx_max_k(x, 5), lambda x: jax.lax.approx_max_k(x, 5), x)
    check(platform, lambda x: lax.approx_min_k(x, 5, reduction_dimension=0 + 1),
          lambda x: jax.lax.approx_min_k(x, 5, reduction_dimension=1), x)


def test_approximate_sizes():
    for n in (100, 1000, 5000, 100000):
        for k in (1, 3, 10, 100):
            for shape in ((n,), (2, n)):
                for target in (0.95, 0.5):
                    aval = jax.ShapeDtypeStruct(shape, "float32")
                    theirs = jax.eval_shape(lambda x: jax.lax.approx_max_k(
                        x, k, recall_target=target, aggregate_to_topk=False), aval)[0].shape  # noqa: B023
                    ours = program(lambda x: lax.approx_max_k(x, k, recall_target=target, aggregate_to_topk=False),  # noqa: B023
                                   np.empty(shape, np.float32))[0].out_avals[0].shape
                    assert ours == theirs, (n, k, shape, target)


def test_derivatives():
    x, y = rng.normal(size=(3, 8)).astype(np.float32), rng.normal(size=(3, 8)).astype(np.float32)
    for axis in (0, 1):
        f, g = (lambda x, y: lax.sort((x, y), axis)), (lambda x, y: jax.lax.sort((x, y), axis))  # noqa: B023
        check("xla", lambda x, y: jvp(f, (x, y), (y, x)), lambda x, y: jax.jvp(g, (x, y), (y, x)), x, y)  # noqa: B023
        check("xla", lambda x, y: vjp(f, x, y)[1]((y, x)), lambda x, y: jax.vjp(g, x, y)[1]((y, x)), x, y)  # noqa: B023
    check("xla", lambda x, y: jvp(lambda x: lax.top_k(x, 3)[0], (x,), (y,)),
          lambda x, y: jax.jvp(lambda x: jax.lax.top_k(x, 3)[0], (x,), (y,)), x, y)
    check("xla", lambda x, y: vjp(lambda x: lax.top_k(x, 8)[0], x)[1](y),
          lambda x, y: jax.vjp(lambda x: jax.lax.top_k(x, 8)[0], x)[1](y), x, y)
    i = np.arange(24, dtype=np.int32).reshape(3, 8)
    check("xla", lambda x, y: jvp(lambda x: lax.sort((x, i))[0], (x,), (y,)),
          lambda x, y: jax.jvp(lambda x: jax.lax.sort((x, i))[0], (x,), (y,)), x, y)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_batching(axis):
    x = draw((3, 5, 6), "float32")
    check("xla", vmap(lambda x: lax.sort(x, 0), axis), jax.vmap(lambda x: jax.lax.sort(x, 0), axis), x)
    check("xla", vmap(lambda x: lax.top_k(x, 2, axis=0), axis),
          jax.vmap(lambda x: tuple(jax.lax.top_k(x, 2, axis=0)), axis), x)
    y = draw((5, 6), "int32")
    if axis == 0:
        check("xla", vmap(lambda x, y: lax.sort((x, y)), (0, None)),
              jax.vmap(lambda x, y: jax.lax.sort((x, y)), (0, None)), x, y)


X = np.zeros(7, np.float32)


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (lambda: lax.sort((X, X[:3])), TypeError),
        (lambda: lax.sort((X, X), num_keys=3), ValueError),
        (lambda: lax.sort((X, X), num_keys=0), ValueError),
        (lambda: lax.sort(()), TypeError),
        (lambda: lax.sort(X, dimension=2), ValueError),
        (lambda: lax.sort(np.float32(3)), ValueError),
        (lambda: lax.top_k(X, 8), ValueError),
        (lambda: lax.top_k(X, -1), ValueError),
        (lambda: lax.top_k(np.float32(1), 1), ValueError),
        (lambda: lax.top_k(X.astype(np.complex64), 2), ValueError),
        (lambda: lax.approx_max_k(X.astype(np.int32), 3), ValueError),
        (lambda: lax.approx_max_k(X, 9), ValueError),
    ],
)
def test_errors(run, error):
    with pytest.raises(error):
        program(run)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint16", "int32", "bool", "complex64"])
def test_eager_rows_of_all_lengths(dtype):
    """One program sorts short rows and long ones."""
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 7, 63, 64, 65, 300):
        for shape, axis in (((size,), 0), ((3, size), 1), ((size, 3), 0), ((2, size, 2), 1)):
            x = rng.integers(-9, 10, shape).astype(dtype)
            if dtype.startswith("float") and size > 2:
                x.flat[[0, -1]] = np.nan, -0.0
            np.testing.assert_array_equal(styrax.numpy.sort(x, axis), np.sort(x, axis))
            np.testing.assert_array_equal(styrax.numpy.argsort(x, axis), np.argsort(x, axis, kind="stable"))
    with styrax.enable_x64(True):
        for size in (0, 1, 64, 65):
            x, y = rng.integers(-3, 4, (2, size))
            np.testing.assert_array_equal(styrax.numpy.lexsort((x, y)), np.lexsort((x, y)))
            np.testing.assert_array_equal(styrax.numpy.sort(x * 1e300), np.sort(x * 1e300))


@pytest.mark.parametrize("f", [
    styrax.numpy.sort, lambda x: lax.top_k(x, 5), lambda x: styrax.numpy.searchsorted(styrax.numpy.sort(x), x)])
def test_what_is_short_runs_at_once(f):
    """Searches end by themselves: they do not make a program one of which nobody knows how long it takes."""
    compiled = styrax.jit(f).lower(np.ones(100, np.float32)).compile().runtime_executable()
    assert compiled.program.work < 1e6
    assert not compiled.queued
