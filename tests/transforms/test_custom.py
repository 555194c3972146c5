"""Derivatives and batching of the user's own, under every transformation, with JAX's errors."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, jax, styrax, vector


def sevenfold(package):
    """A product whose JVP says that it is seven times its first argument's tangent."""
    f = package.custom_jvp(lambda x, y: x * y)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 7.0))
    return f


def sevenfold_back(package):
    f = package.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (ct * res[1], ct * 7.0))
    return f


NESTS = {
    "grad": lambda j, g: j.grad(g)(2.0),
    "jit grad": lambda j, g: j.jit(j.grad(g))(2.0),
    "grad jit": lambda j, g: j.grad(j.jit(g))(2.0),
    "vmap": lambda j, g: j.vmap(g)(vector),
    "vmap jit": lambda j, g: j.vmap(j.jit(g))(vector),
    "jit vmap": lambda j, g: j.jit(j.vmap(g))(vector),
    "vmap grad": lambda j, g: j.vmap(j.grad(g))(vector),
    "grad vmap": lambda j, g: j.grad(lambda x: j.vmap(g)(x).sum())(vector),
    "grad vmap jit": lambda j, g: j.grad(lambda x: j.vmap(j.jit(g))(x).sum())(vector),
    "grad grad": lambda j, g: j.grad(j.grad(g))(2.0),
    "grad checkpoint": lambda j, g: j.grad(j.checkpoint(g))(2.0),
    "grad scan": lambda j, g: j.grad(lambda x: j.lax.scan(lambda c, _: (g(c), g(x)), x, None, length=3)[0])(0.5),
    "grad scan ys": lambda j, g: j.grad(
        lambda x: j.lax.scan(lambda c, _: (g(c), g(x)), x, None, length=3)[1].sum())(0.5),
    "vmap grad scan": lambda j, g: j.vmap(j.grad(
        lambda x: j.lax.scan(lambda c, _: (g(c), None), x, None, length=3)[0]))(vector / 4),
    "grad vmap scan": lambda j, g: j.grad(lambda x: j.vmap(
        lambda y: j.lax.scan(lambda c, _: (g(c), None), y, None, length=3)[0])(x).sum())(vector / 4),
    "grad cond": lambda j, g: j.grad(lambda x: j.lax.cond(x > 1, g, lambda x: x, x))(2.0),
    "vmap grad cond": lambda j, g: j.vmap(j.grad(lambda x: j.lax.cond(x > 1, g, lambda x: x, x)))(vector),
    "vjp": lambda j, g: j.vjp(g, 2.0)[1](3.0),
    "jacrev": lambda j, g: j.jacrev(lambda x: j.vmap(g)(x))(vector),
    "closed over": lambda j, g: j.jit(lambda y: j.grad(lambda x: g(x) * y)(2.0))(3.0),
}


@pytest.mark.parametrize("nest", NESTS)
def test_custom_jvp(nest):
    assert_same(lambda package: NESTS[nest](package, lambda x: sevenfold(package)(x, x)))


@pytest.mark.parametrize("nest", NESTS)
def test_custom_vjp(nest):
    assert_same(lambda package: NESTS[nest](package, lambda x: sevenfold_back(package)(x, x)))


@pytest.mark.parametrize("nest", ["jvp", "vmap jvp", "jvp vmap", "jit jvp"])
def test_custom_jvp_forward(nest):
    def program(j):
        f = sevenfold(j)

        def g(x):
            return j.jvp(lambda x: f(x, x), (x,), (x,))

        return {"jvp": lambda: g(2.0), "vmap jvp": lambda: j.vmap(g)(vector), "jit jvp": lambda: j.jit(g)(2.0),
                "jvp vmap": lambda: j.jvp(j.vmap(lambda x: f(x, x)), (vector,), (vector,))}[nest]()

    assert_same(program)


def jvp_rule(package, rule, fun=None, **options):
    f = package.custom_jvp(fun or (lambda x: package.numpy.sin(x)))
    f.defjvp(rule, **options)
    return f


