"""Costs of programs: by their formulas, and by counting."""

from __future__ import annotations

import itertools

import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.experimental import roofline as r

X, Y = jnp.ones((3, 4)), jnp.ones((4, 5))
DOT = dict(flops=120, hbm_bytes=4 * (12 + 20 + 15), peak_hbm_bytes=4 * (12 + 20))

PROGRAMS = {
    "product": (lambda x, y: x @ y, dict(unfused_flops=120, unfused_hbm_bytes=188, **DOT)),
    "and a sine": (lambda x, y: jnp.sin(x @ y), dict(unfused_flops=135, unfused_hbm_bytes=188 + 120, **DOT)),
    "and a sum": (lambda x, y: jnp.sin(x @ y).sum(), dict(unfused_flops=149, unfused_hbm_bytes=372, **DOT)),
    "in a program": (lambda x, y: jax.jit(jnp.matmul)(x, y), dict(unfused_flops=120, unfused_hbm_bytes=188, **DOT)),
    "nothing": (lambda x, y: x, dict(peak_hbm_bytes=128)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    fun, want = PROGRAMS[name]
    out, costs = r.roofline(fun)(X, Y)
    assert costs == r.RooflineResult(**want)
    assert out.shape == jax.eval_shape(fun, X, Y).shape


def test_pullback():
    mesh = jax.make_mesh((1,), ("x",))
    out, forward, backward = r.roofline_and_grad(jnp.matmul, mesh, (jax.P(), jax.P()), jax.P())(X, Y)
    assert (out.shape, forward.flops, backward.flops, backward.hbm_bytes) == ((3, 5), 120, 240, 188)


def test_operands_at_hand():
    assert r.roofline(jnp.matmul, pin_lhs_in_vmem=True)(X, Y)[1].hbm_bytes == 188 - 48


def test_scatter_and_gather():
    index = jnp.array([[0], [2]])
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    costs = r.roofline(lambda x, u: lax.scatter_add(x, index, u, numbers))(X, jnp.ones((2, 4)))[1]
    assert costs.unfused_flops == 8 and costs.unfused_hbm_bytes == 3 * 32 + 8


def test_convolution_counts_no_padding():
    x, k = jnp.ones((1, 1, 5, 4)), jnp.ones((1, 1, 3, 2))
    for strides, padding, base, dilation in itertools.product(
            ((1, 1), (2, 1)), (((0, 0), (0, 0)), ((2, 1), (1, 3))), ((1, 1), (2, 3)), ((1, 1), (2, 2))):
        fun = lambda x, k: lax.conv_general_dilated(x, k, strides, padding, base, dilation)  # noqa: B023
        products = fun(x, k).sum()  # of ones: as many as there are products with elements
        assert r.roofline(fun)(x, k)[1].unfused_flops == 2 * products


def test_rules_of_libraries():
    from styrax.extend.core import Primitive

    own_p = Primitive("own")
    own_p.def_abstract_eval(lambda x: x)
    assert r.roofline(own_p.bind)(X)[1] == r.RooflineResult(peak_hbm_bytes=48)

    @r.register_roofline(own_p)
    def _own(context, x, **params):
        assert context.primitive is own_p and context.avals_out[0].shape == x.shape == (3, 4)
        return r.RooflineResult(flops=x.size, ici_bytes={"x": x.bytes})

    assert r.roofline(lambda x: own_p.bind(own_p.bind(x)))(X)[1] == r.RooflineResult(
        flops=24, ici_bytes={"x": 96}, peak_hbm_bytes=48)
    r.register_standard_roofline(own_p)
    assert r.roofline(own_p.bind)(X)[1] == r.RooflineResult(peak_hbm_bytes=48)
