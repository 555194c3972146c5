"""Iterating over an array: its rows as arrays, as JAX gives them."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest

import styrax

ARRAYS = {
    "vector": np.arange(5, dtype=np.float32), "matrix": np.arange(6, dtype=np.int8).reshape(2, 3),
    "three dimensions": np.arange(24, dtype=np.uint16).reshape(2, 3, 4), "one": np.ones((1, 1), bool),
    "none": np.zeros((0, 3), np.float32), "empty rows": np.zeros((3, 0), np.int32),
    "complex": np.array([1 + 2j, np.nan], np.complex64), "bfloat16": np.array([1, np.inf], ml_dtypes.bfloat16),
    "int4": np.array([1, -3], ml_dtypes.int4), "fp8": np.array([0.5, 2], ml_dtypes.float8_e4m3fn),
}


def told(row):
    return row.shape, str(row.dtype), row.weak_type, row._committed, np.asarray(row).tolist()


@pytest.mark.parametrize("kind", ARRAYS)
def test_rows(kind):
    found, expected = (list(map(told, j.numpy.asarray(ARRAYS[kind]))) for j in (styrax, jax))
    np.testing.assert_equal(found, expected)


def test_weak_types_and_devices_stay():
    for j in (styrax, jax):
        weak = j.numpy.broadcast_to(2.0, (3,))
        assert weak.weak_type and [x.weak_type for x in weak] == [True] * 3
        there = j.device_put(np.arange(3), j.devices()[0])
        assert [x._committed for x in there] == [True] * 3 and all(x.devices() == there.devices() for x in there)


def test_rows_are_copies():
    x = styrax.numpy.arange(6.0).reshape(2, 3)
    first, second = x
    styrax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert first.tolist() == [0, 1, 2] and second.tolist() == [3, 4, 5]


def test_what_is_deleted_has_no_more_rows():
    x = styrax.numpy.arange(3.0)
    rows = iter(x)
    assert next(rows) == 0
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        next(rows)


def test_no_transfer():
    x = styrax.numpy.arange(3.0)
    with styrax.transfer_guard("disallow"):
        assert [v.shape for v in x] == [()] * 3


def test_no_rows_of_numbers():
    for j in (styrax, jax):
        with pytest.raises(TypeError, match="iteration over a 0-d array"):
            iter(j.numpy.float32(1))


def test_under_transformations(rng=np.random.default_rng(0)):
    x = rng.standard_normal((3, 2)).astype(np.float32)
    for j in (styrax, jax):
        def f(x, j=j):
            a, b, c = x
            return j.numpy.sin(a) * b + c
        results = f(x), j.jit(f)(x), j.vmap(f)(x[None])[0], j.jit(j.grad(lambda x, f=f: f(x).sum()))(x)
        if j is styrax:
            mine = results
    for got, want in zip(mine, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