def vjp_rule(package, fwd, bwd, fun=None, nondiff=(), **options):
    f = package.custom_vjp(fun or (lambda x: package.numpy.sin(x)), nondiff_argnums=nondiff)
    f.defvjp(fwd, bwd, **options)
    return f


MISUSES = {
    "no jvp": lambda j: j.custom_jvp(lambda x: x)(1.0),
    "no vjp": lambda j: j.custom_vjp(lambda x: x)(1.0),
    "no pair": lambda j: j.grad(jvp_rule(j, lambda p, t: p[0]))(1.0),
    "triple": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], t[0], t[0])))(1.0),
    "trees": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], (t[0], t[0]))))(1.0),
    "shapes": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], j.numpy.ones(3))))(1.0),
    "dtypes": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], t[0].astype("float16"))))(1.0),
    "other shape": lambda j: j.grad(jvp_rule(j, lambda p, t: (j.numpy.ones(3), t[0])))(1.0),
    "arguments": lambda j: j.grad(jvp_rule(j, lambda p: 1))(1.0),
    "integer tangent": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], 0)))(1.0),
    "none tangent": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], None)))(1.0),
    "too many": lambda j: jvp_rule(j, lambda p, t: (p[0], t[0]))(1.0, 2.0),
    "string": lambda j: jvp_rule(j, lambda p, t: (p[0], t[0]))("a"),
    "forward": lambda j: j.jvp(vjp_rule(j, lambda x: (x, x), lambda r, g: (g,)), (1.0,), (1.0,)),
    "bwd no tuple": lambda j: j.grad(vjp_rule(j, lambda x: (x, x), lambda r, g: g * r))(2.0),
    "bwd long": lambda j: j.grad(vjp_rule(j, lambda x: (x, x), lambda r, g: (g, g)))(2.0),
    "bwd shape": lambda j: j.grad(vjp_rule(j, lambda x: (x, x), lambda r, g: (j.numpy.ones(3),)))(2.0),
    "bwd nested": lambda j: j.grad(vjp_rule(j, lambda x: (x, x), lambda r, g: ((g,),)))(2.0),
    "fwd no pair": lambda j: j.grad(vjp_rule(j, lambda x: x, lambda r, g: (g,)))(2.0),
    "fwd triple": lambda j: j.grad(vjp_rule(j, lambda x: (x, x, x), lambda r, g: (g,)))(2.0),
    "traced nondiff": lambda j: j.jit(lambda y: vjp_rule(
        j, lambda f, x: (x, x), lambda f, r, g: (g,), lambda f, x: x, (0,))(y, 2.0))(3.0),
    "closure jvp": lambda j: j.grad(lambda y: jvp_rule(j, lambda p, t: (p[0], t[0]), lambda x: x * y)(2.0))(3.0),
    "closure vjp": lambda j: j.grad(
        lambda y: vjp_rule(j, lambda x: (x, x), lambda r, g: (g,), lambda x: x * y)(2.0))(3.0),
    "defjvps count": lambda j: _defjvps(j, None)(2.0, 3.0),
    "no rule to map": lambda j: j.vmap(j.custom_batching.custom_vmap(lambda x: x))(vector),
}


def _defjvps(j, *rules):
    f = j.custom_jvp(lambda x, y: x * y)
    f.defjvps(*rules)
    return j.grad(f)


@pytest.mark.parametrize("name", MISUSES)
def test_misuse(name):
    with pytest.raises(Exception) as expected:
        MISUSES[name](jax)
    with pytest.raises(Exception) as got:
        MISUSES[name](styrax)
    assert expected.type.__name__ in [c.__name__ for c in got.type.__mro__], (got.value, expected.value)


