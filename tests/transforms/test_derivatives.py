"""jvp, vjp, linearize, grad and Jacobians: values, structures and errors as JAX's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, assert_same_outcome, jax, matrix, outcome, styrax, vector

GRAD = """
jax.grad(jnp.sin)(2.)
jax.grad(jnp.sin)(x3)
jax.grad(lambda x: (x, x))(1.)
jax.grad(jnp.sin)(1)
jax.grad(lambda x: x.astype(int))(1.)
jax.grad(lambda x: x * 1j)(1.)
jax.grad(jnp.sin)(1j)
jax.grad(jnp.sin, holomorphic=True)(1.)
jax.grad(jnp.sin, holomorphic=True)(1j)
jax.grad(jnp.abs, holomorphic=True)(1j)
jax.grad(jnp.sin, argnums=1)(1.)
jax.grad(lambda x, y: x * y, argnums=(0, 1))(2., 3.)
jax.grad(lambda x, y: x * y, argnums=[1])(2., 3.)
jax.grad(lambda x, y: x * y, argnums=-1)(2., 3.)
jax.grad(jnp.sin, argnums=-2)(1.)
jax.grad(jnp.sin, argnums='a')(1.)
jax.grad(jnp.sin, allow_int=True)(1)
jax.grad(jnp.sin, has_aux=True)(1.)
jax.grad(lambda x: (x, x, x), has_aux=True)(1.)
jax.grad(lambda x: (x * x, x * 3), has_aux=True)(2.)
jax.grad(jnp.sin)('a')
jax.grad(jnp.sin)(None)
jax.grad(lambda x: None)(1.)
jax.grad(lambda x: 'a')(1.)
jax.grad(1)
jax.grad(lambda d: d['a'] * d['b'][0])({'a': 2., 'b': (3.,)})
jax.grad(lambda x, *, k: x * k)(2., k=3.)
jax.grad(lambda x: 3.)(1.)
jax.grad(lambda x: jnp.sum(x ** 2))(x3)
jax.grad(lambda x: x if x > 0 else -x)(-2.)
jax.value_and_grad(lambda x: x ** 3)(2.)
jax.value_and_grad(lambda x: (x ** 3, {'a': x}), has_aux=True)(2.)
jax.grad(jax.grad(jax.grad(lambda x: jnp.sin(x) * x)))(2.)
"""
JVP = """
jax.jvp(jnp.sin, 1., 1.)
jax.jvp(jnp.sin, (1.,), (1,))
jax.jvp(jnp.sin, (1.,), (1., 1.))
jax.jvp(jnp.sin, (1.,), ([1.],))
jax.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(2),))
jax.jvp(jnp.sin, (1,), (1,))
jax.jvp(jnp.sin, (1,), (np.zeros((), float0),))
jax.jvp(jnp.sin, [1.], [1.])
jax.jvp(lambda x: 'a', (1.,), (1.,))
jax.jvp(lambda x: (x * x, x), (3.,), (1.,), has_aux=True)
jax.jvp(jnp.sin, (1.,), (1.,), has_aux=True)
jax.jvp(3, (1.,), (1.,))
jax.jvp(jnp.sin, (1.,), (1. + 0j,))
jax.jvp(jnp.sin, (jnp.float16(1.),), (1.,))
jax.jvp(lambda x, y: {'a': x * y, 'b': 3.}, (2., 3.), (1., 0.))
jax.jvp(lambda x: x.astype(int), (2.,), (1.,))
[repr(y) for y in jax.jvp(lambda x: x + 1, (2.,), (1.,))]
[repr(y) for y in jax.jvp(lambda x: x - x3, (x3,), (x3,))]
[repr(y) for y in jax.jvp(lambda x: x, (2.,), (1.,))]
[repr(y) for y in jax.jvp(lambda x: jnp.add(1, x), (jnp.float32(2.),), (np.float32(1.),))]
"""
VJP = """
jax.vjp(jnp.sin, 1.)[1](1.)
jax.vjp(jnp.sin, 1.)[1](1)
jax.vjp(jnp.sin, 1.)[1](1., 2.)
jax.vjp(jnp.sin, 1.)[1]((1.,))
jax.vjp(jnp.sin, 1.)[1](jnp.ones(3))
jax.vjp(jnp.sin, 1.)[1](1. + 0j)
jax.vjp(jnp.sin, 1.)[1](None)
jax.vjp(lambda x: {'a': x, 'b': 3}, 1.)[1]({'a': 1.})
jax.vjp(lambda x: {'a': x, 'b': 3}, 1.)[1]({'a': 1., 'b': np.zeros((), float0)})
jax.vjp(lambda x, i: x * i, 2., 3)[1](1.)
jax.vjp(lambda x: (x * x, x), 3., has_aux=True)[2]
jax.vjp(jnp.sin, 1., has_aux=True)
jax.linearize(jnp.sin, 1.)[1](2.)
jax.linearize(jnp.sin, 1.)[1](1)
jax.linearize(jnp.sin, 1.)[1](1., 2.)
jax.linearize(jnp.sin, 1.)[1](jnp.ones(3))
jax.linearize(lambda x, y: (x * y, 2.), x3, x3)[1](x3, x3)
jax.linearize(lambda x: (x * x, x), 3., has_aux=True)[2]
jax.linear_transpose(lambda x: 2 * x, 1.)(3.)
jax.linear_transpose(jnp.sin, 1.)(3.)
jax.linear_transpose(lambda x: 2 * x, 1)(3)
jax.linear_transpose(lambda x: 2 * x, 1.)(3)
jax.linear_transpose(lambda x: (x, x), 1.)(3.)
jax.linear_transpose(lambda x: 2 * x, jnp.ones(3))(3.)
jax.linear_transpose(lambda x, y: (x + 2 * y, y), 1., 2.)((1., 3.))
jax.linear_transpose(lambda x: jnp.cumsum(x)[1:], x3)(x3[1:])
jax.tree_util.tree_map(lambda x: x, jax.vjp(lambda x: x * jnp.sin(x), 2.)[1])(1.)
len(jax.tree_util.tree_leaves(jax.vjp(lambda x: x * jnp.sin(x), 2.)[1]))
jax.jit(lambda f, ct: f(ct))(jax.vjp(lambda x: x * jnp.sin(x), 2.)[1], 3.)
jax.jit(lambda x: jax.vjp(jnp.sin, x)[1])(2.)(1.)
"""
JACOBIANS = """
jax.jacfwd(jnp.sin)(x3)
jax.jacrev(jnp.sin)(x3)
jax.jacfwd(jnp.sin)(1)
jax.jacrev(jnp.sin)(1)
jax.jacfwd(jnp.sin)(1j)
jax.jacrev(jnp.sin)(1j)
jax.jacrev(jnp.sin, holomorphic=True)(1.)
jax.jacfwd(jnp.sin, holomorphic=True)(1.)
jax.jacfwd(jnp.sin, holomorphic=True)(1j)
jax.jacrev(lambda x: x.astype(int))(1.)
jax.jacfwd(lambda x: x * 1j)(1.)
jax.jacrev(lambda x: x * 1j)(1.)
jax.jacrev(lambda x, y: {'a': x * y}, argnums=(0, 1))(jnp.ones(2), 2.)
jax.jacfwd(lambda x, y: {'a': x * y}, argnums=(0, 1))(jnp.ones(2), 2.)
jax.jacrev(lambda x: (x * x, x), has_aux=True)(1.)
jax.jacfwd(lambda x: (x * x, x), has_aux=True)(1.)
jax.jacfwd(lambda x: (x @ x, x[0]))(x33)
jax.jacrev(lambda x: (x @ x, x[0]))(x33)
jax.jacrev(lambda d: d['a'] * d['b'])({'a': x3, 'b': 2.})
jax.hessian(lambda x: jnp.sum(x ** 3))(x3)
jax.hessian(lambda x: jnp.sum(x[0] ** 3 * x[1]))((1., 2.))
jax.jacfwd(jnp.sin, argnums=2)(1.)
"""


@pytest.mark.parametrize("expression", [e for group in (GRAD, JVP, VJP, JACOBIANS) for e in group.strip().splitlines()])
def test_as_jax(expression):
    assert_same_outcome(expression)


MESSAGES = [
    "jax.grad(jnp.sin)(x3)",
    "jax.grad(jnp.sin)(1)",
    "jax.grad(lambda x: x * 1j)(1.)",
    "jax.grad(jnp.sin, argnums=1)(1.)",
    "jax.jvp(jnp.sin, 1., 1.)",
    "jax.jvp(jnp.sin, (1.,), (1,))",
    "jax.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(2),))",
    "jax.vjp(jnp.sin, 1.)[1](jnp.ones(3))",
    "jax.jacfwd(jnp.sin)(1)",
    "jax.jacrev(lambda x: x * 1j)(1.)",
]


@pytest.mark.parametrize("expression", MESSAGES)
def test_message_as_jax(expression):
    assert str(outcome(expression, styrax)[1]) == str(outcome(expression, jax)[1]).split("\n----")[0]


def test_what_is_concrete_stays_so():
    seen = []

    def f(x):
        seen.append(int(x))
        return x * 3 if x > 1 else x * 5

    assert styrax.grad(f)(2.0) == 3
    assert styrax.jvp(f, (0.5,), (1.0,))[1] == 5
    assert styrax.grad(styrax.grad(lambda x: f(x) * x))(2.0) == 6
    assert seen == [2, 0, 2]


def test_an_escaped_tracer_is_named():
    saved = []
    styrax.grad(lambda x: saved.append(x * 2) or x)(1.0)
    with pytest.raises(styrax.errors.UnexpectedTracerError):
        styrax.numpy.sin(saved[0])


def test_the_pullback_adds_to_references():
    total = styrax.new_ref(np.float32(1.0))
    _, pull = styrax.vjp(lambda x, y: x * y, 3.0, 2.0)
    result = pull.with_refs(total, None)(1.0)
    assert repr(result[0]) == "GradRef()" and result[1] == 3.0
    assert total[...] == 3.0


def test_forward_and_backward():
    def f(x, y):
        return styrax.numpy.sin(x) * y

    forward, backward = styrax.fwd_and_bwd(f, argnums=(0, 1))
    out, residuals = forward(2.0, 3.0)
    np.testing.assert_allclose(out, np.sin(2.0) * 3, rtol=1e-5)
    np.testing.assert_allclose(backward(residuals, 1.0), (np.cos(2.0) * 3, np.sin(2.0)), rtol=1e-5)


def test_complex():
    assert_same(lambda jax: jax.vjp(lambda z: z * jax.numpy.exp(z), 1 + 2j)[1](np.complex64(1j)))
    assert_same(lambda jax: jax.grad(lambda z: jax.numpy.real(z * z * jax.numpy.conj(z)))(1 + 2j))


def test_many_results_share_what_they_need():
    assert_same(lambda jax: jax.vjp(lambda x: (x * x, jax.numpy.sin(x), x), vector)[1]((vector, vector, vector)))
    assert_same(lambda jax: jax.vjp(lambda x: (x @ x).sum(), matrix)[1](np.float32(1)))


@pytest.mark.parametrize("name", ["argmax", "argmin", "count_nonzero"])
def test_jacobians_of_integer_results(name):
    def run(module):
        return module.jacfwd(lambda x: getattr(module.numpy, name)(x, axis=1))(x)

    x = np.array([[1, 1, 0], [2, 0, 2]], np.float32)
    found, wanted = run(styrax), run(jax)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize("argument", [2.0, np.float32(2)])
def test_gradients_are_arrays(argument):
    """Also where they are the cotangent that the pullback starts from."""
    f = styrax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, g: (g,))
    for function in (lambda x: x, f, lambda x: 3.0):
        got = styrax.grad(function)(argument)
        assert isinstance(got, styrax.Array) and got.weak_type == isinstance(argument, float)
    first, second = styrax.grad(f)(2.0), styrax.grad(f)(2.0)
    first.delete()
    assert second == 1.0


WEAK = {
    "number": (lambda j: lambda x: j.numpy.sin(x), 1.0),
    "array": (lambda j: lambda x: j.numpy.sin(x), np.float32(1)),
    "mixed": (lambda j: lambda d: (d["a"] * d["b"], d["a"]), {"a": 1.0, "b": vector}),
    "numbers": (lambda j: lambda d: (d["a"] * d["b"], d["a"]), {"a": 1.0, "b": 2.0}),
    "constant": (lambda j: lambda x: 3.0, 1.0),
}


@pytest.mark.parametrize("name", WEAK)
@pytest.mark.parametrize("transformation", ["jacfwd", "jacrev", "hessian"])
def test_weak_types_of_jacobians(name, transformation):
    program, argument = WEAK[name]

    def weak(package):
        found = getattr(package, transformation)(program(package))(argument)
        return [x.weak_type for x in package.tree_util.tree_leaves(found)]

    assert weak(styrax) == weak(jax)


@pytest.mark.parametrize("given", [1.0, np.float32(1)])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("length", [0, 2])
def test_weak_types_of_cotangents_through_loops(length, compiled, given):
    def weak(package):
        f = lambda x, y: package.lax.scan(lambda c, _: ((c[1], c[1]), None), (x, y), None, length=length)[0]
        pull = package.vjp(f, 2.0, 3.0)[1]
        cotangent = package.numpy.asarray(given)
        found = (package.jit(pull) if compiled else pull)((cotangent, cotangent))
        return [(float(x), x.weak_type) for x in found]

    assert weak(styrax) == weak(jax)


@pytest.mark.parametrize("compiled", [False, True])
def test_weak_types_of_zero_tangents(compiled):
    def weak(package):
        f = lambda x: (x, package.numpy.stack((1.5, 1.5)))
        twice = lambda x: package.jvp(lambda y: package.jvp(f, (y,), (y,)), (x,), (x,))
        once = lambda x: package.linearize(f, x)[1](x)
        found = [(package.jit(g) if compiled else g)(np.float32(2)) for g in (twice, once)]
        return [getattr(x, "weak_type", None) for x in package.tree_util.tree_leaves(found)]

    assert weak(styrax) == weak(jax)


def test_weak_types_beside_integers():
    def weak(package):
        f = lambda x, i: package.numpy.multiply(x, i)
        return (package.grad(f)(2.0, 3).weak_type, package.vjp(f, 2.0, 3)[1](1.0)[0].weak_type,
                package.grad(f, argnums=(0, 1), allow_int=True)(2.0, 3)[0].weak_type)

    assert weak(styrax) == weak(jax)


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), np.ones(2, np.float32)])
@pytest.mark.parametrize("make", ["asarray", "array"])
def test_what_is_made_an_array_is_one_after_differentiation(make, value):
    for package in (styrax, jax):
        convert = getattr(package.numpy, make)
        found = [*package.jvp(convert, (value,), (value,)), package.vjp(convert, value)[0],
                 package.jit(convert)(value)]
        assert all(isinstance(x, package.Array) for x in found)


FUNCTIONS_OF_NUMBERS = {
    "pulled": lambda package, v: package.vjp(package.numpy.log, v)[1](2 * package.lax.stop_gradient(v))[0],
    "product": lambda package, v: v * np.float32(2),
    "spread": lambda package, v: np.ones(2, np.float32) * v,
    "constant": lambda package, v: package.numpy.float32(2),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("kind", ["jacrev", "jacfwd", "hessian", "grad"])
@pytest.mark.parametrize("x", [0.25, np.float32(0.25), np.float16(0.25), np.ones(2, np.float32)])
@pytest.mark.parametrize("name", FUNCTIONS_OF_NUMBERS)
def test_weak_types_of_derivatives(name, x, kind, jitted):
    def told(package):
        f = getattr(package, kind)(lambda v: FUNCTIONS_OF_NUMBERS[name](package, v))
        try:
            out = (package.jit(f) if jitted else f)(x)
        except TypeError:
            return TypeError
        return out.dtype, out.weak_type, np.asarray(out, np.float64).round(3).tolist()

    assert told(styrax) == told(jax)
