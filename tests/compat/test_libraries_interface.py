"""What libraries build on: primitives of their own, wrapped functions, the state of tracing."""

from __future__ import annotations

import gc
import importlib
import inspect
import pickle
import pkgutil

import jax as real
import jax.numpy as rnp
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import api_util, lax
from styrax.compat import internals, jaxlib
from styrax.core import ShapedArray
from styrax.core.arrays.shardings import DuplicateSpecError
from styrax.extend import core as jex_core
from styrax.extend import linear_util as lu
from styrax.interpreters import ad, batching, mlir
from styrax.interpreters import partial_eval as pe

X = jnp.arange(3.0)


@pytest.mark.parametrize("package", [internals, jaxlib], ids=lambda p: p.__name__)
def test_modules_have_what_they_list(package):
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    assert modules
    for module in modules:
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.{name}"


def make_primitive(name: str):
    """A primitive as a library defines it: abstract evaluation, and a lowering in terms of other functions."""
    p = jex_core.Primitive(name)

    @p.def_abstract_eval
    def _(x, y, *, k):
        return ShapedArray(x.shape, x.dtype)

    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, *, k: jnp.sin(x) * y + k, multiple_results=False))
    ad.defjvp(p, lambda t, x, y, k: t * jnp.cos(x) * y, lambda t, x, y, k: t * jnp.sin(x))
    batching.defvectorized(p)
    return p


def test_primitive_of_a_library():
    p = make_primitive("sin_times")
    f = lambda x: p.bind(x, x, k=2.0)
    wanted = np.sin(X) * X + 2
    np.testing.assert_allclose(f(X), wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(X), wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f)(X), wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(X), np.cos(X) * X + np.sin(X), rtol=1e-5)
    _, ys = jax.jit(lambda x: lax.scan(lambda c, x: (p.bind(c, x, k=1.0), c), jnp.float32(1), x))(X)
    assert ys.shape == (3,)
    assert "sin_times[k=2.0]" in str(jax.make_jaxpr(f)(X))


def test_primitive_with_several_results():
    p = jex_core.Primitive("both")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [ShapedArray(x.shape, x.dtype), ShapedArray((), x.dtype)])
    mlir.register_lowering(p, mlir.lower_fun(lambda x: [x * 2, x.sum()], multiple_results=True))
    a, b = jax.jit(lambda x: p.bind(x))(X)
    np.testing.assert_array_equal(a, X * 2)
    assert float(b) == 3


def test_primitive_whose_class_says_more():
    class Tag(jex_core.Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__("tag")
            ad.primitive_jvps[self] = self.derivative

        def impl(self, *operands):
            return operands

        def abstract_eval(self, *avals):
            return avals, set()

        def derivative(self, primals, tangents):
            return self.bind(*primals), tangents

    tag = Tag()

    def f(x):
        tag.bind(x, x)
        return (x**2).sum()

    assert tag.multiple_results
    assert tag.bind(X)[0] is X
    assert "tag a a" in str(jax.make_jaxpr(f)(X))
    np.testing.assert_array_equal(jax.grad(f)(X), 2 * X)


def test_primitive_whose_class_has_several_results():
    class Several(jex_core.Primitive):
        multiple_results = True

    p = Several("several")
    p.def_abstract_eval(lambda x: (x, x))
    p.def_impl(lambda x: (x, x))
    assert len(p.bind(X)) == 2
    assert len(jax.make_jaxpr(p.bind)(X).jaxpr.outvars) == 2


def test_lowering_through_a_rule_of_its_own():
    p = jex_core.Primitive("through")
    p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, lambda ctx, x: mlir.lower_fun(lambda x: x + 1, multiple_results=False)(ctx, x))
    np.testing.assert_array_equal(jax.jit(p.bind)(X), X + 1)


def test_lowering_that_contradicts_the_abstract_evaluation():
    p = jex_core.Primitive("contradiction")
    p.def_abstract_eval(lambda x: ShapedArray((), x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x, multiple_results=False))
    with pytest.raises(TypeError, match="abstract evaluation"):
        jax.jit(p.bind)(X)


def test_primitive_without_lowering():
    p = jex_core.Primitive("nowhere")
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="nowhere"):
        jax.jit(p.bind)(X)


def test_tables_are_the_transformations_own():
    from styrax.core.programs import rules

    assert ad.primitive_jvps is rules.jvps
    assert ad.primitive_transposes is rules.transposes
    assert batching.primitive_batchers is rules.batchers
    assert pe.dce_rules is rules.dces
    assert jex_core.primitives.add_p is lax.add_p
    assert not hasattr(jex_core.primitives, "nothing_p")


