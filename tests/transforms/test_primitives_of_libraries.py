"""What primitives of a library's own say where a rule is missing or wrong, as under JAX."""

from __future__ import annotations

import functools
import importlib

import jax as oracle
import pytest

import styrax

pytestmark = pytest.mark.usefixtures("old_objects_aside")


def outcome(f):
    try:
        return float(f())
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]


def parts(package):
    core = importlib.import_module(f"{package.__name__}.extend.core")
    return core.Primitive, importlib.import_module(f"{package.__name__}.interpreters.ad")


def test_missing_rules():
    def program(package):
        Primitive, ad = parts(package)
        p = Primitive("mine")
        found = [outcome(lambda: p.bind(1.0)), outcome(lambda: package.jit(p.bind)(1.0)),
                 outcome(lambda: package.grad(p.bind)(1.0))]
        p.def_abstract_eval(lambda x: x)
        kind, message = outcome(lambda: package.jit(p.bind)(1.0))
        found.append((kind, "rule for primitive 'mine' not found" in message))
        p.def_impl(lambda x: x)
        ad.defjvp(p, lambda g, x: p.bind(g))
        found += [outcome(lambda: package.grad(p.bind)(1.0)), outcome(lambda: p.bind(2.0)),
                  outcome(lambda: package.vmap(p.bind)(package.numpy.ones(1)).sum())]
        return found

    assert program(styrax) == program(oracle)


@pytest.mark.parametrize("many", [True, False])
def test_wrong_numbers_of_results(many):
    def program(package):
        Primitive, _ = parts(package)
        p = Primitive("mine")
        p.multiple_results = many
        p.def_abstract_eval(lambda x: x if many else [x])
        kind, message = outcome(lambda: package.jit(p.bind)(1.0))
        return kind, message.startswith("mine.abstract_eval() method should return a tuple or")

    assert program(styrax) == program(oracle)


def test_deferred_linear_rules():
    def program(package):
        with package.checking_leaks():
            f = package.custom_jvp(lambda x: x * 2)
            f.defjvp(lambda p, t: (f(*p), t[0] * 2))
            g = package.custom_vjp(lambda x: x * 3)
            g.defvjp(lambda x: (g(x), None), lambda _, ct: (ct * 3,))
            h = lambda x: f(g(x)) + package.nn.relu(x)
            return [outcome(functools.partial(k, 2.0)) for k in (
                package.jit(h), package.jit(package.grad(h)), package.jit(package.grad(package.checkpoint(h))),
                lambda x: package.vmap(h)(package.numpy.ones(1) * x)[0],
                package.jit(lambda x: package.vjp(package.checkpoint(h), x)[1](1.0)[0]))]

    assert program(styrax) == program(oracle)


def test_captured_tokens():
    def program(package):
        token = package.lax.create_token()
        a, (b, c) = package.jit(lambda x: (x + 2, (token, package.lax.after_all(token, token))))(7)
        return float(a), type(b).__name__, type(c).__name__

    assert program(styrax) == program(oracle)
    text = styrax.jit(lambda x, token=styrax.lax.create_token(): (x, token)).lower(7.0).as_text()
    assert "stablehlo.token" in text


def test_tokens_as_arguments():
    def program(package):
        Primitive, ad = parts(package)
        mlir = importlib.import_module(f"{package.__name__}.interpreters.mlir")
        p = Primitive("after_token")
        xla = importlib.import_module(f"{package.__name__}.interpreters.xla")
        p.def_impl(functools.partial(xla.apply_primitive, p))
        p.def_abstract_eval(lambda x, token: x)
        mlir.register_lowering(p, lambda ctx, x, token: [x])
        ad.defjvp(p, lambda g, x, token: 2 * g, None)
        token = package.lax.create_token()
        return [outcome(lambda: p.bind(3.0, token)), outcome(lambda: package.grad(p.bind)(3.0, token)),
                outcome(lambda: package.vjp(lambda x: p.bind(x, token), 3.0)[1](1.0)[0])]

    assert program(styrax) == program(oracle)


@pytest.mark.parametrize("name", ["ConcretizationTypeError", "TracerBoolConversionError", "TracerArrayConversionError",
                                  "TracerIntegerConversionError", "NonConcreteBooleanIndexError"])
@pytest.mark.parametrize("package", [styrax, oracle], ids=["styrax", "jax"])
def test_errors_about_tracers_without_a_type(name, package):
    class Mine(package.core.Tracer):
        def __init__(self, trace):
            super().__init__(trace, None)

    assert f"errors.html#jax.errors.{name}" in str(getattr(package.errors, name)(Mine(None)))
