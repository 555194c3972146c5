"""The printed StableHLO: constants of every dtype, functions, regions, and what has no lowering."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import styrax.lax as lax
from styrax.core.programs.jaxpr import ClosedJaxpr
from styrax.core.programs.primitive import Primitive
from styrax.core.settings import config
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.transforms import api, checkify
from styrax.xla.stablehlo import LoweringError, dense_text, module_text
from tests import xla_cpu
from tests.xla_cpu import shaped

DTYPES = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 40), (0, 3)], ids=str)
def test_constants(dtype, shape):
    """Scalars and arrays that a function closes over, equal and different elements, reach the device unharmed."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 7, shape).astype(dtype)
    same = np.full(shape, 3).astype(dtype)
    with config.enable_x64(True):
        closed = trace_to_jaxpr(lambda: [lax.rev(values, ()), lax.rev(same, ())], [])
        out, out_same = xla_cpu.run(closed)
    assert out.dtype == values.dtype
    np.testing.assert_array_equal(out, values)
    np.testing.assert_array_equal(out_same, same)


def test_constants_at_the_edges():
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1])
    with config.enable_x64(True):
        for value in values:
            closed = trace_to_jaxpr(lambda value=value: [lax.neg(np.float64(value))], [])
            (out,) = xla_cpu.run(closed)
            np.testing.assert_array_equal(out, -value)
            assert np.signbit(out) == np.signbit(-value) or np.isnan(value)
            with np.errstate(all="ignore"):
                small = np.float32(value)
            (out,) = xla_cpu.run(trace_to_jaxpr(lambda small=small: [lax.neg(small)], []))
            np.testing.assert_array_equal(out, -small)


def test_dense_text_is_readable_where_it_can_be():
    assert dense_text(np.zeros((2, 3), np.float32)) == "dense<0.000000e+00>"
    assert dense_text(np.arange(4).reshape(2, 2)) == "dense<[[0, 1], [2, 3]]>"
    assert dense_text(np.array(True)) == "dense<true>"
    assert dense_text(np.array(1 + 2j, np.complex64)) == "dense<(1.000000e+00,2.000000e+00)>"
    assert dense_text(np.zeros((0, 3))) == "dense<>"


def test_nested_programs_become_one_function_each():
    inner = trace_to_jaxpr(lambda x: [lax.mul(lax.sin(x), 2.0)], [shaped(np.ones(3, np.float32))])
    call = Primitive("jit", multiple_results=True)
    call.def_abstract_eval(lambda *avals, jaxpr, name: jaxpr.out_avals)
    call.declare(program=lambda params: params["jaxpr"])

    def twice(x):
        (y,) = call.bind(x, jaxpr=inner, name="half turn")
        return call.bind(y, jaxpr=inner, name="half turn")

    text = module_text(trace_to_jaxpr(twice, [shaped(np.ones(3, np.float32))]), "my program")
    assert text.startswith("module @my_program attributes {")
    assert text.count("func.func private @half_turn") == 1
    assert text.count("func.call") == 2


def test_loops_and_branches():
    def power(x, n):
        def step(state):
            i, y = state
            return lax.add(i, np.int32(1)), lax.mul(y, x)

        _, y = lax.while_loop(lambda state: lax.lt(state[0], n), step, (np.int32(0), lax.full_like(x, 1)))
        return lax.cond(lax.gt(n, np.int32(2)), lambda: lax.neg(y), lambda: y)

    args = [np.array([1.5, 2.0], np.float32), np.int32(3)]
    closed = api.make_jaxpr(power)(*args)
    (out,) = xla_cpu.run(closed, *args)
    np.testing.assert_allclose(out, [-3.375, -8.0])


def test_argument_attributes():
    closed = trace_to_jaxpr(lambda x: [lax.neg(x)], [shaped(np.ones(3, np.float32))])
    text = module_text(closed, told=((["jax.buffer_donor = true"], [None]), ([""], [None])))
    assert "%arg0: tensor<3xf32> {jax.buffer_donor = true}" in text


def test_results_that_are_arguments_and_constants():
    closed = trace_to_jaxpr(lambda x: [x, x, np.float32(2)], [shaped(np.ones(3, np.float32))])
    outs = xla_cpu.run(closed, np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(outs[1], [0, 1, 2])
    assert outs[2] == 2


def test_unknown_primitive():
    strange = Primitive("strange")
    strange.def_abstract_eval(lambda x: x)
    closed = trace_to_jaxpr(lambda x: [strange.bind(x)], [shaped(np.ones(3, np.float32))])
    assert isinstance(closed, ClosedJaxpr)
    with pytest.raises(LoweringError, match="strange"):
        module_text(closed)


def test_eager_backend():
    """The backend for tests computes eagerly, and remembers what it compiled."""
    from styrax.core.arrays import backends

    try:
        backend = xla_cpu.install()
        out = lax.add(np.ones(3, np.float32), 1.0)
        np.testing.assert_array_equal(np.asarray(out), 2)
        lax.add(np.ones(3, np.float32), 1.0)
        assert len(backend.cache) == 1
    finally:
        backends.set_default(None)


def test_checks():
    def checked(check):
        def f(x):
            check(lax.gt(x, 0.0), "negative")
            return lax.sin(x)

        return module_text(api.make_jaxpr(f)(np.float32(1)))

    assert "stablehlo.sine" in checked(checkify.debug_check)
    with pytest.raises(ValueError, match="not functionalized"):
        checked(checkify.check)