def test_wrapped_functions():
    def f(x, *, y):
        return {"a": x + y}

    flat, out_tree = api_util.flatten_fun(lu.wrap_init(f), jax.tree.structure(((1,), {"y": 2})))
    assert flat.call_wrapped(1, 2) == [3]
    assert out_tree() == jax.tree.structure({"a": 0})

    @lu.transformation_with_aux
    def doubled(factor, *args):
        out = yield tuple(a * factor for a in args), {}
        yield out + 1, "aux"

    g, aux = doubled(lu.wrap_init(lambda a, b: a + b), 2)
    with pytest.raises(lu.StoreException):
        aux()
    assert g.call_wrapped(1, 2) == 7
    assert aux() == "aux"
    assert lu.wrap_init(f) == lu.wrap_init(f)


def test_fixed_arguments_of_wrapped_functions():
    f = lu.wrap_init(lambda a, b, c, *, d: [a, b, c, d])
    for positions in [1, (1,), (0, 2), (2, 0), (-1, 0), (0, 1, 2)]:
        g, dynamic = api_util.argnums_partial(f, positions, (10, 20, 30))
        assert g.call_wrapped(*(x + 1 for x in dynamic), d=4) == [
            x + (i in {n % 3 for n in np.atleast_1d(positions)}) for i, x in enumerate((10, 20, 30))] + [4]
    with pytest.raises(ValueError, match="Non-hashable static argument"):
        api_util.argnums_partial(f, 0, (1, [2], 3))


def test_partial_evaluation_of_wrapped_functions():
    f = lu.wrap_init(lambda x, y: [jnp.sin(x) * y, y + 1])
    jaxpr, pvals, consts = pe.trace_to_jaxpr_nounits(f, [pe.PartialVal.unknown(ShapedArray((3,), np.float32)),
                                                         pe.PartialVal.known(X)])
    assert [p.is_known() for p in pvals] == [False, True]
    np.testing.assert_allclose(jax.core.eval_jaxpr(jaxpr, consts, X)[0], np.sin(X) * X, rtol=1e-6)
    jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: [x * 2]), [ShapedArray((3,), np.float32)])
    assert [a.shape for a in avals] == [(3,)]


def test_state_of_tracing():
    from styrax import core

    outside = core.get_opaque_trace_state()
    assert outside == core.get_opaque_trace_state()
    seen = {}

    def f(x):
        seen["state"] = core.get_opaque_trace_state()
        seen["jit"] = jex_core.unsafe_am_i_under_a_jit_DO_NOT_USE()
        return x

    jax.jit(f)(1.0)
    assert seen["state"] != outside
    assert seen["jit"]
    jax.vmap(lambda x: seen.update(vmap=jex_core.unsafe_am_i_under_a_vmap_DO_NOT_USE()))(X)
    assert seen["vmap"]
    assert not jex_core.unsafe_am_i_under_a_jit_DO_NOT_USE()


def test_avals_of_axes():
    aval = ShapedArray((2, 3), np.float32)
    assert jex_core.mapped_aval(3, 1, aval) == ShapedArray((2,), np.float32)
    assert jex_core.unmapped_aval(4, 1, aval) == ShapedArray((2, 4, 3), np.float32)
    with pytest.raises(ValueError, match="size"):
        jex_core.mapped_aval(5, 1, aval)


def test_ravel_pytree():
    from styrax.flatten_util import ravel_pytree

    tree = {"a": jnp.ones((2, 2)), "b": jnp.int32(3), "c": (2.5,)}
    vector, unravel = ravel_pytree(tree)
    assert vector.shape == (6,)
    back = unravel(vector * 2)
    assert back["b"].dtype == jnp.int32
    assert float(back["c"][0]) == 5
    with pytest.raises(ValueError, match="shape"):
        unravel(vector[:3])
    with pytest.raises(TypeError, match="dtype"):
        unravel(vector.astype(int))
    grads = jax.jit(jax.grad(lambda v: unravel(v)["a"].sum()))(vector)
    np.testing.assert_array_equal(grads, [1, 1, 1, 1, 0, 0])
    assert ravel_pytree(tree)[1] == unravel
    assert ravel_pytree(())[0].shape == (0,)


# -- exchange of memory ---------------------------------------------------------------------------------------


def test_dlpack_shares_memory():
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = jax.dlpack.from_dlpack(source)
    assert x.unsafe_buffer_pointer() == source.ctypes.data
    y = x * 2
    view = np.from_dlpack(y)
    assert view.ctypes.data == y.unsafe_buffer_pointer()
    del source, y
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(6).reshape(2, 3) * 2)
    np.testing.assert_array_equal(x, np.arange(6).reshape(2, 3))


