"""What newer releases of the interface have for libraries: NumPy and what older releases say are the oracle."""

from __future__ import annotations

import re

import jax as oracle
import jax._src.interpreters.batching as oracle_batching
import jax.extend.core  # of the oracle
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.ad_checkpoint import checkpoint_name_fwd, saved_residuals
from styrax.extend import core as jex_core
from styrax.extend import linear_util
from styrax.extend.core import primitives
from styrax.interpreters import ad, batching
from styrax.interpreters import partial_eval as pe

X = np.linspace(0.1, 2, 6, dtype=np.float32).reshape(2, 3)


# -- primitives that call programs ---------------------------------------------------------------------------------


def body(x):
    return jnp.sin(x) * x, jnp.cumsum(x)


def call(prim):
    """`body` through a primitive that calls its program."""
    def f(x):
        return tuple(prim.bind(x, jaxpr=jax.make_jaxpr(body)(x)))

    return f


def registered(name):
    prim = jex_core.Primitive(name)
    prim.multiple_results = True
    jex_core.register_call_primitive_rules(prim)
    return prim


TRANSFORMED = {
    "eager": lambda f: f,
    "jit": lambda f: jax.jit(f),
    "grad": lambda f: jax.grad(lambda x: sum(y.sum() for y in f(x))),
    "grad of jit": lambda f: jax.grad(jax.jit(lambda x: sum(y.sum() for y in f(x)))),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x * 2,)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "vmap": lambda f: jax.vmap(f),
    "vmap of grad": lambda f: jax.vmap(jax.grad(lambda x: sum(y.sum() for y in f(x))), in_axes=1),
    "hessian": lambda f: jax.hessian(lambda x: f(x)[0].sum()),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x: sum(y.sum() for y in f(x)))),
    "in a loop": lambda f: jax.jit(lambda x: lax.fori_loop(0, 3, lambda _, y: f(y)[0], x)),
}


@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("make", [jex_core.create_call_primitive, registered])
@pytest.mark.parametrize("shape", [X.shape, (1, 1), (0, 2)])
def test_primitives_that_call_programs(make, how, shape):
    prim = make("called")
    x = jnp.asarray(np.resize(X, shape))
    found, wanted = TRANSFORMED[how](call(prim))(x), TRANSFORMED[how](body)(x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, wanted)
    assert [eqn.primitive for eqn in jax.make_jaxpr(call(prim))(x).eqns] == [prim]


def test_a_called_program_may_name_mapped_axes():
    prim = primitives.create_call_primitive("called")

    def f(x):
        return prim.bind(x, jaxpr=jax.make_jaxpr(lambda y: (lax.psum(y, "i") - y,), axis_env=[("i", 3)])(x))[0]

    found = jax.vmap(f, axis_name="i", axis_size=3)(jnp.arange(3.0))
    np.testing.assert_array_equal(found, [3, 2, 1])
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, axis_name="i"))(jnp.arange(3.0)), [3, 2, 1])


def test_the_transpose_of_a_program():
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    closed = jax.make_jaxpr(lambda a, x: (a @ x, 3 * x))(matrix, X[0])
    linear = ad.UndefinedPrimal(closed.in_avals[1])
    cts = [jnp.asarray([1.0, 2.0]), jnp.asarray([1.0, 0.0, -1.0])]
    _, ct = jex_core.eval_jaxpr_transpose(cts, matrix, linear, jaxpr=closed)
    np.testing.assert_allclose(ct, matrix.T @ cts[0] + 3 * np.asarray(cts[1]))
    zero = [cts[0], ad.Zero(closed.out_avals[1])]
    given, ct = primitives.eval_jaxpr_transpose(zero, matrix, linear, jaxpr=closed)
    assert given is None
    np.testing.assert_allclose(ct, matrix.T @ cts[0])


# -- batching ------------------------------------------------------------------------------------------------------


def test_programs_on_many_examples():
    def program(package, batching):
        closed = package.make_jaxpr(lambda x, y: (x, package.numpy.sin(x) * y, y, 1.0))(X[0], X[0])
        axis = batching.AxisData("i", 2, None, None)
        anywhere = batching.zero_if_mapped
        found = []
        for wanted in ([anywhere] * 4, [1, 0, anywhere, 0], [anywhere, 1, None, None]):
            made, mapped = batching.batch_jaxpr_axes(closed, axis, [0, None], wanted)
            outs = package.extend.core.jaxpr_as_fun(made)(X, X[1])
            found.append((mapped, [np.asarray(x) for x in outs]))
        return found

    for (mapped, outs), (wanted_mapped, wanted) in zip(
            program(jax, batching), program(oracle, oracle_batching), strict=True):
        assert mapped == wanted_mapped
        for x, y in zip(outs, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)


