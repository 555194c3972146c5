"""Gather and scatter against JAX's: values in all modes, derivatives, batching, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import styrax
import styrax.numpy as ours
from styrax import lax
from styrax.lax.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from styrax.transforms.api import grad, jvp, vjp, vmap
from tests.lax.oracle import check, program

rng = np.random.default_rng(0)


def numbers(kind, fields):
    ours = GatherDimensionNumbers if kind == "gather" else ScatterDimensionNumbers
    theirs = jax.lax.GatherDimensionNumbers if kind == "gather" else jax.lax.ScatterDimensionNumbers
    return ours(*fields), theirs(*fields)


# operand shape, index vectors, gather dimension numbers, slice sizes
GATHERS = [
    ((4, 5), [[1], [-1], [9], [3]], ((1,), (0,), (0,)), (1, 5)),
    ((4, 5), [[0, 4], [2, 2], [3, 9]], ((), (0, 1), (0, 1)), (1, 1)),
    ((4, 5), [[2, 1], [3, 4], [-2, 0]], ((1, 2), (), (0, 1)), (2, 3)),
    ((4, 5), [[1, 2], [4, 0]], ((0, 2), (), (1, 0)), (2, 2)),
    ((7,), [[[1], [2]], [[6], [7]]], ((), (0,), (0,)), (1,)),
    ((3, 4, 5), [[1], [2]], ((0, 2), (1,), (1,)), (3, 1, 2)),
    ((2, 5, 3), [[[1], [4]], [[2], [5]]], ((2,), (1,), (1,), (0,), (0,)), (1, 1, 3)),
]
MODES = [None, "clip", "fill", "promise_in_bounds"]


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", GATHERS, ids=lambda c: str(c[2]))
def test_gather_values(case, mode, platform):
    shape, indices, fields, sizes = case
    ours, theirs = numbers("gather", fields)
    x = rng.normal(size=shape).astype(np.float32)
    i = np.array(indices, np.int32)
    check(platform, lambda x, i: lax.gather(x, i, ours, sizes, mode=mode),
          lambda x, i: jax.lax.gather(x, i, theirs, sizes, mode=mode), x, i)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "complex64", "bfloat16", "int32", "uint16"])
def test_gather_fills_by_dtype(dtype, platform):
    x = jnp.arange(12).reshape(3, 4).astype(dtype)
    x = np.asarray(x)
    ours, theirs = numbers("gather", ((1,), (0,), (0,)))
    i = np.array([[1], [5]], np.int32)
    check(platform, lambda x, i: lax.gather(x, i, ours, (1, 4), mode="fill"),
          lambda x, i: jax.lax.gather(x, i, theirs, (1, 4), mode="fill"), x, i)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("index_dtype", ["uint8", "int8", "uint32", "int16"])
def test_gather_narrow_indices(index_dtype, platform):
    x = np.arange(300, dtype=np.float32)
    i = np.array([[3], [127], [np.iinfo(index_dtype).max]]).astype(index_dtype)
    ours, theirs = numbers("gather", ((), (0,), (0,)))
    for mode in ("clip", "fill"):
        check(platform, lambda x, i: lax.gather(x, i, ours, (1,), mode=mode),  # noqa: B023
              lambda x, i: jax.lax.gather(x, i, theirs, (1,), mode=mode), x, i)  # noqa: B023


def case_functions(case, mode="fill"):
    shape, indices, fields, sizes = case
    ours, theirs = numbers("gather", fields)
    i = np.array(indices, np.int32)
    return (lambda x, i=i: lax.gather(x, i, ours, sizes, mode=mode),
            lambda x, i=i: jax.lax.gather(x, i, theirs, sizes, mode=mode),
            rng.normal(size=shape).astype(np.float32), i)


@pytest.mark.parametrize("case", GATHERS, ids=lambda c: str(c[2]))
def test_gather_derivatives(case):
    f, g, x, _ = case_functions(case)
    t = rng.normal(size=x.shape).astype(np.float32)
    check("xla", lambda x, t: jvp(f, (x,), (t,))[1], lambda x, t: jax.jvp(g, (x,), (t,))[1], x, t)
    out = np.asarray(g(x))
    ct = rng.normal(size=out.shape).astype(np.float32)
    check("xla", lambda x, c: vjp(f, x)[1](c), lambda x, c: jax.vjp(g, x)[1](c), x, ct)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 1)])
@pytest.mark.parametrize("case", GATHERS[:6], ids=lambda c: str(c[2]))
def test_gather_batching(case, axes):
    f, g, x, i = case_functions(case)
    xs = x if axes[0] is None else np.stack([x, x + 1, x * 2], axes[0])
    js = i if axes[1] is None else np.stack([i, i[::-1], i], axes[1])
    check("xla", vmap(f, axes), jax.vmap(g, axes), xs, js)
    if axes == (0, 0):
        check("xla", vmap(vmap(f)), jax.vmap(jax.vmap(g)), np.stack([xs, xs]), np.stack([js, js]))


def test_gather_jaxpr_parameters():
    f, g, x, _ = case_functions(GATHERS[0], None)
    eqn = program(f, x)[0].eqns[0]
    theirs = jax.make_jaxpr(g)(x).eqns[0]
    assert set(eqn.params) == set(theirs.params)
    for name in eqn.params:
        assert str(eqn.params[name]) == str(theirs.params[name]), name


GOOD = dict(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))


@pytest.mark.parametrize(
    ("changes", "sizes", "indices", "error", "message"),
    [
        ({}, (1, 6), (3, 1), TypeError, "Slice size at index 1"),
        ({}, (2, 5), (3, 1), TypeError, "collapse slice dims"),
        ({}, (1,), (3, 1), TypeError, "one slice size"),
        ({"offset_dims": (3,)}, (1, 5), (3, 1), TypeError, "Offset dimension 0"),
        ({"offset_dims": (1, 1)}, (1, 5), (3, 1), TypeError, "not repeat"),
        ({"offset_dims": (1, 0)}, (1, 5), (3, 1), TypeError, "sorted"),
        ({"collapsed_slice_dims": (7,)}, (1, 5), (3, 1), TypeError, "collapsed_slice_dims"),
        ({"start_index_map": (0, 1)}, (1, 5), (3, 1), TypeError, "start_index_map"),
        ({"start_index_map": (9,)}, (1, 5), (3, 1), TypeError, "start_index_map"),
        ({}, (1, 5), (), TypeError, "leaf dimension"),
        ({"operand_batching_dims": (0,)}, (1, 5), (3, 1), TypeError, "disjoint|equal numbers"),
    ],
)
def test_gather_errors(changes, sizes, indices, error, message):
    with pytest.raises(error, match=message):
        lax.gather(np.zeros((4, 5)), np.zeros(indices, np.int32),
                             GatherDimensionNumbers(**{**GOOD, **changes}), sizes)


def test_index_errors():
    with pytest.raises(ValueError, match="integer"):
        lax.gather(np.zeros((4, 5)), np.zeros((3, 1)), GatherDimensionNumbers(**GOOD), (1, 5))
    with pytest.raises(ValueError, match="Unknown gather mode"):
        lax.gather(np.zeros((4, 5)), np.zeros((3, 1), int), GatherDimensionNumbers(**GOOD), (1, 5),
                             mode="wrong")


# operand shape, index vectors, scatter dimension numbers, updates shape
SCATTERS = [
    ((4, 5), [[1], [3], [9], [1]], ((1,), (0,), (0,)), (4, 5)),
    ((4, 5), [[0, 4], [2, 2], [3, 9]], ((), (0, 1), (0, 1)), (3,)),
    ((4, 5), [[2, 1], [3, 4], [-1, 0], [1, 0]], ((1, 2), (), (0, 1)), (4, 2, 2)),
    ((7,), [[[1], [2]], [[6], [7]]], ((), (0,), (0,)), (2, 2)),
    ((3, 4, 5), [[1], [2]], ((0, 2), (1,), (1,)), (3, 2, 4)),
    ((2, 5, 3), [[[1], [4]], [[2], [2]]], ((2,), (1,), (1,), (0,), (0,)), (2, 2, 3)),
]
NAMES = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


def scatter_functions(name, case, **kwargs):
    shape, indices, fields, updates_shape = case
    ours, theirs = numbers("scatter", fields)
    f, g = getattr(lax, name), getattr(jax.lax, name)
    return (lambda x, i, u: f(x, i, u, ours, **kwargs), lambda x, i, u: g(x, i, u, theirs, **kwargs),
            rng.normal(size=shape).astype(np.float32), np.array(indices, np.int32),
            rng.normal(size=updates_shape).astype(np.float32))


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("mode", [None, "clip", "promise_in_bounds"])
@pytest.mark.parametrize("case", SCATTERS, ids=lambda c: str(c[2]))
def test_scatter_values(case, mode, platform):
    for name in NAMES if mode is None else ("scatter_add", "scatter"):
        f, g, x, i, u = scatter_functions(name, case, mode=mode)
        check(platform, f, g, x, i, u)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("dtype", ["int8", "uint32", "complex64", "bfloat16"])
def test_scatter_dtypes(dtype, platform):
    for name in ("scatter", "scatter_add", "scatter_mul"):
        f, g, x, i, u = scatter_functions(name, SCATTERS[0])
        x, u = (np.asarray(jnp.asarray(4 * v).astype(dtype)) for v in (x, u))
        check(platform, f, g, x, i, u)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
def test_scatter_apply(platform):
    ours, theirs = numbers("scatter", ((1,), (0,), (0,)))
    x = rng.normal(size=(4, 5)).astype(np.float32)
    i = np.array([[1], [3], [1]], np.int32)
    check(platform, lambda x, i: lax.scatter_apply(x, i, lax.sin, ours, update_shape=(3, 5)),
          lambda x, i: jax.lax.scatter_apply(x, i, jnp.sin, theirs, update_shape=(3, 5)), x, i)


@pytest.mark.parametrize("case", SCATTERS, ids=lambda c: str(c[2]))
@pytest.mark.parametrize("name", NAMES)
def test_scatter_derivatives(name, case):
    unique = name == "scatter_mul"
    if unique and case[1][0] in case[1][1:]:
        pytest.skip("needs unique indices")
    f, g, x, i, u = scatter_functions(name, case, unique_indices=unique)
    if unique and (case[2] == SCATTERS[2][2] or len(case[2]) > 3):
        pytest.skip("windows overlap")
    if name in ("scatter_min", "scatter_max"):
        x, u = np.round(x), np.round(u)  # ties
    tx, tu = (rng.normal(size=v.shape).astype(np.float32) for v in (x, u))
    check("xla", lambda x, u, tx, tu: jvp(lambda x, u: f(x, i, u), (x, u), (tx, tu)),
          lambda x, u, tx, tu: jax.jvp(lambda x, u: g(x, i, u), (x, u), (tx, tu)), x, u, tx, tu, atol=1e-5)
    check("xla", lambda x, u, c: vjp(lambda x, u: f(x, i, u), x, u)[1](c),
          lambda x, u, c: jax.vjp(lambda x, u: g(x, i, u), x, u)[1](c), x, u, tx, atol=1e-5)


@pytest.mark.parametrize(
    "axes", [(0, 0, 0), (0, None, 0), (None, None, 0), (None, 0, None), (0, None, None), (1, 1, 1)])
@pytest.mark.parametrize("case", SCATTERS[:5], ids=lambda c: str(c[2]))
def test_scatter_batching(case, axes):
    f, g, x, i, u = scatter_functions("scatter_add", case)
    args = [v if a is None else np.stack([v, v[::-1], v], a) for v, a in zip((x, i, u), axes, strict=True)]
    check("xla", vmap(f, axes), jax.vmap(g, axes), *args)
    if axes == (0, 0, 0):
        check("xla", vmap(vmap(f)), jax.vmap(jax.vmap(g)), *(np.stack([v, v]) for v in args))


def test_second_derivatives():
    f, g, x, i, u = scatter_functions("scatter_add", SCATTERS[0])

    def ours(x, u):
        return lax.reduce_sum(lax.mul(f(x, i, u), lax.mul(f(x, i, u), f(x, i, u))), (0, 1))

    def theirs(x, u):
        return (g(x, i, u) ** 3).sum()

    def total(y):
        return lax.reduce_sum(lax.mul(y, y), (0, 1))

    check("xla", lambda x, u: grad(lambda u: total(grad(ours)(x, u)))(u),
          lambda x, u: jax.grad(lambda u: (jax.grad(theirs)(x, u) ** 2).sum())(u), x, u, rtol=1e-4, atol=1e-4)


SCATTER_GOOD = dict(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))


@pytest.mark.parametrize(
    ("changes", "updates", "message"),
    [
        ({}, np.zeros((3, 6)), "must not exceed"),
        ({}, np.zeros((2, 5)), "same as the bounds"),
        ({}, np.zeros((3, 5), np.int32), "same dtypes"),
        ({"update_window_dims": (5,)}, np.zeros((3, 5)), "update_window_dims"),
        ({"inserted_window_dims": (5,)}, np.zeros((3, 5)), "inserted_window_dims"),
        ({"scatter_dims_to_operand_dims": (5,)}, np.zeros((3, 5)), "scatter_dims_to_operand_dims"),
        ({}, np.zeros((3, 5, 1)), "rank 2"),
    ],
)
def test_scatter_errors(changes, updates, message):
    with pytest.raises(TypeError, match=message):
        lax.scatter(np.zeros((4, 5)), np.zeros((3, 1), int), updates,
                               ScatterDimensionNumbers(**{**SCATTER_GOOD, **changes}))


def test_scatter_mul_needs_unique_indices():
    f, _, x, i, u = scatter_functions("scatter_mul", SCATTERS[0])
    with pytest.raises(NotImplementedError, match="unique_indices"):
        program(lambda x, u: jvp(lambda u: f(x, i, u), (u,), (u,)), x, u)


@pytest.mark.parametrize("shape, count", [((50,), 70_001), ((9, 7), 20_003), ((1000,), 1 << 18)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "complex64"])
def test_many_updates_in_few_places(shape, count, dtype):
    """Added up in parts; places outside are dropped, and each update counts once."""
    draw = np.random.default_rng(3)
    x = ours.asarray(draw.integers(-9, 9, shape)).astype(dtype)
    places = draw.integers(0, shape[0] + 3, count).astype(np.int32)
    updates = draw.integers(0, 2, (count, *shape[1:]))
    wanted = np.concatenate([np.asarray(x).astype(np.complex64), np.zeros((3, *shape[1:]))])
    np.add.at(wanted, places, updates)
    add = styrax.jit(lambda x, i, u: x.at[i].add(u, mode="drop"))
    found = add(x, places, ours.asarray(updates).astype(dtype))
    tolerance = 0.05 if dtype == "bfloat16" else 0
    np.testing.assert_allclose(np.asarray(found).astype(np.complex64), wanted[:shape[0]], rtol=tolerance, atol=0)


def test_updates_of_empty_operands():
    add = styrax.jit(lambda x, i: x.at[i].add(1.0) * 2)
    assert vmap(add)(ours.zeros((0, 3)), ours.zeros(0, int)).shape == (0, 3)
    step = lambda s: (s[0].at[s[1]].set(s[0][s[1] + 1]), s[1] + 1)
    loop = lambda x, i: lax.while_loop(lambda s: s[0][s[1]] != 0, step, (x, i))[0]
    assert vmap(loop)(ours.zeros((0, 3)), ours.zeros(0, int)).shape == (0, 3)


@pytest.mark.parametrize("axes, indices", [((1,), [[2, -1]]), ((0, 2), [[3, 1, -6], [0, 9, -1]]), ((1, 2), [[1], [5]])])
def test_index_take(axes, indices):
    x = rng.normal(size=(4, 5, 3)).astype(np.float32)
    given = tuple(np.array(i, np.int32) for i in indices)
    check("cpu", lambda x: lax.index_take(x, given, axes), lambda x: jax.lax.index_take(x, given, axes), x)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("shape", "sizes"), [((0,), (1,)), ((3,), (5,)), ((0, 2), (1, 0)), ((0, 2), (1, 3))])
@pytest.mark.parametrize("count", [0, 1])
def test_gather_of_no_windows(count, sizes, shape, compiled):
    """Without indices no window is too large."""

    def found(package):
        lax, jnp = package.lax, package.numpy
        numbers = lax.GatherDimensionNumbers(tuple(range(1, len(shape) + 1)), (), (0,))
        gather = lambda x, i: lax.gather(x, i, numbers, sizes, mode="clip")
        try:
            out = (package.jit(gather) if compiled else gather)(jnp.zeros(shape), jnp.zeros((count, 1), int))
            return out.shape, str(out.dtype)
        except TypeError:
            return "TypeError"

    assert found(styrax) == found(jax)
