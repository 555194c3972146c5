"""Convolutions against JAX's: values, both gradients, batching, shapes, errors."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import styrax
from styrax import lax
from styrax.cpu import microkernels, tiles
from styrax.transforms.api import jvp, vjp, vmap
from tests.lax.oracle import check, program, results

rng = np.random.default_rng(0)
NHWC = ("NHWC", "HWIO", "NHWC")

# lhs shape, rhs shape, strides, padding, keyword arguments
CASES = [
    ((2, 3, 6, 5), (4, 3, 3, 2), (1, 1), "SAME", dict()),
    ((2, 3, 6, 5), (4, 3, 3, 2), (2, 1), "VALID", dict()),
    ((2, 6, 5, 3), (3, 2, 3, 4), (2, 2), "SAME", dict(dimension_numbers=NHWC)),
    ((2, 3, 8), (4, 3, 3), (2,), [(1, 2)], dict(rhs_dilation=(2,))),
    ((2, 3, 4), (4, 3, 3), (1,), [(2, 2)], dict(lhs_dilation=(3,))),
    ((1, 2, 5, 4), (3, 2, 2, 2), (2, 1), [(1, 0), (2, 3)], dict(lhs_dilation=(2, 1), rhs_dilation=(1, 2))),
    ((2, 4, 7), (6, 2, 3), (1,), "SAME", dict(feature_group_count=2)),
    ((2, 7, 4), (3, 1, 8), (2,), "SAME", dict(feature_group_count=4, dimension_numbers=("NHC", "HIO", "NHC"))),
    ((4, 3, 7), (6, 3, 3), (1,), "VALID", dict(batch_group_count=2)),
    ((2, 3), (4, 3), (), "VALID", dict()),
    ((1, 2, 4, 3, 5), (2, 2, 2, 2, 3), (1, 2, 1), "SAME_LOWER", dict()),
    ((2, 5, 20, 20), (16, 5, 3, 3), (1, 1), "SAME", dict()),
    ((2, 5, 9, 7), (20, 5, 3, 2), (2, 3), "SAME", dict()),  # features in vectors, laid out anew
    ((2, 4, 9), (32, 2, 3), (2,), "SAME", dict(feature_group_count=2)),
    ((4, 3, 7), (32, 3, 3), (2,), "VALID", dict(batch_group_count=2)),
    # phases: of unequal length, without taps, with steps of their own, cropped
    ((2, 4, 5, 3), (3, 3, 3, 5), (1, 1), [(2, 1), (1, 1)], dict(lhs_dilation=(2, 2), dimension_numbers=NHWC)),
    ((2, 3, 5), (4, 3, 2), (1,), [(3, 4)], dict(lhs_dilation=(5,), rhs_dilation=(2,))),
    ((2, 3, 5), (4, 3, 4), (3,), [(-1, 2)], dict(lhs_dilation=(2,), rhs_dilation=(4,))),
    ((1, 2, 3, 2), (3, 2, 2, 3), (2, 1), [(-2, 1), (2, -1)], dict(lhs_dilation=(4, 3))),
    # too many, of which a place meets one tap, or a few
    ((1, 2, 3, 2), (3, 2, 2, 3), (1, 1), [(1, 1), (2, 1)], dict(lhs_dilation=(5, 7))),
    ((2, 3, 3, 4), (5, 3, 9, 11), (1, 1), [(7, 4), (12, 3)], dict(lhs_dilation=(5, 7))),
    ((2, 4, 3, 4), (6, 2, 8, 3), (3, 1), [(4, 4), (-1, 9)], dict(
        lhs_dilation=(5, 7), rhs_dilation=(2, 3), feature_group_count=2)),
    ((4, 3, 4, 5), (6, 5, 6, 6), (1, 2), [(5, 2), (3, 3)], dict(
        lhs_dilation=(5, 4), rhs_dilation=(1, 2), batch_group_count=2, dimension_numbers=("NHWC", "OIHW", "NHWC"))),
]


def functions(case):
    _, _, strides, padding, kwargs = case
    return (lambda x, y: lax.conv_general_dilated(x, y, strides, padding, **kwargs),
            lambda x, y: jax.lax.conv_general_dilated(x, y, strides, padding, **kwargs))


def arrays(case, dtype=np.float32):
    return tuple(rng.normal(size=shape).astype(dtype) for shape in case[:2])


def ids(case):
    return f"{case[0]}{case[3]}{list(case[4])}"


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_values(case, platform):
    check(platform, *functions(case), *arrays(case), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_derivatives(case, platform):
    f, g = functions(case)
    x, y = arrays(case)
    tx, ty = arrays(case)
    if platform == "xla":
        check(platform, lambda *a: jvp(f, a[:2], a[2:]), lambda *a: jax.jvp(g, a[:2], a[2:]), x, y, tx, ty, rtol=1e-4,
              atol=1e-4)
    ct = rng.normal(size=g(x, y).shape).astype(np.float32)
    check(platform, lambda x, y, c: vjp(f, x, y)[1](c), lambda x, y, c: jax.vjp(g, x, y)[1](c), x, y, ct, rtol=1e-4,
          atol=1e-4)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 2)])
@pytest.mark.parametrize("case", [CASES[i] for i in (1, 2, 3, 6, 8)], ids=ids)
def test_batching(case, axes):
    f, g = functions(case)
    args = [v if a is None else np.stack([v, v * 2, v[::-1]], a) for v, a in zip(arrays(case), axes, strict=True)]
    check("xla", vmap(f, axes), jax.vmap(g, axes), *args, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize(("dtype", "preferred"), [
    ("complex64", None), ("int32", None), ("int8", "int32"), ("bfloat16", None),
    ("float16", "float32"), ("bool", None)])
def test_dtypes(dtype, preferred, platform):
    import jax.numpy as jnp

    x, y = (np.asarray((3 * jnp.asarray(v)).astype(dtype)) for v in arrays(CASES[1]))
    if dtype == "complex64":
        x = x + 1j * x[::-1]
    check(platform, lambda x, y: lax.conv_general_dilated(x, y, (1, 1), "SAME", preferred_element_type=preferred),
          lambda x, y: jax.lax.conv_general_dilated(x, y, (1, 1), "SAME", preferred_element_type=preferred), x, y,
          rtol=2e-2 if "16" in dtype else 1e-4, atol=1e-3)


def test_negative_padding():
    # XLA:CPU itself takes wrong elements here, so the reference is the sum written out.
    x, y = rng.normal(size=(2, 3, 6)).astype(np.float32), rng.normal(size=(4, 3, 3)).astype(np.float32)
    padded = np.concatenate([x[..., 1:], np.zeros((2, 3, 1), np.float32)], -1)
    wanted = np.stack([np.einsum("nck,ock->no", padded[..., i : i + 3], y) for i in range(4)], -1)
    found = results("cpu", lambda x, y: lax.conv_general_dilated(x, y, (1,), [(-1, 1)]), x, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 1), (0, 2)]])
@pytest.mark.parametrize(("strides", "dilation"), [((1, 1), None), ((2, 3), None), ((2, 1), (2, 2))])
def test_conv_transpose(strides, dilation, padding, consistent):
    x, y = (rng.normal(size=s).astype(np.float32) for s in ((1, 5, 4, 2), (3, 4, 2, 3)))
    for transposed in (False, True):
        kernel = np.swapaxes(y, 2, 3).copy() if transposed else y
        kwargs = dict(rhs_dilation=dilation, transpose_kernel=transposed, use_consistent_padding=consistent)
        check("xla", lambda x, y: lax.conv_transpose(x, y, strides, padding, **kwargs),  # noqa: B023
              lambda x, y: jax.lax.conv_transpose(x, y, strides, padding, **kwargs), x, kernel, rtol=1e-4, atol=1e-4)  # noqa: B023


def test_patches_and_local():
    x = rng.normal(size=(2, 3, 5, 6)).astype(np.float32)
    check("xla", lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME"),
          lambda x: jax.lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME"), x)
    y = np.moveaxis(x, 1, -1).copy()
    check("xla", lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "VALID", dimension_numbers=NHWC),
          lambda x: jax.lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "VALID", dimension_numbers=NHWC), y)
    kernel = rng.normal(size=(4, 18, 4, 4)).astype(np.float32)
    check("xla", lambda x, k: lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (2, 3)),
          lambda x, k: jax.lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (2, 3)), x, kernel, rtol=1e-4,
          atol=1e-4)


EMPTY = [  # groups of features and of the batch, input, kernel
    (1, 1, (2, 3, 4), (0, 3, 1)), (2, 1, (2, 4, 4), (0, 2, 1)), (1, 2, (2, 4, 4), (0, 4, 1)),
    (1, 2, (0, 3, 4), (2, 3, 1)), (2, 1, (2, 0, 4), (2, 0, 1)), (1, 1, (2, 3, 0), (2, 3, 1)),
]


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("case", EMPTY, ids=str)
def test_empty(case, size):
    """No features, examples, places or mapped elements."""
    features, batches, first, second = case
    x, y = np.ones((size, *first), np.float32), np.ones((size, *second), np.float32)

    def functions(j):
        def conv(x, y):
            return j.lax.conv_general_dilated(x, y, (2,), "VALID", feature_group_count=features,
                                              batch_group_count=batches)

        loss = j.grad(lambda x, y: (conv(x, y) ** 2).sum(), (0, 1))
        return [(j.vmap(conv), (x, y)), (j.vmap(conv, (0, None)), (x, y[0] if size else np.ones(second, np.float32))),
                (j.vmap(conv, (None, 0)), (x[0] if size else np.ones(first, np.float32), y)),
                (conv, (x[0], y[0])) if size else (j.vmap(loss), (x, y)), (j.vmap(j.jit(loss)), (x, y))]

    for (ours, args), (theirs, _) in zip(functions(styrax), functions(jax), strict=True):
        for got, want in zip(styrax.tree.leaves(ours(*args)), jax.tree.leaves(theirs(*args)), strict=True):
            np.testing.assert_array_equal(got, want)


def test_parameters():
    for case in CASES[:3]:
        f, g = functions(case)
        ours, theirs = program(f, *arrays(case))[0].eqns[0], jax.make_jaxpr(g)(*arrays(case)).eqns[0]
        assert {k: str(v) for k, v in ours.params.items()} == {k: str(v) for k, v in theirs.params.items()}


def test_padding_names():
    for padding in ("SAME", "SAME_LOWER", "VALID"):
        assert lax.padtype_to_pads((5, 6), (3, 2), (2, 2), padding) == jax.lax.padtype_to_pads(
            (5, 6), (3, 2), (2, 2), padding)
    dims = lax.conv_dimension_numbers((1, 2, 5, 5), (3, 2, 3, 3), ("NHWC", "OIHW", "NCHW"))
    assert tuple(dims) == tuple(jax.lax.conv_dimension_numbers((1, 2, 5, 5), (3, 2, 3, 3), ("NHWC", "OIHW", "NCHW")))


X, K = np.zeros((1, 2, 5, 5), np.float32), np.zeros((3, 2, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("lhs", "rhs", "strides", "padding", "kwargs", "error", "message"),
    [
        (X, K[..., 0], (1, 1), "SAME", {}, TypeError, "ndim to be equal"),
        (X, np.zeros((3, 4, 3, 3), np.float32), (1, 1), "SAME", {}, ValueError, "feature dimension size"),
        (X, K, (1,), "SAME", {}, ValueError, "window_strides"),
        (X, K, (1, 1), "WRONG", {}, RuntimeError, "padding type"),
        (X, K, (1, 1), [(0, 0)], {}, TypeError, "explicit pads"),
        (X, K, (0, 1), "VALID", {}, ValueError, "positive"),
        (X, K, (1, 1), [(-9, 0), (0, 0)], {}, ValueError, "Negative padding"),
        (X, K, (1, 1), "VALID", dict(feature_group_count=3), ValueError, "must divide"),
        (X, K, (1, 1), "VALID", dict(feature_group_count=0), ValueError, "positive integer"),
        (X, K.astype(np.int32), (1, 1), "VALID", {}, TypeError, "same dtypes"),
        (X, K, (1, 1), "VALID", dict(preferred_element_type="bfloat16"), TypeError, "narrower"),
        (X, K, (1, 1), "VALID", dict(preferred_element_type="int32"), TypeError, "incompatible"),
        (X, K, (1, 1), "VALID", dict(dimension_numbers=("NHWC", "HWIO", "NHXC")), TypeError, "spatial characters"),
        (X, K, (1, 1), "VALID", dict(dimension_numbers=("NHWC", "HWIO")), TypeError, "length 3"),
        (X, K, (1, 1), "VALID", dict(dimension_numbers=("NHC", "HIO", "NHC")), TypeError, "ndim"),
        (X, K, (1, 1), "VALID", dict(dimension_numbers="NHWC"), TypeError, "tuple/list"),
        (X, K, (1, 1), "VALID", dict(dimension_numbers=("NHHC", "HWIO", "NHWC")), TypeError, "duplicate"),
        (X, K, (2, 2), "SAME", dict(lhs_dilation=(2, 3)), ValueError, "String padding"),
        (X, K, (1, 1), "VALID", dict(rhs_dilation=(2, 0)), TypeError, "dilations must be positive"),
    ],
)
def test_errors(lhs, rhs, strides, padding, kwargs, error, message):
    with pytest.raises(error, match=message):
        program(lambda: lax.conv_general_dilated(lhs, rhs, strides, padding, **kwargs))


# -- by kernels of products ----------------------------------------------------------------------------------

# large enough for a kernel: channels that fill rows, many and few; strides in phases, dilation, groups, holes, layouts
LARGE = [
    ((2, 9, 8, 64), (3, 3, 64, 32), (1, 1), "SAME", dict(dimension_numbers=NHWC)),
    ((3, 70, 40), (3, 40, 33), (1,), "VALID", dict(dimension_numbers=("NHC", "HIO", "NHC"))),
    ((2, 21, 19, 3), (7, 7, 3, 64), (2, 2), [(2, 3), (3, 2)], dict(dimension_numbers=NHWC)),
    ((2, 24, 11, 13), (48, 24, 3, 2), (3, 2), "SAME", dict()),
    ((1, 15, 14, 32), (2, 3, 32, 20), (2, 1), [(0, 4), (1, 0)], dict(rhs_dilation=(3, 2), dimension_numbers=NHWC)),
    ((2, 10, 12, 80), (3, 3, 40, 64), (1, 1), "SAME", dict(feature_group_count=2, dimension_numbers=NHWC)),
    ((2, 32, 9, 9), (32, 32, 3, 3), (1, 1), [(1, 2), (2, 1)], dict(lhs_dilation=(2, 2))),
    ((2, 6, 7, 5, 16), (2, 3, 2, 16, 48), (1, 2, 1), "SAME", dict(dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))),
    ((64, 34, 34, 8), (32, 32, 8, 24), (1, 1), "VALID", dict(dimension_numbers=NHWC)),  # as gradients of kernels are
    ((4, 9, 9, 100), (1, 1, 100, 50), (1, 1), "VALID", dict(dimension_numbers=NHWC)),
    # of the input's ends some is not met, or cut off
    ((2, 22, 22, 3), (7, 7, 3, 64), (2, 2), "VALID", dict(dimension_numbers=NHWC)),
    ((4, 31, 31, 8), (3, 3, 8, 32), (1, 1), [(-1, -1), (-2, 0)], dict(dimension_numbers=NHWC)),
    ((4, 30, 30, 8), (3, 3, 8, 32), (2, 2), [(-1, 1), (0, -3)], dict(dimension_numbers=NHWC)),
    ((1, 3, 3000), (48, 3, 40), (1,), "SAME", dict()),
]
KINDS = [("bfloat16", "float32"), ("bfloat16", "bfloat16"), ("int8", "int32"), ("uint8", "int32"),
         ("float16", "float16")]


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("case", LARGE, ids=ids)
def test_short_numbers(case, kinds):
    """Sums of whole numbers are exact, and rounded once."""
    _, _, strides, padding, kwargs = case
    low, high = {"uint8": (0, 256), "int8": (-128, 128)}.get(kinds[0], (-3, 4))
    x, y = (rng.integers(low, high, shape).astype(kinds[0]) for shape in case[:2])
    found = styrax.jit(lambda x, y: lax.conv_general_dilated(
        x, y, strides, padding, preferred_element_type=np.dtype(kinds[1]), **kwargs))(x, y)
    wide = np.int32 if "int" in kinds[0] else np.float32
    want = jax.lax.conv_general_dilated(x.astype(wide), y.astype(wide), strides, padding, **kwargs)
    found, want = np.asarray(found), np.asarray(want).astype(kinds[1])
    np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64))


def test_short_numbers_go_by_kernels():
    there = tiles.available() or "bf16" in microkernels.kernels()
    for case in LARGE:
        _, _, strides, padding, kwargs = case
        x, y = (np.zeros(shape, "bfloat16") for shape in case[:2])
        text = styrax.jit(lambda x, y, s=strides, p=padding, k=kwargs: lax.conv_general_dilated(x, y, s, p, **k)).lower(
            x, y).compile().as_text("loops")
        if max(case[1][:-2] if kwargs else case[1][2:]) > 1:
            assert ("_indirect(" in text) == there, case
        else:  # a product of matrices
            assert "_indirect(" not in text and ("tiles_" in text or "panels_" in text or not there), case


def test_infinities_stay_where_they_are():
    """What fills rows up is not multiplied with them."""
    x = np.ones((1, 12, 12, 24), "bfloat16")
    x[0, 5, 6, 7], x[0, 0, 0, 0] = np.nan, np.inf
    y = np.ones((3, 3, 24, 40), "bfloat16")
    found = np.asarray(styrax.jit(lambda x, y: lax.conv_general_dilated(
        x, y, (1, 1), "SAME", dimension_numbers=NHWC))(x, y)).astype(np.float32)
    assert np.isnan(found).any(-1).sum() == 9 and np.isinf(found).any(-1).sum() == 4


# lhs shape (as NHWC), rhs shape (as HWIO), strides, keyword arguments: too few features for kernels
FEW = [
    ((3, 9, 8, 19), (3, 3, 19, 16), (1, 1), {}),
    ((2, 9, 9, 12), (3, 2, 3, 20), (2, 1), dict(feature_group_count=4)),
    ((2, 8, 9, 5), (3, 3, 1, 5), (1, 1), dict(feature_group_count=5)),
    ((2, 7, 7, 4), (3, 3, 4, 6), (1, 1), dict(lhs_dilation=(2, 3))),
    ((4, 7, 6, 4), (2, 3, 4, 6), (1, 1), dict(batch_group_count=2)),
    ((2, 7, 6, 12), (1, 1, 12, 12), (1, 1), {}),
    ((1, 1, 1, 1), (4, 4, 1, 2), (1, 1), {}),
]


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("case, padding", [
    (case, padding) for case in FEW for padding in ("SAME", "VALID", [(1, 2), (0, -1)])
    if (padding == "SAME" or min(case[0]) > 1) and not (isinstance(padding, str) and "lhs_dilation" in case[3])],
    ids=str)
def test_short_numbers_of_few_features(case, padding, kind):
    """Small integers, of which every sum is exact; and a few infinities and NaN."""
    lhs, rhs, strides, more = case
    draw = np.random.default_rng(len(lhs) + rhs[0])
    x, y = (draw.integers(-2, 3, shape).astype(kind) for shape in (lhs, rhs))
    x[0, 0, 0, 0] = np.nan
    x[-1, -1, -1, -1] = np.inf

    def program(module):
        def f(x, y):
            return module.lax.conv_general_dilated(x, y, strides, padding, dimension_numbers=NHWC, **more)

        def loss(x, y):
            return f(x, y).astype(np.float32).sum()

        return lambda x, y: (f(x, y), *module.grad(loss, (0, 1))(x, y),
                             module.vmap(f, (0, None))(module.numpy.stack([x, x]), y))

    for a, b in zip(styrax.jit(program(styrax))(x, y), jax.jit(program(jax))(x, y), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32))


def test_short_numbers_in_derivatives_and_batches():
    x, y = (rng.integers(-2, 3, shape).astype("bfloat16") for shape in ((2, 3, 10, 10, 32), (3, 3, 32, 24)))

    def loss(module):
        def f(x, y):
            out = module.lax.conv_general_dilated(x, y, (2, 1), "SAME", dimension_numbers=NHWC)
            return (out.astype(np.float32) ** 2).sum()
        return module.jit(module.vmap(module.grad(f, (0, 1)), (0, None)))

    for a, b in zip(loss(styrax)(x, y), loss(jax)(x, y), strict=True):
        b = np.asarray(b).astype(np.float32)
        np.testing.assert_allclose(np.asarray(a).astype(np.float32), b, atol=2e-2 * np.abs(b).max())


# lhs shape (as NHWC), rhs shape (as HWIO), strides, keyword arguments
WINDOWS = [
    ((2, 14, 14, 64), (1, 1, 64, 96), (1, 1), {}),
    ((3, 15, 14, 40), (1, 1, 40, 72), (2, 3), {}),
    ((2, 32, 32, 8), (8, 8, 8, 48), (8, 8), {}),  # patches,
    ((2, 37, 35, 8), (7, 6, 8, 48), (9, 8), {}),  # apart from each other, with elements behind the last,
    ((2, 37, 35, 8), (4, 4, 8, 48), (8, 7), dict(rhs_dilation=(2, 1))),
    ((40, 9, 8, 16), (8, 8, 16, 48), (1, 1), dict(padding=[(0, -1), (0, 0)])),  # one for an image,
    ((2, 24, 24, 16), (5, 3, 16, 40), (1, 1), dict(rhs_dilation=(5, 8))),  # and interleaved
    ((2, 5, 6, 32), (8, 8, 32, 24), (1, 1), dict(lhs_dilation=(8, 8), padding=[(7, 7), (7, 7)])),
    ((2, 9, 6, 32), (5, 6, 32, 24), (3, 2), dict(lhs_dilation=(7, 9), padding=[(3, 8), (-2, 11)])),
    ((2, 14, 13, 64), (7, 5, 64, 3), (1, 1), dict(lhs_dilation=(2, 2), padding=[(3, 4), (2, 2)])),  # to an image
    ((1, 12, 11, 48), (11, 8, 48, 5), (1, 2), dict(lhs_dilation=(4, 3), padding=[(-1, 9), (7, 1)])),
]
LAYOUTS = [NHWC, ("NCHW", "OIHW", "NCHW"), ("NHWC", "OIHW", "NCHW"), ("CNHW", "IHWO", "HNWC")]


def placed(x, order, spec):
    return np.ascontiguousarray(x.transpose([order.index(d) for d in spec]))


@pytest.mark.parametrize("layout", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: f"{case[:3]}")
def test_windows_that_do_not_overlap(case, layout):
    """Kernels of one tap, patches, and what their gradients are."""
    left, right, strides, kwargs = case
    kwargs = {"padding": "VALID", "dimension_numbers": layout, **kwargs}
    x, y = placed(rng.normal(size=left).astype(np.float32), "NHWC", layout[0]), placed(
        rng.normal(size=right).astype(np.float32), "HWIO", layout[1])
    f, g = (lambda x, y, m=m: m.conv_general_dilated(x, y, strides, **kwargs) for m in (lax, jax.lax))
    check("cpu", f, g, x, y, rtol=1e-4, atol=1e-3)
    ct = rng.normal(size=g(x, y).shape).astype(np.float32)
    check("cpu", lambda x, y, c: vjp(f, x, y)[1](c), lambda x, y, c: jax.vjp(g, x, y)[1](c), x, y, ct, rtol=1e-4,
          atol=1e-3)
    for kind in ("bfloat16", "int8", "complex64"):
        x, y = (rng.integers(-3, 4, v.shape).astype(kind) for v in (x, y))
        wide = np.complex64 if kind == "complex64" else np.float32
        want = np.asarray(g(x.astype(wide), y.astype(wide)))
        found = styrax.jit(lambda x, y: lax.conv_general_dilated(
            x, y, strides, preferred_element_type=np.int32 if kind == "int8" else None, **kwargs))(x, y)  # noqa: B023
        np.testing.assert_array_equal(np.asarray(found), want.astype(np.asarray(found).dtype))


def test_windows_stay_apart_from_what_is_no_number():
    x, y = np.ones((2, 32, 32, 8), np.float32), np.ones((8, 6, 8, 48), np.float32)
    x[0, 9, 9, 3], x[1, 3, 7, 2] = np.nan, np.inf
    found = np.asarray(styrax.jit(lambda x, y: lax.conv_general_dilated(x, y, (8, 8), "VALID", dimension_numbers=NHWC))(
        x, y))
    assert np.isnan(found).any(-1).sum() == 1 and np.isinf(found).sum() == 0


@pytest.mark.parametrize("told", [None, "highest", jax.lax.Precision.DEFAULT.name.lower(), ("high", "default")])
@pytest.mark.parametrize("default", [None, "high", "BF16_BF16_F32"])
def test_precisions_by_default(default, told):
    x = np.ones((1, 1, 3, 3), np.float32)

    def found(package):
        with package.default_matmul_precision(default):
            return str(package.make_jaxpr(package.grad(
                lambda x: package.lax.conv(x, x, (1, 1), "SAME", precision=told).sum()))(x))

    precisions = re.compile(r"precision=(None|\(.*\)|\w+)")
    assert precisions.findall(found(styrax)) == precisions.findall(found(jax)) != []


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("space", [1, 2, "images first"])
def test_kernels_of_another_order(space, computed):
    """Kernels turned in the program are laid out anew: lanes that are features read them side by side."""
    rng = np.random.default_rng(0)
    first, space = space == "images first", 2 if space == "images first" else space
    x = rng.standard_normal((2, 16, 12, 12) if first else (2, *[12] * space, 16)).astype(np.float32)
    w = rng.standard_normal((32, 16, *[3] * space)).astype(np.float32)
    spec = ("NCHW", "HWIO", "NCHW") if first else ("NHWC", "HWIO", "NHWC") if space == 2 else ("NWC", "WIO", "NWC")

    def convolve(lib, x, w):
        w = (2 * w + 1 if computed else w).transpose(*range(2, 2 + space), 1, 0)
        return lib.conv_general_dilated(x, w, (1,) * space, "SAME", dimension_numbers=spec)

    f = styrax.jit(lambda x, w: convolve(lax, x, w))
    np.testing.assert_allclose(f(x, w), convolve(jax.lax, jax.numpy.asarray(x), jax.numpy.asarray(w)), rtol=1e-4,
                               atol=1e-3)
    sums = [line for line in f.lower(x, w).compile().as_text("loops").splitlines() if "add= mul(" in line]
    assert sums and not any("arg1[" in line for line in sums)
