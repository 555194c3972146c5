"""Kernels' calls under transformations: vmap, forward mode, control flow, compilation."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

from .both import ORACLE, OURS, same, same_error

X = np.arange(12, dtype="float32")
XX = np.stack([X, X * 2 + 1])


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def multiply(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] * y_ref[...]


def shifted(x_ref, o_ref, s_ref):
    o_ref[...] = s_ref[...]
    s_ref[...] = x_ref[...]


@pytest.mark.parametrize("in_axes, out_axes, x", [
    (0, 0, XX), (1, 1, XX.T), (0, 1, XX), (0, 0, np.zeros((1, 12), "float32")),
], ids=["front", "back", "turned", "one"])
def test_vmap(in_axes, out_axes, x):
    same(lambda m: m.jax.vmap(m.blocks(copy), in_axes, out_axes)(x))


def test_vmap_of_some_operands():
    same(lambda m: m.jax.vmap(m.blocks(multiply, operands=2), in_axes=(0, None))(XX, X))


def test_vmap_of_vmap():
    same(lambda m: m.jax.vmap(m.jax.vmap(m.blocks(copy)), in_axes=1)(np.stack([XX, XX + 1, XX - 1])))


def test_vmap_leaves_indices_alone():
    def program(m):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * m.pl.num_programs(0) + m.pl.program_id(0)

        return m.jax.vmap(m.blocks(kernel, (10,)))(XX[:, :10])

    same(program)


def test_vmap_with_scratch_memory():
    # examples run one after the other: the first blocks of all but the first find what the one before has left
    same(lambda m: m.jax.vmap(m.blocks(shifted, scratch_shapes=[m.tpu.VMEM((4,), m.jnp.float32)]))(XX))


def test_vmap_with_aliases():
    def kernel(x_ref, y_ref, o_ref):
        o_ref[0] = y_ref[0]

    def program(m):
        return m.jax.vmap(m.call(kernel, input_output_aliases={0: 0}), in_axes=(None, 1))(X, m.jnp.ones((12, 2)))

    same(program)


def test_vmap_of_sizes():
    def program(m):
        return m.jax.vmap(lambda n: m.blocks(copy, steps=n)(X))(m.jnp.arange(4))

    same(program)


@pytest.mark.parametrize("x_axis, s_axis", [(0, 0), (0, None), (None, 0), (None, None)])
def test_scalars_fetched_before(x_axis, s_axis):
    def program(m):
        def kernel(s_ref, x_ref, o_ref):
            o_ref[...] = x_ref[...] + s_ref[m.pl.program_id(0)]

        spec = m.tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(3,), in_specs=[m.pl.BlockSpec((4,), lambda i, s: s[i])],
            out_specs=m.pl.BlockSpec((4,), lambda i, s: i))
        call = m.call(kernel, grid_spec=spec)
        s = np.array([2, 0, 1], "int32")
        arguments = (np.stack([s, s[::-1]]) if s_axis == 0 else s, XX if x_axis == 0 else X)
        if x_axis is s_axis is None:
            return call(*arguments)
        return m.jax.vmap(call, in_axes=(s_axis, x_axis))(*arguments)

    same(program)


def test_jvp():
    same(lambda m: m.jax.jvp(m.blocks(multiply, operands=2), (X, X + 2), (X + 1, X)))
    same(lambda m: m.jax.jit(lambda x: m.jax.jvp(m.blocks(copy, (10,)), (x,), (x + 1,)))(X[:10]))


def test_jvp_with_operands_that_do_not_vary():
    x, t = jnp.asarray(X), jnp.asarray(X + 1)
    _, tangent = jax.jvp(lambda x: OURS.blocks(multiply, operands=2)(x, X + 3), (x,), (t,))
    np.testing.assert_array_equal(tangent, (X + 1) * (X + 3))
    _, tangents = jax.vmap(lambda x: jax.jvp(lambda x: OURS.blocks(multiply, operands=2)(x, X + 3), (x,), (t,)))(
        jnp.asarray(XX))
    np.testing.assert_array_equal(tangents, np.stack([(X + 1) * (X + 3)] * 2))


def test_jvp_with_scratch_memory():
    call = OURS.blocks(shifted, scratch_shapes=[OURS.tpu.VMEM((4,), jnp.float32)])
    _, tangent = jax.jvp(call, (jnp.asarray(X),), (jnp.asarray(X + 1),))
    np.testing.assert_array_equal(tangent[4:], X[:8] + 1)


def test_a_rule_for_reverse_mode():
    @jax.custom_vjp
    def product(x, y):
        return OURS.blocks(multiply, operands=2)(x, y)

    product.defvjp(lambda x, y: (product(x, y), (x, y)), lambda res, ct: (product(ct, res[1]), product(ct, res[0])))
    found = jax.jit(jax.grad(lambda x, y: product(x, y).sum(), argnums=(0, 1)))(jnp.asarray(X), jnp.asarray(X + 1))
    np.testing.assert_array_equal(found[0], X + 1)
    np.testing.assert_array_equal(found[1], X)


@pytest.mark.parametrize("program", [
    lambda m: m.jax.grad(lambda x: m.blocks(copy)(x).sum())(X),
    lambda m: m.jax.linearize(m.blocks(copy), X),
    lambda m: m.jax.jvp(m.call(copy, input_output_aliases={0: 0}), (X,), (X,)),
    lambda m: m.jax.jvp(lambda x: m.jax.jit(lambda n: m.blocks(copy, steps=n)(x))(2), (X,), (X,)),
], ids=["grad", "linearize", "aliases", "sizes"])
def test_what_cannot_be_differentiated(program):
    same_error(program)


@pytest.mark.parametrize("program", [
    lambda m: m.lax.scan(lambda c, x: (m.blocks(multiply, operands=2)(c, x), c), m.jnp.ones(12),
                         np.full((3, 12), 2, "float32")),
    lambda m: m.lax.while_loop(lambda c: c[1] < 20, lambda c: m.blocks(multiply, operands=2)(c, c), m.jnp.ones(12) * 2),
    lambda m: [m.jax.jit(lambda p, x: m.lax.cond(p, m.blocks(copy), lambda x: x + 1, x))(p, X) for p in (True, False)],
    lambda m: m.jax.checkpoint(m.blocks(copy))(X),
    lambda m: m.jax.jit(m.jax.vmap(lambda x: m.lax.scan(lambda c, _: (m.blocks(copy)(c) + 1, None), x, None,
                                                         length=2)[0]))(XX),
], ids=["scan", "while", "cond", "checkpoint", "vmap of scan"])
def test_in_programs(program):
    same(program)


def test_shapes_without_running():
    wanted = ORACLE.jax.eval_shape(ORACLE.blocks(copy, (10,)), X)
    found = jax.eval_shape(OURS.blocks(copy, (10,)), X)
    assert (found.shape, str(found.dtype)) == (wanted.shape, str(wanted.dtype))


def test_stablehlo():
    assert "stablehlo.while" in jax.jit(OURS.blocks(copy)).lower(X).as_text()


def test_without_jit():
    with jax.disable_jit():
        np.testing.assert_array_equal(OURS.blocks(copy)(X), X)


def test_x64():
    with jax.enable_x64(True):
        found = OURS.blocks(copy, dtype="float64")(np.arange(12.0))
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, np.arange(12.0))
        np.testing.assert_array_equal(jax.vmap(OURS.blocks(copy, dtype="float64"))(np.ones((2, 12))), np.ones((2, 12)))