USES = {
    "none": lambda j: j.grad(vjp_rule(j, lambda x: (x, x), lambda r, g: (None,)))(2.0),
    "list": lambda j: j.grad(vjp_rule(j, lambda x: (x, x), lambda r, g: [g * 3]))(2.0),
    "constant tangent": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], 0.0)))(1.0),
    "list pair": lambda j: j.grad(jvp_rule(j, lambda p, t: [p[0], t[0]]))(1.0),
    "tree": lambda j: j.jvp(jvp_rule(
        j, lambda p, t: ({"a": p[0]}, {"a": t[0]}), lambda x: {"a": x}), (1.0,), (1.0,)),
    "integers": lambda j: j.grad(vjp_rule(
        j, lambda x, i: (x * i, i), lambda r, g: (g * r, None), lambda x, i: x * i))(2.0, 3),
    "float0": lambda j: j.grad(vjp_rule(
        j, lambda x, i: (x * i, i), lambda r, g: (g * r, np.zeros((), jax.dtypes.float0)), lambda x, i: x * i))(2.0, 3),
    "integer tangents": lambda j: j.grad(jvp_rule(j, lambda p, t: (p[0], t[0]), lambda x, i: x * i))(1.0, 2),
    "nested arguments": lambda j: j.grad(vjp_rule(
        j, lambda d: (d["a"] * d["b"], d), lambda r, g: ({"a": g * r["b"], "b": None},), lambda d: d["a"] * d["b"]))(
            {"a": 2.0, "b": 3.0}),
    "function": lambda j: j.grad(vjp_rule(
        j, lambda f, x: (f(x), x), lambda f, r, g: (g * 7,), lambda f, x: f(x), (0,)), 1)(j.numpy.sin, 2.0),
    "function over tracer": lambda j: j.jit(lambda y: j.grad(vjp_rule(
        j, lambda f, x: (f(x), x), lambda f, r, g: (g * 7,), lambda f, x: f(x), (0,)), 1)(lambda x: x * y, 2.0))(3.0),
    "keywords": lambda j: vjp_rule(j, lambda x: (x, x), lambda r, g: (g,), lambda x: x * 2)(x=3.0),
    "defjvps": lambda j: _defjvps(j, lambda t, ans, x, y: 2 * t * ans, None)(2.0, 3.0),
    "second": lambda j: j.grad(j.grad(vjp_rule(j, lambda x: (x * x, x), lambda r, g: (g * r * r,))))(2.0),
    "twice": lambda j: j.grad(lambda x: sevenfold_back(j)(x, x) + sevenfold_back(j)(x, 2.0))(3.0),
    "custom_gradient": lambda j: j.vmap(j.grad(j.custom_gradient(lambda x: (x ** 2, lambda g: g * x * 5))))(vector),
    "custom_gradient jit": lambda j: j.jit(j.grad(j.custom_gradient(lambda x: (x ** 2, lambda g: (g * x,)))))(2.0),
    "linear_call": lambda j: j.jit(j.grad(lambda x, y: j.custom_derivatives.linear_call(
        lambda r, v: v * r, lambda r, c: c * r * 7.0, x, y), 1))(2.0, 3.0),
    "sequential_vmap": lambda j: j.vmap(j.custom_batching.sequential_vmap(j.numpy.sin))(vector),
}


@pytest.mark.parametrize("name", USES)
def test_use(name):
    assert_same(USES[name])


@pytest.mark.parametrize("argname", [{"nondiff_argnums": (1,)}, {"nondiff_argnames": ("k",)}])
def test_arguments_that_are_not_differentiated(argname):
    def program(package):
        f = package.custom_jvp(lambda x, k: x * k, **argname)
        f.defjvp(lambda k, p, t: (f(p[0], k), t[0] * k * 2))
        return package.grad(f)(2.0, 3.0), package.grad(f)(2.0, k=3.0)

    assert_same(program)


def test_symbolic_zeros():
    def program(package):
        seen = []

        def rule(primals, tangents):
            seen.append([type(t).__name__ == "SymbolicZero" for t in tangents])
            return primals[0], tangents[0]

        package.grad(jvp_rule(package, rule, lambda x, y: x, symbolic_zeros=True))(1.0, 2.0)

        def fwd(x, y):
            seen.append([x.perturbed, y.perturbed])
            return (x.value, y.value), None

        def bwd(res, cts):
            seen.append([type(ct).__name__ == "SymbolicZero" for ct in cts])
            return cts[0], None

        f = vjp_rule(package, fwd, bwd, lambda x, y: (x, y), symbolic_zeros=True)
        package.grad(lambda x: f(x, 1.0)[0])(2.0)
        package.vmap(package.grad(lambda x: f(x, 1.0)[0]))(vector)
        return seen

    assert_same(program)


