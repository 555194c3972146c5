"""Operations that rearrange elements, and slices: programs, values, derivatives, batching, errors."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import styrax
import styrax.lax as slax
from styrax.transforms import api
from tests.lax.checks import Table, batch_axes, check_program, has_tangent, jvp_case, vjp_case, vmap_case
from tests.lax.harness import ENGINES, Case, stage

F = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
G = np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 0.5
V = np.array([1.0, -2.0, 3.0], np.float32)
I = np.arange(6, dtype=np.int32).reshape(2, 3)
ONE = np.array([[1.0, 2.0, 3.0]], np.float32)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _cases():
    def case(name, function, *args):
        return Case(name, lambda lax: lambda *xs: function(lax, *xs), *args)

    yield case("broadcast_in_dim", lambda lax, x: lax.broadcast_in_dim(x, (2, 4, 3), (0, 2)), F)
    yield case("broadcast_in_dim_one", lambda lax, x: lax.broadcast_in_dim(x, (5, 4, 3), (0, 2)), ONE)
    yield case("broadcast_in_dim_same", lambda lax, x: lax.broadcast_in_dim(x, (2, 3), (0, 1)), F)
    yield case("broadcast", lambda lax, x: lax.broadcast(x, (4, 1)), F)
    yield case("broadcast_none", lambda lax, x: lax.broadcast(x, ()), F)
    yield case("broadcast_to_rank", lambda lax, x: lax.broadcast_to_rank(x, 4), F)
    yield case("broadcast_like", lambda lax, x, y: lax.broadcast_like(x, y), V, F)
    yield case("reshape", lambda lax, x: lax.reshape(x, (3, 2)), F)
    yield case("reshape_many", lambda lax, x: lax.reshape(x, (4, 2, 3)), G)
    yield case("reshape_ones", lambda lax, x: lax.reshape(x, (1, 2, 1, 12, 1)), G)
    yield case("reshape_flat", lambda lax, x: lax.reshape(x, (24,)), G)
    yield case("reshape_dimensions", lambda lax, x: lax.reshape(x, (6,), (1, 0)), F)
    yield case("reshape_dimensions3", lambda lax, x: lax.reshape(x, (8, 3), (2, 0, 1)), G)
    yield case("reshape_scalar", lambda lax, x: lax.reshape(x, (1, 1)), np.float32(2))
    yield case("reshape_to_scalar", lambda lax, x: lax.reshape(x, ()), np.ones((1, 1), np.float32))
    yield case("reshape_empty", lambda lax, x: lax.reshape(x, (3, 0)), np.zeros((0, 5), np.float32))
    yield case("collapse", lambda lax, x: lax.collapse(x, 1), G)
    yield case("squeeze", lambda lax, x: lax.squeeze(x, (0,)), ONE)
    yield case("squeeze_negative", lambda lax, x: lax.squeeze(x, (-2,)), ONE)
    yield case("squeeze_none", lambda lax, x: lax.squeeze(x, ()), F)
    yield case("expand_dims", lambda lax, x: lax.expand_dims(x, (0, -1)), F)
    yield case("transpose", lambda lax, x: lax.transpose(x, (2, 0, 1)), G)
    yield case("transpose_identity", lambda lax, x: lax.transpose(x, (0, 1)), F)
    yield case("rev", lambda lax, x: lax.rev(x, (0, 2)), G)
    yield case("concatenate", lambda lax, x, y: lax.concatenate([x, y, x], 0), F, ONE)
    yield case("concatenate_1", lambda lax, x, y: lax.concatenate([x, y], 1), F, F * 2)
    yield case("concatenate_one", lambda lax, x: lax.concatenate([x], 0), F)
    yield case("concatenate_empty", lambda lax, x: lax.concatenate([x, lax.full((0, 3), np.float32(1))], 0), F)
    yield case("stack", lambda lax, x, y: lax.stack([x, y, x], 1), F, F * 2)
    yield case("unstack", lambda lax, x: lax.unstack(x, 1), F)
    yield case("split", lambda lax, x: lax.split(x, (1, 2), 1), F)
    yield case("tile", lambda lax, x: lax.tile(x, (2, 3)), F)
    yield case("pad", lambda lax, x, v: lax.pad(x, v, [(1, 2, 0), (0, 1, 2)]), F, np.float32(7))
    yield case("pad_negative", lambda lax, x, v: lax.pad(x, v, [(-1, 1, 0), (2, -1, 1)]), F, np.float32(7))
    yield case("pad_interior_negative", lambda lax, x, v: lax.pad(x, v, [(-1, -1, 2), (-2, -2, 1)]), F, np.float32(7))
    yield case("pad_nothing", lambda lax, x, v: lax.pad(x, v, [(0, 0, 0)] * 2), F, np.float32(7))
    yield case("pad_int", lambda lax, x, v: lax.pad(x, v, [(1, 0, 0), (0, 1, 0)]), I, np.int32(7))
    for dtype in (np.int32, np.uint8, np.float32, np.complex64, np.float16):
        yield case(f"iota_{np.dtype(dtype).name}", lambda lax, d=dtype: lax.iota(d, 5))
    yield case("broadcasted_iota", lambda lax: lax.broadcasted_iota(np.int32, (3, 4), 1))
    yield case("full", lambda lax, x: lax.full((2, 3), x), np.float32(3))
    yield case("full_constant", lambda lax: lax.full((2, 3), 1.5))
    yield case("full_scalar", lambda lax: lax.full((), 1, np.float32))
    yield case("full_like", lambda lax, x: lax.full_like(x, 1), F)
    yield case("full_like_dtype", lambda lax, x: lax.full_like(x, 1.5, np.int32), F)
    yield case("full_like_shape", lambda lax, x: lax.full_like(x, 1.5, shape=(3,)), F)
    yield case("slice", lambda lax, x: lax.slice(x, (0, 1, 0), (2, 3, 4)), G)
    yield case("slice_strides", lambda lax, x: lax.slice(x, (0, 0, 1), (2, 3, 4), (1, 2, 2)), G)
    yield case("slice_strides_3", lambda lax, x: lax.slice(x, (0, 0, 0), (1, 3, 4), (1, 2, 3)), G)
    yield case("slice_empty", lambda lax, x: lax.slice(x, (0, 2), (2, 2)), F)
    yield case("slice_in_dim", lambda lax, x: lax.slice_in_dim(x, -2, None, axis=-1), F)
    yield case("slice_in_dim_stride", lambda lax, x: lax.slice_in_dim(x, None, None, 2, axis=1), F)
    yield case("index_in_dim", lambda lax, x: lax.index_in_dim(x, -1, 1, keepdims=False), F)
    yield case("dynamic_slice_constant", lambda lax, x: lax.dynamic_slice(x, (0, -1), (1, 2)), F)
    for k, where in enumerate(((0, 0), (1, 1), (5, -1), (-1, 9))):
        i, j = map(np.int32, where)
        yield case(f"dynamic_slice_{k}", lambda lax, x, i, j: lax.dynamic_slice(x, (i, j), (1, 2)), F, i, j)
        yield case(f"dynamic_slice_only_clamp_{k}",
                   lambda lax, x, i, j: lax.dynamic_slice(x, (i, j), (1, 2), allow_negative_indices=False), F, i, j)
        yield case(f"dynamic_update_slice_{k}", lambda lax, x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
                   F, np.full((1, 2), 50, np.float32), i, j)
    yield case("dynamic_slice_u8", lambda lax, x, i: lax.dynamic_slice(x, (i, i), (1, 2)), F, np.uint8(200))
    yield case("dynamic_slice_vector", lambda lax, x, i: lax.dynamic_slice(x, i, (1, 2)), F, np.array([1, 0], np.int32))
    yield case("dynamic_slice_in_dim", lambda lax, x, i: lax.dynamic_slice_in_dim(x, i, 2, 1), F, np.int32(1))
    yield case("dynamic_slice_bool", lambda lax, x, i: lax.dynamic_slice_in_dim(x, i, 2, 1), F > 0, np.int32(1))
    yield case("shape_as_value", lambda lax: lax.shape_as_value((2, 3)))


CASES = list(_cases())
TABLE = Table(CASES)
# JAX passes constants of a whole-array kind through `jit` that we print at once.
UNLIKE = {"shape_as_value"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_value(case, engine):
    TABLE.check_value(case, engine)


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in UNLIKE], ids=repr)
def test_program(case):
    check_program(case)


SMOOTH = [c for c in CASES if c.args and has_tangent(c) and any(a.dtype.kind == "f" for a in c.args)]
JVPS = Table([jvp_case(c) for c in SMOOTH])
VJPS = Table([vjp_case(c) for c in SMOOTH])


@pytest.mark.parametrize("case", JVPS.cases, ids=repr)
def test_jvp_program(case):
    check_program(case)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", JVPS.cases, ids=repr)
def test_jvp_value(case, engine):
    JVPS.check_value(case, engine)


@pytest.mark.parametrize("case", VJPS.cases, ids=repr)
def test_vjp_program(case):
    check_program(case)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", VJPS.cases, ids=repr)
def test_vjp_value(case, engine):
    VJPS.check_value(case, engine)


# JAX 0.10.2 itself fails when it maps these along an axis that is not the first.
JAX_FAILS = {"split", "broadcast_in_dim_same"}


def _mapped():
    for case in CASES:
        if case.args:
            for k, axes in enumerate(batch_axes(case)):
                mapped = vmap_case(case, axes)
                mapped.name = f"{case.name}_{k}"
                yield mapped


MAPPED = Table([c for c in _mapped() if c.name.rsplit("_", 1)[0] not in JAX_FAILS])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", MAPPED.cases, ids=repr)
def test_vmap_value(case, engine):
    MAPPED.check_value(case, engine)


def test_vmap_split():
    out = stage(api.vmap(lambda x: slax.split(x, (1, 2), 1), in_axes=1), [np.ones((2, 5, 3), np.float32)])
    assert [a.shape for a in out.out_avals] == [(5, 2, 1), (5, 2, 2)]


@pytest.mark.parametrize(
    "name, args",
    [
        ("broadcast_in_dim", (F, (2, 3, 4), (0,))),
        ("broadcast_in_dim", (F, (2, 4), (0, 1))),
        ("broadcast_in_dim", (F, (2,), (0, 1))),
        ("broadcast_in_dim", (F, (2, 3), (1, 0))),
        ("broadcast_in_dim", (F, (2, 3), (0, 2))),
        ("broadcast_in_dim", (F, (-2, 3), (0, 1))),
        ("broadcast_in_dim", (F, (2, 3.5), (0, 1))),
        ("broadcast", (F, (-1,))),
        ("broadcast", (F, 3)),
        ("reshape", (F, (-1,))),
        ("reshape", (F, (6,), (0, 0))),
        ("reshape", (F, (6,), (0,))),
        ("reshape", (F, (6.0,))),
        ("squeeze", (F, (0,))),
        ("squeeze", (F, (5,))),
        ("squeeze", (ONE, (0, -2))),
        ("squeeze", (ONE, 0)),
        ("expand_dims", (F, (0, 0))),
        ("expand_dims", (F, (4,))),
        ("transpose", (F, (0,))),
        ("transpose", (F, (0, 0))),
        ("transpose", (F, (-1, 0))),
        ("rev", (F, (0, 0))),
        ("rev", (F, (2,))),
        ("rev", (F, (-1,))),
        ("concatenate", ([], 0)),
        ("concatenate", ([F, V], 0)),
        ("concatenate", ([F, F], 2)),
        ("concatenate", ([F, F], -1)),
        ("concatenate", ([F, ONE], 1)),
        ("concatenate", ([F, I], 1)),
        ("concatenate", ([1.0, 2.0], 0)),
        ("pad", (F, 1, [(0, 0, 0)] * 2)),
        ("pad", (F, V, [(0, 0, 0)] * 2)),
        ("pad", (F, 0.0, [(0, 0, 0)])),
        ("pad", (F, 0.0, [(0, 0, -1)] * 2)),
        ("pad", (F, 0.0, [(-2, -2, 0)] * 2)),
        ("pad", (F, 0.0, [(0, 0)] * 2)),
        ("iota", (np.int32, -1)),
        ("iota", (bool, 2)),
        ("broadcasted_iota", (np.int32, (2, 3), 2)),
        ("broadcasted_iota", (np.int32, (2, 3), -1)),
        ("full", ((2, 3), V)),
        ("full", ((2, -3), 1)),
        ("split", (F, (1, 2))),
        ("split", (F, (1, -1), 0)),
        ("split", (F, (1, 1), 2)),
        ("tile", (F, (2,))),
        ("slice", (F, (0, 0), (1, 4))),
        ("slice", (F, (0, -1), (1, 3))),
        ("slice", (F, (0, 2), (1, 1))),
        ("slice", (F, (0, 0), (1, 1), (1,))),
        ("dynamic_slice", (F, (0,), (1,))),
        ("dynamic_slice", (F, (0, 0), (1, 4))),
        ("dynamic_slice", (F, (0, 0.0), (1, 2))),
        ("dynamic_slice", (F, (0, V), (1, 2))),
        ("dynamic_slice", (F, I, (1, 2))),
        ("dynamic_slice", (F, V[:2], (1, 2))),
        ("dynamic_update_slice", (F, F, (0,))),
        ("dynamic_update_slice", (F, V, (0, 0))),
        ("dynamic_update_slice", (F, np.ones((3, 3), np.float32), (0, 0))),
        ("dynamic_update_slice", (F, I, (0, 0))),
        ("dynamic_update_slice", (F, F, (0, 0.0))),
        ("index_in_dim", (F, 2)),
        ("index_in_dim", (F, 0, 5)),
        ("collapse", (F, 1, 0)),
        ("broadcast_shapes", ((2,), (3,))),
    ],
)
def test_error_class(name, args):
    with pytest.raises(Exception) as theirs:
        getattr(jax.lax, name)(*args)
    with pytest.raises(type(theirs.value)):
        api.make_jaxpr(lambda: getattr(slax, name)(*args))()


def test_reshape_to_another_size():
    with pytest.raises(TypeError, match="total size"):
        stage(lambda x: slax.reshape(x, (4,)), [F])


def test_broadcast_shapes():
    assert slax.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert slax.broadcast_shapes((), ()) == ()


def test_traced_size_is_explained():
    with pytest.raises(TypeError, match="static"):
        stage(lambda n: slax.full((n, 2), 1.0), [np.int32(3)])


@pytest.mark.parametrize("shape, target, dims", [
    ((2, 3), (3, 2), (1, 0)), ((2, 3), (3, 5, 2), (2, 0)), ((2, 1), (3, 5, 2), (2, 0)),
    ((1, 3, 2), (2, 3, 4), (2, 1, 0)),
])
def test_broadcasts_may_permute(shape, target, dims):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    weights = np.random.default_rng(1).standard_normal(target).astype(np.float32)
    spread = lambda x: styrax.lax.broadcast_in_dim(x, target, dims)
    expected = np.asarray(jax.lax.broadcast_in_dim(x, target, dims))
    np.testing.assert_array_equal(spread(x), expected)
    np.testing.assert_array_equal(styrax.jit(spread)(x), expected)
    np.testing.assert_array_equal(styrax.vmap(spread)(np.stack([x, -x])), np.stack([expected, -expected]))
    gradient = styrax.grad(lambda x: (spread(x) * weights).sum())(x)
    # The gradient of a linear function holds its values at the unit vectors.
    units = np.eye(x.size, dtype=np.float32).reshape(x.size, *shape)
    by_hand = [float((np.asarray(jax.lax.broadcast_in_dim(u, target, dims)) * weights).sum()) for u in units]
    np.testing.assert_allclose(np.asarray(gradient).ravel(), by_hand, rtol=1e-5, atol=1e-5)
    with pytest.raises(TypeError, match="must not contain duplicates"):
        styrax.lax.broadcast_in_dim(np.ones((2, 2), np.float32), (2, 2), (0, 0))


@pytest.mark.parametrize("name", ["highest", "float32", "high", "default", "bfloat16", None, "FASTEST", "foo"])
def test_precisions_by_name(name):
    try:
        wanted = jax.lax.Precision(name).name
    except ValueError:
        with pytest.raises(ValueError):
            styrax.lax.Precision(name)
    else:
        assert styrax.lax.Precision(name).name == wanted


def test_algorithms_of_products():
    ours, theirs = (p.lax.DotAlgorithm("float32", "bfloat16", "float32", 3) for p in (styrax, jax))
    assert tuple(ours) == tuple(theirs) and ours._fields == theirs._fields
    for preset in jax.lax.DotAlgorithmPreset:
        mine = styrax.lax.DotAlgorithmPreset[preset.name]
        for side in ("supported_lhs_types", "supported_rhs_types"):
            assert getattr(mine, side) == getattr(preset, side), (preset, side)


@pytest.mark.parametrize("expression", ["lax.add(np.float32(1), np.int32(1))", "lax.concatenate([F, I], 0)",
                                        "lax.select(True, F, I)"])
def test_dtypes_that_differ_name_the_function_that_promotes(expression):
    space = {"np": np, "F": np.ones(2, np.float32), "I": np.ones(2, np.int32)}
    for package in (jax, styrax):
        with pytest.raises(TypeError, match=r"to have the same dtypes, got .*\. \(Tip: jnp\.\w+ is a similar function"):
            eval(expression, {**space, "lax": package.lax})
