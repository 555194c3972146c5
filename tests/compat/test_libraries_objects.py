"""What libraries ask of shardings, formats, programs and tracers, with JAX beside it."""

from __future__ import annotations

import importlib

import jax as wanted
import numpy as np
import pytest

import styrax as jax


def test_devices_of_shardings_in_order():
    for module in (jax, wanted):
        devices = module.devices()[:1]
        mesh = module.sharding.Mesh(np.array(devices), ("x",))
        for sharding in (module.sharding.SingleDeviceSharding(devices[0]),
                         module.sharding.NamedSharding(mesh, module.sharding.PartitionSpec("x"))):
            assert sharding._device_assignment == sharding._addressable_device_assignment == tuple(devices)
        abstract = module.sharding.NamedSharding(module.sharding.AbstractMesh((2,), ("x",)),
                                                 module.sharding.PartitionSpec("x"))
        with pytest.raises(ValueError):
            abstract._device_assignment  # noqa: B018


@pytest.mark.parametrize("shape", [(), (0, 2), (1, 1), (2, 3)])
def test_arrays_are_put_by_formats(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def results(module):
        layouts = importlib.import_module(f"{module.__name__}.experimental.layout")
        here = module.sharding.SingleDeviceSharding(module.devices()[0])
        rows = layouts.Layout(tuple(range(len(shape))))
        for form in (layouts.Format(), layouts.Format(None, here), layouts.Format(rows, here)):
            put = module.device_put({"a": x, "b": [module.numpy.asarray(x)]}, form)
            yield from module.tree.leaves(put)
            yield module.device_put([x], [form])[0]
            yield module.jit(lambda v, form=form: module.device_put(v, form) + 1)(x)
            yield module.grad(lambda v, form=form: (module.device_put(v, form) ** 2).sum())(x)

    for got, expected in zip(results(jax), results(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))
        assert (got.committed, got.format.layout.major_to_minor) == (
            expected.committed, expected.format.layout.major_to_minor)


def test_formats_that_fit_no_array():
    for module in (jax, wanted):
        layouts = importlib.import_module(f"{module.__name__}.experimental.layout")
        here = module.sharding.SingleDeviceSharding(module.devices()[0])
        with pytest.raises(ValueError, match="Sharding has to be concrete"):
            layouts.Format(layouts.Layout((0, 1)))
        with pytest.raises(ValueError):
            module.device_put(np.ones(3, np.float32), layouts.Format(layouts.Layout((0, 1)), here))


def test_closed_programs_name_their_variables():
    for module in (jax, wanted):
        closed = module.make_jaxpr(lambda x: (x * np.arange(3.0), 2.0))(np.ones(3, np.float32))
        for name in ("constvars", "invars", "outvars", "eqns"):
            assert getattr(closed, name) == getattr(closed.jaxpr, name)
        assert len(closed.invars) == 1 and len(closed.outvars) == 2


@pytest.mark.parametrize("slots", [None, ("val",)])
def test_interpreters_of_libraries(slots):
    """A trace and tracers that hold their type, written as libraries write them: they count the primitives."""
    def counts(module, core):
        class Tracer(module.core.Tracer):
            if slots is not None:
                __slots__ = slots

            def __init__(self, trace, val):
                super().__init__(trace, module.typeof(val))
                self.val = val

            def full_lower(self):
                return self

        class Trace(module.core.Trace):
            def __init__(self, parent):
                super().__init__()
                self.parent, self.seen = parent, []

            def lower(self, x):
                return x.val if isinstance(x, Tracer) and x._trace is self else x

            def process_primitive(self, primitive, tracers, params):
                values = [self.lower(t) for t in tracers]
                self.seen.append(primitive.name)
                out = primitive.bind_with_trace(self.parent, values, [module.typeof(v) for v in values], params)
                return module.tree.map(lambda v: Tracer(self, v), out)

            def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
                self.seen.append(primitive.name)
                with core.set_current_trace(self.parent):
                    return [Tracer(self, v) for v in fun.call_wrapped(*map(self.lower, tracers))]

        def run(x):
            with core.take_current_trace() as parent:
                trace = Trace(parent)
                with core.set_current_trace(trace):
                    argument = Tracer(trace, x)
                    assert (argument.shape, argument.dtype, argument.weak_type) == (x.shape, x.dtype, x.weak_type)
                    out = module.nn.relu(module.numpy.sin(argument) * 2 + argument.sum())
                return trace.lower(out), trace.seen

        x = module.numpy.arange(3.0)
        out, seen = run(x)
        return [np.asarray(out), np.asarray(module.jit(lambda v: run(v)[0])(x))], seen

    from jax._src import core as wanted_core

    got, seen = counts(jax, jax.core)
    expected, wanted_seen = counts(wanted, wanted_core)
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-6)
    assert "custom_jvp_call" in seen and "custom_jvp_call" in wanted_seen


@pytest.mark.parametrize("lower, upper", [(0.0, 3.0), (0.0, 3.5), (0.5, 3.5), (np.float32(0), np.float32(3.5)),
                                          (3.0, 0.0)])
def test_loops_over_floats(lower, upper):
    def results(module):
        loop = lambda lo, hi: module.lax.fori_loop(lo, hi, lambda i, x: (x[0] + 1, x[1] + i), (0, 0.0))
        return (*loop(lower, upper), *module.jit(loop)(lower, upper),
                *module.vmap(lambda hi: loop(module.numpy.zeros_like(hi), hi))(module.numpy.array([1.0, 2.5])))

    for got, expected in zip(results(jax), results(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))
        assert (got.dtype, got.weak_type) == (expected.dtype, expected.weak_type)
