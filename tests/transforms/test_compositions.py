"""Random programs under random stacks of transformations, against JAX."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from styrax.core.programs.check import check_jaxpr
from tests.transforms.oracle import assert_same, jax, styrax

UNARY = ["sin", "cos", "tanh", "exp_small", "square", "negative"]
BINARY = ["add", "multiply", "subtract"]


def apply(package, op, *args):
    jnp = package.numpy
    if op == "exp_small":
        return jnp.exp(args[0] * 0.1)
    return getattr(jnp, op)(*args)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("unary"), st.sampled_from(UNARY), st.integers(0, 5)),
        st.tuples(st.just("binary"), st.sampled_from(BINARY), st.integers(0, 5), st.integers(0, 5)),
        st.tuples(st.just("jit"), st.sampled_from(UNARY), st.integers(0, 5)),
        st.tuples(st.just("checkpoint"), st.sampled_from(UNARY), st.integers(0, 5)),
        st.tuples(st.just("scan"), st.sampled_from(["sin", "cos", "tanh"]), st.integers(0, 5)),
        st.tuples(st.just("cond"), st.sampled_from(UNARY), st.integers(0, 5)),
        st.tuples(st.just("custom"), st.sampled_from(UNARY), st.integers(0, 5)),
        st.tuples(st.just("custom back"), st.sampled_from(UNARY), st.integers(0, 5)),
        st.tuples(st.just("reference"), st.sampled_from(UNARY), st.integers(0, 5)),
    ),
    min_size=1, max_size=5,
)


def program_of(package, steps):
    """A function of a scalar: each step appends a value made of earlier ones."""
    jax, lax = package, package.lax

    def f(x):
        values = [x]

        def earlier(i):
            return values[i % len(values)]

        def applied(op):
            return lambda v: apply(jax, op, v)

        for kind, op, *at in steps:
            v = earlier(at[0])
            if kind == "unary":
                new = apply(jax, op, v)
            elif kind == "binary":
                new = apply(jax, op, v, earlier(at[1]))
            elif kind == "jit":
                new = jax.jit(lambda v, op=op: apply(jax, op, v) * v)(v)
            elif kind == "checkpoint":
                new = jax.checkpoint(lambda v, op=op: apply(jax, op, apply(jax, "sin", v)))(v)
            elif kind == "scan":
                new = lax.scan(lambda c, y, op=op: (apply(jax, op, c) * y, c), v, np.float32([1.0, 0.5, 2.0]))[0]
            elif kind == "cond":
                new = lax.cond(v > 0.1, lambda v, op=op: apply(jax, op, v), lambda v: v * 0.5, v)
            elif kind == "custom":
                g = jax.custom_jvp(applied(op))
                g.defjvp(lambda p, t, g=g: (g(p[0]), t[0] * p[0]))
                new = g(v)
            elif kind == "custom back":
                g = jax.custom_vjp(applied(op))
                g.defvjp(lambda v, g=g: (g(v), v), lambda r, ct: (ct * r * 0.5,))
                new = g(v)
            else:
                ref = jax.new_ref(v * 1.0)
                ref[...] = apply(jax, op, ref[...])
                ref[...] += v * ref[...]
                new = ref[...]
            values.append(new)
        return values[-1] + values[0]

    return f


TRANSFORMATIONS = {
    "jit": lambda jax, f: jax.jit(f),
    "grad": lambda jax, f: jax.grad(f),
    "vmap": lambda jax, f: lambda x: jax.vmap(f)(jax.numpy.stack([x, x * 0.5])).sum(),
    "checkpoint": lambda jax, f: jax.checkpoint(f),
    "linearize": lambda jax, f: lambda x: jax.linearize(f, x)[1](x),
    "vjp": lambda jax, f: lambda x: jax.vjp(f, x)[1](x)[0],
}


examples = int(os.environ.get("STYRAX_EXAMPLES", 12))
sweep = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True,
                 phases=[Phase.explicit, Phase.generate])


def compare(program):
    """Against JAX, where JAX can: it has no second derivatives through references, among others."""
    try:
        expected = program(jax)
    except Exception:
        program(styrax)
        return
    assert_same(lambda package: expected if package is jax else program(package), rtol=2e-3, atol=1e-4)


points = st.floats(0.25, 1.25, width=32)


@sweep
@given(steps, st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), min_size=1, max_size=3), points)
def test_compositions(steps, stack, x):
    if "linearize" in stack:  # evaluated forward, a custom VJP has no rule
        steps = [s for s in steps if s[0] != "custom back"] or [("unary", "sin", 0)]

    def program(package):
        f = program_of(package, steps)
        for name in stack:
            f = TRANSFORMATIONS[name](package, f)
        if package is styrax:
            with styrax.enable_checks(True):
                check_jaxpr(styrax.make_jaxpr(f)(np.float32(x)))
        return f(np.float32(x))

    compare(program)


@sweep
@given(steps, st.lists(st.sampled_from(["jit", "vmap", "checkpoint"]), min_size=0, max_size=2), points)
def test_forward_mode(steps, stack, x):
    steps = [s for s in steps if s[0] != "custom back"] or [("unary", "sin", 0)]

    def program(package):
        f = program_of(package, steps)
        for name in stack:
            f = TRANSFORMATIONS[name](package, f)
        return package.jvp(f, (np.float32(x),), (np.float32(1),))

    compare(program)