def test_closure_convert():
    def program(package):
        def f(y):
            converted, captured = package.closure_convert(lambda x: x * y, 1.0)
            return converted(3.0, *captured) * len(captured)

        return package.grad(f)(2.0)

    assert_same(program)


def test_custom_vmap_rule():
    calls = []
    f = styrax.custom_batching.custom_vmap(lambda x, y: x + y)

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched))
        return x * y, True

    np.testing.assert_array_equal(styrax.vmap(f)(vector, vector), vector * vector)
    np.testing.assert_array_equal(styrax.jit(styrax.vmap(f, in_axes=(0, None)))(vector, 2.0), vector * 2)
    assert calls == [(3, [True, True]), (3, [True, False])]
    assert f(1.0, 2.0) == 3.0
    out, tangent = styrax.jvp(styrax.vmap(f), (vector, vector), (vector, vector))
    np.testing.assert_allclose(tangent, 2 * vector * vector)


@pytest.mark.parametrize("mapped", [False, True])
def test_batching_rules_of_what_nothing_uses(mapped):
    """The derivative of a branch has no call whose result is dropped, which would be asked for a rule."""

    def program(package):
        g = package.custom_batching.custom_vmap(lambda x: package.numpy.sin(x))

        @g.def_vmap
        def rule(size, batched, x):
            raise AssertionError("asked for")

        def slope(w, z):
            branches = [lambda u: (g(w), u * w)[1], lambda u: u]
            return package.grad(lambda u: package.lax.switch((u > 0).astype(int), branches, u))(z)

        z = np.float32([0.5, -0.5])
        each = package.vmap(slope, (None, 0)) if mapped else lambda w, z: slope(w, z[0]) + slope(w, z[1])
        return package.jacfwd(lambda w: each(w, z))(np.float32(0.3))

    assert_same(program)


def test_linear_call_is_batched():
    def f(x, y):
        return styrax.custom_derivatives.linear_call(lambda r, v: v * r, lambda r, c: c * r * 7.0, x, y)

    np.testing.assert_array_equal(styrax.vmap(f)(vector, vector), vector * vector)
    np.testing.assert_array_equal(styrax.vmap(styrax.grad(f, 1), in_axes=(0, None))(vector, 2.0), vector * 7)


@pytest.mark.parametrize("result", ["(x, x), (True, True)", "x, (True,)"])
def test_batching_rules_of_wrong_structure(result):
    def message(package):
        f = package.custom_batching.custom_vmap(lambda x: x)
        rule = eval(f"lambda size, batched, x: ({result})")
        f.def_vmap(rule)
        with pytest.raises(ValueError, match="custom vmap rule") as error:
            package.vmap(f)(vector)
        return str(error.value).splitlines()

    assert message(styrax) == message(jax)


def test_transposes_of_wrong_shapes():
    def message(package):
        f = lambda x: package.custom_derivatives.linear_call(
            lambda r, x: x / r, lambda r, c: package.numpy.ones(3), 2.0, x)
        assert f(1.0) == 0.5
        with pytest.raises(ValueError) as error:
            package.linear_transpose(f, 1.0)(1.0)
        return re.match(r"Expected cotangent type \S+ but got [^\s.]+", str(error.value)).group()

    assert message(styrax) == message(jax)


def test_methods():
    class Model:
        @styrax.custom_jvp
        def area(self, x):
            return x * x

        @area.defjvp
        def rule(primals, tangents):
            return primals[1] ** 2, tangents[1] * 5

    styrax.tree_util.register_static(Model)
    assert styrax.grad(Model().area)(2.0) == 5