def test_a_result_with_the_axis_that_is_to_be_without():
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    with pytest.raises(ValueError, match="vmap has mapped output"):
        batching.batch_jaxpr_axes(closed, batching.AxisData("i", 3), [0], [None])


@pytest.mark.parametrize("lazily", [False, True])
def test_functions_inside_a_batching(lazily):
    fun = linear_util.wrap_init(lambda x, y, z: [x @ y, jnp.cos(z), x + 1])
    dims = (1, 0, None)
    batched, out_dims = batching.batch_subtrace(fun, object(), batching.AxisData(None, 3),
                                                (lambda: dims) if lazily else dims)
    outs = batched.call_wrapped(X, X.T, X)
    assert out_dims()[1] is None
    np.testing.assert_allclose(outs[0], (X * X).sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(outs[1], np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(np.moveaxis(outs[2], out_dims()[2], 1), X + 1)


# -- partial evaluation --------------------------------------------------------------------------------------------


def test_rules_that_write_equations():
    scale = jex_core.Primitive("scale")
    scale.def_impl(lambda x, y: (x * y).sum())
    scale.def_abstract_eval(lambda x, y: jax.core.ShapedArray((), x.dtype))
    seen = []

    def rule(trace, *tracers):
        tracers = [trace.instantiate_const(t) for t in tracers]
        out = pe.JaxprTracer(trace, pe.PartialVal.unknown(jax.core.ShapedArray((), np.float32)), None)
        out.recipe = pe.new_eqn_recipe(trace, tracers, [out], scale, {}, frozenset(), None)
        seen.append((isinstance(out, pe.JaxprTracer), isinstance(1.0, pe.JaxprTracer), out.recipe.primitive))
        return out

    pe.custom_partial_eval_rules[scale] = rule
    fun = linear_util.wrap_init(lambda x, y: [jnp.sin(x), scale.bind(x, y) * 2])
    values = [pe.PartialVal.known(jnp.float32(3)), pe.PartialVal.unknown(jax.core.ShapedArray((3,), np.float32))]
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(fun, values)
    assert seen == [(True, False, scale)]
    np.testing.assert_allclose(outs[0].get_known(), np.sin(np.float32(3)), rtol=1e-6)
    (found,) = jax.core.eval_jaxpr(jaxpr, consts, jnp.asarray(X[0]))
    np.testing.assert_allclose(found, 6 * X[0].sum(), rtol=1e-6)
    assert pe.JaxprTracer(None, pe.PartialVal.known(7), None) == 7


def test_programs_on_the_arrays_of_values():
    closed = jax.make_jaxpr(lambda x: (x * 2, x.sum()))(X)
    assert pe.lower_jaxpr2(closed) is closed
    lowered, outs = pe.lower_jaxpr(closed, [closed.in_avals])
    assert lowered is closed and outs == [[a] for a in closed.out_avals]
    with pytest.raises(TypeError, match="consist of arrays"):
        pe.lower_jaxpr(closed, [])


# -- names of values -----------------------------------------------------------------------------------------------


def test_names_of_what_goes_forward(capsys):
    def f(x):
        return jnp.sin(checkpoint_name_fwd({"a": jnp.sin(x)}, "inner")["a"]).sum()

    by_name = jax.checkpoint_policies.save_only_these_names("inner")
    np.testing.assert_allclose(jax.grad(jax.checkpoint(f, policy=by_name))(X),
                               np.cos(np.sin(X)) * np.cos(X), rtol=1e-5)
    kept = [text for _, text in saved_residuals(jax.checkpoint(f, policy=by_name), X) if "inner" in text]
    assert len(kept) == 1
    derivative = str(jax.make_jaxpr(lambda x, t: jax.jvp(f, (x,), (t,)))(X, X))
    assert len(re.findall(r"name\[name=inner\]", derivative)) == 1


# -- options and sizes ---------------------------------------------------------------------------------------------


def test_levels_of_effort():
    level = jax.CompilerEffortLevel
    assert level("O2") is level(29) is level.O2 and level.UNKNOWN < level.O0 < level.O1 < level.O2 < level.O3
    with pytest.raises(ValueError):
        level("O9")
    for effort in level:
        options = {"optimization_level": effort, "memory_fitting_level": effort}
        np.testing.assert_allclose(jax.jit(jnp.sin, compiler_options=options)(X), np.sin(X), rtol=1e-6)
        jax.config.update("jax_optimization_level", effort)
        assert jax.config.jax_optimization_level == effort.name
    jax.config.update("jax_optimization_level", "UNKNOWN")


@pytest.mark.parametrize("value", ["a", None, 0.5, 2, True])
@pytest.mark.parametrize("name", ["exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
                                  "memory_fitting_level", "executable_build_options", "xla_embed_ir_in_executable"])
def test_types_of_compiler_options(name, value):
    def outcome(package, compiled):
        try:
            return compiled(package, {name: value})
        except Exception as error:
            return type(error).__name__

    compilations = [lambda package, options: float(package.jit(lambda x: x + 1, compiler_options=options)(1.0)),
                    lambda package, options: float(package.jit(lambda x: x + 1).lower(1.0).compile(options)(1.0))]
    for compiled in compilations:
        assert outcome(jax, compiled) == outcome(oracle, compiled)


@pytest.mark.parametrize("inline", [*jax.Inline, False, True])
def test_whether_calls_are_inlined(inline):
    inner = jax.jit(lambda x: jnp.sin(x) * 2, inline=inline)
    np.testing.assert_allclose(inner(X), np.sin(X) * 2, rtol=1e-6)
    outer = jax.make_jaxpr(lambda x: inner(x) + 1)(X)
    calls = [eqn for eqn in outer.eqns if eqn.primitive is primitives.jit_p]
    assert len(calls) == (inline not in (True, jax.Inline.ALWAYS))
    assert all(eqn.params["inline"] is False for eqn in calls)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: inner(x).sum()))(X), np.cos(X) * 2, rtol=1e-6)