@pytest.mark.parametrize("dtype",
                         ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float8_e4m3fn", "complex64"])
def test_dlpack_dtypes(dtype):
    x = jnp.ones((2, 3), dtype)
    y = jax.dlpack.from_dlpack(x)
    assert y.dtype == x.dtype
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def test_dlpack_copies_where_it_must():
    strided = np.arange(12, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(strided), strided)
    assert jax.dlpack.from_dlpack(np.arange(3)).dtype == jnp.int32
    with pytest.raises(ValueError, match="copy"):
        jax.dlpack.from_dlpack(strided, copy=False)
    for value in (3, [1]):
        with pytest.raises(TypeError):
            jax.dlpack.from_dlpack(value)


def test_dlpack_survives_donation():
    x = jnp.arange(4.0) + 0
    view = np.from_dlpack(x)
    jax.jit(lambda x: x * 3, donate_argnums=0)(x)
    np.testing.assert_array_equal(view, np.arange(4))


def test_unused_capsules_let_go():
    import sys

    x = jnp.arange(4.0)
    x.__dlpack__()
    before = sys.getrefcount(x._live())
    for _ in range(5):
        x.__dlpack__()
    after = sys.getrefcount(x._live())
    assert after == before


def test_buffer_protocol():
    view = memoryview(jnp.arange(6, dtype=jnp.int32).reshape(2, 3))
    assert (view.shape, view.format, view.readonly) == ((2, 3), "i", True)
    assert bytes(memoryview(jnp.arange(2, dtype=jnp.uint8))) == b"\x00\x01"
    with pytest.raises((ValueError, BufferError)):
        memoryview(jnp.ones(2, jnp.bfloat16))


# -- placement ------------------------------------------------------------------------------------------------


def test_shardings():
    mesh = jax.make_mesh((1, 1), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    P = jax.P
    sharding = jax.NamedSharding(mesh, P("a", None))
    x = jax.device_put(jnp.ones((2, 3)), sharding)
    assert x.sharding == sharding
    assert x.committed
    assert sharding.shard_shape((2, 3)) == (2, 3)
    assert P(("a",)) == P("a") != P("a", None)
    assert repr(P("a", ("b", "c"), None)) == "P('a', ('b', 'c'), None)"
    with pytest.raises(ValueError, match="is not found in mesh"):
        jax.NamedSharding(mesh, P("z"))
    with pytest.raises(DuplicateSpecError, match="duplicate"):
        jax.NamedSharding(mesh, P("a", "a"))
    with pytest.raises(ValueError, match="Number of devices"):
        jax.make_mesh((3,), ("x",))
    with pytest.raises(ValueError, match="rank"):
        jax.device_put(1.0, sharding)
    with jax.set_mesh(mesh):
        assert jax.sharding.get_mesh() is mesh
        out = jax.jit(lambda x: lax.with_sharding_constraint(x, P("b")) * 2)(x)
    assert jax.sharding.get_mesh().empty
    np.testing.assert_array_equal(out, 2 * np.ones((2, 3)))
    with pytest.raises(RuntimeError, match="mesh"):
        lax.with_sharding_constraint(x, P("a"))


def test_device_put_in_programs():
    f = lambda x: jax.device_put((x, 3.0), jax.devices()[0])[0] * 2
    np.testing.assert_array_equal(jax.jit(f)(X), X * 2)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(X), [2, 2, 2])
    np.testing.assert_array_equal(jax.vmap(f)(X), X * 2)
    assert "device_put[" in str(jax.make_jaxpr(f)(X))
    with pytest.raises(ValueError, match="device_put` only accepts"):
        jax.device_put(X, "cpu")


def test_check_grads():
    from styrax.test_util import check_grads

    check_grads(lambda x, y: jnp.sin(x) * y["a"], (X, {"a": X + 1}), 2)

    @jax.custom_jvp
    def wrong(x):
        return jnp.sin(x)

    wrong.defjvp(lambda primals, tangents: (wrong(*primals), tangents[0] * 2))
    with pytest.raises(AssertionError, match="JVP"):
        check_grads(wrong, (1.0,), 1)

    table = {np.float32: 3.0, np.dtype("float64"): 1e-9}  # by dtype: what the arguments do not have does not count
    check_grads(wrong, (np.float32(1.0),), 1, atol=table, rtol={})
    with pytest.raises(AssertionError, match="JVP"):
        check_grads(wrong, (np.float32(1.0),), 1, atol={np.float64: 3.0}, rtol={np.float32: 1e-3})


def test_profiler_and_monitoring(tmp_path):
    import gzip
    import json

    from styrax import monitoring, profiler

    with profiler.trace(tmp_path), profiler.TraceAnnotation("part", detail=1):
        profiler.annotate_function(lambda: None, "call")()
    (file,) = tmp_path.rglob("*.trace.json.gz")
    events = json.loads(gzip.open(file).read())["traceEvents"]
    assert {"part", "call"} <= {e["name"] for e in events}
    with pytest.raises(RuntimeError):
        profiler.stop_trace()
    seen = []
    listener = lambda event, duration, **kwargs: seen.append((event, duration, kwargs))
    monitoring.register_event_duration_secs_listener(listener)
    monitoring.record_event_duration_secs("/x", 0.5, key="v")
    monitoring.unregister_event_duration_listener(listener)
    monitoring.record_event_duration_secs("/y", 1.0)
    with pytest.raises(AssertionError, match="not registered"):
        monitoring.unregister_event_duration_listener(listener)
    assert seen == [("/x", 0.5, {"key": "v"})]


def test_tables_of_names_are_true():
    import importlib

    for package in ("styrax", "styrax.core", "styrax.extend.core", "styrax.experimental"):
        module = importlib.import_module(package)
        for name in module.__all__:
            assert getattr(module, name) is not None, f"{package}.{name}"


def test_mapping_over_one_device():
    x = jnp.ones((1, 3))
    summed = jax.pmap(lambda x, y: lax.psum(x, "i") + y, axis_name="i", in_axes=(0, None))
    np.testing.assert_array_equal(summed(x, 2.0), 3 * np.ones((1, 3)))
    with pytest.raises(ValueError, match="logical devices"):
        summed(jnp.ones((2, 3)), 2.0)
    with pytest.raises(ValueError, match="at least one argument"):
        jax.pmap(lambda x: x)(3.0)
    mesh = jax.make_mesh((1, 1), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    f = jax.shard_map(lambda x: lax.psum(x, "a") * (lax.axis_index("a") + 1), mesh=mesh, in_specs=jax.P("a"),
                      out_specs=jax.P("a"))
    with pytest.raises(ValueError, match="corresponds to one of varying"):
        jax.shard_map(lambda x: lax.psum(x, ("a", "b")), mesh=mesh, in_specs=jax.P("a"), out_specs=jax.P())(x)
    np.testing.assert_array_equal(jax.jit(f)(jnp.arange(4.0)), np.arange(4.0))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(jnp.arange(4.0)), np.ones(4))
    with pytest.raises(ValueError, match="mesh"):
        jax.shard_map(lambda x: x, in_specs=jax.P(), out_specs=jax.P())(1.0)


def test_scopes_of_equations():
    from styrax.extend import source_info_util

    def f(x):
        with jax.named_scope("a"):
            y = jnp.sin(x)
            with jax.named_scope("b"):
                return y * 2

    def stacks(closed):
        return [str(e.source_info.name_stack) for e in closed.eqns]

    assert stacks(jax.make_jaxpr(f)(1.0)) == ["a", "a/b"]
    assert stacks(jax.make_jaxpr(jax.named_call(f, name="outer"))(1.0)) == ["outer/a", "outer/a/b"]
    assert str(source_info_util.new_name_stack("x").transform("jvp").extend("y")) == "x/jvp(y)"
    with source_info_util.extend_name_stack("q"):
        assert str(source_info_util.current_name_stack()) == "q"


def test_primitives_by_methods():
    from styrax.experimental.hijax import HiPrimitive

    class Square(HiPrimitive):
        def abstract_eval(self, x):
            return x, set()

        def to_lojax(self, x):
            return x * x

        def jvp(self, primals, tangents):
            return primals[0] * primals[0], 2 * primals[0] * tangents[0]

    p = Square("square_by_methods")
    assert float(p.bind(jnp.float32(3))) == float(jax.jit(p.bind)(jnp.float32(3))) == 9
    assert float(jax.grad(p.bind)(3.0)) == 6


def test_compile_time_evaluation():
    seen = {}

    def f(x):
        with jax.ensure_compile_time_eval():
            seen["concrete"] = jnp.arange(3) * 2
            return x + seen["concrete"].sum()

    assert float(jax.jit(f)(1.0)) == 7
    assert not isinstance(seen["concrete"], jax.core.Tracer)
    assert float(jax.grad(f)(1.0)) == 1


def test_equations_bound_again_with_their_functions():
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * 3,))
    for fun, names in ((jax.nn.relu, ["relu", "jvp"]), (f, ["sin"]), (jax.jit(jnp.cos), [])):
        eqn = jax.make_jaxpr(fun)(2.0).eqns[0]
        params = eqn.primitive.get_bind_params(eqn.params)
        found = params.get("subfuns", ())
        assert [s.__name__ for s in found][:len(names)] == names
        np.testing.assert_allclose(eqn.primitive.bind(jnp.float32(2), **params)[0], fun(2.0), rtol=1e-6)
        for inner in found[:1]:
            np.testing.assert_allclose(inner.call_wrapped(jnp.float32(2))[0], fun(2.0), rtol=1e-6)
        derivative = jax.grad(lambda x, eqn=eqn, params=params: eqn.primitive.bind(x, **params)[0])(2.0)
        np.testing.assert_allclose(derivative, jax.grad(fun)(2.0), rtol=1e-6)