@pytest.mark.parametrize("wrap", ["grad", "jit", "vmap", "vjp"])
def test_rules_see_arrays(wrap):
    """Of a number, the forward rule can ask the dtype; cotangents have the methods of arrays."""

    def program(package):
        jnp = package.numpy
        f = vjp_rule(package, lambda x: (x * 2, jnp.zeros(2, x.dtype)),
                     lambda r, g: ((g.astype(jnp.float16) + r.sum()).astype(g.dtype).reshape(()),), lambda x: x * 2)
        g = package.grad(f)
        if wrap == "vjp":
            return package.vjp(f, 2.0)[1](jnp.ones(()))
        return {"grad": lambda: g(2.0), "jit": lambda: package.jit(g)(2.0), "vmap": lambda: package.vmap(g)(vector)}[
            wrap]()

    assert_same(program)


def _with_default(package):
    f = package.custom_jvp(lambda x, y=1.0, *, z=2.0: x * y * z, nondiff_argnums=(1,))
    f.defjvp(lambda y, primals, tangents: (f(*primals, y), tangents[0] * y))
    return [f(2.0), f(2.0, y=3.0), package.grad(f)(2.0), package.grad(lambda x: f(x, y=4.0))(2.0)]


def _nondiff_tracer(package):
    f = package.custom_jvp(lambda n, x: n * x, nondiff_argnums=(0,))
    f.defjvp(lambda n, primals, tangents: (f(n, *primals), 2 * tangents[0]))
    return [package.grad(f, (0, 1))(2.0, 3.0), package.grad(lambda x: f(x + 1, x))(2.0),
            package.jit(package.vmap(package.grad(lambda x: f(x, x))))(vector)]


def _names_behind_a_gap(package):
    """Arguments given by name, behind some that keep their defaults."""
    def product(x, y=2.0, scale=3.0, z=None, flag=False):
        return x * y * (1.0 if z is None else z) * scale + flag

    f = package.custom_jvp(product, nondiff_argnums=(2, 4))
    f.defjvp(lambda scale, flag, primals, tangents: (product(*primals[:2], scale, primals[2], flag),
                                                     tangents[0] * scale))
    g = package.custom_vjp(product, nondiff_argnums=(2, 4))
    g.defvjp(lambda x, y, scale, z, flag: (product(x, y, scale, z, flag), (x, z)),
             lambda scale, flag, res, ct: (ct * scale, None, res[1]))

    def results(rule, **given):
        def of(x):
            return rule(x, **given)

        return [of(package.numpy.asarray(vector)), package.grad(of)(2.0),
                package.jit(package.vmap(package.grad(of)))(vector)]

    return [results(rule, **given) for rule in (f, g) for given in (
        {"flag": True}, {"scale": 5.0}, {"z": 2.0, "scale": 4.0}, {"flag": True, "z": 2.0})]


@pytest.mark.parametrize("program", [_with_default, _names_behind_a_gap, _nondiff_tracer])
def test_arguments_that_a_rule_gets_as_they_are(program):
    assert_same(program)


def _keywords_without_a_position(package):
    f = package.custom_jvp(lambda x, *, z=2.0: x * z)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    package.grad(lambda x: f(x, z=3.0))(1.0)


def _wrong_shape_in_a_tree(package):
    f = package.custom_vjp(lambda d: d["x"] * d["y"][0])
    f.defvjp(lambda d: (f(d), d), lambda d, g: ({"x": g, "y": (package.numpy.ones(2),)},))
    package.grad(f)({"x": 2.0, "y": (3.0,)})


def _tangent_of_an_integer(package):
    f = package.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (1, tangents[0]))
    package.jvp(f, (1.0,), (1.0,))


def _static_argument_of_checkpoint(package):
    package.checkpoint(lambda x: x, static_argnums=(3,))(1.0)


def _pickled_tracer(package):
    package.jit(lambda x: pickle.dumps(x))(1.0)


