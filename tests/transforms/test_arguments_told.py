"""What is said of arguments, and what functions give back of them, as under JAX."""

from __future__ import annotations

import copy
import importlib
import pickle

import jax as oracle
import numpy as np
import pytest

import styrax


def outcome(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]


@pytest.mark.parametrize("value", [2**31, -2**31 - 1])
def test_overflows_name_the_argument(value):
    def program(package):
        f = package.jit(lambda x, y: x)
        return [outcome(lambda: f(1.0, value)), outcome(lambda: f({"a": 1, "b": [value]}, 1)),
                outcome(lambda: f(1, y=value))]

    assert program(styrax) == program(oracle)


def test_objects_with_a_conversion():
    class Held:
        def __jax_array__(self):
            return oracle.numpy.arange(4)

    def program(package):
        return outcome(lambda: package.jit(lambda x: x)(Held()))[0], package.numpy.sum(package.numpy.asarray(
            np.arange(4))).item()

    assert program(styrax) == program(oracle)


def test_names_of_functions_of_programs():
    def program(package):
        class Home:
            def f(self):
                pass

        return package.make_jaxpr(Home.f).__qualname__, package.make_jaxpr(Home.f).__name__

    assert program(styrax) == program(oracle)


def test_static_arguments_of_pmap():
    def program(package):
        return outcome(lambda: package.pmap(lambda a, b: a, static_broadcasted_argnums=(1,))(np.ones((1, 1)), b=1))

    assert program(styrax) == program(oracle)


def test_arrays_that_are_there_already():
    def program(package):
        device = package.devices()[0]
        mesh = package.sharding.NamedSharding(package.sharding.Mesh(package.devices()[:1], ("x",)), package.P("x"))
        x = package.device_put(np.arange(4), device)
        y = package.device_put(x, mesh)
        free = package.numpy.arange(4)
        return [package.device_put(x, device) is x, package.device_put(x) is x, package.device_put(y, mesh) is y,
                package.device_put(y, device) is y, package.device_put(x, may_alias=False) is x,
                package.device_put(free, device) is free, package.device_put(free, device).committed,
                package.device_put(x, may_alias=True, donate=False) is x,
                outcome(lambda: package.device_put(x, may_alias=True, donate=True))]

    assert program(styrax) == program(oracle)


def test_transposes_through_jit():
    def program(package):
        w = package.numpy.arange(6.0).reshape(2, 3)
        x = package.numpy.ones(3)
        transposed = package.jit(lambda w: package.linear_transpose(lambda x: w @ x, x))(w)
        return [np.asarray(f(package.numpy.ones(2))[0]).tolist() for f in (
            transposed, package.jit(lambda c: transposed(c)), package.linear_transpose(lambda x: w @ x, x))] + [
                np.asarray(package.jit(lambda f, c: f(c))(transposed, package.numpy.ones(2))[0]).tolist()]

    assert program(styrax) == program(oracle)


def test_sums_in_half_precision():
    def program(package):
        with package.allow_f16_reductions(False):
            found = []
            for dtype in ("bfloat16", "float16", "float32"):
                x = package.numpy.ones((1, 3), dtype)
                found += [outcome(lambda x=x: float(package.lax.reduce_sum(x, [1])[0])),
                          package.lax.reduce_sum(x, [0]).shape, float(package.numpy.sum(x)),
                          float(package.numpy.mean(x)), package.lax.reduce_max(x, [1]).shape,
                          outcome(lambda x=x: package.jit(lambda x: package.lax.reduce_sum(x, [0, 1]))(x).shape)]
        return found + [float(package.lax.reduce_sum(package.numpy.ones(3, "float16"), [0]))]

    assert program(styrax) == program(oracle)


def test_primitives_applied_at_once():
    def program(package, internals):
        return float(internals.apply_primitive(package.lax.sin_p, np.float32(1), accuracy=None))

    ours = importlib.import_module("styrax.compat.internals.dispatch")
    theirs = importlib.import_module("jax._src.dispatch")
    assert program(styrax, ours) == pytest.approx(program(oracle, theirs))


def test_ranges_in_one_precision():
    def program(package):
        found = []
        for mode in ("standard", "strict"):
            with package.numpy_dtype_promotion(mode):
                for dtype in ("float16", "float32", "int8", None):
                    f = lambda dtype=dtype: package.numpy.linspace(0.1, 3, 7, dtype=dtype)
                    x = f()
                    found.append((str(x.dtype), np.asarray(x).tolist()))
                found.append(np.asarray(package.numpy.linspace(np.float32(0), np.float32(3), 7, dtype="float16")))
        return [repr(x) for x in found]

    assert program(styrax) == program(oracle)
    with styrax.enable_x64(True), oracle.enable_x64(True):
        assert program(styrax) == program(oracle)


def test_typed_numbers():
    from jax._src import literals as theirs

    from styrax.compat.internals import literals as ours

    def program(package, literals):
        found = []
        for cls, value, dtype in (("TypedInt", 3, "int16"), ("TypedFloat", 0.5, "float16"),
                                  ("TypedComplex", 1j, "complex64")):
            x = getattr(literals, cls)(value, np.dtype(dtype))
            for y in (x, copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
                found.append((repr(y), y == value, str(y.dtype), str(package.device_put(y).dtype)))
        return found

    assert program(styrax, ours) == program(oracle, theirs)
