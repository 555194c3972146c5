"""Scopes around equations: transformations wrap the names inside, and programs start with none. The oracle is JAX."""

import pytest


def scopes(closed):
    """The primitives and scopes of a program, those of programs inside indented."""
    lines = []
    for eqn in closed.eqns:
        lines.append((eqn.primitive.name, str(eqn.source_info.name_stack)))
        for value in eqn.params.values():
            for item in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(item, "eqns"):
                    lines.append(scopes(item))
    return lines


def inner(jax, x):
    with jax.named_scope("foo"):
        return jax.numpy.sin(x) * 2


def within(jax):
    def f(x):
        with jax.named_scope("outer"):
            return jax.grad(lambda x: inner(jax, x))(x)

    return f


def custom_jvp(jax):
    @jax.custom_jvp
    def g(y):
        with jax.named_scope("g"):
            return y * 3

    @g.defjvp
    def rule(primals, tangents):
        with jax.named_scope("rule"):
            return g(*primals), tangents[0] * 3

    def f(x):
        with jax.named_scope("f"):
            return g(x)

    return f


def custom_vjp(jax):
    @jax.custom_vjp
    def g(y):
        with jax.named_scope("g"):
            return y * 3

    def fwd(x):
        with jax.named_scope("fwd"):
            return x * 3, x

    def bwd(kept, ct):
        with jax.named_scope("bwd"):
            return (ct * kept,)

    g.defvjp(fwd, bwd)
    return jax.grad(jax.named_scope("f")(lambda x: g(x)))


def loop(jax):
    def body(c, _):
        with jax.named_scope("body"):
            return jax.numpy.sin(c), None

    return jax.named_scope("around")(lambda x: jax.lax.scan(body, x, None, length=3)[0])


def branch(jax):
    f = jax.named_scope("true")(jax.numpy.sin)
    return jax.named_scope("around")(lambda x: jax.lax.cond(x > 1, f, jax.numpy.cos, x))


PROGRAMS = {
    "jit": lambda jax: jax.named_scope("around")(jax.jit(lambda x: inner(jax, x))),
    "grad of jit": lambda jax: jax.grad(jax.jit(lambda x: inner(jax, x))),
    "grad in a scope": within,
    "vmap of grad in a scope": lambda jax: lambda x: jax.vmap(within(jax))(jax.numpy.stack([x, x])),
    "grad of grad in a scope": lambda jax: jax.grad(within(jax)),
    "jvp": lambda jax: jax.named_scope("around")(lambda x: jax.jvp(lambda y: inner(jax, y), (x,), (x,))),
    "linearize": lambda jax: lambda x: jax.linearize(lambda y: inner(jax, y), x)[1](x),
    "vjp": lambda jax: lambda x: jax.vjp(lambda y: inner(jax, y), x)[1](x),
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "scan": loop,
    "grad of scan": lambda jax: jax.grad(loop(jax)),
    "cond": branch,
    "checkpoint": lambda jax: lambda x: jax.tree.leaves(jax.vjp(jax.checkpoint(lambda x: inner(jax, x)), x)[0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_scopes_of_equations_are_those_of_jax(name):
    import jax

    import styrax

    program = PROGRAMS[name]
    assert scopes(styrax.make_jaxpr(program(styrax))(1.0)) == scopes(jax.make_jaxpr(program(jax))(1.0))


def test_scopes_are_closed_after_an_error():
    import styrax
    from styrax.core.programs.name_stack import current_name_stack

    def fails(x):
        with styrax.named_scope("inside"):
            raise RuntimeError("stop")

    for transformed in (styrax.jit, styrax.vmap, styrax.grad, lambda f: lambda x: styrax.jvp(f, (x,), (x,))):
        with pytest.raises(RuntimeError, match="stop"), styrax.named_scope("outside"):
            transformed(fails)(styrax.numpy.ones(2))
        assert str(current_name_stack()) == ""


def test_what_is_computed_again_says_so():
    import styrax

    program = styrax.make_jaxpr(styrax.grad(styrax.checkpoint(lambda x: inner(styrax, x))))(1.0)
    (inside,) = (lines for lines in scopes(program) if isinstance(lines, list))
    assert inside == [("cos", "rematted_computation/foo"), ("mul", "foo"), ("mul", "foo")]


@pytest.mark.parametrize("around", ["plain", "vmap", "vmap of jvp", "vmap of jit"])
def test_scopes_of_a_loop_for_xla(around):
    """A mapped predicate is computed again in the body, and says so."""
    import re

    import jax as theirs
    import numpy as np

    import styrax as ours

    def told(jax):
        @jax.named_scope("looped")
        def f(x):
            test = jax.named_scope("test")(lambda x: x < 5.0)
            return jax.lax.while_loop(test, jax.named_scope("turn")(lambda x: x + 1.0), x)

        x = np.arange(2, dtype=np.float32)
        run, args = {
            "plain": (f, (x[0],)), "vmap": (jax.vmap(f), (x,)), "vmap of jit": (jax.vmap(jax.jit(f)), (x,)),
            "vmap of jvp": (jax.vmap(lambda x, t: jax.jvp(f, (x,), (t,))), (x, x)),
        }[around]
        text = jax.jit(run).lower(*args).as_text(debug_info=True)
        return {name for name in re.findall(r'loc\("(jit[^"]*)"', text) if "test" in name or "turn" in name}

    assert told(ours) == told(theirs)