@pytest.mark.parametrize(("program", "words"), [
    (_keywords_without_a_position, "could not be resolved to positions"),
    (_wrong_shape_in_a_tree, "at output[0]['y'][0] the bwd rule produced an output of type float32[2]"),
    (_tangent_of_an_integer, "Expected float0[] (tangent type of int32[]) but got float32[]"),
    (_static_argument_of_checkpoint, "the `static_argnums` argument to `jax.checkpoint` / `jax.remat`"),
    (_pickled_tracer, "The error occurred in the __reduce__ method"),
])
def test_messages(program, words):
    kinds = []
    for package in (jax, styrax):
        with pytest.raises(Exception, match=re.escape(words)) as info:
            program(package)
        kinds.append(info.type.__name__)
    assert kinds[0] == kinds[1]


STACKS = {
    "vjp of jvp": lambda j, f: j.custom_vjp(j.custom_jvp(f)),
    "jvp of vjp": lambda j, f: j.custom_jvp(j.custom_vjp(f)),
    "vjp of vmap": lambda j, f: j.custom_vjp(j.custom_batching.custom_vmap(f)),
    "vmap of vjp of jvp": lambda j, f: j.custom_batching.custom_vmap(j.custom_vjp(j.custom_jvp(f))),
    "vjp of jit": lambda j, f: j.custom_vjp(j.jit(f)),
    "jit of vjp": lambda j, f: j.jit(j.custom_vjp(f)),
    "vjp of checkpoint": lambda j, f: j.custom_vjp(j.checkpoint(j.custom_jvp(f))),
}


@pytest.mark.parametrize("name", STACKS)
def test_rules_of_stacked_functions(name):
    found = [[hasattr(STACKS[name](package, lambda x: x), setter)
              for setter in ("defjvp", "defjvps", "defvjp", "def_vmap", "lower", "nonsense")]
             for package in (jax, styrax)]
    assert found[1][:4] == found[0][:4] and not found[1][5]


def test_batching_rule_below_a_derivative():
    def program(package):
        jnp = package.numpy
        f = package.custom_vjp(package.custom_batching.custom_vmap(lambda x, y: jnp.sin(x) * y))
        f.def_vmap(lambda size, batched, xs, ys: (jnp.cos(xs) * ys, True))
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (ct * 7.0 * res[1], ct * res[0]))
        return (package.vmap(f)(vector, vector), package.grad(f, (0, 1))(2.0, 3.0),
                package.jit(package.vmap(f))(vector, vector))

    assert_same(program)


@pytest.mark.parametrize("jitted", [False, True])
def test_tangents_that_depend_on_nothing_are_no_part_of_linear_functions(jitted):
    def results(package):
        @package.custom_jvp
        def f(x):
            return x * 2

        f.defjvp(lambda primals, _: (primals[0] * 2, package.numpy.full_like(primals[0], 5)))

        def all_of(x):
            _, push = package.linearize(lambda x: package.numpy.sin(f(x)) + x, x)
            alone = package.linearize(f, x)[1](x)
            return push(x), alone, package.grad(f)(x), package.jvp(f, (x,), (x,))

        return [float(x) for x in package.tree.leaves((package.jit(all_of) if jitted else all_of)(np.float32(3)))]

    np.testing.assert_allclose(results(styrax), results(jax), rtol=1e-6)


def test_what_has_no_derivative_may_follow_on_constants_of_custom_rules():
    a, t = np.ones((4, 2), np.float32), np.ones(2, np.float32)

    def gradient(package):
        @package.custom_jvp
        def constant(x):
            return package.numpy.asarray(a)

        constant.defjvp(lambda primals, tangents: package.jvp(constant.fun, primals, tangents))

        def loss(x):
            return (x + package.lax.linalg.householder_product(constant(x), t)).sum()

        return package.grad(loss)(a)

    np.testing.assert_array_equal(gradient(styrax), gradient(jax))


def _ruled(j, kind, fun):
    if kind == "custom_jvp":
        f = j.custom_jvp(fun)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    else:
        f = j.custom_vjp(fun)
        f.defvjp(lambda *args: (f(*args), None), lambda _, ct: (ct, ct))
    return f


