"""Custom derivative rules that close over traced values, see symbolic zeros, or are met by other directions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, jax, styrax, vector

half = vector * np.float32(0.5)
two, three = np.float32(2), np.float32(3)


def two_results(package, seen):
    """x y and sin y, with a JVP rule that notes and returns symbolic zeros."""
    jnp, zero = package.numpy, package.custom_derivatives.SymbolicZero
    f = package.custom_jvp(lambda x, y: (x * y, jnp.sin(y)))

    def rule(primals, tangents):
        x, y = primals
        seen.append([isinstance(t, zero) for t in tangents] + [t.shape for t in tangents])
        outs = f(x, y)
        dense = [jnp.zeros(t.shape, t.dtype) if isinstance(t, zero) else t for t in tangents]
        sin = zero(outs[1].aval) if isinstance(tangents[1], zero) else tangents[1] * jnp.cos(y)
        return outs, (dense[0] * y + x * dense[1], sin)

    f.defjvp(rule, symbolic_zeros=True)
    return f


def two_results_back(package, seen):
    jnp, zero = package.numpy, package.custom_derivatives.SymbolicZero
    f = package.custom_vjp(lambda x, y: (x * y, jnp.sin(y)))

    def fwd(x, y):
        seen.append([x.perturbed, y.perturbed])
        return f(x.value, y.value), (x.value, y.value)

    def bwd(residuals, cts):
        x, y = residuals
        seen.append([isinstance(ct, zero) for ct in cts] + [ct.shape for ct in cts])
        a, b = (jnp.zeros(ct.shape, ct.dtype) if isinstance(ct, zero) else ct for ct in cts)
        return a * y * 2, a * x + b * jnp.cos(y) * 3

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


SYMBOLIC = {
    "vmap": lambda j, f: j.grad(lambda x: j.vmap(f)(x, half)[0].sum())(vector),
    "vmap of one argument": lambda j, f: j.grad(lambda x: j.vmap(f, (0, None))(x, two)[1].sum())(vector),
    "the argument not mapped": lambda j, f: j.grad(
        lambda y: j.vmap(f, (0, None))(vector, y)[0].sum())(two),
    "vmap of vmap": lambda j, f: j.grad(
        lambda x: j.vmap(j.vmap(f, (None, 0)), (0, None))(x, half)[0].sum())(vector),
    "vmap of jit": lambda j, f: j.grad(lambda x: j.vmap(j.jit(f))(x, half)[0].sum())(vector),
    "jit": lambda j, f: j.jit(j.grad(lambda x, y: j.vmap(f)(x, y)[0].sum()))(vector, half),
    "vmap of grad": lambda j, f: j.vmap(j.grad(lambda x, y: f(x, y)[1]))(vector, half),
    "scan": lambda j, f: j.grad(lambda x: j.lax.scan(
        lambda c, y: (j.vmap(f)(c, y)[0], None), x, np.stack([half, half]))[0].sum())(vector),
    "empty": lambda j, f: j.grad(lambda x: j.vmap(f)(x, half[:0])[0].sum())(vector[:0]),
}


@pytest.mark.parametrize("make", [two_results, two_results_back])
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_zeros_are_mapped(name, make):
    def program(package):
        seen = []
        return SYMBOLIC[name](package, make(package, seen)), seen

    assert_same(program)


def scaled(package, c):
    f = package.custom_jvp(lambda x: x * c)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * c * 2))
    return f


def scaled_back(package, c):
    f = package.custom_vjp(lambda x: x * c)
    f.defvjp(lambda x: (f(x), c), lambda c, ct: (ct * c * 2,))
    return f


def scan(package, f):
    return lambda x: package.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


CLOSED_OVER = {
    "vmap of grad": lambda j, make: j.vmap(lambda c: j.grad(make(j, c))(three))(vector),
    "grad of vmap": lambda j, make: j.grad(lambda x: j.vmap(lambda c, x: make(j, c)(x))(vector, x).sum())(half),
    "grad of jit of vmap": lambda j, make: j.grad(
        lambda x: j.jit(j.vmap(lambda c, x: make(j, c)(x)))(vector, x).sum())(half),
    "jit": lambda j, make: j.jit(j.grad(lambda x: j.vmap(lambda c, x: make(j, c)(x))(vector, x).sum()))(half),
    "vmap of grad of vmap": lambda j, make: j.jit(j.vmap(
        lambda c: j.grad(lambda x: j.vmap(make(j, c))(x).sum())(half)))(vector),
    "not mapped but for the rule": lambda j, make: j.grad(
        lambda x: j.vmap(lambda c: j.vmap(make(j, c))(j.numpy.stack([x, x])).sum())(vector).sum())(three),
    "vmap of grad of scan": lambda j, make: j.vmap(lambda c, x: j.grad(scan(j, make(j, c)))(x))(vector, half),
    "of jvp": lambda j, make: j.grad(lambda c: make(j, c)(three))(two),
    "of jvp in jit": lambda j, make: j.grad(lambda c: j.checkpoint(make(j, c))(three))(two),
}


@pytest.mark.parametrize("make", [scaled, scaled_back])
@pytest.mark.parametrize("name", CLOSED_OVER)
def test_rules_close_over_values(name, make):
    try:
        expected = CLOSED_OVER[name](jax, make)
    except Exception as error:
        with pytest.raises(Exception) as caught:
            CLOSED_OVER[name](styrax, make)
        assert type(error).__name__ in [c.__name__ for c in type(caught.value).__mro__]
    else:
        assert_same(lambda package: expected if package is jax else CLOSED_OVER[name](package, make))


def test_rules_in_jit_close_over_values():
    """Where JAX has no constant for a tracer, the value enters as an argument."""
    for make in scaled, scaled_back:
        found = styrax.vmap(lambda c, x, make=make: styrax.grad(styrax.jit(make(styrax, c)))(x))(vector, half)
        np.testing.assert_array_equal(found, 2 * vector)
    found = styrax.vmap(lambda c: styrax.jvp(styrax.jit(scaled(styrax, c)), (three,), (two,)))(vector)
    np.testing.assert_array_equal(found[1], 4 * vector)


def pulled_back(package):
    f = package.custom_vjp(lambda x: package.numpy.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x,))
    return f


FORWARD = {
    "jvp of jit": lambda j, f: j.jvp(j.jit(f), (vector,), (vector,)),
    "jit of jvp": lambda j, f: j.jit(lambda x: j.jvp(f, (x,), (x,)))(vector),
    "jacfwd": lambda j, f: j.jacfwd(f)(vector),
    "hessian": lambda j, f: j.hessian(lambda x: f(x).sum())(vector),
    "linearize of scan": lambda j, f: j.linearize(scan(j, f), vector)[1](vector),
    "checkpoint": lambda j, f: j.jvp(j.checkpoint(f), (vector,), (vector,)),
    "vjp of linearize": lambda j, f: j.vjp(j.linearize(f, vector)[1], vector),
    "of something else": lambda j, f: j.jvp(lambda y: j.jit(f)(vector) * y, (vector,), (vector,)),
    "of an unused result": lambda j, f: j.jit(lambda x: j.jvp(lambda x: (f(x), x)[1], (x,), (x,)))(vector),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_of_custom_vjp(name):
    try:
        expected = FORWARD[name](jax, pulled_back(jax))
    except Exception as error:
        with pytest.raises(type(error), match="custom_"):
            FORWARD[name](styrax, pulled_back(styrax))
    else:
        assert_same(lambda package: expected if package is jax else FORWARD[name](package, pulled_back(package)))


WRAPPED = {
    "plain": lambda j, f: f,
    "jit": lambda j, f: j.jit(f),
    "scan": scan,
    "checkpoint": lambda j, f: j.checkpoint(f),
    "vmap": lambda j, f: lambda x: j.vmap(f)(x[None])[0],
    "vjp of linearize": lambda j, f: j.linearize(f, vector)[1],
}
TRANSPOSED = {
    "transpose": lambda j, f: j.linear_transpose(f, vector)(vector),
    "jit": lambda j, f: j.jit(lambda y: j.linear_transpose(f, vector)(y))(vector),
    "vmap": lambda j, f: j.vmap(lambda y: j.linear_transpose(f, vector)(y))(np.stack([vector, half])),
    "of vmap": lambda j, f: j.linear_transpose(j.vmap(f), np.stack([vector, half]))(np.stack([half, vector])),
    "twice": lambda j, f: j.linear_transpose(lambda y: j.linear_transpose(f, vector)(y)[0], vector)(vector),
}


@pytest.mark.parametrize("name", TRANSPOSED)
@pytest.mark.parametrize("wrap", WRAPPED)
def test_linear_custom_jvp_is_transposed(wrap, name):
    def program(package):
        f = package.custom_jvp(lambda x, y: (y * x, x.sum()))
        f.defjvp(lambda primals, tangents: (f(*primals), tuple(3 * t for t in f(tangents[0], primals[1]))))
        return TRANSPOSED[name](package, WRAPPED[wrap](package, lambda x: f(x, half)[0] + f(x, half)[1]))

    assert_same(program)


def product(package, seen):
    """A product whose batching rule notes what it is told."""
    f = package.custom_batching.custom_vmap(lambda x, y: x * y)

    @f.def_vmap
    def rule(size, in_batched, x, y):
        seen.append([*in_batched, x.shape, y.shape])
        return x * y, any(in_batched)

    return f


MAPPED = {
    "values and tangents": lambda j, f: j.vmap(lambda x: j.jvp(f, (x, two), (x, two)))(vector),
    "values alone": lambda j, f: j.vmap(lambda x: j.jvp(f, (x, two), (two, two)))(vector),
    "tangents alone": lambda j, f: j.vmap(lambda x: j.jvp(f, (two, three), (x, two)))(vector),
    "jacfwd": lambda j, f: j.jacfwd(lambda x: f(x, half))(vector),
    "one's value, the other's tangent": lambda j, f: j.vmap(
        lambda x, y: j.jvp(f, (x, two), (two, y)))(vector, half),
}


@pytest.mark.parametrize("name", MAPPED)
def test_batching_rules_are_told_what_is_mapped(name):
    def program(package):
        seen = []
        return MAPPED[name](package, product(package, seen)), seen

    assert_same(program)


def test_batching_rules_with_values_mapped_and_tangents_not():
    """One argument is mapped in both ways, the other in one: every example is its own product."""
    seen = []
    f = product(styrax, seen)
    out = styrax.vmap(lambda x, y: styrax.jvp(f, (x, y), (x, two)))(vector, half)
    np.testing.assert_allclose(out[0], vector * half)
    np.testing.assert_allclose(out[1], vector * half + 2 * vector)
    assert seen == [[True, True, (3,), (3,)]]


def doubled(package, wrap):
    """Its program works on a reference of its own; its rule says three times as much."""

    def in_place(x):
        ref = package.new_ref(x * 1)
        ref[...] = ref[...] * 2
        return ref[...]

    if wrap == "jvp":
        f = package.custom_jvp(in_place)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 6))
    else:
        f = package.custom_vjp(in_place)
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 6,))
    return f


REFERENCES = {
    "jit": lambda j, f: j.jit(f)(vector),
    "lower": lambda j, f: j.jit(f).lower(vector).compile()(vector),
    "vmap": lambda j, f: j.jit(j.vmap(f))(vector),
    "grad of jit": lambda j, f: j.grad(j.jit(lambda x: f(x).sum()))(vector),
    "scan": lambda j, f: j.grad(lambda x: scan(j, f)(x).sum())(vector),
    "cond": lambda j, f: j.grad(lambda x: j.lax.cond(x.sum() > 0, f, lambda x: x, x).sum())(vector),
    "checkpoint": lambda j, f: j.jit(j.grad(lambda x: j.checkpoint(f)(x).sum()))(vector),
}


@pytest.mark.parametrize("wrap", ["jvp", "vjp"])
@pytest.mark.parametrize("name", REFERENCES)
def test_references_in_custom_functions(name, wrap):
    expected = {"jit": 2 * vector, "lower": 2 * vector, "vmap": 2 * vector, "scan": np.full(3, 36)}
    np.testing.assert_array_equal(REFERENCES[name](styrax, doubled(styrax, wrap)), expected.get(name, np.full(3, 6)))


@pytest.mark.parametrize("inner", [lambda j, f: f, lambda j, f: j.jit(f)])
def test_effects_in_a_linearized_while_loop(inner):
    """The loop of values and the loop of tangents both call back."""

    def program(package):
        seen = []

        def step(carry):
            package.debug.callback(lambda i: seen.append(int(i)), carry[0], ordered=True)
            return carry[0] + 1, carry[1] * 2

        def f(x):
            return package.lax.while_loop(lambda carry: carry[0] < 2, step, (0, x))[1]

        out = package.linearize(inner(package, f), two)[1](three)
        package.effects_barrier()
        return out, seen

    assert_same(program)


@pytest.mark.parametrize("loop", ["fori_loop", "scan", "while_loop", "jit", "cond"])
@pytest.mark.parametrize("way", ["grad", "jit of grad", "vjp", "linearize", "hessian"])
def test_calls_that_nothing_uses_may_close_over_what_is_traced(loop, way):
    """A rule that closes over values of a loop's body cannot run after it; where nothing uses it, it need not."""

    def answer(package):
        lax = package.lax

        def body(v):
            chosen = (v > 0).astype(int)
            either = lambda x: lax.switch(chosen, [lambda y: y * 2, lambda y: y * 3], x)
            unused = package.custom_jvp(either)
            unused.defjvp(lambda p, t: package.jvp(either, p, t))
            unused(v)
            return v * v

        f = {
            "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, v: body(v), x),
            "scan": lambda x: lax.scan(lambda v, _: (body(v), v), x, None, length=2, unroll=2)[0],
            "while_loop": lambda x: lax.scan(lambda v, _: (lax.while_loop(lambda c: c[0] < 2., lambda c: (
                c[0] + lax.stop_gradient(body(c[0]) + 1), c[1]), (lax.stop_gradient(v), v))[1] * v, v), x, None, 2)[0],
            "jit": package.jit(body),
            "cond": lambda x: lax.cond(x > 0, body, lambda v: v, x),
        }[loop]
        x = np.float32(1.5)
        return {
            "grad": lambda: package.grad(f)(x),
            "jit of grad": lambda: package.jit(package.grad(f))(x),
            "vjp": lambda: package.vjp(f, x)[1](package.numpy.float32(1.0))[0],
            "linearize": lambda: package.linearize(f, x)[1](x),
            "hessian": lambda: package.hessian(f)(x),
        }[way]()

    np.testing.assert_allclose(answer(styrax), answer(jax), rtol=1e-6)


PASSING = {
    "pmin": lambda package, v: package.lax.pmin(v, "i"),
    "pmax": lambda package, v: package.lax.pmax(v, "i"),
    "cond": lambda package, v: package.lax.cond(True, lambda y: y, lambda y: y, v),
    "pbroadcast": lambda package, v: package.lax.pbroadcast(v, "i", 0),
}


@pytest.mark.parametrize("number", [2.5, 3, True, np.float32(2)])
@pytest.mark.parametrize("wrap", ["vmap", "jit", "grad", "jvp", "checkpoint"])
@pytest.mark.parametrize("name", PASSING)
def test_numbers_that_are_passed_on_tell_their_dtypes(name, wrap, number):
    def told(package):
        seen = []

        def f(x):
            y = PASSING[name](package, number)
            seen.append(getattr(y, "dtype", type(y)))
            return x * 1.0

        inner = {
            "vmap": f,
            "jit": package.jit(f),
            "grad": package.grad(f),
            "jvp": lambda x: package.jvp(f, (x,), (x,)),
            "checkpoint": package.checkpoint(f),
        }[wrap]
        package.vmap(inner, axis_name="i")(np.float32([1, 2]))
        return seen[-1]

    assert told(styrax) == told(jax)