def test_traces_of_one_use_are_told_from_others():
    mains = []

    def f(x):
        mains.append(jex_core.find_top_trace([x]).main)
        assert mains[-1] is x._trace.main
        return x

    jax.jvp(lambda x: jax.jvp(f, (f(x),), (f(x),)), (1.0,), (1.0,))
    assert mains[0] is mains[1] is not mains[2]


def test_compiled_without_static_arguments():
    f = jax.jit(lambda a, n, b=2.0, *, flag=None: a * n + b, static_argnums=1, static_argnames="flag")
    lowered = f.lower(1.0, 3, flag=True)
    assert str(lowered.in_tree) == "PyTreeDef(((*,), {}))"
    assert float(lowered.compile()(2.0)) == 8
    with pytest.raises(TypeError, match=r"at args, seen tuple of length 1 but now given tuple of length 2, so"):
        lowered.compile()(2.0, 3)
    with pytest.raises(TypeError, match=r"There are 1 mismatches, including:\n    \* at args\[0\], seen pytree leaf"):
        lowered.compile()((2.0,))


def test_pmap_of_trees_with_none():
    axes = {"a": 0, "b": None}
    np.testing.assert_array_equal(
        jax.pmap(lambda t: t["a"] * 2, in_axes=(axes,))({"a": jnp.ones((1, 3)), "b": None}), np.full((1, 3), 2))