def test_bounds_of_sizes():
    bounds = jax.export.symbolic_dim_bounds
    a, b = jax.export.symbolic_shape("a, b", constraints=["a <= 5", "b >= 3"])
    assert bounds(7) == bounds(np.int64(7)) == (7, 7)
    assert bounds(a) == (1, 5) and bounds(b) == (3, np.inf)
    values = [(x, y) for x in range(1, 6) for y in range(3, 9)]
    below = [(a - 2 * b, lambda x, y: x - 2 * y), (10 * a - 3, lambda x, y: 10 * x - 3), (a * b, lambda x, y: x * y),
             (b % a, lambda x, y: y % x), (a // 2, lambda x, y: x // 2), (a * a - a, lambda x, y: x * x - x)]
    for size, value in below:
        low, high = bounds(size)
        assert all(low <= value(x, y) <= high for x, y in values)
    assert bounds(10 * a - 3) == (7, 47) and bounds(a // 2) == (0, 2) and bounds(a - 2 * b) == (-np.inf, -1)
    with pytest.raises(TypeError):
        bounds("a")


def test_tokens_of_foreign_functions():
    assert jax.ffi.abstract_token is jax.core.get_aval(lax.create_token())
    call = jax.ffi.ffi_call("nothing", (jax.ShapeDtypeStruct((3,), np.float32), jax.ffi.abstract_token))
    (eqn,) = jax.make_jaxpr(lambda x: call(x)[0])(X[0]).eqns
    assert [v.aval for v in eqn.outvars] == [jax.core.ShapedArray((3,), np.float32), jax.ffi.abstract_token]


@pytest.mark.parametrize("tiled", [False, True])
def test_collectives_that_are_waited_for(tiled):
    x = np.arange(24, dtype=np.float32).reshape(2, 2, 6) if tiled else np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    axis = 1 if tiled else 0

    def apart(x):
        future = lax.psum_scatter_start({"x": x}, "i", scatter_dimension=axis, tiled=tiled)
        other = jnp.sin(x)
        return future.done()["x"], other

    wanted = np.stack(np.split(x.sum(0), 2, axis)) if tiled else x.sum(0)
    for run in (jax.vmap(apart, axis_name="i"), jax.jit(jax.vmap(apart, axis_name="i"))):
        summed, other = run(x)
        np.testing.assert_allclose(summed, wanted)
        np.testing.assert_allclose(other, np.sin(x), rtol=1e-5, atol=1e-6)
    weights = np.arange(wanted.size, dtype=np.float32).reshape(wanted.shape)
    slope = jax.grad(lambda x: (jax.vmap(apart, axis_name="i")(x)[0] * weights).sum())(x)
    back = np.concatenate(list(weights), axis) if tiled else weights
    np.testing.assert_allclose(slope, np.broadcast_to(back, x.shape))