VALUES = [0.5, 3, 2j, True, np.float64(2), np.int64(3), np.ones(2), [0.5, np.ones(2)]]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__} {value}")
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("x64", [False, True])
def test_numbers_come_with_the_dtypes_of_arrays(kind, value, x64):
    """Eagerly, too, and beside what is differentiated: `fun` may ask for them."""
    def seen(j):
        found = []

        def fun(x, y):
            leaves = j.tree.leaves((x, y))
            found.append([str(getattr(v, "dtype", type(v))) for v in leaves])
            return leaves[0]

        f = _ruled(j, kind, fun)
        with j.enable_x64(x64):
            f(value, 1.5)
            f(1.5, value)
            j.jvp(lambda y: f(y, value) if kind == "custom_jvp" else y, (1.0,), (1.0,))
            if kind == "custom_jvp" or not isinstance(value, (list, np.ndarray)):
                j.grad(lambda y: f(y, value))(1.0)
        return found

    assert seen(styrax) == seen(jax)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_what_is_no_array_is_refused_eagerly(kind):
    for j in (styrax, jax):
        with pytest.raises(TypeError, match="JAX (value|type)"):
            _ruled(j, kind, lambda x, y: x)("text", 1.0)


WRAPPED = {
    "grad": (styrax.grad, 12.0),
    "jit of grad": (lambda f: styrax.jit(styrax.grad(f)), 12.0),
    "vmap of grad": (lambda f: lambda x: styrax.vmap(styrax.grad(f))(styrax.numpy.stack([x, x + 1])), [12.0, 18.0]),
}


def _through_a_reference(written):
    """x² and what a reference holds, by a rule that takes tangents through both."""
    def fun(x):
        ref = styrax.new_ref(styrax.numpy.ones((1, 1)))
        ref[...] += written(x)
        return x * x, styrax.freeze(ref)

    ruled = styrax.custom_jvp(fun)
    ruled.defjvp(lambda primals, tangents: styrax.jvp(fun, primals, tangents))
    return ruled


@pytest.mark.parametrize("wrap", ["grad", "jit of grad", "vmap of grad"])
def test_what_references_hold_of_no_tangent_has_no_slope(wrap):
    """What follows has no derivative to take (JAX takes the first of these only)."""
    def f(x):
        a, held = _through_a_reference(lambda x: 1.0)(x)
        return a * 3 + styrax.lax.linalg.cholesky_update(held, styrax.numpy.ones(1))[0, 0]

    transformed, slope = WRAPPED[wrap]
    np.testing.assert_allclose(transformed(f)(styrax.numpy.float32(2.0)), slope, rtol=1e-6)


@pytest.mark.parametrize("wrap", ["grad", "jit of grad"])
def test_what_references_hold_of_tangents_has_a_slope(wrap):
    def f(x):
        a, held = _through_a_reference(lambda x: x * x)(x)
        return a + 2 * held[0, 0]

    transformed, slope = WRAPPED[wrap]
    np.testing.assert_allclose(transformed(f)(styrax.numpy.float32(2.0)), slope, rtol=1e-6)


@pytest.mark.parametrize("around", ["nothing", "jvp", "vmap", "jacfwd", "jacrev"])
def test_numbers_tell_their_dtypes_inside(around):
    """Whatever transforms the call, if its arguments do not depend on it."""
    def program(package):
        seen = []

        def f(x, y):
            seen.append([str(v.dtype) for v in (x, y)])
            return x * y

        own = package.custom_vjp(f)
        own.defvjp(lambda x, y: (f(x, y), (x, y)), lambda saved, ct: (ct * saved[1], ct * saved[0]))
        other = package.custom_jvp(f)
        other.defjvp(lambda xs, ts: (f(*xs), ts[0]))

        def call(t):
            return own(np.float32(2), 0.3) + other(np.float64(2), 3)

        ones = package.numpy.ones(2)
        {"nothing": call, "jvp": lambda t: package.jvp(call, (t,), (t,)), "vmap": package.vmap(call),
         "jacfwd": package.jacfwd(call), "jacrev": package.jacrev(call)}[around](ones)
        return seen

    assert program(styrax) == program(jax)