def test_calls_that_stand_for_what_they_call():
    from styrax.extend.core.primitives import call_p, closed_call_p

    program = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    f = lu.wrap_init(lambda x: [jnp.sin(x) * 2])
    for call in (lambda x: call_p.bind(x, subfuns=(f,)), lambda x: closed_call_p.bind(x, call_jaxpr=program),
                 lambda x: call_p.bind(x, call_jaxpr=program.jaxpr)):
        np.testing.assert_allclose(jax.jit(call)(1.0)[0], 2 * np.sin(1.0), rtol=1e-6)
        np.testing.assert_allclose(jax.grad(lambda x, call=call: call(x)[0])(1.0), 2 * np.cos(1.0), rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(call)(X)[0], 2 * np.sin(X), rtol=1e-6)


def test_lowering_that_calls_python():
    p = jex_core.Primitive("from_python")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [ShapedArray(x.shape, x.dtype), ShapedArray((), x.dtype)])

    def lowering(ctx, x):
        found, token, keepalive = mlir.emit_python_callback(
            ctx, lambda x: (np.asarray(x) * 2, np.asarray(x).sum()), None, [x], ctx.avals_in, ctx.avals_out,
            has_side_effect=False)
        assert token is None
        ctx.module_context.add_keepalive(keepalive)
        return found

    mlir.register_lowering(p, lowering)
    doubled, total = jax.jit(lambda x: p.bind(x + 1))(X)
    np.testing.assert_array_equal(doubled, (X + 1) * 2)
    assert float(total) == 6


def test_values_of_types_of_a_library():
    from styrax.interpreters import xla

    class Variable(np.ndarray):
        pass

    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    for table in (xla.canonicalize_dtype_handlers, xla.pytype_aval_mappings):
        table[Variable] = table[np.ndarray]
    xla.canonicalize_dtype_handlers[Celsius] = lambda x: np.float32(x.degrees + 273.15)
    xla.pytype_aval_mappings[Celsius] = lambda x: ShapedArray((), np.dtype(np.float32))
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(np.arange(3.0).view(Variable)), [0, 2, 4])
    assert xla.canonicalize_dtype_handlers[np.ndarray](np.arange(3.0)).dtype == np.float32
    np.testing.assert_allclose(jax.jit(lambda x: x + 1)(Celsius(20)), 294.15, rtol=1e-6)


def test_names_of_internals():
    from styrax.compat.finder import own_name

    assert own_name("jax._src.pjit") == "styrax.compat.internals.pjit"
    from styrax.compat.internals import literals

    assert literals.typed_scalar_types == {literals.TypedInt, literals.TypedFloat, literals.TypedComplex}
    assert jax.core.full_lower(X) is X
    assert jax.core.physical_aval(jax.typeof(jax.random.key(0))).shape == (2,)


def test_trace_of_a_library():
    """It gets functions with rules as wrapped ones, and hands them on with transformations around them."""
    seen = []

    class Counting(jax.core.Trace):
        def __init__(self, parent):
            super().__init__()
            self.parent_trace = parent

        def process_primitive(self, primitive, args, params):
            seen.append(str(primitive))
            with jax.core.set_current_trace(self.parent_trace):
                return primitive.bind(*args, **params)

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            seen.append(str(primitive))
            doubled = lu.transformation2(lambda f, *args: [2 * x for x in f(*args)], fun)
            params = {"subfuns": (doubled, jvp), "symbolic_zeros": symbolic_zeros}
            avals = tuple(map(jax.typeof, tracers))
            return primitive.bind_with_trace(self.parent_trace, tuple(map(self.full_raise, tracers)), avals, params)

        def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, out_trees, symbolic_zeros):
            seen.append(str(primitive))
            return fun.call_wrapped(*tracers)

    f = jax.custom_vjp(lambda x: x + 1)
    f.defvjp(lambda x: (x + 1, None), lambda _, g: (g,))
    with jax.core.take_current_trace() as parent, jax.core.set_current_trace(Counting(parent)):
        np.testing.assert_array_equal(jax.nn.relu(X), 2 * X)
        np.testing.assert_array_equal(f(X), X + 1)
    assert [s for s in seen if s.startswith("custom")] == ["custom_jvp_call", "custom_vjp_call"]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("table", [batching.primitive_batchers, batching.fancy_primitive_batchers])
