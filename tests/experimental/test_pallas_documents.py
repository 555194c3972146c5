"""The programs of the guides to kernels: first steps, grids and block specs, masks, pipelines."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import pallas as pl
from styrax.experimental.pallas import tpu as pltpu
from styrax.experimental.pallas import triton as plgpu

from .both import same


def test_vectors_are_added():
    def add_vectors_kernel(x_ref, y_ref, o_ref):
        x, y = x_ref[...], y_ref[...]
        o_ref[...] = x + y

    @jax.jit
    def add_vectors(x, y):
        return pl.pallas_call(add_vectors_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)

    assert repr(add_vectors(jnp.arange(8), jnp.arange(8))) == "Array([ 0,  2,  4,  6,  8, 10, 12, 14], dtype=int32)"


def test_iota():
    def iota_kernel(o_ref):
        i = pl.program_id(0)
        o_ref[i] = i

    def iota(size):
        return pl.pallas_call(iota_kernel, out_shape=jax.ShapeDtypeStruct((size,), jnp.int32), grid=(size,))()

    assert repr(iota(8)) == "Array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int32)"


@pytest.mark.parametrize("activation", [lambda x: x, jax.nn.relu, jnp.tanh])
def test_products_with_an_activation(activation):
    def matmul_kernel(x_ref, y_ref, z_ref, *, activation):
        z_ref[...] = activation(x_ref[...] @ y_ref[...])

    def matmul(x, y):
        return pl.pallas_call(
            functools.partial(matmul_kernel, activation=activation),
            out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype),
            grid=(2, 2),
            in_specs=[pl.BlockSpec((x.shape[0] // 2, x.shape[1]), lambda i, j: (i, 0)),
                      pl.BlockSpec((y.shape[0], y.shape[1] // 2), lambda i, j: (0, j))],
            out_specs=pl.BlockSpec((x.shape[0] // 2, y.shape[1] // 2), lambda i, j: (i, j)),
        )(x, y)

    k1, k2 = jax.random.split(jax.random.key(0))
    x, y = jax.random.normal(k1, (64, 64)), jax.random.normal(k2, (64, 64))
    np.testing.assert_allclose(matmul(x, y), activation(x @ y), rtol=1e-5, atol=1e-5)
    xs, ys = jnp.stack([x, -x]), jnp.stack([y, y + 1])
    np.testing.assert_allclose(jax.vmap(matmul)(xs, ys), activation(xs @ ys), rtol=1e-5, atol=1e-4)


def show_program_ids(m, x_shape, block_shape, grid, index_map):
    """The numbers of the points of the grid, row after row, in the blocks that they see."""
    def kernel(o_ref):
        axes = range(len(grid))
        o_ref[...] = m.jnp.full(o_ref.shape, sum(10 ** (len(grid) - 1 - axis) * m.pl.program_id(axis) for axis in axes),
                                m.jnp.int32)

    return m.call(kernel, x_shape, "int32", grid=grid, out_specs=m.pl.BlockSpec(block_shape, index_map))()


@pytest.mark.parametrize("x_shape, block_shape, grid, index_map", [
    ((8, 6), (2, 3), (4, 2), lambda i, j: (i, j)),
    ((8, 6), (2, 3), (4, 2), lambda i, j: (i, 0)),
    ((7, 5), (2, 3), (4, 2), lambda i, j: (i, j)),
    ((4, 4), (4, 2), (2,), lambda i: (0, i)),
    ((8, 6), (None, 3), (4, 2), lambda i, j: (2 * i + 1, j)),
    ((4, 4), None, (2, 3), None),
], ids=["blocks", "overlapping", "beyond", "columns", "squeezed", "whole"])
def test_program_ids_in_their_blocks(x_shape, block_shape, grid, index_map):
    same(lambda m: show_program_ids(m, x_shape, block_shape, grid, index_map))


def test_program_ids_by_elements():
    def program(m, padding):
        spec = m.pl.BlockSpec((m.pl.Element(2, padding), m.pl.Element(3, (0, 0))), lambda i, j: (2 * i, 3 * j))

        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + 100 * m.pl.program_id(0)

        return m.call(kernel, (8, 6), "int32", grid=(4, 2), in_specs=[spec],
                      out_specs=m.pl.BlockSpec((2, 3), lambda i, j: (i, j)))(np.arange(48, dtype="int32").reshape(8, 6))

    for padding in ((0, 0), (1, 1)):
        same(lambda m, padding=padding: program(m, padding))


def test_matrices_are_accumulated():
    def matmul_kernel(x_ref, y_ref, z_ref, acc_ref, *, steps):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == steps - 1)
        def _():
            z_ref[...] = acc_ref[...].astype(z_ref.dtype)

    @functools.partial(jax.jit, static_argnames=["bm", "bk", "bn"])
    def matmul(x, y, *, bm=16, bk=8, bn=32):
        m, k = x.shape
        _, n = y.shape
        return pl.pallas_call(
            functools.partial(matmul_kernel, steps=k // bk),
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=0,
                in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
                          pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
                out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
                scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
                grid=(m // bm, n // bn, k // bk)),
            out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        )(x, y)

    x, y = (np.random.default_rng(0).normal(size=(2, 64, 64))).astype("float32")
    np.testing.assert_allclose(matmul(x, y), x @ y, rtol=1e-4, atol=1e-4)
    low = matmul(jnp.asarray(x, jnp.bfloat16), jnp.asarray(y, jnp.bfloat16))
    assert low.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(low, "float32"), x @ y, rtol=0.05, atol=0.3)


def test_masked_vectors():
    def add_kernel(x_ref, y_ref, o_ref, *, size, block):
        start = pl.program_id(0) * block
        where = pl.ds(start, block)
        mask = start + jnp.arange(block) < size
        x = plgpu.load(x_ref.at[where], mask=mask, other=0.0)
        y = plgpu.load(y_ref.at[where], mask=mask, other=0.0)
        plgpu.store(o_ref.at[where], x + y, mask=mask)

    def add(x, y, block=8):
        return pl.pallas_call(functools.partial(add_kernel, size=x.size, block=block),
                              out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(pl.cdiv(x.size, block),))(x, y)

    x, y = np.random.default_rng(0).normal(size=(2, 29)).astype("float32")
    np.testing.assert_array_equal(add(x, y), x + y)


def test_rows_are_normalised():
    def softmax_kernel(x_ref, o_ref):
        row = x_ref[...]
        e = jnp.exp(row - jnp.max(row, axis=-1, keepdims=True))
        o_ref[...] = e / jnp.sum(e, axis=-1, keepdims=True)

    @jax.jit
    def softmax(x):
        spec = pl.BlockSpec((4, x.shape[1]), lambda i: (i, 0))
        return pl.pallas_call(softmax_kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(pl.cdiv(x.shape[0], 4),),
                              in_specs=[spec], out_specs=spec)(x)

    x = np.random.default_rng(0).normal(size=(18, 33)).astype("float32")
    np.testing.assert_allclose(softmax(x), jax.nn.softmax(x), rtol=1e-5, atol=1e-6)


def test_blocks_that_scalars_choose():
    def kernel(blocks_ref, x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...] * blocks_ref[pl.program_id(0), pl.program_id(1)]

    blocks = jnp.array([[3, 1], [0, 2]])
    x = jnp.arange(32.0).reshape(4, 8)
    found = pl.pallas_call(
        kernel, jax.ShapeDtypeStruct((2, 8), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(2, 2),
            in_specs=[pl.BlockSpec((None, 8), lambda i, k, blocks: (blocks[i, k], 0))],
            out_specs=pl.BlockSpec((None, 8), lambda i, k, blocks: (i, 0))))(blocks, x)
    np.testing.assert_array_equal(found, [3 * x[3] + x[1], 2 * x[2]])
