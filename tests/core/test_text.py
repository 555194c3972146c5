"""Jaxprs print as JAX prints them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from styrax.core.programs.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.text import callable_name, default_eqn, eqn_rules
from styrax.core.types.avals import ShapedArray
from tests.core.conversion import convert

X = jnp.ones(3)
M = jnp.ones((3, 3))


def foo(y):
    return jnp.sin(y) * 2


def many(x, n=15):
    for _ in range(n):
        x = jnp.sin(x)
    return x


def bar(x):
    return jax.jit(foo)(x) + jax.jit(foo)(x * 2)


def two(x):
    return x * 2, x * 3


def dependent(x):
    y = x * 2
    return y, y * 3


def other_foo():
    def foo(y):
        return y * 3

    return foo


jit_foo, jit_other_foo = jax.jit(foo), jax.jit(other_foo())
jit_many = jax.jit(many)


def body(c, a):
    return c, a


@jax.custom_jvp
def custom(x):
    return jnp.sin(x)


custom.defjvp(lambda p, t: (custom(p[0]), t[0]))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def power(x, n):
    return x**n


@power.defjvp
def power_jvp(n, p, t):
    return p[0], t[0]


@jax.custom_vjp
def custom_reverse(x):
    return jnp.sin(x)


def reverse_forward(x):
    return custom_reverse(x), x


custom_reverse.defvjp(reverse_forward, lambda r, t: (t,))


def loss(w, x):
    for layer in w:
        x = jax.nn.relu(x @ layer)
    return jnp.sum(jax.nn.log_softmax(x))


W = [jnp.ones((3, 3))] * 3

PROGRAMS = {
    "simple": (lambda x, y: x * y + 2.0, X, 1.0),
    "literals": (lambda x: (x * 2, 3.0, np.float32(2) * x, x + True), X),
    "dropped": (lambda x: lax.sort((x, x))[0], X),
    "reduce": (lambda x: x.reshape(1, 3).sum(0), X),
    "eigh": (lambda x: jnp.linalg.eigh(jnp.outer(x, x)), X),
    "jit": (lambda x: jax.jit(lambda y: y * 2)(x), X),
    "jit twice": (lambda x: jit_foo(jit_foo(x)), X),
    "jit donated": (lambda x: jax.jit(foo, donate_argnums=0)(x), X),
    "jit static": (lambda x: jax.jit(lambda y, n: y * n, static_argnums=1)(x, 3), X),
    "jit keeps": (lambda x: jax.jit(lambda x, y: x, keep_unused=True)(x, x), X),
    "jit identity": (lambda x: jax.jit(lambda x: x)(x), X),
    "jit constant": (lambda x: jax.jit(lambda x: x + M)(x), M),
    "jit closure": (lambda x: jax.jit(lambda y: y + x)(x), X),
    "jit closure of value": (lambda x: jax.jit(lambda y: y + jnp.sin(x))(x * 2), X),
    "jit literal": (lambda x: jax.jit(lambda y, z: y + z)(x, 2.0), X),
    "jit same argument": (lambda x: jax.jit(lambda a, b, c: a + b + c)(x, 2.0, x), X),
    "jit same result": (lambda x: jax.jit(lambda y: (y * 2,) * 2)(x), X),
    "jit literal result": (lambda x: jax.jit(lambda y: (y * 2, 3.0))(x), X),
    "jit drops": (lambda x: jax.jit(two)(x)[1], X),
    "jit drops first": (lambda x: jax.jit(two)(x)[0], X),
    "jit drops used": (lambda x: jax.jit(dependent)(x)[1], X),
    "deep": (
        lambda x: jax.jit(lambda a: jax.jit(lambda b: jax.jit(lambda c: c * 2)(b) * 2)(a) + 1)(x) + 3,
        X,
    ),
    "shared below": (lambda x: jax.jit(bar)(x) + jit_foo(x), X),
    "shared in shared": (lambda x: jax.jit(bar)(x) + jax.jit(bar)(x * 3), X),
    "same names": (lambda x: jit_foo(jit_foo(x)) + jit_other_foo(jit_other_foo(x)), X),
    "same names, other shapes": (lambda x: (jit_foo(jit_foo(x)), jit_foo(jit_foo(x[0]))), X),
    "shared in scan": (lambda x: lax.scan(lambda c, a: (jit_foo(jit_foo(c)), a), x, None, length=3), X),
    "shared branches": (lambda x: lax.cond(x[0] > 1, jit_foo, jit_foo, x), X),
    "scan twice": (lambda x: (lax.scan(body, x, None, length=3), lax.scan(body, x, None, length=3)), X),
    "long": (lambda x: jax.jit(lambda y: jit_many(y) * 2)(x), X),
    "long branch": (lambda i, x: lax.cond(i, many, jnp.cos, x), True, X),
    "long loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: many(c), x), X),
    "ten and eleven": (
        lambda x: (
            jax.jit(functools.partial(many, n=10))(x),
            jax.jit(lambda y: many(y, 11))(x),
        ),
        X,
    ),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: x * 2, x), X),
    "switch": (lambda i, x: lax.switch(i, [lambda x: x, lambda x: x * 2, jnp.sin], x), 1, X),
    "platform": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), X),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)), X),
    "while with constants": (lambda x: lax.while_loop(lambda c: c.sum() < x.sum(), lambda c: c + x, x), X),
    "scan": (lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x), X),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x), X),
    "associative scan": (lambda x: lax.associative_scan(jnp.add, x), X),
    "custom jvp": (custom, X),
    "custom jvp, static": (lambda x: power(x, 2), X),
    "custom vjp": (custom_reverse, X),
    "custom vjp, batched": (jax.vmap(custom_reverse), M),
    "relu": (lambda x: jax.nn.relu(jax.nn.relu(x)), X),
    "dot": (lambda x: x @ x, X),
    "dot, precise": (lambda x: jnp.dot(x, x, precision="high"), X),
    "softmax": (jax.nn.softmax, X),
    "gather": (lambda x: x[jnp.array([0, 1])], X),
    "index": (lambda x, i: x[i], X, 1),
    "update": (lambda x: x.at[0].set(3.0).at[jnp.array([0, 1])].add(1.0), X),
    "convolution": (
        lambda x: lax.conv(jnp.ones((1, 1, 3, 3)), jnp.ones((1, 1, 2, 2)), (1, 1), "SAME"),
        X,
    ),
    "normal": (lambda k: jax.random.normal(k, (3,)), jax.random.key(0)),
    "keys": (
        lambda k: (jax.random.bits(k), jax.random.fold_in(k, 3), jax.random.uniform(k)),
        jax.random.key(1),
    ),
    "raw keys": (jax.random.split, jax.random.PRNGKey(0)),
    "constant": (lambda x: x + np.arange(3.0), X),
    "no arguments": (lambda: jnp.zeros(3),),
    "no results": (lambda x: None, X),
    "identity": (lambda x: x, X),
    "remat": (jax.grad(lambda x: jax.checkpoint(foo)(x).sum()), X),
    "remat, long": (jax.checkpoint(many), X),
    "print": (lambda x: jax.debug.print("a {x}", x=x), X),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x))), X),
    "network": (jax.grad(loss), W, M),
    "network, batched": (jax.vmap(jax.grad(loss), (None, 0)), W, jnp.ones((5, 3, 3))),
    "optimizer step": (jax.jit(lambda w, x: [a - 0.1 * b for a, b in zip(w, jax.grad(loss)(w, x))]), W, M),
    "accuracy": (lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST), X),
    "svd": (jnp.linalg.svd, M),
    "linspace": (lambda x: jnp.linspace(0, 1, 5) + jnp.where(x[0] > 0, 1, 2), X),
    "reduce window": (lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b * 2, (2,), (1,), "VALID"), X),
    "pad": (lambda x: (x[::-1], jnp.pad(x, 1), jnp.split(x, 3), jnp.where(x > 0, x, 0.0)), X),
    "complex": (lambda x: (lax.complex(x, x), jnp.real(x * 1j)), X),
    "many arguments": (lambda *xs: sum(xs), *([X] * 30)),
    "many results": (lambda x: tuple(x * i for i in range(30)), X),
    "concatenate": (lambda x: jnp.concatenate([x] * 40), X),
    "fft": (jnp.fft.fft, X),
    "cholesky": (jnp.linalg.cholesky, M),
    "einsum": (lambda a, b: jnp.einsum("ij,kj->ki", a, b), M, M),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 3)), X),
    "bessel": (lambda x: jax.scipy.special.i0(x), X),
    "sort": (lambda x: (jnp.argsort(x), jnp.median(x), jnp.unique(x, size=2)), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"width": 40},
        {"width": 120},
        {"print_shapes": False},
        {"use_color": True},
        {"custom_pp_eqn_rules": False},
    ],
    ids=str,
)
def test_prints_as_jax(name, settings):
    fun, *args = PROGRAMS[name]
    theirs = jax.make_jaxpr(fun)(*args)
    ours = convert(theirs)
    if settings.get("custom_pp_eqn_rules") is False and "custom_" in str(theirs):
        pytest.skip("prints addresses")
    if "use_color" in settings and name == "many arguments":
        pytest.skip("JAX ends a colour before some newlines and after others")
    assert ours.pretty_print(**settings) == theirs.pretty_print(**settings)
    if not settings:
        assert str(ours) == str(theirs)
        assert str(ours.jaxpr) == str(theirs.jaxpr)


@pytest.mark.parametrize("name", PROGRAMS)
def test_equations_print_as_jax(name):
    fun, *args = PROGRAMS[name]
    theirs = jax.make_jaxpr(fun)(*args)
    for eqn, their_eqn in zip(convert(theirs).eqns, theirs.eqns):
        assert str(eqn) == str(their_eqn)


F32 = ShapedArray((), np.float32)


def test_drop_var_and_empty():
    a, b = Var(F32), Var(F32)
    p = Primitive("pp")
    jaxpr = Jaxpr([], [a], [], [JaxprEqn([a], [DropVar(F32)], p, {}), JaxprEqn([], [b], p, {})])
    assert str(jaxpr) == "{ lambda ; a:f32[]. let _:f32[] = pp a; _:f32[] = pp  in () }"
    assert (
        str(Jaxpr([], [], [Literal(True, ShapedArray((), bool))], []))
        == "{ lambda ; . let  in (True:bool[],) }"
    )


def test_own_rule():
    p = Primitive("special")
    eqn_rules[p] = lambda eqn, names, settings: default_eqn(eqn, names, settings, [("k", 1)], name="hello")
    a, b = Var(F32), Var(F32)
    assert str(JaxprEqn([a], [b], p, {})) == "a:f32[] = hello[k=1] b"
    del eqn_rules[p]


def test_effects():
    class Loud:
        def __str__(self):
            return "Loud"

    a = Var(F32)
    jaxpr = Jaxpr([], [a], [a], [], {Loud()})
    assert jaxpr.pretty_print(print_effects=True) == "{ lambda ; a:f32[]. let  in (a,) : { Loud } }"


def test_source_lines():
    from styrax.core.tracing import source

    a, b = Var(F32), Var(F32)
    here = source.current()
    eqn = JaxprEqn([a], [b], Primitive("sin"), {}, source_info=here)
    closed = ClosedJaxpr(Jaxpr([], [a], [b], [eqn]), [])
    first, second, third = closed.pretty_print(source_info=True, width=20).split("\n")
    assert first == "{ lambda ; a:f32[]. let"
    assert second.startswith("    b:f32[] = sin a     # ") and second.endswith("(test_source_lines)")
    assert f"test_text.py:{here.line}:" in second
    assert third == "  in (b,) }"


def test_callable_name():
    def f(x):
        return x

    assert callable_name(functools.partial(f, 1)) == "f"
    assert callable_name(jax.jit(f)) == "f"
    assert callable_name(object()) == "object"


def by_lax(lax, np):
    """Programs of primitives alone, which both libraries trace to the same equations."""
    f = np.float32

    def loop(x):
        return lax.while_loop(
            lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), lax.mul(c[1], f(2))), (0, x)
        )

    def branch(x):
        pred = lax.gt(lax.reduce_sum(x, (0,)), f(0))
        return lax.cond(pred, lambda x: x, lambda x: lax.mul(x, f(2)), x)

    def scan(x):
        return lax.scan(lambda c, a: (lax.add(c, a), lax.mul(c, a)), f(0), x)

    return {
        "elementwise": lambda x: lax.exp(lax.add(lax.sin(x), lax.mul(x, x))),
        "scalars": lambda x: (lax.add(x, f(1)), lax.max(x, f(0)), lax.integer_pow(x, 3)),
        "casts": lambda x: lax.convert_element_type(x, np.int8),
        "dot": lambda x: lax.dot(x, x),
        "shapes": lambda x: lax.transpose(
            lax.broadcast_in_dim(lax.reshape(x, (1, 3)), (2, 1, 3), (1, 2)), (2, 0, 1)
        ),
        "slices": lambda x: lax.concatenate([lax.slice(x, (0,), (2,)), lax.rev(x, (0,))], 0),
        "sort": lambda x: lax.sort((x, x), num_keys=1)[0],
        "select": lambda x: lax.select(lax.gt(x, lax.neg(x)), x, lax.abs(x)),
        "loop": loop,
        "branch": branch,
        "scan": scan,
        "unused": lambda x: (lax.sin(x), x)[1],
    }


@pytest.mark.parametrize("name", by_lax(lax, np))
def test_traced_programs_print_as_jax(name):
    from styrax import lax as own_lax
    from styrax.transforms.api import make_jaxpr

    x = np.ones(3, np.float32)
    ours = make_jaxpr(by_lax(own_lax, np)[name])(x)
    assert str(ours) == str(jax.make_jaxpr(by_lax(lax, np)[name])(x))


def test_references_print_as_jax():
    from jax._src.state import primitives as theirs

    from styrax.transforms import refs
    from styrax.transforms.api import make_jaxpr

    def program(new, get, set_, swap, add):
        def f(m, i):
            r = new(m)
            set_(r, (0, 1), np.float32(3))
            old = swap(r, (0, slice(0, 2)), get(r, (1, slice(0, 2))))
            add(r, (), m)
            add(r, (0, 0), np.float32(1))
            return old, get(r, ...), get(r, i), get(r, (slice(1, 3), i)), get(r, np.array([0, 1]))

        return f

    m = np.ones((3, 3), np.float32)
    ours = program(refs.new_ref, refs.ref_get, refs.ref_set, refs.ref_swap, refs.ref_addupdate)
    other = program(jax.new_ref, theirs.ref_get, theirs.ref_set, theirs.ref_swap, theirs.ref_addupdate)
    assert str(make_jaxpr(ours)(m, 1)) == str(jax.make_jaxpr(other)(m, 1))