def test_rules_are_given_tuples(table, several):
    p = jex_core.Primitive("told")
    p.multiple_results = several
    p.def_impl(lambda x, y: [x] if several else x)
    p.def_abstract_eval(lambda x, y: [x] if several else x)
    told = []

    def batch(*arguments):
        args, dims = arguments[-2:]
        told.append((type(args), type(dims), dims))
        return ([args[0]], [dims[0]]) if several else (args[0], dims[0])

    def jvp(primals, tangents):
        told.append((type(primals), type(tangents), len(primals)))
        out = p.bind(*primals)
        return (out, [tangents[0]]) if several else (out, tangents[0])

    table[p] = batch
    ad.primitive_jvps[p] = jvp
    x = np.ones((2, 3), np.float32)
    f = lambda x, y: jax.tree.leaves(p.bind(x, y))[0]
    np.testing.assert_array_equal(jax.vmap(f, in_axes=(0, None))(x, x), x)
    jax.make_jaxpr(jax.vmap(jax.jit(f)))(x, x)
    jax.jvp(f, (x, x), (x, x))
    jax.make_jaxpr(jax.grad(lambda x: jax.jit(f)(x, x).sum()))(x)
    assert told == [(tuple, tuple, (0, None)), (tuple, tuple, (0, 0)), (tuple, tuple, 2), (tuple, tuple, 2)]


def several(x, y, *rest, z=1, **others):
    return x


def only_positional(x, y, /, *, z=1):
    return x


@pytest.mark.parametrize("fun", [several, only_positional, lambda: 0], ids=["several", "positional", "none"])
@pytest.mark.parametrize(("nums", "names"), [(None, None), (1, None), ((0, 1), None), ((), None), (None, "y"),
                                             (None, ("z", "x")), ((0,), ("z",)), ((5,), None)])
def test_parameters_are_inferred(fun, nums, names):
    from jax._src import api_util as wanted

    signature = inspect.signature(fun)
    assert api_util.infer_argnums_and_argnames(signature, nums, names) == \
        wanted.infer_argnums_and_argnames(signature, nums, names)


def test_modules_of_colocated_python():
    func, serialization = (importlib.import_module(f"styrax.experimental.colocated_python.{name}")
                           for name in ("func", "serialization"))
    assert func.colocated_python is jax.experimental.colocated_python.colocated_python
    devices = serialization.DeviceList(jax.devices())
    assert pickle.loads(pickle.dumps(devices)) == tuple(jax.devices())


@pytest.mark.parametrize(("prefix", "full", "is_leaf"), [
    ({"a": 1}, {"a": {"x": None, "y": 2}}, None),
    ({"a": 1}, {"a": {"x": None, "y": 2}}, lambda x: x is None),
    (None, {"a": {"x": None, "y": 2}}, lambda x: x is None),
    ((1, None), (None, (3, None)), lambda x: x is None),
    ((1, 2), (5, [None, 6]), lambda x: x == 2),
    ([], [], None),
])
def test_leaves_of_a_prefix(prefix, full, is_leaf):
    from jax._src import tree_util as wanted

    from styrax.compat.internals import tree_util

    assert tree_util.broadcast_prefix(prefix, full, is_leaf) == wanted.broadcast_prefix(prefix, full, is_leaf)
    assert tree_util.tree_leaves is jax.tree_util.tree_leaves


def test_specifications_for_results_without_arrays():
    mesh = jax.make_mesh((1,), ("m",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.P("m")

    def f(a, b):
        return {"x": a["x"], "none": None}, None

    a = {"x": X, "none": None}
    mapped = jax.shard_map(f, mesh=mesh, in_specs=(spec, None), out_specs=(spec, jax.P()))
    for g in (mapped, jax.jit(mapped)):
        out, none = g(a, None)
        np.testing.assert_array_equal(out["x"], X)
        assert out["none"] is none is None
    assert mapped(a, None)[0]["x"].sharding == jax.NamedSharding(mesh, spec)
    with pytest.warns(DeprecationWarning, match="with mesh:"), mesh:
        sharding = jax.NamedSharding(mesh, spec)
        assert jax.device_put([X, (None, X)], [sharding, sharding])[1][0] is None
        assert lax.with_sharding_constraint([X, (None, X)], [sharding, sharding])[1][0] is None


def test_what_can_change_of_a_type():
    import jax as wanted
    from jax.experimental import cur_qdd as wanted_cur_qdd

    class Box:
        def __init__(self, leaves):
            self.leaves = leaves

        def cur_qdd(self):
            return [x.shape for x in self.leaves]

    for ours, theirs in ((jax.experimental.cur_qdd, jax), (wanted_cur_qdd, wanted)):
        box = Box([theirs.numpy.ones(2)])
        assert ours(box) == [(2,)]
        box.leaves.append(theirs.numpy.ones(()))
        assert ours(box) == [(2,), ()]
        with pytest.raises(AttributeError):
            ours(theirs.numpy.ones(2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int32"])
@pytest.mark.parametrize("off", [0.0, 0.3, 2.0, 5.0])
def test_values_are_close_by_their_precision(dtype, off):
    from jax._src import public_test_util as wanted

    from styrax.compat.internals import public_test_util

    dtype = jnp.dtype(dtype)
    step = {2: 1e-2 if dtype == jnp.bfloat16 else 1e-3, 4: 1e-6, 8: 1e-6}[dtype.itemsize]
    a = {"x": np.zeros(3, dtype)}
    b = {"x": np.full(3, off if dtype == np.int32 else off * step).astype(dtype)}

    def passes(check):
        try:
            check(a, b)
        except AssertionError:
            return False
        return True

    assert passes(public_test_util.check_close) == passes(wanted.check_close)


@pytest.mark.parametrize("given", [2e-3, {"float32": 2e-3}, {np.float32: 2e-3}, {"float16": 2e-3}, {"float64": 1.0}])
@pytest.mark.parametrize("off", [0.0, 1e-4, 4e-3, 1e-1])
@pytest.mark.parametrize("of", ["float32", "float16"])
def test_values_are_close_by_a_tolerance_of_each_dtype(given, off, of):
    from jax._src import public_test_util as wanted

    from styrax.compat.internals import public_test_util

    a, b = np.ones(3, np.float32), np.full(3, 1 + off, of)

    def passes(check, **tolerances):
        try:
            check([a], [b], **tolerances)
        except AssertionError:
            return False
        return True

    for tolerances in ({"atol": given}, {"rtol": given}, {"atol": given, "rtol": given}):
        assert passes(public_test_util.check_close, **tolerances) == passes(wanted.check_close, **tolerances)


def test_values_of_other_shapes_are_not_close():
    from jax._src import public_test_util as wanted

    from styrax.compat.internals import public_test_util

    for check in (public_test_util.check_close, wanted.check_close):
        with pytest.raises(AssertionError):
            check(np.ones(()), np.ones(3))
        with pytest.raises(AssertionError):
            check(np.ones((1, 3)), np.ones(3))


def test_manager_of_checkpoints():
    serialization = importlib.import_module("styrax.experimental.array_serialization.serialization")
    base = serialization.GlobalAsyncCheckpointManagerBase
    with pytest.raises(TypeError, match="abstract"):
        base()
    assert base.__abstractmethods__ == {"serialize", "deserialize", "wait_until_finished", "check_for_errors"}


def test_modules_that_checkpoints_import():
    programs = importlib.import_module("styrax.extend.ifrt_programs")
    assert not hasattr(programs.ifrt_programs, "make_plugin_program")
    assert jax.interpreters.pxla is importlib.import_module("styrax.interpreters.pxla")
    assert isinstance(jax.devices()[0].client.runtime_type, str)


def test_platforms_and_sizes_that_are_known():
    from jax._src import core as oracle_core
    from jax._src import xla_bridge as oracle_bridge

    from styrax import core
    from styrax.compat.internals import xla_bridge

    for ask in (lambda b: b.expand_platform_alias("gpu"), lambda b: b.expand_platform_alias("cpu"),
                lambda b: b.canonicalize_platform("cpu"), lambda b: b.canonicalize_platform("cuda")):
        assert ask(xla_bridge) == ask(oracle_bridge)
    with pytest.raises(RuntimeError, match="Unknown backend: 'gpu' requested"):
        xla_bridge.canonicalize_platform("gpu")
    (n,) = jax.export.symbolic_shape("n")
    for shape in ((), (1, 2), (np.int32(3),), (n,)):
        assert core.is_constant_shape(shape) == (n not in shape)
        if n not in shape:
            assert oracle_core.is_constant_shape(shape)
    assert str(core.shaped_abstractify(np.ones(3, np.float32))) == str(oracle_core.shaped_abstractify(
        np.ones(3, np.float32)))


def test_donation_on_all_platforms_or_none():
    f = jax.jit(jnp.sin, donate_argnums=0)
    assert jax.export.export(f, platforms=["cpu", "tpu"])(X).platforms == ("cpu", "tpu")
    with pytest.raises(NotImplementedError, match="either all or no lowering platforms should support donation"):
        jax.export.export(f, platforms=["cpu", "other"])(X)


def test_functions_of_sequences():
    from jax._src import util as wanted

    from styrax.compat import finder
    from styrax.compat.internals import sequences

    cases = {"safe_map": (lambda a, b: a + b, [1, 2], [3, 4]), "safe_zip": ([1, 2], "ab"),
             "unzip2": ([(1, "a"), (2, "b")],), "split_list": ([1, 2, 3, 4], [1, 2]),
             "unzip3": ([(1, "a", 0), (2, "b", 5)],), "concatenate": ([[1, 2], (3,)],),
             "partition_list": ([True, False, True], "abc"), "merge_lists": ([True, False, True], "b", "ac"),
             "tuple_insert": ((1, 2), 1, 7), "tuple_update": ((1, 2), 1, 7), "tuple_delete": ((1, 2, 3), 1),
             "subvals": ([1, 2, 3], [(0, 5), (2, 6)])}
    for name, args in cases.items():
        assert list(getattr(sequences, name)(*args)) == list(getattr(wanted, name)(*args)), name
    for package in (sequences, wanted):
        with pytest.raises(ValueError):
            package.safe_zip([1], [1, 2])
        seen = []
        package.foreach(lambda a, b, seen=seen: seen.append(a + b), [1, 2], [3, 4])
        assert seen == [4, 6] and package.curry(max)(1, 2)(3) == 3
    with pytest.raises(ValueError):
        sequences.merge_lists([True], [1], [2])
    assert finder.own_name("jax._src.util") == sequences.__name__


def test_types_answer_as_those_of_jax():
    for dtype in ("float32", "int32", "bool"):
        ours, theirs = (core.ShapedArray((2, 3), np.dtype(dtype), weak_type=dtype != "bool")
                        for core in (jax.core, real.core))
        for method in ("at_least_vspace", "to_ct_aval", "to_tangent_aval", "normalize", "strip_weak_type"):
            got, wanted = getattr(ours, method)(), getattr(theirs, method)()
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), method
            assert got.weak_type == wanted.weak_type or wanted.dtype == real.dtypes.float0
        assert str(ours.update_weak_type(False)) == str(theirs.update_weak_type(False))


def test_derivative_rules_with_symbolic_zeros_ask_for_types_of_tangents():
    def product(package):
        f = package.custom_jvp(lambda x, y: x * y)

        def rule(primals, tangents):
            (x, y), out = primals, f(*primals)
            zero = package.custom_derivatives.SymbolicZero(package.typeof(out).at_least_vspace())
            scaled = [zero if type(t) is type(zero) else t * s for t, s in zip(tangents, (y, x), strict=True)]
            moving = [t for t in scaled if type(t) is not type(zero)]
            return out, sum(moving[1:], moving[0]) if moving else zero

        f.defjvp(rule, symbolic_zeros=True)
        return f

    for argument in (0, 1, (0, 1)):
        np.testing.assert_array_equal(jax.grad(product(jax), argument)(2.0, 3.0),
                                      real.grad(product(real), argument)(2.0, 3.0))


@pytest.mark.parametrize("name", ["div", "add", "sub", "max", "neg", "exp", "log", "sqrt", "mul"])
def test_operations_ignore_the_parameters_of_others(name):
    """Interpreters bind the inverse of an operation with the parameters of the operation."""
    ours, theirs = getattr(lax, f"{name}_p"), getattr(real.lax, f"{name}_p")
    x = np.float32([2.0, 3.0])
    args = (x,) if name in ("neg", "exp", "log", "sqrt") else (x, x)
    bound = jax.jit(lambda *xs: ours.bind(*xs, of_another=None))
    for got in (ours.bind(*map(jnp.asarray, args), of_another=None), bound(*args)):
        np.testing.assert_allclose(got, theirs.bind(*map(rnp.asarray, args), of_another=None), rtol=1e-6)
    operation = {"div": "divide", "sub": "subtract", "max": "maximum", "neg": "negate", "exp": "exponential",
                 "mul": "multiply"}.get(name, name)
    assert f"stablehlo.{operation}" in bound.lower(*args).as_text()


@pytest.mark.parametrize("name", ["float64", "int64", "uint64", "complex128"])
def test_scalar_types_meet_without_a_warning(name, recwarn):
    for numpy in (jnp, rnp):
        assert numpy.result_type(getattr(numpy, name)) == rnp.result_type(getattr(rnp, name))
        assert numpy.result_type(getattr(numpy, name), numpy.float32) is not None
    assert not recwarn
    for numpy in (jnp, rnp):
        with pytest.warns(UserWarning, match="Explicitly requested dtype"):
            numpy.result_type(np.dtype(name))


def test_operations_are_counted_as_those_of_the_program():
    """However a sum is cut into blocks."""
    x, w, b = np.ones((1, 784), np.float32), np.ones((784, 1024), np.float32), np.ones(1024, np.float32)
    layer = lambda x, w, b: x @ w + b
    counts = [package.jit(layer).lower(x, w, b).cost_analysis()["flops"] for package in (jax, real)]
    assert counts[0] == counts[1]
